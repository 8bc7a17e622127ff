"""A bound model as COMID's engines take it: pairs with signs and slopes, penalties, bounds, the set of a vector.

In: a `BoundProblem` that `structure` let through. Out: a `PairSet` and a `Penalty`, or a design with a `Domain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.diagnostics import DataError, Diagnostic
from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    BoundProblem,
    LinearTerm,
    Norm,
    Predictor,
    Separable,
    TraceNorm,
)
from spdsl.problem.functions import Array
from spdsl.solvers.comid.divergences import Penalty
from spdsl.solvers.comid.engine import PairSet
from spdsl.solvers.comid.proximal import piecewise_prox
from spdsl.solvers.comid.structure import is_absolute
from spdsl.solvers.comid.vector import Domain

__all__ = ["Slopes", "VectorTask", "metric_pairs", "metric_penalty", "scalar_bounds", "vector_task"]


class Slopes:
    """The derivative of the sample losses phi_t(z_t), times the self-paced weight v*(phi_t, age) where there is one."""

    def __init__(self, problem: BoundProblem, compile_from: int) -> None:
        loss = problem.problem.loss
        assert loss is not None
        assert loss.function.kernel is not None
        self.problem = problem
        self.kernel = loss.function.kernel
        self.theta = problem.parameters_of(loss.function)
        self.pieces = loss.function.pieces
        self.age = fixed_age(problem)
        T = problem.n_samples
        self._rows = (
            np.column_stack([np.broadcast_to(value, (T,)) for value in self.theta]) if self.theta else np.empty((T, 0))
        )
        self._scalar = self.kernel.compiled().slope if self.age is None and compile_from <= 0 else None

    def __call__(self, indices: np.ndarray, z: Array) -> Array:
        """phi_t'(z_t) of the samples `indices` (k,) at z (k,)."""
        if self._scalar is not None and len(z) == 1:
            return np.array([self._scalar(z[0], self._rows[indices[0]])])
        theta = self._theta(indices)
        slope = self.kernel.slope(self.kernel.piece(z, *theta), z, *theta)
        return slope if self.age is None else slope * self.problem.weights(self.values(indices, z), self.age)

    def values(self, indices: np.ndarray, z: Array) -> Array:
        """phi_t(z_t), shape (k,)."""
        theta = self._theta(indices)
        return np.asarray(self.kernel.value(self.kernel.piece(z, *theta), z, *theta))

    def prox(self, v: Array, sigma: Array) -> Array:
        """argmin over z of sum_t phi_t(z_t) + sigma_t/2 (z_t - v_t)^2, all (T,)."""
        return piecewise_prox(self.kernel, self.theta, v, sigma)

    def flat(self) -> tuple[Array, Array]:
        """Borders low <= z < high between which phi_t' = 0, each (T,); (inf, inf) when there are none."""
        T = self.problem.n_samples
        breaks = [np.broadcast_to(np.asarray(value, float), (T,)) for value in self.kernel.breaks(*self.theta)]
        edges = [np.full(T, -np.inf), *breaks, np.full(T, np.inf)]
        for first, piece in enumerate(self.pieces):
            if piece.slope.text == "0":
                last = first
                while last + 1 < len(self.pieces) and self.pieces[last + 1].slope.text == "0":
                    last += 1
                return np.array(edges[first]), np.array(edges[last + 1])
        return np.full(T, np.inf), np.full(T, np.inf)

    def _theta(self, indices: np.ndarray) -> tuple[Any, ...]:
        return tuple(value if np.ndim(value) == 0 else value[indices] for value in self.theta)


def fixed_age(problem: BoundProblem) -> float | None:
    """The age of a self-paced model, None without one."""
    if problem.problem.self_paced is None or problem.problem.age is None:
        return None
    return float(problem.evaluate(problem.problem.age.lower))


def metric_pairs(problem: BoundProblem, slopes: Slopes) -> PairSet:
    """The pairs of a metric model: z = offset + slope mu - sign u'Mu."""
    loss = problem.problem.loss
    assert loss is not None
    predictor = loss.predictors[0]
    T = problem.n_samples
    sign, slope = np.zeros(T), np.zeros(T)
    U = np.empty((0, 0))
    for term in predictor.terms:
        scale = np.broadcast_to(1.0 if term.scale is None else np.asarray(problem.evaluate(term.scale), float), (T,))
        if term.kind == "quadratic_form":
            assert term.matrix is not None
            rows = problem.evaluate(term.matrix)
            U = np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
            sign = -np.array(scale)
        else:
            slope = np.array(scale)
    low, high = slopes.flat()
    return PairSet(U, sign, slope, _offset(problem, predictor, T), slopes, low, high, float(T))


def metric_penalty(problem: BoundProblem) -> Penalty:
    """The regularizers of a metric model as one penalty; they may repeat.

    Raises
    ------
    UsageError
        For a negative coefficient.
    """
    trace = ridge = norm = l1 = 0.0
    for item in problem.problem.regularizers:
        coefficient = float(problem.evaluate(item.coefficient))
        if isinstance(item, TraceNorm):
            trace += coefficient
        elif isinstance(item, Norm):
            norm += coefficient
        elif isinstance(item, LinearTerm):
            trace += coefficient * sum(_scale(problem, term) for term in item.predictor.terms)
        elif isinstance(item, Separable):
            absolute, curvature = separable_weights(problem, item)
            l1 += coefficient * absolute
            ridge += coefficient * curvature
    return Penalty(trace, ridge, norm, l1)


def separable_weights(problem: BoundProblem, item: Separable) -> tuple[float, float]:
    """(a, c) for a separable regularizer a |u| or c u^2 / 2."""
    kernel = item.function.kernel
    assert kernel is not None
    theta = problem.parameters_of(item.function)
    at = np.array([1.0])
    label = kernel.piece(at, *theta)
    if is_absolute(item):
        return float(kernel.slope(label, at, *theta)[0]), 0.0
    curvature = float(kernel.curvature(label, at, *theta)[0])
    if abs(float(kernel.slope(label, at, *theta)[0]) - curvature) > 1e-12 * (1.0 + abs(curvature)):
        raise DataError(
            Diagnostic(
                "SPL564", "comid takes squares centered at 0 as a regularizer; this one has its minimum elsewhere"
            )
        )
    return 0.0, curvature


def scalar_bounds(problem: BoundProblem, name: str) -> tuple[float, float]:
    """The bounds (lower, upper) that the constraints put on a scalar variable.

    Raises
    ------
    DataError
        When they leave nothing.
    """
    lower, upper = -np.inf, np.inf
    for constraint in problem.problem.constraints:
        if isinstance(constraint, AffineConstraint) and constraint.predictor.variables == (name,):
            low, high = _bounds_of(problem, constraint, 1)
            lower, upper = max(lower, float(low[0])), min(upper, float(high[0]))
    if lower > upper:
        raise DataError(Diagnostic("SPL564", f"no value of `{name}` fits its bounds [{lower:.6g}, {upper:.6g}]"))
    return lower, upper


@dataclass(frozen=True)
class VectorTask:
    """A vector model: z = A x + c over the flat x, where w lies in it, its set, its penalties."""

    A: Any  # (T, p), dense or CSR
    c: Array
    where: slice
    domain: Domain
    l1: float
    ridge: float
    scalars: tuple[tuple[int, float, float], ...]  # (position, lower, upper)


def vector_task(problem: BoundProblem) -> VectorTask:
    """The parts of a vector model.

    Raises
    ------
    DataError
        When the set is empty or a sum's weights differ.
    """
    loss = problem.problem.loss
    assert loss is not None
    A, c = problem.design(loss.predictors[0])
    name = next(variable.name for variable in problem.problem.variables if variable.kind == "vector")
    where = problem.layout.slices[name]
    l1 = ridge = 0.0
    for item in problem.problem.regularizers:
        assert isinstance(item, Separable)
        absolute, curvature = separable_weights(problem, item)
        coefficient = float(problem.evaluate(item.coefficient))
        l1, ridge = l1 + coefficient * absolute, ridge + coefficient * curvature
    scalars = tuple(
        (problem.layout.slices[variable.name].start, *scalar_bounds(problem, variable.name))
        for variable in problem.problem.variables
        if variable.kind == "scalar"
    )
    A = A.tocsr() if hasattr(A, "tocsr") else np.ascontiguousarray(A)
    return VectorTask(A, c, where, _domain(problem, name, where.stop - where.start), l1, ridge, scalars)


def _domain(problem: BoundProblem, name: str, d: int) -> Domain:
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    total: float | None = None
    for constraint in problem.problem.constraints:
        predictor = getattr(constraint, "predictor", None)
        if predictor is None or predictor.variables != (name,):
            continue
        if isinstance(constraint, BallConstraint):
            radius = float(problem.evaluate(constraint.radius))
            if radius <= 0:
                raise DataError(
                    Diagnostic("SPL564", f"the radius in `{constraint.text}` is {radius:.6g}; it must be > 0")
                )
            if constraint.norm == "linf":
                return Domain("box", np.full(d, -radius), np.full(d, radius))
            return Domain("l2_ball" if constraint.norm == "l2" else "l1_ball", radius=radius)
        assert isinstance(constraint, AffineConstraint)
        if constraint.relation == "==":
            total = _total(problem, constraint)
        else:
            low, high = _bounds_of(problem, constraint, d)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    if np.any(lower > upper):
        raise DataError(Diagnostic("SPL564", f"no value of `{name}` fits its bounds"))
    if total is not None:
        if np.any(lower != 0.0) or np.any(np.isfinite(upper)) or total <= 0.0:
            raise DataError(
                Diagnostic("SPL564", f"comid takes a sum of `{name}` with `{name} >= 0` and a total > 0 only")
            )
        return Domain("simplex", radius=total)
    if np.all(lower == -np.inf) and np.all(upper == np.inf):
        return Domain()
    if np.all(lower == 0.0) and np.all(upper == np.inf):
        return Domain("orthant")
    return Domain("box", lower, upper)


def _bounds_of(problem: BoundProblem, constraint: AffineConstraint, d: int) -> tuple[Array, Array]:
    """scale * w + offset <= 0 as bounds of w, each (d,)."""
    term = constraint.predictor.terms[0]
    scale = np.broadcast_to(np.ravel(1.0 if term.scale is None else problem.evaluate(term.scale)).astype(float), (d,))
    offset = _offset(problem, constraint.predictor, d)
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    negative, positive = scale < 0.0, scale > 0.0
    lower[negative] = -offset[negative] / scale[negative]
    upper[positive] = -offset[positive] / scale[positive]
    return lower, upper


def _total(problem: BoundProblem, constraint: AffineConstraint) -> float:
    term = constraint.predictor.terms[0]
    assert term.matrix is not None
    weights = np.ravel(problem.evaluate(term.matrix)).astype(float) * _scale(problem, term)
    if np.ptp(weights) != 0.0 or weights[0] == 0.0:
        raise DataError(Diagnostic("SPL564", f"comid takes plain sums only; `{constraint.text}` has unequal weights"))
    return -float(_offset(problem, constraint.predictor, 1)[0]) / float(weights[0])


def _offset(problem: BoundProblem, predictor: Predictor, rows: int) -> Array:
    value = 0.0 if predictor.offset is None else np.ravel(np.asarray(problem.evaluate(predictor.offset), float))
    return np.array(np.broadcast_to(value, (rows,)))


def _scale(problem: BoundProblem, term: Any) -> float:
    return 1.0 if term.scale is None else float(problem.evaluate(term.scale))

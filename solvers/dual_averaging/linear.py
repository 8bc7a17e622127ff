"""Recognizing what dual averaging can solve: losses of a linear predictor, L1/L2 terms, a box or a ball.

In: a `Problem` (its structure), then a `BoundProblem` (its numbers). Out: sentences that refuse, or a `LinearModel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    BoundProblem,
    LinearTerm,
    Predictor,
    Problem,
    Separable,
    Term,
)
from spdsl.problem.functions import Array
from spdsl.solvers.dual_averaging.design import Design, make_design

__all__ = ["Ball", "LinearModel", "linear_model", "objections"]


@dataclass(frozen=True)
class Ball:
    """||w_where|| <= radius, in the l1 or l2 norm."""

    norm: str
    radius: float
    where: slice


@dataclass(frozen=True)
class LinearModel:
    """A problem in the numbers that the engines take; w holds all coordinates but an unpenalized intercept.

    Attributes
    ----------
    design : Design
    kernel : PieceKernel
        The loss; `parameters` are its theta as floats or arrays (m,).
    rho, mu, linear : arrays (d,) or (1,)
        Coefficients of |w_j|, w_j^2 / 2 and w_j.
    constant : float
        What the regularizers add whatever w is.
    low, high : arrays (d,) or (1,), of one size
        The model's own box.
    ball : Ball or None
    intercept : bool
        Is there a scalar b beside w, with bounds `intercept_box` and the linear coefficient `intercept_linear`?
    where : slice
        The place of w in the flat vector; `intercept_at` is that of b, -1 for none.
    scale : float
        What a mean of per-sample gradients is multiplied by: the number of samples.
    """

    design: Design
    kernel: Any
    parameters: tuple[Any, ...]
    rho: Array
    mu: Array
    linear: Array
    constant: float
    low: Array
    high: Array
    ball: Ball | None
    intercept: bool
    intercept_box: tuple[float, float]
    intercept_linear: float
    where: slice
    intercept_at: int
    size: int
    scale: float

    @property
    def n_features(self) -> int:
        """d."""
        return self.design.shape[1]

    @property
    def theta(self) -> Array:
        """The loss's parameters as rows: (m, p), or (1, p) when all samples share them."""
        rows = self.design.shape[0] if any(np.ndim(part) for part in self.parameters) else 1
        columns = [np.broadcast_to(np.asarray(part, float), (rows,)) for part in self.parameters]
        return np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.zeros((1, 1))

    def losses(self, w: Array, b: float = 0.0) -> Array:
        """l_i at (w, b)."""
        return self.losses_at(self.design.products(w, b))

    def losses_at(self, z: Array) -> Array:
        """l_i at predictors z (m,)."""
        return np.asarray(self.kernel.value(self.kernel.piece(z, *self.parameters), z, *self.parameters))

    def slopes_at(self, z: Array) -> Array:
        """A subgradient of each l_i at z (m,)."""
        return np.asarray(self.kernel.slope(self.kernel.piece(z, *self.parameters), z, *self.parameters))

    def penalty(self, w: Array, b: float = 0.0) -> float:
        """All regularizers at (w, b)."""
        value = np.sum(self.rho * np.abs(w)) + 0.5 * np.sum(self.mu * w * w) + np.sum(self.linear * w)
        return float(value + self.intercept_linear * b + self.constant)

    def objective(self, w: Array, b: float = 0.0) -> float:
        """The model's objective."""
        return float(np.sum(self.losses(w, b))) + self.penalty(w, b)

    def flat(self, w: Array, b: float = 0.0) -> Array:
        """The flat vector of the problem's layout."""
        x = np.zeros(self.size)
        x[self.where] = w
        if self.intercept:
            x[self.intercept_at] = b
        return x


# --- structure ------------------------------------------------------------------------------------------------------


def objections(problem: Problem) -> list[str]:
    """Why the problem is none for dual averaging, as sentences; empty when it is one."""
    found: list[str] = []
    if problem.self_paced is not None or problem.age is not None:
        found.append("it takes every sample at full weight, and this model is self-paced")
    found += [
        f"its variables are vectors and scalars, and `{variable.name}` is {variable.kind}"
        for variable in problem.variables
        if variable.kind not in ("vector", "scalar")
    ]
    loss = problem.loss
    if loss is None:
        found.append("it walks over samples, and this model has no loss")
    elif not loss.elementwise:
        found.append("it needs one loss per sample")
    elif len(loss.predictors) != 1 or loss.function.kernel is None:
        found.append("its loss is a function of one linear predictor, and this one couples several")
    elif any(term.kind not in ("matrix", "identity", "ones", "row") for term in loss.predictors[0].terms):
        found.append("its predictor is linear in vectors and scalars")
    found += [reason for item in problem.regularizers if (reason := _term_objection(item))]
    found += [reason for item in problem.constraints if (reason := _constraint_objection(item))]
    if sum(isinstance(item, BallConstraint) and item.norm != "linf" for item in problem.constraints) > 1:
        found.append("it takes one ball, and this model has several")
    return found


def _term_objection(item: Any) -> str | None:
    words = "its regularizers are L1 norms, squared L2 norms and linear terms of single coordinates"
    if isinstance(item, LinearTerm):
        return None if all(term.kind in ("identity", "ones", "row") for term in item.predictor.terms) else words
    if not isinstance(item, Separable) or _single(item.predictor) is None or item.predictor.offset is not None:
        return words
    function = item.function
    if len(function.pieces) > 2 or not function.curvature_is_constant or function.kernel is None:
        return f"{words}, and `{function.body.function if hasattr(function.body, 'function') else 'one'}` is another"
    return None


def _constraint_objection(item: Any) -> str | None:
    if isinstance(item, AffineConstraint | BallConstraint) and _single(item.predictor) is not None:
        ball = isinstance(item, BallConstraint)
        plain = item.predictor.offset is None and item.predictor.terms[0].scale is None
        return None if not ball or plain else f"its balls are centred at 0 and unscaled, unlike `{item.text}`"
    text = getattr(item, "text", "") or type(item).__name__
    return f"its constraints are bounds on coordinates or one ball, unlike `{text}`"


def _single(predictor: Predictor) -> Term | None:
    """The predictor's one term, when it is a multiple of a variable."""
    if len(predictor.terms) != 1:
        return None
    term = predictor.terms[0]
    scalar = term.kind == "ones" and predictor.rows in ("", "1")
    return term if term.kind == "identity" or scalar else None


# --- numbers --------------------------------------------------------------------------------------------------------


def linear_model(bound: BoundProblem, samples: int | None = None) -> LinearModel:
    """The numbers of a problem to which there are no `objections`.

    Parameters
    ----------
    samples : int, optional
        How many samples there are in all, when the data are one chunk of them.

    Raises
    ------
    ValueError
        When a regularizer turns out to be neither L1 nor L2, or bounds exclude each other; the text says which.
    """
    problem = bound.problem
    assert problem.loss is not None
    size = bound.layout.size
    rho, mu, linear, constant = _penalties(bound, size)
    low, high = _box(bound, size)
    ball = _ball(bound)
    scalar = _free_intercept(bound, rho, mu)
    predictor, rows = problem.loss.predictors[0], bound.n_samples
    if scalar is None:
        matrix, offset = bound.design(predictor)
        design, where, intercept_at = make_design(matrix, 1.0, 0.0, _shared(offset)), slice(0, size), -1
    else:
        design, where = _direct_design(bound, predictor, rows)
        intercept_at = scalar
    keep = [part[where] for part in (rho, mu, linear, low, high)]
    bounds = [_shared(keep[3]), _shared(keep[4])]
    if bounds[0].size != bounds[1].size:
        bounds = [np.broadcast_to(part, keep[3].shape).copy() for part in bounds]
    if ball is not None:
        ball = Ball(ball.norm, ball.radius, slice(ball.where.start - where.start, ball.where.stop - where.start))
    with_intercept = intercept_at >= 0
    return LinearModel(
        design=design,
        kernel=problem.loss.function.kernel,
        parameters=bound.parameters_of(problem.loss.function),
        rho=_shared(keep[0]),
        mu=_shared(keep[1]),
        linear=_shared(keep[2]),
        constant=constant,
        low=bounds[0],
        high=bounds[1],
        ball=ball,
        intercept=with_intercept,
        intercept_box=(low[intercept_at], high[intercept_at]) if with_intercept else (-np.inf, np.inf),
        intercept_linear=float(linear[intercept_at]) if with_intercept else 0.0,
        where=where,
        intercept_at=intercept_at,
        size=size,
        scale=float(samples if samples is not None else rows),
    )


def _penalties(bound: BoundProblem, size: int) -> tuple[Array, Array, Array, float]:
    rho, mu, linear, constant = np.zeros(size), np.zeros(size), np.zeros(size), 0.0
    for item in bound.problem.regularizers:
        coefficient = float(bound.evaluate(item.coefficient))
        if isinstance(item, LinearTerm):
            matrix, offset = bound.design(item.predictor)
            linear += coefficient * np.asarray(matrix.sum(axis=0)).ravel()
            constant += coefficient * float(np.sum(offset))
            continue
        assert isinstance(item, Separable)
        term = item.predictor.terms[0]
        where = bound.layout.slices[term.variable]
        factor = np.abs(np.asarray(1.0 if term.scale is None else bound.evaluate(term.scale), float))
        one, two, least = _l1_and_l2(item, bound)
        rho[where] += coefficient * one * np.ravel(factor)
        mu[where] += coefficient * two * np.ravel(factor) ** 2
        constant += coefficient * least * (where.stop - where.start)
    if np.any(rho < 0.0) or np.any(mu < 0.0):
        raise ValueError("a regularizer has a negative coefficient, so the problem is not convex")
    return rho, mu, linear, constant


def _l1_and_l2(item: Separable, bound: BoundProblem) -> tuple[float, float, float]:
    """psi(u) = a |u| + b u^2 / 2 + c: the numbers a, b and c."""
    kernel, theta = item.function.kernel, bound.parameters_of(item.function)
    assert kernel is not None
    u = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    value = np.asarray(kernel.value(kernel.piece(u, *theta), u, *theta), float)
    c = value[2]
    two = value[4] - 2.0 * value[3] + c
    one = value[3] - c - 0.5 * two
    if not np.allclose(value, one * np.abs(u) + 0.5 * two * u**2 + c, rtol=1e-12, atol=1e-12 * np.abs(value).max()):
        raise ValueError("a regularizer is neither an L1 norm nor a squared L2 norm, nor their sum")
    return float(one), float(two), float(c)


def _box(bound: BoundProblem, size: int) -> tuple[Array, Array]:
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    for item in bound.problem.constraints:
        if isinstance(item, BallConstraint):
            if item.norm == "linf":
                where, radius = (
                    bound.layout.slices[item.predictor.terms[0].variable],
                    float(bound.evaluate(item.radius)),
                )
                low[where] = np.maximum(low[where], -radius)
                high[where] = np.minimum(high[where], radius)
            continue
        assert isinstance(item, AffineConstraint)
        term = item.predictor.terms[0]
        where = bound.layout.slices[term.variable]
        shape = where.stop - where.start
        factor = np.broadcast_to(np.ravel(1.0 if term.scale is None else bound.evaluate(term.scale)), (shape,))
        offset = np.ravel(0.0 if item.predictor.offset is None else bound.evaluate(item.predictor.offset))
        with np.errstate(divide="ignore", invalid="ignore"):
            edge = -np.broadcast_to(offset, (shape,)) / factor
        if np.any(factor == 0.0):
            raise ValueError(f"the constraint `{item.text}` multiplies a coordinate by 0")
        above = (factor > 0.0) | (item.relation == "==")
        below = (factor < 0.0) | (item.relation == "==")
        high[where] = np.where(above, np.minimum(high[where], edge), high[where])
        low[where] = np.where(below, np.maximum(low[where], edge), low[where])
    if np.any(low > high):
        raise ValueError("the bounds exclude each other, so no point is feasible")
    return low, high


def _ball(bound: BoundProblem) -> Ball | None:
    for item in bound.problem.constraints:
        if isinstance(item, BallConstraint) and item.norm != "linf":
            where = bound.layout.slices[item.predictor.terms[0].variable]
            return Ball(item.norm, float(bound.evaluate(item.radius)), where)
    return None


def _free_intercept(bound: BoundProblem, rho: Array, mu: Array) -> int | None:
    """-1 when the loss has one vector variable only, the scalar's place when one unpenalized scalar joins it.

    None when the coordinates must all be treated alike (several vectors, a penalized scalar, a scaled identity, ...).
    """
    problem = bound.problem
    assert problem.loss is not None
    terms = problem.loss.predictors[0].terms
    vectors = [term for term in terms if term.kind == "matrix"]
    scalars = [term for term in terms if term.kind == "ones"]
    if len(vectors) != 1 or len(terms) != len(vectors) + len(scalars) or len(problem.variables) != len(terms):
        return None
    if not scalars:
        return -1
    place = bound.layout.slices[scalars[0].variable].start
    return place if rho[place] == 0.0 and mu[place] == 0.0 else None


def _direct_design(bound: BoundProblem, predictor: Predictor, rows: int) -> tuple[Design, slice]:
    """The matrix as it lies in memory, with the rows' factors beside it instead of multiplied in."""
    vector = next(term for term in predictor.terms if term.kind == "matrix")
    scalar = next((term for term in predictor.terms if term.kind == "ones"), None)

    def factor(term: Term | None) -> Any:
        if term is None:
            return 0.0
        value = 1.0 if term.scale is None else bound.evaluate(term.scale)
        return float(value) if np.ndim(value) == 0 else np.asarray(value, float).ravel()

    assert vector.matrix is not None
    offset = 0.0 if predictor.offset is None else bound.evaluate(predictor.offset)
    offset = np.ravel(np.asarray(offset, float))
    design = make_design(bound.evaluate(vector.matrix), factor(vector), factor(scalar), offset)
    return design, bound.layout.slices[vector.variable]


def _shared(part: Array) -> Array:
    """One entry when all are equal."""
    return part[:1].copy() if part.size and np.all(part == part[0]) else part

"""The distance from 0 to the subdifferential of the w-problem: are the KKT conditions met, whoever claims it?

In: a `BoundProblem`, a point x, sample weights v. Out: the residual of

    0 in sum_i v_i dl_i(x) + sum_j dR_j(x) + normal cone of the constraints

minimized over ALL multipliers: of samples at a kink, of coordinates at zero, of active constraints. Nothing of a back
end enters, and nothing that the compiler derived.

Scaled: the largest entry of the residual over the largest entry of the loss's gradient sum_i v_i grad l_i, at x or at
zero, whichever is larger (for a lasso at zero that is the penalty at which w leaves zero). A kink, a zero or a
constraint counts as touched within `touch`, relative to the largest of its terms; `kkt_residual` is the least t for
which the conditions hold to t with whatever lies within t of x touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    BoundProblem,
    GroupNorm,
    KernelNorm,
    LinearTerm,
    Norm,
    Predictor,
    Regularizer,
    SemidefiniteConstraint,
    Separable,
    SupportConstraint,
    TraceNorm,
)
from spdsl.problem.functions import Array
from spdsl.reference.affine import AffineMap, affine_map
from spdsl.reference.least_residual import least_residual
from spdsl.reference.multipliers import (
    Ball,
    Block,
    Box,
    Congruence,
    L1Cone,
    Simplex,
    Spectrum,
    Subdifferential,
)
from spdsl.reference.scalar import FLOOR, Touch, corner_gradients
from spdsl.reference.support import support_mask

__all__ = ["TOUCHES", "kkt_residual", "residual_vector", "subdifferential"]

TOUCHES = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


def kkt_residual(bound: BoundProblem, x: Array, weights: Array, good_enough: float = 1e-10) -> float:
    """The scaled KKT residual at x with sample weights v; see the module's text for the scale.

    `good_enough` ends the search for better multipliers.
    """
    best = found = np.inf
    before: tuple[Any, ...] = ()
    for touch in TOUCHES:
        if touch >= best:
            break
        parts, scale = subdifferential(bound, x, weights, touch)
        if parts.signature != before:  # a wider touch changes nothing unless it reaches something new
            before = parts.signature
            residual = least_residual(parts, good_enough * scale)
            found = float(np.max(np.abs(residual), initial=0.0)) / scale
        best = min(best, max(found, touch))
        if found <= touch:
            break
    return best


def residual_vector(
    bound: BoundProblem, x: Array, weights: Array, touch: float, good_enough: float = 1e-10
) -> tuple[Array, float]:
    """The residual (p,) over the flat vector, in the objective's units, and the scale to divide it by."""
    parts, scale = subdifferential(bound, x, weights, touch)
    return least_residual(parts, good_enough * scale), scale


def subdifferential(bound: BoundProblem, x: Array, weights: Array, touch: float) -> tuple[Subdifferential, float]:
    """All subgradients at x, and the scale."""
    p = bound.layout.size
    work = _Work(bound, x, touch, Subdifferential(np.zeros(p), np.zeros(p), np.zeros(p)))
    work.sum.symmetric = [
        (bound.layout.slices[item.name], bound.layout.shapes[item.name][0])
        for item in bound.problem.variables
        if item.kind == "symmetric"
    ]
    scale = _add_loss(work, weights)
    for item in bound.problem.regularizers:
        _add_regularizer(work, item)
    for constraint in bound.problem.constraints:
        if isinstance(constraint, AffineConstraint):
            _add_affine(work, constraint)
        elif isinstance(constraint, BallConstraint):
            _add_ball(work, constraint)
        elif isinstance(constraint, SupportConstraint):
            outside = ~support_mask(bound, constraint, x)
            work.sum.fixed = outside if work.sum.fixed is None else work.sum.fixed | outside
    _add_spectra(work)
    size = max(scale, float(np.max(np.abs(work.sum.gradient), initial=0.0)) if scale == 0.0 else 0.0)
    return work.sum, size or 1.0


@dataclass
class _Work:
    """A subdifferential while it is assembled; `trace` collects trace norms' coefficients by variable."""

    bound: BoundProblem
    x: Array
    touch: float
    sum: Subdifferential
    trace: dict[str, float] = field(default_factory=dict)

    def touched(self, values: Array) -> Any:
        """Which values count as zero."""
        largest = max(float(np.max(np.abs(values), initial=0.0)), FLOOR)
        return np.abs(values) <= self.touch * largest

    def add_rows(self, rows: Any, lower: Array, upper: Array) -> None:
        """One generator a row, with an interval for each multiplier; rows of a single entry become intervals."""
        matrix = rows.tocsr()
        counts = np.diff(matrix.indptr)
        single = counts == 1
        if single.any():
            where = matrix.indices[matrix.indptr[:-1][single]]
            entries = matrix.data[matrix.indptr[:-1][single]]
            ends = np.stack([entries * lower[single], entries * upper[single]])
            np.add.at(self.sum.lower, where, ends.min(axis=0))
            np.add.at(self.sum.upper, where, ends.max(axis=0))
        rest = counts > 1
        if rest.any():
            self.sum.blocks.append(Block(matrix[rest], Box(lower[rest], upper[rest])))


# -- the loss ----------------------------------------------------------------------------------------------------------


def _add_loss(work: _Work, weights: Array) -> float:
    """Add sum_i v_i dl_i; returns the scale."""
    loss, bound = work.bound.problem.loss, work.bound
    if loss is None:
        return 0.0
    maps = [affine_map(bound, predictor) for predictor in loss.predictors]
    theta = bound.parameters_of(loss.function)
    touch = Touch(work.touch, max([FLOOR, *(item.terms_size(work.x) for item in maps)]))
    corners = corner_gradients(loss.function, [item(work.x) for item in maps], theta, touch)
    if len(maps) == 1:
        _add_scalar(work, maps[0], corners[0][0], corners[1][0], weights)
    else:
        _add_corners(work, maps, corners, weights)
    at_x = _gradient(maps, corners, weights)
    try:
        corners = corner_gradients(loss.function, [item.offset for item in maps], theta, touch)
        at_zero = _gradient(maps, corners, weights)
    except (ValueError, FloatingPointError):
        at_zero = at_x
    sizes = [float(np.max(np.abs(part), initial=0.0)) for part in (at_x, at_zero)]
    return max(size for size in [*sizes, 0.0] if np.isfinite(size))


def _gradient(maps: list[AffineMap], corners: list[tuple[Array, ...]], weights: Array) -> Array:
    """sum_i v_i grad l_i with the mean of the pieces' gradients at kinks."""
    total = np.zeros(maps[0].size)
    for k, item in enumerate(maps):
        mean = np.mean([corner[k] for corner in corners], axis=0)
        total += item.adjoint(weights * np.where(np.isfinite(mean), mean, 0.0))
    return total


def _add_scalar(work: _Work, item: AffineMap, left: Array, right: Array, factor: Array) -> None:
    """factor * d phi(z) for phi of one argument with slopes `left` and `right`."""
    low, high = factor * np.minimum(left, right), factor * np.maximum(left, right)
    kinked = high - low > 1e-13 * np.maximum(np.abs(low), np.abs(high))
    work.sum.gradient += item.adjoint(np.where(kinked, 0.0, 0.5 * (low + high)))
    chosen = np.flatnonzero(kinked)
    if len(chosen):
        work.add_rows(item.rows(chosen), low[chosen], high[chosen])


def _add_corners(work: _Work, maps: list[AffineMap], corners: list[tuple[Array, ...]], weights: Array) -> None:
    """v * convex hull of gradients, for a loss of several predictors."""
    gradients = np.array(corners)  # directions, arguments, samples
    spread = np.ptp(gradients, axis=0).max(axis=0)
    tied = (spread > 1e-13 * np.max(np.abs(gradients), axis=(0, 1), initial=0.0)) & (weights > 0)
    for k, item in enumerate(maps):
        work.sum.gradient += item.adjoint(np.where(tied, 0.0, weights * gradients[0, k]))
    for sample in np.flatnonzero(tied):
        distinct = np.unique(np.round(gradients[:, :, sample], 13), axis=0)
        rows = maps[0].rows([sample] * len(distinct)) * 0.0
        for k, item in enumerate(maps):
            rows = rows + item.rows([sample] * len(distinct)).multiply(distinct[:, k : k + 1])
        rows = rows.tocsr() * weights[sample]
        if len(distinct) == 2:  # two pieces meet: one piece's gradient, and a share in [0, 1] of the difference
            work.sum.gradient += rows[[0]].toarray().ravel()
            work.add_rows((rows[[1]] - rows[[0]]).tocsr(), np.zeros(1), np.ones(1))
        else:
            work.sum.blocks.append(Block(rows, Simplex(1, len(distinct))))


# -- regularizers ------------------------------------------------------------------------------------------------------


def _add_regularizer(work: _Work, item: Regularizer) -> None:
    coefficient = float(work.bound.evaluate(item.coefficient))
    if isinstance(item, Separable):
        mapped = affine_map(work.bound, item.predictor)
        theta = work.bound.parameters_of(item.function)
        touch = Touch(work.touch, max(FLOOR, mapped.terms_size(work.x)))
        left, right = corner_gradients(item.function, [mapped(work.x)], theta, touch)
        _add_scalar(work, mapped, left[0], right[0], np.full(mapped.n_rows, coefficient))
    elif isinstance(item, Norm):
        mapped = affine_map(work.bound, item.predictor)
        _add_norm(work, mapped, np.arange(mapped.n_rows), coefficient)
    elif isinstance(item, GroupNorm):
        mapped = affine_map(work.bound, item.predictor)
        groups = work.bound.group_labels(item, mapped.n_rows)
        for group in np.unique(groups):
            _add_norm(work, mapped, np.flatnonzero(groups == group), coefficient)
    elif isinstance(item, TraceNorm):
        work.trace[item.variable] = work.trace.get(item.variable, 0.0) + coefficient
    elif isinstance(item, KernelNorm):
        where = work.bound.layout.slices[item.variable]
        work.sum.gradient[where] += 2.0 * coefficient * (work.bound.gram(item.variable) @ work.x[where])
    else:
        assert isinstance(item, LinearTerm)
        mapped = affine_map(work.bound, item.predictor)
        work.sum.gradient += coefficient * mapped.adjoint(np.ones(mapped.n_rows))


def _add_norm(work: _Work, mapped: AffineMap, rows: Any, coefficient: float) -> None:
    """coefficient * d|u|_2 for some rows u of a map: u/|u|, or the unit ball at u = 0."""
    values = mapped(work.x)
    u, norm = values[rows], float(np.linalg.norm(values[rows]))
    if norm > work.touch * max(mapped.terms_size(work.x), FLOOR):
        t = np.zeros(mapped.n_rows)
        t[rows] = coefficient * u / norm
        work.sum.gradient += mapped.adjoint(t)
    elif coefficient > 0:
        work.sum.blocks.append(Block(mapped.rows(rows), Ball(coefficient)))


def _add_spectra(work: _Work) -> None:
    """Trace norms and semidefiniteness: on the null space of M, any W with eigenvalues in an interval.

    d|M|_tr = {U sign(s) U' + N W N' : |W|_2 <= 1}; the normal cone of M >> 0 is {N W N' : W << 0} (Watson 1992).
    """
    cones = {item.variable for item in work.bound.problem.constraints if isinstance(item, SemidefiniteConstraint)}
    for name in sorted(cones | set(work.trace)):
        where, (d, _) = work.bound.layout.slices[name], work.bound.layout.shapes[name]
        matrix = work.x[where].reshape(d, d)
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
        null = work.touched(values)
        coefficient = work.trace.get(name, 0.0)
        if name in cones:
            null |= values < 0
        kept, signs = vectors[:, ~null], np.sign(values[~null])
        work.sum.gradient[where] += coefficient * ((kept * signs) @ kept.T).ravel()
        if null.any():
            lower = -np.inf if name in cones else -coefficient
            basis = Congruence(vectors[:, null], where, work.bound.layout.size)
            work.sum.blocks.append(Block(basis, Spectrum(int(null.sum()), lower, coefficient)))


# -- constraints -------------------------------------------------------------------------------------------------------


def _add_affine(work: _Work, constraint: AffineConstraint) -> None:
    mapped, u = _mapped(work, constraint.predictor)
    if constraint.relation == "==":
        chosen = np.arange(mapped.n_rows)
        low = np.full(len(chosen), -np.inf)
    else:
        size = max(float(np.max(np.abs(mapped.offset), initial=0.0)), float(np.max(np.abs(u), initial=0.0)), FLOOR)
        chosen = np.flatnonzero(u >= -work.touch * size)
        low = np.zeros(len(chosen))
    if len(chosen):
        work.add_rows(mapped.rows(chosen), low, np.full(len(chosen), np.inf))


def _add_ball(work: _Work, constraint: BallConstraint) -> None:
    mapped, u = _mapped(work, constraint.predictor)
    radius = float(work.bound.evaluate(constraint.radius))
    edge = radius - work.touch * max(radius, FLOOR)
    if constraint.norm == "linf":
        chosen = np.flatnonzero(np.abs(u) >= edge)
        if len(chosen):
            rows = mapped.rows(chosen).multiply(np.sign(u[chosen])[:, None]).tocsr()
            work.add_rows(rows, np.zeros(len(chosen)), np.full(len(chosen), np.inf))
    elif constraint.norm == "l2" and np.linalg.norm(u) >= edge:
        row = mapped.adjoint(u / max(float(np.linalg.norm(u)), 1e-300))[None, :]
        work.sum.blocks.append(Block(row, Box(np.zeros(1), np.full(1, np.inf))))
    elif constraint.norm == "l1" and np.abs(u).sum() >= edge:
        sign = np.where(work.touched(u), 0.0, np.sign(u))
        work.sum.blocks.append(Block(mapped.rows(np.arange(mapped.n_rows)), L1Cone(sign)))


def _mapped(work: _Work, predictor: Predictor) -> tuple[AffineMap, Array]:
    mapped = affine_map(work.bound, predictor)
    return mapped, mapped(work.x)

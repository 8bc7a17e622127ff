"""The optimum on a fixed support: Newton's method with a line search on the few entries that may move.

In: an `Objective`, a start, the active entries. Out: the point, and the largest remaining derivative. Least squares
takes one step; a singular Hessian (more entries than samples) gets the smallest step that solves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spdsl.solvers.iht.objective import Objective

__all__ = ["closer_point", "restricted_optimum", "restricted_residual"]

Array = NDArray[np.float64]


def restricted_optimum(
    objective: Objective, x: Array, active: NDArray[np.int64], tolerance: float = 1e-12, most: int = 50
) -> Array:
    """Minimize over the active entries, the others at 0.

    Parameters
    ----------
    tolerance : float
        Stop when no active derivative exceeds this share of the largest one at the start (or of the gradient's terms).
    """
    point = np.zeros_like(x)
    point[active] = x[active]
    if not active.size:
        return point
    design = objective.block(slice(None), active)
    value = objective.value(point, active)
    for _ in range(most):
        slope, curvature, size = derivatives(objective, point, active, design)
        if float(np.abs(slope).max()) <= tolerance * size:
            break
        hessian = (design.T * curvature) @ design
        ridge = sum(item.curvature(point)[active] for item in objective.regularizers)
        hessian[np.diag_indices_from(hessian)] += ridge
        direction = newton_direction(hessian, slope)
        decrease = float(slope @ direction)
        if decrease >= 0.0:
            break
        moved = line_search(objective, point, active, direction, value, decrease)
        if moved is None:
            break
        point, value = moved
    return point


def closer_point(objective: Objective, x: Array, active: NDArray[np.int64], steps: int) -> Array:
    """One Newton step on the active entries, its system solved by at most `steps` of conjugate gradients.

    It costs some products with the active columns where `restricted_optimum` forms and factors a Hessian, and comes
    close enough for an iterate that moves on. The objective never rises.
    """
    point = np.zeros_like(x)
    point[active] = x[active]
    if not active.size:
        return point
    design = objective.block(slice(None), active)
    slope, curvature, _ = derivatives(objective, point, active, design)
    ridge = sum((item.curvature(point)[active] for item in objective.regularizers), np.zeros(active.size))
    direction = np.zeros(active.size)
    left = -slope  # of the system H direction = -slope
    along = left.copy()
    square = first = float(left @ left)
    for _ in range(steps):
        if square <= 1e-26 * first:
            break
        image = design.T @ (curvature * (design @ along)) + ridge * along
        curved = float(along @ image)
        if curved <= 0.0:
            break
        direction += (square / curved) * along
        left -= (square / curved) * image
        square, before = float(left @ left), square
        along = left + (square / before) * along
    decrease = float(slope @ direction)
    if not decrease < 0.0:
        return point
    moved = line_search(objective, point, active, direction, objective.value(point, active), decrease)
    return point if moved is None else moved[0]


def restricted_residual(objective: Objective, x: Array, active: NDArray[np.int64]) -> float:
    """The largest derivative on the active entries, relative to the size of the terms that cancel in it."""
    if not active.size:
        return 0.0
    slope, _, size = derivatives(objective, x, active, objective.block(slice(None), active))
    return float(np.abs(slope).max()) / size if size > 0 else 0.0


def derivatives(objective: Objective, x: Array, active: NDArray[np.int64], design: Array) -> tuple[Array, Array, float]:
    """The active part of the gradient, the samples' curvatures, and the size of the terms in the gradient."""
    everything = slice(None)
    z = design @ x[active] + objective.offset
    first = objective.slope_of(z, everything)
    slope = design.T @ first
    size = float(np.abs(design).max(initial=0.0)) * float(np.abs(first).sum())
    at_zero = np.abs(objective.slope_of(objective.offset, everything))
    size = max(size, float(np.abs(design).max(initial=0.0)) * float(at_zero.sum()))
    for item in objective.regularizers:
        part = item.gradient(x)[active]
        slope = slope + part
        size = max(size, float(np.abs(part).max(initial=0.0)))
    return slope, np.maximum(objective.curvature_of(z, everything), 0.0), size


def newton_direction(hessian: Array, slope: Array) -> Array:
    """-H^-1 g, or the smallest least-squares solution where H is singular."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        direction = np.asarray(cho_solve(cho_factor(hessian), -slope))
        if np.isfinite(direction).all() and np.linalg.norm(hessian @ direction + slope) <= 1e-6 * np.linalg.norm(slope):
            return direction
    except LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(hessian, -slope, rcond=1e-12)[0])


def line_search(
    objective: Objective, x: Array, active: NDArray[np.int64], direction: Array, value: float, decrease: float
) -> tuple[Array, float] | None:
    """The first of the steps 1, 1/2, 1/4, ... with an Armijo decrease; None when rounding hides every decrease."""
    length = 1.0
    for _ in range(40):
        trial = x.copy()
        trial[active] += length * direction
        reached = objective.value(trial, active)
        if reached <= value + 1e-4 * length * decrease + 1e-15 * abs(value):
            return trial, reached
        length *= 0.5
    return None

"""Degenerate points: more terms touch their kinks than can be held at once, and letting one go at a time may run in circles.

In: a labelled point. Out: the steepest descent direction of G there, with labels that fit it, or labels and
multipliers that prove
the point a minimum: both from the element of the subdifferential that is nearest to 0, a bounded least-squares problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE, PINNED
from spdsl.solvers.active_set.system import Labels, Point, System, dense
from spdsl.solvers.active_set.weighting import IntArray

__all__ = ["Untangled", "untangle"]

_TOUCH = 1e-11


@dataclass(frozen=True)
class Untangled:
    """Labels that fit, and the steepest descent direction (p,), None at a minimum."""

    labels: Labels
    direction: Array | None


@dataclass
class _Touching:
    block: int
    row: int
    kink: int
    low: float
    high: float


def untangle(system: System, point: Point, tolerance: float) -> Untangled:
    """Project 0 onto the subdifferential at a point at which many terms touch their kinks."""
    labels, touching = _all_held(system, point)
    bare = system.evaluate(
        replace(point, labels=labels, multipliers=tuple(np.zeros(block.m) for block in system.blocks))
    )
    fixed = np.flatnonzero(labels.fixed >= 0)
    low, high = system.coordinates.bounds(labels.fixed)
    rows = [dense(system.blocks[item.block].A[[item.row]])[0] for item in touching]
    # A fixed coordinate's entry of the gradient may be anything between minus its bounds: one unknown each.
    columns = [*rows, *np.eye(system.p)[fixed]]
    lower = np.array([*(item.low for item in touching), *low[fixed]])
    upper = np.array([*(item.high for item in touching), *high[fixed]])
    active = np.flatnonzero(labels.fixed != PINNED)
    gradient = bare.gradient
    if columns:
        matrix = np.array(columns).T[active]
        found = _nearest(matrix, -gradient[active], lower, upper)
    else:
        found = np.zeros(0)
    total = gradient + (np.array(columns).T @ found if columns else 0.0)
    total[labels.fixed == PINNED] = 0.0
    scale = system.magnitude(bare)
    if float(np.abs(total[active]).max(initial=0.0)) <= tolerance * scale:
        basic = _basic(matrix, found, lower, upper) if columns else found
        return Untangled(_settled(system, labels, touching, fixed, basic, lower, upper), None)
    direction = -total
    return Untangled(_leaving(system, labels, touching, direction), direction)


def _nearest(matrix: Array, target: Array, lower: Array, upper: Array) -> Array:
    """Multipliers within their bounds whose combination is nearest to the target.

    The active-set method is the more exact one, but may end far from the optimum where thousands of terms touch; then the
    interior one's answer is taken.
    """
    from scipy.optimize import lsq_linear

    found = lower.copy()
    open_ = upper > lower
    if not open_.any():
        return found
    A, b = matrix[:, open_], target - matrix[:, ~open_] @ lower[~open_]
    bounds = (lower[open_], upper[open_])
    first = lsq_linear(A, b, bounds, method="bvls", tol=1e-14)
    if first.optimality > 1e-8 * max(float(np.abs(A.T @ b).max(initial=0.0)), 1e-300):
        second = lsq_linear(A, b, bounds, method="trf", tol=1e-14)
        first = min(first, second, key=lambda result: float(result.cost))
    found[open_] = first.x
    return found


def _all_held(system: System, point: Point) -> tuple[Labels, list[_Touching]]:
    """Labels with every touching row held and every coordinate at a kink fixed, and the rows with their bounds."""
    labels = point.labels.copy()
    touching: list[_Touching] = []
    at_kink = system.coordinates.at_kink(point.x)
    free = labels.fixed == FREE
    labels.fixed[free] = at_kink[free]
    for number, block in enumerate(system.blocks):
        if not block.any_kink:
            continue
        u = block.predict(point.x)
        for border in np.flatnonzero(block.kinked):
            near = np.abs(u - block.borders[border]) <= _TOUCH * block.scale
            for row in np.flatnonzero(near | (labels.rows[number].kink == border)):
                labels.rows[number].kink[row] = border
                labels.rows[number].piece[row] = border
                touching.append(_Touching(number, int(row), int(border), 0.0, 0.0))
        values = block.evaluate(labels.rows[number], u, point.age)
        position = {int(row): k for k, row in enumerate(values.held)}
        for item in touching:
            if item.block == number:
                item.low, item.high = float(values.low[position[item.row]]), float(values.high[position[item.row]])
    return labels, touching


def _inside(values: Array, lower: Array, upper: Array) -> IntArray:
    width = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    return np.flatnonzero((values > lower + 1e-9 * width) & (values < upper - 1e-9 * width))


def _basic(matrix: Array, values: Array, lower: Array, upper: Array) -> Array:
    """The same combination of columns with independent ones inside their bounds and all others at a bound."""
    values = np.clip(values, lower, upper)
    while True:
        inside = _inside(values, lower, upper)
        if inside.size == 0:
            return values
        columns = matrix[:, inside]
        norms = np.linalg.norm(columns, axis=0)
        _, sizes, right = np.linalg.svd(columns / np.where(norms > 0.0, norms, 1.0), full_matrices=True)
        rank = int((sizes > 1e-11).sum())
        if rank == inside.size:
            return values
        shift = right[-1] / np.where(norms > 0.0, norms, 1.0)  # moves the values, not their combination
        with np.errstate(divide="ignore"):
            room = np.where(shift > 0.0, upper[inside] - values[inside], lower[inside] - values[inside]) / np.where(
                shift == 0.0, np.nan, shift
            )
        if not np.isfinite(np.nanmin(room)):  # no bound that way: shift to the other side
            shift = -shift
            with np.errstate(divide="ignore"):
                room = np.where(shift > 0.0, upper[inside] - values[inside], lower[inside] - values[inside]) / np.where(
                    shift == 0.0, np.nan, shift
                )
        first = int(np.nanargmin(room))
        values = values.copy()
        values[inside] += room[first] * shift
        values[inside[first]] = upper[inside[first]] if shift[first] > 0.0 else lower[inside[first]]
        values = np.clip(values, lower, upper)


def _settled(
    system: System,
    labels: Labels,
    touching: list[_Touching],
    fixed: IntArray,
    found: Array,
    lower: Array,
    upper: Array,
) -> Labels:
    """Hold the terms whose multipliers are inside their bounds, put the others on the side of their bound."""
    labels = labels.copy()
    inside = set(_inside(found, lower, upper).tolist())
    for k, s in enumerate(found):
        if k in inside:
            continue
        upwards = abs(s - upper[k]) < abs(s - lower[k])
        if k < len(touching):
            item = touching[k]
            labels.rows[item.block].kink[item.row] = -1
            labels.rows[item.block].piece[item.row] = item.kink + (1 if upwards else 0)
        else:
            j = fixed[k - len(touching)]
            labels.interval[j] = labels.fixed[j] + (1 if upwards else 0)
            labels.fixed[j] = FREE
    return labels


def _leaving(system: System, labels: Labels, touching: list[_Touching], direction: Array) -> Labels:
    """Put every row on the side to which the direction takes it; hold those that it leaves where they are.

    Rounding in the entries of coordinates that stay fixed is cleared from `direction`.
    """
    labels = labels.copy()
    size = np.abs(direction).max(initial=0.0)
    for item in touching:
        block, rows = system.blocks[item.block], labels.rows[item.block]
        a = dense(block.A[[item.row]])[0]
        move = float(a @ direction)
        beyond = block.is_wall and (block.is_equation or move <= 0.0)  # rounding: no descent leads out of a wall
        if abs(move) > 1e-10 * size * np.abs(a).sum() and not beyond:
            rows.kink[item.row] = -1
            rows.piece[item.row] = item.kink + (1 if move > 0.0 else 0)
    for j in np.flatnonzero(labels.fixed >= 0):
        if abs(direction[j]) > 1e-10 * size:
            labels.interval[j] = labels.fixed[j] + (1 if direction[j] > 0.0 else 0)
            labels.fixed[j] = FREE
        else:
            direction[j] = 0.0
    return labels

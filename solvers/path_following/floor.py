"""The certificate of a smooth stretch: positive definite with every curvature at its lowest over the step.

In: the two ends of a stretch with constant labels. Out: can no fold hide between them?
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.linear import BorderedFactor
from spdsl.solvers.active_set.rows import RowBlock
from spdsl.solvers.active_set.system import Evaluation, System
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.corrector import Tangent

__all__ = ["stays_convex"]


def stays_convex(system: System, start: Evaluation, end: Evaluation, out: Tangent, arrived: Tangent) -> bool:
    """Is the reduced Hessian positive definite with the least curvatures over the hulls of all predictors?

    The hull of u over the step is that of the Bezier points of its Hermite cubic, widened by a tenth; the least curvature
    of each row is taken over the hull's two ends at both ages. (On one piece, v phi'' + v_l phi'^2 is monotone or rises
    and falls in u, so its least value over an interval is at an end; the converged ends are looked at besides.)
    """
    h = end.point.age - start.point.age
    floors = []
    for number, block in enumerate(system.blocks):
        labels = start.point.labels.rows[number]
        if number and block.kernel_is_affine:
            floors.append(np.zeros(block.m))
            continue
        u0, u1 = start.rows[number].u, end.rows[number].u
        b1 = u0 + h * np.asarray(block.A @ out.dx) / 3.0
        b2 = u1 - h * np.asarray(block.A @ arrived.dx) / 3.0
        low = np.minimum(np.minimum(u0, u1), np.minimum(b1, b2))
        high = np.maximum(np.maximum(u0, u1), np.maximum(b1, b2))
        widen = 0.1 * (high - low)
        low, high = _clipped(block, labels.piece, low - widen, high + widen)
        floor = np.minimum(start.rows[number].curvature, end.rows[number].curvature)
        for u in (low, high):
            for age in (start.point.age, end.point.age):
                floor = np.minimum(floor, block.evaluate(labels, u, age).curvature)
        floors.append(floor)
    bend = np.minimum(start.bend, end.bend)
    H = system.assemble(start.free, floors, bend)
    bend_of_noise = 1e-10 * float(
        np.abs(np.diag(H)).max(initial=0.0)
    )  # a minimum that is flat to rounding bends by that
    factor = BorderedFactor(H, system.border(start), max(1e-3 * system.faint, bend_of_noise))
    return factor.verdict != "indefinite"


def _clipped(block: RowBlock, piece: IntArray, low: Array, high: Array) -> tuple[Array, Array]:
    """Hulls cut at the borders of the rows' pieces."""
    last = block.borders.shape[0]
    if last == 0:
        return low, high
    columns = np.arange(block.m)
    lower = np.where(piece > 0, block.borders[np.maximum(piece - 1, 0), columns], -np.inf)
    upper = np.where(piece < last, block.borders[np.minimum(piece, last - 1), columns], np.inf)
    return np.clip(low, lower, upper), np.clip(high, lower, upper)

"""Do gaps stay positive over a step? Cubic Hermite curves from values and rates at both ends, and where they first reach zero.

In: gaps and rates at the two ends of a step. Out: the earliest crossing, or that there is none, or that it is too close to call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import FAR

__all__ = ["Crossing", "earliest_crossing"]

_GRID = np.linspace(0.0, 1.0, 33)[1:]
_H00 = (1 + 2 * _GRID) * (1 - _GRID) ** 2
_H10 = _GRID * (1 - _GRID) ** 2
_H01 = _GRID**2 * (3 - 2 * _GRID)
_H11 = _GRID**2 * (_GRID - 1)


@dataclass(frozen=True)
class Crossing:
    """`index` reaches zero at the fraction `at` of the step; index -1: none, -2: too close to call."""

    index: int
    at: float = 1.0


def earliest_crossing(
    gap0: Array, rate0: Array, gap1: Array, rate1: Array, h: float, noise: float, arriving: int = -1
) -> Crossing:
    """The first gap to fall below -noise within the step.

    The hull of each curve's Bezier points, widened by a tenth, clears almost all gaps at once; the rest are looked at.
    `arriving` is a gap that is zero at the step's end on purpose.
    """
    b1 = gap0 + h * rate0 / 3.0
    b2 = gap1 - h * rate1 / 3.0
    low = np.minimum(np.minimum(gap0, gap1), np.minimum(b1, b2))
    high = np.maximum(np.maximum(gap0, gap1), np.maximum(b1, b2))
    suspects = np.flatnonzero((low - 0.1 * (high - low) < -noise) & (gap0 < 0.5 * FAR))
    if suspects.size == 0:
        return Crossing(-1)
    g0, r0 = gap0[suspects, None], h * rate0[suspects, None]
    g1, r1 = gap1[suspects, None], h * rate1[suspects, None]
    curves = g0 * _H00 + r0 * _H10 + g1 * _H01 + r1 * _H11
    below = curves < -noise
    if arriving >= 0:
        below[suspects == arriving, -1] = False
    crossed = below.any(axis=1)
    if crossed.any():
        first = np.where(crossed, below.argmax(axis=1), _GRID.size)
        step = int(first.min())
        ties = np.flatnonzero(first == step)
        start = _GRID[step - 1] if step else 0.0
        ages = [_root(g0[k, 0], r0[k, 0], g1[k, 0], r1[k, 0], start, float(_GRID[step])) for k in ties]
        best = int(np.argmin(ages))
        return Crossing(int(suspects[ties[best]]), float(ages[best]))
    span = (high - low)[suspects]
    inner = curves[:, :-1].min(axis=1)
    ends = np.minimum(g0[:, 0], g1[:, 0])
    grazes = (inner < ends - 1e-3 * span) & (inner < 0.05 * span) & (span > 1e3 * noise)
    if arriving >= 0:
        grazes &= suspects != arriving
    return Crossing(-2) if grazes.any() else Crossing(-1)


def _root(g0: float, r0: float, g1: float, r1: float, low: float, high: float) -> float:
    """Where one cubic turns negative in (low, high]."""
    for _ in range(40):
        t = 0.5 * (low + high)
        s = 1.0 - t
        value = g0 * (1 + 2 * t) * s * s + r0 * t * s * s + g1 * t * t * (3 - 2 * t) - r1 * t * t * s
        if value < 0.0:
            high = t
        else:
            low = t
    return 0.5 * (low + high)

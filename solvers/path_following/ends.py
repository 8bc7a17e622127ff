"""Where a branch ends, by sweeps: the path is followed by its length instead of its age, until the age stops growing.

In: a stop, and how far ahead leaps failed. Out: the end of the branch with the way beyond it, or None when there is none in
reach or a coordinate leaves its place before it.

Newton renews the samples' labels at every step, so the end may be a fold of a smooth stretch (the age has a smooth maximum
along the path) or lie at a sample's event (a corner). Between a point before the end and one behind it the age is below both
tangents, so their crossing bounds it from above: the search is over when that bound is reached to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import RowLabels
from spdsl.solvers.active_set.sweeps import Sweep
from spdsl.solvers.path_following.leaps import Leaper, Place, Stop, stays, violation

__all__ = ["End", "end_ahead"]

_SAME = 1e-13  # ages that differ by less, relatively, are one
_GOOD = 1e-11  # scaled residual


@dataclass(frozen=True)
class End:
    """The end of a branch: the place, the samples' labels before and behind it, and the way beyond (p,)."""

    place: Place
    before: RowLabels
    behind: RowLabels
    direction: Array


@dataclass(frozen=True)
class _Point:
    """A KKT point at a length, with d(x, age)/d(length)."""

    length: float
    place: Place
    sweep: Sweep
    gradient: Array
    dx: Array
    rate: float


def end_ahead(leaper: Leaper, start: Stop, h: float) -> End | None:
    """The end of the branch between a stop and about h ahead in age.

    Leaps from the stop failed at h; where the path goes on to there, there is no end to find.
    """
    search = _Search(leaper, start)
    low = search.at(0.0, start.place, None)
    if low is None or low.rate <= 0.0:
        return None
    found = _bracket(search, low, 0.5 * h / low.rate, start.age + 1.05 * h)
    if found is None:
        return None
    narrowed = _narrowed(search, *found)
    if narrowed is None or not search.holds(narrowed[0]):
        return None
    low, high = narrowed
    block = leaper.system.blocks[0]
    before, behind = (block.labels(point.sweep.rows[0], point.place.age) for point in (low, high))
    return End(low.place, before, behind, high.dx)


def _bracket(search: _Search, low: _Point, step: float, farthest: float) -> tuple[_Point, _Point] | None:
    """A point at which the age grows and one behind it at which it falls."""
    for _ in range(40):
        found = search.ahead(low, low.length + step)
        if found is None:
            step *= 0.3
            if step <= 1e-12 * max(abs(low.length), 1e-300):
                return None
        elif found.rate < 0.0:
            return low, found
        elif found.place.age > farthest:
            return None
        else:
            low, step = found, 1.5 * step
    return None


def _narrowed(search: _Search, low: _Point, high: _Point) -> tuple[_Point, _Point] | None:
    """Both points at the end, to rounding: by turns where the tangents cross, and where the rate would be 0.

    None where Newton can't get that near (a corner may throw it back and forth).
    """
    for count in range(80):
        width = high.length - low.length
        fall = low.rate - high.rate
        crossing = (high.place.age - low.place.age - high.rate * width) / fall
        top = low.place.age + low.rate * crossing
        short = (top - low.place.age) / low.place.age
        if abs(short) <= _SAME and (count > 40 or search.differ(low, high) <= 1):
            return low, high
        if width <= 1e-15 * abs(high.length):
            return (low, high) if abs(short) <= 10.0 * _SAME else None
        guess = (crossing, width * low.rate / fall, 0.5 * width)[count % 3]
        if not 0.0 < crossing < width:  # more events in between: the tangents bound nothing yet
            guess = 0.5 * width
        middle: _Point | None = None
        for share in (guess / width, 0.25, 0.75):
            length = low.length + min(max(share, 0.001), 0.999) * width
            middle = search.ahead(low, length, 0.0) or search.ahead(high, length, 0.0)
            if middle is not None:
                break
        if middle is None:
            return None
        low, high = (middle, high) if middle.rate > 0.0 else (low, middle)
    return None


class _Search:
    """Newton in x and the age at given lengths along the path's direction at the start."""

    def __init__(self, leaper: Leaper, start: Stop) -> None:
        self.leaper = leaper
        self.start = start
        self.scale = start.scale
        self.direction = start.dx / max(float(np.linalg.norm(start.dx)), 1e-300)
        self.origin = float(self.direction @ start.x)

    def ahead(self, near: _Point, length: float, least: float = 0.8) -> _Point | None:
        """From a point to another length; None when Newton fails or the path turns more than by a cosine of `least`."""
        step = length - near.length
        place = Place(
            near.place.age + step * near.rate,
            near.place.x + step * near.dx,
            near.place.interval,
            near.place.fixed,
        )
        found = self.at(length, place, near)
        if found is None:
            return None
        alike = float(found.dx @ near.dx) >= least * float(np.linalg.norm(found.dx) * np.linalg.norm(near.dx))
        return found if alike else None

    def at(self, length: float, place: Place, near: _Point | None) -> _Point | None:
        """Newton to the KKT point at a length."""
        leaper, free = self.leaper, place.free
        f = free.size
        last = np.inf
        for iteration in range(9):
            if place.age <= 0.0:
                return None
            sweep = leaper.sweeps.newton(place.x, place.age, free)
            gradient, bend = leaper.completed(place, sweep)
            error = float(np.abs(gradient[free]).max(initial=0.0)) / self.scale
            if not np.isfinite(error) or (iteration > 2 and error > max(0.5 * last, _GOOD)):
                return None
            matrix = np.zeros((f + 1, f + 1))
            matrix[:f, :f] = leaper.hessian(sweep.H, free, bend)
            matrix[:f, f] = sweep.by_age[free]
            matrix[f, :f] = self.direction[free]
            right = np.zeros((f + 1, 2))
            right[:f, 0] = -gradient[free]
            right[f, 0] = self.origin + length - float(self.direction @ place.x)
            right[f, 1] = 1.0
            try:
                solution = np.linalg.solve(matrix, right)
            except np.linalg.LinAlgError:
                return None
            if error <= 1e-13 or (error <= _GOOD and (near is None or error > 0.1 * last)):
                dx = np.zeros(leaper.system.p)
                dx[free] = solution[:f, 1]
                return _Point(length, place, sweep, gradient, dx, float(solution[f, 1]))
            last = error
            x = place.x.copy()
            x[free] += solution[:f, 0]
            place = Place(place.age + float(solution[f, 0]), x, place.interval, place.fixed)
        return None

    def differ(self, low: _Point, high: _Point) -> int:
        """How many samples have other labels."""
        block = self.leaper.system.blocks[0]
        first, second = (block.labels(point.sweep.rows[0], point.place.age) for point in (low, high))
        return int(np.count_nonzero((first.piece != second.piece) | (first.band != second.band)))

    def holds(self, point: _Point) -> bool:
        """Are all coordinates still where they were at the start?"""
        system, place = self.leaper.system, point.place
        return stays(system, place) and violation(system, place, point.gradient) <= _GOOD * self.scale

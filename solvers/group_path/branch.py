"""`GroupBranch`: a path under group norms at any age, from its nodes alone, and what happened along it, in words.

In: a bound problem and nodes (ages and flat vectors, both sides of every jump). Out: x at an age with its KKT residual, and
critical points. On a stretch between two nodes the labels are constant: what is zero at both ends is zero. Both ends are spots
with tangents, the polar coordinates in between are cubics, and Newton does the rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solution import CriticalPoint
from spdsl.solvers.group_path.model import GroupModel
from spdsl.solvers.group_path.state import Spot, State, from_x, gaps_of, newton, residual
from spdsl.solvers.group_path.tracker import GroupNode, GroupTracker, LostPathError
from spdsl.solvers.path_following.causes import coordinate_name

__all__ = ["GroupBranch", "cause_of", "near_border"]


class GroupBranch:
    """The branch that `group_path` tracked; see `spdsl.solution.Branch`."""

    def __init__(
        self,
        bound: BoundProblem,
        model: GroupModel,
        ages: Array,
        nodes: Array,
        events: tuple[CriticalPoint, ...] = (),
    ) -> None:
        self.bound, self.model, self.ages, self.nodes = bound, model, ages, nodes
        self._events = events
        self._ends: dict[int, tuple[Spot, Spot] | None] = {}
        self._points: tuple[CriticalPoint, ...] | None = None

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) at an age and the scaled KKT residual; at the age of a jump, x after it."""
        last = len(self.ages) - 1
        k = min(max(int(np.searchsorted(self.ages, age, side="right")) - 1, 0), last)
        if self.ages[k] == age or k == last:
            x = self.nodes[k]
            state = from_x(self.model, age, x)
            return x, residual(state, self.model.smooth(x, age))
        spot = self.between(k, age)
        return spot.state.x, residual(spot.state, spot.evaluation)

    def between(self, k: int, age: float) -> Spot:
        """The spot at an age within the stretch from node k.

        Raises
        ------
        LostPathError
            When the stretch can't be followed again.
        """
        ends = self.ends(k)
        if ends is not None:
            found = newton(_cubic(*ends, age), 6)
            if found is not None and np.all(gaps_of(found)[0] >= -1e-10):
                return found
        return self._followed(k, age)

    def ends(self, k: int) -> tuple[Spot, Spot] | None:
        """Both ends of a stretch under its labels; kept."""
        if k not in self._ends:
            first, second = self.nodes[k], self.nodes[k + 1]
            labels = from_x(self.model, float(self.ages[k]), 0.5 * (first + second))
            spots = [self._end(labels, float(self.ages[k + i]), x) for i, x in enumerate((first, second))]
            self._ends[k] = None if spots[0] is None or spots[1] is None else (spots[0], spots[1])
        return self._ends[k]

    def _end(self, labels: State, age: float, x: Array) -> Spot | None:
        """A node with the labels of a stretch; groups that are zero there point where their gradient does."""
        model = self.model
        gradient = model.smooth(x, age).gradient
        slope = np.where(labels.side > 0, model.high, model.low)
        r, d = np.zeros_like(labels.r), np.where(labels.free, x, 0.0)
        for index in np.flatnonzero(labels.active):
            where = model.groups[index]
            r[index] = np.linalg.norm(x[where])
            way = np.where(labels.free[where], -(gradient + slope)[where], 0.0) if r[index] <= 0.0 else d[where]
            d[where] = way / max(float(np.linalg.norm(way)), 1e-300)
        return newton(replace(labels, age=age, r=r, d=d), 6)

    def _followed(self, k: int, age: float) -> Spot:
        state = from_x(self.model, float(self.ages[k]), self.nodes[k])
        spot = newton(state, 8)
        ends = self.ends(k)
        spot = ends[0] if ends is not None else spot
        if spot is None:
            raise LostPathError(f"the path can't be taken up again at the age {self.ages[k]:.8g}")
        tracker, node = GroupTracker(self.model), GroupNode(spot, "start", 0.5 * (age - float(self.ages[k])))
        while node.age < age:
            node = tracker.advance(node, age)
        return node.spot

    # -- critical points ---------------------------------------------------------------------------------------------

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """Events of groups and coordinates, jumps, and those of samples that strides passed, ascending by age."""
        if self._points is None:
            found = list(self._events)
            for k in range(len(self.ages) - 1):
                if self.ages[k + 1] > self.ages[k]:
                    found.extend(self._passed(k))
            self._points = tuple(sorted(found, key=lambda point: point.age))
        return self._points

    def _passed(self, k: int) -> list[CriticalPoint]:
        """Samples that change the piece of v* within a stretch, with the ages at which they do."""
        ends = self.ends(k)
        if ends is None:
            return []
        weighting = self.model.system.weighting
        bands = [weighting.band(end.evaluation.losses, end.state.age) for end in ends]
        found = []
        for i in np.flatnonzero(bands[0] != bands[1]):
            step = 1 if bands[1][i] > bands[0][i] else -1
            for band in range(int(bands[0][i]), int(bands[1][i]), step):
                border = band if step > 0 else band - 1
                age = self._crossing(k, int(i), border)
                text = f"sample {i}: {weighting.names[band]} -> {weighting.names[band + step]}"
                found.append(CriticalPoint(age, "turning", text, (int(i),)))
        return found

    def _crossing(self, k: int, i: int, border: int) -> float:
        """The age within a stretch at which one sample's loss is on a border of v*."""
        weighting = self.model.system.weighting

        def above(age: float) -> float:
            spot = self.between(k, age)
            return float(spot.evaluation.losses[i] - weighting.borders(age)[0][border])

        from scipy.optimize import brentq

        low, high = float(self.ages[k]), float(self.ages[k + 1])
        if above(np.nextafter(low, high)) * above(np.nextafter(high, low)) > 0.0:
            return low
        return float(brentq(above, np.nextafter(low, high), np.nextafter(high, low), xtol=1e-14 * high, rtol=1e-14))


def _cubic(first: Spot, second: Spot, age: float) -> State:
    """The Hermite cubic between two spots in polar coordinates."""
    a, b = first.state, second.state
    h = b.age - a.age
    t = (age - a.age) / h
    s = 1.0 - t
    parts = []
    for y0, y1, m0, m1 in (
        (a.r, b.r, first.motion.r, second.motion.r),
        (a.d, b.d, first.motion.d, second.motion.d),
    ):
        parts.append(s * s * ((1.0 + 2.0 * t) * y0 + t * h * m0) + t * t * ((1.0 + 2.0 * s) * y1 - s * h * m1))
    d = parts[1]
    for index in np.flatnonzero(a.active):
        where = a.model.groups[index]
        d[where] /= max(float(np.linalg.norm(d[where])), 1e-300)
    return replace(a, age=age, r=parts[0], d=d)


def cause_of(bound: BoundProblem, before: State, after: State) -> tuple[str, tuple[int, ...]]:
    """Which groups and coordinates changed, in words, and their coordinates."""
    texts: list[str] = []
    coordinates: list[int] = []
    changed = before.active != after.active
    for index in np.flatnonzero(changed):
        where = before.model.groups[index]
        names = [coordinate_name(bound, int(j)) for j in where]
        span = names[0] if len(names) == 1 else ", ".join(names) if len(names) <= 3 else f"{names[0]}, ..., {names[-1]}"
        texts.append(f"group {index} ({span}) {'leaves' if after.active[index] else 'becomes'} zero")
        coordinates.extend(int(j) for j in where)
    inside = (before.model.of < 0) | ~changed[before.model.of] if changed.size else np.ones(before.model.p, bool)
    for j in np.flatnonzero((before.side != after.side) & inside & (before.model.low < before.model.high)):
        verb = "becomes" if after.side[j] == 0 else "leaves"
        texts.append(f"{coordinate_name(bound, int(j))} {verb} zero")
        coordinates.append(int(j))
    return "; ".join(texts), tuple(coordinates)


def near_border(bound: BoundProblem, spot: Spot) -> tuple[str, tuple[int, ...]]:
    """At the end of a branch: the samples on a border of v*."""
    weighting = spot.state.model.system.weighting
    borders, losses = weighting.borders(spot.state.age)[0], spot.evaluation.losses
    on = [
        int(i) for border in borders for i in np.flatnonzero(np.abs(losses - border) <= 1e-8 * max(abs(border), 1e-300))
    ]
    many = "s" if len(on) > 1 else ""
    names = ", ".join(map(str, on[:8]))
    text = f"sample{many} {names} on the border of v*: the branch ends" if on else "the path folds back"
    return text, tuple(on)

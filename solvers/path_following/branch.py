"""`AgeBranch`: the exact path at any age, from its nodes alone.

In: a bound problem, nodes (ages and flat vectors, both sides of every jump) and, when just followed, the critical points.
Out: x at an age with its KKT residual. Between two nodes the labels are constant: what lies at a kink at both ends is held,
the rest is read off between them, and Newton does the rest; when the result does not hold up, the stretch is followed anew.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solution import CriticalPoint
from spdsl.solvers.active_set.build import build
from spdsl.solvers.active_set.degenerate import untangle
from spdsl.solvers.active_set.minimize import Minimum, minimize, released, residual, violations, with_multipliers
from spdsl.solvers.active_set.system import Labels, System
from spdsl.solvers.path_following.corrector import Converged, correct
from spdsl.solvers.path_following.leaps import Leaper, Place, Stop, stays, stop_residual, violation
from spdsl.solvers.path_following.tracker import BrokenPathError, Tracker

__all__ = ["AgeBranch"]


_HALVINGS = 8  # of a stretch, at most
_ASTRAY = 0.3  # relative to the way between two ends: what is farther from the cubic through them is not trusted


@dataclass(frozen=True)
class _End:
    """A point of a stretch, the path's tangents out of it and into it, and what the coordinates do in the stretch."""

    age: float
    x: Array
    out: Array
    arrived: Array
    labels: Labels


def _end_at(stop: Stop, labels: Labels) -> _End:
    return _End(stop.age, stop.x, stop.dx, stop.dx, labels)


class AgeBranch:
    """The branch that `path_following` tracked; see `spdsl.solution.Branch`.

    Parameters
    ----------
    ages, nodes : arrays (k,), (k, p)
        Ascending; of two rows with equal ages the last is after a jump.
    critical : callable or None
        Gives the critical points (None: they are stored with the path).
    """

    def __init__(
        self,
        bound: BoundProblem,
        ages: Array,
        nodes: Array,
        critical: Callable[[], tuple[CriticalPoint, ...]] | None = None,
        system: System | None = None,
    ) -> None:
        self.system = build(bound) if system is None else system
        self.ages = ages
        self.nodes = nodes
        self._critical = critical
        self._points: tuple[CriticalPoint, ...] | None = None
        self._leaper = Leaper(self.system) if Leaper.serves(self.system) else None
        self._stops: dict[int, list[_End]] = {}

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """All critical points, ascending by age."""
        if self._points is None:
            self._points = () if self._critical is None else self._critical()
        return self._points

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) at an age and the scaled KKT residual; at the age of a jump, x after it."""
        last = len(self.ages) - 1
        k = int(np.searchsorted(self.ages, age, side="right")) - 1
        k = min(max(k, 0), last)
        if self.ages[k] == age or k == last:
            return self._at_node(k, age)
        found: Converged | Minimum | None
        if self._leaper is None:
            found = self._between(k, age)
        else:
            stop = self._settled(self._leaper, k, age)
            if stop is not None:
                return self.system.without_dust(stop.x), stop_residual(self.system, stop)
            found = None
        if found is None:
            found = self._followed(k, age)
        return self.system.without_dust(found.point.x), residual(self.system, found.evaluation)

    def _at_node(self, k: int, age: float) -> tuple[Array, float]:
        system = self.system
        x = self.nodes[k]
        settled = minimize(system, age, x)  # multipliers that fit; the node is a minimum, so x stays
        moved = np.abs(settled.point.x - x).max(initial=0.0)
        if settled.failure or moved > 1e-9 * (1e-300 + np.abs(x).max(initial=0.0)):
            point = system.point(age, x, system.labels(x, age))
            return x, residual(system, system.evaluate(point))
        return x, settled.residual

    def _labels(self, k: int, x: Array, age: float) -> Labels:
        """Labels between nodes k and k + 1."""
        labels = self.system.labels(x, age)
        first, second = self.nodes[k], self.nodes[k + 1]
        kinks = self.system.coordinates.at_kink(first)
        fixed = np.where(kinks == self.system.coordinates.at_kink(second), kinks, -1)
        fixed[self.system.pinned] = labels.fixed[self.system.pinned]
        return replace(labels, fixed=fixed)

    def _between(self, k: int, age: float) -> Converged | None:
        """Newton from the chord between two nodes, the labels read off at the point; None when it does not hold up."""
        system = self.system
        share = (age - self.ages[k]) / (self.ages[k + 1] - self.ages[k])
        x = (1.0 - share) * self.nodes[k] + share * self.nodes[k + 1]
        labels = self._labels(k, x, age)
        point = system.point(age, x, labels)
        scale = system.magnitude(system.evaluate(point))
        for _ in range(4):
            converged = correct(system, point, scale)
            if converged is None or converged.factor.verdict == "indefinite":
                return None
            fresh = system.relabel(converged.point.labels, converged.point.x, age)
            if _same(fresh, converged.point.labels):
                worst, _ = violations(system, converged.evaluation)
                return converged if worst <= 1e-10 * scale else self._proven(converged)
            point = replace(converged.point, labels=fresh)
        return None

    def _settled(self, leaper: Leaper, k: int, age: float) -> Stop | None:
        """Two Newton steps from the cubic through the two ends about the age; where that is too few, by way of nearer ones."""
        ends = self._ends_of(leaper, k)
        at = bisect.bisect_right(ends, age, key=lambda end: end.age) - 1
        first, second = ends[at], ends[at + 1]
        found = self._newton(leaper, first, second, age)
        for _ in range(_HALVINGS):
            if found is None or found.iterations <= 2:
                break
            middle = self._newton(leaper, first, second, 0.5 * (first.age + second.age))
            if middle is None:
                break
            end = _end_at(middle, first.labels)
            first, second = (end, second) if age >= end.age else (first, end)
            found = self._newton(leaper, first, second, age)
        return found

    def _refined(self, leaper: Leaper, first: _End, second: _End, halvings: int) -> list[_End]:
        """Ends from the first up to, but without, the second, so close that Newton takes two steps half-way between them.

        They depend on the stretch alone, so that an answer never depends on what was asked before it.
        """
        middle = self._newton(leaper, first, second, 0.5 * (first.age + second.age))
        if middle is None or middle.iterations <= 2 or not halvings:
            return [first]
        end = _end_at(middle, first.labels)
        left, right = ((first, end), (end, second))
        return [*self._refined(leaper, *left, halvings - 1), *self._refined(leaper, *right, halvings - 1)]

    def _newton(self, leaper: Leaper, first: _End, second: _End, age: float) -> Stop | None:
        """Newton from the cubic, the samples' labels renewed at every step; None where the result does not hold up."""
        system, labels = self.system, first.labels
        h, t = second.age - first.age, (age - first.age) / (second.age - first.age)
        s = 1.0 - t
        x = s * s * ((1.0 + 2.0 * t) * first.x + t * h * first.out) + t * t * (
            (1.0 + 2.0 * s) * second.x - s * h * second.arrived
        )
        found = leaper.settle(self._place(age, x, labels))
        if found is None or found.factor.verdict == "indefinite":
            return None
        reach = max(float(np.abs(step).max()) for step in (second.x - first.x, h * first.out, h * second.arrived))
        if float(np.abs(found.x - x).max()) > _ASTRAY * reach + 1e-9 * float(np.abs(x).max()):
            return None  # so far from the cubic it may be on another branch
        good = stays(system, found.place) and violation(system, found.place, found.gradient) <= 1e-10 * found.scale
        return found if good else None

    def _place(self, age: float, x: Array, labels: Labels) -> Place:
        return Place(age, self.system.snap(x, labels), labels.interval, labels.fixed)

    def _ends_of(self, leaper: Leaper, k: int) -> list[_End]:
        """The two ends of a stretch with the path's tangents there, and the points between them that it takes; kept."""
        kept = self._stops.get(k)
        if kept is None:
            ages, nodes = self.ages[k : k + 2], self.nodes[k : k + 2]
            labels = self._released(leaper, k, self._labels(k, nodes.mean(axis=0), float(ages.mean())))
            kept = []
            for end, share in ((0, 1e-7), (1, 1.0 - 1e-7)):  # just inside, where samples at a border have crossed it
                age, x = (1.0 - share) * ages[0] + share * ages[1], (1.0 - share) * nodes[0] + share * nodes[1]
                way = leaper.way(self._place(float(age), x, labels))
                kept.append(_End(float(ages[end]), nodes[end], way, way, labels))
            kept = self._stops[k] = [*self._refined(leaper, kept[0], kept[1], _HALVINGS), kept[1]]
        return kept

    def _released(self, leaper: Leaper, k: int, labels: Labels) -> Labels:
        """The labels without coordinates that are at a kink at both ends of a stretch, but leave it in between."""
        system = self.system
        x, age = 0.5 * (self.nodes[k] + self.nodes[k + 1]), 0.5 * float(self.ages[k] + self.ages[k + 1])
        for _ in range(system.p):
            found = leaper.settle(self._place(age, x, labels), max_iterations=12)
            if found is None or violation(system, found.place, found.gradient) <= 1e-10 * found.scale:
                break
            point = system.point(age, found.x, labels)
            evaluation = system.evaluate(replace(point, labels=system.relabel(labels, found.x, age)))
            labels = released(system, evaluation.point, violations(system, evaluation)[1]).labels
        return labels

    def _proven(self, converged: Converged) -> Converged | None:
        """The same point with other multipliers that prove it a minimum, where more terms touch than can be held."""
        system, point = self.system, converged.point
        found = untangle(system, point, 1e-10)
        if found.direction is not None:
            return None
        evaluation, factor = with_multipliers(system, system.point(point.age, point.x, found.labels))
        worst, _ = violations(system, evaluation)
        return Converged(evaluation, factor, 0) if worst <= 1e-10 * system.magnitude(evaluation) else None

    def _followed(self, k: int, age: float) -> Converged | Minimum:
        """The stretch from node k tracked anew."""
        system = self.system
        here = float(self.ages[k])
        x = self.nodes[k]
        tracker = Tracker(system)
        minimum = minimize(system, here, x)
        node = tracker.start(minimum, age - here)
        try:
            while node.age < age:
                node = tracker.advance(node, age)
        except BrokenPathError:
            return minimize(system, age, x)
        return node.converged


def _same(first: Labels, second: Labels) -> bool:
    return all(
        np.array_equal(a.piece, b.piece) and np.array_equal(a.band, b.band) for a, b in zip(first.rows, second.rows)
    ) and np.array_equal(first.interval, second.interval)

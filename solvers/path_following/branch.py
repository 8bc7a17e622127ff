"""`AgeBranch`: the exact path at any age, from its nodes alone.

In: a bound problem, nodes (ages and flat vectors, both sides of every jump) and, when just followed, the critical points.
Out: x at an age with its KKT residual. Between two nodes the labels are constant: what lies at a kink at both ends is held,
the rest is read off between them, and Newton does the rest; when the result does not hold up, the stretch is followed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solution import CriticalPoint
from spdsl.solvers.active_set.build import build
from spdsl.solvers.active_set.degenerate import untangle
from spdsl.solvers.active_set.minimize import Minimum, minimize, residual, violations, with_multipliers
from spdsl.solvers.active_set.system import Labels, System
from spdsl.solvers.path_following.corrector import Converged, correct
from spdsl.solvers.path_following.tracker import BrokenPathError, Tracker

__all__ = ["AgeBranch"]


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

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """All critical points, ascending by age."""
        return () if self._critical is None else self._critical()

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) at an age and the scaled KKT residual; at the age of a jump, x after it."""
        last = len(self.ages) - 1
        k = int(np.searchsorted(self.ages, age, side="right")) - 1
        k = min(max(k, 0), last)
        if self.ages[k] == age or k == last:
            return self._at_node(k, age)
        found: Converged | Minimum | None = self._between(k, age)
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

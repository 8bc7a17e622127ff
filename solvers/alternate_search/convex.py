"""The w-problem at fixed weights: exactly by the active set, with an interior-point solver's help where that is slow.

In: a bound problem, its system with fixed weights. Out: a labelled `Minimum`. The active set moves one kink at a time,
which suits a start nearby; from afar, over thousands of kinks, cvxpy's solvers come close sooner, and the active set
ends the work: it holds what lies at a kink to their accuracy and goes on from there ("crossover").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solvers.active_set.minimize import Minimum, minimize
from spdsl.solvers.active_set.system import System
from spdsl.solvers.active_set.walls import nearest_feasible

__all__ = ["ConvexFit", "convex_minimum", "feasible"]

_CHUNK = 25  # steps at a time, so that a run can be stopped
_PATIENCE = 150, 1500  # steps from afar, with kinks in the loss and without
_LIMIT = 4000  # steps in all
_NEAR = (1e-7, 1e-5, 1e-9)  # how near a kink counts as at it, relative to the data's scale; tried in turn


@dataclass(frozen=True)
class ConvexFit:
    """A w-problem on the way to its optimum.

    Attributes
    ----------
    system : System
        With the weights fixed.
    weights : array (n,) or None
        The same weights; None: all 1.
    x : array (p,)
        A feasible start.
    minimum : Minimum or None
        Where the run has come.
    iterations : int
    asked : bool
        Has cvxpy been asked?
    """

    bound: BoundProblem
    system: System
    weights: Array | None
    x: Array
    minimum: Minimum | None = None
    iterations: int = 0
    asked: bool = False

    @property
    def ended(self) -> bool:
        """Is it the optimum, or as near as it gets?"""
        if self.minimum is None:
            return False
        return self.minimum.failure not in ("limit", "stalled") or (
            self.asked and (self.minimum.failure == "stalled" or self.iterations >= _LIMIT)
        )

    def advanced(self) -> ConvexFit:
        """After some more steps; the one that asks cvxpy takes long."""
        if self.minimum is None:
            return self._after(minimize(self.system, 1.0, self.x, max_iterations=_CHUNK))
        patience = _PATIENCE[0] if any(block.any_kink for block in self.system.blocks) else _PATIENCE[1]
        if not self.asked and (self.minimum.failure == "stalled" or self.iterations >= patience):
            return replace(self._crossed(), asked=True)
        point = self.minimum.point
        return self._after(minimize(self.system, 1.0, point.x, point.labels, max_iterations=_CHUNK))

    def _after(self, minimum: Minimum) -> ConvexFit:
        return replace(self, minimum=minimum, iterations=self.iterations + max(minimum.iterations, 1))

    def _crossed(self) -> ConvexFit:
        """Going on from cvxpy's optimum, when that is better."""
        assert self.minimum is not None
        near = _interior_point(self.bound, self.weights)
        if near is None or near.shape != self.x.shape:
            return self
        best = self
        for tolerance in _NEAR:
            start = _snapped(self.system, feasible(self.system, near), tolerance)
            labels = self.system.labels(start, 1.0, tolerance)
            found = best._after(minimize(self.system, 1.0, start, labels, max_iterations=4 * _CHUNK))
            assert found.minimum is not None
            assert best.minimum is not None
            if not found.minimum.failure:
                return found
            if self._value(found.minimum) < self._value(best.minimum):
                best = found
            else:
                best = replace(best, iterations=found.iterations)
        return best

    def _value(self, minimum: Minimum) -> float:
        x = minimum.point.x
        weights = np.ones(self.bound.n_samples) if self.weights is None else self.weights
        return float(weights @ self.bound.losses(x)) + self.bound.regularization(x)


def convex_minimum(bound: BoundProblem, system: System, weights: Array | None, x: Array) -> Minimum:
    """The optimum of the w-problem, from a feasible start; see `ConvexFit`."""
    fit = ConvexFit(bound, system, weights, x)
    while not fit.ended:
        fit = fit.advanced()
    assert fit.minimum is not None
    return fit.minimum


def _interior_point(bound: BoundProblem, weights: Array | None) -> Array | None:
    """cvxpy's optimum, in the flat vector's order; None where it has none."""
    from spdsl.reference import TranslationError, optimum

    try:
        _, found = optimum(bound, weights)
    except TranslationError:
        return None
    return found if found is not None and np.isfinite(found).all() else None


def _snapped(system: System, x: Array, tolerance: float) -> Array:
    """x with entries near a kink of their own at it."""
    coordinates = system.coordinates
    x = x.copy()
    for kink in range(coordinates.position.shape[1]):
        at = coordinates.position[:, kink]
        with np.errstate(invalid="ignore"):
            near = np.abs(x - at) <= tolerance * max(float(np.abs(x).max(initial=0.0)), 1e-300)
        x[near] = at[near]
    return x


def feasible(system: System, x: Array) -> Array:
    """x moved into the bounds of single entries; where there are other constraints, the feasible point nearest to it.

    Raises
    ------
    SolverError
        When the constraints contradict each other.
    """
    walls = [block for block in system.blocks if block.is_wall]
    if walls:
        return nearest_feasible(x, walls, *system.coordinates.limits)
    coordinates = system.coordinates
    x = x.copy()
    for kink in range(coordinates.position.shape[1]):
        at = coordinates.position[:, kink]
        exists = kink < coordinates.count
        x = np.where(exists & np.isneginf(coordinates.low[:, kink]) & (x < at), at, x)
        x = np.where(exists & np.isposinf(coordinates.high[:, kink]) & (x > at), at, x)
    return x

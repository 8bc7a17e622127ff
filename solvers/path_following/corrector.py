"""Newton steps with labels held: to a given age, to an event, and the tangent of the path.

In: a system and a labelled point. Out: converged evaluations with their factorized bordered systems, or None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.linear import BorderedFactor
from spdsl.solvers.active_set.system import Evaluation, Point, System

__all__ = ["Converged", "Tangent", "correct", "corrected_event", "tangent"]

_EXACT = 1e-13  # scaled residual that Newton aims at
_GOOD = 1e-11  # and the one that it settles for when rounding stops it


@dataclass(frozen=True)
class Tangent:
    """d(x, multipliers)/d(age)."""

    dx: Array
    ds: tuple[Array, ...]


@dataclass(frozen=True)
class Converged:
    """A KKT point under its labels: the evaluation, the factorized system beside it, and the Newton steps that it took."""

    evaluation: Evaluation
    factor: BorderedFactor
    iterations: int

    @property
    def point(self) -> Point:
        """The labelled point."""
        return self.evaluation.point


def tangent(system: System, evaluation: Evaluation, factor: BorderedFactor) -> Tangent:
    """The path's direction under the labels (the bordered system with the gradient's derivative by the age)."""
    push = -system.age_slope(evaluation)[evaluation.free]
    return Tangent(*system.spread(evaluation, *factor.solve(push, np.zeros(factor.k))))


def correct(system: System, point: Point, scale: float, max_iterations: int = 8) -> Converged | None:
    """Newton at the point's age with its labels; None when it does not converge fast."""
    last = np.inf
    factor: BorderedFactor | None = None
    for iteration in range(max_iterations + 1):
        evaluation = system.evaluate(point)
        error = float(np.abs(evaluation.gradient[evaluation.free]).max(initial=0.0)) / scale
        off = system.off_kink(evaluation)
        away = float(np.abs(off).max(initial=0.0))
        if not np.isfinite(error):
            return None
        if factor is not None and away <= 1e-12 and (error <= _EXACT or (error <= _GOOD and error > 0.1 * last)):
            return Converged(evaluation, factor, iteration)
        if iteration == max_iterations or (iteration > 1 and error > max(0.5 * last, _GOOD)):
            return None
        last = error
        factor = system.factor(evaluation)
        if factor.dependent:
            return None
        step, change = factor.solve(-evaluation.gradient[evaluation.free], off)
        point = _stepped(system, evaluation, *system.spread(evaluation, step, change), 0.0)
    return None


def corrected_event(
    system: System, point: Point, index: int, scale: float, max_iterations: int = 10
) -> tuple[Converged, Tangent] | None:
    """The KKT point on the labels' branch at which gap `index` is 0, with the tangent there; extended Newton in (x, s, age)."""
    last = np.inf
    for iteration in range(max_iterations + 1):
        if not point.age > 0.0:  # a wild step: there is nothing to evaluate
            return None
        evaluation = system.evaluate(point)
        error = float(np.abs(evaluation.gradient[evaluation.free]).max(initial=0.0)) / scale
        if not np.isfinite(error):
            return None
        factor = system.factor(evaluation)
        if factor.dependent:
            return None
        direction = tangent(system, evaluation, factor)
        step, change = factor.solve(-evaluation.gradient[evaluation.free], system.off_kink(evaluation))
        dx, ds = system.spread(evaluation, step, change)
        gap, (change_of_gap, along) = system.gap_of(
            index, evaluation, [(dx, ds, 0.0), (direction.dx, direction.ds, 1.0)]
        )
        if along == 0.0:
            return None
        dage = -(gap + change_of_gap) / along
        error = max(error, abs(gap))
        if iteration and (
            (error <= _EXACT and abs(dage) <= 1e-13 * point.age) or (error <= _GOOD and error > 0.1 * last)
        ):
            return Converged(evaluation, factor, iteration), direction
        if iteration > 2 and error > max(0.7 * last, _GOOD):
            return None
        last = error
        dx = dx + dage * direction.dx
        ds = tuple(a + dage * b for a, b in zip(ds, direction.ds))
        point = _stepped(system, evaluation, dx, ds, float(dage))
    return None


def _stepped(system: System, evaluation: Evaluation, dx: Array, ds: tuple[Array, ...], dage: float) -> Point:
    point = evaluation.point
    return replace(
        point,
        age=point.age + dage,
        x=point.x + dx,
        multipliers=tuple(s + d for s, d in zip(point.multipliers, ds)),
    )

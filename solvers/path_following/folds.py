"""Folds inside a smooth stretch: the branch bends back in age, and its reduced Hessian is singular at the turn.

In: a node near a fold and the path's direction there. Out: the fold itself, to rounding: the path is followed by the length
along that direction instead of by the age, until the age stops growing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.system import Evaluation, Point, System
from spdsl.solvers.path_following.corrector import Converged, Tangent

__all__ = ["Fold", "find_fold"]


@dataclass(frozen=True)
class Fold:
    """The end of a branch, and the direction (p,) in which the path runs through it."""

    converged: Converged
    direction: Array


@dataclass(frozen=True)
class _Arc:
    evaluation: Evaluation
    dx: Array  # d(x, multipliers, age)/d(length)
    ds: tuple[Array, ...]
    dage: float


def find_fold(
    system: System, converged: Converged, out: Tangent, distance: float, noise: float, farthest: float
) -> Fold | None:
    """The fold ahead, about `distance` away in age; None when there is none in reach, or a label changes before it."""
    scale = system.magnitude(converged.evaluation)
    A = system.blocks[0].A
    speed = float(np.linalg.norm(np.asarray(A @ out.dx)))
    if speed == 0.0:
        return None
    direction = out.dx / speed
    here = _arc(system, converged.point, direction, 0.0, float(direction @ converged.point.x), scale)
    if here is None or here.dage <= 0.0:
        return None
    low, low_rate, arc = 0.0, here.dage, here
    length = 2.0 * distance * speed
    high, high_rate = np.inf, -np.inf
    start = float(direction @ converged.point.x)
    for _ in range(60):
        nearest = arc
        found = _arc(system, _moved(nearest, length, direction, start), direction, length, start, scale)
        if found is None:
            length = 0.5 * (low + length)
            if length - low <= 1e-13 * max(length, 1e-300):
                return None
            continue
        arc = found
        if found.evaluation.point.age > farthest:
            return None
        if abs(found.dage) <= 1e-9 * here.dage:
            break
        if found.dage > 0.0:
            low, low_rate = length, found.dage
        else:
            high, high_rate = length, found.dage
        if np.isfinite(high):
            guess = low + (high - low) * low_rate / (low_rate - high_rate)
            length = min(max(guess, low + 0.05 * (high - low)), high - 0.05 * (high - low))
            if high - low <= 1e-12 * high:
                break
        else:
            length = 1.5 * length
            if length > 100.0 * distance * speed + 1e-300:
                return None
    still = tuple(np.zeros(block.m) for block in system.blocks)
    gaps, _ = system.gaps(arc.evaluation, np.zeros(system.p), still, 0.0)
    if np.any(gaps < -noise):
        return None
    factor = system.factor(arc.evaluation)
    return Fold(Converged(arc.evaluation, factor, 0), arc.dx)


def _moved(arc: _Arc, length: float, direction: Array, start: float) -> Point:
    """The tangent predictor at a length."""
    point = arc.evaluation.point
    step = length - (float(direction @ point.x) - start)
    return replace(
        point,
        age=point.age + step * arc.dage,
        x=point.x + step * arc.dx,
        multipliers=tuple(s + step * ds for s, ds in zip(point.multipliers, arc.ds)),
    )


def _arc(system: System, point: Point, direction: Array, length: float, start: float, scale: float) -> _Arc | None:
    """Newton for the KKT conditions with direction'x = start + length; unknowns x, multipliers and the age."""
    last = np.inf
    for iteration in range(12):
        if point.age <= 0.0:
            return None
        evaluation = system.evaluate(point)
        free = evaluation.free
        H = system.hessian(evaluation)
        B = system.border(evaluation)
        f, k = H.shape[0], B.shape[0]
        push = system.age_slope(evaluation)[free]
        matrix = np.zeros((f + k + 1, f + k + 1))
        matrix[:f, :f] = H
        matrix[:f, f : f + k] = B.T
        matrix[f : f + k, :f] = B
        matrix[:f, -1] = push
        matrix[-1, :f] = direction[free]
        right = np.zeros((f + k + 1, 2))
        right[:f, 0] = -evaluation.gradient[free]
        right[f : f + k, 0] = system.off_kink(evaluation)
        right[-1, 0] = start + length - float(direction @ point.x)
        right[-1, 1] = 1.0
        try:
            solution = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            return None
        error = float(np.abs(right[:f, 0]).max(initial=0.0)) / scale
        if not np.isfinite(error):
            return None
        dx, ds = system.spread(evaluation, solution[:f, 1], solution[f : f + k, 1])
        if iteration and error <= 1e-11 and (error <= 1e-13 or error > 0.1 * last):
            return _Arc(evaluation, dx, ds, float(solution[-1, 1]))
        if iteration > 2 and error > max(0.5 * last, 1e-11):
            return None
        last = error
        step, change = system.spread(evaluation, solution[:f, 0], solution[f : f + k, 0])
        point = replace(
            point,
            age=point.age + float(solution[-1, 0]),
            x=point.x + step,
            multipliers=tuple(s + d for s, d in zip(point.multipliers, change)),
        )
    return None

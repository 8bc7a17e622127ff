"""Crossing borders at an event: which labels hold beyond it, and whether a minimum lives there.

In: a converged point at which some gaps are zero. Out: the continued labels with their tangent (a turning point), or the flipped
labels under which the reduced Hessian is not positive definite (the branch ends: a jump).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.linear import BorderedFactor
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System
from spdsl.solvers.path_following.corrector import Converged, Tangent, tangent

__all__ = ["STEADY", "Crossed", "cross", "due", "flipped"]

STEADY = 1e-9  # rates (gap units per doubling of the age) below this are zero


@dataclass(frozen=True)
class Crossed:
    """The labels beyond a turning point."""

    evaluation: Evaluation
    factor: BorderedFactor
    tangent: Tangent


def due(gaps: Array, rates: Array, age: float, noise: float) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Gaps that are zero and closing."""
    return np.flatnonzero((gaps <= noise) & (rates < -STEADY / age))


def cross(system: System, converged: Converged, ready: list[int], noise: float) -> Crossed | Labels:
    """Flip the ready rows, all together and, when that fails, one at a time, the fastest first.

    Returns
    -------
    Crossed or Labels
        Labels: those under which the branch ends.
    """
    together = _settle(system, converged, ready, noise, all_at_once=len(ready))
    if isinstance(together, Crossed) or len(ready) == 1:
        return together
    one_by_one = _settle(system, converged, ready, noise, all_at_once=1)
    return one_by_one if isinstance(one_by_one, Crossed) else together


def _settle(system: System, converged: Converged, ready: list[int], noise: float, all_at_once: int) -> Crossed | Labels:
    """Flip, look which zero gaps would close under the new labels, flip those, until none does."""
    evaluation = converged.evaluation
    flips = ready[:all_at_once]
    seen: set[bytes] = set()
    point = converged.point
    for _ in range(60 + 2 * len(ready)):
        point = flipped(system, evaluation, flips)
        key = _key(point.labels)
        evaluation = system.evaluate(point)
        factor = system.factor(evaluation)
        if factor.dependent or factor.verdict == "indefinite" or key in seen:
            return point.labels
        if not system.weighting.continuous and _band_changed(converged.point.labels, point.labels):
            return point.labels
        seen.add(key)
        direction = tangent(system, evaluation, factor)
        if factor.verdict == "flat" and not _consistent(system, evaluation, factor, direction):
            return point.labels
        gaps, rates = system.gaps(evaluation, direction.dx, direction.ds, 1.0)
        closing = due(gaps, rates, point.age, 100.0 * noise)
        if closing.size == 0:
            return Crossed(evaluation, factor, direction)
        order = closing[np.argsort(rates[closing], kind="stable")]
        flips = [int(k) for k in (order if all_at_once > 1 else order[:1])]
    return point.labels


def flipped(system: System, evaluation: Evaluation, indices: list[int]) -> Point:
    """The point with some rows carried over their borders; multipliers keep the gradient as it is."""
    point = evaluation.point
    labels = point.labels.copy()
    multipliers = [s.copy() for s in point.multipliers]
    for index in indices:
        number, side, row = system.locate_gap(index)
        if number < 0:
            system.coordinates.flip(labels.interval, labels.fixed, side, row)
            continue
        block = system.blocks[number]
        held = labels.rows[number].kink[row] >= 0
        weight = float(evaluation.rows[number].weight[row])
        block.flip(labels.rows[number], side, row, weight)
        if held and labels.rows[number].kink[row] < 0:
            multipliers[number][row] = 0.0
        elif not held and labels.rows[number].kink[row] >= 0:
            multipliers[number][row] = block.entry_multiplier(labels.rows[number], side, row, weight)
    return replace(point, x=system.snap(point.x, labels), labels=labels, multipliers=tuple(multipliers))


def _consistent(system: System, evaluation: Evaluation, factor: BorderedFactor, direction: Tangent) -> bool:
    """Does the shortest solution of a flat system solve it at all?"""
    push = -system.age_slope(evaluation)[evaluation.free]
    dx = direction.dx[evaluation.free]
    rest = factor.project(push - factor.H @ dx)
    return bool(np.abs(rest).max(initial=0.0) <= 1e-9 * max(np.abs(push).max(initial=0.0), 1e-300))


def _band_changed(before: Labels, after: Labels) -> bool:
    return bool(np.any(before.rows[0].band != after.rows[0].band))


def _key(labels: Labels) -> bytes:
    parts = [labels.interval.tobytes(), labels.fixed.tobytes()]
    for rows in labels.rows:
        parts += [rows.piece.tobytes(), rows.kink.tobytes(), rows.band.tobytes()]
    return b"".join(parts)

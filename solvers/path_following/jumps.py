"""Landings: where the path goes on after its branch ends.

In: the end of a branch. Out: the next local minimum of G downhill from there, at the same age: a deterministic descent that never
passes a first minimum on its way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.flow import flow_down
from spdsl.solvers.active_set.minimize import Minimum
from spdsl.solvers.active_set.system import Labels, System
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.corrector import Converged, correct
from spdsl.solvers.path_following.folds import Fold

__all__ = ["land_after_event", "land_after_fold", "sized", "way_out"]


def land_after_event(system: System, converged: Converged, labels: Labels) -> Minimum:
    """The minimum below an event at which the reduced Hessian, by the flipped `labels`, is not positive definite.

    The first step goes along its most negative bend, towards the side of the border that the flipped rows now lie on.
    """
    point = converged.point
    if not system.weighting.continuous:
        return _after_weight_jump(system, converged)
    direction = way_out(system, converged, labels)
    if direction is None:
        return _just_beyond(system, converged)
    minimum = flow_down(system, point.age, point.x, labels, direction)
    return minimum if minimum.failure else _polished(system, minimum, point.age)


def land_after_fold(system: System, fold: Fold) -> Minimum:
    """The minimum beyond a smooth fold: on along the direction in which the path runs through it."""
    point = fold.converged.point
    minimum = flow_down(system, point.age, point.x, point.labels, sized(system, fold.direction))
    return minimum if minimum.failure else _polished(system, minimum, point.age)


def _after_weight_jump(system: System, converged: Converged) -> Minimum:
    """Weights jump at the border of a band (hard): alternate convex search, just beyond the event, until nothing changes."""
    from spdsl.solvers.alternate_search.search import search

    point = converged.point
    beyond = point.age * (1.0 + 1e-12)
    return search(system, beyond, point.x, point.labels).minimum


def way_out(system: System, converged: Converged, labels: Labels) -> Array | None:
    """A small displacement (p,) downhill from an event under the labels beyond it; None where no direction bends down."""
    point = converged.point
    beyond = system.evaluate(system.point(point.age, point.x, labels))
    factor = system.factor(beyond)
    if factor.dependent or factor.reduced.shape[0] == 0:
        return None
    majorant = system.hessian(beyond, absolute=True)
    if factor.Z is not None:
        majorant = factor.Z.T @ majorant @ factor.Z
    majorant = 0.5 * (majorant + majorant.T)
    majorant += np.eye(majorant.shape[0]) * max(1e-10 * float(np.trace(majorant)), system.faint)
    values, vectors = eigh(factor.reduced, majorant)
    if values[0] >= -1e-12:
        return None
    bend = vectors[:, 0]
    direction, _ = system.spread(beyond, factor.lift(bend), np.zeros(factor.k))
    still = tuple(np.zeros(block.m) for block in system.blocks)
    _, rates = system.gaps(beyond, direction, still, 0.0)
    changed = _changed(system, point.labels, labels)
    inward = float(rates[changed].sum())
    if inward == 0.0:
        return None
    return sized(system, direction if inward > 0.0 else -direction)


def _changed(system: System, before: Labels, after: Labels) -> IntArray:
    """Flat indices of the gaps, under the labels `after`, that measure the way back over the crossed borders."""
    indices: list[int] = []
    start = 0
    for block, old, new in zip(system.blocks, before.rows, after.rows):
        for row in np.flatnonzero((old.piece != new.piece) | (old.kink != new.kink) | (old.band != new.band)):
            if new.band[row] != old.band[row]:
                side = 2 if new.band[row] > old.band[row] else 3
            elif old.kink[row] >= 0:
                side = 0 if new.piece[row] > old.kink[row] else 1
            else:
                side = 0 if new.piece[row] > old.piece[row] else 1
            indices.append(start + side * block.m + int(row))
        start += 4 * block.m
    changed = np.flatnonzero((before.fixed != after.fixed) | (before.interval != after.interval))
    indices.extend(
        start + (0 if after.interval[j] > before.fixed[j] else 1) * system.p + int(j)
        for j in changed
        if before.fixed[j] >= 0
    )
    return np.asarray(indices, np.int64)


def sized(system: System, direction: Array) -> Array:
    """A displacement that leaves rounding behind and is small otherwise: 1e-6 of the loss's scale."""
    size = float(np.abs(np.asarray(system.blocks[0].A @ direction)).max(initial=0.0)) / system.blocks[0].scale
    return np.asarray(direction * (1e-6 / max(size, 1e-300)))


def _just_beyond(system: System, converged: Converged) -> Minimum:
    """Descend a little beyond the age, where the branch is gone, then return to the age by Newton."""
    point = converged.point
    age = point.age * (1.0 + 1e-9)
    minimum = flow_down(system, age, point.x, point.labels)
    return minimum if minimum.failure else _polished(system, minimum, point.age)


def _polished(system: System, minimum: Minimum, age: float) -> Minimum:
    """The same minimum to rounding, at the age of the jump."""
    scale = system.magnitude(minimum.evaluation)
    converged = correct(system, replace(minimum.point, age=age), scale, 8)
    if converged is None:
        return minimum
    return replace(minimum, evaluation=converged.evaluation, factor=converged.factor)

"""COMID for a vector (and free scalars) over samples or batches of them.

In: a `VectorTask`, a mirror map, an order of samples. Out: the state after them. States are never changed in place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.bind import Slopes, VectorTask
from spdsl.solvers.comid.engine import Settings
from spdsl.solvers.comid.vector import VectorMirror

__all__ = ["VectorState", "advance_vector", "begin_vector", "flat_vector"]


@dataclass(frozen=True)
class VectorState:
    """The mirror map's state, the scalars, steps made, the running sums of the average, the online loss met."""

    mirror_state: Array
    scalars: Array
    steps: int = 0
    gradients: int = 0
    sum_w: Array | None = None
    sum_scalars: Array | None = None
    weight: float = 0.0
    online: float = 0.0


def begin_vector(task: VectorTask, mirror: VectorMirror) -> VectorState:
    """w at the mirror map's start, scalars at 0 or at the bound next to it."""
    d = task.where.stop - task.where.start
    scalars = np.array([min(max(0.0, low), high) for _, low, high in task.scalars])
    return VectorState(mirror.start(d), scalars)


def advance_vector(
    state: VectorState, task: VectorTask, mirror: VectorMirror, slopes: Slopes, settings: Settings, order: np.ndarray
) -> VectorState:
    """One step for each batch of `order`; gradients estimate the whole loss's without bias."""
    T = len(task.c)
    size = settings.batch
    starts = range(0, len(order), size)
    etas = settings.etas(state.steps + 1, len(starts))
    weights = settings.iterate_weights(state.steps, len(starts))
    inner, scalars, gradients, online = state.mirror_state, state.scalars, state.gradients, state.online
    sum_w, sum_scalars, weight = state.sum_w, state.sum_scalars, state.weight
    positions = np.array([position for position, _, _ in task.scalars], dtype=int)
    low = np.array([item[1] for item in task.scalars])
    high = np.array([item[2] for item in task.scalars])
    x = np.zeros(task.A.shape[1])
    for number, begin_at in enumerate(starts):
        batch = order[begin_at : begin_at + size]
        w = mirror.value(inner)
        x[task.where], x[positions] = w, scalars
        if settings.average != "none":
            sum_w = weights[number] * w if sum_w is None else sum_w + weights[number] * w
            sum_scalars = weights[number] * scalars if sum_scalars is None else sum_scalars + weights[number] * scalars
            weight += float(weights[number])
        rows = task.A[batch]
        z = np.asarray(rows @ x).ravel() + task.c[batch]
        online += float(slopes.values(batch, z).sum()) * T
        slope = slopes(batch, z)
        gradients += int(slope.any())
        gradient = np.asarray(rows.T @ slope).ravel() * (T / len(batch))
        inner = mirror.step(inner, gradient[task.where], float(etas[number]))
        scalars = np.minimum(np.maximum(scalars - etas[number] * gradient[positions], low), high)
    return replace(
        state,
        mirror_state=inner,
        scalars=scalars,
        steps=state.steps + len(starts),
        gradients=gradients,
        sum_w=sum_w,
        sum_scalars=sum_scalars,
        weight=weight,
        online=online,
    )


def flat_vector(state: VectorState, task: VectorTask, mirror: VectorMirror) -> Array:
    """The answer as the flat x: the mean where one was kept, else the last iterate."""
    x = np.zeros(task.A.shape[1])
    positions = [position for position, _, _ in task.scalars]
    if state.sum_w is not None and state.sum_scalars is not None:
        x[task.where], x[positions] = state.sum_w / state.weight, state.sum_scalars / state.weight
    else:
        x[task.where], x[positions] = mirror.value(state.mirror_state), state.scalars
    return x

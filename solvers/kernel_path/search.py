"""Alternate convex search for kernel models: the partial optimum from which a path starts, and that a lost branch falls back on.

In: a dual model, an age, a start. Out: a `KernelState` at a partial optimum, and the number of rounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import RowLabels
from spdsl.solvers.kernel_path.fit import Fitted, fit
from spdsl.solvers.kernel_path.model import DualModel
from spdsl.solvers.kernel_path.smo import near
from spdsl.solvers.kernel_path.state import KernelState

__all__ = ["fitted", "search", "state_of"]

_FAR = 0.01  # a mean change of weights above this is worth a start by libsvm


def search(
    model: DualModel, age: float, start: Fitted, tolerance: float = 1e-11, max_rounds: int = 2000
) -> tuple[KernelState, int, str]:
    """Rounds until z moves by less than `tolerance` of its scale, then Newton; a sentence when it stops short."""
    weighting = model.block.weighting
    assert weighting is not None
    point, rounds, change, message = start, 0, np.inf, ""
    last = np.full(model.n, np.inf)  # weights
    bands = np.zeros(model.n, np.int64)
    while change > tolerance and rounds < max_rounds:
        piece = np.asarray(model.block.kernel.piece(point.z, *model.block.theta), np.int64)
        loss = model.block.call(model.block.kernel.value, piece, point.z)
        bands = weighting.band(loss, age)
        weights = weighting.evaluate(bands, loss, age)[0]
        found = fitted(model, weights, point, far=float(np.abs(weights - last).sum()) > _FAR * model.n)
        last = weights
        if found.failure:
            return _state(model, age, point), rounds, f"the w-problem at the age {age:.6g} is {found.failure}"
        change = float(np.abs(found.z - point.z).max()) / model.block.scale
        point = found
        rounds += 1
        if change < 1e-5 and weighting.continuous:
            state = _state(model, age, point)
            if state.correct() and state.residual() <= 1e-10:
                return state, rounds, ""
    state = _state(model, age, point)
    if (
        not weighting.continuous and change <= tolerance
    ):  # a loss at its threshold, to rounding, counts as it was weighed
        state.labels.band[:] = bands
        state.settle_rows()
    if not state.correct():
        state = _state(model, age, point)
        message = f"alternate search at the age {age:.6g} came within {change:.1e} of a partial optimum"
    return state, rounds, message


def fitted(model: DualModel, weights: Array, start: Fitted, far: bool) -> Fitted:
    """The optimum at fixed weights; when it is far from the start, from libsvm's if there is one."""
    guess = near(model, weights) if far else None
    if guess is not None:
        found = fit(model, weights, guess)
        if not found.failure:
            return found
    return fit(model, weights, start)


def _state(model: DualModel, age: float, point: Fitted) -> KernelState:
    """The state at a fitted point, bands by its losses; pieces as its multipliers say, whatever rounding makes of z."""
    block, weighting = model.block, model.block.weighting
    assert weighting is not None
    labels, z = point.labels, point.z.copy()
    held = labels.held
    z[held] = block.borders[labels.kink[held], held]
    loss = block.call(block.kernel.value, labels.piece, z)
    fresh = RowLabels(labels.piece.copy(), labels.kink.copy(), weighting.band(loss, age))
    return KernelState(model, age, replace(point, labels=fresh))


def state_of(model: DualModel, age: float, x: Array) -> KernelState:
    """The state at a flat vector of the path; samples are held whose z is at a kink and whose multiplier is inside its bounds.

    One whose multiplier is at a bound is as good on that side: the tracker flips it if the path goes on otherwise.
    """
    mu, b = model.inward(x)
    z = model.apply(mu) + model.B @ b + model.c
    block, weighting = model.block, model.block.weighting
    assert weighting is not None
    labels = block.labels(z, age)
    for border in np.flatnonzero(block.kinked).tolist():
        near = np.flatnonzero(np.abs(z - block.borders[border]) <= 1e-9 * block.scale)
        if near.size == 0:
            continue
        loss = block.value_at(near, np.full(near.size, border), block.borders[border, near])
        v = weighting.evaluate(weighting.band(loss, age), loss, age)[0] * block.factor[near]
        low, high = v * block.left[border, near], v * block.right[border, near]
        slack = 1e-9 * model.force
        inside = (-mu[near] > low + slack) & (-mu[near] < high - slack)
        labels.piece[near] = np.where(np.abs(-mu[near] - low) <= slack, border, border + 1)
        labels.piece[near[inside]] = labels.kink[near[inside]] = border
        labels.band[near] = weighting.band(loss, age)
    state = KernelState(model, age, Fitted(mu, b, z, labels))
    state.correct()
    return state

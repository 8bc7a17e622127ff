"""Folds inside a smooth stretch of a kernel path: the branch bends back in age, and its system is singular at the turn.

In: a state just before a fold, and a row that moves fast there. Out: the state at the fold, to rounding: the path is followed by
that row's z instead of by the age, until the age stops growing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.solvers.kernel_path.events import NOISE
from spdsl.solvers.kernel_path.state import KernelState, Snapshot

__all__ = ["to_the_fold"]

_FIRST = 1e-4  # of the loss's scale: how far to go at first
_CLOSE = 1e-3
_FLAT = 1e-9  # of the first speed: a speed of the age below this is none


@dataclass(frozen=True)
class _Arc:
    """A point of the path by the pinned row's z, and d(age)/dz there."""

    t: float
    speed: float
    at: Snapshot


def to_the_fold(state: KernelState, row: int, rate: float, upper: float) -> bool:
    """Carry the state to the fold ahead; False when a label changes, or the ages end, before it.

    The state is then as far along its branch as it got, and the row is not pinned any more; at a fold it is. `rate` is dz/d(age)
    of the row.
    """
    state.pinned[row] = float(state.z[row])
    state.update_row(row)
    first = _arc(state, row, float(state.z[row]), 1.0 / rate, upper)
    found = first is not None and _followed(state, row, first, upper)
    if not found:
        state.pinned.pop(row, None)
        state.update_row(row)
    return found


def _followed(state: KernelState, row: int, first: _Arc, upper: float) -> bool:
    sign = float(np.sign(first.speed))
    length = _FIRST * state.block.scale
    low, low_speed, high, high_speed = 0.0, abs(first.speed), np.inf, -np.inf
    best = arc = first
    passed = False
    for _ in range(80):
        state.restore(arc.at)
        state.pinned[row] = arc.t
        trial = _arc(state, row, first.t + sign * length, arc.speed, upper)
        if trial is None:  # a label changes before, or Newton fails
            high, high_speed = length, np.nan
        elif trial.speed * sign > 0.0:
            arc, low, low_speed = trial, length, trial.speed * sign
            best = trial
        else:
            arc, high, high_speed, passed = trial, length, trial.speed * sign, True
        if trial is not None and abs(trial.speed) <= _FLAT * abs(first.speed):
            best, passed = trial, True
            break
        if np.isfinite(high) and high - low <= 1e-13 * max(high, abs(first.t)):
            break
        if np.isnan(high_speed) and high - low <= _CLOSE * high:  # a label changes there: the age goes on to that
            break
        if np.isinf(high):
            length *= 2.0
        elif np.isfinite(high_speed):
            guess = low + (high - low) * low_speed / (low_speed - high_speed)
            length = min(max(guess, low + 0.02 * (high - low)), high - 0.02 * (high - low))
        else:
            length = 0.5 * (low + high)
        if trial is None:
            arc = best
    state.restore(best.at)
    state.pinned[row] = best.t
    return passed


def _arc(state: KernelState, row: int, t: float, speed: float, upper: float) -> _Arc | None:
    """The point of the path at which the row's z is t, from the state at hand; None when there is none with its labels."""
    model = state.model
    start = state.snapshot()
    labels_hold = False
    step = t - state.pinned[row]
    state.pinned[row] = t
    if step:
        state.move(state.by_row(row, 1.0), step)
    state.age += step * speed
    for _ in range(20):
        if not 0.0 < state.age <= upper or not state.correct():
            break
        values = state.values()
        force = float(state.mu[row] + values.gradient[row])
        by_age, by_row = state.by_age(), state.by_row(row, 1.0)
        force_by_age = float(by_age.mu[row] + values.by_age[row])
        if force_by_age == 0.0:
            break
        dage = -force / force_by_age
        if abs(dage) <= 1e-15 * state.age or abs(force) <= 1e-15 * model.force:
            gap, _ = state.gaps(values, by_row, 0.0)
            own = state.block.labels(state.z, state.age)
            labels_hold = bool(
                (gap >= -NOISE).all()
                and own.piece[row] == state.labels.piece[row]
                and own.band[row] == state.labels.band[row]
            )
            force_by_row = float(by_row.mu[row] + values.curvature[row])
            if labels_hold:
                return _Arc(t, -force_by_row / force_by_age, state.snapshot())
            break
        state.move(by_age, dage)
        state.age += dage
    state.restore(start)
    return None

"""Weights that jump (hard): one row's weight after the other is pushed to its new value, until alternate search rests.

In: a state at the age at which a row's weight jumps. Out: the state at the next partial optimum, at the same age, and which rows
changed. With everything else following exactly, this is alternate convex search by one weight at a time.
"""

from __future__ import annotations

import numpy as np

from spdsl.solvers.active_set.rows import BAND_LOWER, BAND_UPPER, LOWER
from spdsl.solvers.kernel_path.events import Event, LostBranchError, label_of
from spdsl.solvers.kernel_path.state import KernelState

__all__ = ["weight_jumps"]


def weight_jumps(state: KernelState, side: int, row: int, before: tuple[int, int, int]) -> Event:
    """A weight jumps from 0 to 1 or back: alternate convex search, one weight after the other pushed to its value."""
    block = state.block
    assert block.weighting is not None
    left, z = (state.mu, state.b), state.z
    causes: list[tuple[int, tuple[int, int, int], tuple[int, int, int]]] = []
    todo = [(row, int(state.labels.band[row]) + (1 if side == BAND_UPPER else -1))]
    state.frozen = True
    for _ in range(1000):
        for sample, band in todo:
            was = before if sample == row and not causes else label_of(state.labels, sample)
            _push(state, sample, band)
            causes.append((sample, was, label_of(state.labels, sample)))
        loss = state.values().loss
        bands = block.weighting.band(loss, state.age * (1.0 + 1e-12))
        todo = [(int(i), int(bands[i])) for i in np.flatnonzero(bands != state.labels.band)]
        if not todo:
            break
    else:
        raise LostBranchError("alternate search after a jump does not end")
    state.frozen = False
    change = float(np.abs(state.z - z).max())
    kind = "jump" if change > 1e-9 * block.scale else "turning"
    return Event(state.age, kind, tuple(causes), left if kind == "jump" else None, change)


def _push(state: KernelState, row: int, band: int) -> None:
    """Take one row's weight to that of its new band, everything else following; exact, event by event."""
    n = state.model.n
    if state.labels.kink[row] >= 0:
        state.labels.band[row] = band
        state.touch()
        return
    state.labels.band[row] = band
    state.touch()
    state.pushed = row
    for _ in range(100_000):
        values = state.values()
        missing = float(-values.gradient[row] - state.mu[row])
        if abs(missing) <= 1e-14 * state.model.force:
            break
        way = state.by_row(row, float(np.sign(missing)))
        gap, rate = state.gaps(values, way, 0.0)
        gap[LOWER:BAND_LOWER, row] = np.where(rate[LOWER:BAND_LOWER, row] < 0.0, gap[LOWER:BAND_LOWER, row], np.inf)
        t = np.where(rate < -1e-13 / state.model.force, np.maximum(gap, 0.0) / np.maximum(-rate, 1e-300), np.inf)
        index = int(np.argmin(t))
        reach = float(t.ravel()[index])
        if reach >= abs(missing):
            state.move(way, abs(missing))
            break
        state.move(way, reach)
        side, other = divmod(index, n)
        state.flip(side, other, float(values.weight[other]))
        if not state.update_row(other):
            raise LostBranchError(f"sample {other} depends on the samples that are held at their kinks")
        if other == row and state.labels.kink[row] >= 0:
            break
    state.pushed = -1
    state.update_row(row)
    if not state.correct():
        raise LostBranchError("Newton does not settle a pushed weight")

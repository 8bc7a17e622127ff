"""Follows a kernel path over the age, event by event; where the branch of minima ends, slides down to the next one.

In: a state at a partial optimum. Out: `Event`s: every turning point and jump, exact to rounding, and strides between.

An event flips the label of one row. When the way on under the new labels leads away from the border it is a turning point.
When it leads back, the branch of minima ends there: a jump. (The rate of a gap changes its sign with the pivot of its row, that
is with the definiteness of the reduced Hessian.) Then the row is pinned, which makes all else a minimum again, and its z slides
downhill at the same age, everything else following exactly over its own events, until the force that holds it vanishes: the
first minimum on the way. Rows that lose their minimum meanwhile are pinned and settled first. With weights that jump (hard), a
row's multiplier is pushed to its new value instead, all other weights kept: alternate convex search, by one weight at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import BAND_LOWER, BAND_UPPER, LOWER, UPPER, RowLabels, RowValues
from spdsl.solvers.kernel_path.directions import Direction
from spdsl.solvers.kernel_path.state import KernelState

__all__ = ["Event", "KernelTracker", "LostBranchError"]

NOISE = 1e-10  # gaps below this are zero
_STEADY = 1e-10  # rates (per the step's own unit) below this are zero


class LostBranchError(Exception):
    """No way on was found; the message says why."""


@dataclass(frozen=True)
class Event:
    """What happened at an age: `kind` is stride, turning or jump; `causes` are (row, labels before, labels after)."""

    age: float
    kind: str
    causes: tuple[tuple[int, tuple[int, int, int], tuple[int, int, int]], ...] = ()
    left: tuple[Array, Array] | None = None  # mu and b before a jump
    change: float = 0.0  # largest change of z at a jump


class KernelTracker:
    """Moves a `KernelState` along its path."""

    def __init__(self, state: KernelState) -> None:
        self.state = state
        self.way: Direction | None = None
        self.slides = 0
        self.uphill = -1  # a row that slides over the last rise before a fold
        self.pace = 0.05 * state.block.scale  # of slides on which multipliers bend
        self.affine = _affine_weights(state)

    # -- over the age --------------------------------------------------------------------------------------------------

    def advance(self, upper: float, stride: float) -> Event:
        """To the next event, or by a stride.

        Raises
        ------
        LostBranchError
            When neither Newton nor a slide leads on.
        """
        state = self.state
        if self.way is None:
            self.way = state.by_age()
        values = state.values()
        gap, rate = state.gaps(values, self.way, 1.0)
        unit = _STEADY / state.age
        ready = np.flatnonzero((gap <= NOISE).ravel() & (rate < -unit).ravel())
        if ready.size:
            worst = ready[np.argmin(rate.ravel()[ready])]
            return self._cross(int(worst), values)
        index, dt = _first(gap, rate, unit)
        room = min(upper - state.age, stride)
        for _ in range(40):
            dt = min(dt, room)
            at_event = dt < room
            found = self._stepped(dt, index if at_event else -1)
            if found == -1:
                if not at_event and room == upper - state.age:
                    state.age = upper
                self.way = None
                return Event(state.age, "stride")
            if found >= 0:
                return self._cross(found, state.values())
            room = 0.5 * dt
            index, dt = -1, room
            if room <= 1e-7 * state.age:
                return self._fold()
        raise LostBranchError("no step however short leads on")

    def _stepped(self, dt: float, index: int) -> int:
        """Move by dt, or onto the event `index` near there: the event's index, -1 at a plain stride, -2 for a failure."""
        state, way = self.state, self.way
        assert way is not None
        start = state.snapshot()
        state.move(way, dt)
        state.age += dt
        for _ in range(30):
            if not state.correct():
                break
            values = state.values()
            gap, rate = state.gaps(values, way, 1.0)
            flat, speed = gap.ravel(), rate.ravel()
            passed = np.flatnonzero((flat < -NOISE) & (speed < -_STEADY / state.age))
            if passed.size:
                when = flat[passed] / -speed[passed]  # negative: how long ago
                index = int(passed[np.argmin(when)])
            elif index < 0:
                return -1
            elif abs(flat[index]) <= 0.1 * NOISE:
                return index
            if speed[index] >= 0.0:
                break
            shift = float(flat[index] / -speed[index])
            if state.age + shift < start.age - 1e-12 * start.age or abs(shift) > 4.0 * dt:
                break
            if abs(shift) <= 4e-16 * state.age:
                return index
            state.move(way, shift)
            state.age += shift
        state.restore(start)
        return -2

    def _cross(self, index: int, values: RowValues) -> Event:
        """Flip one row's label; a turning point, or the landing after a jump."""
        state = self.state
        side, row = divmod(index, state.model.n)
        before = _label(state.labels, row)
        weighting = state.block.weighting
        assert weighting is not None
        if side in (BAND_LOWER, BAND_UPPER) and not weighting.continuous and values.slope[row] != 0.0:
            return self._weight_jumps(side, row, before)
        state.block.flip(state.labels, side, row, float(values.weight[row]))
        after = _label(state.labels, row)
        stable = state.update_row(row)
        if not stable:
            raise LostBranchError(f"sample {row} reaches its kink but depends on the samples that are held at theirs")
        self.way = state.by_age() if self._determined() else None
        if self.way is not None:
            gap, rate = state.gaps(state.values(), self.way, 1.0)
            back = (gap[:, row] <= 100.0 * NOISE) & (rate[:, row] < -_STEADY / state.age)
            if not back.any():
                return Event(state.age, "turning", ((row, before, after),))
        left, z = (state.mu, state.b), state.z
        self._slide(row, _towards(side, float(values.slope[row])))
        change = float(np.abs(state.z - z).max())
        kind = "jump" if change > 1e-9 * state.block.scale else "turning"
        return Event(state.age, kind, ((row, before, after),), left if kind == "jump" else None, change)

    def _determined(self) -> bool:
        """Is the system under the labels regular, or is nothing in work at all?"""
        return self.state.work.usable or self.state.work.rows.size == 0

    def _fold(self) -> Event:
        """A smooth fold ahead: the weighed row that moves fastest is pinned, and slides on the way it was going."""
        state, way = self.state, self.way
        assert way is not None
        rows = state.work.rows
        loose = rows[state.work.D[rows] != 0.0]
        if loose.size == 0:
            raise LostBranchError("no step however short leads on, and no weighed sample can be followed instead")
        row = int(loose[np.argmax(np.abs(way.z[loose]))])
        left, z = (state.mu, state.b), state.z
        label = _label(state.labels, row)
        self.uphill = row
        self._slide(row, float(np.sign(way.z[row])))
        change = float(np.abs(state.z - z).max())
        return Event(state.age, "jump", ((row, label, label),), left, change)

    # -- landings ------------------------------------------------------------------------------------------------------

    def _slide(self, row: int, sign: float) -> None:
        """Pin a row and let its z slide downhill from the side given, until nothing holds it."""
        self.slides += 1
        self._pin(row)
        ways = {row: sign}
        for _ in range(20_000 if self.affine else 400):
            if not self.state.pinned:
                self.way = None
                return
            top = next(reversed(self.state.pinned))
            other = self._slide_on(top, ways)
            if other is not None:
                self._pin(other[0])
                ways[other[0]] = other[1]
        raise LostBranchError("the slide to the next minimum took too many steps")

    def _pin(self, row: int) -> None:
        state = self.state
        state.labels.kink[row] = -1
        state.labels.piece[row] = int(np.clip(state.labels.piece[row], 0, state.block.kernel.n_pieces - 1))
        state.pinned[row] = float(state.z[row])
        if not state.update_row(row):
            raise LostBranchError(
                f"sample {row} can't be moved: it depends on the samples that are held at their kinks"
            )

    def _slide_on(self, row: int, ways: dict[int, float]) -> tuple[int, float] | None:
        """One stretch of a slide: to an event of another row (one that must be pinned is returned), or to the row's release."""
        state, n = self.state, self.state.model.n
        values = state.values()
        force = float(state.mu[row] + values.gradient[row])
        if row == self.uphill and force * ways[row] < -1e-9 * state.model.force:
            self.uphill = -1
        if row != self.uphill and abs(force) > 1e-11 * state.model.force:
            ways[row] = -float(np.sign(force))
        sign = ways[row]
        way = state.by_row(row, sign)
        gap, rate = state.gaps(values, way, 0.0)
        force_rate = float(way.mu[row] + values.curvature[row] * sign)
        own = self._own_gaps(row, values, sign)
        slack = 1e-12 / state.block.scale
        candidates = np.where((rate < -slack) & (gap < 1e29), np.maximum(gap, 0.0) / np.maximum(-rate, 1e-300), np.inf)
        index = int(np.argmin(candidates))
        t_other = float(candidates.ravel()[index])
        t_own = float(own.min(initial=np.inf))
        towards = force_rate * sign > 0.0 and row != self.uphill
        stop = -force / force_rate if towards else np.inf
        stop = max(stop, 0.0) if towards else np.inf
        t = min(t_other, t_own, stop, self._longest(row))
        if not np.isfinite(t):
            raise LostBranchError("a sample slides downhill without end")
        t = self._pinned_step(row, way, sign, t)
        if t == stop:
            self._release(row)
        elif t == t_own:
            self._own_border(row, sign, int(np.argmin(own)))
        elif t == t_other:
            side, other = divmod(index, n)
            return self._flip_while_sliding(side, other, row, sign)
        return None

    def _longest(self, row: int) -> float:
        """How far to slide in one step: far when multipliers are affine in z, a little otherwise."""
        if row == self.uphill:
            return 1e-3 * self.state.block.scale
        if self.affine:
            return np.inf
        rows = self.state.work.rows
        bends = np.any(self.state.work.D[rows] != 0.0) or self.state.values().curvature[row] != 0.0
        return self.pace if bends else np.inf

    def _pinned_step(self, row: int, way: Direction, sign: float, t: float) -> float:
        """Move by t, or by less where Newton needs it."""
        state = self.state
        start, target = state.snapshot(), state.pinned[row]
        for _ in range(10):
            state.move(way, t)
            state.pinned[row] = target + sign * t
            if state.correct():
                if t == self.pace:
                    self.pace *= 1.5
                return t
            state.restore(start)
            state.pinned[row] = target
            state.settle_rows()
            t *= 0.5
            self.pace = t
        raise LostBranchError("Newton does not follow a slide")

    def _own_gaps(self, row: int, values: RowValues, sign: float) -> Array:
        """How far the row may slide to the borders of its own piece and band (4,)."""
        state = self.state
        way = Direction(np.zeros(state.model.n), np.zeros(state.model.q), np.zeros(state.model.n), True)
        way.z[row] = sign
        gap, rate = state.block.gaps(state.labels, values, -state.mu, way.z, way.mu, state.age, 0.0)
        gap, rate = gap[:, row], rate[:, row]
        return np.where((rate < 0.0) & (gap < 1e29), np.maximum(gap, 0.0) / np.maximum(-rate, 1e-300), np.inf)

    def _own_border(self, row: int, sign: float, side: int) -> None:
        """The sliding row reaches a border of its own: held at a kink that can take its force, or on."""
        state = self.state
        labels, block = state.labels, state.block
        if side in (BAND_LOWER, BAND_UPPER):
            labels.band[row] += 1 if side == BAND_UPPER else -1
            return
        border = int(labels.piece[row]) - (1 if side == LOWER else 0)
        weight = float(state.values().weight[row])
        if block.kinked[border] and weight > 0.0:
            s = -float(state.mu[row])
            low, high = (float(block.factor[row] * weight * part[border, row]) for part in (block.left, block.right))
            if low <= s <= high:
                labels.piece[row] = labels.kink[row] = border
                del state.pinned[row]
                state.z[row] = block.borders[border, row]
                return
        labels.piece[row] += 1 if side == UPPER else -1

    def _release(self, row: int) -> None:
        del self.state.pinned[row]
        self.state.update_row(row)

    def _flip_while_sliding(self, side: int, row: int, moving: int, sign: float) -> tuple[int, float] | None:
        """Another row's event during a slide: flipped, or to be pinned too."""
        state = self.state
        values = state.values()
        state.block.flip(state.labels, side, row, float(values.weight[row]))
        if not state.update_row(row):
            raise LostBranchError(f"sample {row} depends on the samples that are held at their kinks")
        if self._determined():
            way = state.by_row(moving, sign)
            gap, rate = state.gaps(state.values(), way, 0.0)
            if not ((gap[:, row] <= 1e-8) & (rate[:, row] < -1e-12 / state.block.scale)).any():
                return None
        return row, _towards(side, float(values.slope[row]))

    # -- weights that jump ---------------------------------------------------------------------------------------------

    def _weight_jumps(self, side: int, row: int, before: tuple[int, int, int]) -> Event:
        """A weight jumps from 0 to 1 or back: alternate convex search, one weight after the other pushed to its value."""
        state, block = self.state, self.state.block
        assert block.weighting is not None
        left, z = (state.mu, state.b), state.z
        causes: list[tuple[int, tuple[int, int, int], tuple[int, int, int]]] = []
        todo = [(row, int(state.labels.band[row]) + (1 if side == BAND_UPPER else -1))]
        state.frozen = True
        for _ in range(1000):
            for sample, band in todo:
                was = before if sample == row and not causes else _label(state.labels, sample)
                self._push(sample, band)
                causes.append((sample, was, _label(state.labels, sample)))
            loss = state.values().loss
            bands = block.weighting.band(loss, state.age * (1.0 + 1e-12))
            todo = [(int(i), int(bands[i])) for i in np.flatnonzero(bands != state.labels.band)]
            if not todo:
                break
        else:
            raise LostBranchError("alternate search after a jump does not end")
        state.frozen = False
        self.way = None
        change = float(np.abs(state.z - z).max())
        kind = "jump" if change > 1e-9 * block.scale else "turning"
        return Event(state.age, kind, tuple(causes), left if kind == "jump" else None, change)

    def _push(self, row: int, band: int) -> None:
        """Take one row's weight to that of its new band, everything else following; exact, event by event."""
        state, n = self.state, self.state.model.n
        if state.labels.kink[row] >= 0:
            state.labels.band[row] = band
            return
        state.labels.band[row] = band
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
            state.block.flip(state.labels, side, other, float(values.weight[other]))
            if not state.update_row(other):
                raise LostBranchError(f"sample {other} depends on the samples that are held at their kinks")
            if other == row and state.labels.kink[row] >= 0:
                break
        state.pushed = -1
        state.update_row(row)
        if not state.correct():
            raise LostBranchError("Newton does not settle a pushed weight")


def _affine_weights(state: KernelState) -> bool:
    """Are weights affine in the loss on every band (linear, hard)? Then a slide is a straight line between events."""
    weighting = state.block.weighting
    if weighting is None:
        return True
    bands = np.arange(weighting.n_bands)
    found = [weighting.evaluate(bands, np.full(bands.size, share * state.age), state.age)[1] for share in (0.3, 0.7)]
    return bool(np.array_equal(found[0], found[1]))


def _first(gap: Array, rate: Array, unit: float) -> tuple[int, float]:
    """The first gap to close at the present rates, and when."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        when = np.where((rate < -unit) & (gap < 1e29), np.maximum(gap, 0.0) / -rate, np.inf).ravel()
    index = int(np.argmin(when))
    return (index, float(when[index])) if np.isfinite(when[index]) else (-1, np.inf)


def _towards(side: int, slope: float) -> float:
    """The direction of z in which a row passes the border on a side of it."""
    if side == LOWER:
        return -1.0
    if side == UPPER:
        return 1.0
    down = -1.0 if slope > 0.0 else 1.0
    return down if side == BAND_LOWER else -down


def _label(labels: RowLabels, row: int) -> tuple[int, int, int]:
    return int(labels.piece[row]), int(labels.kink[row]), int(labels.band[row])

"""Follows a kernel path over the age, event by event; where the branch of minima ends, flows down to the next one.

In: a state at a partial optimum. Out: `Event`s: every turning point and jump, exact to rounding, and strides between.

An event flips the label of one row. When the way on under the new labels leads away from the border it is a turning point.
When it leads back, the branch of minima ends there: a jump. (The rate of a gap changes its sign with the pivot of its row, that
is with the definiteness of the reduced Hessian.) With all but the row following, its z is moved downhill, and from there
a descent runs into the next minimum at the same age. With weights that jump (hard), a row's multiplier is pushed to its new value
instead, all other weights kept: alternate convex search, by one weight at a time.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import BAND_LOWER, BAND_UPPER, RowValues
from spdsl.solvers.kernel_path.directions import Direction
from spdsl.solvers.kernel_path.events import NOISE, STEADY, Event, LostBranchError, label_of, towards
from spdsl.solvers.kernel_path.fit import Fitted
from spdsl.solvers.kernel_path.flow import flow_down
from spdsl.solvers.kernel_path.folds import to_the_fold
from spdsl.solvers.kernel_path.relax import relax
from spdsl.solvers.kernel_path.search import search
from spdsl.solvers.kernel_path.state import KernelState
from spdsl.solvers.kernel_path.weight_jumps import weight_jumps

__all__ = ["KernelTracker"]

_SAME = 1e-9  # ages that differ by less, relative, are one
_TIES = 200  # events at one age after which they are taken to undo one another
_AHEAD = 1e-3  # relative to the age: a fold that near is looked for by a sample's z
_BESIDE = 1e-7  # relative to the age: strides that fail down to this length are beside a fold


class KernelTracker:
    """Moves a `KernelState` along its path."""

    def __init__(self, state: KernelState) -> None:
        self.state = state
        self.way: Direction | None = None
        self.anchor, self.tied = state.age, 0
        self.speed = (0.0, 0.0)  # the age of the last stride's start, and the largest speed of z there

    def advance(self, upper: float, stride: float) -> Event:
        """To the next event, or by a stride.

        Raises
        ------
        LostBranchError
            When neither Newton nor a descent leads on.
        """
        state = self.state
        if state.age > self.anchor * (1.0 + _SAME):
            self.anchor, self.tied = state.age, 0
        self.tied += 1
        if self.tied > _TIES:
            raise LostBranchError("events at one age undo one another without end")
        if self.way is None:
            self.way = state.by_age()
        values = state.values()
        gap, rate = state.gaps(values, self.way, 1.0)
        unit = STEADY / state.age
        ready = np.flatnonzero((gap <= NOISE).ravel() & (rate < -unit).ravel())
        if ready.size:
            worst = ready[np.argmin(rate.ravel()[ready])]
            return self._cross(int(worst), values)
        index, dt = _first(gap, rate, unit)
        room = min(upper - state.age, stride)
        to_fold = self._to_fold(self.way)
        began = (state.age, float(np.abs(self.way.z).max(initial=0.0)))
        if to_fold < min(_AHEAD * state.age, dt, room):
            early = self._fold_early(upper)
            if early is not None:
                self.speed = (0.0, 0.0)  # an event lies before the fold, if it is none: that is met by age
                return early
        room = min(room, 0.7 * to_fold)
        for _ in range(40):
            dt = min(dt, room)
            at_event = dt < room
            found = self._stepped(dt, index if at_event else -1)
            if found != -2:
                self.speed = began
            if found == -1:
                if not at_event and state.age >= upper * (1.0 - 1e-15):
                    state.age = upper
                self.way = None
                return Event(state.age, "stride")
            if found >= 0:
                return self._cross(found, state.values())
            room = 0.5 * dt
            index, dt = -1, room
            if room <= _BESIDE * state.age:
                return self._fold(upper)
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
            if ((flat < -NOISE) & (speed >= -STEADY / state.age)).any():  # it closed on the way: the tangent is stale
                way = state.by_age()
                gap, rate = state.gaps(values, way, 1.0)
                flat, speed = gap.ravel(), rate.ravel()
            passed = np.flatnonzero((flat < -NOISE) & (speed < -STEADY / state.age))
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
        before = label_of(state.labels, row)
        weighting = state.block.weighting
        assert weighting is not None
        if side in (BAND_LOWER, BAND_UPPER) and not weighting.continuous and values.slope[row] != 0.0:
            self.way = None
            return weight_jumps(state, side, row, before)
        state.flip(side, row, float(values.weight[row]))
        after = label_of(state.labels, row)
        stable = state.update_row(row)
        if not stable:
            raise LostBranchError(f"sample {row} reaches its kink but depends on the samples that are held at theirs")
        self.way = state.by_age() if state.determined else None
        if self.way is not None:
            gap, rate = state.gaps(state.values(), self.way, 1.0)
            back = (gap[:, row] <= 100.0 * NOISE) & (rate[:, row] < -STEADY / state.age)
            if not back.any():
                return Event(state.age, "turning", ((row, before, after),))
        self.way = None
        sign = towards(side, float(values.slope[row]))
        state.pinned[row] = float(state.z[row])
        state.update_row(row)
        return self._landed(row, sign, (row, before, after))

    def _to_fold(self, way: Direction) -> float:
        """The way in age to a fold that the last two tangents point at: before one |dz/dage|^-2 falls linearly to zero."""
        if self.state.model.straight:
            return np.inf
        age, before = self.speed
        speed = float(np.abs(way.z).max(initial=0.0))
        if not 0.0 < 1.02 * before < speed:
            return np.inf
        return (self.state.age - age) / ((speed / before) ** 2 - 1.0)

    def _fold_early(self, upper: float) -> Event | None:
        """A fold ahead, or a stride by a sample's z; None where that leads nowhere, and nothing has changed."""
        state, way = self.state, self.way
        start, labels = state.snapshot(), state.labels.copy()
        try:
            return self._fold(upper)
        except LostBranchError:
            state.become(Fitted(start.mu, start.b, start.z, labels))
            state.age, self.way = start.age, way
            return None

    def _fold(self, upper: float) -> Event:
        """A smooth fold ahead: the weighed row that moves fastest is pinned, carried to the fold, and nudged beyond it."""
        state, way = self.state, self.way
        assert way is not None
        rows = state.work.rows
        loose = rows[state.work.D[rows] != 0.0]
        if loose.size == 0:
            raise LostBranchError("no step however short leads on, and no weighed sample can be followed instead")
        row = int(loose[np.argmax(np.abs(way.z[loose]))])
        sign = float(np.sign(way.z[row]))
        began = state.age
        self.way = None
        if not to_the_fold(state, row, float(way.z[row]), upper):
            if state.age <= began:
                raise LostBranchError("no step however short leads on, and no fold ends the branch")
            return Event(state.age, "stride")
        label = label_of(state.labels, row)
        return self._landed(row, sign, (row, label, label))

    def _landed(self, row: int, sign: float, cause: tuple[int, tuple[int, int, int], tuple[int, int, int]]) -> Event:
        """Down from the end of a branch, where the row is pinned, to the next minimum.

        By samples where forces bend only at borders; by the continuous flow elsewhere, and where that finds no way.
        """
        state = self.state
        left, z = (state.mu, state.b), state.z
        start = Fitted(state.mu, state.b, z, state.labels.copy())
        nudge = state.by_row(row, sign)
        if not (state.model.straight and self._relaxed(row, sign)):
            self._flow(start, nudge)
        change = float(np.abs(state.z - z).max())
        kind = "jump" if change > 1e-9 * state.block.scale else "turning"
        return Event(state.age, kind, (cause,), left if kind == "jump" else None, change)

    def _flow(self, start: Fitted, nudge: Direction) -> None:
        """Down by the flow; where it gets stuck, on from there by alternate search."""
        state, model = self.state, self.state.model
        try:
            state.become(flow_down(model, state.age, start, nudge))
        except LostBranchError as error:
            if error.point is None:
                raise
            mu, b = error.point
            z = model.apply(mu) + model.B @ b + model.c
            found, _, failure = search(model, state.age, Fitted(mu, b, z, start.labels))
            if failure or found.residual() > 1e-10:
                raise
            state.become(Fitted(found.mu, found.b, found.z, found.labels))
        if not state.correct():
            raise LostBranchError("Newton does not settle a landing")

    def _relaxed(self, row: int, sign: float) -> bool:
        """Down by samples; False where it finds no way, and the state is somewhere on it."""
        state = self.state
        try:
            relax(state, row, sign)
        except LostBranchError:
            return False
        return state.determined and state.correct() and state.residual() <= 1e-10


def _first(gap: Array, rate: Array, unit: float) -> tuple[int, float]:
    """The first gap to close at the present rates, and when."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        when = np.where((rate < -unit) & (gap < 1e29), np.maximum(gap, 0.0) / -rate, np.inf).ravel()
    index = int(np.argmin(when))
    return (index, float(when[index])) if np.isfinite(when[index]) else (-1, np.inf)

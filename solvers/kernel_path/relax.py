"""Landings of a kernel path: one sample is carried downhill, everything else following exactly, until its force is gone.

In: a state with one sample pinned beyond the end of its branch, and the direction downhill. Out: the state at the next minimum of
the latent objective, at the same age, nothing pinned.

With z of one sample prescribed the others have a branch of minima of their own, followed event by event like the path itself, and
the objective along it falls by the force on the pinned sample. Where that force is gone, or the sample comes to a kink that holds
it, it is free again. Where the others' branch ends in its turn, the sample at which it ends (at a fold inside a smooth stretch:
the one that moves fastest) is pinned too and carried down first. So the objective never rises, but for the height of the bank
between a point beside a fold and the fold itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import FAR, LOWER, UPPER
from spdsl.solvers.kernel_path.directions import Direction
from spdsl.solvers.kernel_path.events import NOISE, STEADY, LostBranchError, towards
from spdsl.solvers.kernel_path.state import KernelState

__all__ = ["relax"]

_MOVES = 20_000
_TIES = 500  # events without a move after which they are taken to undo one another
_DEPTH = 60  # pins at once
_GONE = 1e-11  # of the model's force: a force below this is none
_FAINT = 1e-7  # the same where a sample is just pinned, at a border to the noise of gaps
_FLAT = 1e-9  # of the model's force by the loss's scale: a bend below this is none
_LONGEST = 0.25  # of the loss's scale: the first length of a move
_SHORTEST = 1e-6  # of the loss's scale: moves that fail down to this length are beside a fold
_BANK = 1e-2  # of the loss's scale: how far a fold's bank is climbed
_NUDGE = 1e-6


@dataclass
class _Pin:
    """A sample that is carried in the direction `sign` of its z; `climbs` says how far it may still go uphill."""

    row: int
    sign: float
    climbs: float = 0.0
    fresh: bool = True
    length: float = _LONGEST


def relax(state: KernelState, row: int, sign: float, climbs: bool = False) -> None:
    """Carry the pinned sample downhill and everything else along; see the module's text.

    Raises
    ------
    LostBranchError
        When a sample reaches a kink and depends on those held at theirs, nothing stops a descent, or events undo one another.
    """
    _Descent(state, _Pin(row, sign, _BANK if climbs else 0.0)).run()


class _Descent:
    def __init__(self, state: KernelState, first: _Pin) -> None:
        self.state = state
        self.pins = [first]
        self.idle = self.turns = 0

    def run(self) -> None:
        for _ in range(_MOVES):
            if not self.pins:
                return
            self._advance(self.pins[-1])
            if self.idle > _TIES:
                raise LostBranchError("events of a landing undo one another")
        raise LostBranchError("a landing takes too many moves")

    def _advance(self, pin: _Pin) -> None:
        """One move, one event, or the end of a pin."""
        state, scale = self.state, self.state.block.scale
        if not state.determined:
            raise LostBranchError("the samples that a landing follows don't determine the others")
        way = state.by_row(pin.row, pin.sign)
        gap, rate = self._gaps(way, pin)
        unit = STEADY / scale
        ready = np.flatnonzero((gap <= NOISE).ravel() & (rate < -unit).ravel())
        if ready.size:
            self.idle += 1
            self._event(int(ready[np.argmin(rate.ravel()[ready])]), pin)
            return
        force, bend = self._force(pin, way)
        tiny = (_FAINT if pin.fresh else _GONE) * state.model.force
        if force < -tiny:
            pin.climbs = 0.0  # over the bank
        if force > tiny and pin.climbs == 0.0:  # another sample's descent, or a bend, has turned it
            pin.sign, pin.fresh = -pin.sign, False
            self.turns += 1
            if self.turns > _TIES:
                raise LostBranchError("a landing goes to and fro")
            return
        if not pin.fresh and pin.climbs == 0.0 and abs(force) <= tiny and abs(bend) * scale <= _FLAT * state.model.force:
            self._release(pin)  # nothing depends on it any more
            return
        ends = np.inf
        if pin.fresh and bend >= 0.0 and force >= -tiny and pin.climbs == 0.0:
            self._release(pin)
            return
        if bend > 0.0 and pin.climbs == 0.0 or force < -tiny and bend > 0.0:
            if abs(force) <= tiny:
                self._release(pin)
                return
            ends = -force / bend
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            when = np.where((rate < -unit) & (gap < 0.1 * FAR), np.maximum(gap, 0.0) / -rate, np.inf).ravel()
        index = int(np.argmin(when))
        first = float(when[index])
        straight = not state.bends
        reach = np.inf if straight else pin.length * scale
        if force >= -tiny and bend <= 0.0 and not straight:
            reach = min(reach, max(_NUDGE * scale, 0.0) * 100.0)
        dt = min(first, ends, reach)
        if not np.isfinite(dt):
            raise LostBranchError("nothing stops the descent after a jump")
        found = self._moved(pin, way, dt, index if first <= min(ends, reach) else -1)
        if found == -2:
            pin.length = 0.25 * abs(dt) / scale
            if pin.length <= _SHORTEST:
                pin.length = _LONGEST
                self._fold(way, pin)
            return
        if dt == reach:
            pin.length = min(2.0 * pin.length, 1.0)
        pin.fresh = False
        if force > tiny:
            pin.climbs -= abs(dt) / scale
            if pin.climbs <= 0.0:
                raise LostBranchError("a landing would climb")
        self.idle = 0
        if found >= 0:
            self._event(found, pin)

    def _force(self, pin: _Pin, way: Direction) -> tuple[float, float]:
        """The slope of the objective along the pin's direction, and the slope's own rate."""
        values = self.state.values()
        force = float(self.state.mu[pin.row] + values.gradient[pin.row])
        return pin.sign * force, pin.sign * float(way.mu[pin.row]) + float(values.curvature[pin.row])

    def _gaps(self, way: Direction, pin: _Pin) -> tuple[Array, Array]:
        """Gaps and rates of all samples, the moving one among them, but not of other pinned ones."""
        gap, rate = self.state.gaps(self.state.values(), way, 0.0, moving=pin.row)
        return gap, rate

    def _moved(self, pin: _Pin, way: Direction, dt: float, index: int) -> int:
        """Move by dt, or onto the event `index` near there: the event's index, -1 when none came, -2 for a failure."""
        state, row = self.state, pin.row
        unit = STEADY / state.block.scale
        start, target = state.snapshot(), state.pinned[row]
        state.move(way, dt)
        state.pinned[row] += pin.sign * dt
        if not state.bends:  # the move is exact, and so is where it ends
            state.z[row] = state.pinned[row]
            return index
        for attempt in range(20):
            if not state.correct():
                break
            gap, rate = self._gaps(way, pin)
            flat, speed = gap.ravel(), rate.ravel()
            passed = np.flatnonzero(flat < -NOISE)
            if passed.size and (speed[passed] >= -unit).any():
                way = state.by_row(row, pin.sign)
                gap, rate = self._gaps(way, pin)
                flat, speed = gap.ravel(), rate.ravel()
            passed = np.flatnonzero((flat < -NOISE) & (speed < -unit))
            if passed.size:
                index = int(passed[np.argmin(flat[passed] / -speed[passed])])
            elif index < 0:
                return -1
            elif abs(flat[index]) <= 0.1 * NOISE:
                return index
            if speed[index] >= -unit:
                break
            shift = float(flat[index] / -speed[index])
            if abs(shift) > 4.0 * abs(dt) + 1e-12 * state.block.scale:
                break
            if attempt > 3 and abs(shift) <= 1e-15 * state.block.scale:
                return index
            state.move(way, shift)
            state.pinned[row] += pin.sign * shift
        state.restore(start)
        state.pinned[row] = target
        return -2

    def _event(self, index: int, pin: _Pin) -> None:
        """A sample changes its label; the moving one may be stopped by it, and another may end the branch."""
        state = self.state
        side, row = divmod(index, state.model.n)
        values = state.values()
        if row == pin.row:
            self._own(side, pin, float(values.weight[row]))
            return
        state.flip(side, row, float(values.weight[row]))
        if not state.update_row(row):
            raise LostBranchError(f"sample {row} reaches its kink but depends on the samples that are held at theirs")
        if not state.determined:
            raise LostBranchError("the samples that a landing follows don't determine the others")
        gap, rate = self._gaps(state.by_row(pin.row, pin.sign), pin)
        back = (gap[:, row] <= 100.0 * NOISE) & (rate[:, row] < -STEADY / state.block.scale)
        if back.any():
            self._pin(_Pin(row, towards(side, float(values.slope[row]))))

    def _own(self, side: int, pin: _Pin, weight: float) -> None:
        """The moving sample comes to a border of its own: a kink at which its force changes its sign holds it."""
        state, row = self.state, pin.row
        labels, block = state.labels, state.block
        if side in (LOWER, UPPER):
            border = int(labels.piece[row]) - (1 if side == LOWER else 0)
            beyond = border + (1 if side == UPPER else 0)
            if block.kinked[border] and weight > 0.0:
                slope = block.right[border, row] if side == UPPER else block.left[border, row]
                force = pin.sign * (float(state.mu[row]) + weight * block.factor[row] * float(slope))
                if force >= 0.0:
                    labels.piece[row] = labels.kink[row] = border
                    self._release(pin)
                    return
            labels.piece[row] = beyond
            state.touch()
        else:
            state.flip(side, row, weight)

    def _pin(self, pin: _Pin) -> None:
        """Another sample is carried first."""
        if len(self.pins) > _DEPTH:
            raise LostBranchError("a landing follows too many samples at once")
        state = self.state
        state.pinned[pin.row] = float(state.z[pin.row])
        state.update_row(pin.row)
        self.pins.append(pin)

    def _release(self, pin: _Pin) -> None:
        """The sample is free, or held at its kink."""
        state = self.state
        self.pins.pop()
        for other in self.pins:
            other.climbs, other.fresh = 0.0, False
        del state.pinned[pin.row]
        if not state.update_row(pin.row):
            raise LostBranchError(
                f"sample {pin.row} comes to its kink but depends on the samples that are held at theirs"
            )
        if not state.correct():
            raise LostBranchError("Newton does not settle a landing")

    def _fold(self, way: Direction, pin: _Pin) -> None:
        """Beside a fold of the others' branch: the weighed sample that moves fastest is pinned and carried over it."""
        rows = self.state.work.rows
        loose = rows[self.state.work.D[rows] != 0.0]
        if loose.size == 0:
            raise LostBranchError("no move however short leads on in a landing")
        row = int(loose[np.argmax(np.abs(way.z[loose]))])
        self._pin(_Pin(row, float(np.sign(way.z[row])), climbs=_BANK))

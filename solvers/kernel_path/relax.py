"""Landings where forces bend only at borders: one sample is carried downhill, everything else following exactly.

In: a state with one sample pinned beyond the end of its branch, and the direction downhill. Out: the state at the next minimum of
the latent objective, at the same age, nothing pinned.

With z of one sample prescribed the others have a branch of minima of their own, followed event by event like the path itself;
between events it is a straight line. The objective along it falls by the force on the pinned sample. Where that force is gone, or
the sample comes to a kink that holds it, it is free again. Where the others' branch ends in its turn, the sample at which it ends
is pinned too and carried down first. So the objective never rises.
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
_TIES = 500  # events without a move, or turns, after which they are taken to undo one another
_DEPTH = 60  # pins at once
_GONE = 1e-11  # of the model's force: a force below this is none
_FAINT = 1e-7  # the same where a sample is just pinned, at a border to the noise of gaps
_FLAT = 1e-9  # of the model's force by the loss's scale: a bend below this is none


@dataclass
class _Pin:
    """A sample that is carried in the direction `sign` of its z; `fresh` until it has moved."""

    row: int
    sign: float
    fresh: bool = True


def relax(state: KernelState, row: int, sign: float) -> None:
    """Carry the pinned sample downhill and everything else along; see the module's text.

    For models whose forces at one age are affine under the labels (`DualModel.straight`).

    Raises
    ------
    LostBranchError
        When a sample reaches a kink and depends on those held at theirs, nothing stops a descent, or events undo one another.
    """
    _Descent(state, _Pin(row, sign)).run()


class _Descent:
    def __init__(self, state: KernelState, first: _Pin) -> None:
        self.state = state
        self.pins = [first]
        self.idle = self.turns = 0
        self.ahead: Direction | None = None  # known already, from the last event

    def run(self) -> None:
        for _ in range(_MOVES):
            if not self.pins:
                return
            if self.idle > _TIES or self.turns > _TIES:
                raise LostBranchError("events of a landing undo one another")
            self._advance(self.pins[-1])
        raise LostBranchError("a landing takes too many moves")

    def _advance(self, pin: _Pin) -> None:
        """One move and its event, or the end of a pin."""
        state = self.state
        way = self.ahead or self._way(pin)
        self.ahead = None
        gap, rate = state.gaps(state.values(), way, 0.0, moving=pin.row)
        unit = STEADY / state.block.scale
        ready = np.flatnonzero((gap <= NOISE).ravel() & (rate < -unit).ravel())
        if ready.size:
            self.idle += 1
            self._event(int(ready[np.argmin(rate.ravel()[ready])]), pin)
            return
        force, bend = self._force(pin, way)
        tiny = (_FAINT if pin.fresh else _GONE) * state.model.force
        if force > tiny:  # another sample's descent has turned it
            pin.sign, pin.fresh = -pin.sign, False
            self.turns += 1
            return
        flat = abs(bend) * state.block.scale <= _FLAT * state.model.force
        if abs(force) <= tiny and (bend > 0.0 or (flat and not pin.fresh)):
            self._release(pin)
            return
        ends = -force / bend if bend > 0.0 else np.inf
        index, first = _first(gap, rate, unit)
        dt = min(first, ends)
        if not np.isfinite(dt):
            raise LostBranchError("nothing stops the descent after a jump")
        state.move(way, dt)
        state.pinned[pin.row] += pin.sign * dt
        pin.fresh = False
        self.idle = 0
        if first <= ends:
            self._event(index, pin)

    def _way(self, pin: _Pin) -> Direction:
        if not self.state.determined:
            raise LostBranchError("the samples that a landing follows don't determine the others")
        return self.state.by_row(pin.row, pin.sign)

    def _force(self, pin: _Pin, way: Direction) -> tuple[float, float]:
        """The slope of the objective along the pin's direction, and the slope's own rate."""
        values = self.state.values()
        force = float(self.state.mu[pin.row] + values.gradient[pin.row])
        return pin.sign * force, pin.sign * float(way.mu[pin.row]) + float(values.curvature[pin.row])

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
        way = self._way(pin)
        gap, rate = state.gaps(state.values(), way, 0.0, moving=pin.row)
        back = (gap[:, row] <= 100.0 * NOISE) & (rate[:, row] < -STEADY / state.block.scale)
        if back.any():
            self._pin(_Pin(row, towards(side, float(values.slope[row]))))
        else:
            self.ahead = way

    def _own(self, side: int, pin: _Pin, weight: float) -> None:
        """The moving sample comes to a border of its own: a kink at which its force changes its sign holds it."""
        state, row = self.state, pin.row
        labels, block = state.labels, state.block
        if side not in (LOWER, UPPER):
            state.flip(side, row, weight)
            return
        border = int(labels.piece[row]) - (1 if side == LOWER else 0)
        if block.kinked[border] and weight > 0.0:
            slope = block.right[border, row] if side == UPPER else block.left[border, row]
            if pin.sign * (float(state.mu[row]) + weight * float(block.factor[row]) * float(slope)) >= 0.0:
                labels.piece[row] = labels.kink[row] = border
                self._release(pin)
                return
        labels.piece[row] = border + (1 if side == UPPER else 0)
        state.touch()

    def _pin(self, pin: _Pin) -> None:
        """Another sample is carried first."""
        if len(self.pins) > _DEPTH:
            raise LostBranchError("a landing follows too many samples at once")
        self.state.pinned[pin.row] = float(self.state.z[pin.row])
        self.state.update_row(pin.row)
        self.pins.append(pin)

    def _release(self, pin: _Pin) -> None:
        """The sample is free, or held at its kink."""
        state = self.state
        self.pins.pop()
        for other in self.pins:
            other.fresh = False
        del state.pinned[pin.row]
        if not state.update_row(pin.row):
            raise LostBranchError(
                f"sample {pin.row} comes to its kink but depends on the samples that are held at theirs"
            )
        if not state.correct():
            raise LostBranchError("Newton does not settle a landing")


def _first(gap: Array, rate: Array, unit: float) -> tuple[int, float]:
    """The first gap to close at the present rates, and after how long a way."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        when = np.where((rate < -unit) & (gap < 0.1 * FAR), np.maximum(gap, 0.0) / -rate, np.inf).ravel()
    index = int(np.argmin(when))
    return index, float(when[index])

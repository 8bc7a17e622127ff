"""`EventEngine`: the path event by event where the pulls are piecewise affine, as fast as rank-one updates allow.

In: a stop and the last age. Out: a leap to where a coordinate leaves its place, to the last age, or as many events ahead as one
stretch may hold; or the end of the branch. Every event of a sample is met, so a leap needs no other certificate: between events
the Hessian is affine in 1/age and definite at both ends, at each event the rank-one change decides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.sweeps import CompiledSweeps
from spdsl.solvers.active_set.system import System
from spdsl.solvers.path_following.cells import Cells, cells_of
from spdsl.solvers.path_following.descent import ended
from spdsl.solvers.path_following.ends import End
from spdsl.solvers.path_following.leaps import Leap, Leaper, Place, Stop

__all__ = ["EventEngine"]

_NEAR = 1e-12  # of the loss's scale: a sample this near to a border is on it
_MOST = 250  # events in one stretch
_STEPS = 10_000  # of a landing: nearly always some tens
_BEFORE = 1e-9  # relative: how far before a shared event a leap ends
_SAME = 1e-7  # relative: how far Newton may move the end of a stretch


class EventEngine:
    """Follows the path of one system for ages in one range."""

    def __init__(self, leaper: Leaper, cells: Cells, upper: float) -> None:
        from spdsl.solvers.path_following.cell_loops import Samples, Sums

        sweeps, system = leaper.sweeps, leaper.system
        assert isinstance(sweeps, CompiledSweeps)
        self.leaper = leaper
        self.cells = cells
        self.upper = upper
        self.block = system.blocks[0]
        p, n = sweeps.At.shape
        A = np.ascontiguousarray(sweeps.At.T)
        self.samples = Samples(
            A, sweeps.At, self.block.c, self.block.factor, np.sqrt(np.einsum("ij,ij->i", A, A)),
            cells.slope, cells.offset, cells.bend,
        )  # fmt: skip
        self.terms = terms_of(system)
        self.sums = Sums(np.zeros((2, p, p)), np.zeros((2, p)))
        self.cell = np.full(n, -1, np.int64)
        self.candidates = np.empty(n, np.int64)
        self.work = np.empty((3, n))
        self.way = 0.0
        self.events = 0
        self.updates = 0
        self.at_tie = False  # is what comes next an event that several samples share?

    @staticmethod
    def of(leaper: Leaper, low: float, upper: float) -> EventEngine | None:
        """The engine, where the pulls are piecewise affine, the coordinate functions quadratic, and loops are compiled."""
        if not isinstance(leaper.sweeps, CompiledSweeps) or not leaper.system.coordinates.is_quadratic:
            return None
        cells = cells_of(leaper.system.blocks[0], low, upper)
        return None if cells is None else EventEngine(leaper, cells, upper)

    def ahead(self, start: Stop) -> Leap | End | None:
        """From a stop on; None where rounding is in the way of telling events apart."""
        from spdsl.solvers.path_following import event_loops as loops

        self.at_tie = False
        place, t = start.place, 1.0 / start.age
        self._cells_at(start, t)
        track = self._track(start)
        direction = np.zeros(place.x.size)
        state = np.array([t, 1.0 / self.upper, self.way or 1e-3 * t])
        why, index, side, events = loops.follow(
            self.samples,
            track,
            self.sums,
            self.terms,
            state,
            1e-14 * start.scale,
            _NEAR * self.block.scale,
            _MOST,
            direction,
        )
        self.events += events
        self.updates += events
        self.way = float(state[2])
        if why == loops.TROUBLE:
            self.cell[0] = -1  # sums anew
            return None
        reached = Place(
            self.upper if why == loops.REACHED else 1.0 / float(state[0]), track.x, place.interval, place.fixed
        )
        if why == loops.SHARED:
            return self._before_tie(reached, start)
        if why == loops.END:
            return self._end(reached, start, index, side, direction)
        event = -1
        if why == loops.COORDINATE:
            event = (side if place.fixed[index] == FREE else 1 - side) * place.x.size + index
        return self._leap(reached, start, event)

    def land(self, place: Place, direction: Array) -> Stop | None:
        """`descend` from the end of a branch in one compiled loop; None where it takes more than that to say."""
        from spdsl.solvers.path_following.flow_loops import Spot, land

        system, (n, p) = self.leaper.system, self.samples.A.shape
        spots = [
            Spot(place.x.copy(), place.interval.copy(), place.fixed.copy(), *np.empty((2, p)), *np.empty((4, n)))
            for _ in range(2)
        ]
        arguments = direction.copy(), system.faint, system.unit, 10.0 * _NEAR * self.block.scale, _STEPS
        rests = land(self.samples, self.terms, 1.0 / place.age, *spots, *arguments)
        if rests == 0:
            return None
        found = spots[rests - 1]
        return ended(self.leaper, Place(place.age, found.x, found.interval, found.fixed))

    def _cells_at(self, start: Stop, t: float) -> None:
        """Cells and sums at a stop: those of the last stretch with what has changed since."""
        from spdsl.solvers.path_following import cell_loops as loops

        at, moves = np.empty(self.cells.piece.size - 1), np.empty(self.cells.piece.size - 1)
        loops.borders(self.samples, t, at, moves)
        cell = np.empty_like(self.cell)
        loops.assign(start.sweep.rows[0], at, cell)
        self.updates += loops.differing(self.cell, cell)
        if self.cell[0] < 0 or self.updates > self.cell.size:
            self.updates = 0
            loops.gather(self.samples, cell, self.sums)
            self.cell[:] = cell
        else:
            loops.carry(self.samples, self.cell, cell, self.sums)

    def _track(self, start: Stop) -> Any:
        """The state of the loops at a stop."""
        from spdsl.solvers.path_following.event_loops import Track

        terms, place = self.terms, start.place
        p, free = place.x.size, place.free
        columns, interval = np.arange(p), place.interval
        is_free = place.fixed == FREE
        rise = np.where(is_free, terms.rise[columns, interval], 0.0)
        level = np.where(is_free, terms.level[columns, interval], 0.0)
        low, high = self.leaper.system.coordinates.bounds(place.fixed)
        held = place.fixed >= 0  # the gradient is minus the multiplier; pinned coordinates leave nothing
        lower, upper = np.where(held, -high, -np.inf), np.where(held, -low, np.inf)
        width = terms.position.shape[1]
        below = np.full(p, -np.inf)
        above = np.full(p, np.inf)
        if width:
            below = np.where(interval > 0, terms.position[columns, np.maximum(interval - 1, 0)], below)
            above = np.where(interval < terms.kinks, terms.position[columns, np.minimum(interval, width - 1)], above)
        lower, upper = np.where(is_free, below, lower), np.where(is_free, above, upper)
        unit = np.where(is_free, terms.unit, 1e-12 * start.scale)
        K, z, first, second = np.empty((free.size, free.size)), *self.work
        return Track(
            place.x.copy(),
            np.empty(p),
            self.cell,
            free,
            is_free,
            rise,
            level,
            lower,
            upper,
            unit,
            K,
            z,
            first,
            second,
            self.candidates,
        )

    def _leap(self, reached: Place, start: Stop, event: int) -> Leap | None:
        leaper = self.leaper
        found = leaper.settle(reached, start.scale, 8, event)
        if found is None or found.factor.verdict != "definite" or found.age < start.age:
            return None
        if float(np.abs(found.x - reached.x).max()) > _SAME * float(np.abs(reached.x).max(initial=1e-300)):
            return None
        leaper.newton_steps += found.iterations
        return Leap(found, 1.0, event, leaper.beyond(found, event) if event >= 0 else None)

    def _before_tie(self, reached: Place, start: Stop) -> Leap | None:
        """A leap to just before an event of several samples that rank-one changes can't decide; None when it is here."""
        self.at_tie = True
        age = reached.age * (1.0 - _BEFORE)
        return self._leap(replace(reached, age=age), start, -1) if age > start.age * (1.0 + _BEFORE) else None

    def _end(self, reached: Place, start: Stop, sample: int, other: int, direction: Array) -> End | Leap | None:
        """The end of the branch: the sample's label before it and behind it. Where others share the event, a leap up to it.

        Then more than one sample's cell decides where the path goes, which is not for here to say.
        """
        block, cells = self.block, self.cells
        z = block.predict(reached.x)
        from spdsl.solvers.path_following.cell_loops import beside_borders, borders

        at, moves = np.empty(cells.piece.size - 1), np.empty(cells.piece.size - 1)
        borders(self.samples, 1.0 / reached.age, at, moves)
        if beside_borders(z, at, 10.0 * _NEAR * block.scale) > 1:
            return self._before_tie(reached, start)
        labels = block.labels(z, reached.age)
        before, behind = labels.copy(), labels.copy()
        for side, cell in ((before, int(self.cell[sample])), (behind, other)):
            side.piece[sample], side.band[sample] = cells.piece[cell], cells.band[cell]
        return End(reached, before, behind, direction)


def terms_of(system: System) -> Any:
    """What is beside the loss, as the loops take it."""
    from spdsl.solvers.path_following.cell_loops import Terms

    coordinates, p = system.coordinates, system.p
    width = coordinates.position.shape[1]
    rise, level = np.zeros((p, width + 1)), np.zeros((p, width + 1))
    for k in range(width + 1):
        interval = np.minimum(k, coordinates.count)
        x = coordinates.inside(interval)
        rise[:, k] = coordinates.curvature(x, interval)
        level[:, k] = coordinates.slope(x, interval) - rise[:, k] * x
    Q = np.zeros((p, p)) if system.Q is None else np.ascontiguousarray(system.Q)
    return Terms(
        Q, system.q, system.Q is not None, coordinates.position, coordinates.low, coordinates.high, coordinates.smooth_border,
        coordinates.count, rise, level, 1e-13 * coordinates.scale,
    )  # fmt: skip

"""A point of a kernel path with its labels: Newton at an age, directions in the age or in one sample, the next event.

In: a dual model and a labelled point. Out: the same point moved, exact to rounding under its labels.

A row is held at a kink, pinned (its z is prescribed), pushed (its multiplier is prescribed), weighed (its weight depends on
the loss, so its multiplier bends with z), or plain (its multiplier is that of its piece). Held, pinned and weighed rows are
in work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import FAR, RowValues
from spdsl.solvers.active_set.weighting import IntArray, SelfPacedWeights
from spdsl.solvers.kernel_path.directions import Direction, Directions
from spdsl.solvers.kernel_path.fit import Fitted
from spdsl.solvers.kernel_path.model import DualModel

__all__ = ["KernelState", "Snapshot"]

_FAINT = 1e-9  # curvature times Q_ii below this is none
_EXACT = 1e-13
_GOOD = 1e-10


@dataclass(frozen=True)
class Snapshot:
    """What a step may have to go back to."""

    age: float
    mu: Array
    b: Array
    z: Array


class KernelState:
    """Mutable: the tracker moves it along the path."""

    def __init__(self, model: DualModel, age: float, point: Fitted) -> None:
        self.model, self.block = model, model.block
        self.age = age
        self.mu, self.b, self.z = point.mu.copy(), point.b.copy(), point.z.copy()
        self.labels = point.labels.copy()
        self._cached: tuple[Array, float, RowValues] | None = None
        self.pinned: dict[int, float] = {}
        self.pushed: int = -1
        self.frozen = False  # weights keep their bands, whatever the losses
        self.own = np.zeros(model.n)  # Q_ii
        self.work = Directions(model)
        self.newton_steps = 0
        self.settle_rows()

    @property
    def determined(self) -> bool:
        """Is the system under the labels regular, or is nothing in work at all?"""
        return self.work.usable or self.work.rows.size == 0

    # -- rows in work --------------------------------------------------------------------------------------------------

    def values(self) -> RowValues:
        """The loss at the point; kept until z, the age or a label changes."""
        kept = self._cached
        if kept is not None and kept[0] is self.z and kept[1] == self.age:
            return kept[2]
        values = self.block.evaluate(self.labels, self.z, self.age)
        self._cached = (self.z, self.age, values)
        return values

    def touch(self) -> None:
        """A label was changed by hand."""
        self._cached = None

    def flip(self, side: int, row: int, weight: float) -> None:
        """Carry a row over the border that its gap `side` measures."""
        self.block.flip(self.labels, side, row, weight)
        self.touch()

    def _weighed(self, values: RowValues, rows: IntArray) -> IntArray:
        """Those of some rows whose multiplier bends."""
        rows = rows[(values.curvature[rows] != 0.0) & (self.labels.kink[rows] < 0)]
        rows = np.array([r for r in rows.tolist() if r not in self.pinned and r != self.pushed], np.int64)
        return rows[np.abs(values.curvature[rows]) * self._own(rows) > _FAINT]

    def _own(self, rows: IntArray) -> Array:
        missing = rows[self.own[rows] == 0.0]
        if missing.size:
            self.model.need(missing)
            slots = self.model.slot[missing]
            self.own[missing] = self.model.diagonal(missing, slots)
        return self.own[rows]

    def settle_rows(self) -> None:
        """Put the right rows in work and invert anew."""
        self.touch()
        values = self.values()
        weighed = self._weighed(values, np.arange(self.model.n))
        fixed = np.union1d(self.labels.held, np.array(sorted(self.pinned), np.int64)).astype(np.int64)
        self.work.D[:] = 0.0
        self.work.D[weighed] = -1.0 / values.curvature[weighed]
        self.work.rebuild(np.concatenate([fixed, weighed]))
        self.z = self.model.apply(self.mu) + self.model.B @ self.b + self.model.c

    def update_row(self, row: int) -> bool:
        """Bring one row in or out of work after its label has changed; False when it can't be held."""
        self.touch()
        if self.work.inverse.place[row] >= 0:
            self.work.remove(row)
        if self.labels.kink[row] >= 0 or row in self.pinned:
            return self.work.add(row, 0.0)
        values = self.values()
        if self._weighed(values, np.array([row])).size:
            return self.work.add(row, -1.0 / float(values.curvature[row]))
        return True

    def _refresh(self, values: RowValues) -> None:
        """D of the weighed rows at the point."""
        rows = self.work.rows
        fixed = self._fixed(rows)
        curvature = np.where(fixed | (values.curvature[rows] == 0.0), -1.0, values.curvature[rows])
        self.work.D[rows] = np.where(fixed, 0.0, -1.0 / curvature)

    def _fixed(self, rows: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        fixed = self.labels.kink[rows] >= 0
        for row in self.pinned:
            fixed |= rows == row
        return np.asarray(fixed)

    # -- moving --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The numbers of the point."""
        return Snapshot(self.age, self.mu, self.b, self.z)

    def become(self, point: Fitted) -> None:
        """Another point at the same age, with its labels."""
        self.mu, self.b, self.z = point.mu.copy(), point.b.copy(), point.z.copy()
        self.labels = point.labels.copy()
        self.pinned.clear()
        self.pushed, self.frozen = -1, False
        self.settle_rows()

    def restore(self, at: Snapshot) -> None:
        """Back to a snapshot (labels are not part of it)."""
        self.age, self.mu, self.b, self.z = at.age, at.mu, at.b, at.z

    def move(self, way: Direction, t: float) -> None:
        """Along a direction."""
        self.mu = self.mu + t * way.mu
        self.b = self.b + t * way.b
        self.z = self.z + t * way.z

    def errors(self, values: RowValues) -> tuple[Array, Array, Array]:
        """How far the point is from its labels' equations: of multipliers (n,), of z in fixed rows (n,), of B'mu (q,)."""
        force = self.mu + values.gradient
        off = np.zeros(self.model.n)
        force[values.held] = 0.0
        off[values.held] = values.u[values.held] - self.z[values.held]
        for row, target in self.pinned.items():
            force[row] = 0.0
            off[row] = target - self.z[row]
        if self.pushed >= 0:
            force[self.pushed] = 0.0
        return force, off, self.model.B.T @ self.mu

    def size_of(self, errors: tuple[Array, Array, Array]) -> float:
        """The largest of the errors, scaled."""
        force, off, border = errors
        total = self.model.force * float(np.sqrt(self.model.n))
        return max(
            float(np.abs(force).max(initial=0.0)) / self.model.force,
            float(np.abs(off).max(initial=0.0)) / self.block.scale,
            float(np.abs(border).max(initial=0.0)) / total,
        )

    def correct(self) -> bool:
        """Newton at the age with the labels; False when it does not converge.

        Only the rows in work are followed. What the others' z owe to them is settled once, at the end: no force bends with it.
        """
        owed, owed_b = np.zeros(self.model.n), np.zeros(self.model.q)
        base = self.z
        last, renewed, found = np.inf, False, False
        for iteration in range(16):
            values = self.values()
            errors = self.errors(values)
            size = self.size_of(errors)
            if size <= _EXACT or (size <= _GOOD and iteration > 1 and size > 0.2 * last):
                found = True
                break
            if not np.isfinite(size) or (iteration > 3 and size > 0.9 * last):
                break
            last = size
            self._refresh(values)
            force, off, border = errors
            rows = self.work.rows
            rest = -force
            rest[rows] = 0.0
            rhs = off
            loose = rows[~self._fixed(rows)]
            rhs[loose] = self.work.D[loose] * force[loose]
            outside = float(np.abs(rest).max(initial=0.0)) > 1e-15 * self.model.force
            if outside or not self.work.usable:
                step = self.work.solve(rhs, -border, rest, tolerance=1e-2)
                good = step.converged
            else:
                inner = self.work.inner(rhs[rows], -border, tolerance=1e-2)
                good = inner.converged
            if not good or self.work.stale:  # D has drifted: invert anew
                if renewed:
                    break
                self.settle_rows()
                base, owed[:], owed_b[:] = self.z, 0.0, 0.0
                renewed, last = True, np.inf
                continue
            if outside or not self.work.usable:
                self.move(step, 1.0)
                base = base + step.z
            else:
                owed[rows] += inner.mu
                owed_b += inner.b
                self.mu, self.z = self.mu.copy(), self.z.copy()
                self.mu[rows] += inner.mu
                self.b = self.b + inner.b
                self.z[rows] += inner.z
            self.newton_steps += 1
        if owed.any() or owed_b.any():
            z = base + self.model.apply(owed) + self.model.B @ owed_b
            z[self.work.rows] = self.z[self.work.rows]
            self.z = z
        return found

    def residual(self) -> float:
        """The scaled KKT residual: errors, and multipliers outside their bounds."""
        values = self.values()
        worst = self.size_of(self.errors(values))
        if values.held.size:
            s = -self.mu[values.held]
            outside = np.maximum(values.low - s, s - values.high)
            worst = max(worst, float(outside.max()) / self.model.force)
        return worst

    # -- directions ----------------------------------------------------------------------------------------------------

    def by_age(self) -> Direction:
        """d/d(age) under the labels."""
        values = self.values()
        self._refresh(values)
        rows = self.work.rows
        loose = rows[~self._fixed(rows)]
        rhs = np.zeros(self.model.n)
        rhs[loose] = self.work.D[loose] * values.by_age[loose]
        rest = -values.by_age
        rest[rows] = 0.0
        return self._solved(rhs, rest)

    def by_row(self, row: int, sign: float) -> Direction:
        """d/dt as a pinned row's z, or a pushed row's multiplier, moves at unit speed; at a constant age."""
        self._refresh(self.values())
        rhs, rest = np.zeros(self.model.n), np.zeros(self.model.n)
        (rest if row == self.pushed else rhs)[row] = sign
        return self._solved(rhs, rest)

    def _solved(self, rhs: Array, rest: Array) -> Direction:
        border = np.zeros(self.model.q)
        way = self.work.solve(rhs, border, rest)
        if not way.converged or self.work.stale:
            self.settle_rows()
            way = self.work.solve(rhs, border, rest)
        return way

    def gaps(self, values: RowValues, way: Direction, dage: float, moving: int = -1) -> tuple[Array, Array]:
        """Distances (4, n) to the next change of labels and their rates along a direction; pinned rows have none.

        But for `moving`, a pinned row that the direction moves.
        """
        block = self.block
        if block.loops is None or not isinstance(block.weighting, SelfPacedWeights):
            gap, rate = block.gaps(self.labels, values, -self.mu, way.z, -way.mu, self.age, dage)
        else:
            gap, rate = self._fast_gaps(values, way, dage)
        for row in self.pinned:
            if row != moving:
                gap[:, row] = FAR
        if self.frozen:
            gap[2:] = FAR
        return gap, rate

    def _fast_gaps(self, values: RowValues, way: Direction, dage: float) -> tuple[Array, Array]:
        from spdsl.solvers.kernel_path.loops import gaps

        block, labels = self.block, self.labels
        assert block.weighting is not None
        bands, moves = block.weighting.borders(self.age)
        gap, rate = np.empty((4, block.m)), np.empty((4, block.m))
        gaps(
            labels.piece, labels.kink, labels.band, values.u, values.loss, values.slope, way.z, block.borders,
            bands, moves, block.scale, self.age, dage, gap, rate,
        )  # fmt: skip
        block.held_gaps(labels, values, -self.mu, -way.mu, dage, gap, rate)
        return gap, rate

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
from spdsl.solvers.active_set.weighting import IntArray
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
        """The loss at the point."""
        return self.block.evaluate(self.labels, self.z, self.age)

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
        values = self.values()
        weighed = self._weighed(values, np.arange(self.model.n))
        fixed = np.union1d(self.labels.held, np.array(sorted(self.pinned), np.int64)).astype(np.int64)
        self.work.D[:] = 0.0
        self.work.D[weighed] = -1.0 / values.curvature[weighed]
        self.work.rebuild(np.concatenate([fixed, weighed]))
        self.z = self.model.apply(self.mu) + self.model.B @ self.b + self.model.c

    def update_row(self, row: int) -> bool:
        """Bring one row in or out of work after its label has changed; False when it can't be held."""
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
        """Newton at the age with the labels; False when it does not converge."""
        last, renewed = np.inf, False
        for iteration in range(16):
            values = self.values()
            errors = self.errors(values)
            size = self.size_of(errors)
            if size <= _EXACT or (size <= _GOOD and iteration > 1 and size > 0.2 * last):
                return True
            if not np.isfinite(size) or (iteration > 3 and size > 0.9 * last):
                return False
            last = size
            self._refresh(values)
            force, off, border = errors
            rows = self.work.rows
            rest = -force
            rest[rows] = 0.0
            rhs = off
            loose = rows[~self._fixed(rows)]
            rhs[loose] = self.work.D[loose] * force[loose]
            step = self.work.solve(rhs, -border, rest, tolerance=1e-2)
            if not step.converged or self.work.worst_rate > 0.5:  # D has drifted: invert anew
                self.settle_rows()
                if renewed:
                    return False
                renewed, last = True, np.inf
                continue
            self.move(step, 1.0)
            self.newton_steps += 1
        return False

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
        if not way.converged or self.work.worst_rate > 0.5:
            self.settle_rows()
            way = self.work.solve(rhs, border, rest)
        return way

    def gaps(self, values: RowValues, way: Direction, dage: float) -> tuple[Array, Array]:
        """Distances (4, n) to the next change of labels and their rates along a direction."""
        gap, rate = self.block.gaps(self.labels, values, -self.mu, way.z, -way.mu, self.age, dage)
        for row in self.pinned:
            gap[:, row] = FAR
        if self.frozen:
            gap[2:] = FAR
        return gap, rate

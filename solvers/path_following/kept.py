"""The inverse of a bordered system [H B'; B 0], kept up to date while its terms change one at a time.

In: a system and a labelled point. Out: directions of (x, multipliers) under a force on x. Setting a coordinate free, fixing it,
holding a row, letting it go, and a row's change of curvature are rank-one updates: O(k^2) for k free coordinates and held rows.

Every update says whether what is left is still regular; when it is not, the caller solves the problem another way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.system import Evaluation, System, dense
from spdsl.solvers.kernel_path.bordered import BorderedInverse

__all__ = ["KeptInverse", "row_of"]

_SINGULAR = 1e-10  # a pivot below this share of its own terms is none


class KeptInverse:
    """The bordered inverse over the free coordinates and the held rows, with the Hessian G (p, p) over all coordinates."""

    def __init__(self, system: System, evaluation: Evaluation) -> None:
        self.system = system
        sizes = [block.m for block in system.blocks]
        self.starts = np.cumsum([system.p, *sizes])  # ids of rows begin here, block by block
        self.inverse = BorderedInverse(0, int(self.starts[-1]))
        self.rows: dict[int, Array] = {}  # id -> a (p,) of the held rows
        self._still = tuple(np.zeros(block.m) for block in system.blocks)
        self.rebuild(evaluation)

    @property
    def usable(self) -> bool:
        """Is the system regular?"""
        return self.inverse.usable

    def rebuild(self, evaluation: Evaluation) -> None:
        """All anew from a point."""
        system, p = self.system, self.system.p
        curvatures = [values.curvature for values in evaluation.rows]
        self.G = system.assemble(np.arange(p), curvatures, evaluation.bend)
        self.rows = {}
        for number, values in enumerate(evaluation.rows):
            for row in values.held.tolist():
                self.rows[self._id(number, row)] = self._row(number, row)
        free = evaluation.free
        index = np.concatenate([free, np.array(list(self.rows), np.int64)])
        k, f = index.size, free.size
        M = np.zeros((k, k))
        M[:f, :f] = self.G[np.ix_(free, free)]
        for position, a in enumerate(self.rows.values()):
            M[f + position, :f] = M[:f, f + position] = a[free]
        self.inverse.rebuild(index, M)

    def _id(self, number: int, row: int) -> int:
        return int(self.starts[number]) + row

    def _row(self, number: int, row: int) -> Array:
        return row_of(self.system.blocks[number].A, row)

    # -- directions ----------------------------------------------------------------------------------------------------

    def solve(self, force: Array, off: dict[int, float] | None = None) -> tuple[Array, tuple[Array, ...]]:
        """(dx, ds) with H dx + B'ds = force over the free coordinates and B dx = off (0 where not given)."""
        index, p = self.inverse.index, self.system.p
        if not self.rows:
            dx = np.zeros(p)
            dx[index] = self.inverse.N[: index.size, : index.size] @ force[index]
            return dx, self._still
        is_row = index >= p
        right = np.zeros(index.size)
        right[~is_row] = force[index[~is_row]]
        if off:
            right[is_row] = [off.get(int(i), 0.0) for i in index[is_row]]
        _, y = self.inverse.apply(np.zeros(0), right)
        dx = np.zeros(p)
        dx[index[~is_row]] = y[~is_row]
        ds = [np.zeros(block.m) for block in self.system.blocks]
        for i, value in zip(index[is_row].tolist(), y[is_row].tolist()):
            number = int(np.searchsorted(self.starts, i, side="right")) - 1
            ds[number][i - int(self.starts[number])] = value
        return dx, tuple(ds)

    def change(self, dx: Array, ds: tuple[Array, ...]) -> Array:
        """How the gradient (p,) changes along a direction, the force that drives it apart."""
        total = np.asarray(self.G @ dx)
        for i, a in self.rows.items():
            number = int(np.searchsorted(self.starts, i, side="right")) - 1
            total += a * float(ds[number][i - int(self.starts[number])])
        return total

    # -- updates -------------------------------------------------------------------------------------------------------

    def free(self, j: int) -> bool:
        """Set a coordinate free."""
        index, p = self.inverse.index, self.system.p
        column = np.where(index < p, self.G[np.minimum(index, p - 1), j], 0.0)
        for position in np.flatnonzero(index >= p).tolist():
            column[position] = self.rows[int(index[position])][j]
        return self._added(j, column, float(self.G[j, j]))

    def fix(self, j: int) -> bool:
        """Fix a coordinate."""
        self.inverse.remove(j)
        return self.inverse.usable

    def hold(self, number: int, row: int) -> bool:
        """Hold a row at its kink."""
        i, a, index = self._id(number, row), self._row(number, row), self.inverse.index
        column = np.where(index < self.system.p, a[np.minimum(index, self.system.p - 1)], 0.0)
        if not self._added(i, column, 0.0):
            return False
        self.rows[i] = a
        return True

    def release(self, number: int, row: int) -> bool:
        """Let a held row go."""
        i = self._id(number, row)
        self.inverse.remove(i)
        del self.rows[i]
        return self.inverse.usable

    def _added(self, i: int, column: Array, diagonal: float) -> bool:
        pivot, u = self.inverse.pivot(column, diagonal)
        terms = max(abs(diagonal), float(np.abs(column) @ np.abs(u)))
        if not np.isfinite(pivot) or abs(pivot) <= _SINGULAR * terms or terms == 0.0:
            return False
        self.inverse.add(i, column, diagonal)
        return True

    def bend(self, a: Array, change: float) -> bool:
        """Add change * a a' to the Hessian."""
        if change == 0.0:
            return True
        self.G += change * np.outer(a, a)
        index = self.inverse.index
        column = (
            np.where(index < self.system.p, a[np.minimum(index, self.system.p - 1)], 0.0) if self.rows else a[index]
        )
        u = self.inverse.N[: index.size, : index.size] @ column
        ratio = 1.0 + change * float(column @ u)
        if not np.isfinite(ratio) or ratio <= 1e-8:
            return False
        k = index.size
        self.inverse.N[:k, :k] -= (change / ratio) * np.outer(u, u)
        return True


def row_of(A: Any, row: int) -> Array:
    """One row of a dense or sparse design (p,)."""
    return np.array(A[row]) if isinstance(A, np.ndarray) else dense(A[[row]])[0]

"""The inverse of a symmetric bordered system, kept up to date while rows enter and leave it one at a time.

In: M = [0 B'; B Q - diag(D)] over the rows in work. Out: approximate solutions (`apply`), exact again after a few refinements
by whoever has M. Adding and removing a row are rank-one updates, O(k^2) (bordering and its reverse).
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray

__all__ = ["BorderedInverse"]


def _rank_one(N: Array, k: int, u: Array, factor: float) -> None:
    if k <= 64:
        N[:k, :k] += factor * np.outer(u, u)
        return
    from spdsl.solvers.kernel_path.loops import rank_one

    rank_one(N, k, np.ascontiguousarray(u), factor)


class BorderedInverse:
    """The inverse over q border columns and the rows `index`, in this order; `usable` is False while M is singular."""

    def __init__(self, q: int, n: int) -> None:
        self.q = q
        self.index = np.zeros(0, np.int64)
        self.place = np.full(n, -1)
        self.N = np.zeros((q + 16, q + 16))
        self.usable = q == 0

    @property
    def k(self) -> int:
        """Size of the system."""
        return self.q + int(self.index.size)

    def rebuild(self, index: IntArray, M: Array) -> None:
        """Start from a matrix: border first, then the rows `index`."""
        self.place[self.index] = -1
        self.index = index.copy()
        self.place[index] = np.arange(index.size)
        k = self.k
        if self.N.shape[0] < k:
            room = int(1.3 * k) + 16
            self.N = np.zeros((room, room))
        self.usable = k == 0
        if k == 0:
            return
        size = float(np.abs(M).max())
        try:
            with np.errstate(all="ignore"):
                inverse = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            return
        if not np.isfinite(inverse).all() or float(np.abs(inverse).max()) * size > 1e14:
            return
        self.N[:k, :k] = 0.5 * (inverse + inverse.T)
        self.usable = True

    def make_room(self, k: int) -> None:
        """Room for a system of that size, without growing on the way."""
        if self.N.shape[0] < k:
            grown = np.zeros((k, k))
            grown[: self.k, : self.k] = self.N[: self.k, : self.k]
            self.N = grown

    def apply(self, border: Array, rows: Array) -> tuple[Array, Array]:
        """N times (border (q,), rows (len(index),))."""
        k = self.k
        y = self.N[:k, :k] @ np.concatenate([border, rows])
        return y[: self.q], y[self.q :]

    def pivot(self, column: Array, diagonal: float) -> tuple[float, Array]:
        """The pivot of a new row with this column (q + len(index),), and N times the column."""
        u = self.N[: self.k, : self.k] @ column
        return diagonal - float(column @ u), u

    def add(self, row: int, column: Array, diagonal: float) -> float:
        """Border the system by a row; returns its pivot."""
        pivot, u = self.pivot(column, diagonal)
        self.border(row, pivot, u)
        return pivot

    def border(self, row: int, pivot: float, u: Array) -> None:
        """Border the system by a row of which `pivot` is known already."""
        k = self.k
        if k + 1 > self.N.shape[0]:
            grown = np.zeros((int(1.5 * k) + 17, int(1.5 * k) + 17))
            grown[:k, :k] = self.N[:k, :k]
            self.N = grown
        _rank_one(self.N, k, u, 1.0 / pivot)
        self.N[:k, k] = self.N[k, :k] = -u / pivot
        self.N[k, k] = 1.0 / pivot
        self.place[row] = self.index.size
        self.index = np.append(self.index, row)

    def remove(self, row: int) -> None:
        """Take a row out; unusable when what is left is singular to rounding."""
        k = self.k
        last, here = k - 1, self.q + int(self.place[row])
        if here != last:  # the last row takes its place
            N, moved = self.N, int(self.index[-1])
            N[[here, last], :k] = N[[last, here], :k]
            N[:k, [here, last]] = N[:k, [last, here]]
            self.index[self.place[row]] = moved
            self.place[moved] = self.place[row]
        self.place[row] = -1
        self.index = self.index[:-1]
        corner = float(self.N[last, last])
        column = self.N[:last, last].copy()
        if abs(corner) <= 1e-12 * float(np.abs(column).max(initial=0.0)):
            self.usable = False
            return
        _rank_one(self.N, last, column, -1.0 / corner)

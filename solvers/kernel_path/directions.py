"""Directions of a dual model: how multipliers, intercepts and z move when the rows in work are told what to do.

In: the rows in work with their D (0 for held rows, -1/curvature for weighed ones) and right-hand sides. Out: (dmu, db, dz) with

    Q dmu + B db - D dmu = rhs on the rows in work,   B'dmu = border,   dmu given on all other rows

to rounding: the kept inverse solves it, and products with the kernel between the rows in work, kept beside it, refine, since D
drifts with the age.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.kernel_path.bordered import BorderedInverse
from spdsl.solvers.kernel_path.model import DualModel

__all__ = ["Direction", "Directions", "Inner"]

_FEW = 3  # refinements that rounding alone may take
_EASY, _PRICE = 8.0, 20.0  # an inverse of k rows costs about k / 20 refinements
_DEPENDENT = 1e-11  # of the diagonal entry: a pivot below this is none


@dataclass(frozen=True)
class Direction:
    """dmu (n,), db (q,), dz (n,); `converged` says that the equations hold to the tolerance asked for."""

    mu: Array
    b: Array
    z: Array
    converged: bool


@dataclass(frozen=True)
class Inner:
    """A direction over the rows in work alone: dmu and dz there (k,), and db (q,)."""

    mu: Array
    b: Array
    z: Array
    converged: bool


class Directions:
    """The rows in work and their system."""

    def __init__(self, model: DualModel) -> None:
        self.model = model
        self.inverse = BorderedInverse(model.q, model.n)
        self.D = np.zeros(model.n)
        self.refinements = 0
        self.worst_rate = 0.0  # of convergence, since the last rebuild
        self.extra = 0  # refinements beyond a few, since the last rebuild
        self._Q = np.zeros((16, 16))  # over the rows in work, in their order, with room to grow

    @property
    def rows(self) -> IntArray:
        """The rows in work."""
        return self.inverse.index

    @property
    def usable(self) -> bool:
        """Is the system not singular?"""
        return self.inverse.usable

    @property
    def stale(self) -> bool:
        """Is it time to invert anew: have the refinements that the drift costs been as dear as that?"""
        return self.worst_rate > 0.9 or self.extra > _EASY + self.rows.size / _PRICE

    @property
    def Q(self) -> Array:
        """Q over the rows in work (k, k)."""
        k = self.rows.size
        return self._Q[:k, :k]

    def rebuild(self, rows: IntArray) -> None:
        """Invert anew."""
        q, k = self.model.q, rows.size
        self.worst_rate, self.extra = 0.0, 0
        self._reserve(k)
        self._Q[:k, :k] = self.model.part(rows, rows)
        M = np.zeros((q + k, q + k))
        M[q:, q:] = self._Q[:k, :k]
        M[np.arange(q, q + k), np.arange(q, q + k)] -= self.D[rows]
        M[q:, :q] = self.model.B[rows]
        M[:q, q:] = self.model.B[rows].T
        self.inverse.rebuild(rows, M)

    def add(self, row: int, D: float) -> bool:
        """Take a row into work; False, and nothing changes, when it depends on the others."""
        self.D[row] = D
        if not self.inverse.usable:
            self.rebuild(np.append(self.rows, row))
            return True
        rows, k = self.rows, self.rows.size
        entries = self.model.part(np.array([row]), np.append(rows, row))[0]
        own = float(entries[k])
        pivot, u = self.inverse.pivot(np.concatenate([self.model.B[row], entries[:k]]), own - D)
        if abs(pivot) <= _DEPENDENT * (own + abs(D)):
            self.D[row] = 0.0
            return False
        self._reserve(k + 1)
        self._Q[k, : k + 1] = self._Q[: k + 1, k] = entries
        self.inverse.border(row, pivot, u)
        return True

    def remove(self, row: int) -> None:
        """Take a row out of work."""
        self.D[row] = 0.0
        if not self.inverse.usable:
            self.rebuild(self.rows[self.rows != row])
            return
        here, last = int(self.inverse.place[row]), self.rows.size - 1
        self.inverse.remove(row)  # the last row takes its place
        if here != last:
            Q = self._Q
            Q[here, :last] = Q[last, :last]
            Q[:last, here] = Q[here, :last]
            Q[here, here] = Q[last, last]
        if not self.inverse.usable:
            self.rebuild(self.rows)

    def _reserve(self, k: int) -> None:
        if self._Q.shape[0] < k:
            old = self._Q
            self._Q = np.zeros((int(1.3 * k) + 16, int(1.3 * k) + 16))
            self._Q[: old.shape[0], : old.shape[0]] = old

    def solve(self, rhs: Array, border: Array, rest: Array | None = None, tolerance: float = 1e-10) -> Direction:
        """The direction with right-hand sides `rhs` (n,), `border` (q,) and `rest` = dmu (n,) on rows not in work.

        An unusable system is a flat one: nothing but `rest` moves.
        """
        model, rows = self.model, self.rows
        mu = np.zeros(model.n) if rest is None else rest.copy()
        moved = model.apply(mu)
        if not self.inverse.usable or self.inverse.k == 0:
            return Direction(mu, np.zeros(model.q), moved, rows.size == 0)
        inner = self.inner(rhs[rows] - moved[rows], border - model.B.T @ mu, tolerance)
        mu[rows] += inner.mu
        within = np.zeros(model.n)
        within[rows] = inner.mu
        return Direction(mu, inner.b, moved + model.apply(within) + model.B @ inner.b, inner.converged)

    def inner(self, rhs: Array, border: Array, tolerance: float = 1e-10) -> Inner:
        """The direction with right-hand sides `rhs` (k,) over the rows in work, where nothing else moves."""
        model, rows = self.model, self.rows
        Q, D, B = self.Q, self.D[rows], model.B[rows]
        mu, b, z = np.zeros(rows.size), np.zeros(model.q), np.zeros(rows.size)
        if not self.inverse.usable or self.inverse.k == 0:
            return Inner(mu, b, z, rows.size == 0)
        first = last = np.inf
        for iteration in range(12 + min(rows.size // 25, 60)):
            error = rhs - (z - D * mu)
            error_border = border - B.T @ mu
            size = max(float(np.abs(error).max(initial=0.0)), float(np.abs(error_border).max(initial=0.0)))
            if iteration == 0:
                first = size
            if size <= tolerance * first or (iteration > 1 and size <= 1e-9 * first and size > 0.3 * last):
                return Inner(mu, b, z, True)
            if not np.isfinite(size) or (iteration > 2 and size > 0.9 * last):
                break
            if iteration:
                self.worst_rate = max(self.worst_rate, size / last if last > 1e-12 * first else 0.0)
            last = size
            self.extra += iteration >= _FEW
            db, step = self.inverse.apply(error_border, error)
            mu = mu + step
            b = b + db
            z = z + Q @ step + B @ db
            self.refinements += 1
        self.worst_rate = 1.0
        return Inner(mu, b, z, False)

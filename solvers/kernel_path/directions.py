"""Directions of a dual model: how multipliers, intercepts and z move when the rows in work are told what to do.

In: the rows in work with their D (0 for held rows, -1/curvature for weighed ones) and right-hand sides. Out: (dmu, db, dz) with

    Q dmu + B db - D dmu = rhs on the rows in work,   B'dmu = border,   dmu given on all other rows

to rounding: the kept inverse solves it, and products with the kernel's rows refine, since D drifts with the age.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.kernel_path.bordered import BorderedInverse
from spdsl.solvers.kernel_path.model import DualModel

__all__ = ["Direction", "Directions"]

_DEPENDENT = 1e-11  # of the diagonal entry: a pivot below this is none


@dataclass(frozen=True)
class Direction:
    """dmu (n,), db (q,), dz (n,); `converged` says that the equations hold to the tolerance asked for."""

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

    @property
    def rows(self) -> IntArray:
        """The rows in work."""
        return self.inverse.index

    @property
    def usable(self) -> bool:
        """Is the system not singular?"""
        return self.inverse.usable

    def matrix(self, rows: IntArray) -> Array:
        """M over some rows, border first."""
        q = self.model.q
        M = np.zeros((q + rows.size, q + rows.size))
        M[q:, q:] = self.model.part(rows, rows)
        M[np.arange(q, q + rows.size), np.arange(q, q + rows.size)] -= self.D[rows]
        M[q:, :q] = self.model.B[rows]
        M[:q, q:] = self.model.B[rows].T
        return M

    def rebuild(self, rows: IntArray) -> None:
        """Invert anew."""
        self.worst_rate = 0.0
        self.inverse.rebuild(rows, self.matrix(rows))

    def add(self, row: int, D: float) -> bool:
        """Take a row into work; False, and nothing changes, when it depends on the others."""
        self.D[row] = D
        if not self.inverse.usable:
            self.rebuild(np.append(self.rows, row))
            return True
        rows = self.rows
        self.model.need(np.array([row]))
        column = np.concatenate([self.model.B[row], self.model.part(np.array([row]), rows)[0]])
        own = float(self.model.part(np.array([row]), np.array([row]))[0, 0])
        pivot, _ = self.inverse.pivot(column, own - D)
        if abs(pivot) <= _DEPENDENT * (own + abs(D)):
            self.D[row] = 0.0
            return False
        self.inverse.add(row, column, own - D)
        return True

    def remove(self, row: int) -> None:
        """Take a row out of work."""
        self.D[row] = 0.0
        if self.inverse.usable:
            self.inverse.remove(row)
            if not self.inverse.usable:
                self.rebuild(self.rows)
        else:
            self.rebuild(self.rows[self.rows != row])

    def solve(self, rhs: Array, border: Array, rest: Array | None = None, tolerance: float = 1e-10) -> Direction:
        """The direction with right-hand sides `rhs` (n,), `border` (q,) and `rest` = dmu (n,) on rows not in work.

        An unusable system is a flat one: nothing but `rest` moves.
        """
        model, rows = self.model, self.rows
        mu = np.zeros(model.n) if rest is None else rest.copy()
        b = np.zeros(model.q)
        z = model.apply(mu)
        if not self.inverse.usable or self.inverse.k == 0:
            return Direction(mu, b, z, rows.size == 0)
        first = last = np.inf
        for iteration in range(12):
            error = rhs[rows] - (z[rows] - self.D[rows] * mu[rows])
            error_border = border - model.B.T @ mu
            size = max(float(np.abs(error).max(initial=0.0)), float(np.abs(error_border).max(initial=0.0)))
            if iteration == 0:
                first = size
            if size <= tolerance * first or (iteration > 1 and size <= 1e-9 * first and size > 0.3 * last):
                return Direction(mu, b, z, True)
            if not np.isfinite(size) or (iteration > 2 and size > 0.9 * last):
                break
            if iteration:
                self.worst_rate = max(self.worst_rate, size / last if last > 1e-12 * first else 0.0)
            last = size
            db, step = self.inverse.apply(error_border, error)
            full = np.zeros(model.n)
            full[rows] = step
            mu += full
            b += db
            z += model.apply(full) + model.B @ db
            self.refinements += 1
        self.worst_rate = 1.0
        return Direction(mu, b, z, False)

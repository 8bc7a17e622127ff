"""Bordered linear systems [H B'; B 0]: solved through the null space of B, with the verdict on Z'HZ that decides jumps.

In: H over the free coordinates and the rows B of held terms. Out: solutions, and whether the reduced Hessian is positive
definite, flat (semidefinite to rounding) or indefinite.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.linalg import lapack

from spdsl.problem.functions import Array

__all__ = ["BorderedFactor", "Verdict", "gram", "independent_rows"]

Verdict = Literal["definite", "flat", "indefinite"]

_MANY, _FEW = 2000, 24  # rows from which on, and columns up to which, a compiled loop beats BLAS with its copies
_PIVOT = 1e-12  # a Cholesky pivot below this share of its diagonal entry counts as zero


def gram(A: Any, weights: Array) -> Array:
    """A' diag(weights) A as a dense array; rows of weight 0 cost nothing when they are many."""
    if isinstance(A, np.ndarray) and A.shape[0] >= _MANY and A.shape[1] <= _FEW and A.flags.c_contiguous:
        from spdsl.solvers.active_set.loops import weighted_gram

        return np.asarray(weighted_gram(A, weights))
    used = np.flatnonzero(weights)
    if used.size < 0.7 * weights.size:
        A, weights = A[used], weights[used]
    if hasattr(A, "tocsr"):
        import scipy.sparse

        return np.asarray((A.T @ (scipy.sparse.diags_array(weights) @ A)).toarray())
    return np.asarray(A.T @ (weights[:, None] * A))


class BorderedFactor:
    """The factorized system of a Hessian H (f, f) and independent border rows B (k, f); `faint` is no curvature."""

    def __init__(self, H: Array, B: Array, faint: float = 0.0) -> None:
        self.faint = faint
        self.H = H
        self.f = H.shape[0]
        self.k = B.shape[0]
        self.Y: Array | None = None
        self.Z: Array | None = None
        self.dependent = False
        reduced = H
        if self.k:
            Q, R = np.linalg.qr(B.T, mode="complete")
            self.R = R[: self.k]
            diagonal = np.abs(np.diag(self.R)) if self.k <= self.f else np.zeros(1)
            self.dependent = bool(self.k > self.f or diagonal.min(initial=np.inf) <= 1e-12 * diagonal.max())
            self.Y, self.Z = Q[:, : self.k], Q[:, self.k :]
            reduced = self.Z.T @ H @ self.Z
            reduced = 0.5 * (reduced + reduced.T)
        self.reduced = reduced
        self._chol: Array | None = None
        self._eigen: tuple[Array, Array] | None = None
        self.verdict: Verdict = self._factor()

    def _factor(self) -> Verdict:
        if self.reduced.shape[0] == 0:
            return "definite"
        factor, info = lapack.dpotrf(self.reduced, lower=1, clean=0)
        if info == 0 and (factor.diagonal() ** 2 > _PIVOT * self.reduced.diagonal()).all():
            self._chol = factor
            return "definite"
        values, vectors = np.linalg.eigh(self.reduced)
        self._eigen = (values, vectors)
        size = float(np.abs(values).max())
        if values[0] < -max(1e-11 * size, self.faint):
            return "indefinite"
        return "flat"

    def solve(self, top: Array, bottom: Array) -> tuple[Array, Array]:
        """(x, s) with H x + B's = top and B x = bottom; in flat directions the shortest x."""
        if self.k == 0:
            return self._solve_reduced(top), np.zeros(0)
        assert self.Y is not None
        assert self.Z is not None
        y = np.linalg.solve(self.R.T, bottom)
        x = self.Y @ y
        if self.Z.shape[1]:
            x = x + self.Z @ self._solve_reduced(self.Z.T @ (top - self.H @ x))
        s = np.linalg.solve(self.R, self.Y.T @ (top - self.H @ x))
        return x, s

    def _solve_reduced(self, right: Array) -> Array:
        if self.reduced.shape[0] == 0:
            return np.zeros_like(right)
        if self._chol is not None:
            solution, _ = lapack.dpotrs(self._chol, right, lower=1)
            return np.asarray(solution)
        assert self._eigen is not None
        values, vectors = self._eigen
        size = np.abs(values).max()
        keep = np.abs(values) > max(1e-11 * size, self.faint)
        part = vectors[:, keep]
        return np.asarray(part @ ((right.T @ part) / values[keep]).T)

    def least_relative(self, other: Array) -> float:
        """The smallest eigenvalue of `other` (f - k, f - k) relative to this reduced Hessian, which must be definite."""
        assert self._chol is not None
        half, _ = lapack.dtrtrs(self._chol, other, lower=1)
        whole, _ = lapack.dtrtrs(self._chol, half.T, lower=1)
        values, _, info = lapack.dsyevd(0.5 * (whole + whole.T), compute_v=0)
        return float(values[0]) if info == 0 else -np.inf

    def project(self, gradient: Array) -> Array:
        """Z'g."""
        return gradient if self.Z is None else np.asarray(self.Z.T @ gradient)

    def lift(self, z: Array) -> Array:
        """Z z."""
        return z if self.Z is None else np.asarray(self.Z @ z)

    def multipliers(self, gradient: Array) -> Array:
        """Least-squares s of B's = -g."""
        if self.k == 0:
            return np.zeros(0)
        assert self.Y is not None
        return np.asarray(np.linalg.solve(self.R, -(self.Y.T @ gradient)))


def independent_rows(
    rows: Array, first: np.ndarray[Any, np.dtype[np.bool_]] | None = None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Indices of a largest set of linearly independent rows (k, f), found by pivoted QR, ascending.

    Parameters
    ----------
    first : bool array (k,), optional
        Rows that come before all others: the rest is chosen to be independent of them.
    """
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        return np.zeros(0, np.int64)
    if first is not None and np.any(first):
        return _independent_after(rows, first)
    from scipy.linalg import qr

    R, pivots = qr(rows.T, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > 1e-11 * max(diagonal.max(initial=0.0), 1e-300)).sum())
    return np.sort(pivots[:rank])


def _independent_after(rows: Array, first: np.ndarray[Any, np.dtype[np.bool_]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    before = np.flatnonzero(first)
    kept = before[independent_rows(rows[before])]
    basis, _ = np.linalg.qr(rows[kept].T)
    others = np.flatnonzero(~first)
    rest = rows[others] - (rows[others] @ basis) @ basis.T
    sizes = np.linalg.norm(rows[others], axis=1)
    others, rest = (part[np.linalg.norm(rest, axis=1) > 1e-11 * sizes] for part in (others, rest))
    return np.sort(np.concatenate([kept, others[independent_rows(rest)]]))

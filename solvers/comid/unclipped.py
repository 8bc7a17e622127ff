"""M while no eigenvalue can have reached 0: then steps only add to it, and no decomposition is needed.

In: pairs and weights, under the squared Frobenius divergence with a trace norm or none. Out: the same M as a full
eigendecomposition gives.

- `Factors`: raw pairs are appended as rows, O(d k) a step, while a lower bound on the eigenvalues proves them
  positive.
- `Dense`: the same once rows would outnumber what is useful. The proof is first that bound, then a Cholesky
  factor of M minus the shrinks to come: downdates keep M positive definite as long as sum w u'M^-1 u < 1.
  O(d^2) a step, one factorization in many.

When the proof fails a step goes through `Spectrum`, which clips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.divergences import Penalty, SquaredFrobenius
from spdsl.solvers.comid.representation import Block, Representation, decrease
from spdsl.solvers.comid.spectrum import Spectrum

__all__ = ["Dense", "Factors", "factor_limit"]

_LOOK_AHEAD = 64.0  # shrinks that one Cholesky factorization provides for


class Factors:
    """M = (level - tau) I + F' diag(coef) F, proven positive definite while tau < room (squared Frobenius,
    trace norm).
    """

    def __init__(self, F: Array, coef: Array, count: int, level: float, tau: float, room: float, trace: float) -> None:
        self.F, self.coef, self.count = F, coef, count
        self.level, self.tau, self.room, self._trace = level, tau, room, trace
        self.dimension = F.shape[1]
        self.scans = True

    @staticmethod
    def identity(d: int, level: float) -> Factors:
        """M = level I."""
        capacity = min(64, factor_limit(d))
        return Factors(np.empty((capacity, d)), np.empty(capacity), 0, level, 0.0, level, d * level)

    def scan(self, block: Block, start: int, mu: float) -> int:
        from spdsl.solvers.comid.loops import scan_factors

        stop, self.tau = scan_factors(
            block.U, block.sign, block.slope, block.offset, block.low, block.high, block.shrink, start,
            self.F[: self.count], self.coef[: self.count], self.level, self.tau, mu, self.room, self._trace,
            block.margins, block.traces,
        )  # fmt: skip
        return int(stop)

    def squares(self, U: Array) -> Array:
        P = U @ self.F[: self.count].T
        return np.asarray((self.level - self.tau) * np.einsum("ij,ij->i", U, U) + (P * P) @ self.coef[: self.count])

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        sizes = np.einsum("ij,ij->i", U, U)
        loss = decrease(sizes, weights)
        if self.room - loss <= self.tau + penalty.trace:
            spectrum = self.spectrum()
            return spectrum.step(U, weights, penalty)
        if self.count + len(U) > factor_limit(self.dimension):
            return self.dense().step(U, weights, penalty)
        self._reserve(len(U))
        stop = self.count + len(U)
        self.F[self.count : stop] = U
        self.coef[self.count : stop] = weights
        self.count = stop
        self.room -= loss
        self.tau += penalty.trace
        self._trace += float(weights @ sizes)
        return self

    def _reserve(self, more: int) -> None:
        if self.count + more <= len(self.F):
            return
        needed = self.count + more
        capacity = min(max(2 * len(self.F), needed), max(factor_limit(self.dimension), needed))
        F, coef = np.empty((capacity, self.dimension)), np.empty(capacity)
        F[: self.count], coef[: self.count] = self.F[: self.count], self.coef[: self.count]
        self.F, self.coef = F, coef

    def spectrum(self) -> Spectrum:
        """The exact eigenvalues: a QR factorization of the factors and one small eigendecomposition."""
        F, coef = self.F[: self.count], self.coef[: self.count]
        Q, R = np.linalg.qr(F.T)
        theta, W = np.linalg.eigh((R * coef) @ R.T)
        return Spectrum(SquaredFrobenius(), np.ascontiguousarray((Q @ W).T), theta + self.level, self.level, self.tau)

    def dense(self) -> Dense:
        """The same as a full matrix."""
        F, coef = self.F[: self.count], self.coef[: self.count]
        D = (F.T * coef) @ F
        D = 0.5 * (D + D.T)
        D.flat[:: self.dimension + 1] += self.level
        return Dense(D, self.tau, self.room)

    def matrix(self) -> Array:
        M = self.dense().D
        M.flat[:: self.dimension + 1] -= self.tau
        return M

    def trace(self) -> float:
        return float(self._trace - self.dimension * self.tau)

    def factor(self) -> tuple[Array, Array, float]:
        return self.F[: self.count].copy(), self.coef[: self.count].copy(), self.level - self.tau

    def copy(self) -> Factors:
        return Factors(self.F.copy(), self.coef.copy(), self.count, self.level, self.tau, self.room, self._trace)


class Dense:
    """M = D - tau I, proven positive definite while tau < room (squared Frobenius, trace norm)."""

    def __init__(self, D: Array, tau: float, room: float, proof: _Proof | None = None) -> None:
        self.D, self.tau, self.room, self.proof = D, tau, room, proof
        self._trace = float(np.trace(D))
        self.dimension = len(D)
        self.scans = True

    def scan(self, block: Block, start: int, mu: float) -> int:
        from spdsl.solvers.comid.loops import scan_dense

        stop, self.tau = scan_dense(
            block.U, block.sign, block.slope, block.offset, block.low, block.high, block.shrink, start,
            self.D, self.tau, mu, self._room(), self._trace, block.margins, block.traces,
        )  # fmt: skip
        return int(stop)

    def _room(self) -> float:
        return self.room if self.proof is None else max(self.room, self.proof.room)

    def squares(self, U: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", U @ self.D, U) - self.tau * np.einsum("ij,ij->i", U, U))

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        loss = decrease(np.einsum("ij,ij->i", U, U), weights)
        tau = self.tau + penalty.trace
        proven = self.room - loss > tau
        if self.proof is not None:
            self.proof = self.proof.after(U, weights)
            proven = proven or (self.proof is not None and self.proof.room > tau)
        self._add(U, weights)
        self.room -= loss
        if not proven:
            self.proof = _Proof.of(self.D, tau, penalty.trace)
            if self.proof is None:
                return self._clip(tau)
        self.tau = tau
        return self

    def _add(self, U: Array, weights: Array) -> None:
        if len(U) == 0:
            return
        if len(U) == 1:
            from scipy.linalg.blas import dger

            # D is symmetric, so its transpose (a Fortran-ordered view) is updated in place
            dger(float(weights[0]), U[0], U[0], a=self.D.T, overwrite_a=1)
        else:
            self.D += (U.T * weights) @ U
        self._trace += float(weights @ np.einsum("ij,ij->i", U, U))

    def _clip(self, tau: float) -> Representation:
        theta, W = np.linalg.eigh(self.D)
        theta = theta - tau
        if theta[0] > 0.0:  # the factorization failed by rounding only
            self.tau, self.room, self.proof = tau, tau + float(theta[0]), None
            return self
        kept = theta > 0.0
        return Spectrum(SquaredFrobenius(), np.ascontiguousarray(W[:, kept].T), theta[kept], 0.0, 0.0)

    def matrix(self) -> Array:
        M = 0.5 * (self.D + self.D.T)
        M.flat[:: self.dimension + 1] -= self.tau
        return M

    def trace(self) -> float:
        return float(self._trace - self.dimension * self.tau)

    def factor(self) -> tuple[Array, Array, float]:
        theta, W = np.linalg.eigh(self.matrix())
        return np.ascontiguousarray(W.T), theta, 0.0

    def copy(self) -> Dense:
        twin = Dense(self.D.copy(), self.tau, self.room, self.proof)
        twin._trace = self._trace
        return twin


@dataclass(frozen=True)
class _Proof:
    """A Cholesky factor of D0 - room I; the later D is positive definite above `room` while spent < 1."""

    L: Array
    room: float
    spent: float = 0.0

    @staticmethod
    def of(D: Array, tau: float, shrink: float) -> _Proof | None:
        """Try to prove D > tau I with room for the shrinks to come, then with none; None when D - tau I is not
        definite.
        """
        for ahead in (_LOOK_AHEAD * shrink, 0.0) if shrink > 0.0 else (0.0,):
            shifted = D.copy()
            shifted.flat[:: len(D) + 1] -= tau + ahead
            try:
                # a hair above tau, so that `room > tau` holds
                return _Proof(np.asarray(np.linalg.cholesky(shifted), float), np.nextafter(tau + ahead, np.inf))
            except np.linalg.LinAlgError:
                continue
        return None

    def after(self, U: Array, weights: Array) -> _Proof | None:
        """The proof after D + sum w u u', or None when it no longer holds; adding (w > 0) never harms."""
        from scipy.linalg import solve_triangular

        harmful = weights < 0.0
        if not harmful.any():
            return self
        Z = solve_triangular(self.L, U[harmful].T, lower=True, check_finite=False)
        spent = self.spent - float(weights[harmful] @ np.einsum("ij,ij->j", Z, Z))
        return _Proof(self.L, self.room, spent) if spent < 1.0 - 1e-8 else None


def factor_limit(d: int) -> int:
    """Rows from which a dense M is cheaper than its factors."""
    return max(d // 3, 8)

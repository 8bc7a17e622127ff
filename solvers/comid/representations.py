"""Exact representations of M between steps: unclipped factors, a spectrum of low rank plus a multiple of I, or
dense.

In: pairs' differences u and weights w, one COMID step being Theta <- shrink(Theta + sum w u u'). Out: the same M
as a full eigendecomposition gives, at the cost of what really changes:

- `Factors`: M = level I + F' diag(coef) F with raw pairs as rows of F. While a lower bound proves that no
  eigenvalue can reach 0, subtracting a gradient needs no decomposition at all: it appends a row. O(d k) a step.
- `Dense`: the same once F would be wider than useful. The proof is first a bound, then a Cholesky factor of M
  minus the shrinks to come: a downdate by u keeps M positive definite as long as sum w u'M^-1 u < 1. O(d^2) a
  step, one Cholesky factorization in many.
- `Spectrum`: level I + V' diag(theta - level) V, any divergence; the shrink is accumulated lazily, a gradient
  costs an eigendecomposition of size rank + 1.

Each step returns the representation to go on with. The objects change in place; `copy` before keeping one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid import scans
from spdsl.solvers.comid.divergences import Divergence, Penalty, SquaredFrobenius
from spdsl.solvers.comid.quadrature import DenseDual
from spdsl.solvers.comid.scans import Block

__all__ = ["Dense", "Factors", "Representation", "Spectrum", "start"]

_POLISH_EVERY = 128  # steps after which V's rows are made orthonormal again
_WORTH_LEAVING = 32.0  # decrements that must fit between the smallest eigenvalue and 0 to leave the spectrum form
_KINDS = {"squared_frobenius": scans.CLIP, "von_neumann": scans.EXPONENTIAL, "burg": scans.INVERSE}
_LOOK_AHEAD = 64.0  # shrinks that one Cholesky factorization provides for


class Representation(Protocol):
    """What the engine asks of a representation: `scans` tells whether it has a loop over pairs of its own."""

    scans: bool
    tau: float  # the part of the shrink that has not been put into the arrays

    def scan(self, block: Block, start: int, mu: float) -> int:
        """Go over pairs from `start` while only shrinking is needed; the index of the first that needs more."""

    def squares(self, U: Array) -> Array:
        """u'Mu for each row of U (B, d)."""

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        """Theta <- shrink(Theta + sum_i weights_i u_i u_i'), penalty already times eta."""

    def matrix(self) -> Array:
        """M (d, d)."""

    def trace(self) -> float:
        """tr M."""

    def factor(self) -> tuple[Array, Array, float]:
        """(F, coef, level) with M = level I + F' diag(coef) F."""

    def copy(self) -> Representation:
        """An independent copy."""


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
        capacity = min(64, _factor_limit(d))
        return Factors(np.empty((capacity, d)), np.empty(capacity), 0, level, 0.0, level, d * level)

    def scan(self, block: Block, start: int, mu: float) -> int:
        stop, self.tau = scans.compiled(scans.scan_factors)(
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
        loss = _decrease(sizes, weights)
        if self.room - loss <= self.tau + penalty.trace:
            spectrum = self.spectrum()
            return spectrum.step(U, weights, penalty)
        if self.count + len(U) > _factor_limit(self.dimension):
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
        capacity = min(max(2 * len(self.F), needed), max(_factor_limit(self.dimension), needed))
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
        stop, self.tau = scans.compiled(scans.scan_dense)(
            block.U, block.sign, block.slope, block.offset, block.low, block.high, block.shrink, start,
            self.D, self.tau, mu, self._room(), self._trace, block.margins, block.traces,
        )  # fmt: skip
        return int(stop)

    def _room(self) -> float:
        return self.room if self.proof is None else max(self.room, self.proof.room)

    def squares(self, U: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", U @ self.D, U) - self.tau * np.einsum("ij,ij->i", U, U))

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        loss = _decrease(np.einsum("ij,ij->i", U, U), weights)
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


class Spectrum:
    """Theta = level I + V' diag(theta - level) V, shifted by -tau; rows of V (k, d) orthonormal; any divergence."""

    def __init__(
        self, divergence: Divergence, V: Array, theta: Array, level: float, tau: float = 0.0, steps: int = 0
    ) -> None:
        self.divergence, self.V, self.theta = divergence, V, theta
        self.level, self.tau, self.steps = level, tau, steps
        self.dimension = V.shape[1]
        self.kind = _KINDS.get(divergence.name, -1)
        self.scans = self.kind >= 0

    def spectrum(self) -> tuple[Array, Array, Array]:
        """(theta, m, counts) with the level last."""
        theta = np.append(self.theta, self.level) - self.tau
        if self.divergence.clips:
            theta = np.maximum(theta, 0.0)
        counts = np.append(np.ones(len(self.theta)), float(self.dimension - len(self.theta)))
        return theta, self.divergence.primal(theta, counts), counts

    def scan(self, block: Block, start: int, mu: float) -> int:
        stop, self.tau = scans.compiled(scans.scan_spectrum)(
            block.U, block.sign, block.slope, block.offset, block.low, block.high, block.shrink, start,
            self.V, self.theta, self.level, self.tau, mu, self.kind, np.inf, block.margins, block.traces,
        )  # fmt: skip
        return int(stop)

    def squares(self, U: Array) -> Array:
        _, m, _ = self.spectrum()
        P = U @ self.V.T
        return np.asarray(m[-1] * np.einsum("ij,ij->i", U, U) + (P * P) @ (m[:-1] - m[-1]))

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        theta, _, counts = self.spectrum()
        V, level = self.V, float(theta[-1])
        if self.divergence.clips and level == 0.0:
            kept = theta[:-1] > 0.0
            if not kept.all():
                V, theta, counts = V[kept], np.append(theta[:-1][kept], 0.0), np.append(counts[:-1][kept], 0.0)
        if len(U):
            V, inner = _rotate(V, theta[:-1], level, U, weights)
            theta = np.append(inner, level)
            counts = np.append(np.ones(len(inner)), float(self.dimension - len(inner)))
        else:
            counts[-1] = float(self.dimension - len(V))
        if counts[-1] == 0.0:  # no ground level left: keep it from being asked for
            inner, _ = self.divergence.shrink(theta[:-1], counts[:-1], penalty)
            theta = np.append(inner, inner.min(initial=np.inf) if self.divergence.clips is False else 0.0)
        else:
            theta, _ = self.divergence.shrink(theta, counts, penalty)
        inner, level = theta[:-1], float(theta[-1])
        if self.divergence.clips and level == 0.0:
            kept = inner > 0.0
            if not kept.all():
                V, inner = np.ascontiguousarray(V[kept]), inner[kept]
        steps = self.steps + 1
        if steps % _POLISH_EVERY == 0:
            V = 1.5 * V - 0.5 * (V @ V.T) @ V
        self.V, self.theta, self.level, self.tau, self.steps = V, inner, level, 0.0, steps
        return self._lighter(U, weights, penalty)

    def _lighter(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        """A form without decompositions, when all eigenvalues are far enough from 0 for that to last."""
        if (
            self.kind in (scans.EXPONENTIAL, scans.INVERSE)
            and penalty.is_shift
            and len(self.theta) > _dual_limit(self.dimension)
        ):
            return DenseDual(self.divergence, self._dual())
        if not (isinstance(self.divergence, SquaredFrobenius) and penalty.is_shift):
            return self
        full = len(self.theta) == self.dimension
        smallest = float(self.theta.min(initial=np.inf))
        if not full:
            smallest = min(smallest, self.level)
        spend = _decrease(np.einsum("ij,ij->i", U, U), weights) + penalty.trace
        if smallest <= _WORTH_LEAVING * spend or smallest <= 1e-9 * float(self.theta.max(initial=self.level)):
            return self
        level = 0.0 if full else self.level
        room = smallest * (1.0 - 1e-12)
        trace = float(self.theta.sum() + self.level * (self.dimension - len(self.theta)))
        light = Factors(self.V, self.theta - level, len(self.theta), level, 0.0, room, trace)
        return light.dense() if 2 * len(self.theta) > _factor_limit(self.dimension) else light

    def matrix(self) -> Array:
        _, m, _ = self.spectrum()
        M = (self.V.T * (m[:-1] - m[-1])) @ self.V
        M = 0.5 * (M + M.T)
        M.flat[:: self.dimension + 1] += m[-1]
        return np.asarray(M)

    def _dual(self) -> Array:
        D = (self.V.T * (self.theta - self.level)) @ self.V
        D = 0.5 * (D + D.T)
        D.flat[:: self.dimension + 1] += self.level - self.tau
        return np.asarray(D)

    def trace(self) -> float:
        _, m, counts = self.spectrum()
        return float(counts @ m) if counts[-1] else float(m[:-1].sum())

    def factor(self) -> tuple[Array, Array, float]:
        _, m, _ = self.spectrum()
        return self.V.copy(), m[:-1] - m[-1], float(m[-1])

    def copy(self) -> Spectrum:
        return Spectrum(self.divergence, self.V.copy(), self.theta.copy(), self.level, self.tau, self.steps)


def start(divergence: Divergence, d: int, penalty: Penalty, level: float = 1.0) -> Representation:
    """M_0 = level I in the cheapest exact representation."""
    if isinstance(divergence, SquaredFrobenius) and penalty.is_shift:
        return Factors.identity(d, level)
    theta = divergence.dual(np.full(1, level), np.full(1, float(d)))
    return Spectrum(divergence, np.empty((0, d)), np.empty(0), float(theta[0]))


def _factor_limit(d: int) -> int:
    return max(d // 3, 8)


def _dual_limit(d: int) -> int:
    return max(d // 6, 24)


def _decrease(sizes: Array, weights: Array) -> float:
    """How far sum w u u' can push the smallest eigenvalue down."""
    return -float(np.minimum(weights, 0.0) @ sizes)


def _rotate(V: Array, theta: Array, level: float, U: Array, weights: Array) -> tuple[Array, Array]:
    """Eigenpairs of level I + V' diag(theta - level) V + U' diag(weights) U on the span of V and U."""
    k = len(V)
    room = V.shape[1] - k
    P = U @ V.T
    rest = U - P @ V
    more = rest @ V.T  # a second pass: Gram-Schmidt twice is enough
    rest, P = rest - more @ V, P + more
    Q = np.empty((0, V.shape[1]))
    if room > 0:
        if len(U) == 1:
            size = float(np.sqrt(rest[0] @ rest[0]))
            if size > 1e-13 * float(np.sqrt(U[0] @ U[0])):
                Q = rest / size
        else:
            basis, R, _ = _pivoted_qr(rest.T)
            sizes = np.abs(np.diag(R))
            kept = sizes > 1e-13 * max(float(np.sqrt(np.einsum("ij,ij->i", U, U).max())), 1e-300)
            Q = np.ascontiguousarray(basis[:, : len(sizes)][:, kept].T)[:room]
    C = np.hstack([P, rest @ Q.T])
    size = k + len(Q)
    B = (C.T * weights) @ C
    B.flat[:: size + 1] += np.append(theta, np.full(len(Q), level))
    values, W = np.linalg.eigh(B)
    return np.asarray(W.T @ np.vstack([V, Q])), values


def _pivoted_qr(A: Array) -> Any:
    from scipy.linalg import qr

    return qr(A, mode="economic", pivoting=True, check_finite=False)

"""M by its spectrum: a few eigenpairs and one level for all other directions, for every divergence.

In: pairs and weights. Out: the same M as a full eigendecomposition gives. The shrink is accumulated lazily
(shrinking by a after b is shrinking by a + b), so a satisfied pair costs O(d k); a gradient changes the
spectrum by rank one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.divergences import Divergence, Penalty, SquaredFrobenius, unbounded_step
from spdsl.solvers.comid.quadrature import DenseDual
from spdsl.solvers.comid.representation import Block, Representation, decrease

__all__ = ["Spectrum"]

_CLIP, _EXPONENTIAL, _INVERSE = 0, 1, 2  # as in `loops`
_KINDS = {"squared_frobenius": _CLIP, "von_neumann": _EXPONENTIAL, "burg": _INVERSE}
_POLISH_EVERY = 128  # steps after which V's rows are made orthonormal again
_WORTH_LEAVING = 32.0  # decrements that must fit between the smallest eigenvalue and 0 to leave this form


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
        from spdsl.solvers.comid.loops import scan_spectrum

        stop, self.tau = scan_spectrum(
            block.U, block.sign, block.slope, block.offset, block.low, block.high, block.shrink, start,
            self.V, self.theta, self.level, self.tau, mu, self.kind, np.inf, block.margins, block.traces,
        )  # fmt: skip
        return int(stop)

    def squares(self, U: Array) -> Array:
        _, m, _ = self.spectrum()
        P = U @ self.V.T
        return np.asarray(m[-1] * np.einsum("ij,ij->i", U, U) + (P * P) @ (m[:-1] - m[-1]))

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        if len(U) == 1 and penalty.is_shift and self.kind >= 0:
            if self.kind == _CLIP:
                return self._clip_step(U, weights, penalty)
            return self._shift_step(U, weights, penalty)
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
        return self._after(V, inner, level, U, weights, penalty)

    def _clip_step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        """The usual step, compiled in one piece: one pair, squared Frobenius, trace norm."""
        from spdsl.solvers.comid.rank_one import clip_step

        V, theta, level = clip_step(self.V, self.theta, self.level, self.tau, U[0], float(weights[0]), penalty.trace)
        return self._after(V, theta, float(level), U, weights, penalty)

    def _shift_step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        """The usual step under a divergence that never clips: the shrink stays lazy."""
        from spdsl.solvers.comid.rank_one import add_rank_one

        tau = self.tau + penalty.trace
        theta, V = add_rank_one(self.V, self.theta, self.level, U[0], float(weights[0]))
        full = len(theta) == self.dimension
        largest = np.array([float(theta.max(initial=-np.inf if full else self.level)) - tau])
        if not self.divergence.bounded(largest):
            raise unbounded_step(self.divergence.name, float(largest[0]))
        self.divergence.primal(largest, np.ones(1))  # raises when it leaves floating point
        level = float(theta.min()) if full else self.level  # a level that nothing has must not be asked for
        return self._after(V, theta, level, U, weights, penalty, tau)

    def _after(
        self, V: Array, theta: Array, level: float, U: Array, weights: Array, penalty: Penalty, tau: float = 0.0
    ) -> Representation:
        steps = self.steps + 1
        if steps % _POLISH_EVERY == 0:
            V = 1.5 * V - 0.5 * (V @ V.T) @ V
        self.V, self.theta, self.level, self.tau, self.steps = V, theta, level, tau, steps
        return self._lighter(U, weights, penalty)

    def _lighter(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        """A form without decompositions, when all eigenvalues are far enough from 0 for that to last."""
        if self.kind in (_EXPONENTIAL, _INVERSE) and penalty.is_shift and len(self.theta) > _dual_limit(self.dimension):
            return DenseDual(self.divergence, self._dual())
        if not (isinstance(self.divergence, SquaredFrobenius) and penalty.is_shift):
            return self
        full = len(self.theta) == self.dimension
        if self.level == 0.0 and not full:
            return self
        smallest = float(self.theta.min(initial=np.inf))
        if not full:
            smallest = min(smallest, self.level)
        spend = decrease(np.einsum("ij,ij->i", U, U), weights) + penalty.trace
        if smallest <= _WORTH_LEAVING * spend or smallest <= 1e-9 * float(self.theta.max(initial=self.level)):
            return self
        from spdsl.solvers.comid.unclipped import Factors, factor_limit

        level = 0.0 if full else self.level
        room = smallest * (1.0 - 1e-12)
        trace = float(self.theta.sum() + self.level * (self.dimension - len(self.theta)))
        light = Factors(self.V, self.theta - level, len(self.theta), level, 0.0, room, trace)
        return light.dense() if 2 * len(self.theta) > factor_limit(self.dimension) else light

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


def _dual_limit(d: int) -> int:
    """Rows from which M by quadrature is cheaper than turning its eigenvectors."""
    return max(d // 6, 100)


def _rotate(V: Array, theta: Array, level: float, U: Array, weights: Array) -> tuple[Array, Array]:
    """Eigenpairs of level I + V' diag(theta - level) V + U' diag(weights) U on the span of V and U."""
    if len(U) == 1:
        from spdsl.solvers.comid.rank_one import add_rank_one

        values, rows = add_rank_one(
            np.ascontiguousarray(V), theta, level, np.ascontiguousarray(U[0]), float(weights[0])
        )
        return rows, values
    k = len(V)
    room = V.shape[1] - k
    P = U @ V.T
    rest = U - P @ V
    more = rest @ V.T  # a second pass: Gram-Schmidt twice is enough
    rest, P = rest - more @ V, P + more
    Q = np.empty((0, V.shape[1]))
    if room > 0:
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

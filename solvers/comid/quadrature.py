"""M under von Neumann or Burg once its rank is full: Theta as a dense matrix, u'Mu by Lanczos quadrature.

In: pairs' differences and weights. Out: the same margins as an eigendecomposition gives, to about 1e-13. Under
these two divergences a step only adds to Theta and nothing is clipped, so M = exp(Theta) or -Theta^-1 itself is
needed at the end alone; what each step asks is u'f(Theta)u, for which a few products Theta v are enough (Golub &
Meurant: Gauss quadrature).
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.divergences import Burg, Divergence, Penalty, unbounded_step
from spdsl.solvers.comid.representation import Block

__all__ = ["DenseDual", "quadratic_form"]

_FIRST_CHECK, _CHECK_EVERY = 6, 3  # Lanczos steps between looks at the quadrature's change
_TOLERANCE = 2e-15


class DenseDual:
    """Theta = D - tau I with D dense (d, d); for divergences that never clip, with a trace norm or none."""

    def __init__(self, divergence: Divergence, D: Array, tau: float = 0.0) -> None:
        self.divergence, self.D, self.tau = divergence, D, tau
        self.scans = False

    def scan(self, block: Block, start: int, mu: float) -> int:
        return start

    def squares(self, U: Array) -> Array:
        return np.array([self._square(u, self.tau) for u in U])

    def _square(self, u: Array, tau: float) -> float:
        return quadratic_form(self.divergence, self.D, tau, u)

    def step(self, U: Array, weights: Array, penalty: Penalty) -> DenseDual:
        tau = self.tau + penalty.trace
        if isinstance(self.divergence, Burg) and (weights > 0.0).any():
            self._check_bounded(U, weights, tau)
        if len(U) == 1:
            from scipy.linalg.blas import dger

            # D is symmetric, so its transpose (a Fortran-ordered view) is updated in place
            dger(float(weights[0]), U[0], U[0], a=self.D.T, overwrite_a=1)
        elif len(U):
            self.D += (U.T * weights) @ U
        self.tau = tau
        return self

    def _check_bounded(self, U: Array, weights: Array, tau: float) -> None:
        """-Theta stays positive definite: for one pair w u'(-Theta)^-1 u < 1, for several by eigenvalues."""
        if len(U) == 1:
            spent = float(weights[0]) * self._square(U[0], tau)
            if spent >= 1.0:
                raise unbounded_step(self.divergence.name, spent - 1.0)
            return
        largest = float(np.linalg.eigvalsh(self.D + (U.T * weights) @ U)[-1]) - tau
        if largest >= 0.0:
            raise unbounded_step(self.divergence.name, largest)

    def matrix(self) -> Array:
        F, coef, level = self.factor()
        M = (F.T * coef) @ F
        M = 0.5 * (M + M.T)
        M.flat[:: len(M) + 1] += level
        return M

    def trace(self) -> float:
        return float(self.factor()[1].sum())

    def factor(self) -> tuple[Array, Array, float]:
        theta, V = np.linalg.eigh(self.D)
        return np.ascontiguousarray(V.T), self.divergence.primal(theta - self.tau, np.ones(len(theta))), 0.0

    def copy(self) -> DenseDual:
        return DenseDual(self.divergence, self.D.copy(), self.tau)


def quadratic_form(divergence: Divergence, D: Array, tau: float, u: Array) -> float:
    """u' grad psi*(D - tau I) u by Lanczos, with full reorthogonalization and a stop when two looks agree.

    Raises
    ------
    SolverError
        When a Ritz value shows that Theta left the divergence's domain.
    """
    from spdsl.solvers.comid.loops import lanczos

    square = float(u @ u)
    if square == 0.0:
        return 0.0
    limit = len(u)
    basis = np.empty((limit, limit)) if limit <= 64 else np.empty((64, limit))
    diagonal, off = np.empty(limit), np.empty(limit)
    reached, wanted, last = 0, min(_FIRST_CHECK, limit), np.inf
    while True:
        if wanted > len(basis):
            basis = np.vstack([basis, np.empty((min(len(basis), limit - len(basis)), limit))])
        reached, ended = lanczos(D, u / np.sqrt(square), basis, diagonal, off, reached, wanted)
        nodes, vectors = np.linalg.eigh(_tridiagonal(diagonal[:reached], off[: reached - 1]))
        nodes = nodes - tau
        if not divergence.bounded(nodes):
            raise unbounded_step(divergence.name, float(nodes.max()))
        value = square * float(vectors[0] ** 2 @ divergence.primal(nodes, np.ones(reached)))
        if ended or reached == limit or abs(value - last) <= _TOLERANCE * abs(value):
            return value
        last, wanted = value, min(reached + _CHECK_EVERY, limit)


def _tridiagonal(diagonal: Array, off: Array) -> Array:
    k = len(diagonal)
    T = np.zeros((k, k))
    T.flat[:: k + 1] = diagonal
    T.flat[1 :: k + 1] = off
    T.flat[k :: k + 1] = off
    return T

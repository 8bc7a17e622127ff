"""One exact COMID step by full eigendecomposition: the reference that the fast representations are held against.

In: Theta = grad psi(M_t) as a dense matrix, a gradient, a step length, a penalty. Out: the next Theta and M. With
an L1 penalty, which does not commute with eigenvectors, the step is solved in its dual by accelerated projected
gradients.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.divergences import Divergence, Penalty, unbounded_step
from spdsl.solvers.comid.representation import Block

__all__ = ["Full", "dual_matrix", "metric_step", "primal_matrix"]


def dual_matrix(divergence: Divergence, M: Array) -> Array:
    """Theta = grad psi(M) (d, d) of a symmetric matrix in psi's domain."""
    m, V = np.linalg.eigh(M)
    if divergence.clips:
        m = np.maximum(m, 0.0)
    return _rebuild(V, divergence.dual(m, np.ones(len(m))))


def primal_matrix(divergence: Divergence, theta: Array) -> Array:
    """M with grad psi(M) = Theta (d, d)."""
    t, V = np.linalg.eigh(theta)
    if divergence.clips:
        t = np.maximum(t, 0.0)
    return _rebuild(V, divergence.primal(t, np.ones(len(t))))


def metric_step(
    divergence: Divergence, theta: Array, gradient: Array, eta: float, penalty: Penalty
) -> tuple[Array, Array]:
    """argmin over M >> 0 of B_psi(M, M_t) + eta <gradient, M> + eta r(M) (eq. 7).

    Parameters
    ----------
    theta : array (d, d)
        grad psi(M_t).
    gradient : array (d, d)
        The loss's (mini-batch) gradient.
    penalty : Penalty
        r, not yet multiplied by eta.

    Returns
    -------
    theta, M : arrays (d, d)
        grad psi of the minimizer, and the minimizer.

    Raises
    ------
    SolverError
        When the step is unbounded (Burg).
    """
    target = theta - eta * gradient
    scaled = penalty.scaled(eta)
    if not penalty.is_spectral:
        return _step_with_l1(divergence, target, scaled)
    return _spectral_step(divergence, target, scaled)


def _spectral_step(divergence: Divergence, target: Array, penalty: Penalty) -> tuple[Array, Array]:
    t, V = np.linalg.eigh(0.5 * (target + target.T))
    t, m = divergence.shrink(t, np.ones(len(t)), penalty)
    return _rebuild(V, t), _rebuild(V, m)


def _step_with_l1(
    divergence: Divergence, target: Array, penalty: Penalty, tolerance: float = 1e-13, limit: int = 2_000
) -> tuple[Array, Array]:
    """max over |Z_ij| <= c of the dual function; its gradient is the spectral step's M at target - Z."""
    c = penalty.l1
    smooth = Penalty(penalty.trace, penalty.ridge, penalty.norm)
    d = len(target)
    # a minimizer has a diagonal >= 0, so Z = c there; start from that
    Z = c * np.eye(d)
    if not _bounded(divergence, target - Z, penalty.trace):
        raise unbounded_step(divergence.name, float(np.linalg.eigvalsh(target - Z).max()) - penalty.trace)
    theta, M = _spectral_step(divergence, target - Z, smooth)
    value = _dual_value(divergence, target - Z, M, smooth)
    scale = max(1.0, abs(value))
    look, length, momentum = Z, 1.0, 1.0
    M_look, value_look = M, value
    for _ in range(limit):
        while True:
            Z_next = np.clip(look + M_look / length, -c, c)
            np.fill_diagonal(Z_next, c)
            move = Z_next - look
            if _bounded(divergence, target - Z_next, penalty.trace):
                theta, M = _spectral_step(divergence, target - Z_next, smooth)
                value = _dual_value(divergence, target - Z_next, M, smooth)
                # ascent lemma of a concave dual with gradient M_look
                if value >= value_look + np.sum(M_look * move) - 0.5 * length * np.sum(move * move) - 1e-14 * scale:
                    break
            length *= 2.0
        gap = c * float(np.abs(M).sum()) - float(np.sum(Z_next * M))
        if gap <= tolerance * scale:
            break
        if np.sum(M_look * (Z_next - Z)) < 0.0:  # going downhill: restart the momentum
            momentum, look = 1.0, Z_next
        else:
            grown = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            look = Z_next + (momentum - 1.0) / grown * (Z_next - Z)
            momentum = grown
            if not _bounded(divergence, target - look, penalty.trace):
                momentum, look = 1.0, Z_next
        Z = Z_next
        _, M_look = (theta, M) if look is Z_next else _spectral_step(divergence, target - look, smooth)
        value_look = _dual_value(divergence, target - look, M_look, smooth)
        length = max(length * 0.9, 1e-8)
    return theta if divergence.clips else dual_matrix(divergence, M), M


def _bounded(divergence: Divergence, target: Array, trace: float) -> bool:
    return divergence.bounded(np.asarray(np.linalg.eigvalsh(target), float) - trace)


def _dual_value(divergence: Divergence, target: Array, M: Array, penalty: Penalty) -> float:
    """min over M of psi(M) - <target, M> + penalty(M), at its minimizer M."""
    m = np.asarray(np.linalg.eigvalsh(M), float)
    if divergence.clips:
        m = np.maximum(m, 0.0)
    return divergence.potential(m, np.ones(len(m))) - float(np.sum(target * M)) + penalty.value(M)


def _rebuild(V: Array, values: Array) -> Array:
    product = (V * values) @ V.T
    return np.asarray(0.5 * (product + product.T))


class Full:
    """M by a full eigendecomposition every step: the reference representation, and the one for an L1 penalty."""

    def __init__(self, divergence: Divergence, theta: Array, M: Array) -> None:
        self.divergence, self.theta, self.M = divergence, theta, M
        self.scans, self.tau = False, 0.0

    @staticmethod
    def identity(divergence: Divergence, d: int, level: float = 1.0) -> Full:
        """M = level I."""
        M = level * np.eye(d)
        return Full(divergence, dual_matrix(divergence, M), M)

    def scan(self, block: Block, start: int, mu: float) -> int:
        return start

    def squares(self, U: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", U @ self.M, U))

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Full:
        self.theta, self.M = metric_step(self.divergence, self.theta, -(U.T * weights) @ U, 1.0, penalty)
        return self

    def matrix(self) -> Array:
        return self.M.copy()

    def trace(self) -> float:
        return float(np.trace(self.M))

    def factor(self) -> tuple[Array, Array, float]:
        m, V = np.linalg.eigh(self.M)
        return np.ascontiguousarray(V.T), m, 0.0

    def copy(self) -> Full:
        return Full(self.divergence, self.theta.copy(), self.M.copy())

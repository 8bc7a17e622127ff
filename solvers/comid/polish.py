"""From COMID's last iterate to the optimum of the batch objective (4), by the alternating direction method of multipliers.

In: the pairs of a metric model, a spectral penalty, bounds on mu, a start. Out: M >> 0 and mu within its bounds at which
the optimality conditions hold to a tolerance. An online method alone comes near the optimum as 1/sqrt(t); this goes the
rest of the way where the T x d (d + 1)/2 matrix of the margins can be held.

Splitting: z = A x + c for the margins, S = M in the cone, nu = mu in its bounds; x = (svec M, mu) solves a least squares
problem in the eigenvectors of A'A, so the weights of the two constraints can follow their residuals; the others are exact
proximal steps (Boyd, Parikh, Chu, Peleato & Eckstein 2011, section 3). Rows of A are brought to length 1. In
t = (z + y/sigma, S + Y/omega) the method is a fixed-point iteration, nonexpansive in the norm that sigma and omega weigh
(Eckstein & Bertsekas 1992): every fifth step goes to a point that Anderson's method foresees (`anderson`), unless the
residual there is larger than before. Piecewise linear losses, where the plain method turns in circles around the
optimum, need it most.

`polishing_bytes` and `LARGEST_SIDE` tell what a problem takes and what is too large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.anderson import Memory
from spdsl.solvers.comid.divergences import Penalty, SquaredFrobenius
from spdsl.solvers.comid.engine import PairSet

__all__ = ["LARGEST_SIDE", "PolishState", "Polisher", "polishing_bytes"]

LARGEST_SIDE = 6000  # of the matrix that is decomposed once: about two minutes on one core

# the weights are adjusted after 40, 56, 78, ... iterations: ever more rarely, so that the method converges
_BALANCE_AT = frozenset(int(40 * 1.4**k) for k in range(40))
_OVER_RELAXATION = 1.6
_FORESEE_EVERY = 5


def polishing_bytes(T: int, d: int) -> int:
    """What the matrix of the margins, its Gram matrix and that one's eigenvectors take, for T pairs of d features."""
    unknowns = d * (d + 1) // 2 + 1
    return 8 * (2 * T * unknowns + min(T, unknowns) * (unknowns + min(T, unknowns)))


@dataclass(frozen=True)
class PolishState:
    """One iterate.

    Attributes
    ----------
    z, y : arrays (T,)
        Margins over their rows' lengths, and their multipliers.
    S, Y : arrays (p + 1,)
        (svec S, nu) and its multipliers.
    sigma, omega : float
        Weights of the two constraints.
    residuals : array (4,)
        Scaled: of z's constraint, of S's, and how much the last step moved each.
    memory : Memory
        Of the fixed-point iteration, at these weights.
    moved : float
        How far the last step moved t, in the norm of the weights.
    """

    z: Array
    y: Array
    S: Array
    Y: Array
    sigma: float
    omega: float
    residuals: Array
    iterations: int = 0
    memory: Memory = Memory()
    moved: float = np.inf

    @property
    def residual(self) -> float:
        """The largest."""
        return float(self.residuals.max())


class Polisher:
    """The problem, decomposed once.

    Parameters
    ----------
    pairs : PairSet
    prox : callable
        ``prox(v, sigma)``: argmin over z of sum_t phi_t(z_t) + sigma_t/2 (z_t - v_t)^2, all (T,).
    penalty : Penalty
        A spectral one.
    lower, upper : float
        Bounds of mu.
    """

    def __init__(
        self, pairs: PairSet, prox: Callable[[Array, Array], Array], penalty: Penalty, lower: float, upper: float
    ) -> None:
        self.prox, self.penalty, self.lower, self.upper = prox, penalty, lower, upper
        self.d = pairs.U.shape[1]
        self.rows, self.columns = np.triu_indices(self.d)
        # svec keeps inner products: off-diagonal entries count sqrt(2) times
        self.weights = np.where(self.rows == self.columns, 1.0, np.sqrt(2.0))
        outer = pairs.U[:, self.rows] * pairs.U[:, self.columns] * self.weights
        self.A = np.column_stack([-pairs.sign[:, None] * outer, pairs.slope])
        self.lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", self.A, self.A)), 1e-12)
        self.A /= self.lengths[:, None]
        self.c = pairs.offset / self.lengths
        self.values, self.Q = _right_singular(self.A)
        self.divergence = SquaredFrobenius()

    def start(self, M: Array, mu: float, slopes: Array) -> PolishState:
        """From M and mu, with phi_t'(z_t) (T,) there as the first multipliers."""
        x = self.pack(M, mu)
        z = self.A @ x + self.c
        y = slopes * self.lengths
        force = float(np.abs(y).max(initial=0.0)) or self._force_below(z)
        sigma = max(force, 1e-12) / max(float(np.std(z)), 1e-6)
        omega = sigma * max(float(self.values.sum()) / self.A.shape[1], 1e-12)
        return PolishState(z, y, x, -(self.A.T @ y), sigma, omega, np.full(4, np.inf))

    def _force_below(self, z: Array) -> float:
        """The size of the losses' slopes where all margins are lower: for starts at which no pair has a loss."""
        v = (z - np.abs(z).max(initial=0.0) - 1.0) * self.lengths
        return float(np.max(np.abs(self.prox(v, np.ones_like(v)) - v) * self.lengths, initial=0.0))

    def advance(self, state: PolishState, iterations: int, tolerance: float = 0.0) -> PolishState:
        """So many iterations more, or fewer when the residual has come down to the tolerance."""
        until = state.iterations + iterations
        while state.iterations < until and state.residual > tolerance:
            before = state
            state = self._iterate(state)
            image = _point(state)
            residual = image - _point(before)
            moved = float(np.linalg.norm(residual))
            state = replace(state, memory=state.memory.with_pair(image, residual), moved=moved)
            if state.iterations in _BALANCE_AT:
                state = _balanced(state)
            elif state.iterations % _FORESEE_EVERY == 0:
                state = self._foreseen(state)
        return state

    def _foreseen(self, s: PolishState) -> PolishState:
        """The step after one from the point that Anderson's method foresees, if it moves no more than the last did."""
        guess = s.memory.guess()
        if guess is None:
            return s
        T = len(s.z)
        z_hat, x_hat = guess[:T] / np.sqrt(s.sigma), guess[T:] / np.sqrt(s.omega)
        z = self.prox(z_hat * self.lengths, s.sigma / self.lengths**2) / self.lengths
        S = self._cone(x_hat, s.omega)
        there = replace(s, z=z, S=S, y=s.sigma * (z_hat - z), Y=s.omega * (x_hat - S))
        after = self._iterate(there)
        image = _point(after)
        moved = float(np.linalg.norm(image - guess))
        if not moved <= s.moved:  # not a number, too
            return replace(s, iterations=after.iterations)
        return replace(after, memory=s.memory.with_pair(image, image - guess), moved=moved)

    def answer(self, state: PolishState) -> tuple[Array, float]:
        """M (d, d) in the cone and mu in its bounds."""
        return self._unpack(state.S)

    def _iterate(self, s: PolishState) -> PolishState:
        right = self.A.T @ (s.sigma * (s.z - self.c) - s.y) + s.omega * s.S - s.Y
        # (sigma A'A + omega I) x = right: outside the span of Q only omega acts
        gain = 1.0 / (s.sigma * self.values + s.omega) - 1.0 / s.omega
        x = right / s.omega + self.Q @ ((self.Q.T @ right) * gain)
        reached = self.A @ x + self.c
        a = _OVER_RELAXATION
        z_hat, x_hat = a * reached + (1 - a) * s.z, a * x + (1 - a) * s.S
        z = self.prox((z_hat + s.y / s.sigma) * self.lengths, s.sigma / self.lengths**2) / self.lengths
        S = self._cone(x_hat + s.Y / s.omega, s.omega)
        y, Y = s.y + s.sigma * (z_hat - z), s.Y + s.omega * (x_hat - S)
        pull = float(np.abs(self.A.T @ y).max())
        residuals = np.array(
            [
                _relative(reached - z, reached, z),
                _relative(x - S, x, S),
                s.sigma * float(np.abs(self.A.T @ (z - s.z)).max()) / max(pull, 1e-300),
                s.omega * float(np.abs(S - s.S).max()) / max(pull, float(np.abs(Y).max()), 1e-300),
            ]
        )
        return replace(s, z=z, y=y, S=S, Y=Y, residuals=residuals, iterations=s.iterations + 1)

    def _cone(self, v: Array, omega: float) -> Array:
        """The proximal step of the penalty over the cone, and mu's bounds."""
        M, mu = self._unpack(v)
        theta, V = np.linalg.eigh(M)
        _, m = self.divergence.shrink(theta, np.ones(self.d), self.penalty.scaled(1.0 / omega))
        return self.pack((V * m) @ V.T, float(np.clip(mu, self.lower, self.upper)))

    def pack(self, M: Array, mu: float) -> Array:
        """(svec M, mu), shape (d (d + 1)/2 + 1,)."""
        return np.append(M[self.rows, self.columns] * self.weights, mu)

    def _unpack(self, x: Array) -> tuple[Array, float]:
        M = np.zeros((self.d, self.d))
        M[self.rows, self.columns] = M[self.columns, self.rows] = x[:-1] / self.weights
        return M, float(x[-1])


def _point(s: PolishState) -> Array:
    """t, each part times the root of its weight: where the method is nonexpansive in the Euclidean norm."""
    return np.concatenate(
        [np.sqrt(s.sigma) * s.z + s.y / np.sqrt(s.sigma), np.sqrt(s.omega) * s.S + s.Y / np.sqrt(s.omega)]
    )


def _right_singular(A: Array) -> tuple[Array, Array]:
    """Eigenvalues (k,) of A'A and its eigenvectors (p, k), zeros left out where A (T, p) is wide."""
    if A.shape[0] >= A.shape[1]:
        values, Q = np.linalg.eigh(A.T @ A)
        return np.maximum(values, 0.0), Q
    values, W = np.linalg.eigh(A @ A.T)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    values, W = values[kept], W[:, kept]
    return values, (A.T @ W) / np.sqrt(values)


def _balanced(s: PolishState) -> PolishState:
    """Each constraint's weight moved so that its residual and its last move come nearer to each other."""
    sigma = s.sigma * _change(s.residuals[0], s.residuals[2])
    omega = s.omega * _change(s.residuals[1], s.residuals[3])
    return (
        s if (sigma, omega) == (s.sigma, s.omega) else replace(s, sigma=sigma, omega=omega, memory=s.memory.cleared())
    )


def _change(primal: float, dual: float) -> float:
    if primal <= 0.0 or dual <= 0.0:
        return 1.0
    ratio = float(np.sqrt(primal / dual))
    return 1.0 if 0.5 < ratio < 2.0 else float(np.clip(ratio, 0.25, 4.0))


def _relative(difference: Array, *of: Array) -> float:
    return float(np.abs(difference).max()) / max(*(float(np.abs(item).max()) for item in of), 1e-12)

"""The mirror maps of COMID for a metric: each psi acts on eigenvalues, so a step is a scalar problem per
eigenvalue.

In: the eigenvalues theta of grad psi(M) after a gradient step, with multiplicities. Out: the eigenvalues m of the
exact minimizer over M >> 0 of B_psi(M, M_t) + <eta G, M> + penalty(M), and its own theta.

One loop serves all four, because a step is short in theta = grad psi(M): subtract eta G, then shrink. For psi whose
gradient maps the border of the cone to 0 (Frobenius, Schatten) shrinking ends in a clip at 0, which gives low
rank; von Neumann and Burg have no border to reach, so they shrink and never turn sparse. Source: Kunapuli &
Shavlik (2012), eqs. 7-13; their Proposition 1 clips for every psi, which is the minimizer for the first kind
only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spdsl.diagnostics import Diagnostic, SolverError, UsageError
from spdsl.problem.functions import Array

__all__ = [
    "DIVERGENCES",
    "Burg",
    "Divergence",
    "Penalty",
    "Schatten",
    "SquaredFrobenius",
    "VonNeumann",
    "divergence_named",
]

_LARGEST_EXPONENT = 700.0  # exp overflows a little above


@dataclass(frozen=True)
class Penalty:
    """r(M) = trace * tr M + ridge/2 * ||M||_F^2 + norm * ||M||_F + l1 * sum |M_ij|, each coefficient >= 0."""

    trace: float = 0.0
    ridge: float = 0.0
    norm: float = 0.0
    l1: float = 0.0

    def __post_init__(self) -> None:
        for name in ("trace", "ridge", "norm", "l1"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise UsageError(
                    Diagnostic("SPL562", f"the penalty's coefficient `{name}` is {value!r}; it must be finite and >= 0")
                )

    def scaled(self, eta: float) -> Penalty:
        """The penalty times a step length."""
        product = object.__new__(Penalty)  # nothing left to check: once a step, this is worth it
        for name in ("trace", "ridge", "norm", "l1"):
            object.__setattr__(product, name, eta * getattr(self, name))
        return product

    @property
    def is_spectral(self) -> bool:
        """Does it depend on M through its eigenvalues only?"""
        return self.l1 == 0.0

    @property
    def is_shift(self) -> bool:
        """Is its proximal step a plain shift of theta?"""
        return self.ridge == 0.0 and self.norm == 0.0 and self.l1 == 0.0

    def value(self, M: Array) -> float:
        """r(M) of a symmetric positive semidefinite matrix (d, d)."""
        return float(
            self.trace * np.trace(M)
            + 0.5 * self.ridge * np.sum(M * M)
            + self.norm * np.linalg.norm(M)
            + self.l1 * np.abs(M).sum()
        )


class Divergence(ABC):
    """A mirror map psi on eigenvalues. `counts` are their multiplicities (only norms that couple eigenvalues
    need them).
    """

    name: ClassVar[str]
    clips: ClassVar[bool]  # does grad psi map the border of the cone to 0, so that steps end in max(theta, 0)?

    @abstractmethod
    def potential(self, m: Array, counts: Array) -> float:
        """psi at eigenvalues m."""

    @abstractmethod
    def dual(self, m: Array, counts: Array) -> Array:
        """theta = grad psi at eigenvalues m (k,)."""

    @abstractmethod
    def primal(self, theta: Array, counts: Array) -> Array:
        """The inverse of `dual` on its range (k,)."""

    @abstractmethod
    def ridge(self, theta: Array, counts: Array, c: float) -> Array:
        """argmin over m >= 0 of psi(m) - theta'm + c/2 |m|^2, for c > 0 (k,)."""

    @abstractmethod
    def scalar_step(self, mu: float, g: float) -> float:
        """argmin over mu of B_psi(mu, mu_t) + g mu for a scalar (eq. 8 before the clip at 1).

        Raises
        ------
        SolverError
            When the minimum is not attained.
        """

    def bounded(self, theta: Array) -> bool:
        """Does psi(m) - theta'm attain its minimum?"""
        return True

    def shrink(self, theta: Array, counts: Array, penalty: Penalty) -> tuple[Array, Array]:
        """The proximal step in theta.

        Parameters
        ----------
        theta : array (k,)
            Eigenvalues of grad psi(M_t) - eta G.
        counts : array (k,)
            Their multiplicities.
        penalty : Penalty
            Already multiplied by eta; a spectral one.

        Returns
        -------
        theta, m : arrays (k,)
            grad psi of the minimizer, and the minimizer's eigenvalues.

        Raises
        ------
        SolverError
            When the step is unbounded below (Burg) or leaves floating point (von Neumann).
        """
        theta = theta - penalty.trace
        if penalty.norm > 0.0:
            m, radius = self._radial(theta, counts, penalty.ridge, penalty.norm)
            theta = theta - penalty.ridge * m - (penalty.norm * m / radius if radius > 0.0 else theta)
        elif penalty.ridge > 0.0:
            m = self.ridge(theta, counts, penalty.ridge)
            theta = theta - penalty.ridge * m  # stationarity: grad psi(m) + c m = theta
        else:
            if not self.bounded(theta):
                raise unbounded_step(self.name, float(theta.max(initial=-np.inf)))
            if self.clips:
                theta = np.maximum(theta, 0.0)
            return theta, self.primal(theta, counts)
        if self.clips:
            theta = np.where(m > 0.0, np.maximum(theta, 0.0), 0.0)
        return theta, m

    def _radial(self, theta: Array, counts: Array, ridge: float, c: float) -> tuple[Array, float]:
        """The step with c ||m||: at the minimizer the norm acts as a ridge of c / ||m||, so find that radius."""
        from scipy.optimize import brentq

        slope = np.sqrt(float(counts @ np.maximum(theta, 0.0) ** 2))
        if self.clips and slope <= c:
            return np.zeros_like(theta), 0.0
        if not self.clips and not self.bounded(theta) and ridge == 0.0 and slope >= c:
            raise unbounded_step(self.name, float(theta.max()))

        def excess(log_radius: float) -> float:
            m = self.ridge(theta, counts, ridge + c * np.exp(-log_radius))
            size = np.sqrt(float(counts @ (m * m)))
            return float(np.log(size)) - log_radius if size > 0.0 else -1.0

        low, high = -1.0, 1.0
        while excess(low) < 0.0 and low > -650.0:
            low *= 2.0
        while excess(high) > 0.0 and high < 650.0:
            high *= 2.0
        radius = float(np.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-15, maxiter=200)))
        return self.ridge(theta, counts, ridge + c / radius), radius

    def divergence(self, M: Array, N: Array) -> float:
        """B_psi(M, N) of symmetric matrices (d, d)."""
        m = np.asarray(np.linalg.eigvalsh(M), float)
        n, V = np.linalg.eigh(N)
        ones = np.ones(len(m))
        gradient = (V * self.dual(n, ones)) @ V.T
        return self.potential(m, ones) - self.potential(n, ones) - float(np.sum(gradient * (M - N)))


class SquaredFrobenius(Divergence):
    """psi(M) = ||M||_F^2 / 2: a projected proximal gradient step (the POLA-like case)."""

    name = "squared_frobenius"
    clips = True

    def potential(self, m: Array, counts: Array) -> float:
        return 0.5 * float(counts @ (m * m))

    def dual(self, m: Array, counts: Array) -> Array:
        return m

    def primal(self, theta: Array, counts: Array) -> Array:
        return theta

    def ridge(self, theta: Array, counts: Array, c: float) -> Array:
        return np.asarray(np.maximum(theta, 0.0) / (1.0 + c))

    def scalar_step(self, mu: float, g: float) -> float:
        return mu - g


class VonNeumann(Divergence):
    """psi(M) = tr(M log M - M): the matrix exponentiated gradient."""

    name = "von_neumann"
    clips = False

    def potential(self, m: Array, counts: Array) -> float:
        safe = np.where(m > 0.0, m, 1.0)
        return float(counts @ (m * np.log(safe) - m))

    def dual(self, m: Array, counts: Array) -> Array:
        return np.log(m)

    def primal(self, theta: Array, counts: Array) -> Array:
        if theta.size and float(theta.max()) > _LARGEST_EXPONENT:
            raise _overflow(float(theta.max()))
        return np.exp(theta)

    def ridge(self, theta: Array, counts: Array, c: float) -> Array:
        from scipy.special import wrightomega

        return np.asarray(wrightomega(theta + np.log(c)).real / c)  # log m + c m = theta

    def scalar_step(self, mu: float, g: float) -> float:
        if -g + np.log(mu) > _LARGEST_EXPONENT:
            raise _overflow(-g)
        return float(mu * np.exp(-g))


class Burg(Divergence):
    """psi(M) = -log det M: Stein's loss, as in ITML."""

    name = "burg"
    clips = False

    def potential(self, m: Array, counts: Array) -> float:
        return -float(counts @ np.log(m))

    def dual(self, m: Array, counts: Array) -> Array:
        return -1.0 / m

    def primal(self, theta: Array, counts: Array) -> Array:
        return -1.0 / theta

    def bounded(self, theta: Array) -> bool:
        return bool(np.all(theta < 0.0))

    def ridge(self, theta: Array, counts: Array, c: float) -> Array:
        # c m^2 - theta m - 1 = 0, each sign of theta in the form without cancellation
        root = np.hypot(theta, 2.0 * np.sqrt(c))
        return np.asarray(np.where(theta > 0.0, (theta + root) / (2.0 * c), 2.0 / (root - np.minimum(theta, 0.0))))

    def scalar_step(self, mu: float, g: float) -> float:
        inverse = 1.0 / mu + g
        if inverse <= 0.0:
            raise unbounded_step(self.name, -inverse)
        return 1.0 / inverse


class Schatten(Divergence):
    """psi(M) = ||M||_p^2 / 2 with the Schatten p-norm, p > 1; p = 2 is the squared Frobenius norm."""

    name = "schatten"
    clips = True

    def __init__(self, p: float) -> None:
        if not (np.isfinite(p) and p > 1.0):
            raise UsageError(
                Diagnostic(
                    "SPL561",
                    f"the Schatten divergence needs p > 1, and p is {p!r}",
                    help=("p = 1 + 1/log(d) suits low rank",),
                )
            )
        self.p = float(p)
        self.q = self.p / (self.p - 1.0)

    def potential(self, m: Array, counts: Array) -> float:
        return 0.5 * _norm(m, counts, self.p) ** 2

    def dual(self, m: Array, counts: Array) -> Array:
        return _power_gradient(m, counts, self.p)

    def primal(self, theta: Array, counts: Array) -> Array:
        return _power_gradient(theta, counts, self.q)

    def ridge(self, theta: Array, counts: Array, c: float) -> Array:
        """m^(p-1) N^(2-p) + c m = theta with N = ||m||_p: Newton per eigenvalue inside a bracketed root in N."""
        from scipy.optimize import brentq

        positive = theta > 0.0
        if not positive.any():
            return np.zeros_like(theta)
        inside, weights = theta[positive], counts[positive]

        def excess(log_norm: float) -> float:
            s = self._log_roots(inside, c, log_norm)
            return _log_norm(s, weights, self.p) - log_norm

        start = float(np.log(_norm(self.primal(inside, weights), weights, self.p)))
        low, high = start - 1.0, start + 1.0
        while excess(low) < 0.0:
            low -= 2.0 * (start - low)
        while excess(high) > 0.0:
            high += 2.0 * (high - start)
        m = np.zeros_like(theta)
        m[positive] = np.exp(
            self._log_roots(inside, c, float(brentq(excess, low, high, xtol=1e-15, rtol=1e-14, maxiter=300)))
        )
        return m

    def _log_roots(self, theta: Array, c: float, log_norm: float) -> Array:
        """log m; the function is convex and increasing in log m, so Newton from the right never overshoots."""
        log_a = (2.0 - self.p) * log_norm
        s = np.minimum((np.log(theta) - log_a) / (self.p - 1.0), np.log(theta / c))
        for _ in range(200):
            power, linear = np.exp(log_a + (self.p - 1.0) * s), c * np.exp(s)
            move = (power + linear - theta) / ((self.p - 1.0) * power + linear)
            s = s - move
            if float(np.max(np.abs(move))) <= 1e-15 * (1.0 + float(np.max(np.abs(s)))):
                break
        return s

    def scalar_step(self, mu: float, g: float) -> float:
        return mu - g


DIVERGENCES: dict[str, type[Divergence]] = {
    "squared_frobenius": SquaredFrobenius,
    "von_neumann": VonNeumann,
    "burg": Burg,
    "schatten": Schatten,
}


def divergence_named(name: str, p: float | None = None) -> Divergence:
    """The divergence of that name; `p` belongs to ``"schatten"``.

    Raises
    ------
    UsageError
        For an unknown name or an unfit p.
    """
    if name not in DIVERGENCES:
        raise UsageError(
            Diagnostic("SPL561", f"there is no divergence called `{name}`", help=(f"one of: {', '.join(DIVERGENCES)}",))
        )
    if name == "schatten":
        return Schatten(1.5 if p is None else p)
    return DIVERGENCES[name]()


def unbounded_step(name: str, excess: float) -> SolverError:
    """The error of a step whose minimum is at infinity."""
    return SolverError(
        Diagnostic(
            "SPL560",
            f"a step under the {name} divergence is unbounded: M^-1 + eta (G + rho I), or 1/mu + eta g, "
            f"has an eigenvalue <= 0 (by {excess:.3g})",
            help=(
                "lower `step`, raise the trace norm's coefficient, or scale the pairs' differences down",
                "squared_frobenius and von_neumann steps are always bounded",
            ),
        )
    )


def _overflow(exponent: float) -> SolverError:
    return SolverError(
        Diagnostic(
            "SPL560",
            f"a von_neumann step leaves floating point: it needs exp({exponent:.3g})",
            help=("lower `step`, or scale the pairs' differences down",),
        )
    )


def _norm(m: Array, counts: Array, p: float) -> float:
    largest = float(np.max(np.abs(m), initial=0.0))
    if largest == 0.0:
        return 0.0
    return float(largest * float(counts @ np.abs(m / largest) ** p) ** (1.0 / p))


def _log_norm(log_m: Array, counts: Array, p: float) -> float:
    largest = float(log_m.max())
    return largest + float(np.log(counts @ np.exp(p * (log_m - largest)))) / p


def _power_gradient(m: Array, counts: Array, p: float) -> Array:
    """Gradient of ||m||_p^2 / 2 for m >= 0."""
    size = _norm(m, counts, p)
    if size == 0.0:
        return np.zeros_like(m)
    return np.asarray((m / size) ** (p - 1.0) * size)

"""COMID for a vector w: exact steps under squared Euclidean, p-norm and entropic mirror maps on common sets.

In: w, a (mini-batch) gradient, a step length, L1 and ridge coefficients. Out: the minimizer over the set of
B_psi(w, w_t) + eta (g'w + l1 |w|_1 + ridge/2 |w|^2) (Duchi, Shalev-Shwartz, Singer & Tewari 2010, COMID).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.problem.functions import Array

__all__ = ["MIRRORS", "Domain", "VectorMirror", "project_simplex", "refusal"]

MIRRORS = ("euclidean", "p_norm", "entropic")
Kind = Literal["free", "orthant", "box", "simplex", "l2_ball", "l1_ball"]


@dataclass(frozen=True)
class Domain:
    """Where w may be: all of R^d, w >= 0, lower <= w <= upper, {w >= 0, sum w = radius}, or a ball of a radius."""

    kind: Kind = "free"
    lower: Array = field(default_factory=lambda: np.empty(0), repr=False)
    upper: Array = field(default_factory=lambda: np.empty(0), repr=False)
    radius: float = 1.0


def refusal(mirror: str, domain: Domain | Kind, ridge: bool) -> str | None:
    """Why this mirror map has no exact step on this set, as a sentence, or None when it has one."""
    kind = domain if isinstance(domain, str) else domain.kind
    if mirror == "p_norm" and kind not in ("free", "orthant"):
        return f"its p_norm map has no exact step on a {_WORDS[kind]}; euclidean has"
    if mirror == "p_norm" and ridge:
        return "its p_norm map has no exact step for a squared-norm regularizer; euclidean has"
    if mirror == "entropic" and ridge:
        return "its entropic map has no exact step for a squared-norm regularizer; euclidean has"
    if mirror == "entropic" and kind in ("free", "l2_ball"):
        return f"its entropic map needs w >= 0, a box, a simplex or an L1 ball, and w has {_WORDS[kind]}"
    return None


_WORDS = {
    "free": "no constraint",
    "orthant": "non-negative set",
    "box": "box",
    "simplex": "simplex",
    "l2_ball": "Euclidean ball",
    "l1_ball": "L1 ball",
}


class VectorMirror:
    """A mirror map on a set. The state is an array: w itself, or (w+, w-) stacked for entropic on an L1 ball.

    Raises
    ------
    UsageError
        For a mirror map without an exact step on the set, or p <= 1.
    """

    def __init__(self, mirror: str, domain: Domain, l1: float = 0.0, ridge: float = 0.0, p: float = 1.5) -> None:
        if mirror not in MIRRORS:
            raise UsageError(
                Diagnostic(
                    "SPL561", f"there is no mirror map called `{mirror}`", help=(f"one of: {', '.join(MIRRORS)}",)
                )
            )
        complaint = refusal(mirror, domain, ridge > 0.0)
        if complaint:
            raise UsageError(Diagnostic("SPL561", f"comid: {complaint}"))
        if mirror == "p_norm" and not (np.isfinite(p) and p > 1.0):
            raise UsageError(Diagnostic("SPL561", f"the p_norm map needs p > 1, and p is {p!r}"))
        if mirror == "entropic" and domain.kind == "box" and not np.all(np.isfinite(domain.upper - domain.lower)):
            raise UsageError(Diagnostic("SPL561", "the entropic map needs a box that is bounded on both sides"))
        self.mirror, self.domain, self.l1, self.ridge, self.p = mirror, domain, l1, ridge, p

    def start(self, d: int) -> Array:
        """The state before the first step: the minimizer of psi over the set, or near it."""
        kind, radius = self.domain.kind, self.domain.radius
        if kind == "simplex":
            return np.full(d, radius / d)
        if self.mirror == "entropic":
            if kind == "l1_ball":
                return np.full(2 * d, radius / (2 * d))
            return 0.5 * (self.domain.lower + self.domain.upper) if kind == "box" else np.full(d, 1.0 / d)
        w = np.zeros(d)
        return np.clip(w, self.domain.lower, self.domain.upper) if kind == "box" else w

    def value(self, state: Array) -> Array:
        """w (d,) of a state."""
        if self.mirror == "entropic" and self.domain.kind == "l1_ball":
            d = len(state) // 2
            return state[:d] - state[d:]
        return state

    def step(self, state: Array, gradient: Array, eta: float) -> Array:
        """The next state after a gradient (d,) and a step length."""
        if self.mirror == "euclidean":
            return self._euclidean(state, gradient, eta)
        if self.mirror == "p_norm":
            return self._p_norm(state, gradient, eta)
        return self._entropic(state, gradient, eta)

    def _euclidean(self, w: Array, gradient: Array, eta: float) -> Array:
        kind, radius = self.domain.kind, self.domain.radius
        moved = w - eta * gradient
        if kind == "simplex":  # the L1 norm is constant there
            return project_simplex(moved / (1.0 + eta * self.ridge), radius)
        moved = _soft(moved, eta * self.l1) / (1.0 + eta * self.ridge)
        if kind == "orthant":
            return np.maximum(moved, 0.0)
        if kind == "box":
            return np.clip(moved, self.domain.lower, self.domain.upper)
        if kind == "l2_ball":
            size = float(np.sqrt(moved @ moved))
            return moved * (radius / size) if size > radius else moved
        if kind == "l1_ball" and np.abs(moved).sum() > radius:
            return np.asarray(np.sign(moved) * project_simplex(np.abs(moved), radius))
        return moved

    def _p_norm(self, w: Array, gradient: Array, eta: float) -> Array:
        theta = _soft(_power_gradient(w, self.p) - eta * gradient, eta * self.l1)
        if self.domain.kind == "orthant":
            theta = np.maximum(theta, 0.0)
        return _power_gradient(theta, self.p / (self.p - 1.0))

    def _entropic(self, state: Array, gradient: Array, eta: float) -> Array:
        kind, radius = self.domain.kind, self.domain.radius
        if kind == "box":
            return self._entropic_box(state, gradient, eta)
        if kind == "l1_ball":
            gradient = np.concatenate([gradient, -gradient])
        exponent = -eta * (gradient + (0.0 if kind == "simplex" else self.l1))
        with np.errstate(divide="ignore"):
            logs = np.log(state) + exponent
        top = float(logs.max())
        grown = np.exp(logs - top)
        total = float(grown.sum())
        if kind == "simplex" or (kind == "l1_ball" and top + np.log(total) > np.log(radius)):
            return np.asarray(grown * (radius / total))
        return np.asarray(np.exp(np.minimum(logs, 700.0)))

    def _entropic_box(self, w: Array, gradient: Array, eta: float) -> Array:
        """psi = sum (w - a) log(w - a) + (b - w) log(b - w): a logistic step; the L1 norm makes it stick at w = 0."""
        lower, upper = self.domain.lower, self.domain.upper
        with np.errstate(divide="ignore"):
            theta = np.log(w - lower) - np.log(upper - w) - eta * gradient
            # grad psi at w = 0, beyond all theta where 0 lies outside the box
            inside = np.log(np.maximum(-lower, 0.0)) - np.log(np.maximum(upper, 0.0))
        shift = eta * self.l1
        theta = np.where(theta - shift > inside, theta - shift, np.where(theta + shift < inside, theta + shift, inside))
        from scipy.special import expit

        return np.asarray(lower + (upper - lower) * expit(theta))


def project_simplex(v: Array, radius: float) -> Array:
    """The nearest point (d,) of {w >= 0, sum w = radius}, by sorting."""
    ordered = np.sort(v)[::-1]
    excess = np.cumsum(ordered) - radius
    k = np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(ordered * k > excess)[-1])
    return np.asarray(np.maximum(v - excess[last] / (last + 1.0), 0.0))


def _soft(v: Array, c: float) -> Array:
    return v if c == 0.0 else np.asarray(np.sign(v) * np.maximum(np.abs(v) - c, 0.0))


def _power_gradient(v: Array, p: float) -> Array:
    """Gradient of ||v||_p^2 / 2."""
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(v)
    size = largest * float((np.abs(v / largest) ** p).sum()) ** (1.0 / p)
    return np.asarray(np.sign(v) * np.abs(v / size) ** (p - 1.0) * size)

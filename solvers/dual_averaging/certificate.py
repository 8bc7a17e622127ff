"""A duality gap from the slopes that a run has seen: how far the objective can still fall, at most.

In: a `LinearModel`, each sample's weighted mean slope and mean of ``s z - phi(z)``. Out: a lower bound on the optimum.

For any u_i in the domain of phi_i*,  F >= sum u_i offset_i - phi_i*(u_i) + min over the set of <A'u, w> + r(w). A mean
of slopes lies in the domain, and phi_i* of it is at most the mean of ``s z - phi(z)``, as phi_i* is convex and that is
its value at a slope. Where no box holds the minimum up, u is shrunk until it is finite:
phi_i*(t u) <= t phi_i*(u) - (1 - t) inf phi_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.dual_averaging.linear import LinearModel

__all__ = ["least_losses", "lower_bound"]

_FAR = 1e8


def least_losses(model: LinearModel) -> Array | None:
    """A lower bound on every sample's loss, (m,) or (1,); None when one has none.

    A convex function of one argument is searched by thirds between -1e8 and 1e8; one that still falls there, other than
    to a limit, has no least value.
    """
    theta: tuple[Any, ...] = model.parameters
    rows = model.design.shape[0] if any(np.ndim(part) for part in theta) else 1

    def value(z: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(model.kernel.value(model.kernel.piece(z, *theta), z, *theta), float)

    a, b = np.full(rows, -_FAR), np.full(rows, _FAR)
    ends = np.minimum(value(a), value(b))
    further = np.minimum(value(2.0 * a), value(2.0 * b))
    with np.errstate(invalid="ignore"):
        if not np.all(further >= ends - 1e-9 * np.maximum(1.0, np.abs(ends))):
            return None
    for _ in range(110):
        left, right = a + (b - a) / 3.0, b - (b - a) / 3.0
        falls = value(left) > value(right)
        a, b = np.where(falls, left, a), np.where(falls, b, right)
    found = np.minimum(value(0.5 * (a + b)), ends)
    return np.asarray(found - 1e-9 * np.abs(found))


def lower_bound(model: LinearModel, low: Array, high: Array, averages: Array, w: Array, b: float) -> float:
    """The best lower bound on the optimum that these slopes give, -inf when none.

    Parameters
    ----------
    low, high : arrays
        The box of the run (the model's, or Lemma 3's, which holds the optimum too).
    averages : array (m, 3)
        Sums of a, a s and a (s z - phi(z)) for each sample.
    w, b
        Where samples that were never drawn take their slopes.
    """
    seen = averages[:, 0] > 0.0
    total = np.where(seen, averages[:, 0], 1.0)
    u, conjugate = averages[:, 1] / total, averages[:, 2] / total
    if not seen.all():
        z = model.design.products(w, b)
        slope = model.slopes_at(z)
        u = np.where(seen, u, slope)
        conjugate = np.where(seen, conjugate, slope * z - model.losses_at(z))
    g, g_b = model.design.adjoint(u)
    fixed = float(np.sum(u * model.design.offset) - np.sum(conjugate))
    least = least_losses(model)
    at_rest = None if least is None else float(np.sum(np.broadcast_to(least, u.shape)))

    def dual(share: float) -> float:
        held = share * fixed + ((1.0 - share) * at_rest if share < 1.0 and at_rest is not None else 0.0)
        inner = _least(share * g + model.linear, model.rho, model.mu, low, high)
        if model.intercept:
            slope = np.array([share * g_b + model.intercept_linear])
            bounds = [np.array([edge]) for edge in model.intercept_box]
            inner += _least(slope, np.zeros(1), np.zeros(1), bounds[0], bounds[1])
        return held + inner + model.constant

    if at_rest is None:
        return dual(1.0)
    return max(dual(share) for share in _shares(g + 0.0, model))


def _shares(g: Array, model: LinearModel) -> list[float]:
    """Factors to try on u: the one at which the largest |g_j| meets rho_j, and a few on both sides."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.abs(g) > 0.0, model.rho / np.abs(g), np.inf)
    edge = min(1.0, float(np.min(ratio, initial=np.inf)))
    return sorted({0.0, *np.linspace(edge, 1.0, 24).tolist(), edge * (1.0 - 1e-12)})


def _least(g: Array, rho: Array, mu: Array, low: Array, high: Array) -> float:
    """Minimum over the box of ``sum g_j w_j + rho_j |w_j| + mu_j w_j^2 / 2``."""
    g, rho, mu, low, high = np.broadcast_arrays(g, rho, mu, low, high)
    excess = np.sign(g) * np.maximum(np.abs(g) - rho, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.where(excess == 0.0, 0.0, -excess / mu)
    w = np.clip(np.nan_to_num(w, nan=0.0, posinf=np.inf, neginf=-np.inf), low, high)
    if not np.all(np.isfinite(w)):
        return -np.inf
    return float(np.sum(g * w + rho * np.abs(w) + 0.5 * mu * w * w))

"""The proximal step of the penalty and the set together: L1, L2 and linear terms over a box or one ball.

In: a point v and a weight t. Out: the minimizer of ``|z - v|^2 / 2 + t r(z)`` over the set, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.dual_averaging.linear import Ball

__all__ = ["Penalty", "project_l1_ball"]


@dataclass(frozen=True)
class Penalty:
    """r(w) = sum rho_j |w_j| + mu_j w_j^2 / 2 + linear_j w_j on a box or a ball (never both)."""

    rho: Array
    mu: Array
    linear: Array
    low: Array
    high: Array
    ball: Ball | None = None

    def prox(self, v: Array, t: float, metric: Array | float = 1.0) -> Array:
        """Minimizer of ``sum metric_j (z_j - v_j)^2 / 2 + t r(z)``; a ball needs the plain metric.

        Parameters
        ----------
        v : array (d,)
        t : float
        metric : array (d,) or float
        """
        weight = metric + t * self.mu
        z = soft(metric * v - t * self.linear, t * self.rho) / weight
        z = np.clip(z, self.low, self.high)
        if self.ball is None:
            return np.asarray(z)
        part = z[self.ball.where]
        if self.ball.norm == "l2":
            length = float(np.linalg.norm(part))
            # the ball's multiplier adds to the ridge, which only shrinks: the direction stays
            z[self.ball.where] = part if length <= self.ball.radius else part * (self.ball.radius / length)
        else:
            # the ball's multiplier adds to the L1 coefficient: threshold on, by theta / weight
            mass = np.broadcast_to(weight, z.shape)[self.ball.where]
            z[self.ball.where] = project_l1_ball(part, self.ball.radius, mass)
        return np.asarray(z)


def soft(v: Array, t: Array | float) -> Array:
    """Soft threshold: sign(v) (|v| - t)_+."""
    return np.asarray(np.sign(v) * np.maximum(np.abs(v) - t, 0.0))


def project_l1_ball(v: Array, radius: float, weight: Array | float = 1.0) -> Array:
    """The point of the L1 ball that is nearest in ``sum weight_j (z_j - v_j)^2``.

    Sorting the breakpoints weight_j |v_j| at which coordinates vanish gives the multiplier in O(d log d) (the weighted
    form of the classic projection).
    """
    magnitude = np.abs(v)
    if magnitude.sum() <= radius:
        return v
    weight = np.broadcast_to(np.asarray(weight, float), v.shape)
    breaks = weight * magnitude
    order = np.argsort(-breaks)
    mass = np.cumsum(magnitude[order])
    inverse = np.cumsum(1.0 / weight[order])
    theta = (mass - radius) / inverse  # the multiplier if exactly the first k stay
    stay = int(np.nonzero(breaks[order] > theta)[0][-1])
    return soft(v, max(float(theta[stay]), 0.0) / weight)

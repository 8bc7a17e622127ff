"""The dense twins: every lazy method written out step by step over full vectors, straight from the formulas.

Nothing is shared with the engine but the row numbers. O(d) a step, no tables, no closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


def soft(v: Any, t: Any) -> Any:
    return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)


@dataclass
class Twin:
    """Run `method` for as many steps as `rows` gives; the results are `w` (sum of a z over A), `z` and `b`, `zb`."""

    family: str
    linear: bool = False
    primal: bool = True
    gamma: float = 1.0
    delta: float = 1.0
    eta: float = 1.0
    rho: Any = 0.0
    mu: float = 0.0
    bias: Any = 0.0
    low: Any = -np.inf
    high: Any = np.inf
    intercept: bool = False
    batch: int = 1
    scale: float = 1.0

    def run(self, X: Any, factor: Any, offset: Any, slope: Any, rows: Any) -> Twin:
        d = X.shape[1]
        z, s, squares = np.clip(np.zeros(d), self.low, self.high), np.zeros(d), np.zeros(d)
        zb = sb = squares_b = 0.0
        a = A = 1.0
        total, total_b = a * z, 0.0
        for k, drawn in enumerate(np.asarray(rows).reshape(-1, self.batch)):
            at, at_b = (total / A, total_b / A) if self.primal else (z, zb)
            g, gb = np.zeros(d), 0.0
            for i in drawn:
                margin = factor[i] * (X[i] @ at + (at_b if self.intercept else 0.0)) + offset[i]
                u = slope(margin, i) * self.scale / self.batch * factor[i]
                g, gb = g + u * X[i], gb + u
            g = g + self.bias
            gamma = self.gamma * ((k + 1) ** 1.5 if self.linear else (k + 1) ** 0.5)
            if self.family == "dual_averaging":
                s, sb = s + a * g, sb + a * gb
                z, zb = -soft(s, self.rho * A) / (gamma + self.mu * A), -sb / gamma
            elif self.family == "subgradient":
                q = a / gamma
                z, zb = soft(z - q * g, q * self.rho) / (1 + q * self.mu), zb - q * gb
            else:
                new, new_b = squares + g**2, squares_b + gb**2
                if self.family == "ftrl":
                    s = s - (np.sqrt(new) - np.sqrt(squares)) / self.eta * z
                    sb = sb - (np.sqrt(new_b) - np.sqrt(squares_b)) / self.eta * zb
                s, sb, squares, squares_b = s + g, sb + gb, new, new_b
                z = -soft(s, self.rho * A) / ((self.delta + np.sqrt(squares)) / self.eta + self.mu * A)
                zb = -sb / ((self.delta + np.sqrt(squares_b)) / self.eta)
            z = np.clip(z, self.low, self.high)
            a = k + 2.0 if self.linear else 1.0
            A += a
            total, total_b = total + a * z, total_b + a * zb
        self.w, self.z, self.b, self.zb = total / A, z, total_b / A, zb
        return self

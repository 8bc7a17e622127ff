"""Age-paths by brute force: many small steps of alternate convex search with coordinate descent, sharing no code with spdsl."""

from __future__ import annotations

import numpy as np
from problems import GAMMA, LOG_A

WEIGHTS = {
    "linear": lambda loss, age: np.maximum(1.0 - loss / age, 0.0),
    "hard": lambda loss, age: (loss < age).astype(float),
    "mixture": lambda loss, age: np.clip(GAMMA * (1.0 / np.sqrt(np.maximum(loss, 1e-300)) - 1.0 / age), 0.0, 1.0),
    "log": lambda loss, age: np.minimum(1.0, (1.0 + LOG_A * age) / (1.0 + LOG_A * loss)),
    "welsch": lambda loss, age: np.exp(-loss / age),
}


def elastic_net(G, b, w, l1, l2):
    """min w'Gw/2 - b'w + l1 |w|_1 + l2 |w|^2 / 2 by coordinate descent to rounding."""
    w = w.copy()
    d = len(w)
    for _ in range(10_000):
        largest = 0.0
        for j in range(d):
            z = b[j] - G[j] @ w + G[j, j] * w[j]
            new = (max(z - l1, 0.0) + min(z + l1, 0.0)) / (G[j, j] + l2) if G[j, j] + l2 > 0 else 0.0
            largest = max(largest, abs(new - w[j]))
            w[j] = new
        if largest < 1e-14:
            return w
    raise AssertionError("coordinate descent did not converge")


def partial_optimum(X, y, w, age, self_paced, factor, l1, l2, damping, tolerance=1e-10, max_rounds=200_000):
    """Damped alternate convex search from w for squared losses factor (x'w - y)^2 / 2.

    A full step (damping 1) minimizes a majorant and may leap over the nearest minimum; small ones follow its slope down.
    """
    for _ in range(max_rounds):
        v = factor * WEIGHTS[self_paced](factor * (X @ w - y) ** 2 / 2, age)
        new = elastic_net((X.T * v) @ X, X.T @ (v * y), w, l1, l2)
        change = np.abs(new - w).max()
        w = w + damping * (new - w)
        if change <= tolerance:
            return new
    raise AssertionError("alternate search did not converge")


def small_steps(X, y, w, ages, self_paced, factor, l1=0.0, l2=0.0, damping=0.2):
    """The partial optima at all ages, each started from the one before (k, d)."""
    path = []
    for age in ages:
        w = partial_optimum(X, y, w, age, self_paced, factor, l1, l2, damping)
        path.append(w)
    return np.array(path)

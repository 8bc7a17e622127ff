"""A few losses, in plain NumPy for the twins and compiled for the engine."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

SLOPES: dict[str, Any] = {
    "hinge": lambda z, i: -1.0 if z < 1.0 else 0.0,
    "logistic": lambda z, i: -1.0 / (1.0 + np.exp(z)),
    "squared": lambda z, i: z,
    "quantile": lambda z, i: 0.3 if z >= 0.0 else -0.7,
    "huber": lambda z, i: max(-0.5, min(0.5, z)),
}


@cache
def compiled_loss(name: str) -> Any:
    """The kernels `slope` and `value` that the engine takes."""
    from numba import njit, types

    slopes = {
        "hinge": lambda z, theta: -1.0 if z < 1.0 else 0.0,
        "logistic": lambda z, theta: -1.0 / (1.0 + np.exp(z)),
        "squared": lambda z, theta: z,
        "quantile": lambda z, theta: 0.3 if z >= 0.0 else -0.7,
        "huber": lambda z, theta: max(-0.5, min(0.5, z)),
    }
    values = {
        "hinge": lambda z, theta: max(0.0, 1.0 - z),
        "logistic": lambda z, theta: np.log1p(np.exp(-z)),
        "squared": lambda z, theta: 0.5 * z * z,
        "quantile": lambda z, theta: max(0.3 * z, -0.7 * z),
        "huber": lambda z, theta: 0.5 * z * z if abs(z) <= 0.5 else 0.5 * (abs(z) - 0.25),
    }
    compiled = njit(types.float64(types.float64, types.float64[:]))
    return SimpleNamespace(slope=compiled(slopes[name]), value=compiled(values[name]))

"""Slopes of a few losses, in plain NumPy for the twins and compiled for the engine."""

from __future__ import annotations

from functools import cache
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
def compiled_slope(name: str) -> Any:
    from numba import njit, types

    bodies = {
        "hinge": lambda z, theta: -1.0 if z < 1.0 else 0.0,
        "logistic": lambda z, theta: -1.0 / (1.0 + np.exp(z)),
        "squared": lambda z, theta: z,
        "quantile": lambda z, theta: 0.3 if z >= 0.0 else -0.7,
        "huber": lambda z, theta: max(-0.5, min(0.5, z)),
    }
    return njit(types.float64(types.float64, types.float64[::1]))(bodies[name])

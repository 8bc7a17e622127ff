"""Scalar functions that stay finite where the textbook formula overflows; what generated kernels call.

In: arrays or floats. Out: the same shape. `NUMPY` holds the functions for the vectorized tier, `NUMBA` the source
text of their scalar twins, which is copied into a generated file that uses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["LARGEST_EXPONENT", "NUMBA", "NUMPY"]

LARGEST_EXPONENT = 709.0  # exp(709) = 8.2e307 is the last power of e below the largest float


def _exp(u: Any) -> Any:
    """e^u, capped at 8.2e307 instead of inf, so that a product with 0 is 0 and a difference is not nan."""
    return np.exp(np.minimum(u, LARGEST_EXPONENT))


def _softplus(u: Any) -> Any:
    """log(1 + e^u)."""
    return np.maximum(u, 0.0) + np.log1p(np.exp(-np.abs(u)))


def _sigmoid(u: Any) -> Any:
    """1 / (1 + e^-u), with full relative precision in both tails."""
    small = np.exp(-np.abs(u))
    return np.where(np.asarray(u) >= 0.0, 1.0, small) / (1.0 + small)


def _solve(slope: Any, curvature: Any, loss: Any, low: Any, high: Any, age: Any, *theta: Any) -> Any:
    """The zero v in [low, high] of slope(v, loss, ...), which grows with v, by Newton safeguarded by bisection.

    `loss` and each of `theta` a float or an array (n,). Converges to the last bit; a zero outside gives its end.
    """
    loss = np.asarray(loss, float)
    given = (age, low, high, *theta)
    last = _LAST.get(slope.__code__)  # v*, dv*/dl and dv*/dage are asked for at the same losses, one after the other
    if last is not None and _equal(last[0], given) and np.array_equal(last[1], loss):
        return last[2].copy()
    v = _solved(slope, curvature, loss, low, high, age, *theta)
    _LAST[slope.__code__] = (given, loss.copy(), v)
    return v.copy()


_LAST: dict[Any, tuple[tuple[Any, ...], Any, Any]] = {}


def _equal(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second))


def _solved(slope: Any, curvature: Any, loss: Any, low: Any, high: Any, age: Any, *theta: Any) -> Any:
    low = np.broadcast_to(np.asarray(low, float), loss.shape).copy()
    high = np.broadcast_to(np.asarray(high, float), loss.shape).copy()
    v = 0.5 * (low + high)
    open_ = np.ones(loss.shape, bool)
    for _ in range(1100):
        value = slope(v, loss, age, *theta)
        above = value > 0.0
        high = np.where(open_ & above, v, high)
        low = np.where(open_ & ~above, v, low)
        ahead = v - value / curvature(v, age, *theta)
        ahead = np.where((ahead > low) & (ahead < high), ahead, 0.5 * (low + high))
        done = np.abs(ahead - v) <= 2.2e-16 * np.abs(v)
        v = np.where(open_, ahead, v)
        open_ = open_ & ~done
        if not open_.any():
            break
    return v


NUMPY: dict[str, Callable[..., Any]] = {
    "_exp": _exp,
    "_softplus": _softplus,
    "_sigmoid": _sigmoid,
    "_solve": _solve,
}

NUMBA: dict[str, str] = {
    "_exp": """
@njit(inline="always")
def _exp(u):
    return math.exp(min(u, 709.0))
""",
    "_softplus": """
@njit(inline="always")
def _softplus(u):
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))
""",
    "_sigmoid": """
@njit(inline="always")
def _sigmoid(u):
    small = math.exp(-abs(u))
    return (1.0 if u >= 0.0 else small) / (1.0 + small)
""",
}

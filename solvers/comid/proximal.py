"""The proximal step of a piecewise smooth convex loss, elementwise: argmin over z of phi(z) + sigma/2 (z - v)^2.

In: a `PieceKernel` with its parameters, v (n,), sigma. Out: z (n,): at a kink where the subdifferential holds
it there, else the root of phi'(z) + sigma (z - v) on the piece that holds it, by Newton inside a bracket.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.problem.functions import Array, PieceKernel

__all__ = ["piecewise_prox"]


def piecewise_prox(kernel: PieceKernel, theta: tuple[Any, ...], v: Array, sigma: Array | float) -> Array:
    """argmin over z of phi(z; theta) + sigma/2 (z - v)^2, elementwise (n,); phi convex, sigma a number or (n,)."""
    borders = [np.broadcast_to(np.asarray(at, float), v.shape) for at in kernel.breaks(*theta)]
    label = np.zeros(len(v), dtype=np.int8)
    held = np.zeros(len(v), dtype=bool)
    where = np.zeros(len(v))
    low, high = np.full(len(v), -np.inf), np.full(len(v), np.inf)
    for k, at in enumerate(borders):
        pull = sigma * (at - v)
        left = kernel.slope(k, at, *theta) + pull
        right = kernel.slope(k + 1, at, *theta) + pull
        beyond = right < 0.0
        here = (left <= 0.0) & ~beyond
        label[beyond] = k + 1
        low = np.where(beyond, at, low)
        high = np.where(~beyond & ~here & (high == np.inf), at, high)
        where, held = np.where(here & ~held, at, where), held | here
    z = np.where(held, where, np.clip(v, low, high))
    return np.where(held, where, _roots(kernel, theta, label, z, v, sigma))


def _roots(kernel: PieceKernel, theta: tuple[Any, ...], label: Any, z: Array, v: Array, sigma: Array | float) -> Array:
    """Roots of slope(label, z) + sigma (z - v); it grows at least as sigma, so |value| / sigma brackets them."""
    value = kernel.slope(label, z, *theta) + sigma * (z - v)
    low, high = np.minimum(z, z - value / sigma), np.maximum(z, z - value / sigma)
    last = np.full(len(v), np.inf)
    for _ in range(200):
        step = value / (np.maximum(kernel.curvature(label, z, *theta), 0.0) + sigma)
        # rounding in the slope moves the root by a few eps |slope| / sigma, which is a few eps |z - v|
        noise = 1e-14 * (1.0 + np.abs(z) + np.abs(z - v))
        if bool(np.all(np.abs(step) <= noise)):
            return np.asarray(z - step)
        # Newton alone swings between two flat ends (a logistic loss far out): then halve the bracket
        wild = (z - step < low) | (z - step > high) | (2.0 * np.abs(step) > last)
        new = np.where(wild & (np.abs(step) > noise), 0.5 * (low + high), z - step)
        last, z = np.abs(new - z), new
        value = kernel.slope(label, z, *theta) + sigma * (z - v)
        low, high = np.where(value < 0.0, z, low), np.where(value > 0.0, z, high)
    return z

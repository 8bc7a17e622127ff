"""Compiled loops over kernel rows and samples, where copies of the rows would cost more than the arithmetic.

In: stored rows and where they lie; the labels of a block. Out: sums of rows; gaps and rates of all samples. Importing this
module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import FAR

__all__ = ["combine", "gaps", "rank_one"]

_CHUNK = 1024  # columns whose sums stay in the innermost cache
_FAR = FAR


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"}, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def combine(rows: Array, slots: Any, weights: Array, out: Array) -> None:
    """out (n,) = sum of weights[k] * rows[slots[k]]; rows of weight 0 cost nothing."""
    n = out.size
    m = slots.size
    for start in range(0, n, _CHUNK):
        end = min(start + _CHUNK, n)
        total = out[start:end]
        total[:] = 0.0
        k = 0
        while k + 3 < m:  # four rows at a time: the sums are read and written once
            a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            first, second = rows[slots[k], start:end], rows[slots[k + 1], start:end]
            third, fourth = rows[slots[k + 2], start:end], rows[slots[k + 3], start:end]
            for j in range(end - start):
                total[j] += a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
            k += 4
        while k < m:
            a, first = weights[k], rows[slots[k], start:end]
            for j in range(end - start):
                total[j] += a * first[j]
            k += 1


@njit(cache=True, fastmath={"contract"}, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def rank_one(N: Array, k: int, u: Array, factor: float) -> None:
    """N[:k, :k] += factor * u u'."""
    for i in range(k):
        scaled = factor * u[i]
        if scaled != 0.0:
            row = N[i]
            for j in range(k):
                row[j] += scaled * u[j]


@njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def gaps(
    piece: Any, kink: Any, band: Any, u: Array, loss: Array, slope: Array, du: Array, borders: Array, bands: Array,
    moves: Array, scale: float, age: float, dage: float, gap: Array, rate: Array,
) -> None:  # fmt: skip
    """`RowBlock.gaps` (4, n) of rows that are not held; of held rows the gaps of their bands."""
    last, steps = borders.shape[0], bands.size
    for i in range(u.size):
        held = kink[i] >= 0
        gap[0, i] = gap[1, i] = gap[2, i] = gap[3, i] = _FAR
        rate[0, i] = rate[1, i] = rate[2, i] = rate[3, i] = 0.0
        if not held:
            p = piece[i]
            if p > 0 and np.isfinite(borders[p - 1, i]):
                gap[0, i] = (u[i] - borders[p - 1, i]) / scale
                rate[0, i] = du[i] / scale
            if p < last and np.isfinite(borders[p, i]):
                gap[1, i] = (borders[p, i] - u[i]) / scale
                rate[1, i] = -du[i] / scale
        change = 0.0 if held else slope[i] * du[i]
        k = band[i]
        if k > 0 and np.isfinite(bands[k - 1]):
            gap[2, i] = (loss[i] - bands[k - 1]) / age
            rate[2, i] = (change - moves[k - 1] * dage) / age
        if k < steps and np.isfinite(bands[k]):
            gap[3, i] = (bands[k] - loss[i]) / age
            rate[3, i] = (moves[k] * dage - change) / age

"""Compiled loops for tall, narrow designs, where copies of the rows would cost more than the arithmetic.

In: a dense design and weights of its rows. Out: its weighted Gram matrix. Importing this module imports numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from spdsl.problem.functions import Array

__all__ = ["weighted_gram"]


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})  # type: ignore[untyped-decorator]
def weighted_gram(A: Array, weights: Array) -> Array:
    """A' diag(weights) A (f, f) of A (m, f); rows of weight 0 cost nothing."""
    m, f = A.shape
    H = np.zeros((f, f))
    for i in range(m):
        w = weights[i]
        if w == 0.0:
            continue
        for j in range(f):
            scaled = w * A[i, j]
            for k in range(j + 1):
                H[j, k] += scaled * A[i, k]
    for j in range(f):
        for k in range(j):
            H[k, j] = H[j, k]
    return H

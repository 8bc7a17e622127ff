"""An upper bound on the energy that any admissible support can capture, from the dual of one Goemans-Williamson growth.

In: a graph's edges, prizes, size s, pieces g, the edge cost lam of the growth. Out: a number that no support of s
nodes in at most g pieces exceeds. For a forest S of s nodes and g' trees: the prizes outside S pay for the dual of
every set that misses S, each of its s - g' edges (lam apiece) for the sets that it crosses, and what is left are sets
that hold whole trees of S and cross none: at most g' chains of the laminar family. So energy <= sum p + lam (s - g')
- sum y + the best g' chains.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

import numpy as np

from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.growth import grow

__all__ = ["dual_bound", "largest_sum"]


@compiled
def largest_sum(prizes, s):
    """The sum of the s largest prizes."""
    n = prizes.shape[0]
    if s >= n:
        return prizes.sum()
    return np.partition(prizes, n - s)[n - s :].sum()


@compiled
def dual_bound(ends, prizes, s, g, lam):
    """The bound for edge cost `lam` (any non-negative number gives a valid one)."""
    n = prizes.shape[0]
    _, dual, parent, _ = grow(ends, np.full(ends.shape[0], lam), prizes, 0)
    k = dual.shape[0]
    count = np.zeros(k, np.int64)
    count[:n] = 1
    for c in range(k):
        if parent[c] >= 0:
            count[parent[c]] += count[c]
    if g == 1:
        # One chain, and only sets with room for s nodes count.
        above = np.zeros(k)
        best = 0.0
        for c in range(k - 1, -1, -1):
            above[c] = (dual[c] if count[c] >= s else 0.0) + (above[parent[c]] if parent[c] >= 0 else 0.0)
            best = max(best, above[c])
        slackest = lam * (s - 1) + best
    else:
        # The union of the g best chains: split the family into its longest paths (greedy is optimal on a tree).
        tall = dual.copy()
        longest = np.zeros(k)
        starts = np.empty(k)
        m = 0
        for c in range(k):
            tall[c] += longest[c]
            if parent[c] < 0:
                starts[m] = tall[c]
                m += 1
            elif tall[c] > longest[parent[c]]:
                if longest[parent[c]] > 0:
                    starts[m] = longest[parent[c]]
                    m += 1
                longest[parent[c]] = tall[c]
            else:
                starts[m] = tall[c]
                m += 1
        ranked = np.sort(starts[:m])[::-1]
        slackest = -np.inf
        total = 0.0
        for pieces in range(1, g + 1):
            if pieces <= m:
                total += ranked[pieces - 1]
            slackest = max(slackest, lam * (s - pieces) + total)
    bound = prizes.sum() - dual.sum() + slackest
    # The growth adds and subtracts numbers of the size of the sum of the prizes.
    return bound + 1e-12 * prizes.sum()

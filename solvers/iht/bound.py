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
from numpy.typing import NDArray

from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.growth import grow

__all__ = ["dual_bound", "largest_sum"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def largest_sum(prizes: Floats, s: int) -> float:
    """The sum of the s largest prizes."""
    n = prizes.shape[0]
    return float(prizes.sum() if s >= n else np.partition(prizes, n - s)[n - s :].sum())


def dual_bound(graph: Graph, prizes: Floats, s: int, g: int, lam: float) -> float:
    """The bound for edge cost `lam` (any non-negative number gives a valid one)."""
    costs = np.full(len(graph.edges), float(lam))
    _, dual, parent, _ = grow(graph.indptr, graph.half_edges, graph.edges, costs, prizes, 0)
    whole = float(prizes.sum())
    if g == 1:
        slackest = lam * (s - 1) + float(best_chain(dual, parent, prizes.shape[0], s))
    else:
        chains = np.sort(longest_chains(dual, parent))[::-1]
        unions = np.cumsum(np.concatenate([chains, np.zeros(g)]))[:g]
        slackest = float((lam * (s - np.arange(1, g + 1)) + unions).max())
    # The growth adds and subtracts numbers of the size of the sum of the prizes.
    return whole - float(dual.sum()) + slackest + 1e-12 * whole


@compiled
def best_chain(dual, parent, n, s):
    """The largest sum of y along a chain of sets of at least s nodes."""
    k = dual.shape[0]
    count = np.zeros(k, np.int64)
    for c in range(k):
        if c < n:
            count[c] = 1
        if parent[c] >= 0:
            count[parent[c]] += count[c]
    above = np.zeros(k)
    best = 0.0
    for c in range(k - 1, -1, -1):
        if count[c] >= s:
            above[c] = dual[c]
        if parent[c] >= 0:
            above[c] += above[parent[c]]
        best = max(best, above[c])
    return best


@compiled
def longest_chains(dual, parent):
    """The family split into longest paths: the union of the g best chains is the g longest (greedy is optimal)."""
    k = dual.shape[0]
    longest = np.zeros(k)
    paths = np.empty(2 * k)
    m = 0
    for c in range(k):
        tall = dual[c] + longest[c]
        u = parent[c]
        if u < 0:
            paths[m] = tall
            m += 1
        elif tall > longest[u]:
            paths[m] = longest[u]
            m += 1
            longest[u] = tall
        else:
            paths[m] = tall
            m += 1
    return paths[:m]

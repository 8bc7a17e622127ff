"""Pruning a grown forest: the best subtree of each of its trees, and the best few of those.

In: the forest of `growth.grow`, prizes and costs. Out: at most g trees with the largest sum of ``weight * prizes -
costs``. With weight 2 the result keeps Goemans and Williamson's guarantee c(F) + 2 pi(rest) <= 2 min over forests of
g trees of c + pi(rest), because their pruned trees are among those compared; with weight 1 it is strong pruning
(Johnson, Minkoff and Phillips 2000).
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

import numpy as np

from spdsl.solvers.iht.compiled import compiled

__all__ = ["forest_rows", "prune"]


@compiled
def forest_rows(n, ends, edges):
    """Rows of the forest with the given edges: start, neighbour, edge."""
    start = np.zeros(n + 1, np.int32)
    for i in range(edges.shape[0]):
        e = edges[i]
        start[ends[e, 0] + 1] += 1
        start[ends[e, 1] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    fill = start[:n].copy()
    beside = np.empty(max(2 * edges.shape[0], 1), np.int32)
    through = np.empty(max(2 * edges.shape[0], 1), np.int32)
    for i in range(edges.shape[0]):
        e = edges[i]
        for side in range(2):
            u, v = ends[e, side], ends[e, 1 - side]
            beside[fill[u]] = v
            through[fill[u]] = e
            fill[u] += 1
    return start, beside, through


@compiled
def prune(ends, costs, prizes, merges, trees, weight):
    """At most `trees` disjoint subtrees of the forest with the largest ``weight * prizes - costs``.

    Returns
    -------
    nodes : int array
        Their nodes.
    edges : int array
        Their edges.
    """
    n = prizes.shape[0]
    start, beside, through = forest_rows(n, ends, merges)
    order = np.empty(n, np.int32)
    above = np.full(n, -1, np.int32)
    by = np.full(n, -1, np.int32)
    seen = np.zeros(n, np.bool_)
    tree = np.empty(n, np.int32)
    count = 0
    number = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        order[count] = root
        head = count
        count += 1
        while head < count:
            u = order[head]
            head += 1
            tree[u] = number
            for a in range(start[u], start[u + 1]):
                v = beside[a]
                if not seen[v]:
                    seen[v] = True
                    above[v] = u
                    by[v] = through[a]
                    order[count] = v
                    count += 1
        number += 1
    gain = np.empty(n)
    for v in range(n):
        gain[v] = weight * prizes[v]
    for i in range(n - 1, -1, -1):
        v = order[i]
        if above[v] >= 0:
            rest = gain[v] - costs[by[v]]
            if rest > 0:
                gain[above[v]] += rest
    best = np.full(number, -1, np.int32)
    for i in range(n):
        v = order[i]
        if best[tree[v]] < 0 or gain[v] > gain[best[tree[v]]]:
            best[tree[v]] = v
    taken = np.zeros(n, np.bool_)
    nodes = np.empty(n, np.int32)
    edges = np.empty(n, np.int32)
    k = 0
    m = 0
    for _ in range(min(trees, number)):
        root = -1
        for t in range(number):
            v = best[t]
            if not taken[v] and (root < 0 or gain[v] > gain[root]):
                root = v
        if gain[root] <= 0:
            break
        taken[root] = True
        nodes[k] = root
        k += 1
    # Parents come first in `order`: a node joins when its parent did and it pays for its edge.
    for i in range(n):
        v = order[i]
        u = above[v]
        if u >= 0 and taken[u] and not taken[v] and gain[v] - costs[by[v]] > 0:
            taken[v] = True
            nodes[k] = v
            k += 1
            edges[m] = by[v]
            m += 1
    return nodes[:k], edges[:m]

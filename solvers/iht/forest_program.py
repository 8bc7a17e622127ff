"""The exact best s nodes of a forest that form at most g connected pieces, by dynamic programming.

In: a forest as `parent` (positions, depth first, parents before children) and prizes by position. Out: the best sum for
every size k up to s with at most g pieces, and the nodes of one set of size s. Every node has two tables, over
(pieces, size): `with` it and `without` it; a virtual root above all trees is never chosen.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

import numpy as np

from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.tree_program import NOTHING, Floats, Ints

__all__ = ["best_forest", "forest_space"]


@compiled
def fold(a, b, out):
    """out[k] = max(out[k], a[i] + b[j]) over i + j = k; entries beyond `out` are dropped."""
    na, nb, no = a.shape[0], b.shape[0], out.shape[0]
    if nb > na:
        a, b = b, a
        na, nb = nb, na
    for j in range(min(nb, no)):
        value = b[j]
        if value == -np.inf:
            continue
        x = a[: min(na, no - j)]
        y = out[j : j + min(na, no - j)]
        for i in range(x.shape[0]):
            t = x[i] + value
            y[i] = t if t > y[i] else y[i]


@compiled
def forest_space(parent, s, g):
    """How many numbers the tables take."""
    n = parent.shape[0]
    width = np.full(n + 1, 2, np.int64)
    width[n] = 1
    cells = 2 * (g + 1)
    total = cells * (2 * n + 1)
    for v in range(n - 1, -1, -1):
        u = parent[v] if parent[v] >= 0 else n
        width[u] = min(width[u] + width[v] - 1, s + 1)
        total += cells * width[u]
    return total


@compiled
def child_tables(slab, at, wide, g, toll, best, joined):
    """What a child offers: `best[j]` to a parent that is left out, `joined[j]` (pieces added) to one that is chosen."""
    half = (g + 1) * wide
    for j in range(g + 1):
        for k in range(wide):
            chosen = slab[at + j * wide + k]
            left = slab[at + half + j * wide + k]
            best[j, k] = max(chosen, left)
            more = slab[at + (j + 1) * wide + k] - toll if j < g else -np.inf
            joined[j, k] = max(left, more)


@compiled
def tabulate_forest(parent, prizes, tolls, s, g, space):
    """Fill the tables of every node, after each of its children; row j of a table holds the sets of j pieces."""
    n = parent.shape[0]
    slab = np.full(space, -np.inf)
    final = np.empty(n + 1, np.int64)
    width = np.empty(n + 1, np.int32)
    before = np.empty(n, np.int64)
    before_width = np.empty(n, np.int32)
    after = np.empty(n, np.int64)
    after_width = np.empty(n, np.int32)
    older = np.full(n, -1, np.int32)
    youngest = np.full(n + 1, -1, np.int32)
    used = 0
    for v in range(n + 1):
        wide = 2 if v < n else 1
        final[v], width[v] = used, wide
        slab[used + (g + 1) * wide] = 0.0  # left out, no piece, no node
        if v < n:
            slab[used + wide + 1] = prizes[v]  # chosen: one piece, one node
        used += 2 * (g + 1) * wide
    best = np.empty((g + 1, s + 1))
    joined = np.empty((g + 1, s + 1))
    for v in range(n - 1, -1, -1):
        u = parent[v] if parent[v] >= 0 else n
        before[v], before_width[v] = final[u], width[u]
        older[v], youngest[u] = youngest[u], v
        wide = min(width[u] + width[v] - 1, s + 1)
        child_tables(slab, final[v], width[v], g, tolls[v], best, joined)
        old, old_half, half = final[u], (g + 1) * width[u], (g + 1) * wide
        for j1 in range(g + 1):
            chosen = slab[old + j1 * width[u] : old + (j1 + 1) * width[u]]
            left = slab[old + old_half + j1 * width[u] : old + old_half + (j1 + 1) * width[u]]
            for j2 in range(g + 1 - j1):
                j = j1 + j2
                if u < n and j1 > 0:
                    fold(chosen, joined[j2, : width[v]], slab[used + j * wide : used + (j + 1) * wide])
                fold(left, best[j2, : width[v]], slab[used + half + j * wide : used + half + (j + 1) * wide])
        final[u], width[u] = used, wide
        after[v], after_width[v] = used, wide
        used += 2 * (g + 1) * wide
    return slab, final, width, before, before_width, after, after_width, older, youngest


@compiled
def best_forest_by_size(tables, s, g):
    """The best sum for every size, and the number of pieces of the best set of s nodes (-1: none)."""
    slab, final, width = tables[0], tables[1], tables[2]
    n = final.shape[0] - 1
    curve = np.full(s + 1, -np.inf)
    wide = width[n]
    pieces = -1
    for j in range(g + 1):
        for k in range(wide):
            value = slab[final[n] + (g + 1 + j) * wide + k]
            if value > curve[k]:
                curve[k] = value
                if k == s:
                    pieces = j
    return curve, pieces


@compiled
def walk_back_forest(tables, tolls, pieces, s, g):
    """The positions of the set of s nodes in `pieces` pieces that the virtual root's table stands for."""
    slab, final, width, before, before_width, after, after_width, older, youngest = tables
    n = final.shape[0] - 1
    best = np.empty((g + 1, s + 1))
    joined = np.empty((g + 1, s + 1))
    # A node is asked for a set of k nodes in j pieces, with it or without it.
    out = np.empty(s, np.int32)
    count = 0
    node = np.empty(n + 1, np.int32)
    size = np.empty(n + 1, np.int32)
    piece = np.empty(n + 1, np.int32)
    taken = np.empty(n + 1, np.bool_)
    node[0], size[0], piece[0], taken[0] = n, s, pieces, False
    depth = 1
    while depth > 0:
        depth -= 1
        v, k, j, chosen_here = node[depth], size[depth], piece[depth], taken[depth]
        if chosen_here:
            out[count] = v
            count += 1
        c = youngest[v]
        while c >= 0:
            if k == 0 and j == 0:
                break
            side = 0 if chosen_here else g + 1
            whole = slab[after[c] + (side + j) * after_width[c] + k]
            child_tables(slab, final[c], width[c], g, tolls[c], best, joined)
            found = False
            for j2 in range(j + 1):
                for k2 in range(max(0, k - before_width[c] + 1), min(k, width[c] - 1) + 1):
                    offered = joined[j2, k2] if chosen_here else best[j2, k2]
                    if offered == -np.inf:
                        continue
                    rest = slab[before[c] + (side + j - j2) * before_width[c] + k - k2]
                    if rest + offered == whole:
                        left = slab[final[c] + (g + 1 + j2) * width[c] + k2]
                        if left == offered:
                            ask, with_c = j2, False
                        else:
                            ask, with_c = (j2 + 1 if chosen_here else j2), True
                        if k2 > 0:
                            node[depth], size[depth], piece[depth], taken[depth] = c, k2, ask, with_c
                            depth += 1
                        k -= k2
                        j -= j2
                        found = True
                        break
                if found:
                    break
            c = older[c]
    return out[:count].copy()


def best_forest(parent: Ints, prizes: Floats, tolls: Floats, s: int, g: int) -> tuple[Floats, Ints]:
    """The best s nodes that form at most g connected pieces of a forest.

    Parameters
    ----------
    parent : int array (n,)
        Parents as positions, -1 at a root; depth first, parents before children.
    prizes : float array (n,)
        By position; any sign.
    tolls : float array (n,)
        What the edge to the parent takes off the sum when both its ends are chosen.
    s, g : int
        Wanted size and largest number of pieces, at least 1.

    Returns
    -------
    curve : float array (s + 1,)
        Best sum for each size, -inf where there is none.
    chosen : int array
        Positions of a best set with s nodes; empty when there is none.
    """
    tables = tabulate_forest(parent, prizes, tolls, s, g, forest_space(parent, s, g))
    curve, pieces = best_forest_by_size(tables, s, g)
    return curve, NOTHING if pieces < 0 else walk_back_forest(tables, tolls, pieces, s, g)

"""The exact best connected subtree of every size, by dynamic programming on a forest.

In: a forest as `parent` (positions, depth first, parents before children) and prizes by position. Out: the best sum of
prizes of a connected subtree with k nodes for every k up to s, and the nodes of one with s. The program is O(n s)
max-plus work (Johnson and Niemi 1983). Tables are kept for walking back when they fit; otherwise a first pass that
keeps nothing finds the best root, and a second one runs on that root's own subtree only.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spdsl.solvers.iht.compiled import compiled

__all__ = ["best_subtree", "merge", "worthwhile"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
NOTHING: Ints = np.empty(0, dtype=np.int32)
SLAB_LIMIT = 1 << 23  # doubles kept for walking back in one pass (64 MB)


@compiled
def merge(a, b, toll, out):
    """out[k] = max over i + j = k, i >= 1, of a[i] + (b[j] - toll), or a[k] when the child is left out."""
    na, nb, no = a.shape[0], b.shape[0], out.shape[0]
    for k in range(na):
        out[k] = a[k]
    for k in range(na, no):
        out[k] = -np.inf
    if nb <= na:
        for j in range(1, nb):
            value = b[j] - toll
            x = a[1 : min(na, no - j)]
            y = out[1 + j : j + min(na, no - j)]
            for i in range(x.shape[0]):
                t = x[i] + value
                y[i] = t if t > y[i] else y[i]
    else:
        for i in range(1, na):
            value = a[i]
            x = b[1 : min(nb, no - i)]
            y = out[1 + i : i + min(nb, no - i)]
            for j in range(x.shape[0]):
                t = (x[j] - toll) + value
                y[j] = t if t > y[j] else y[j]


@compiled
def table_space(parent, s):
    """How many numbers the tables of `tabulate` take."""
    n = parent.shape[0]
    width = np.full(n, 2, np.int64)
    total = 2 * n
    for v in range(n - 1, 0, -1):
        u = parent[v]
        if u >= 0:
            width[u] = min(width[u] + width[v] - 1, s + 1)
            total += width[u]
    return total


@compiled
def tabulate(parent, prizes, tolls, s, space):
    """Fill the tables; node c's parent has table `before[c]` without and `after[c]` with the child c.

    Entry k of node v's last table (at ``final[v]``, `width[v]` numbers) is the best sum of a connected set of k nodes
    whose highest node is v.
    """
    n = parent.shape[0]
    slab = np.empty(space)
    final = np.empty(n, np.int64)
    width = np.empty(n, np.int32)
    before = np.empty(n, np.int64)
    before_width = np.empty(n, np.int32)
    after = np.empty(n, np.int64)
    after_width = np.empty(n, np.int32)
    older = np.full(n, -1, np.int32)
    youngest = np.full(n, -1, np.int32)
    for v in range(n):
        final[v] = 2 * v
        width[v] = 2 if s >= 1 else 1
        slab[2 * v] = 0.0
        slab[2 * v + 1] = prizes[v]
    used = 2 * n
    for v in range(n - 1, 0, -1):
        u = parent[v]
        if u < 0:
            continue
        before[v], before_width[v] = final[u], width[u]
        older[v], youngest[u] = youngest[u], v
        wide = min(width[u] + width[v] - 1, s + 1)
        merge(
            slab[final[u] : final[u] + width[u]],
            slab[final[v] : final[v] + width[v]],
            tolls[v],
            slab[used : used + wide],
        )
        final[u], width[u] = used, wide
        after[v], after_width[v] = used, wide
        used += wide
    return slab, final, width, before, before_width, after, older, youngest


@compiled
def walk_back(tables, tolls, root, s):
    """The positions of the set of s nodes that entry s of the root's table stands for."""
    slab, final, width, before, before_width, after, older, youngest = tables
    chosen = np.empty(s, np.int32)
    count = 0
    stack = np.empty(s + 1, np.int32)
    sizes = np.empty(s + 1, np.int32)
    stack[0], sizes[0] = root, s
    depth = 1
    while depth > 0:
        depth -= 1
        v, k = stack[depth], sizes[depth]
        chosen[count] = v
        count += 1
        c = youngest[v]
        while c >= 0:
            if k > 1:
                whole = slab[after[c] + k]
                low = max(0, k - (before_width[c] - 1))
                for j in range(low, min(k - 1, width[c] - 1) + 1):
                    part = slab[final[c] + j] - tolls[c] if j > 0 else 0.0
                    if slab[before[c] + k - j] + part == whole:
                        if j > 0:
                            stack[depth], sizes[depth] = c, j
                            depth += 1
                            k -= j
                        break
            c = older[c]
    return chosen[:count]


@compiled
def scan(parent, prizes, tolls, s):
    """The curve and the best root without keeping tables: they live on a stack of at most 2 n + 2 s numbers."""
    n = parent.shape[0]
    curve = np.full(s + 1, -np.inf)
    curve[0] = 0.0
    best_root = -1
    stack = np.empty(2 * n + 2 * s + 4)
    scratch = np.empty(s + 1)
    merged = np.empty(s + 1)
    pending = np.full(n, -1, np.int64)  # where a node's unfinished table starts on the stack
    width = np.zeros(n, np.int32)
    top = 0
    for v in range(n - 1, -1, -1):
        if pending[v] < 0:
            pending[v] = top
            stack[top] = 0.0
            stack[top + 1] = prizes[v]
            width[v] = 2
            top += 2
        at, wide = pending[v], width[v]
        for k in range(1, wide):
            if stack[at + k] > curve[k]:
                curve[k] = stack[at + k]
                if k == s:
                    best_root = v
        u = parent[v]
        if u < 0:
            top = at
            continue
        if pending[u] < 0:
            # The parent's table takes the place of its last child's.
            scratch[0] = 0.0
            scratch[1] = prizes[u]
            target = at
            own = 2
        else:
            target, own = pending[u], width[u]
            for k in range(own):
                scratch[k] = stack[target + k]
        new = min(own + wide - 1, s + 1)
        merge(scratch[:own], stack[at : at + wide], tolls[v], merged[:new])
        for k in range(new):
            stack[target + k] = merged[k]
        pending[u], width[u] = target, new
        top = target + new
    return curve, best_root


@compiled
def below(parent, root, s):
    """The subtree of `root` down to depth s - 1: its positions and parents among them."""
    n = parent.shape[0]
    place = np.full(n, -1, np.int32)
    depth = np.zeros(n, np.int32)
    positions = np.empty(n - root, np.int32)
    links = np.empty(n - root, np.int32)
    place[root] = 0
    positions[0], links[0] = root, -1
    count = 1
    for v in range(root + 1, n):
        u = parent[v]
        if u < root:
            break
        if place[u] >= 0 and depth[u] + 1 < s:
            place[v] = count
            depth[v] = depth[u] + 1
            positions[count], links[count] = v, place[u]
            count += 1
    return positions[:count], links[:count]


@compiled
def best_by_size(tables, s):
    """The best sum for every size, and the root of the best set of s nodes (-1: none)."""
    slab, final, width = tables[0], tables[1], tables[2]
    curve = np.full(s + 1, -np.inf)
    curve[0] = 0.0
    root = -1
    for v in range(final.shape[0]):
        if width[v] > s and slab[final[v] + s] > curve[s]:
            root = v
        for k in range(1, width[v]):
            if slab[final[v] + k] > curve[k]:
                curve[k] = slab[final[v] + k]
    return curve, root


@compiled
def worthwhile(parent, prizes, tolls, threshold, smallest):
    """A forest without the edges that can't pay when every node costs `threshold`, and without pieces that are too small.

    An edge is cut when the best subtree at one of its ends, on that end's side, is worth no more than the edge's toll:
    a set that crosses it can drop that side. No set is lost that is best at a marginal prize of `threshold` or more.

    Returns
    -------
    kept : int array
        Positions that are left, piece by piece, each depth first, parents before children.
    links : int array
        Their parents among `kept`.
    """
    n = parent.shape[0]
    down = np.empty(n)
    for v in range(n):
        down[v] = prizes[v] - threshold
    for v in range(n - 1, -1, -1):
        u = parent[v]
        if u >= 0 and down[v] > tolls[v]:
            down[u] += down[v] - tolls[v]
    piece = np.empty(n, np.int32)
    size = np.zeros(n, np.int32)
    whole = down  # from here on: the best subtree through a node, both ways
    for v in range(n):
        u = parent[v]
        cut = True
        if u >= 0 and down[v] > tolls[v]:
            rest = whole[u] - (down[v] - tolls[v])
            if rest > tolls[v]:
                whole[v] = down[v] + rest - tolls[v]
                cut = False
        piece[v] = v if cut else piece[u]
        size[piece[v]] += 1
    start = np.empty(n, np.int32)
    total = 0
    for v in range(n):
        if size[v] >= smallest:
            start[v] = total
            total += size[v]
        else:
            start[v] = -1
    kept = np.empty(total, np.int32)
    links = np.empty(total, np.int32)
    place = np.empty(n, np.int32)
    for v in range(n):
        at = start[piece[v]]
        if at >= 0:
            start[piece[v]] += 1
            place[v] = at
            kept[at] = v
            links[at] = -1 if piece[v] == v else place[parent[v]]
    return kept, links


def best_subtree(parent: Ints, prizes: Floats, tolls: Floats, s: int) -> tuple[Floats, Ints]:
    """The best connected subtree with s nodes of a forest.

    Parameters
    ----------
    parent : int array (n,)
        Parents as positions, -1 at a root; depth first, parents before children.
    prizes : float array (n,)
        By position; any sign.
    tolls : float array (n,)
        What the edge to the parent takes off the sum when both its ends are chosen.
    s : int
        Wanted size, at least 1.

    Returns
    -------
    curve : float array (s + 1,)
        Best sum for each size, -inf where no tree is that large.
    chosen : int array
        Positions of the best subtree with s nodes, in no order; empty when there is none.
    """
    space = table_space(parent, s)
    if space > SLAB_LIMIT:
        curve, root = scan(parent, prizes, tolls, s)
        if root < 0:
            return curve, NOTHING
        positions, links = below(parent, root, s)
        tolls = tolls[positions]
        tables = tabulate(links, prizes[positions], tolls, s, table_space(links, s))
        return curve, positions[walk_back(tables, tolls, 0, s)]
    tables = tabulate(parent, prizes, tolls, s, space)
    curve, root = best_by_size(tables, s)
    return curve, NOTHING if root < 0 else walk_back(tables, tolls, root, s)

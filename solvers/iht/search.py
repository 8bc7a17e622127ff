"""The project's own search for a support: build a forest, solve it exactly, build a better one around the answer.

In: a graph's arrays, prizes scaled to at most 1, a size s and a number of pieces g. Out: a support of exactly s nodes
in at most g pieces, and the curve of best energies by size. Three sources of forests: cells around the largest
prizes, the merges of one Goemans-Williamson growth whose edges cost twice the slope of the curve, and trees that span
the support found so far, by true or blurred prizes. The energy never falls from one to the next.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

import numpy as np

from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.forest_program import best_forest, forest_space
from spdsl.solvers.iht.growth import grow
from spdsl.solvers.iht.tree_building import grow_cells, plant_support, strip_leaves
from spdsl.solvers.iht.tree_program import best_subtree

__all__ = ["around", "from_cells", "from_growth", "search_cold", "search_warm", "solve_forest"]

HOP = 1e-3  # length of an edge between two nodes that lack nothing, in units of lam: fewer nodes win ties
STRIP = 0.3  # leaves below this share of the marginal prize can't pay for themselves
FOREST_LIMIT = 1 << 26  # numbers that the program over pieces may keep (512 MB)


@compiled
def edge_tolls(indptr, neighbours, price, nodes, order, parent, mu):
    """mu times the cost of each position's edge to its parent."""
    tolls = np.zeros(order.shape[0])
    if mu > 0.0:
        for i in range(order.shape[0]):
            if parent[i] >= 0:
                u, v = nodes[order[i]], nodes[order[parent[i]]]
                for a in range(indptr[u], indptr[u + 1]):
                    if neighbours[a] == v:
                        tolls[i] = mu * price[a]
                        break
    return tolls


@compiled
def solve_forest(indptr, neighbours, price, prizes, nodes, left, right, keep, threshold, s, g, mu):
    """Strip a forest of hopeless leaves and solve it exactly; strip less when too little is left.

    Returns
    -------
    curve : float array (s + 1,)
    support : int array
        Empty when the forest has no s nodes in g trees.
    """
    local = prizes[nodes]
    curve = np.full(s + 1, -np.inf)
    chosen = np.empty(0, np.int32)
    order = np.empty(0, np.int32)
    while True:
        order, parent = strip_leaves(local, keep, left, right, threshold)
        if order.shape[0] >= s:
            tolls = edge_tolls(indptr, neighbours, price, nodes, order, parent, mu)
            if g == 1:
                curve, chosen = best_subtree(parent, local[order], tolls, s)
            elif forest_space(parent, s, g) <= FOREST_LIMIT:
                curve, chosen = best_forest(parent, local[order], tolls, s, g)
            else:
                curve, chosen = best_subtree(parent, local[order], tolls, s)
        if chosen.shape[0] > 0 or threshold <= 0.0:
            break
        threshold = 0.0
    return curve, nodes[order[chosen]]


@compiled
def from_cells(indptr, neighbours, price, prizes, lam, anchors, s, g, mu, ws):
    """Solve the forest of cells around the prizes of at least `lam` (and around the anchors)."""
    p = prizes.shape[0]
    sources = np.empty(p, np.int32)
    count = 0
    for v in range(p):
        if prizes[v] >= lam:
            sources[count] = v
            ws.cell[v] = count
            count += 1
    for i in range(anchors.shape[0]):
        v = anchors[i]
        if ws.cell[v] < 0:
            sources[count] = v
            ws.cell[v] = count
            count += 1
    step = HOP * lam + mu * price
    nodes, left, right = grow_cells(indptr, neighbours, step, prizes, lam, sources[:count], p, 0.0, 0, ws)
    keep = np.zeros(nodes.shape[0], np.bool_)
    return solve_forest(indptr, neighbours, price, prizes, nodes, left, right, keep, STRIP * lam, s, g, mu)


@compiled
def around(indptr, neighbours, price, prizes, support, lam, limit, level, salt, s, g, mu, ws):
    """Solve a forest that spans `support` and reaches out from it to at most `limit` nodes in all."""
    step = HOP * lam + mu * price
    plant_support(indptr, neighbours, prizes, support, level, salt, ws)
    nodes, left, right = grow_cells(indptr, neighbours, step, prizes, lam, support, limit, level, salt, ws)
    keep = np.empty(nodes.shape[0], np.bool_)
    for i in range(nodes.shape[0]):
        keep[i] = ws.inside[nodes[i]]
    for i in range(support.shape[0]):
        ws.inside[support[i]] = False
    return solve_forest(indptr, neighbours, price, prizes, nodes, left, right, keep, STRIP * lam, s, g, mu)


@compiled
def from_growth(indptr, neighbours, price, ends, costs, prizes, slope, factor, s, g, mu):
    """Solve the forest of a growth run whose edges cost `factor` times the slope of the size-energy curve."""
    p = prizes.shape[0]
    merges, _, _, _ = grow(ends, factor * slope + mu * costs, prizes, g)
    left = np.empty(merges.shape[0], np.int32)
    right = np.empty(merges.shape[0], np.int32)
    for i in range(merges.shape[0]):
        left[i] = ends[merges[i], 0]
        right[i] = ends[merges[i], 1]
    nodes = np.arange(p).astype(np.int32)
    keep = np.zeros(p, np.bool_)
    return solve_forest(indptr, neighbours, price, prizes, nodes, left, right, keep, STRIP * slope, s, g, mu)


@compiled
def marginal_prize(prizes, s):
    """The s-th largest prize; the smallest positive one when fewer are positive; 1 when none is."""
    n = prizes.shape[0]
    lam = np.partition(prizes, n - s)[n - s]
    if lam > 0.0:
        return lam
    lam = np.inf
    for v in range(n):
        if 0.0 < prizes[v] < lam:
            lam = prizes[v]
    return lam if lam < np.inf else 1.0


@compiled
def rounds(indptr, neighbours, price, prizes, curve, support, lam, limit, level, first, most, patience, s, g, mu, ws):
    """Search around the support again and again until `patience` rounds brought nothing."""
    idle = 0
    for r in range(most):
        blur = level if r >= first else 0.0
        new_curve, new_support = around(
            indptr, neighbours, price, prizes, support, lam, limit, blur, r + 1, s, g, mu, ws
        )
        if new_support.shape[0] == s and new_curve[s] > curve[s]:
            curve, support = new_curve, new_support
            idle = 0
        else:
            idle += 1
            # Without blur the same support gives the same forest again.
            if idle >= patience or level == 0.0:
                break
    return curve, support


@compiled
def search_cold(indptr, neighbours, price, ends, costs, prizes, anchors, s, g, mu, effort, ws):
    """A support from nothing. Effort 0: cells; 1: and a growth; 2: and more growths and blurred trees.

    Returns
    -------
    curve : float array (s + 1,)
        Best energies by size in the last forest that was solved.
    support : int array (s,)
    """
    p = prizes.shape[0]
    lam = marginal_prize(prizes, s)
    curve, support = from_cells(indptr, neighbours, price, prizes, lam, anchors, s, g, mu, ws)
    near = min(p, 4 * s + 64)
    if effort == 0:
        return rounds(indptr, neighbours, price, prizes, curve, support, lam, near, 0.0, 1, 2, 1, s, g, mu, ws)
    curve, support = rounds(indptr, neighbours, price, prizes, curve, support, lam, p, 0.0, 2, 2, 1, s, g, mu, ws)
    for attempt in range(1 if effort == 1 else 3):
        slope = curve[s] - curve[s - 1]
        if not (np.isfinite(slope) and slope > 0.0):
            slope = lam
        factor = 2.0 if attempt == 0 else (1.8 if attempt == 1 else 1.5)
        new_curve, new_support = from_growth(indptr, neighbours, price, ends, costs, prizes, slope, factor, s, g, mu)
        if new_support.shape[0] == s:
            most = 2 if effort == 1 else 6
            new_curve, new_support = rounds(
                indptr, neighbours, price, prizes, new_curve, new_support, lam, p, 1.0, 2, most, 2, s, g, mu, ws
            )
            if new_curve[s] > curve[s]:
                curve, support = new_curve, new_support
    most = 3 if effort == 1 else 12
    return rounds(indptr, neighbours, price, prizes, curve, support, lam, near, 2.0, 0, most, most, s, g, mu, ws)


@compiled
def search_warm(indptr, neighbours, price, prizes, last, s, g, effort, ws):
    """A support near the last one."""
    p = prizes.shape[0]
    lam = marginal_prize(prizes, s)
    near = min(p, 4 * s + 64)
    curve, support = around(indptr, neighbours, price, prizes, last, lam, near, 0.0, 0, s, g, 0.0, ws)
    if effort == 0:
        return curve, support
    most = 1 if effort == 1 else 4
    return rounds(indptr, neighbours, price, prizes, curve, support, lam, near, 1.0, 1, most, 2, s, g, 0.0, ws)

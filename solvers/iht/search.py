"""The project's own search for a support: build a forest, solve it exactly, build a better one around the answer.

In: a graph's arrays, prizes scaled to at most 1, a size s and a number of pieces g. Out: a support of exactly s nodes
in at most g pieces, and the curve of best energies by size. Three sources of forests: cells around the largest
prizes, the merges of one Goemans-Williamson growth whose edges cost twice the slope of the curve, and trees that span
the support found so far, by true or blurred prizes. The energy never falls from one to the next.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.forest_program import best_forest, forest_space
from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.growth import grow
from spdsl.solvers.iht.tree_building import (
    Workspace,
    grow_cells,
    link_cells,
    plant_support,
    sources_of,
    strip_leaves,
    workspace,
)
from spdsl.solvers.iht.tree_program import (
    NOTHING,
    SLAB_LIMIT,
    Floats,
    Ints,
    best_by_size,
    best_subtree,
    table_space,
    tabulate,
    walk_back,
    worthwhile,
)

__all__ = ["Found", "Search", "solve_forest"]

HOP = 1e-3  # length of an edge between two nodes that lack nothing, in units of lam: fewer nodes win ties
STRIP = 0.3  # leaves below this share of the marginal prize can't pay for themselves
FOREST_LIMIT = 1 << 26  # numbers that the program over pieces may keep (512 MB)


@dataclass(frozen=True)
class Found:
    """A support (empty when there was none) and the best sums by size in the forest that it comes from."""

    curve: Floats
    support: Ints

    @property
    def value(self) -> float:
        """What the support captures, tolls taken off; -inf when there is none."""
        return float(self.curve[-1]) if self.support.size else -np.inf

    @property
    def slope(self) -> float:
        """What the last node adds; NaN where unknown."""
        return float(self.curve[-1] - self.curve[-2])


def solve_forest(
    graph: Graph,
    price: Floats,
    prizes: Floats,
    nodes: Ints,
    left: Ints,
    right: Ints,
    keep: NDArray[np.bool_],
    threshold: float,
    s: int,
    g: int,
    mu: float,
) -> Found:
    """Strip a forest of hopeless leaves and solve it exactly; strip less when too little is left.

    Parameters
    ----------
    nodes : int array (k,)
        The forest's nodes; `left`, `right` and `keep` speak of positions in it.
    mu : float
        An edge between two chosen nodes costs mu times its price.
    """
    local = prizes[nodes]
    while True:
        order, parent = strip_leaves(local, keep, left, right, threshold)
        if order.size >= s:
            own = local[order]
            tolls = edge_tolls(graph.indptr, graph.neighbours, price, nodes, order, parent, mu)
            if threshold > 0.0:
                # What can't pay at this threshold is left out first; a marginal prize above it says that it was no loss.
                kept, links = worthwhile(parent, own, tolls, threshold, s if g == 1 else 1)
                curve, chosen = best_in_forest(links, own[kept], tolls[kept], s, g)
                if chosen.size and curve[-1] - curve[-2] >= threshold:
                    return Found(curve, nodes[order[kept[chosen]]])
            curve, chosen = best_in_forest(parent, own, tolls, s, g)
            if chosen.size:
                return Found(curve, nodes[order[chosen]])
        if threshold <= 0.0:
            return Found(np.full(s + 1, -np.inf), NOTHING)
        threshold = 0.0


def best_in_forest(parent: Ints, prizes: Floats, tolls: Floats, s: int, g: int) -> tuple[Floats, Ints]:
    """The best s nodes in at most g pieces, in one where the program over pieces would take too much room."""
    if parent.size < s:
        return np.full(s + 1, -np.inf), NOTHING
    if g == 1 or forest_space(parent, s, g) > FOREST_LIMIT:
        return best_subtree(parent, prizes, tolls, s)
    return best_forest(parent, prizes, tolls, s, g)


@compiled
def edge_tolls(indptr, neighbours, price, nodes, order, parent, mu):
    """mu times the price of each position's edge to its parent."""
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
def inside_of(nodes, support, ws):
    """Which nodes belong to the support; clears the support's marks in the workspace."""
    inside = ws[5]
    keep = np.empty(nodes.shape[0], np.bool_)
    for i in range(nodes.shape[0]):
        keep[i] = inside[nodes[i]]
    for i in range(support.shape[0]):
        inside[support[i]] = False
    return keep


@compiled
def near_support(indptr, neighbours, price, prizes, support, lam, limit, hop, threshold, s, room, ws):
    """One round around a connected support, as one kernel: what `Search.around` does for one piece without tolls or
    blur.

    Calls from Python cost as much as the work on a few hundred nodes, and this is what runs in every iteration.
    Returns the curve and the nodes; no nodes when the program's tables would take more than `room` numbers.
    """
    plant_support(indptr, neighbours, prizes, support, 0.0, 0, ws)
    nodes = grow_cells(indptr, neighbours, price, 0.0, hop, prizes, lam, support, limit, 0.0, 0, ws)
    left, right = link_cells(indptr, neighbours, price, 0.0, hop, prizes, lam, nodes, 0.0, 0, ws)
    keep = inside_of(nodes, support, ws)
    local = prizes[nodes]
    order, parent = strip_leaves(local, keep, left, right, threshold)
    own = local[order]
    tolls = np.zeros(order.shape[0])
    kept, links = worthwhile(parent, own, tolls, threshold, s)
    for _ in range(2):
        space = table_space(links, s)
        if space > room:
            break
        tables = tabulate(links, own[kept], tolls, s, space)
        curve, root = best_by_size(tables, s)
        if root >= 0 and (kept.shape[0] == order.shape[0] or curve[s] - curve[s - 1] >= threshold):
            return curve, nodes[order[kept[walk_back(tables, tolls, root, s)]]]
        kept, links = np.arange(order.shape[0], dtype=np.int32), parent
    return np.full(s + 1, -np.inf), nodes[:0]


class Search:
    """Searches over one graph, with the workspace that they share.

    Parameters
    ----------
    graph : Graph
    anchors : int array
        Nodes that are sources whatever their prizes: one of each component that must not be missed.
    s, g : int
        Size and largest number of pieces.
    """

    def __init__(self, graph: Graph, anchors: Ints, s: int, g: int) -> None:
        self.graph, self.anchors, self.s, self.g = graph, anchors, s, g
        self.price = graph.costs[graph.edge_of]
        self.space: Workspace = workspace(graph.p, graph.neighbours.size)
        self.near = min(graph.p, 4 * s + 64)
        self.ball = min(graph.p, 2 * s + 64)  # what a warm projection looks at
        self.wide = min(graph.p, 16 * s + 512)
        self.nothing_kept = np.zeros(graph.p, dtype=np.bool_)

    def cold(self, prizes: Floats, effort: int, mu: float = 0.0) -> Found:
        """A support from nothing. Effort 0: cells; 1: and a growth; 2: and more growths and blurred trees."""
        lam = marginal_prize(prizes, self.s)
        found = self.from_cells(prizes, lam, mu)
        if effort == 0:
            return self.rounds(prizes, found, lam, self.near, 0.0, 2, mu)
        found = self.rounds(prizes, found, lam, self.wide, 0.0, 2, mu)
        found = self.grown(prizes, found, lam, 2.0, 0, mu)
        found = self.rounds(prizes, found, lam, self.near, 2.0, 3, mu)
        if effort == 1:
            return found
        found = self.rounds(prizes, found, lam, self.wide, 1.0, 4, mu)
        for factor in (1.8, 1.5):
            found = self.grown(prizes, found, lam, factor, 4, mu)
        return self.rounds(prizes, found, lam, self.near, 2.0, 12, mu)

    def grown(self, prizes: Floats, found: Found, lam: float, factor: float, blurred: int, mu: float) -> Found:
        """The better of `found` and a support from a growth, improved by itself."""
        slope = found.slope if np.isfinite(found.slope) and found.slope > 0 else lam
        other = self.from_growth(prizes, slope, factor, mu)
        if not other.support.size:
            return found
        other = self.rounds(prizes, other, lam, self.wide, 0.0, 2, mu)
        other = self.rounds(prizes, other, lam, self.wide, 1.0, blurred, mu)
        return other if other.value > found.value else found

    def warm(self, prizes: Floats, last: Ints, effort: int) -> Found:
        """A support near the last one."""
        lam = marginal_prize(prizes, self.s)
        found = self.near_once(prizes, last, lam)
        if effort == 0:
            return found
        return self.rounds(prizes, found, lam, self.near, 1.0, 1 if effort == 1 else 4, 0.0)

    def near_once(self, prizes: Floats, last: Ints, lam: float) -> Found:
        """One round around the last support."""
        if self.g == 1:
            rows = (self.graph.indptr, self.graph.neighbours, self.price, prizes, last, lam)
            curve, nodes = near_support(*rows, self.ball, HOP * lam, STRIP * lam, self.s, SLAB_LIMIT, self.space)
            if nodes.size:
                return Found(curve, nodes)
        return self.around(prizes, last, lam, self.ball, 0.0, 0, 0.0)

    def rounds(self, prizes: Floats, found: Found, lam: float, limit: int, level: float, most: int, mu: float) -> Found:
        """Search around the support up to `most` times; without blur a round that brings nothing is the last."""
        for r in range(most):
            other = self.around(prizes, found.support, lam, limit, level, r + 1, mu)
            if other.value > found.value:
                found = other
            elif level == 0.0:
                break
        return found

    # -- the three sources of forests ------------------------------------------------------------------------------

    def from_cells(self, prizes: Floats, lam: float, mu: float = 0.0) -> Found:
        """Solve the forest of cells around the prizes of at least `lam` and around the anchors."""
        sources = sources_of(prizes, lam, self.anchors, self.space)
        nodes, left, right = self._forest(prizes, lam, sources, self.graph.p, 0.0, 0, mu)
        return self._solve(prizes, nodes, left, right, self.nothing_kept[: nodes.size], STRIP * lam, mu)

    def around(
        self, prizes: Floats, support: Ints, lam: float, limit: int, level: float, salt: int, mu: float = 0.0
    ) -> Found:
        """Solve a forest that spans `support` and reaches out from it to at most `limit` nodes in all."""
        graph = self.graph
        plant_support(graph.indptr, graph.neighbours, prizes, support, level, salt, self.space)
        nodes, left, right = self._forest(prizes, lam, support, limit, level, salt, mu)
        keep = inside_of(nodes, support, self.space)
        return self._solve(prizes, nodes, left, right, keep, STRIP * lam, mu)

    def from_growth(self, prizes: Floats, slope: float, factor: float, mu: float = 0.0) -> Found:
        """Solve the forest of a growth run whose edges cost `factor` times the slope of the size-energy curve."""
        graph = self.graph
        costs = np.full(len(graph.edges), factor * slope) + mu * graph.costs
        merges = grow(graph.indptr, graph.half_edges, graph.edges, costs, prizes, self.g)[0]
        if merges.size < self.s - self.g:
            return Found(np.full(self.s + 1, -np.inf), NOTHING)
        nodes, ends = np.unique(graph.edges[merges], return_inverse=True)
        left, right = ends.reshape(-1, 2).astype(np.int32).T.copy()
        return self._solve(prizes, nodes, left, right, self.nothing_kept[: nodes.size], STRIP * slope, mu)

    def _forest(
        self, prizes: Floats, lam: float, sources: Ints, limit: int, level: float, salt: int, mu: float
    ) -> tuple[Ints, Ints, Ints]:
        graph, space = self.graph, self.space
        rows = (graph.indptr, graph.neighbours, self.price, mu, HOP * lam, prizes, lam)
        nodes = grow_cells(*rows, sources, limit, level, salt, space)
        left, right = link_cells(*rows, nodes, level, salt, space)
        return nodes, left, right

    def _solve(
        self,
        prizes: Floats,
        nodes: Ints,
        left: Ints,
        right: Ints,
        keep: NDArray[np.bool_],
        threshold: float,
        mu: float,
    ) -> Found:
        return solve_forest(self.graph, self.price, prizes, nodes, left, right, keep, threshold, self.s, self.g, mu)


def marginal_prize(prizes: Floats, s: int) -> float:
    """The s-th largest prize; the smallest positive one when fewer are positive; 1 when none is."""
    lam = float(np.partition(prizes, prizes.size - s)[prizes.size - s])
    if lam > 0.0:
        return lam
    positive = prizes[prizes > 0]
    return float(positive.min()) if positive.size else 1.0

"""Head and tail approximations with proven constants in the weighted graph model, and the variant that aims at a size.

In: a graph, prizes (squared entries, scaled to at most 1), s, g and the budget B. Out: the nodes of a forest of at
most g trees. Source: Hegde, Indyk and Schmidt (2015), algorithms for head and tail approximation by prize-collecting
Steiner forests; the size-targeted bisection is the one of the published GraphStoIHT experiments.

A support of s nodes, g trees and edge weight at most B is a forest of cost at most C = 2 B under c(e) = w(e) + B / s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.projection import check_prizes

__all__ = ["HEAD_CONSTANT", "TAIL_CONSTANT", "head_nodes", "size_targeted_nodes", "steiner_forest", "tail_nodes"]

NU = 2.5
DELTA = 1.0 / 169.0
TAIL_CONSTANT = float(np.sqrt(1.0 + 3.0 / (NU - 2.0)))  # sqrt 7
HEAD_CONSTANT = float(np.sqrt(1.0 / 14.0))

Nodes = NDArray[np.int32]
Array = NDArray[np.float64]


def steiner_forest(graph: Graph, prizes: Array, costs: Array, trees: int, weight: float = 2.0) -> tuple[Nodes, Nodes]:
    """Nodes and edges of a forest F of at most `trees` trees with c(F) + 2 pi(rest) <= 2 min (c + pi(rest)).

    `weight` = 1 prunes for the largest pi(F) - c(F) instead ("strong pruning"), as the published code does. Prizes that
    are negative or not finite are a `DataError`.
    """
    from spdsl.solvers.iht.growth import grow
    from spdsl.solvers.iht.pruning import prune

    check_prizes(prizes, graph.p)
    merges, *_ = grow(graph.indptr, graph.half_edges, graph.edges, costs, prizes, trees)
    nodes, edges = prune(graph.edges, costs, prizes, merges, trees, weight)
    return nodes, edges


def model_costs(graph: Graph, s: int, g: int, budget: float | None) -> tuple[Array, float]:
    """c(e) = w(e) + B / s and the cost bound C = 2 B."""
    b = float(s - g) if budget is None else float(budget)
    return graph.costs + b / s, 2.0 * b


def tail_nodes(graph: Graph, prizes: Array, s: int, g: int, budget: float | None = None) -> Nodes:
    """A support whose missed energy is at most 7 times the least that the model allows (its cost up to nu C)."""
    check_prizes(prizes, graph.p)
    costs, limit = model_costs(graph, s, g, budget)
    positive = prizes[prizes > 0]
    if not positive.size:
        return np.zeros(0, dtype=np.int32)
    if limit == 0.0:
        return single_nodes(prizes, g)
    smallest = float(positive.min())

    def forest(scale: float) -> tuple[Nodes, float]:
        nodes, edges = steiner_forest(graph, prizes, scale * costs, g)
        return nodes, float(costs[edges].sum())

    nodes, cost = forest(smallest / (2.0 * limit))
    if cost <= limit and float(prizes[nodes].sum()) >= float(prizes.sum()) - 0.5 * smallest:
        return nodes
    low, high = 0.0, 3.0 * float(prizes.sum())
    gap = smallest * min(0.5, 1.0 / NU) / limit
    while high - low > gap:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        nodes, cost = forest(middle)
        if 2.0 * limit <= cost <= NU * limit:
            return nodes
        if cost > NU * limit:
            low = middle
        else:
            high = middle
    return forest(high)[0]


def head_nodes(graph: Graph, prizes: Array, s: int, g: int, budget: float | None = None) -> Nodes:
    """A support that captures at least 1/14 of the largest energy that the model allows (its cost up to 2 C)."""
    check_prizes(prizes, graph.p)
    costs, limit = model_costs(graph, s, g, budget)
    positive = prizes[prizes > 0]
    if not positive.size:
        return np.zeros(0, dtype=np.int32)
    if limit == 0.0:
        return single_nodes(prizes, g)
    whole = float(prizes.sum())

    def forest(scale: float) -> tuple[Nodes, Nodes, float]:
        nodes, edges = steiner_forest(graph, scale * prizes, costs, g)
        return nodes, edges, float(costs[edges].sum())

    high = 2.0 * limit / float(positive.min())
    if not np.isfinite(high):
        high = 2.0 * limit / (whole * 1e-16)
    nodes, edges, cost = forest(high)
    if cost <= 2.0 * limit:
        return nodes
    low = 1.0 / (4.0 * whole)
    gap = DELTA * limit / (2.0 * whole)
    while high - low > gap:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if forest(middle)[2] > 2.0 * limit:
            high = middle
        else:
            low = middle
    left = forest(low)[0]
    nodes, edges, _ = forest(high)
    right = pruned_forest(graph, nodes, edges, prizes, costs, limit)
    return left if prizes[left].sum() >= prizes[right].sum() else right


def size_targeted_nodes(
    graph: Graph, prizes: Array, low_size: int, high_size: int, g: int, max_forests: int = 50
) -> tuple[Nodes, int]:
    """Bisect the edges' scale until a strongly pruned forest has `low_size` to `high_size` nodes; at most
    `max_forests`.

    Returns the nodes and the number of forests grown. The size can be missed: then the sparser end is returned, as in
    the published experiments.
    """
    check_prizes(prizes, graph.p)
    ranked = np.sort(prizes)
    guess = float(ranked[max(0, ranked.size - high_size)])
    if guess <= 0.0:
        positive = ranked[ranked > 0]
        if not positive.size:
            return np.zeros(0, dtype=np.int32), 0
        guess = float(positive[0])
    low, high = 0.0, 2.0 * guess
    forests = 0

    def forest(scale: float) -> Nodes:
        nonlocal forests
        forests += 1
        return steiner_forest(graph, prizes, scale * graph.costs, g, weight=1.0)[0]

    sparse = forest(high)
    while sparse.size > high_size and forests < max_forests:
        low, high = high, 2.0 * high
        sparse = forest(high)
    if sparse.size >= low_size:
        return sparse, forests
    while forests < max_forests:
        middle = 0.5 * (low + high)
        nodes = forest(middle)
        if low_size <= nodes.size <= high_size:
            return nodes, forests
        if nodes.size > high_size:
            low = middle
        else:
            high, sparse = middle, nodes
    return sparse, forests


def single_nodes(prizes: Array, g: int) -> Nodes:
    """The g largest prizes: all that a budget of 0 pays for."""
    return np.argsort(-prizes, kind="stable")[:g].astype(np.int32)


def pruned_forest(graph: Graph, nodes: Nodes, edges: Nodes, prizes: Array, costs: Array, limit: float) -> Nodes:
    """Trees by falling prize per cost until the limit is used up: one is cut there, later ones keep one node."""
    trees = split_trees(graph, nodes, edges)
    ratio = [
        float(prizes[tree].sum()) / max(float(costs[inside].sum()), 1e-300) if inside.size else np.inf
        for tree, inside in trees
    ]
    left = limit
    kept: list[Nodes] = []
    for i in sorted(range(len(trees)), key=lambda i: -ratio[i]):
        tree, inside = trees[i]
        cost = float(costs[inside].sum())
        if left >= cost:
            kept.append(tree)
            left -= cost
        elif left > 0:
            kept.append(cut_tree(graph, tree, inside, prizes, costs, left))
            left = 0.0
        else:
            kept.append(tree[[int(np.argmax(prizes[tree]))]])
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int32)


def split_trees(graph: Graph, nodes: Nodes, edges: Nodes) -> list[tuple[Nodes, Nodes]]:
    """The trees of a forest, as (nodes, edges)."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    place = np.full(graph.p, -1, dtype=np.int64)
    place[nodes] = np.arange(nodes.size)
    ends = place[graph.edges[edges]]
    links = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(nodes.size, nodes.size))
    count, label = connected_components(links, directed=False)
    return [(nodes[label == t], edges[label[ends[:, 0]] == t] if len(ends) else edges[:0]) for t in range(count)]


def cut_tree(graph: Graph, tree: Nodes, edges: Nodes, prizes: Array, costs: Array, limit: float) -> Nodes:
    """A subtree of cost at most `limit` and prize at least limit * phi / 6, phi the tree's prize per cost.

    The Euler tour is walked and cut whenever its cost passes the limit; every other piece is rich enough.
    """
    phi = float(prizes[tree].sum()) / float(costs[edges].sum())
    enough = limit * phi / 6.0
    richest = int(np.argmax(prizes[tree]))
    if prizes[tree[richest]] >= enough:
        return tree[[richest]]
    beside: dict[int, list[tuple[int, float]]] = {int(v): [] for v in tree}
    for e in edges:
        u, v = (int(end) for end in graph.edges[e])
        beside[u].append((v, float(costs[e])))
        beside[v].append((u, float(costs[e])))
    tour = euler_tour(beside, int(tree[0]))
    seen: set[int] = set()
    piece: list[int] = []
    cost = prize = 0.0
    best: tuple[float, list[int]] = (-1.0, [])
    for node, step in tour:
        if piece:
            cost += step
        if cost > limit:
            best = max(best, (prize, piece), key=lambda item: item[0])
            piece, cost, prize = [], 0.0, 0.0
        piece.append(node)
        if node not in seen:
            seen.add(node)
            prize += float(prizes[node])
        if prize >= enough:
            return np.unique(np.array(piece, dtype=np.int32))
    best = max(best, (prize, piece), key=lambda item: item[0])
    return np.unique(np.array(best[1], dtype=np.int32))


def euler_tour(beside: dict[int, list[tuple[int, float]]], root: int) -> list[tuple[int, float]]:
    """The nodes of a closed walk over each edge twice, each with the cost of the step to it."""
    tour = [(root, 0.0)]
    seen = {root}
    path = [(root, iter(beside[root]), 0.0)]
    while path:
        _, ahead, back = path[-1]
        for other, cost in ahead:
            if other not in seen:
                seen.add(other)
                tour.append((other, cost))
                path.append((other, iter(beside[other]), cost))
                break
        else:
            path.pop()
            if path:
                tour.append((path[-1][0], back))
    return tour

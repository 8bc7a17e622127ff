"""Forests on which the exact programs run: cells around the largest prizes, or around a support found before.

In: a graph's rows, prizes, a threshold `lam`. Out: a forest over some of the nodes, in local numbers: `order` (nodes,
parents before children) and `parent` (positions in it). Mehlhorn's construction (1988): shortest paths to the nearest
source, then a minimum spanning tree of the cells. Entering a node costs what its prize lacks to `lam`.

All kernels share a workspace of arrays over the whole graph and leave it as they found it, so that work near a small
support costs nothing that grows with the graph.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.queues import add, drop_first, find, push, settle, sift_down

__all__ = [
    "Workspace",
    "grow_cells",
    "link_cells",
    "plant_support",
    "sources_of",
    "spanning_cost",
    "strip_leaves",
    "workspace",
]


class Workspace(NamedTuple):
    """Arrays over all nodes, between calls: key inf, place -1, done False, link -1, cell -1, inside False."""

    key: NDArray[np.float64]
    place: NDArray[np.int32]
    done: NDArray[np.bool_]
    link: NDArray[np.int32]
    cell: NDArray[np.int32]
    inside: NDArray[np.bool_]
    items: NDArray[np.int32]
    reached: NDArray[np.int32]
    keys: NDArray[np.float64]


def workspace(p: int, half_edges: int) -> Workspace:
    """A fresh workspace for a graph of p nodes; the queue may hold every half-edge beside every node."""

    def whole(value: Any, kind: Any) -> Any:
        return np.full(p, value, kind)

    return Workspace(
        whole(np.inf, np.float64),
        whole(-1, np.int32),
        whole(False, np.bool_),
        whole(-1, np.int32),
        whole(-1, np.int32),
        whole(False, np.bool_),
        np.zeros(p + half_edges, np.int32),
        whole(0, np.int32),
        np.zeros(p + half_edges),
    )


@compiled
def blurred(prize, node, level, salt):
    """The prize times a factor in [exp(-level), exp(level)] that depends on the node and the salt only."""
    if level == 0.0:
        return prize
    mixed = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt) * np.uint64(0xD1B54A32D192ED03)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(29)
    unit = np.float64(mixed >> np.uint64(11)) * (2.0 / 9007199254740992.0) - 1.0
    return prize * np.exp(level * unit)


@compiled
def plant_support(indptr, neighbours, prizes, support, level, salt, ws):
    """Make the nodes of `support` the sources: one tree for each connected piece (Prim, by the smaller prize of an
    edge's ends).

    Nodes with small prizes end as leaves, where the program can drop them. Writes `link` and `cell` of the support's
    nodes and marks them `inside`. Returns the number of pieces.
    """
    key, place, done, link, cell, inside, items, _, _ = ws
    for i in range(support.shape[0]):
        inside[support[i]] = True
    pieces = 0
    for i in range(support.shape[0]):
        start = support[i]
        if done[start]:
            continue
        key[start] = 0.0
        size = push(key, items, place, 0, start)
        while size > 0:
            u = items[0]
            size -= 1
            if size > 0:
                items[0] = items[size]
                place[items[0]] = 0
                sift_down(key, items, place, size, 0)
            done[u] = True
            cell[u] = pieces
            own = blurred(prizes[u], u, level, salt)
            for a in range(indptr[u], indptr[u + 1]):
                v = neighbours[a]
                if inside[v] and not done[v]:
                    k = -min(own, blurred(prizes[v], v, level, salt))
                    if k < key[v]:
                        key[v] = k
                        link[v] = u
                        size = push(key, items, place, size, v)
        pieces += 1
    for i in range(support.shape[0]):
        u = support[i]
        key[u] = np.inf
        place[u] = -1
        done[u] = False
    return pieces


@compiled
def sources_of(prizes, lam, anchors, ws):
    """Make the nodes with prizes of at least `lam`, and the anchors, the sources: each a cell of its own."""
    cell = ws[4]
    sources = np.empty(prizes.shape[0], np.int32)
    count = 0
    for v in range(prizes.shape[0]):
        if prizes[v] >= lam:
            sources[count] = v
            cell[v] = count
            count += 1
    for i in range(anchors.shape[0]):
        v = anchors[i]
        if cell[v] < 0:
            sources[count] = v
            cell[v] = count
            count += 1
    return sources[:count]


@compiled
def lack(prizes, lam, node, level, salt):
    """Half of what a node's prize lacks to `lam`: what entering or leaving it costs."""
    return 0.5 * max(lam - blurred(prizes[node], node, level, salt), 0.0)


@compiled
def grow_cells(indptr, neighbours, price, mu, hop, prizes, lam, sources, limit, level, salt, ws):
    """Grow shortest-path cells around the sources over at most `limit` nodes.

    Parameters
    ----------
    price : float array (2 m,)
        Cost of each half-edge; its length is ``hop + mu * price`` beside what its ends lack.
    sources : int array
        Nodes whose `link` and `cell` are set in the workspace.

    Returns
    -------
    nodes : int array (k,)
        The nodes reached, nearest first. The workspace keeps their keys, links, cells and (in `place`) local numbers.
    """
    key, place, done, link, cell, _, items, reached, keys = ws
    count = 0
    size = sources.shape[0]
    for i in range(size):
        key[sources[i]] = 0.0
        keys[i] = 0.0
        items[i] = sources[i]
    while size > 0 and count < limit:
        # Entries of the queue carry the key that they were added with; those of settled nodes are out of date.
        u = items[0]
        size = drop_first(keys, items, size)
        if done[u]:
            continue
        done[u] = True
        reached[count] = u
        count += 1
        base = key[u] + hop + lack(prizes, lam, u, level, salt)
        for a in range(indptr[u], indptr[u + 1]):
            v = neighbours[a]
            if done[v]:
                continue
            k = base + mu * price[a]
            if k >= key[v]:
                continue
            k += lack(prizes, lam, v, level, salt)
            if k < key[v]:
                key[v] = k
                link[v] = u
                cell[v] = cell[u]
                size = add(keys, items, size, k, v)
    # What is still waiting stays outside.
    for i in range(size):
        v = items[i]
        if not done[v]:
            key[v] = np.inf
            link[v] = -1
            cell[v] = -1
    nodes = np.empty(count, np.int32)
    for i in range(count):
        nodes[i] = reached[i]
        place[reached[i]] = i
    return nodes


@compiled
def link_cells(indptr, neighbours, price, mu, hop, prizes, lam, nodes, level, salt, ws):
    """The forest of the shortest paths inside the cells and of a minimum spanning tree between them.

    Returns
    -------
    left, right : int arrays
        Its edges, by position in `nodes`. The workspace is left clean.
    """
    key, place, done, link, cell, _, _, _, _ = ws
    count = nodes.shape[0]
    left = np.empty(count, np.int32)
    right = np.empty(count, np.int32)
    edges = 0
    cells = 0
    for i in range(count):
        u = nodes[i]
        cells = max(cells, cell[u] + 1)
        if link[u] >= 0:
            left[edges] = place[link[u]]
            right[edges] = i
            edges += 1
    if cells > 1:
        most = 0
        for i in range(count):
            most += indptr[nodes[i] + 1] - indptr[nodes[i]]
        lengths = np.empty(most)
        near = np.empty(most, np.int32)
        far = np.empty(most, np.int32)
        queue = np.empty(most, np.int32)
        borders = 0
        for i in range(count):
            u = nodes[i]
            base = key[u] + hop + lack(prizes, lam, u, level, salt)
            for a in range(indptr[u], indptr[u + 1]):
                v = neighbours[a]
                if u < v and done[v] and cell[u] != cell[v]:
                    lengths[borders] = base + key[v] + mu * price[a] + lack(prizes, lam, v, level, salt)
                    near[borders] = u
                    far[borders] = v
                    queue[borders] = borders
                    borders += 1
        for at in range(borders // 2 - 1, -1, -1):
            settle(lengths, queue, borders, at, lengths[at], queue[at])
        leader = np.arange(cells)
        while borders > 0 and cells > 1:
            b = queue[0]
            borders = drop_first(lengths, queue, borders)
            x = find(leader, cell[near[b]])
            y = find(leader, cell[far[b]])
            if x != y:
                leader[x] = y
                cells -= 1
                left[edges] = place[near[b]]
                right[edges] = place[far[b]]
                edges += 1
    for i in range(count):
        u = nodes[i]
        key[u] = np.inf
        place[u] = -1
        done[u] = False
        link[u] = -1
        cell[u] = -1
    return left[:edges], right[:edges]


@compiled
def strip_leaves(prizes, keep, left, right, threshold):
    """Drop, again and again, the leaves of a forest whose prize is below `threshold` unless `keep` holds them; root
    the rest.

    Parameters
    ----------
    prizes, keep : arrays (k,)
        By local number.
    left, right : int arrays
        The forest's edges, by local number.

    Returns
    -------
    order : int array
        Local numbers of the nodes that are left, depth first, parents before children.
    parent : int array
        Positions in `order`, -1 at a root.
    """
    n = prizes.shape[0]
    edges = left.shape[0]
    degree = np.zeros(n, np.int32)
    mixed = np.zeros(n, np.int32)  # XOR of the edges at a node: of a leaf it is its one edge
    for e in range(edges):
        degree[left[e]] += 1
        degree[right[e]] += 1
        mixed[left[e]] ^= e
        mixed[right[e]] ^= e
    out = np.zeros(n, np.bool_)
    for i in range(n - 1, -1, -1):
        u = i
        while not out[u] and degree[u] <= 1 and prizes[u] < threshold and not keep[u]:
            out[u] = True
            if degree[u] == 0:
                break
            e = mixed[u]
            v = left[e] ^ right[e] ^ u
            degree[u] = 0
            degree[v] -= 1
            mixed[v] ^= e
            u = v
    start = np.zeros(n + 1, np.int32)
    for u in range(n):
        start[u + 1] = start[u] + (0 if out[u] else degree[u])
    fill = start[:n].copy()
    beside = np.empty(max(start[n], 1), np.int32)
    for e in range(edges):
        u, v = left[e], right[e]
        if not out[u] and not out[v]:
            beside[fill[u]] = v
            fill[u] += 1
            beside[fill[v]] = u
            fill[v] += 1
    seen = np.zeros(n, np.bool_)
    order = np.empty(n, np.int32)
    parent = np.empty(n, np.int32)
    stack = np.empty(n + 1, np.int32)
    above = np.empty(n + 1, np.int32)
    count = 0
    for root in range(n):
        if out[root] or seen[root]:
            continue
        stack[0], above[0] = root, -1
        seen[root] = True
        depth = 1
        while depth > 0:
            depth -= 1
            u = stack[depth]
            order[count], parent[count] = u, above[depth]
            for a in range(start[u], start[u + 1]):
                v = beside[a]
                if not seen[v]:
                    seen[v] = True
                    stack[depth], above[depth] = v, count
                    depth += 1
            count += 1
    return order[:count], parent[:count]


@compiled
def spanning_cost(edges, costs):
    """Cost of the cheapest spanning forest; edges (m, 2) come with their costs (m,) in ascending order (Kruskal)."""
    largest = -1
    for e in range(edges.shape[0]):
        largest = max(largest, edges[e, 0], edges[e, 1])
    leader = np.arange(largest + 1)
    total = 0.0
    for e in range(edges.shape[0]):
        x, y = find(leader, edges[e, 0]), find(leader, edges[e, 1])
        if x != y:
            leader[x] = y
            total += costs[e]
    return total

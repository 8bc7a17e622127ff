"""Exact projections: every connected set listed where they are few, dynamic programming where the graph is a forest.

In: a graph, prizes, s and g. Out: a support that no admissible one beats. Connected sets are listed by ESU (Wernicke
2006), each once; for several pieces all sets of s nodes are tried.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.graph import Graph

__all__ = ["connected_sets", "exact_support", "is_forest"]

LIMIT = 5_000_000


def exact_support(graph: Graph, prizes: NDArray[np.float64], s: int, g: int, limit: int = LIMIT) -> NDArray[np.int32]:
    """The best admissible support of exactly s nodes in at most g pieces.

    Raises
    ------
    UsageError
        When the graph has cycles and more than `limit` sets would have to be tried.
    """
    if is_forest(graph):
        return forest_support(graph, prizes, s, g)
    if g == 1:
        sets = connected_sets(graph, s, limit)
        return np.asarray(sets[int(np.argmax(prizes[sets].sum(axis=1)))], dtype=np.int32)
    if comb(graph.p, s) > limit:
        raise too_many(f"{comb(graph.p, s):.3g} sets of {s} nodes", limit)
    return np.asarray(best_combination(graph.indptr, graph.neighbours, prizes, s, g), dtype=np.int32)


def is_forest(graph: Graph) -> bool:
    """Has the graph no cycle?"""
    return len(graph.edges) == graph.p - graph.component_sizes.size


def forest_support(graph: Graph, prizes: NDArray[np.float64], s: int, g: int) -> NDArray[np.int32]:
    """The best support when the graph is a forest, whatever its size."""
    from spdsl.solvers.iht.search import solve_forest

    nodes = np.arange(graph.p, dtype=np.int32)
    left, right = (np.ascontiguousarray(graph.edges[:, side]) for side in (0, 1))
    keep = np.ones(graph.p, dtype=np.bool_)
    price = graph.costs[graph.edge_of]
    return solve_forest(graph, price, prizes, nodes, left, right, keep, 0.0, s, g, 0.0).support


def connected_sets(graph: Graph, s: int, limit: int = LIMIT) -> NDArray[np.int32]:
    """Every connected set of s nodes, one a row, each row sorted (k, s).

    Raises
    ------
    UsageError
        When there are more than `limit`.
    """
    none = np.empty((0, s), dtype=np.int32)
    count = list_connected(graph.indptr, graph.neighbours, s, limit, none)
    if count > limit:
        raise too_many(f"more than {limit:,} connected sets of {s} nodes", limit)
    sets = np.empty((count, s), dtype=np.int32)
    list_connected(graph.indptr, graph.neighbours, s, limit, sets)
    sets.sort(axis=1)
    return sets


def too_many(what: str, limit: int) -> UsageError:
    """The complaint that an exact projection is out of reach."""
    return UsageError(
        Diagnostic(
            "SPL513",
            f"an exact projection would have to try {what}, and the limit is {limit:,}",
            help=("use effort = strong, whose upper bound shows how far it can be from the best",),
        )
    )


@compiled
def list_connected(indptr, neighbours, s, limit, out):
    """Count the connected sets of s nodes (stopping past `limit`) and write them to `out` where it has room."""
    p = indptr.shape[0] - 1
    count = 0
    member = np.empty(s, np.int32)
    waiting = np.empty((s + 1, p), np.int32)
    size = np.zeros(s + 1, np.int64)
    near = np.zeros(p, np.int32)  # how many chosen nodes (or their neighbourhoods) already hold the node
    for root in range(p):
        member[0] = root
        near[root] += 1
        k = 0
        size[1] = 0
        for a in range(indptr[root], indptr[root + 1]):
            v = neighbours[a]
            near[v] += 1
            if v > root:
                waiting[1, size[1]] = v
                size[1] += 1
        depth = 1
        if s == 1:
            if count < out.shape[0]:
                out[count, 0] = root
            count += 1
            if count > limit:
                return count
        while depth >= 1:
            if depth >= s or size[depth] == 0:
                # Take the last member back.
                depth -= 1
                u = member[depth]
                near[u] -= 1
                for a in range(indptr[u], indptr[u + 1]):
                    near[neighbours[a]] -= 1
                continue
            size[depth] -= 1
            v = waiting[depth, size[depth]]
            member[depth] = v
            # What may still be added: the rest that is waiting, and the neighbours that only v brings in.
            k = size[depth]
            for i in range(k):
                waiting[depth + 1, i] = waiting[depth, i]
            for a in range(indptr[v], indptr[v + 1]):
                w = neighbours[a]
                if w > root and near[w] == 0:
                    waiting[depth + 1, k] = w
                    k += 1
            size[depth + 1] = k
            near[v] += 1
            for a in range(indptr[v], indptr[v + 1]):
                near[neighbours[a]] += 1
            depth += 1
            if depth == s:
                if count < out.shape[0]:
                    for i in range(s):
                        out[count, i] = member[i]
                count += 1
                if count > limit:
                    return count
    return count


@compiled
def best_combination(indptr, neighbours, prizes, s, g):
    """The best s nodes among all combinations whose subgraph has at most g pieces."""
    p = prizes.shape[0]
    pick = np.arange(s).astype(np.int32)
    best = np.empty(0, np.int32)
    value = -np.inf
    inside = np.zeros(p, np.bool_)
    seen = np.zeros(p, np.bool_)
    stack = np.empty(p, np.int32)
    while True:
        total = 0.0
        for i in range(s):
            total += prizes[pick[i]]
        if total > value:
            for i in range(s):
                inside[pick[i]] = True
                seen[pick[i]] = False
            pieces = 0
            for i in range(s):
                if seen[pick[i]]:
                    continue
                pieces += 1
                seen[pick[i]] = True
                stack[0] = pick[i]
                depth = 1
                while depth > 0:
                    depth -= 1
                    u = stack[depth]
                    for a in range(indptr[u], indptr[u + 1]):
                        v = neighbours[a]
                        if inside[v] and not seen[v]:
                            seen[v] = True
                            stack[depth] = v
                            depth += 1
            for i in range(s):
                inside[pick[i]] = False
            if pieces <= g:
                value = total
                best = pick.copy()
        i = s - 1
        while i >= 0 and pick[i] == p - s + i:
            i -= 1
        if i < 0:
            return best
        pick[i] += 1
        for j in range(i + 1, s):
            pick[j] = pick[j - 1] + 1

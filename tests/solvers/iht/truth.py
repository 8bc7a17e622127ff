"""Independent truth for the projections: brute force over all subsets with NetworkX, and random graphs."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np

from spdsl.solvers.iht.graph import Graph


def as_networkx(graph: Graph) -> nx.Graph:
    G = nx.Graph()
    G.add_nodes_from(range(graph.p))
    G.add_weighted_edges_from((int(u), int(v), float(c)) for (u, v), c in zip(graph.edges, graph.costs))
    return G


def pieces(graph: Graph, support: Any) -> int:
    return nx.number_connected_components(as_networkx(graph).subgraph([int(v) for v in support]))


def forest_cost(graph: Graph, support: Any) -> float:
    sub = as_networkx(graph).subgraph([int(v) for v in support])
    return sum(data["weight"] for *_, data in nx.minimum_spanning_edges(sub, data=True))


def admissible_sets(graph: Graph, s: int, g: int, at_most: bool = False) -> list[tuple[int, ...]]:
    """Every set of s nodes (or of 1 to s) whose subgraph has at most g pieces, by trying all subsets."""
    sizes = range(1, s + 1) if at_most else (s,)
    G = as_networkx(graph)
    return [
        nodes
        for k in sizes
        for nodes in itertools.combinations(range(graph.p), k)
        if nx.number_connected_components(G.subgraph(nodes)) <= g
    ]


def best_energy(prizes: np.ndarray, sets: list[tuple[int, ...]]) -> float:
    return max(float(prizes[list(nodes)].sum()) for nodes in sets)


def random_graph(rng: np.random.Generator, p: int, edges: int, unit: bool = True) -> Graph:
    """A random graph with about that many edges, self-loops and parallel ones among them."""
    ends = rng.integers(0, p, size=(edges, 2))
    costs = None if unit else rng.uniform(0.2, 3.0, edges)
    return Graph.from_edges(ends, p, costs)


def random_vector(rng: np.random.Generator, p: int, kind: str) -> np.ndarray:
    x = rng.normal(size=p)
    if kind == "sparse":
        x[rng.random(p) < 0.6] = 0.0
    elif kind == "ties":
        x = rng.integers(0, 3, p).astype(float)
    elif kind == "heavy":
        x = np.exp(3.0 * x)
    return x

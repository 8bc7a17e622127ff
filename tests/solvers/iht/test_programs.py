"""The dynamic programs on forests are exact: against all subsets, with ties, negative prizes and tolls, kept or not."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from spdsl.solvers.iht.forest_program import best_forest
from spdsl.solvers.iht.tree_building import strip_leaves
from spdsl.solvers.iht.tree_program import below, best_subtree, scan, table_space, tabulate, walk_back


def random_forest(rng: np.random.Generator, n: int) -> tuple[nx.Graph, np.ndarray, np.ndarray]:
    links = [(int(rng.integers(-1 if rng.random() < 0.2 else 0, i)), i) for i in range(1, n)]
    links = [(u, v) for u, v in links if u >= 0]
    G = nx.Graph(links)
    G.add_nodes_from(range(n))
    left = np.array([u for u, _ in links], dtype=np.int32)
    right = np.array([v for _, v in links], dtype=np.int32)
    order, parent = strip_leaves(np.zeros(n), np.ones(n, dtype=bool), left, right, 0.0)
    return G, order, parent


def worth(G: nx.Graph, nodes: tuple[int, ...], prizes: np.ndarray, toll: dict) -> float:
    inner = sum(toll[tuple(sorted(edge))] for edge in G.subgraph(nodes).edges)
    return float(prizes[list(nodes)].sum()) - inner


@pytest.mark.parametrize("kind", ["real", "whole"])
def test_both_programs_find_the_best_set_of_every_size(kind: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        n = int(rng.integers(1, 10))
        G, order, parent = random_forest(rng, n)
        prizes = rng.normal(size=n) if kind == "real" else rng.integers(-1, 3, n).astype(float)
        toll = {tuple(sorted(edge)): float(rng.integers(0, 3)) / 2 for edge in G.edges}
        tolls = np.array(
            [0.0 if q < 0 else toll[tuple(sorted((int(v), int(order[q]))))] for v, q in zip(order, parent)]
        )
        for s in range(1, n + 1):
            for g in (1, 2, 3):
                sets = [
                    c for c in itertools.combinations(range(n), s) if nx.number_connected_components(G.subgraph(c)) <= g
                ]
                best = max((worth(G, c, prizes, toll) for c in sets), default=-np.inf)
                answers = [best_forest(parent, prizes[order], tolls, s, g)]
                if g == 1:
                    answers.append(best_subtree(parent, prizes[order], tolls, s))
                for curve, chosen in answers:
                    assert curve[s] == pytest.approx(best, abs=1e-12)
                    if best == -np.inf:
                        assert chosen.size == 0
                        continue
                    nodes = tuple(sorted(int(v) for v in order[chosen]))
                    assert nodes in sets
                    assert worth(G, nodes, prizes, toll) == pytest.approx(best, abs=1e-12)


def test_the_pass_that_keeps_nothing_agrees_with_the_one_that_keeps_all() -> None:
    rng = np.random.default_rng(4)
    for n in (1, 2, 30, 200):
        _, _, parent = random_forest(rng, n)
        prizes, tolls = rng.normal(size=n), np.zeros(n)
        for s in {1, max(1, n // 3), max(1, n // 2)}:
            kept, chosen = best_subtree(parent, prizes, tolls, s)
            curve, root = scan(parent, prizes, tolls, s)
            assert np.array_equal(kept, curve)
            if root >= 0:
                positions, links = below(parent, root, s)
                tables = tabulate(links, prizes[positions], tolls[positions], s, table_space(links, s))
                again = positions[walk_back(tables, tolls[positions], 0, s)]
                assert prizes[again].sum() == pytest.approx(prizes[chosen].sum(), abs=1e-12)
                assert len(set(again.tolist())) == s


def test_stripping_keeps_rich_and_kept_nodes_and_drops_hopeless_leaves() -> None:
    #  0 - 1 - 2 - 3    and 4 alone
    left, right = np.array([0, 1, 2], dtype=np.int32), np.array([1, 2, 3], dtype=np.int32)
    prizes = np.array([5.0, 0.0, 5.0, 0.1, 0.1])
    order, parent = strip_leaves(prizes, np.zeros(5, dtype=bool), left, right, 1.0)
    assert sorted(order.tolist()) == [0, 1, 2]
    assert sorted(parent.tolist()) == [-1, 0, 1]
    order, _ = strip_leaves(prizes, np.array([0, 0, 0, 1, 1], dtype=bool), left, right, 1.0)
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4]

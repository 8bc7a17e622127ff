"""The dynamic programs on forests are exact: against all subsets, with ties, negative prizes and tolls, kept or not."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from spdsl.solvers.iht.forest_program import best_forest
from spdsl.solvers.iht.tree_building import strip_leaves
from spdsl.solvers.iht.tree_program import below, best_subtree, scan, table_space, tabulate, walk_back, worthwhile


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


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.8])
def test_cutting_what_can_not_pay_loses_no_set_that_is_best_at_that_price(threshold: float) -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        n = int(rng.integers(1, 13))
        G, order, parent = random_forest(rng, n)
        prizes = rng.normal(0.3, 1.0, n)
        toll = {tuple(sorted(edge)): float(rng.integers(0, 3)) / 4 for edge in G.edges}
        tolls = np.array(
            [0.0 if q < 0 else toll[tuple(sorted((int(v), int(order[q]))))] for v, q in zip(order, parent)]
        )
        own = prizes[order]
        # Every marginal price from the threshold on: the best worth of a connected set, by size, whole and cut.
        whole = [best_subtree(parent, own, tolls, s)[0][s] for s in range(1, n + 1)]
        kept, links = worthwhile(parent, own, tolls, threshold, 1)
        assert np.array_equal(np.sort(kept), np.arange(n))
        cut = [best_subtree(links, own[kept], tolls[kept], s)[0][s] for s in range(1, n + 1)]
        for price in (threshold, threshold + 0.3, threshold + 1.0):
            sizes = np.arange(1, n + 1)
            assert np.max(cut - price * sizes) == pytest.approx(np.max(whole - price * sizes), abs=1e-12)
        # Edges that are left are edges of the forest, and the pass that keeps nothing may go over them.
        for i, q in enumerate(links):
            if q >= 0:
                assert kept[q] == parent[kept[i]]
                assert q < i
        assert np.array_equal(scan(links, own[kept], tolls[kept], n)[0][1:], np.array(cut))


def test_pieces_too_small_for_the_asked_size_are_dropped() -> None:
    # A path of six nodes whose third edge leads nowhere good from either side's marginal price.
    parent = np.array([-1, 0, 1, 2, 3, 4], dtype=np.int32)
    prizes = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    kept, links = worthwhile(parent, prizes, np.zeros(6), 0.5, 3)
    assert kept.tolist() == [0, 1, 2]
    assert links.tolist() == [-1, 0, 1]
    assert worthwhile(parent, prizes, np.zeros(6), 0.5, 4)[0].size == 0


def test_stripping_keeps_rich_and_kept_nodes_and_drops_hopeless_leaves() -> None:
    #  0 - 1 - 2 - 3    and 4 alone
    left, right = np.array([0, 1, 2], dtype=np.int32), np.array([1, 2, 3], dtype=np.int32)
    prizes = np.array([5.0, 0.0, 5.0, 0.1, 0.1])
    order, parent = strip_leaves(prizes, np.zeros(5, dtype=bool), left, right, 1.0)
    assert sorted(order.tolist()) == [0, 1, 2]
    assert sorted(parent.tolist()) == [-1, 0, 1]
    order, _ = strip_leaves(prizes, np.array([0, 0, 0, 1, 1], dtype=bool), left, right, 1.0)
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4]

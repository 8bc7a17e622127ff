"""Goemans-Williamson growth: a feasible dual, tight merges, the promised factor of 2, pcst-fast2's values."""

from __future__ import annotations

import numpy as np
import pytest

from spdsl.solvers.iht.bound import dual_bound, largest_sum
from spdsl.solvers.iht.graph import grid
from spdsl.solvers.iht.growth import grow
from spdsl.solvers.iht.guaranteed import steiner_forest
from tests.solvers.iht.truth import admissible_sets, best_energy, forest_cost, random_graph, random_vector


def families(parent: np.ndarray, n: int) -> list[set[int]]:
    members = [{v} for v in range(n)] + [set() for _ in range(len(parent) - n)]
    for c, above in enumerate(parent):
        if above >= 0:
            members[above] |= members[c]
    return members


@pytest.mark.parametrize("target", [0, 1, 3])
def test_the_dual_is_feasible_and_merged_edges_are_full(target: int) -> None:
    rng = np.random.default_rng(5)
    for trial in range(60):
        n = int(rng.integers(2, 30))
        graph = random_graph(rng, n, int(rng.integers(1, 3 * n)), unit=bool(trial % 2))
        prizes = random_vector(rng, n, ("plain", "sparse", "ties")[trial % 3]) ** 2
        merges, dual, parent, active = grow(graph.indptr, graph.half_edges, graph.edges, graph.costs, prizes, target)
        sets = families(parent, n)
        assert (dual >= 0).all()
        inside = dual.copy()
        for c, above in enumerate(parent):
            if above >= 0:
                inside[above] += inside[c]
            paid = prizes[list(sets[c])].sum()
            assert inside[c] <= paid + 1e-9
            if target == 0 and above < 0:
                assert inside[c] == pytest.approx(paid, abs=1e-9)
        load = np.array([sum(dual[c] for c, s in enumerate(sets) if (u in s) != (v in s)) for u, v in graph.edges])
        assert (load <= graph.costs + 1e-9).all()
        assert load[merges] == pytest.approx(graph.costs[merges], abs=1e-9)
        assert active.sum() <= max(target, 0) or (prizes > 0).sum() <= target


def test_twice_the_missed_prize_plus_cost_is_at_most_twice_the_best_forest() -> None:
    rng = np.random.default_rng(6)
    for trial in range(40):
        n, g = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        graph = random_graph(rng, n, 2 * n, unit=False)
        prizes = random_vector(rng, n, ("plain", "sparse", "heavy", "ties")[trial % 4]) ** 2
        nodes, edges = steiner_forest(graph, prizes, graph.costs, g)
        assert len(edges) == len(nodes) - len(graph.components_of(nodes)) or len(edges) < len(nodes)
        assert len(nodes) - len(edges) <= g
        mine = graph.costs[edges].sum() + 2 * (prizes.sum() - prizes[nodes].sum())
        best = min(
            [prizes.sum()]
            + [
                forest_cost(graph, s) + prizes.sum() - prizes[list(s)].sum()
                for s in admissible_sets(graph, n, g, at_most=True)
            ]
        )
        assert mine <= 2 * best + 1e-9


def test_strong_pruning_is_never_worse_than_pcst_fast2() -> None:
    pcst_fast = pytest.importorskip("pcst_fast", reason="the peer pcst-fast2 is not installed: pip install pcst-fast2")
    rng = np.random.default_rng(7)
    equal = 0
    for _ in range(120):
        n, g = int(rng.integers(2, 40)), int(rng.integers(1, 4))
        graph = random_graph(rng, n, 2 * n, unit=False)
        if not len(graph.edges):
            continue
        prizes = rng.exponential(size=n) * (rng.random(n) < 0.7)
        nodes, edges = steiner_forest(graph, prizes, graph.costs, g, weight=1.0)
        theirs, links = pcst_fast.pcst_fast(graph.edges.astype(np.int64), prizes, graph.costs, -1, g, "strong", 0)
        ours = prizes[nodes].sum() - graph.costs[edges].sum()
        other = prizes[theirs].sum() - graph.costs[links].sum()
        assert ours >= other - 1e-9
        equal += abs(ours - other) < 1e-9
    assert equal > 100


@pytest.mark.parametrize("g", [1, 2, 3])
def test_no_admissible_support_passes_the_dual_bound(g: int) -> None:
    rng = np.random.default_rng(8)
    for trial in range(60):
        n = int(rng.integers(4, 10))
        s = int(rng.integers(g, n + 1))
        graph = random_graph(rng, n, 2 * n)
        sets = admissible_sets(graph, s, g)
        if not sets:
            continue
        prizes = random_vector(rng, n, ("plain", "sparse", "heavy", "ties")[trial % 4]) ** 2
        best = best_energy(prizes, sets)
        for lam in (0.0, 0.1, 0.5, 1.0, 4.0):
            assert dual_bound(graph, prizes, s, g, lam) >= best * (1 - 1e-12)
        assert largest_sum(prizes, s) >= best * (1 - 1e-12)


def test_the_bound_tells_far_prizes_from_near_ones() -> None:
    near, far = np.zeros(121), np.zeros(121)
    near[[60, 61]] = 1.0
    far[[0, 120]] = 1.0  # 20 steps apart: three nodes hold one of them only
    bounds = [min(dual_bound(grid(11, 11), p, 3, 1, lam) for lam in (0.0, 0.25, 0.5, 1.0)) for p in (near, far)]
    assert bounds[0] == pytest.approx(2.0)
    assert 1.0 <= bounds[1] < 1.6

"""The scripts of examples/graph: their signals, loaders and intervals are what they say, without any run of hours."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from spdsl.solvers.iht.graph import Graph, grid
from tests.solvers.iht.truth import as_networkx, pieces

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "graph"


@pytest.fixture
def script(monkeypatch):
    """A script of the folder as a module."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def load(name: str):
        for known in ("problems", "recovery", "verdict", name):
            monkeypatch.delitem(sys.modules, known, raising=False)
        return importlib.import_module(name)

    return load


def test_the_spiral_is_one_connected_piece(script) -> None:
    picture = script("problems").image("spiral")
    assert pieces(grid(50, 50), np.flatnonzero(picture.w)) == picture.components == 1
    assert picture.s == np.count_nonzero(picture.w) > 100


def test_random_walks_are_connected_and_of_the_asked_size(script) -> None:
    problems = script("problems")
    graph = grid(9, 9)
    for seed in range(5):
        support = problems.random_walk(graph, 12, np.random.default_rng(seed))
        assert len(support) == 12
        assert pieces(graph, support) == 1


def test_intervals_are_clopper_and_pearson(script) -> None:
    figures = script("figures")
    hits, runs = np.array([0, 3, 10]), np.array([10, 10, 10])
    low, high = figures.interval(hits, runs)
    for k in range(3):
        exact = binomtest(int(hits[k]), int(runs[k])).proportion_ci(0.9, "exact")
        assert (low[k], high[k]) == pytest.approx((exact.low, exact.high))


def test_published_shares_are_read_as_what_speaks_against_us(script) -> None:
    verdict = script("verdict")
    low, middle, high = verdict.compare(np.array([1.0, 2, 3]), np.array([[0, 20]] * 3), np.array([0.0, 0.5, 1.0]))
    assert (low.published(zeros=3), middle.published(), high.published()) == (3, 25, 50)
    # 0 of 20 against 50 of 50, 25 of 50 and (higher) at most 3 of 50.
    assert high.lower < 1e-12
    assert middle.lower < 1e-3
    assert low.lower == low.higher == 1.0
    better = verdict.Comparison(1.0, 20, 20, 0.0)
    assert better.higher < 1e-9
    assert better.lower == 1.0


def test_the_test_over_all_points_is_cochran_mantel_and_haenszel_s(script) -> None:
    verdict = script("verdict")
    points = verdict.compare(np.arange(3.0), np.array([[5, 20], [12, 20], [20, 20]]), np.array([0.2, 0.5, 0.9]))
    counts = [(5, 20, 12), (12, 20, 25), (20, 20, 43)]
    from scipy.stats import hypergeom

    excess = sum(h - hypergeom(n + 50, h + q, n).mean() for h, n, q in counts)
    variance = sum(hypergeom(n + 50, h + q, n).var() for h, n, q in counts)
    assert verdict.combined(points) == pytest.approx(excess / np.sqrt(variance))
    nothing = verdict.compare(np.array([0.0]), np.array([[20, 20]]), np.array([1.0]))
    assert verdict.combined(nothing) == 0.0


def test_expression_columns_are_put_in_the_network_s_order(script, tmp_path) -> None:
    network = script("network")
    rng = np.random.default_rng(0)
    entrez = np.array([7, 3, 9])
    X = rng.normal(size=(20, 4))
    stored = np.array([9, 5, 7, 3])
    np.savez(tmp_path / "e.npz", X=X, y=rng.integers(0, 2, 20), entrez=stored)
    task = network.expression(tmp_path / "e.npz", entrez, np.random.default_rng(1))
    assert len(task.y) + len(task.y_test) == 20
    assert set(task.y) | set(task.y_test) == {-1.0, 1.0}
    whole = np.sort(np.concatenate([task.X, task.X_test]), axis=0)
    own = X[:, [2, 3, 0]]
    assert whole == pytest.approx(np.sort((own - own.mean(axis=0)) / own.std(axis=0), axis=0))
    with pytest.raises(SystemExit, match="lacks 1 genes"):
        network.expression(tmp_path / "e.npz", np.array([7, 4]), rng)


def test_planted_samples_follow_the_planted_genes_and_their_neighbours(script) -> None:
    network = script("network")
    graph = grid(12, 12)
    support = np.array([5, 6, 7, 19])
    task = network.planted(graph, support, np.random.default_rng(2))
    assert 0.15 < np.mean(task.y > 0) < 0.4
    assert task.X.mean(axis=0) == pytest.approx(np.zeros(144), abs=1e-12)
    correlation = np.corrcoef(task.X_test.T)
    near = [correlation[u, v] for u, v in graph.edges]
    far = correlation[0, -30:]
    assert np.mean(near) > np.abs(far).mean() + 0.05
    # The labels follow the planted genes: the best linear score on them tells the classes apart, on others it can't.
    right = np.linalg.lstsq(task.X[:, support], task.y, rcond=None)[0]
    wrong = np.linalg.lstsq(task.X[:, support + 72], task.y, rcond=None)[0]
    assert network.auc(task.y_test, task.X_test[:, support] @ right) > 0.85
    assert network.auc(task.y_test, task.X_test[:, support + 72] @ wrong) < 0.65


def test_pathways_keep_their_largest_connected_piece(script) -> None:
    network = script("network")
    graph = Graph.from_edges([[0, 1], [1, 2], [3, 4], [4, 5], [5, 6]])
    entrez = np.arange(7) + 100
    pathways = np.array([[1, 100], [1, 101], [1, 105], [2, 103], [2, 104], [2, 106], [2, 999]])
    found = network.pathway_supports(graph, entrez, pathways, 2, 3)
    assert [list(nodes) for nodes in found] == [[0, 1], [3, 4]]
    assert all(pieces(graph, nodes) == 1 for nodes in found)
    assert as_networkx(graph).number_of_nodes() == 7


def test_the_errors_of_the_convergence_experiment_fall_and_repeat(script) -> None:
    convergence = script("convergence")
    first = convergence.errors(36, 0.5, 6, 0)
    assert len(first) == 7
    assert first[-1] < 0.1 * first[0]
    assert np.array_equal(first, convergence.errors(36, 0.5, 6, 0))

"""Sets of supports: their projections against all supports, their refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from spdsl.diagnostics import UsageError
from spdsl.solvers.iht.graph import Graph, grid
from spdsl.solvers.iht.support_sets import (
    ConnectedSet,
    GroupSet,
    PublishedConnectedSet,
    SparseSet,
    SupportUnion,
)
from tests.solvers.iht.truth import pieces


def test_sparse_supports_are_the_largest_entries_first_of_ties() -> None:
    assert SparseSet(5, 2).tail(np.array([1.0, -3.0, 2.0, 0.0, -2.0])).tolist() == [1, 2]
    assert SparseSet(4, 2).tail(np.ones(4)).tolist() == [0, 1]
    assert SparseSet(4, 4).tail(np.zeros(4)).tolist() == [0, 1, 2, 3]
    assert SparseSet(5, 2).head(np.array([1.0, -3.0, 2.0, 0.0, -2.0]), 2.0).tolist() == [0, 1, 2, 4]


def test_groups_are_the_best_of_all_choices() -> None:
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "a", "c", "c", "b", "d", "d", "a"])
    groups = GroupSet(labels, 2)
    for _ in range(10):
        x = rng.normal(size=9)
        best = max((x[np.isin(labels, pair)] ** 2).sum() for pair in itertools.combinations("abcd", 2))
        nodes = groups.tail(x)
        assert (x[nodes] ** 2).sum() == pytest.approx(best)
        assert len(set(labels[nodes])) <= 2
    assert GroupSet(labels, 2, size=3).tail(np.arange(9.0)).size == 3


def test_one_support_of_a_union_is_picked_exactly_and_several_are_near_the_best() -> None:
    rng = np.random.default_rng(1)
    supports = [rng.choice(12, 4, replace=False) for _ in range(6)]
    for _ in range(10):
        x = rng.normal(size=12)
        one = SupportUnion(12, supports).tail(x)
        assert (x[one] ** 2).sum() == pytest.approx(max((x[nodes] ** 2).sum() for nodes in supports))
        two = SupportUnion(12, supports, 2).tail(x)
        best = max((x[np.union1d(a, b)] ** 2).sum() for a, b in itertools.combinations(supports, 2))
        assert (1 - 1 / np.e) * best <= (x[two] ** 2).sum() <= best + 1e-12


def test_heads_below_the_size_keep_at_least_one_piece() -> None:
    x = np.array([1.0, -3.0, 2.0, 0.0, -2.0])
    assert SparseSet(5, 2).head(x, 0.1).tolist() == [1]
    assert GroupSet([0, 0, 1, 1, 2], 2).head(x, 0.1).tolist() == [0, 1]
    assert GroupSet([0, 0, 1, 1, 2], 2, 3).head(x, 0.1).tolist() == [1]
    assert SupportUnion(5, [[0, 1], [2, 3], [4]], 2).head(x, 0.1).tolist() == [0, 1]
    line = ConnectedSet(Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4]], 5), 2, budget=1.0)
    assert line.head(x, 0.75).tolist() == [1, 2]


def test_connected_heads_are_larger_and_connected() -> None:
    x = np.random.default_rng(2).normal(size=64)
    connected = ConnectedSet(grid(8, 8), 6, 1)
    head = connected.head(x, 2.0)
    assert head.size == 12
    assert pieces(grid(8, 8), head) <= 2
    assert connected.tail(x).size == 6
    assert ConnectedSet(grid(3, 3), 6).head(np.ones(9), 5.0).size == 9


def test_published_projections_count_their_forests_and_keep_their_sizes() -> None:
    x = np.random.default_rng(3).normal(size=256)
    published = PublishedConnectedSet(grid(16, 16), 20)
    assert published.tail(x).size <= 22
    assert published.head(x).size <= int(1.1 * 128)
    assert published.head(x, 2.0).size <= 44
    assert 3 <= published.forests <= 150


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SparseSet(3, 4), "has 3"),
        (lambda: SparseSet(3, 0), "of 0"),
        (lambda: GroupSet([0, 0, 1], 3), "there are 2"),
        (lambda: SupportUnion(3, [[0, 5]]), "outside"),
        (lambda: SupportUnion(3, [[0]], 2), "1 are given"),
        (lambda: PublishedConnectedSet(grid(2, 2), 5), "the graph has 4"),
    ],
)
def test_empty_sets_are_refused(make, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()

"""Stability selection: shares are counts, planted entries come out on top, the bound is the published formula."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import spdsl
from spdsl.solvers.iht.stability import Stability, stability
from tests.solvers.iht.test_backend import text
from tests.solvers.iht.test_engine import planted


def test_planted_entries_are_chosen_more_often_than_the_others() -> None:
    X, y, w = planted(0, 8, 6, 120, noise=0.05)
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8), ordering="sorted")
    model = spdsl.parse(text(set_="connected(G, size = 6)"))
    found = stability(model, {"X": X, "y": y, "G": G}, ("X", "y"), repeats=8, seed=1)
    assert found.shares.shape == (64,)
    assert len(found.supports) == 8
    counted = np.bincount(np.concatenate(found.supports), minlength=64) / 8
    assert np.array_equal(found.shares, counted)
    planted_, others = found.shares[w != 0], found.shares[w == 0]
    assert planted_.mean() > 0.7 > 0.1 > others.mean()
    again = stability(model, {"X": X, "y": y, "G": G}, ("X", "y"), repeats=8, seed=1)
    assert np.array_equal(found.shares, again.shares)


def test_the_bound_on_false_choices_is_the_formula() -> None:
    found = Stability(np.full(100, 0.1), ())
    assert found.expected_false(0.75) == pytest.approx(10 * 10 / (0.5 * 100))
    assert found.expected_false(0.5) == float("inf")
    assert found.chosen(0.05).size == 100
    assert found.chosen(0.2).size == 0

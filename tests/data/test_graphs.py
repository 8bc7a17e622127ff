"""Graphs from everything that describes one: simple, ordered, each edge once, with the rule for what is left out."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from data.models import GRAPH, model, only
from spdsl.data import bind, grid

X, y = np.ones((2, 4)), np.ones(2)


def bound(G, **more):
    return bind(GRAPH, {"X": X, "y": y, "G": G, **more})


@pytest.mark.parametrize(
    "G",
    [
        [(0, 1), (1, 2), (2, 3)],
        np.array([[2, 3], [1, 0], [1, 2]], dtype=np.int32),
        (4, [(0, 1), (1, 2), (2, 3)], [1, 1, 1]),
        ([(0, 1), (1, 2), (2, 3)], np.ones(3)),
        nx.path_graph(4),
        sp.diags_array([1.0, 1.0, 1.0], offsets=1, shape=(4, 4)),
        sp.csr_matrix(nx.to_numpy_array(nx.path_graph(4))),
        nx.to_numpy_array(nx.path_graph(4)),
        grid(1, 4),
        grid(4, 1),
    ],
)
def test_one_path_of_four_nodes_in_every_form(G):
    found = bound(G)
    assert found.data["G"].n_nodes == 4
    np.testing.assert_array_equal(found.data["G"].edges, [(0, 1), (1, 2), (2, 3)])
    np.testing.assert_array_equal(found.data["G"].costs, [1, 1, 1])
    assert found.data["G"].dropped == (0, 0)
    assert not found.notes


def test_a_grid_has_the_edges_of_networkx():
    ours, theirs = grid(5, 7), nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 7), ordering="sorted")
    assert {tuple(edge) for edge in ours.edges.tolist()} == {tuple(sorted(edge)) for edge in theirs.edges}
    assert ours.n_nodes == 35


def test_self_loops_go_and_of_parallel_edges_the_cheapest_stays():
    found = bound(([(0, 1), (1, 0), (0, 1), (2, 2), (3, 2)], [3, 1, 2, 0, 5]))
    np.testing.assert_array_equal(found.data["G"].edges, [(0, 1), (2, 3)])
    np.testing.assert_array_equal(found.data["G"].costs, [1, 5])
    assert found.data["G"].dropped == (1, 2)
    assert len(found.notes) == 2


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=25),
)
def test_the_rule_agrees_with_a_plain_dictionary(rows):
    expected: dict[tuple[int, int], float] = {}
    for u, v, cost in rows:
        if u != v:
            key = (min(u, v), max(u, v))
            expected[key] = min(cost, expected.get(key, np.inf))
    edges = np.array([row[:2] for row in rows], dtype=int).reshape(-1, 2)
    costs = np.array([row[2] for row in rows], dtype=float)
    graph = bind(model("G : graph(p)", variables=()), {"G": (6, edges, costs)}).data["G"]
    assert [tuple(edge) for edge in graph.edges.tolist()] == sorted(expected)
    np.testing.assert_array_equal(graph.costs, [expected[key] for key in sorted(expected)])


def test_costs_and_weights_of_networkx_are_taken():
    G = nx.Graph()
    G.add_nodes_from(range(4))
    G.add_edge(0, 1, cost=2.0, weight=9.0)
    G.add_edge(1, 2, weight=3.0)
    G.add_edge(2, 3)
    np.testing.assert_array_equal(bound(G).data["G"].costs, [2, 3, 1])


def test_named_nodes_are_matched_with_the_columns():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    G = nx.Graph([("d", "a"), ("b", "a"), ("c", "b")])
    found = bind(GRAPH, {"X": frame, "y": y, "G": G}).data["G"]
    assert found.names == ("a", "b", "c", "d")
    np.testing.assert_array_equal(found.edges, [(0, 1), (0, 3), (1, 2)])
    wrong = only(GRAPH, {"X": frame, "y": y, "G": nx.Graph([("aa", "b"), ("c", "d")])})
    assert wrong.code == "SPL421"


def test_a_grid_of_networkx_goes_by_its_own_order_when_names_tell_nothing():
    found = bound(nx.grid_2d_graph(2, 2))
    np.testing.assert_array_equal(found.data["G"].edges, grid(2, 2).edges)


@pytest.mark.parametrize(
    ("G", "code", "word"),
    [
        ([(0, 4)], "SPL420", "ends in node 4"),
        ([(-1, 2)], "SPL420", "ends in node -1"),
        ([(1, 2), (3, 4)], "SPL420", "nodes are 0 to 3"),
        (([(0, 1)], [-1.0]), "SPL420", "cost -1"),
        (([(0, 1)], [np.nan]), "SPL420", "cost nan"),
        (([(0, 1)], [1.0, 2.0]), "SPL420", "1 edge but costs"),
        ([(0.5, 1.0)], "SPL420", "whole numbers"),
        (np.ones((2, 3, 2)), "SPL420", "shape (2, 3, 2)"),
        (sp.csr_array(np.ones((3, 4))), "SPL420", "not square"),
        ("road map", "SPL420", "it is a str"),
        (7, "SPL420", "int"),
        (grid(3, 3), "SPL412", "p is 4 by X but 9 by G"),
    ],
)
def test_a_graph_that_is_none_is_refused(G, code, word):
    found = only(GRAPH, {"X": X, "y": y, "G": G})
    assert found.code == code
    assert word in found.message


def test_ids_that_seem_to_count_from_one_get_the_mend():
    assert "from1" in only(GRAPH, {"X": X, "y": y, "G": [(1, 2), (3, 4)]}).help[0]


def test_the_number_of_nodes_comes_from_the_columns_or_the_largest_id():
    assert bound([(0, 1)]).data["G"].n_nodes == 4
    assert bind(model("G : graph(p)", variables=()), {"G": [(0, 1), (1, 6)]}).sizes == {"p": 7}


def test_a_grid_needs_nodes():
    with pytest.raises(ValueError, match="at least one"):
        grid(0, 3)

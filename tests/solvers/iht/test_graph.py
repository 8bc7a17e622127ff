"""Graphs from every source come out clean, and what is no graph is refused with its place."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from spdsl.diagnostics import DataError
from spdsl.solvers.iht.graph import Graph, grid
from tests.solvers.iht.truth import forest_cost, pieces, random_graph


def test_a_grid_is_networkx_grid() -> None:
    ours = grid(4, 7)
    theirs = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 7), ordering="sorted")
    assert {tuple(edge) for edge in ours.edges.tolist()} == {tuple(sorted(edge)) for edge in theirs.edges}
    assert ours.unit_costs


def test_a_grid_knows_its_shape_and_nothing_else_takes_itself_for_one() -> None:
    for shape in ((2, 2), (4, 7), (7, 4), (2, 9)):
        assert grid(*shape).grid_shape == shape
    assert grid(1, 5).grid_shape is None  # a path
    assert Graph.from_edges(np.zeros((0, 2)), 0).grid_shape is None
    edges = grid(4, 6).edges.copy()
    assert Graph.from_edges(edges[:-1], 24).grid_shape is None
    edges[-1] = (0, 23)
    assert Graph.from_edges(edges, 24).grid_shape is None


def test_self_loops_go_and_of_parallel_edges_the_cheapest_stays() -> None:
    graph = Graph.from_edges([[0, 1], [1, 0], [2, 2], [1, 2]], costs=[3.0, 1.0, 9.0, 2.0])
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.costs.tolist() == [1.0, 2.0]


def test_adjacency_networkx_and_edges_give_the_same_graph() -> None:
    rng = np.random.default_rng(0)
    a = random_graph(rng, 12, 30, unit=False)
    matrix = sparse.coo_array((a.costs, (a.edges[:, 0], a.edges[:, 1])), shape=(12, 12))
    theirs = nx.Graph()
    theirs.add_nodes_from(range(12))
    theirs.add_weighted_edges_from([(u, v, c) for (u, v), c in zip(a.edges.tolist(), a.costs)], weight="cost")
    for b in (Graph.from_adjacency(matrix + matrix.T), Graph.from_networkx(theirs)):
        assert b.p == 12
        assert np.array_equal(a.edges, b.edges)
        assert np.array_equal(a.costs, b.costs)


def test_networkx_names_are_kept_in_its_order() -> None:
    graph = Graph.from_networkx(nx.Graph([("b", "a"), ("a", "c")]))
    assert graph.names == ("b", "a", "c")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]


def test_rows_list_every_neighbour_once_with_its_edge() -> None:
    graph = random_graph(np.random.default_rng(1), 20, 60)
    for v in range(20):
        mine = slice(graph.indptr[v], graph.indptr[v + 1])
        for u, e in zip(graph.neighbours[mine], graph.edge_of[mine]):
            assert {int(u), v} == set(graph.edges[e].tolist())
    assert len(graph.neighbours) == 2 * len(graph.edges)


def test_pieces_and_forest_cost_agree_with_networkx() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        graph = random_graph(rng, 15, 20, unit=False)
        support = rng.choice(15, 6, replace=False)
        assert len(graph.components_of(support)) == pieces(graph, support)
        assert graph.forest_cost(support) == pytest.approx(forest_cost(graph, support), abs=1e-12)


@pytest.mark.parametrize(
    ("edges", "options", "words"),
    [
        ([[0, 5]], {"p": 3}, "has 3 nodes"),
        ([[-1, 2]], {}, "numbered from 0"),
        ([[0.5, 1.0]], {}, "whole numbers"),
        ([[0, 1, 2]], {}, "two columns"),
        ([["a", "b"]], {}, "whole numbers"),
        ([[0, 1]], {"costs": [-1.0]}, "not negative"),
        ([[0, 1]], {"costs": [np.nan]}, "finite"),
        ([[0, 1]], {"costs": [1.0, 2.0]}, "2 costs for 1 edges"),
    ],
)
def test_what_is_no_graph_is_refused_in_words(edges: list[list[float]], options: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Graph.from_edges(edges, **options)


def test_a_matrix_that_is_not_square_is_no_adjacency() -> None:
    with pytest.raises(DataError, match="square"):
        Graph.from_adjacency(np.ones((2, 3)))

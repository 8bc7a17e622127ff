"""Supports on graphs: a grid is drawn as its image, another graph as nodes and edges whose distances are the graph's."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import spdsl
from spdsl.cli.output import stdout
from spdsl.data import grid
from spdsl.view.graph_figure import places
from spdsl.view.tables import result_report, values_table

MODEL = """
data
  X : matrix(m, p)
  y : vector(m)
  G : graph(p)
variable
  w : vector(p)
minimize
  loss  (X @ w - y)^2 / (2*m)
subject to
  support(w) in connected(G, size = 6, components = 2)
"""


def solved(graph: object, support: list[int], p: int, sign: float = 1.0) -> spdsl.Solution:
    rng = np.random.default_rng(0)
    w = np.zeros(p)
    w[support] = rng.uniform(1, 2, len(support))
    w[support[0]] *= sign
    X = rng.normal(size=(60, p))
    return spdsl.parse(MODEL).solve(X=X, y=X @ w, G=graph, seed=1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_grid_is_drawn_as_the_image_of_its_vector(sign, tmp_path):
    answer = solved(grid(8, 10), [0, 1, 2, 77, 78, 79], 80, sign)
    answer.save(tmp_path / "r.npz")
    figure = spdsl.load_result(tmp_path / "r.npz").plot()
    (image,) = figure.axes[0].images
    np.testing.assert_array_equal(image.get_array(), np.asarray(answer["w"]).reshape(8, 10))
    assert image.norm.vmin == (-image.norm.vmax if sign < 0 else 0.0)
    assert "6 nodes in 2 pieces" in figure.axes[0].get_title(loc="left")


def test_any_other_graph_is_drawn_by_the_support_s_nodes_and_edges(tmp_path):
    G = nx.relabel_nodes(nx.random_regular_graph(3, 40, seed=1), {k: f"gene{k:02}" for k in range(40)})
    names = sorted(G)
    walk = list(nx.bfs_tree(G, "gene05"))[:6]
    rng = np.random.default_rng(1)
    w = np.zeros(40)
    w[[names.index(node) for node in walk]] = rng.normal(size=6) + 3
    X = rng.normal(size=(80, 40))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=names)
    answer = spdsl.parse(MODEL).solve(X=frame, y=X @ w, G=G)
    figure = answer.plot(tmp_path / "g.png")
    axis = figure.axes[0]
    lines, dots = axis.collections
    assert len(dots.get_offsets()) == 6
    assert len(lines.get_segments()) == G.subgraph(walk).number_of_edges() == len(answer["subgraph_edges"])
    assert {text.get_text() for text in axis.texts} == set(walk)
    at = {node: tuple(place) for node, place in zip(sorted(walk), dots.get_offsets())}
    drawn = {frozenset(map(tuple, np.round(segment, 9))) for segment in lines.get_segments()}
    for u, v in G.subgraph(walk).edges:
        assert frozenset((tuple(np.round(at[u], 9)), tuple(np.round(at[v], 9)))) in drawn


def test_distances_on_paper_follow_those_in_the_graph_and_pieces_do_not_meet():
    path = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    at = places(10, path, np.zeros(10, int))
    gaps = np.linalg.norm(at[:, None] - at[None], axis=2)
    steps = np.abs(np.arange(10)[:, None] - np.arange(10)[None])
    assert np.abs(gaps - steps).max() < 0.5
    star = np.array([[0, k] for k in range(1, 7)])
    at = places(7, star, np.zeros(7, int))
    rays = np.linalg.norm(at[1:] - at[0], axis=1)
    assert rays.max() / rays.min() < 1.6
    twins = np.linalg.norm(at[1:, None] - at[None, 1:], axis=2)[np.triu_indices(6, 1)]
    assert twins.min() > 0.5
    two = places(5, np.array([[0, 1], [2, 3], [3, 4]]), np.array([0, 0, 1, 1, 1]))
    assert two[:2, 0].max() < two[2:, 0].min()


def test_the_summary_counts_pieces_and_zeros_of_a_long_vector_are_not_listed(capsys):
    answer = solved(grid(8, 10), [0, 1, 2, 77, 78, 79], 80)
    stdout().print(result_report(answer))
    stdout().print(values_table(answer))
    written = capsys.readouterr().out
    assert "pieces of the support" in written
    assert "2, 4 edges inside" in written
    assert "w[77]" in written
    assert "w[40]" not in written
    assert "the other 74 of w" in written

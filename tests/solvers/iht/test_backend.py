"""The back ends through the language: answers in the set, optimal on their support; refusals in words."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import spdsl
from spdsl.data import grid as data_grid
from spdsl.diagnostics import SpdslError
from spdsl.solution import Status
from spdsl.solvers.dispatch import BACKENDS, all_choices, get
from spdsl.solvers.iht.graph import grid
from tests.solvers.iht.test_engine import planted

GRAPHS = ("graph_iht", "graph_sto_iht", "graph_svrg_iht", "graph_cosamp")
PLAIN = ("iht", "niht", "sto_iht", "cosamp")


def edges(side: int) -> nx.Graph:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side), ordering="sorted")


def text(
    loss: str = "(X @ w - y)^2 / (2*m)",
    set_: str = "connected(G, size = 8)",
    more: str = "",
    variables: str = "  w : vector(p)",
    labels: bool = False,
    regularizer: str = "",
) -> str:
    graph = "  G : graph(p)\n" if "G" in set_ else ""
    target = "  y : labels(m)\n" if labels else "  y : vector(m)\n"
    extra = f"  regularizer  {regularizer}\n" if regularizer else ""
    return (
        f"data\n  X : matrix(m, p)\n{target}{graph}\nvariable\n{variables}\n\nminimize\n  loss  {loss}\n{extra}{more}\n"
        f"subject to\n  support(w) in {set_}\n"
    )


@pytest.mark.parametrize("name", GRAPHS + PLAIN)
def test_every_back_end_recovers_a_planted_signal(name: str) -> None:
    X, y, w = planted(0, 12, 8, 100)
    if name in GRAPHS:
        answer = spdsl.parse(text()).solve(X=X, y=y, G=edges(12), backend=name)
        assert set(answer["support"].tolist()) == set(np.flatnonzero(w).tolist())
        assert answer["components"] == 1.0
        sub = edges(12).subgraph(answer["support"].tolist())
        assert {tuple(e) for e in answer["subgraph_edges"].tolist()} == {tuple(sorted(e)) for e in sub.edges}
        assert answer["forest_cost"] == 7.0
    else:
        answer = spdsl.parse(text(set_="sparse(8)")).solve(X=X, y=y, backend=name)
    assert answer["w"] == pytest.approx(w, abs=1e-6)
    assert answer.status is Status.SOLVED
    assert answer.backend == name
    assert len(answer.history) >= 1
    assert answer.statistics["support"] == 8


MODELS = {
    "logistic with ridge and intercept": {
        "loss": "logistic(y * (X @ w + b)) / m",
        "labels": True,
        "variables": "  w : vector(p)\n  b : scalar",
        "regularizer": "0.01 * sum_squares(w)",
    },
    "huber": {"loss": "huber(X @ w - y, 0.5) / m"},
    "poisson": {"loss": "(exp(X @ w) - y * (X @ w)) / m", "regularizer": "0.01 * sum_squares(w)"},
    "quartic of the user": {"loss": "((X @ w - y)^4 + (X @ w - y)^2) / m"},
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("backend", GRAPHS)
def test_any_smooth_loss_ends_at_the_optimum_on_an_admissible_support(name: str, backend: str) -> None:
    X, y, _ = planted(1, 8, 6, 80, noise=0.1)
    X = X * np.sqrt(80) / 3
    if "labels" in MODELS[name]:
        y = np.where(y > 0, 1.0, -1.0)
    if name == "poisson":
        y = np.random.default_rng(0).poisson(np.exp(np.clip(y, -2, 2))).astype(float)
    model = spdsl.parse(text(set_="connected(G, size = 6)", **MODELS[name]))
    answer = model.solve(X=X, y=y, G=edges(8), backend=backend)
    assert answer.status is Status.SOLVED
    assert np.count_nonzero(answer["w"]) <= 6
    assert nx.number_connected_components(edges(8).subgraph(answer["support"].tolist())) == 1
    certificate = model.check(answer)
    assert certificate.ok, certificate


def test_a_self_paced_graph_sparse_model_is_solved_at_its_age() -> None:
    X, y, w = planted(2, 10, 6, 120)
    y[:10] += 5.0  # wrong samples, which a self-paced model leaves out
    source = text(
        loss="(X @ w - y)^2 / 2",
        set_="connected(G, size = 6)",
        more="  self_paced   linear(lambda)\n",
    ).replace("minimize", "age lambda = 1\n\nminimize")
    model = spdsl.parse(source)
    answer = model.solve(X=X, y=y, G=edges(10), backend="graph_sto_iht")
    assert answer["w"] == pytest.approx(w, abs=1e-4)
    assert answer.weights[:10].max() == 0.0
    assert model.check(answer).ok


def test_dense_and_sparse_designs_give_the_same_answer() -> None:
    X, y, _ = planted(3, 10, 6, 60, noise=0.1)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    model = spdsl.parse(text(set_="connected(G, size = 6)"))
    dense = model.solve(X=X, y=y, G=edges(10))
    csr = model.solve(X=sparse.csr_array(X), y=y, G=edges(10))
    assert np.array_equal(dense["support"], csr["support"])
    assert dense["w"] == pytest.approx(csr["w"], abs=1e-10)


def test_groups_are_kept_whole() -> None:
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(10), 4).astype(float)
    w = np.zeros(40)
    w[8:12], w[20:24] = rng.normal(size=4), rng.normal(size=4)
    X = rng.normal(size=(30, 40))
    source = text(set_="groups(g, count = 2)").replace("\nvariable", "  g : vector(p)\n\nvariable")
    for backend in PLAIN:
        answer = spdsl.parse(source).solve(X=X, y=X @ w, g=labels, backend=backend)
        assert answer["w"] == pytest.approx(w, abs=1e-6)


@pytest.mark.parametrize("backend", PLAIN)
@pytest.mark.parametrize("as_csr", [False, True])
def test_a_union_of_given_supports_is_found_and_certified(backend: str, as_csr: bool) -> None:
    rng = np.random.default_rng(4)
    S = np.zeros((12, 40))
    for row in S:
        row[rng.choice(40, 5, replace=False)] = 1.0
    inside = np.flatnonzero(S[3] + S[7])
    w = np.zeros(40)
    w[inside] = rng.normal(size=inside.size)
    X = rng.normal(size=(60, 40))
    source = text(set_="union_of(S, count = 2)").replace("\nvariable", "  S : matrix(k, p)\n\nvariable")
    model = spdsl.parse(source)
    answer = model.solve(X=X, y=X @ w, S=sparse.csr_array(S) if as_csr else S, backend=backend)
    assert answer["w"] == pytest.approx(w, abs=1e-6)
    assert model.check(answer).ok
    # An entry of a third support: the union of any two no longer holds all.
    outside = np.array(answer.x)
    outside[np.setdiff1d(np.arange(40), inside)[0]] = 1e-3
    assert any("union of 2" in reason for reason in model.check(replace(answer, x=outside)).rows[0].failures)


def test_several_components_and_a_budget_are_kept() -> None:
    X, y, _ = planted(5, 10, 8, 60, noise=0.3)
    costly = nx.Graph()
    costly.add_weighted_edges_from([(u, v, 1.0 + (u + v) % 3) for u, v in edges(10).edges], weight="cost")
    model = spdsl.parse(text(set_="connected(G, size = 8, components = 2, budget = 9)"))
    answer = model.solve(X=X, y=y, G=costly, starts=1, patience=8, pursuit=4)
    assert answer["components"] <= 2
    assert answer["forest_cost"] <= 9.0
    assert model.check(answer).ok


def test_the_paper_s_configuration_is_one_option_away_and_its_answer_is_in_the_set() -> None:
    X, y, w = planted(6, 10, 8, 80)
    answer = spdsl.parse(text()).solve(
        X=X * np.sqrt(80), y=y * np.sqrt(80), G=edges(10), configuration="paper", step=0.3, batch=16, epochs=200
    )
    assert answer.status is Status.SOLVED  # the published stop: the residual is nothing
    assert np.count_nonzero(answer["w"]) <= 8
    assert answer["components"] == 1.0
    assert np.linalg.norm(answer["w"] - w) < 1e-3


def test_blocks_are_a_batch_of_that_share_of_the_samples() -> None:
    X, y, _ = planted(6, 8, 6, 60, noise=0.2)
    model = spdsl.parse(text(set_="connected(G, size = 6)"))
    by_blocks = model.solve(X=X, y=y, G=edges(8), blocks=4)
    by_batch = model.solve(X=X, y=y, G=edges(8), batch=15)
    assert np.array_equal(by_blocks["w"], by_batch["w"])
    with pytest.raises(SpdslError, match="give one of them"):
        model.solve(X=X, y=y, G=edges(8), blocks=4, batch=15)


@pytest.mark.parametrize("set_", ["connected(G, size = 6)", "sparse(6)", "groups(2, count = 3)"])
def test_iterates_on_larger_supports_end_in_an_answer_of_the_asked_size(set_: str) -> None:
    X, y, _ = planted(6, 8, 6, 60, noise=0.2)
    model = spdsl.parse(text(set_=set_))
    answer = model.solve(X=X, y=y, tail=1.5, **({"G": edges(8)} if "G" in set_ else {}))
    assert np.count_nonzero(answer["w"]) <= 6
    assert model.check(answer).ok
    with pytest.raises(SpdslError, match="leave `tail` out"):
        model.solve(X=X, y=y, tail=1.1, configuration="paper", **({"G": edges(8)} if "G" in set_ else {}))


def test_the_tolerance_decides_what_is_solved() -> None:
    X, y, _ = planted(6, 8, 6, 60, noise=0.2)
    model = spdsl.parse(text(set_="connected(G, size = 6)"))
    with pytest.warns(spdsl.SpdslWarning, match="is reached to"):
        answer = model.solve(X=X, y=y, G=edges(8), tolerance=1e-300)
    assert answer.status is Status.STALLED
    assert model.solve(X=X, y=y, G=edges(8)).status is Status.SOLVED


def test_the_paper_s_stop_ends_a_run_that_fits() -> None:
    X, y, _ = planted(6, 10, 8, 80)
    answer = spdsl.parse(text()).solve(X=9 * X, y=9 * y, G=edges(10), configuration="paper", step=0.3, epochs=400)
    assert answer.statistics["epochs"] < 400
    assert answer.status is Status.SOLVED
    assert answer.objective <= 1e-14 * float(9 * y @ (9 * y)) / 160
    noisy = y + 0.1 * np.random.default_rng(0).normal(size=80)
    answer = spdsl.parse(text()).solve(X=9 * X, y=9 * noisy, G=edges(10), configuration="paper", step=0.3, epochs=20)
    assert answer.statistics["epochs"] == 20
    assert answer.status is Status.FINISHED


def test_the_same_seed_gives_the_same_bits() -> None:
    X, y, _ = planted(7, 10, 8, 50, noise=0.3)
    model = spdsl.parse(text())
    first, second = (model.solve(X=X, y=y, G=edges(10), seed=3) for _ in range(2))
    assert np.array_equal(first["w"], second["w"])


def test_a_perturbed_answer_fails_the_check() -> None:
    X, y, _ = planted(8, 8, 6, 60, noise=0.2)
    model = spdsl.parse(text(set_="connected(G, size = 6)"))
    answer = model.solve(X=X, y=y, G=edges(8))
    assert model.check(answer).ok
    moved = np.array(answer.x)
    moved[answer["support"][0]] += 0.1
    assert not model.check(replace(answer, x=moved)).ok
    outside = np.array(answer.x)
    outside[np.setdiff1d(np.arange(64), answer["support"])[:1]] = 1e-3
    assert not model.check(replace(answer, x=outside)).ok


@pytest.mark.parametrize(
    ("source", "backend", "words"),
    [
        (text(loss="abs(X @ w - y) / m"), "graph_iht", "kink at"),
        (text(set_="sparse(8)"), "graph_sto_iht", "does not know the set `sparse`; sto_iht does"),
        (text(), "iht", "does not know the set `connected`; graph_sto_iht does"),
        (text(regularizer="0.1 * norm1(w)"), "graph_iht", "an L1 norm can go"),
        (text() + "  w >= 0\n", "graph_iht", "takes no constraint"),
        (text().split("subject to")[0], "iht", "needs a set of supports"),
    ],
)
def test_what_a_back_end_can_not_solve_it_refuses_in_words(source: str, backend: str, words: str) -> None:
    model = spdsl.parse(source)
    assert any(words in reason for reason in get(backend).refuses(model.problem)), get(backend).refuses(model.problem)


def test_a_model_with_a_support_constraint_is_picked_up_without_being_asked() -> None:
    names = {choice.name for choice in all_choices(spdsl.parse(text()).problem) if not choice.refusals}
    assert names == set(GRAPHS)
    names = {choice.name for choice in all_choices(spdsl.parse(text(set_="sparse(3)")).problem) if not choice.refusals}
    assert names == set(PLAIN)
    assert set(GRAPHS + PLAIN) <= set(BACKENDS)


@pytest.mark.parametrize(
    ("set_", "words"),
    [
        ("connected(G, size = 101)", "the graph has 100"),
        ("connected(G, size = 3, components = 4)", "can't form 4 pieces"),
        ("sparse(101)", "has 100"),
        ("union_of(S, 4)", "3 are given"),
    ],
)
def test_sizes_that_no_support_has_are_refused_with_the_data(set_: str, words: str) -> None:
    X, y, _ = planted(9, 10, 8, 50)
    given = {"G": edges(10)} if "G" in set_ else {"S": np.eye(3, 100)} if "S" in set_ else {}
    source = text(set_=set_)
    if "S" in set_:
        source = source.replace("\nvariable", "  S : matrix(k, p)\n\nvariable")
    with pytest.raises(SpdslError, match=words):
        spdsl.parse(source).solve(X=X, y=y, **given)


def test_every_way_to_give_a_graph_gives_the_same_answer() -> None:
    X, y, _ = planted(10, 6, 5, 30, noise=0.1)
    G = edges(6)
    model = spdsl.parse(text(set_="connected(G, size = 5)"))
    ours = grid(6, 6)
    ways = [G, nx.to_scipy_sparse_array(G, dtype=float), ours.edges, (36, ours.edges, ours.costs), data_grid(6, 6)]
    answers = [model.solve(X=X, y=y, G=way)["w"] for way in ways]
    for other in answers[1:]:
        assert np.array_equal(answers[0], other)

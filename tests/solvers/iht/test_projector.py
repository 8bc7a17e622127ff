"""Projections: exact where promised, near the best elsewhere, always admissible, never fooled by bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.diagnostics import DataError, UsageError
from spdsl.solvers.iht.exact import connected_sets, exact_support
from spdsl.solvers.iht.graph import Graph, grid
from spdsl.solvers.iht.guaranteed import (
    HEAD_CONSTANT,
    TAIL_CONSTANT,
    head_nodes,
    size_targeted_nodes,
    steiner_forest,
    tail_nodes,
)
from spdsl.solvers.iht.projector import GraphProjector, head, project, size_targeted, tail
from spdsl.solvers.iht.search import marginal_prize
from tests.solvers.iht.truth import (
    admissible_sets,
    best_energy,
    forest_cost,
    pieces,
    random_graph,
    random_vector,
)

KINDS = ("plain", "sparse", "ties", "heavy")


@pytest.mark.parametrize(("height", "width", "s", "count"), [(2, 2, 2, 4), (3, 3, 3, 22), (6, 6, 1, 36)])
def test_connected_sets_are_counted_right(height: int, width: int, s: int, count: int) -> None:
    sets = connected_sets(grid(height, width), s)
    assert len(sets) == count
    assert len({tuple(row) for row in sets.tolist()}) == count


def test_every_connected_set_is_listed_once() -> None:
    rng = np.random.default_rng(9)
    for _ in range(15):
        graph = random_graph(rng, 9, 14)
        for s in range(1, 6):
            listed = [tuple(row) for row in connected_sets(graph, s).tolist()]
            assert sorted(listed) == sorted(admissible_sets(graph, s, 1))


def test_the_16_by_16_grid_has_455094_connected_sets_of_eight() -> None:
    assert len(connected_sets(grid(16, 16), 8)) == 455_094


@pytest.mark.parametrize("g", [1, 2])
def test_exact_effort_is_the_best_of_all_subsets(g: int) -> None:
    rng = np.random.default_rng(10)
    for trial in range(15):
        graph = random_graph(rng, 9, 16)
        s = int(rng.integers(g, 6))
        sets = admissible_sets(graph, s, g)
        if not sets:
            continue
        x = random_vector(rng, 9, KINDS[trial % 4])
        answer = project(x, graph, s, g, effort="exact")
        assert answer.energy == pytest.approx(best_energy(x * x, sets), rel=1e-12)


@pytest.mark.parametrize("side", [4, 5, 6])
def test_searches_are_admissible_and_near_the_best_on_small_grids(side: int) -> None:
    rng = np.random.default_rng(side)
    graph = grid(side, side)
    share = {"fast": [], "medium": [], "strong": []}
    for s in (3, 6, 9):
        sets = connected_sets(graph, s)
        for trial in range(6):
            x = random_vector(rng, side * side, KINDS[trial % 4])
            best = float((x * x)[sets].sum(axis=1).max())
            for effort, shares in share.items():
                answer = project(x, graph, s, effort=effort)
                assert answer.support.size == s
                assert pieces(graph, answer.support) == 1
                assert answer.energy <= best * (1 + 1e-12)
                assert answer.bound >= best * (1 - 1e-12)
                shares.append(answer.energy / best)
    assert np.mean(share["fast"]) >= 0.97
    assert np.mean(share["medium"]) >= 0.98
    assert np.mean(share["strong"]) >= 0.985
    assert min(share["strong"]) >= 0.9


def test_several_pieces_are_used_and_counted() -> None:
    rng = np.random.default_rng(12)
    graph = grid(4, 4)
    for g in (1, 2, 3):
        sets = admissible_sets(graph, 5, g)
        for trial in range(6):
            x = random_vector(rng, 16, KINDS[trial % 4])
            answer = project(x, graph, 5, g, effort="strong")
            assert answer.support.size == 5
            assert pieces(graph, answer.support) <= g
            best = best_energy(x * x, sets)
            assert 0.9 * best <= answer.energy <= best * (1 + 1e-12)
            assert answer.bound >= best * (1 - 1e-12)


def test_more_effort_and_more_pieces_never_lose_energy() -> None:
    rng = np.random.default_rng(13)
    graph = grid(20, 20)
    for _ in range(4):
        x = rng.normal(size=400)
        energies = [project(x, graph, 30, effort=effort).energy for effort in ("fast", "medium", "strong")]
        assert energies[0] <= energies[2]
        assert energies[1] <= energies[2] * (1 + 1e-12)


def test_trees_are_solved_exactly_at_any_size() -> None:
    rng = np.random.default_rng(14)
    links = [(int(rng.integers(0, i)), i) for i in range(1, 400)]
    graph = Graph.from_edges(links)
    x = rng.normal(size=400)
    exact = project(x, graph, 25, effort="exact")
    assert pieces(graph, exact.support) == 1
    for effort in ("fast", "medium", "strong"):
        assert project(x, graph, 25, effort=effort).energy <= exact.energy * (1 + 1e-12)
    small = Graph.from_edges(links[:11])
    assert project(x[:12], small, 5, effort="exact").energy == pytest.approx(
        best_energy(x[:12] ** 2, admissible_sets(small, 5, 1)), rel=1e-12
    )


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 40),
    density=st.floats(0.2, 3.0),
    kind=st.sampled_from(KINDS),
    exponent=st.sampled_from([-200, -100, 0, 100, 200]),
    effort=st.sampled_from(["fast", "medium", "strong"]),
)
def test_whatever_the_graph_the_answer_is_admissible_or_the_refusal_is_right(
    seed: int, p: int, density: float, kind: str, exponent: int, effort: str
) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, p, max(1, int(density * p)))
    s = int(rng.integers(1, p + 1))
    g = int(rng.integers(1, s + 1))
    g = min(g, 4)
    x = random_vector(rng, p, kind) * 10.0**exponent
    room = np.sort(graph.component_sizes)[::-1][:g].sum()
    if room < s:
        with pytest.raises(UsageError, match="pieces"):
            project(x, graph, s, g, effort=effort)
        return
    answer = project(x, graph, s, g, effort=effort)
    assert answer.support.size == np.unique(answer.support).size == s
    assert pieces(graph, answer.support) <= g
    assert answer.scaled_bound >= answer.scaled_energy
    assert 0.0 <= answer.share <= 1.0
    assert answer.scaled_energy <= np.sort(answer.prizes)[-s:].sum() * (1 + 1e-12)
    again = project(x, graph, s, g, effort=effort)
    assert np.array_equal(again.support, answer.support)


def test_the_scale_of_the_vector_changes_nothing_but_the_energy() -> None:
    x = np.random.default_rng(15).normal(size=100)
    graph = grid(10, 10)
    plain = project(x, graph, 12)
    for scale in (2.0**-600, 2.0**-300, 2.0**300, 2.0**600):
        other = project(scale * x, graph, 12)
        assert np.array_equal(other.support, plain.support)
        assert other.share == plain.share
        assert other.norm == pytest.approx(scale * plain.norm, rel=1e-12)


def test_a_zero_vector_gets_a_connected_support_of_the_asked_size() -> None:
    for g in (1, 2):
        answer = project(np.zeros(25), grid(5, 5), 7, g)
        assert answer.support.size == 7
        assert pieces(grid(5, 5), answer.support) <= g
        assert answer.energy == answer.bound == 0.0
        assert answer.share == 1.0


@pytest.mark.parametrize("kind", ["zero", "one entry", "equal", "scales apart", "subnormal"])
@pytest.mark.parametrize("g", [1, 3])
def test_odd_vectors_get_admissible_supports_from_scratch_and_near_the_last(kind: str, g: int) -> None:
    rng = np.random.default_rng(27)
    graph = grid(9, 9)
    vector = {
        "zero": np.zeros(81),
        "one entry": np.where(np.arange(81) == 40, -3.0, 0.0),
        "equal": np.ones(81),
        "scales apart": rng.choice([1e-200, 1.0, 1e200], 81),
        "subnormal": 5e-324 * rng.integers(0, 3, 81),
    }[kind]
    last = project(rng.normal(size=81), graph, 7, g).support
    projector = GraphProjector(graph, 7, g)
    for support in (projector(vector).support, projector.near(vector, last)):
        assert support.size == np.unique(support).size == 7
        assert pieces(graph, support) <= g
    assert np.argmax(np.abs(vector)) in projector(vector).support or kind != "one entry"


def test_isolated_nodes_and_small_components_are_passed_over() -> None:
    graph = Graph.from_edges([[0, 1], [1, 2], [2, 3], [5, 6]], p=9)
    x = np.array([1.0, 1, 1, 1, 100, 10, 10, 0, 100])
    assert project(x, graph, 3).support.tolist() in ([0, 1, 2], [1, 2, 3])
    assert project(x, graph, 1).support.tolist() in ([4], [8])
    assert project(x, graph, 4, 3).support.tolist() == [4, 5, 6, 8]


@pytest.mark.parametrize(
    ("size", "components", "words"),
    [
        (26, 1, "the graph has 25"),
        (3, 4, "can't form 4 pieces"),
        (0, 1, "at least 1"),
        (3, 0, "at least 1"),
    ],
)
def test_sizes_without_support_are_refused(size: int, components: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        project(np.ones(25), grid(5, 5), size, components)


def test_a_disconnected_graph_that_is_too_small_says_how_small() -> None:
    graph = Graph.from_edges([[0, 1], [2, 3], [3, 4]], p=6)
    with pytest.raises(UsageError, match="only 3 nodes"):
        project(np.ones(6), graph, 4)
    assert project(np.ones(6), graph, 5, 2).support.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_refused_with_its_entry(bad: float) -> None:
    x = np.ones(25)
    x[7] = bad
    with pytest.raises(DataError, match="entry 7"):
        project(x, grid(5, 5), 3)
    with pytest.raises(DataError, match="shape"):
        project(np.ones(24), grid(5, 5), 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.5])
def test_prizes_that_are_none_are_refused_with_their_node(bad: float) -> None:
    prizes = np.ones(25)
    prizes[7] = bad
    graph = grid(5, 5)
    for call in (head_nodes, tail_nodes):
        with pytest.raises(DataError, match="node 7"):
            call(graph, prizes, 3, 1)
    with pytest.raises(DataError, match="node 7"):
        size_targeted_nodes(graph, prizes, 3, 4, 1)
    with pytest.raises(DataError, match="node 7"):
        steiner_forest(graph, prizes, graph.costs, 1)
    with pytest.raises(DataError, match="shape"):
        steiner_forest(graph, np.ones(24), graph.costs, 1)


def test_a_sign_changes_nothing() -> None:
    x = np.random.default_rng(24).normal(size=64)
    assert np.array_equal(project(x, grid(8, 8), 9).support, project(-np.abs(x), grid(8, 8), 9).support)


@pytest.mark.parametrize("unit", [True, False])
def test_head_and_tail_keep_their_constants_on_random_graphs(unit: bool) -> None:
    rng = np.random.default_rng(16)
    for trial in range(25):
        graph = random_graph(rng, 9, 16, unit=unit)
        s, g = int(rng.integers(2, 6)), 1 + trial % 2
        budget = None if unit else float(rng.uniform(0.5, 6.0))
        limit = s - g if budget is None else budget
        x = random_vector(rng, 9, KINDS[trial % 4])
        prizes = (x / np.abs(x).max(initial=1e-300)) ** 2
        sets = [c for c in admissible_sets(graph, s, g, at_most=True) if forest_cost(graph, c) <= limit + 1e-12]
        best = best_energy(prizes, sets)
        missed = prizes.sum() - best
        rich, rest = head_nodes(graph, prizes, s, g, budget), tail_nodes(graph, prizes, s, g, budget)
        assert pieces(graph, rich) <= g if len(rich) else best == 0
        assert pieces(graph, rest) <= g if len(rest) else best == 0
        assert prizes[rich].sum() >= HEAD_CONSTANT**2 * best - 1e-12
        assert prizes.sum() - prizes[rest].sum() <= TAIL_CONSTANT**2 * missed + 1e-12
        if unit and np.sort(graph.component_sizes)[::-1][:g].sum() >= s:
            assert head(x, graph, s, g).scaled_energy >= max(prizes[rich].sum(), HEAD_CONSTANT**2 * best) - 1e-12
            own = tail(x, graph, s, g).scaled_energy
            assert prizes.sum() - own <= TAIL_CONSTANT**2 * missed + 1e-12


def test_head_and_tail_costs_stay_within_the_papers_bounds() -> None:
    rng = np.random.default_rng(17)
    graph = grid(8, 8)
    for _ in range(5):
        prizes = rng.normal(size=64) ** 2
        s, g = 10, 1
        costs, limit = 1.0 + (s - g) / s, 2.0 * (s - g)
        assert costs * (len(head_nodes(graph, prizes, s, g)) - 1) <= 2 * limit + 1e-9
        assert costs * (len(tail_nodes(graph, prizes, s, g)) - 1) <= 2.5 * limit + 1e-9


def test_the_size_targeted_variant_reports_the_size_that_it_reached() -> None:
    rng = np.random.default_rng(18)
    graph = grid(16, 16)
    for _ in range(5):
        answer = size_targeted(rng.normal(size=256), graph, 20, 22)
        assert answer.forests <= 50
        assert pieces(graph, answer.support) <= 1
        assert answer.support.size <= 22
    with pytest.raises(UsageError, match="no support"):
        size_targeted(np.ones(256), graph, 9, 3)


def test_a_budget_is_kept_and_only_binds_where_it_must() -> None:
    rng = np.random.default_rng(19)
    reached = []
    for trial in range(12):
        graph = random_graph(rng, 9, 18, unit=False)
        s = 4
        if graph.component_sizes.max() < s:
            continue
        x = random_vector(rng, 9, KINDS[trial % 4])
        prizes = x * x
        budget = float(rng.uniform(1.0, 6.0))
        answer = project(x, graph, s, budget=budget, effort="strong")
        assert answer.support.size <= s
        assert pieces(graph, answer.support) == 1
        assert forest_cost(graph, answer.support) <= budget * (1 + 1e-9)
        sets = [c for c in admissible_sets(graph, s, 1, at_most=True) if forest_cost(graph, c) <= budget]
        best = best_energy(prizes, sets)
        assert answer.energy <= best * (1 + 1e-12)
        reached.append(answer.energy / best if best else 1.0)
        assert project(x, graph, s, budget=1e9).energy == project(x, graph, s).energy
    assert np.mean(reached) > 0.85


def test_warm_projections_are_admissible_and_forget_nothing_good() -> None:
    rng = np.random.default_rng(20)
    graph = grid(20, 20)
    truth = np.zeros(400)
    truth[project(rng.normal(size=400), graph, 25).support] = 1.0
    projector = GraphProjector(graph, 25, effort="fast")
    support = projector(truth + 0.3 * rng.normal(size=400)).support
    for _ in range(25):
        x = truth + 0.3 * rng.normal(size=400)
        support = projector.near(x, support)
        assert support.size == 25
        assert pieces(graph, support) == 1
        assert (x * x)[support].sum() >= 0.95 * (x * x)[truth > 0].sum()


@pytest.mark.parametrize("g", [1, 3])
def test_a_warm_projection_never_captures_less_than_its_last_support_does(g: int) -> None:
    rng = np.random.default_rng(21)
    # Components of fewer than 20 nodes are left out for one piece: node numbers must survive that.
    graph = Graph.from_edges(np.concatenate([[[0, 1], [1, 2]], 3 + grid(15, 15).edges]))
    projector = GraphProjector(graph, 20, g, effort="fast")
    last = projector(rng.normal(size=228)).support
    for _ in range(10):
        x = rng.normal(size=228)
        support = projector.near(x, last)
        assert support.size == 20
        assert pieces(graph, support) <= g
        assert (x * x)[support].sum() >= (x * x)[last].sum() * (1 - 1e-12)
        last = support


def test_the_one_kernel_of_the_loop_gives_what_its_parts_give() -> None:
    rng = np.random.default_rng(25)
    for trial in range(6):
        graph = grid(14, 17) if trial % 2 else random_graph(rng, 60, 600)
        search = GraphProjector(graph, 15)._over(15, 1)
        last = project(rng.normal(size=graph.p), graph, 15).support.astype(np.int32)
        prizes = random_vector(rng, graph.p, KINDS[trial % 4]) ** 2
        lam = marginal_prize(prizes, 15)
        parts = search.around(prizes, last, lam, search.ball, 0.0, 0, 0.0)
        whole = search.near_once(prizes, last, lam)
        assert np.array_equal(parts.support, whole.support)
        assert np.array_equal(parts.curve, whole.curve)


def test_exact_refuses_what_it_can_not_list() -> None:
    with pytest.raises(UsageError, match="strong"):
        project(np.ones(2500), grid(50, 50), 40, effort="exact")
    with pytest.raises(UsageError, match="effort can't be"):
        project(np.ones(25), grid(5, 5), 4, effort="heroic")  # type: ignore[arg-type]


def test_a_million_nodes_are_projected_with_the_size_right() -> None:
    rng = np.random.default_rng(22)
    graph = grid(1000, 1000)
    x = rng.normal(size=graph.p)
    answer = project(x, graph, 300, effort="fast")
    assert answer.support.size == 300
    assert len(graph.components_of(answer.support)) == 1
    # More than a ball of as many nodes around the largest entry catches.
    r, c = np.abs(np.indices((1000, 1000)) - np.array(divmod(int(np.argmax(np.abs(x))), 1000))[:, None, None])
    ball = np.argsort((r + c).ravel(), kind="stable")[:300]
    assert answer.energy > 2.0 * (x[ball] ** 2).sum()


def test_a_long_path_takes_memory_that_does_not_grow_with_its_length_times_s() -> None:
    n, s = 200_000, 400
    graph = Graph.from_edges(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))
    x = np.random.default_rng(23).normal(size=n)
    answer = exact_support(graph, x * x, s, 1)
    windows = np.convolve(x * x, np.ones(s), "valid")
    assert (x * x)[answer].sum() == pytest.approx(windows.max(), rel=1e-12)

"""The methods: recovery, brute force over all connected supports, descent, repeatability, what happens at the edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spdsl.solvers.iht.engine import Settings, begin, best_point, epoch, merged_pursuit, run
from spdsl.solvers.iht.exact import connected_sets
from spdsl.solvers.iht.graph import grid
from spdsl.solvers.iht.objective import least_squares, logistic
from spdsl.solvers.iht.restricted import closer_point, restricted_optimum
from spdsl.solvers.iht.support_sets import ConnectedSet, PublishedConnectedSet, SparseSet

ALL = {
    "iht": Settings("iht"),
    "niht": Settings("niht"),
    "sto_iht": Settings("sto_iht", step=2.0),
    "svrg_iht": Settings("svrg_iht", step=2.0),
    "cosamp": Settings("cosamp", patience=8),
}


def planted(seed: int, side: int, s: int, n: int, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X of N(0, 1) / sqrt(n), y = X w + noise, w of N(0, 1) on a random walk from the middle, as published."""
    rng = np.random.default_rng(seed)
    graph = grid(side, side)
    node = side * (side // 2) + side // 2
    chosen = {node}
    while len(chosen) < s:
        node = int(rng.choice(graph.neighbours[graph.indptr[node] : graph.indptr[node + 1]]))
        chosen.add(node)
    w = np.zeros(side * side)
    w[sorted(chosen)] = rng.normal(size=s)
    X = rng.normal(size=(n, side * side)) / np.sqrt(n)
    return X, X @ w + noise * rng.normal(size=n), w


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("kind", ["sparse", "connected"])
def test_every_method_recovers_easy_signals(method: str, kind: str) -> None:
    X, y, w = planted(0, 12, 8, 100)
    supports = SparseSet(144, 8) if kind == "sparse" else ConnectedSet(grid(12, 12), 8)
    answer = run(least_squares(X, y), supports, ALL[method], 300)
    assert np.linalg.norm(best_point(answer)[0] - w) <= 1e-6
    assert answer.fixed
    assert np.array_equal(answer.support, np.flatnonzero(w))


@pytest.mark.parametrize("side", [4, 5])
def test_connected_least_squares_reaches_the_best_of_all_connected_supports(side: int) -> None:
    graph = grid(side, side)
    s = 5
    sets = connected_sets(graph, s)
    reached = dict.fromkeys(ALL, 0)
    trials = 10
    for seed in range(trials):
        X, y, _ = planted(seed, side, s, 3 * side * side // 2, noise=0.05)
        objective = least_squares(X, y)
        best = min(float(np.linalg.lstsq(X[:, list(nodes)], y, rcond=None)[1][0]) / 2 for nodes in sets.tolist())
        for method, settings in ALL.items():
            answer = run(objective, ConnectedSet(graph, s, effort="exact"), settings, 200)
            x, support = best_point(answer)
            value = objective.value(restricted_optimum(objective, x, support), support)
            assert value >= best * (1 - 1e-9)
            reached[method] += value <= best * (1 + 1e-9)
    assert reached["sto_iht"] >= trials - 2, reached
    assert min(reached.values()) >= trials // 3, reached


def test_full_gradient_steps_below_the_limit_never_raise_the_objective() -> None:
    X, y, _ = planted(3, 10, 8, 60, noise=0.1)
    objective = least_squares(X, y)
    supports = SparseSet(100, 8)
    L = float(np.linalg.eigvalsh(X.T @ X)[-1])
    at = begin(objective)
    settings = Settings("iht", step=0.99 / L, rule="constant", fixed_point=0, patience=0)
    for _ in range(40):
        after = epoch(objective, supports, settings, at)
        assert after.objective <= at.objective * (1 + 1e-12)
        at = after


@pytest.mark.parametrize("rule", ["smoothness", "backtracking", "normalized"])
def test_every_rule_of_steps_recovers(rule: str) -> None:
    X, y, w = planted(4, 12, 8, 100)
    step = 4.0 if rule == "backtracking" else 1.0
    for method in ("iht", "sto_iht"):
        answer = run(least_squares(X, y), ConnectedSet(grid(12, 12), 8), Settings(method, step, rule), 300)
        assert np.linalg.norm(best_point(answer)[0] - w) <= 1e-6


def test_the_scale_of_the_data_changes_nothing() -> None:
    X, y, w = planted(5, 12, 8, 100)
    for scale in (1e-6, 1e6):
        answer = run(least_squares(scale * X, y), ConnectedSet(grid(12, 12), 8), ALL["sto_iht"], 300)
        assert np.linalg.norm(scale * answer.x - w) <= 1e-6


@pytest.mark.parametrize("method", ALL)
def test_the_same_seed_gives_the_same_bits_and_an_iterate_can_be_gone_on_from(method: str) -> None:
    X, y, _ = planted(6, 10, 8, 50, noise=0.3)
    objective = least_squares(X, y)

    def fresh() -> ConnectedSet:
        return ConnectedSet(grid(10, 10), 8)

    whole = run(objective, fresh(), ALL[method], 20)
    again = run(objective, fresh(), ALL[method], 20)
    assert np.array_equal(whole.x, again.x)
    at = begin(objective)
    while at.epochs < 20 and not at.fixed:
        at = epoch(objective, fresh(), ALL[method], at)
    assert np.array_equal(at.x, whole.x)
    if method == "sto_iht":
        other = run(objective, fresh(), replace(ALL[method], seed=1, fixed_point=0, patience=0), 20)
        assert not np.array_equal(other.x, whole.x)


def test_a_step_far_too_long_is_cut_until_it_works() -> None:
    X, y, w = planted(7, 12, 8, 100)
    answer = run(least_squares(X, y), ConnectedSet(grid(12, 12), 8), Settings("sto_iht", 100.0), 400)
    assert np.linalg.norm(best_point(answer)[0] - w) <= 1e-6
    assert answer.scale < 0.1


def test_the_published_limit_ends_a_run_as_diverged() -> None:
    X, y, _ = planted(8, 12, 8, 100)
    settings = Settings("iht", 50.0, "constant", limit=1e3, fixed_point=0, patience=0)
    answer = run(least_squares(X, y), SparseSet(144, 8), settings, 50)
    assert answer.diverged
    assert np.isfinite(answer.x).all()


def test_the_paper_s_configuration_recovers_too() -> None:
    X, y, w = planted(9, 12, 8, 120)
    settings = Settings("sto_iht", 0.5, "constant", 24, head=1.0, restart=1, fixed_point=0, patience=0, residual=1e-15)
    answer = run(least_squares(X, y, scale=1.0), PublishedConnectedSet(grid(12, 12), 8), settings, 300)
    assert np.linalg.norm(answer.x - w) <= 1e-6


def test_logistic_regression_finds_the_connected_support() -> None:
    rng = np.random.default_rng(10)
    X, _, w = planted(10, 10, 6, 600)
    X *= np.sqrt(600)
    w = np.where(w != 0, 2.0, 0.0)
    y = np.where(rng.random(600) < 1 / (1 + np.exp(-(X @ w + 0.5))), 1.0, -1.0)
    objective = logistic(X, y, weights="balanced", l2=1e-3)
    for method, settings in ALL.items():
        answer = run(objective, ConnectedSet(grid(10, 10), 6), settings, 200)
        x, support = best_point(answer)
        assert np.array_equal(support, np.flatnonzero(w)), method
        assert x[-1] != 0.0, method


@pytest.mark.parametrize("make", [least_squares, logistic])
def test_a_pursuit_never_raises_the_objective_and_repeated_reaches_the_optimum(make) -> None:
    X, y, w = planted(12, 8, 10, 60, noise=0.1)
    objective = make(X, y if make is least_squares else np.where(y > 0, 1.0, -1.0), l2=0.01)
    active = objective.active(np.flatnonzero(w))
    best = objective.value(restricted_optimum(objective, np.zeros(objective.dimension), active), active)
    rng = np.random.default_rng(0)
    for steps in (1, 3, 40):
        x = np.zeros(objective.dimension)
        x[active] = rng.normal(size=active.size)
        for _ in range(8):
            before = objective.value(x, active)
            x = closer_point(objective, x, active, steps)
            assert objective.value(x, active) <= before * (1 + 1e-12)
            assert np.flatnonzero(x).tolist() == sorted(active.tolist())
        assert objective.value(x, active) >= best * (1 - 1e-9)
    assert objective.value(x, active) == pytest.approx(best, rel=1e-9)


def test_cosamp_keeps_its_least_squares_overdetermined_where_samples_are_few() -> None:
    graph = grid(16, 16)
    square = np.zeros((16, 16), dtype=bool)
    square[5:9, 6:10] = True
    found = {0.9: 0, np.inf: 0}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        w = np.where(square.ravel(), rng.normal(size=256), 0.0)
        X = rng.normal(size=(42, 256)) / np.sqrt(42)
        for merged in found:
            answer = run(
                least_squares(X, X @ w),
                ConnectedSet(graph, 16),
                Settings("cosamp", patience=30, merged=merged),
                200,
            )
            found[merged] += bool(np.linalg.norm(best_point(answer)[0] - w) <= 1e-6)
    assert found[0.9] >= found[np.inf] + 3, found


@pytest.mark.parametrize("pursuit", [0, 3, 10])
def test_every_pace_of_pursuit_recovers(pursuit: int) -> None:
    X, y, w = planted(13, 14, 12, 90)
    answer = run(
        least_squares(X, y), ConnectedSet(grid(14, 14), 12), Settings("sto_iht", 2.0, seed=1, pursuit=pursuit), 400
    )
    assert answer.fixed
    assert best_point(answer)[0] == pytest.approx(w, abs=1e-6)


def test_a_merged_pursuit_finds_the_small_entries_that_a_support_lacks() -> None:
    graph = grid(14, 14)
    for seed in range(8):
        X, y, w = planted(40 + seed, 14, 12, 45)
        objective = least_squares(X, y)
        support = np.flatnonzero(w)
        leaves = [k for k in support if len(graph.components_of(np.setdiff1d(support, [k]))) == 1]
        lost = min(leaves, key=lambda k: abs(w[k]))
        inside = np.setdiff1d(support, [lost])
        around = np.setdiff1d(
            np.concatenate([graph.neighbours[graph.indptr[k] : graph.indptr[k + 1]] for k in inside]), support
        )
        wrong = np.sort(np.append(inside, np.random.default_rng(seed).choice(around)))
        x = restricted_optimum(objective, np.zeros(196), wrong)
        at = replace(begin(objective), x=x, support=wrong, objective=objective.value(x, wrong))
        better = merged_pursuit(objective, ConnectedSet(graph, 12), ALL["sto_iht"], at)
        assert np.array_equal(better.support, support)
        assert better.x == pytest.approx(w, abs=1e-9)


@pytest.mark.parametrize("make", [least_squares, logistic])
def test_a_merged_pursuit_never_raises_the_objective_nor_leaves_the_set(make) -> None:
    graph = grid(8, 8)
    for seed, n in ((0, 12), (1, 30), (2, 90)):
        X, y, _ = planted(60 + seed, 8, 6, n, noise=0.3)
        objective = make(X, y if make is least_squares else np.where(y > 0, 1.0, -1.0), l2=0.01)
        supports = ConnectedSet(graph, 6)
        at = epoch(objective, supports, ALL["sto_iht"], begin(objective))
        better = merged_pursuit(objective, supports, ALL["sto_iht"], at)
        assert better.objective <= at.objective
        assert better.objective == pytest.approx(objective.value(better.x, objective.active(better.support)))
        assert better.support.size == 6
        assert len(graph.components_of(better.support)) == 1


def test_a_zero_target_gives_zero_and_stops() -> None:
    X, _, _ = planted(11, 8, 5, 40)
    for settings in ALL.values():
        answer = run(least_squares(X, np.zeros(40)), ConnectedSet(grid(8, 8), 5), settings, 60)
        assert not answer.x.any()
        assert answer.fixed


def test_more_starts_find_what_one_misses_and_never_end_worse() -> None:
    found = {1: 0, 6: 0}
    for seed in range(6):
        X, y, w = planted(100 + seed, 16, 16, 38)
        values = {}
        for starts in found:
            settings = Settings("sto_iht", 2.0, seed=seed, starts=starts)
            answer = run(least_squares(X, y), ConnectedSet(grid(16, 16), 16), settings, 700)
            x, support = best_point(answer)
            values[starts] = least_squares(X, y).value(x, support)
            found[starts] += bool(np.linalg.norm(x - w) <= 1e-6)
        assert values[6] <= values[1] * (1 + 1e-9) + 1e-25
    assert found[6] >= found[1] + 1, found


def test_two_starts_that_agree_end_a_run_on_noisy_data() -> None:
    X, y, _ = planted(9, 8, 4, 80, noise=0.2)
    objective = least_squares(X, y)
    settings = Settings("sto_iht", 2.0, starts=50, patience=10)
    answer = run(objective, ConnectedSet(grid(8, 8), 4), settings, 10_000)
    assert answer.fixed
    assert 1 <= answer.start < 10
    active = objective.active(answer.support)
    assert answer.objective == pytest.approx(objective.value(restricted_optimum(objective, answer.x, active), active))


def test_normalized_steps_stop_only_where_their_own_length_leads_nowhere() -> None:
    # Steps of a line search are longer than 1 / L: a stop at fixed points of 1 / L lost most of these signals.
    found = 0
    for seed in range(6):
        rng = np.random.default_rng([115, seed])
        w = np.zeros((30, 30))
        w[12:17, 12:17] = rng.standard_normal((5, 5))
        X = rng.standard_normal((115, 900)) / np.sqrt(115)
        answer = run(least_squares(X, X @ w.ravel()), SparseSet(900, 25), Settings("niht", patience=200), 300)
        found += bool(np.linalg.norm(best_point(answer)[0] - w.ravel()) <= 1e-6)
    assert found >= 3

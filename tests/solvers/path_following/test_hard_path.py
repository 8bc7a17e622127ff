"""Paths of weights that are steps of the loss (hard): held against alternate search done by brute force, jump by jump."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from brute_force import elastic_net
from mixtures import REGULARIZERS, bound_problem, convex_optimum, convex_value
from problems import SELF_PACED, Weights, classification, make, regression

import spdsl
from spdsl.reference.program import optimum
from spdsl.reference.stationarity import kkt_residual
from spdsl.solvers.active_set.build import build
from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing, compiled_jumps
from spdsl.solvers.path_following.backend import PathOptions
from spdsl.solvers.path_following.steps import StepTracker, has_steps


def solve(bound, **options):
    return run(PathFollowing(), bound, PathOptions(**options))


def jumps_by_brute_force(X, y, w, lower, upper, l1, l2):
    """(age, set, w) of every jump of squared losses r^2 / 2n, by whole rounds of alternate search and coordinate descent."""
    n = len(y)
    losses = (X @ w - y) ** 2 / (2 * n)
    inside, found, age = losses < lower, [], lower
    while True:
        outside = losses[~inside]
        if outside.size == 0 or outside.min() > upper:
            return found
        age = max(age, outside.min())
        beyond = age * (1 + 1e-11)
        while True:
            now = losses <= beyond
            if np.array_equal(now, inside):
                break
            inside = now
            w = elastic_net(X[inside].T @ X[inside] / n, X[inside].T @ y[inside] / n, w, l1, l2)
            losses = (X @ w - y) ** 2 / (2 * n)
        found.append((age, set(np.flatnonzero(inside).tolist()), w))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("l1", "l2"), [(0.02, 0.0), (0.0, 0.05), (0.05, 0.01)])
def test_every_jump_is_that_of_alternate_search_by_coordinate_descent(seed, l1, l2):
    X, y = regression(50, 4, seed)
    bound = make(X, y, l1=l1, l2=l2, self_paced="hard", age=("quantiles", 0.3, 1.0))
    path = solve(bound)
    assert path.status.name == "EXACT"
    assert path.kkt_residuals.max() <= 1e-12
    expected = jumps_by_brute_force(X, y, path.nodes[0], *path.age_range, l1, l2)
    assert len(expected) > 10
    assert [point.age for point in path.critical_points] == pytest.approx([age for age, _, _ in expected], rel=1e-10)
    for age, inside, w in expected:
        solution = path(age * (1 + 1e-11))
        assert set(np.flatnonzero(solution.weights).tolist()) == inside
        assert np.abs(solution["w"] - w).max() < 1e-10


@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [
        ("hinge", "ridge and intercept"),
        ("hinge", "lasso"),
        ("logistic", "elastic net"),
        ("huber", "lasso"),
        ("quantile", "ridge"),
        ("epsilon", "fused"),
        ("squared_hinge", "non-negative lasso"),
    ],
)
def test_every_set_is_the_fixed_point_of_rounds_by_cvxpy_from_the_point_before_the_jump(loss, regularizer):
    bound = bound_problem(loss, regularizer, "hard", seed=5, n=20)
    path = solve(bound)
    assert path.status.name == "EXACT", path.message
    jumps = path.jumps
    assert jumps
    for jump in jumps[:: max(len(jumps) // 4, 1)]:
        k = int(np.searchsorted(path.ages, jump.age, side="right")) - 1
        assert path.ages[k - 1] == path.ages[k]
        here = bound.losses(path.nodes[k]) <= jump.age * (1 + 1e-9)
        inside = bound.losses(path.nodes[k - 1]) <= jump.age * (1 + 1e-9)
        for _ in range(20):
            _, x = optimum(bound, inside.astype(float))
            now = bound.losses(x) <= jump.age * (1 + 1e-7)
            if np.array_equal(now, inside):
                break
            inside = now
        assert np.array_equal(inside, here)
        v = here.astype(float)
        best = convex_optimum(bound, v)
        assert convex_value(bound, path.nodes[k], v) <= best + 1e-7 * max(1.0, abs(best))


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
@pytest.mark.parametrize("regularizer", sorted(REGULARIZERS))
def test_tied_rows_and_values_give_a_right_path(loss, regularizer):
    bound = bound_problem(loss, regularizer, "hard", seed=2, n=30, rounded=True)
    path = solve(bound)
    assert path.status.name == "EXACT", path.message
    for age in np.random.default_rng(0).uniform(*path.age_range, 6):
        solution = path(age)
        assert solution.kkt_residual <= 1e-10
        assert kkt_residual(bound, solution.x, solution.weights) <= 1e-9


def test_data_of_few_values_where_more_terms_touch_than_can_be_held():
    bound = bound_problem("quantile", "lasso", "hard", seed=3431, n=28, rounded=True)
    path = solve(bound)
    for age in np.random.default_rng(3431).uniform(*path.age_range, 8):
        solution = path(age)
        assert solution.kkt_residual <= 1e-10
        assert kkt_residual(bound, solution.x, solution.weights) <= 1e-9


def test_most_weights_are_moved_with_the_solution_exact_all_the_way():
    X, y = regression(200, 6, 0)
    path = solve(make(X, y, l1=0.02, self_paced="hard", age=("quantiles", 0.3, 1.0)))
    assert path.statistics["pushes"] >= len(path.critical_points) > 100
    assert path.statistics["solved_anew"] <= 2


def test_all_samples_whose_loss_is_a_jumps_age_are_named_and_come_in_together():
    X, y = regression(30, 4, 1)
    bound = make(np.vstack([X, X]), np.r_[y, y], l1=0.02, self_paced="hard", age=("quantiles", 0.3, 1.0))
    path = solve(bound)
    assert len(path.jumps) >= 3
    for jump in path.jumps:
        k = int(np.searchsorted(path.ages, jump.age, side="right")) - 1
        losses = bound.losses(path.nodes[k - 1])
        assert set(np.flatnonzero(np.abs(losses - jump.age) <= 1e-12 * jump.age).tolist()) == set(jump.samples)
        assert {i % 30 for i in jump.samples} == {i for i in jump.samples if i < 30}
        assert "D -> E" in jump.cause


SQUARED_AGE = Weights(  # f = -age^2 v: samples are in while l < age^2
    SELF_PACED["hard"].weights, SELF_PACED["hard"].dlosses, SELF_PACED["hard"].dages,
    [lambda a: a * a], lambda v, a: -a * a * v, ("E", "D"), continuous=False,
)  # fmt: skip


def test_a_border_that_is_not_the_age_itself_is_met_exactly():
    X, y = regression(50, 4, 3)
    hard = make(X, y, l1=0.02, self_paced="hard", age=("quantiles", 0.3, 1.0))
    first = solve(hard)
    self_paced = replace(hard.problem.self_paced, kernel=SQUARED_AGE)
    lower, upper = (float(np.sqrt(age)) for age in first.age_range)
    squared = make(X, y, l1=0.02, self_paced="hard", age=(lower, upper))
    second = solve(replace(squared, problem=replace(squared.problem, self_paced=self_paced)))
    assert [point.age**2 for point in second.jumps] == pytest.approx([point.age for point in first.jumps], rel=1e-14)


def test_a_tracker_goes_on_from_any_of_its_steps():
    X, y = regression(40, 3, 0)
    bound = make(X, y, l1=0.02, self_paced="hard", age=(0.002, 0.2))
    system = build(bound)
    assert has_steps(system)
    from spdsl.solvers.alternate_search.search import search

    tracker = StepTracker(system)
    steps = [tracker.start(search(system, 0.002, np.zeros(3)).minimum, 0.1)]
    for _ in range(6):
        steps.append(tracker.advance(steps[-1], 0.2))
    again = tracker.advance(steps[2], 0.2)
    assert again.age == steps[3].age
    assert np.abs(again.point.x - steps[3].point.x).max() < 1e-13


@pytest.mark.filterwarnings("ignore::spdsl.diagnostics.SpdslWarning")
def test_a_model_of_the_language_is_held_against_cvx_at_its_jumps():
    X, y = classification(30, 3, 4)
    model = spdsl.parse(
        """data
          X : matrix(n, d)
          y : labels(n)
        variable
          w : vector(d)
        age lambda in quantiles(0.3, 1)
        minimize
          loss         logistic(y * (X @ w)) / n
          regularizer  0.05 * sum_squares(w)
          self_paced   hard(lambda)
        """
    )
    path = model.solve(X=X, y=y)
    assert path.backend == "path_following"
    assert path.jumps
    certificate = model.check(path)
    assert certificate.ok, str(certificate)


@pytest.mark.parametrize(("l1", "l2", "nonnegative"), [(0.02, 0.0, False), (0.0, 0.05, False), (0.02, 0.01, True)])
@pytest.mark.parametrize("rounded", [False, True])
def test_compiled_jumps_are_those_done_weight_by_weight(l1, l2, nonnegative, rounded, monkeypatch):
    X, y = regression(120, 6, 5)
    if rounded:
        X, y = np.round(2 * X) / 2, np.round(y)
    bound = make(X, y, l1=l1, l2=l2, nonnegative=nonnegative, self_paced="hard", age=("quantiles", 0.3, 1.0))
    by_moves = solve(bound)
    monkeypatch.setattr(compiled_jumps, "_WORTH", 0)
    by_loops = solve(bound)
    assert by_loops.status.name == "EXACT"
    assert by_loops.kkt_residuals.max() <= 1e-12
    assert len(by_loops.ages) == len(by_moves.ages)
    assert by_loops.ages == pytest.approx(by_moves.ages, rel=1e-11)
    assert np.abs(by_loops.nodes - by_moves.nodes).max() < 1e-10
    assert by_loops.statistics["pushes"] >= len(by_loops.critical_points)

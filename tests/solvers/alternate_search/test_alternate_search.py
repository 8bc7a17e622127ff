"""Alternate convex search: monotone, exact at its end, and the same models that scikit-learn solves where weights are 1."""

from __future__ import annotations

import numpy as np
import pytest
from problems import classification, make, regression
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression, QuantileRegressor, Ridge

from spdsl.diagnostics import SolverError
from spdsl.reference.stationarity import kkt_residual
from spdsl.solution import Status
from spdsl.solvers.alternate_search import AlternateSearch, Original
from spdsl.solvers.alternate_search.backend import SearchOptions
from spdsl.solvers.alternate_search.start import check_start
from spdsl.solvers.driver import run
from spdsl.solvers.protocol import CommonOptions


def search(bound, **options):
    return run(AlternateSearch(), bound, SearchOptions(**options))


def original(bound):
    solution = run(Original(), bound, CommonOptions())
    assert solution.status is Status.EXACT
    return solution


@pytest.mark.parametrize("self_paced", ["linear", "mixture", "log", "hard", "welsch"])
def test_rounds_never_raise_the_latent_objective(self_paced):
    X, y = regression(40, 4, 1)
    age = 0.02 if self_paced != "mixture" else 0.2
    solution = search(make(X, y, l1=0.02, self_paced=self_paced, age=age), start="full")
    objectives = solution.history["objective"]
    assert len(objectives) >= 2
    assert np.all(np.diff(objectives) <= 1e-13 * np.abs(objectives[:-1]).max())


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "logistic", "hinge"])
def test_a_grid_of_ages_is_exact_at_every_node_and_between(loss):
    X, y = classification(30, 3, 0) if loss in ("logistic", "hinge") else regression(30, 3, 0)
    bound = make(X, y, loss=loss, l2=0.1, age=("quantiles", 0.4, 1.0))
    path = search(bound, ages=6)
    assert len(path.ages) == 6
    assert path.status is Status.EXACT
    for age in [*path.ages, *np.random.default_rng(0).uniform(*path.age_range, 3)]:
        solution = path(age)
        assert kkt_residual(bound, solution.x, solution.weights) < 1e-9


def test_without_polish_the_tolerance_says_how_near_it_stops():
    X, y = regression(40, 4, 1)
    rough = search(make(X, y, l1=0.02, age=0.01), polish=False, tolerance=1e-2)
    fine = search(make(X, y, l1=0.02, age=0.01), polish=False, tolerance=1e-9)
    assert rough.kkt_residual > 1e-8 > fine.kkt_residual
    assert rough.status is Status.SOLVED


def test_a_limit_is_never_called_a_solution():
    X, y = regression(40, 4, 1)
    solution = search(make(X, y, l1=0.02, age=0.01), polish=False, max_rounds=1)
    assert solution.status is Status.ITERATION_LIMIT


def test_starts_are_what_they_say_and_a_seed_gives_the_same_bits():
    X, y = regression(40, 4, 3)
    bound = make(X, y, l1=0.02, age=0.02)
    first = search(bound, start=("subset", (0.5,), {"seed": 4}))
    again = search(bound, start="subset(0.5, seed = 4)")
    assert np.array_equal(first.x, again.x)
    assert search(bound, start="zero").status is Status.EXACT


@pytest.mark.parametrize("value", ["half", "subset(0)", "subset(1.5)", ("subset", (), {}), 3])
def test_a_start_that_means_nothing_is_complained_of(value):
    assert check_start(value)


def test_original_is_the_lasso():
    X, y = regression(60, 6, 0)
    theirs = Lasso(alpha=0.05, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(X, y)
    assert np.abs(original(make(X, y, l1=0.05, self_paced=None))["w"] - theirs.coef_).max() < 1e-10


def test_original_is_ridge_with_an_intercept():
    X, y = regression(60, 4, 0)
    theirs = Ridge(alpha=60 * 0.3).fit(X, y + 1.0)
    ours = original(make(X, y + 1.0, l2=0.3, intercept=True, self_paced=None))
    assert np.abs(ours["w"] - theirs.coef_).max() < 1e-9
    assert ours["b"] == pytest.approx(theirs.intercept_, abs=1e-9)


def test_original_is_quantile_regression():
    X, y = regression(50, 4, 2)
    ours = original(make(X, y, loss="quantile", l1=0.02, self_paced=None))
    # our quantile(z) of z = Xw - y at level 0.3 is theirs of y - Xw at level 0.7
    theirs = QuantileRegressor(quantile=0.7, alpha=0.02, fit_intercept=False).fit(X, y)
    bound = make(X, y, loss="quantile", l1=0.02, self_paced=None)
    assert ours.objective <= bound.objective(theirs.coef_) + 1e-12


def test_original_is_logistic_regression():
    X, y = classification(60, 3, 0)
    theirs = LogisticRegression(C=1 / (60 * 0.1), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    ours = original(make(X, y, loss="logistic", l2=0.1, self_paced=None))
    assert np.abs(ours["w"] - theirs.coef_[0]).max() < 1e-6


def test_original_is_huber_regression_at_its_own_scale():
    X, y = regression(60, 3, 4)
    theirs = HuberRegressor(epsilon=1.5, alpha=0.5, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    s = theirs.scale_
    # theirs at the scale s: sum 2 s huber(r/s; eps) + alpha |w|^2; with r/(eps s) it is our huber with its knee at 1
    scaled = make(X / (1.5 * s), y / (1.5 * s), loss="huber", factor=2 * s * 1.5**2, l2=2 * 0.5, self_paced=None)
    assert np.abs(original(scaled)["w"] - theirs.coef_).max() < 1e-4


def test_models_without_ages_are_refused_with_a_reason():
    X, y = regression(20, 2, 0)
    bound = make(X, y, l1=0.1, self_paced=None)
    assert any("no self_paced term" in reason for reason in AlternateSearch().refuses(bound.problem))
    assert Original().refuses(bound.problem) == []
    with pytest.raises(SolverError, match="negative"):
        original(make(X, y, l1=-0.1, self_paced=None))

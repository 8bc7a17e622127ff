"""Age-paths that are known in closed form, and the two ends of paths that are known models."""

from __future__ import annotations

import numpy as np
import pytest
from problems import classification, make, regression
from sklearn.linear_model import Lasso, LogisticRegression

from spdsl.diagnostics import SpdslWarning
from spdsl.reference.stationarity import kkt_residual
from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions
from spdsl.solvers.path_following.corrector import tangent


def solve(bound, **options):
    return run(PathFollowing(), bound, PathOptions(**options))


def solve_with_warning(bound, **options):
    """These intervals lie above every loss of the starting fit, which is said."""
    with pytest.warns(SpdslWarning, match="above every loss"):
        return solve(bound, **options)


def test_one_sample_with_ridge_follows_the_roots_of_a_cubic():
    # G = F((w - 1)^2 / 2) + l2 w^2 / 2 with linear weights: (1 - (w-1)^2 / (2 age)) (w - 1) + l2 w = 0 while in
    l2 = 0.2
    bound = make(np.ones((1, 1)), np.ones(1), l2=l2, factor=1.0, age=(0.2, 3.0))
    path = solve(bound, start="zero")
    for age in np.linspace(*path.age_range, 40):
        w = path(age)["w"][0]
        r = w - 1.0
        if r * r / 2 < age:
            assert (1 - r * r / (2 * age)) * r + l2 * w == pytest.approx(0.0, abs=1e-12)
        else:
            assert w == 0.0
    # out at w = 0 (loss 1/2) until the age is 1/2; the sample then enters with curvature l2 - 2 < 0: a jump
    assert [point.age for point in path.jumps] == [pytest.approx(0.5, rel=1e-12)]
    assert path.jumps[0].samples == (0,)


def test_mixture_and_squared_loss_with_nothing_in_between_is_piecewise_explicit():
    # one sample in M: v = gamma (1/sqrt l - 1/age), l = r^2/2, so v r = gamma (sqrt 2 sign r - r/age)
    l2, gamma = 5.0, 0.7
    bound = make(np.ones((1, 1)), np.array([3.0]), l2=l2, factor=1.0, self_paced="mixture", age=(2.2, 6.0))
    path = solve_with_warning(bound)
    for age in np.linspace(*path.age_range, 15):
        w = path(age)["w"][0]
        loss = (w - 3.0) ** 2 / 2
        if (age * gamma / (age + gamma)) ** 2 < loss < age**2:
            assert w == pytest.approx((np.sqrt(2) * gamma - 3 * gamma / age) / (l2 - gamma / age), rel=1e-12)


def test_the_tangent_is_the_derivative_of_the_path():
    X, y = regression(40, 4, 1)
    path = solve(make(X, y, l1=0.02, l2=0.02, age=("quantiles", 0.5, 1.0)))
    branch = path.branch
    for k in range(0, len(path.ages) - 1, 3):
        low, high = path.ages[k], path.ages[k + 1]
        if high - low < 1e-6:
            continue
        age, h = 0.5 * (low + high), 1e-4 * (high - low)
        found = branch._between(k, age)
        slope = tangent(branch.system, found.evaluation, found.factor).dx
        difference = (path(age + h).x - path(age - h).x) / (2 * h)
        assert np.abs(slope - difference).max() <= 1e-4 * max(np.abs(slope).max(), 1e-6)


def test_a_lasso_path_ends_in_the_ordinary_lasso():
    X, y = regression(60, 6, 2)
    path = solve_with_warning(make(X, y, l1=0.03, age=(1e6, 1e8)))
    ordinary = Lasso(alpha=0.03, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(X, y)
    assert np.abs(path(1e8)["w"] - ordinary.coef_).max() < 1e-8


def test_a_logistic_path_ends_in_ordinary_logistic_regression():
    X, y = classification(60, 3, 2)
    path = solve_with_warning(make(X, y, loss="logistic", l2=0.1, intercept=True, factor=1 / 60, age=(1e6, 1e9)))
    ordinary = LogisticRegression(C=1 / (60 * 0.1), tol=1e-12, max_iter=10_000).fit(X, y)
    assert np.abs(path(1e9)["w"] - ordinary.coef_[0]).max() < 1e-6
    assert path(1e9)["b"] == pytest.approx(ordinary.intercept_[0], abs=1e-6)


def test_hard_paths_are_constant_between_jumps_and_each_jump_is_at_the_loss_of_the_sample_that_comes_in():
    X, y = regression(40, 3, 1)
    bound = make(X, y, l1=0.02, self_paced="hard", age=("quantiles", 0.3, 1.0))
    path = solve(bound)
    assert len(path.jumps) > 3
    for left, right, low, high in zip(path.nodes, path.nodes[1:], path.ages, path.ages[1:]):
        if high > low:
            assert np.abs(left - right).max() < 1e-12
    for point in path.critical_points:
        before = path.nodes[np.searchsorted(path.ages, point.age)]
        losses = bound.losses(before)
        assert np.abs(losses[list(point.samples)] - point.age).max() <= 1e-12 * point.age


def test_one_age_alone_is_a_partial_optimum():
    X, y = regression(50, 4, 5)
    path = solve(make(X, y, l1=0.02, age=("quantiles", 0.4, 1.0)))
    age = float(np.mean(path.age_range))
    bound = make(X, y, l1=0.02, age=age)
    alone = solve(bound)
    assert alone.age == age
    assert alone.kkt_residual < 1e-12
    assert kkt_residual(bound, alone.x, alone.weights) < 1e-9

"""Degenerate problems end in a right path or in a sentence that says what happened."""

from __future__ import annotations

import numpy as np
import pytest
from mixtures import bound_problem
from problems import classification, make, regression
from sklearn.datasets import load_breast_cancer

import spdsl
from spdsl.diagnostics import SolverError, SpdslWarning
from spdsl.reference.stationarity import kkt_residual
from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions

QUANTILES = ("quantiles", 0.3, 1.0)


def solve(bound, **options):
    return run(PathFollowing(), bound, PathOptions(**options))


def assert_right(bound, path, ages=5):
    """Exact by its own account, and by a certificate that shares no code with it."""
    assert path.status.name == "EXACT", path.message
    for age in np.random.default_rng(0).uniform(*path.age_range, ages):
        solution = path(age)
        assert solution.kkt_residual <= 1e-10
        assert kkt_residual(bound, solution.x, solution.weights) <= 1e-9


def regression_data():
    return regression(24, 3, 0)


def doubled(X, y):
    return np.vstack([X, X]), np.r_[y, y]


VARIANTS = {
    "duplicate rows": doubled,
    "duplicate columns": lambda X, y: (np.hstack([X, X]), y),
    "dependent columns": lambda X, y: (np.hstack([X, X[:, :1] + X[:, 1:2]]), y),
    "a column of zeros": lambda X, y: (np.hstack([X, 0 * X[:, :1]]), y),
    "few distinct targets": lambda X, y: (X, np.round(y)),
    "binary data": lambda X, y: ((X > 0).astype(float), np.round(y)),
    "constant target": lambda X, y: (X, np.ones_like(y)),
    "more columns than rows": lambda X, y: regression(10, 20, 1),
}


@pytest.mark.parametrize("self_paced", ["linear", "mixture", "hard"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_lasso(variant, self_paced):
    X, y = VARIANTS[variant](*regression_data())
    factor = (4.0 if self_paced == "mixture" else 1.0) / len(y)
    bound = make(X, y, l1=0.02, self_paced=self_paced, factor=factor, age=QUANTILES)
    assert_right(bound, solve(bound))


@pytest.mark.parametrize("variant", ["duplicate columns", "a column of zeros", "more columns than rows"])
def test_no_regularizer_at_all(variant):
    X, y = VARIANTS[variant](*regression_data())
    bound = make(X, y, age=(0.01, 1.0))
    with pytest.warns(SpdslWarning) if variant == "more columns than rows" else _silence():
        path = solve(bound)
    assert_right(bound, path)


@pytest.mark.parametrize("variant", ["duplicate rows", "binary data"])
@pytest.mark.parametrize("regularizer", ["l1", "l2"])
def test_linear_svm(variant, regularizer):
    X, y = classification(24, 3, 0)
    X, y = doubled(X, y) if variant == "duplicate rows" else ((X > 0).astype(float), y)
    bound = make(X, y, loss="hinge", intercept=True, age=(0.005, 0.1), factor=1 / 24, **{regularizer: 0.05})
    assert_right(bound, solve(bound))


@pytest.mark.parametrize(("seed", "d", "l2", "self_paced"), [(0, 8, 1e-4, "linear"), (2, 8, 1e-6, "mixture")])
def test_a_sparse_svm_on_binary_data_with_a_tiny_ridge(seed, d, l2, self_paced):
    X, y = classification(40, d, seed)
    factor = (4.0 if self_paced == "mixture" else 1.0) / 40
    bound = make(
        (X > 0).astype(float), y, loss="hinge", l1=0.02, l2=l2, intercept=True, self_paced=self_paced, factor=factor,
        age=QUANTILES,
    )  # fmt: skip
    assert_right(bound, solve(bound))


FOLDS = [  # each runs into a smooth fold, where the slope downhill is rounding at first
    ("huber", {"l1": 0.02, "nonnegative": True}, "mixture", 0),
    ("logistic", {"l1": 0.02, "l2": 0.05}, "welsch", 0),
    ("squared_hinge", {"l2": 0.1}, "welsch", 0),
    ("hinge", {"l2": 0.1}, "mixture", 0),
]


@pytest.mark.parametrize(("loss", "regularizers", "self_paced", "seed"), FOLDS, ids=lambda item: str(item))
def test_a_fold_is_left_downhill(loss, regularizers, self_paced, seed):
    X, y = (regression if loss == "huber" else classification)(24, 4, seed)
    factor = (4.0 if self_paced == "mixture" else 1.0) / 24
    bound = make(X, y, loss=loss, self_paced=self_paced, factor=factor, age=QUANTILES, **regularizers)
    path = solve(bound)
    assert_right(bound, path)
    assert any(point.cause == "the path folds back" for point in path.jumps)


def test_a_class_that_is_given_up_leaves_the_intercept_on_a_plateau():
    """Weights of a class fall to nothing, and G is flat to rounding along the intercept: the path goes on."""
    X, y = classification(24, 4, 0)
    bound = make(X, y, loss="squared_hinge", l2=0.1, intercept=True, self_paced="welsch", factor=1 / 24, age=QUANTILES)
    assert_right(bound, solve(bound))


def test_ties_are_one_event_that_names_every_sample():
    X, y = doubled(*regression_data())
    path = solve(make(X, y, l1=0.02, age=QUANTILES))
    for point in path.turning_points:
        assert {i % 24 for i in point.samples} == {i for i in point.samples if i < 24}
    ages = [point.age for point in path.critical_points]
    assert np.all(np.diff(ages) > 0.0)


def test_duplicated_rows_are_weights():
    X, y = regression_data()
    single = solve(make(X, y, l1=0.02, factor=2.0 / 48, age=QUANTILES))
    double = solve(make(*doubled(X, y), l1=0.04, factor=2.0 / 48, age=QUANTILES))
    low, high = max(single.ages[0], double.ages[0]), min(single.ages[-1], double.ages[-1])
    for age in np.linspace(low, high, 7):
        assert np.abs(single(age)["w"] - double(age)["w"]).max() < 1e-10


def test_all_losses_equal_at_the_start_is_one_event():
    X, y = classification(30, 3, 0)
    bound = make(X, y, loss="logistic", l1=0.05, age=(0.001, 0.2), factor=1 / 30)
    path = solve(bound, start="zero")
    assert_right(bound, path)
    assert len(path.critical_points[0].samples) == 30
    assert path.critical_points[0].age == pytest.approx(np.log(2) / 30, rel=1e-12)


def test_an_interval_below_every_loss_says_so_and_is_a_right_path():
    X, y = regression_data()
    bound = make(X, y, l1=0.02, age=(1e-9, 1e-8))
    with pytest.warns(SpdslWarning, match=r"below every loss.*range from"):
        path = solve(bound)
    assert "below every loss" in path.message
    assert_right(bound, path)


def test_an_interval_above_every_loss_says_so_and_is_a_right_path():
    X, y = regression_data()
    bound = make(X, y, l1=0.02, age=(100.0, 200.0))
    with pytest.warns(SpdslWarning, match=r"above every loss"):
        path = solve(bound)
    assert_right(bound, path)


def test_one_class_only():
    X, _ = classification(30, 3, 0)
    bound = make(X, np.ones(30), loss="hinge", l2=0.1, intercept=True, age=(0.001, 0.2), factor=1 / 30)
    with pytest.warns(SpdslWarning, match="above every loss"):
        path = solve(bound)
    assert_right(bound, path)


@pytest.mark.parametrize("self_paced", ["hard", "linear"])
def test_ages_at_which_one_class_alone_is_in_are_told(self_paced):
    X, y = classification(40, 4, 3)
    model = spdsl.parse(
        f"""data
          X : matrix(n, d)
          y : labels(n)
        variable
          w : vector(d)
          b : scalar
        age lambda in quantiles(0.3, 1)
        minimize
          loss         logistic(y * (X @ w + b)) / n
          regularizer  0.05 * sum_squares(w)
          self_paced   {self_paced}(lambda)
        """
    )
    path = model.solve(X=X, y=y, backend="path_following")
    assert_right(path.bound, path)
    assert all(len(set(y[path(age).weights > 0.0])) == 1 for age in np.linspace(*path.age_range, 5))
    assert "of one class (`y` = 1)" in path.message


def test_hundreds_of_samples_at_one_kink_are_a_start_like_any_other():
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(y.size) < 0.2, 1.0 - 2.0 * y, 2.0 * y - 1.0)
    model = spdsl.parse(
        """data
          X : matrix(n, d)
          y : labels(n)
        variable
          w : vector(d)
          b : scalar
        age lambda in quantiles(0.4, 1)
        minimize
          loss         hinge(y * (X @ w + b))
          regularizer  60 * norm1(w)
          self_paced   linear(lambda)
        """
    )
    path = model.solve(X=(X - X.mean(axis=0)) / X.std(axis=0), y=y)
    first = path(
        path.age_range[0]
    )  # one class alone is in, w = 0, and every sample that is in has its loss at the kink
    assert not first["w"].any()
    assert np.count_nonzero(first.losses < 1e-12) > 200
    assert_right(path.bound, path)


def test_quantiles_of_losses_that_are_rounding_are_refused():
    bound = bound_problem("hinge", "non-negative lasso", "numeric", seed=9223, n=15)  # fitted perfectly
    with pytest.raises(SolverError, match="no ages take in shares"):
        solve(bound)


def test_a_negative_coefficient_is_refused():
    X, y = regression_data()
    with pytest.raises(SolverError, match="negative"):
        solve(make(X, y, l1=-0.1, age=QUANTILES))


def test_ages_out_of_order_are_refused():
    X, y = regression_data()
    with pytest.raises(SolverError, match="not an interval"):
        solve(make(X, y, l1=0.1, age=(2.0, 1.0)))


def _silence():
    from contextlib import nullcontext

    return nullcontext()

"""Cross-validation of the age: folds are fair, its curve is the plain refit's, its choice the least of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from problems import classification, make, regression

import spdsl
from spdsl.diagnostics import UsageError
from spdsl.solvers.cross_validation import cross_validate, split
from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions

FACTORS = {"the loss's scale depends on n": "/ (2*n)", "it does not": "/ 2"}


def model(scale):
    return spdsl.parse(f"""
data
  X : matrix(n, d)
  y : vector(n)
variable
  w : vector(d)
age lambda in quantiles(0.5, 1)
minimize
  loss         (X @ w - y)^2 {scale}
  regularizer  0.02 * sum_squares(w)
  self_paced   linear(lambda)
""")


@pytest.fixture(scope="module", params=FACTORS.values(), ids=FACTORS)
def chosen(request):
    X, y = regression(45, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        return model(request.param).cross_validate(X=X, y=y, folds=3, seed=2), X, y, request.param


def test_every_sample_is_in_one_fold_and_classes_are_spread_evenly():
    X, y = classification(61, 3, 0)
    problem = make(X, y, loss="logistic", l2=0.1, age=(0.1, 1.0))
    labelled = spdsl.problem.DataDeclaration("y", "labels", ("n",))
    from dataclasses import replace

    problem = replace(problem, problem=replace(problem.problem, data=(problem.problem.data[0], labelled)))
    parts = split(problem, 5, 0)
    assert sorted(np.concatenate(parts)) == list(range(61))
    positive = [int((y[part] > 0).sum()) for part in parts]
    assert max(positive) - min(positive) <= 1
    assert [part.tolist() for part in parts] == [part.tolist() for part in split(problem, 5, 0)]
    assert [part.tolist() for part in parts] != [part.tolist() for part in split(problem, 5, 1)]


def test_the_curve_is_the_mean_of_refits_on_the_other_folds(chosen):
    """Plain alternate search by ridge formulas, sharing no code: in each fold at the age that stands for the whole's."""
    found, X, y, scale = chosen
    n = len(y)
    k = int(np.argmin(np.abs(found.ages - found.age)))
    parts = split(found.path.bound, 3, 2)
    for fold, part in enumerate(parts):
        rest = np.setdiff1d(np.arange(n), part)
        count = 2 * len(rest) if "n" in scale else 2
        age = found.ages[k] * (n / len(rest) if "n" in scale else 1.0)
        w = np.linalg.solve(X[rest].T @ X[rest] / count + 0.02 * np.eye(2), X[rest].T @ y[rest] / count)
        for step in np.geomspace(found.path.age_range[0] * age / found.ages[k], age, 40):
            for _ in range(60):
                v = np.maximum(1 - (X[rest] @ w - y[rest]) ** 2 / count / step, 0) / count
                w = np.linalg.solve((X[rest].T * v) @ X[rest] + 0.02 * np.eye(2), X[rest].T @ (v * y[rest]))
        whole = 2 * n if "n" in scale else 2
        assert found.fold_values[k, fold] == pytest.approx(np.mean((X[part] @ w - y[part]) ** 2 / whole), rel=1e-4)


def test_the_choice_is_the_least_of_the_curve_and_its_error_that_of_the_mean(chosen):
    found = chosen[0]
    assert found.value == found.values.min()
    k = int(np.argmin(found.values))
    assert found.ages[k] == found.age
    assert found.standard_error == pytest.approx(np.std(found.fold_values[k], ddof=1) / np.sqrt(3))
    np.testing.assert_array_equal(found["w"], found.path(found.age)["w"])
    assert found.in_share == found.path(found.age).in_share


def test_one_standard_error_takes_the_smallest_age_that_is_as_good(chosen):
    found = chosen[0]
    as_good = found.values <= found.value + found.standard_error
    assert found.age_within_one_standard_error == found.ages[as_good].min()


def test_two_processes_give_the_same_bits_as_one():
    X, y = regression(45, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        one, two = (model("/ 2").cross_validate(X=X, y=y, folds=2, jobs=jobs, seed=3) for jobs in (1, 2))
    assert np.array_equal(one.fold_values, two.fold_values)


@pytest.mark.parametrize("folds", [1, 61])
def test_folds_that_do_not_fit_are_refused(folds):
    X, y = regression(60, 2, 0)
    with pytest.raises(UsageError, match="folds are at least 2"):
        cross_validate(make(X, y, l2=0.1, age=(0.1, 1.0)), PathFollowing(), PathOptions(), folds=folds)


def test_a_model_with_one_age_is_refused():
    X, y = regression(30, 2, 0)
    problem = make(X, y, l2=0.1, age=0.2)
    assert run(PathFollowing(), problem, PathOptions()).age == 0.2
    with pytest.raises(UsageError, match="none to choose"):
        cross_validate(problem, PathFollowing(), PathOptions())

"""`group_norm(w, 2)`: a whole number is the length of consecutive groups, for every reader of the model."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import spdsl

MODEL = """data
  X : matrix(n, d)
  y : vector(n)
{groups}variable
  w : vector(d)
minimize
  loss (X @ w - y)^2 / (2*n)
  regularizer 0.2 * group_norm(w, {argument})
"""


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    return X, X @ np.array([1.0, -0.5, 0.0, 0.0, 0.3, 0.1]) + 0.1 * rng.normal(size=40)


def test_a_length_means_what_labels_mean_and_what_cvxpy_says(table):
    X, y = table
    by_length = spdsl.parse(MODEL.format(groups="", argument="2"))
    by_labels = spdsl.parse(MODEL.format(groups="  g : vector(d)\n", argument="g"))
    first = by_length.solve(X=X, y=y)
    second = by_labels.solve(X=X, y=y, g=np.array([0, 0, 1, 1, 2, 2]))
    w = cp.Variable(6)
    norms = sum(cp.norm(w[2 * k : 2 * k + 2]) for k in range(3))
    optimum = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) / 80 + 0.2 * norms)).solve(solver=cp.CLARABEL)
    for model, found in ((by_length, first), (by_labels, second)):
        assert abs(found.objective - optimum) <= 1e-6 * optimum
        np.testing.assert_allclose(found["w"], w.value, atol=1e-4)
        assert model.check(found)


def test_a_wrong_answer_is_not_certified(table):
    X, y = table
    model = spdsl.parse(MODEL.format(groups="", argument="2"))
    found = model.solve(X=X, y=y)
    found.x[3] += 0.05  # a row that is not the first of its group
    assert not model.check(found)


@pytest.mark.parametrize("size", [0, -2, 1.5])
def test_a_length_that_makes_no_groups_is_refused(size):
    model = spdsl.parse(
        """data
          X : matrix(n, d)
          y : vector(n)
        parameter
          size = 2
        variable
          w : vector(d)
        minimize
          loss         (X @ w - y)^2 / n
          regularizer  0.1 * group_norm(w, size)
        """
    )
    X = np.random.default_rng(0).normal(size=(12, 4))
    with pytest.raises(spdsl.diagnostics.DataError, match=f"`size`, the length of the groups.*not {size}"):
        model.solve(X=X, y=X[:, 0], parameters={"size": size})


@pytest.mark.parametrize("label", [0.0, -3.0, 2.5])
def test_the_label_of_a_single_coefficient_is_no_length(label):
    model = spdsl.parse(MODEL.format(groups="  g : vector(d)\n", argument="g"))
    X = np.random.default_rng(0).normal(size=(20, 1))
    found = model.solve(X=X, y=X[:, 0], g=np.array([label]))
    size = float(X[:, 0] @ X[:, 0]) / 20  # the lasso of one coefficient, in closed form
    assert found["w"][0] == pytest.approx(1.0 - 0.2 / size, abs=1e-6)

"""Affine maps assembled anew agree with the problem's own design, row by row and as operators."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from reference.fits import bound, classification, linear, regression
from spdsl.reference.affine import affine_map
from spdsl.reference.feasibility import infeasibility

METRIC = """data
  U : matrix(T, d)
  V : matrix(T, d)
  y : labels(T)

variable
  M  : symmetric(d)
  mu : scalar

minimize
  loss         hinge(y * (mu - mahalanobis(M, U - V)))
  regularizer  trace(M)

subject to
  M >> 0
  mu >= 1
"""
KERNEL = """data
  X : matrix(n, d)
  y : labels(n)

variable
  f : rkhs(X, rbf(0.5))
  b : scalar

minimize
  loss         hinge(y * (f(X) + b))
  regularizer  norm(f)^2
"""
PAIRS = {"U": regression(9, 3)["X"], "V": regression(9, 3, 1)["X"], "y": np.tile([1, -1, 1], 3)}
SQUARES = "minimize\n  loss (y - 2 * (X @ w) + b/3)^2\n  regularizer norm1(w - 1) + sum(w)\nsubject to\n  w >= 0"
PROBLEMS = {
    "linear with intercept": lambda: bound(linear(SQUARES, intercept=True), **regression(9, 3)),
    "sparse": lambda: bound(
        linear(SQUARES, intercept=True),
        X=sp.random_array((9, 3), density=0.5, rng=np.random.default_rng(0)),
        y=np.arange(9.0),
    ),
    "labels scale the rows": lambda: bound(
        linear("minimize\n  loss hinge(y * (X @ w + b))", "labels", intercept=True), **classification(9, 3)
    ),
    "metric": lambda: bound(METRIC, **PAIRS),
    "metric of sparse rows": lambda: bound(
        METRIC, **{**PAIRS, "U": sp.csr_array(PAIRS["U"]), "V": sp.csr_array((9, 3))}
    ),
    "kernel": lambda: bound(KERNEL, **classification(9, 3)),
}


def predictors(problem):
    found = list(problem.problem.loss.predictors)
    found += [item.predictor for item in problem.problem.regularizers if hasattr(item, "predictor")]
    return found + [item.predictor for item in problem.problem.constraints if hasattr(item, "predictor")]


@pytest.mark.parametrize("name", PROBLEMS)
def test_maps_adjoints_and_rows_agree_with_the_problems_design(name):
    problem = PROBLEMS[name]()
    rng = np.random.default_rng(0)
    x = rng.normal(size=problem.layout.size)
    for predictor in predictors(problem):
        A, c = problem.design(predictor)
        A = A.toarray() if hasattr(A, "toarray") else A
        mapped = affine_map(problem, predictor)
        t = rng.normal(size=mapped.n_rows)
        chosen = np.arange(mapped.n_rows)[::2]
        np.testing.assert_allclose(mapped(x), A @ x + c, atol=1e-12)
        np.testing.assert_allclose(mapped.linear(x), A @ x, atol=1e-12)
        np.testing.assert_allclose(mapped.adjoint(t), A.T @ t, atol=1e-12)
        np.testing.assert_allclose(mapped.rows(chosen).toarray(), A[chosen], atol=1e-12)
        assert mapped.terms_size(x) == pytest.approx(max((np.abs(A) @ np.abs(x)).max(), np.abs(c).max()))


def test_violations_are_relative_to_their_terms():
    problem = bound(METRIC, **PAIRS)
    x = np.array([2.0, 0, 0, 0, 1.0, 0, 0, 0, -0.5, 0.75])  # eigenvalue -0.5 of size 2, mu 0.25 below 1
    assert infeasibility(problem, x) == pytest.approx(0.25)
    x[8] = 0.5
    x[9] = 1.5
    assert infeasibility(problem, x) == 0.0
    x[1] = 0.1
    assert infeasibility(problem, x) == pytest.approx(0.05)

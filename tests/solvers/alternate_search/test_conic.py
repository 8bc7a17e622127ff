"""What the active-set method has no rows for goes to cvxpy: partial optima by other formulas, refusals in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from problems import regression

import spdsl
from spdsl.diagnostics import SolverError

MODEL = """
data
  X : matrix(n, d)
  y : vector(n)
{data}
variable
  w : vector(d)
{age}
minimize
  loss         (X @ w - y)^2 / (2*n)
  regularizer  {regularizer}
  {self_paced}
{constraints}
"""
GROUPS = np.array([0, 0, 1, 1, 2, 2])


def solved(regularizer, age="age lambda = 0.02", constraints="", groups=True, **options):
    X, y = regression(40, 6, 1)
    text = MODEL.format(
        data="  g : vector(d)" if groups else "",
        age=age,
        regularizer=regularizer,
        self_paced="self_paced linear(lambda)" if age else "",
        constraints=f"subject to\n  {constraints}" if constraints else "",
    )
    model = spdsl.parse(text)
    data = {"X": X, "y": y, **({"g": GROUPS} if groups else {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        return model, model.solve(**data, **options), X, y


def group_lasso(X, y, v, rho):
    """Block coordinate descent on sum v_i (x_i'w - y_i)^2 / 2n + rho sum_g |w_g|, each block by its secular equation."""
    n = len(y)
    G, q = (X.T * v) @ X / n, X.T @ (v * y) / n
    w = np.zeros(6)
    for _ in range(4000):
        before = w.copy()
        for group in range(3):
            at = np.flatnonzero(group == GROUPS)
            others = np.flatnonzero(group != GROUPS)
            pull = q[at] - G[np.ix_(at, others)] @ w[others]
            if np.linalg.norm(pull) <= rho:
                w[at] = 0.0
                continue
            low, high = 0.0, 1e6
            for _ in range(200):  # |w_g| = t where |(G_gg + rho/t I)^-1 pull| = t
                t = 0.5 * (low + high)
                size = np.linalg.norm(np.linalg.solve(G[np.ix_(at, at)] + rho / max(t, 1e-300) * np.eye(2), pull))
                low, high = (t, high) if size > t else (low, t)
            w[at] = np.linalg.solve(G[np.ix_(at, at)] + rho / max(low, 1e-300) * np.eye(2), pull)
        if np.abs(w - before).max() < 1e-12:
            break
    return w


def test_a_self_paced_group_lasso_is_a_fixed_point_of_plain_alternate_search():
    _, solution, X, y = solved("0.05 * group_norm(w, g)", backend="acs")
    assert solution.backend == "acs"
    assert solution.status.ok
    v = np.maximum(1 - (X @ solution["w"] - y) ** 2 / 80 / 0.02, 0)
    np.testing.assert_allclose(solution["w"], group_lasso(X, y, v, 0.05), atol=1e-5)
    assert np.any(solution["w"] != 0.0)


def test_a_group_lasso_without_ages_is_solved_by_original():
    model, solution, X, y = solved("0.05 * group_norm(w, g)", age="")
    assert solution.backend == "original"
    np.testing.assert_allclose(solution["w"], group_lasso(X, y, np.ones(40), 0.05), atol=1e-6)
    assert model.check(solution)


@pytest.mark.parametrize(
    ("regularizer", "constraints"),
    [
        ("0.1 * norm2(w)", ""),
        ("0.01 * sum_squares(w)", "norm2(w) <= 0.4"),
        ("0.01 * sum_squares(w)", "norm1(w) <= 0.5"),
    ],
)
def test_norms_and_balls_hold_against_the_certificate_over_a_grid_of_ages(regularizer, constraints):
    model, path, _, _ = solved(
        regularizer, "age lambda in quantiles(0.5, 1)", constraints, groups=False, backend="acs", ages=4
    )
    certificate = model.check(path, ages=[*path.ages, 0.5 * (path.ages[1] + path.ages[2])], tolerance=1e-5)
    assert certificate, str(certificate)
    assert path.history["in_share"][-1] >= path.history["in_share"][0]


def test_path_following_says_which_part_it_can_not_take():
    with pytest.raises(SolverError, match=r"group_norm"):
        solved("0.05 * group_norm(w, g)", "age lambda in quantiles(0.5, 1)", backend="path_following")


def test_a_self_paced_metric_is_solved_and_certified():
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((30, 2)), rng.standard_normal((30, 2))
    y = np.where(np.sum((U - V) ** 2, axis=1) < 2.5, 1, -1)
    model = spdsl.parse("""
data
  U : matrix(T, d)
  V : matrix(T, d)
  y : labels(T)
variable
  M  : symmetric(d)
  mu : scalar
age lambda = 0.03
minimize
  loss         hinge(y * (mu - mahalanobis(M, U - V))) / T
  regularizer  0.05 * trace_norm(M)
  self_paced   linear(lambda)
subject to
  M >> 0
  mu >= 1
""")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        solution = model.solve(U=U, V=V, y=y)
    assert solution.backend == "acs"
    certificate = model.check(solution, tolerance=1e-5)
    assert certificate, str(certificate)


def test_more_samples_than_cvxpy_takes_are_refused_with_the_part_that_would_need_it():
    X = np.ones((20_001, 1))
    model = spdsl.parse(MODEL.format(
        data="", age="age lambda = 1", regularizer="norm2(w)", self_paced="self_paced linear(lambda)", constraints="",
    ))  # fmt: skip
    with pytest.raises(SolverError, match=r"norm.*20000 samples at most"):
        model.solve(X=X, y=X[:, 0], backend="acs")

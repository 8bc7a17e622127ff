"""Kernel models over explicit features: held against closed forms, scikit-learn, cvxpy and other kernels' equals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import spdsl
from spdsl.problem.kernels import gram
from spdsl.solvers.features import pivoted_factor

MODEL = """
data
  X : matrix(n, d)
  y : {data}(n)
{more}
variable
  f : rkhs(X, {kernel})
  b : scalar
{age}
minimize
  loss         {loss}
  regularizer  0.3 * norm(f)^2
{paced}
"""
KERNELS = ("rbf(0.7)", "polynomial(3)", "linear()", "precomputed(K)")
LOSSES = {
    "logistic": "logistic(y * (f(X) + b))",
    "squared": "(f(X) + b - y)^2 / 2",
    "squared_hinge": "squared_hinge(y * (f(X) + b))",
}


def samples(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < 0.2, -y, y)


def model(loss, kernel="rbf(0.7)", paced="", age="in quantiles(0.4, 0.9)"):
    return spdsl.parse(
        MODEL.format(
            data="vector" if loss == "squared" else "labels",
            more="  K : matrix(n, n)" if kernel == "precomputed(K)" else "",
            kernel=kernel,
            loss=LOSSES.get(loss, loss),
            age=f"age lambda {age}" if paced else "",
            paced=f"  self_paced   {paced}" if paced else "",
        )
    )


def arrays(kernel, X, y):
    return {"X": X, "y": y, **({"K": gram("rbf", X, X, {"gamma": 0.7})} if kernel == "precomputed(K)" else {})}


@pytest.mark.parametrize(("n", "rank"), [(30, 30), (30, 5), (1, 1), (12, 0)])
def test_a_pivoted_factor_gives_the_matrix_back_and_rebuilds_functions_from_their_features(n, rank):
    rng = np.random.default_rng(n + rank)
    B = rng.normal(size=(n, rank))
    K = B @ B.T
    factor = pivoted_factor(K)
    assert factor.rank == rank
    assert_allclose(factor.L @ factor.L.T, K, atol=1e-13 * max(np.abs(K).max(), 1.0))
    u = factor.L.T @ rng.normal(size=n)
    assert_allclose(K @ factor.coefficients(u), factor.L @ u, atol=1e-9 * max(np.abs(u).max(initial=0.0), 1.0))
    assert_allclose(factor.rows(K), factor.L, atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "kernel", "paced"),
    [
        *(("logistic", kernel, "linear(lambda)") for kernel in KERNELS),
        ("squared", "rbf(0.7)", "mixture(lambda, 0.5)"),
        ("squared_hinge", "rbf(0.7)", "log(lambda, 2)"),
        ("squared_hinge", "polynomial(3)", "hard(lambda)"),
    ],
)
@pytest.mark.filterwarnings("ignore::spdsl.diagnostics.SpdslWarning")
def test_every_kernel_and_smooth_loss_has_a_path_that_cvxpy_certifies(loss, kernel, paced):
    X, y = samples(20)
    compiled = model(loss, kernel, paced)
    path = compiled.solve(**arrays(kernel, X, y), backend="path_following")
    assert path.status.ok
    assert path.worst_kkt_residual <= 1e-10
    certificate = compiled.check(path, ages=np.linspace(*path.age_range, 3))
    assert certificate.ok, str(certificate)
    assert certificate.worst_kkt_residual <= 1e-8


def test_kernel_ridge_is_its_closed_form():
    X, y = samples()
    solution = model("squared").solve(X=X, y=y, backend="original")
    K = gram("rbf", X, X, {"gamma": 0.7})
    n = len(y)
    system = np.block([[K + 0.6 * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    truth = np.linalg.solve(system, np.append(y, 0.0))
    assert_allclose(solution["f"], truth[:n], atol=1e-10)
    assert solution["b"] == pytest.approx(truth[n], abs=1e-10)


def test_a_kernel_model_and_its_explicit_linear_twin_have_the_same_path():
    X, y = samples()
    kernel = model("logistic", "linear()", "linear(lambda)", "in [0.5, 1.5]").solve(X=X, y=y)
    linear = spdsl.parse(
        "data\n  X : matrix(n, d)\n  y : labels(n)\nvariable\n  w : vector(d)\n  b : scalar\nage lambda in [0.5, 1.5]\n"
        "minimize\n  loss  logistic(y * (X @ w + b))\n  regularizer  0.3 * sum_squares(w)\n  self_paced  linear(lambda)\n"
    ).solve(X=X, y=y)
    for age in np.linspace(0.5, 1.5, 7):
        assert_allclose(X.T @ kernel(age)["f"], linear(age)["w"], atol=1e-9)
        assert kernel(age)["b"] == pytest.approx(linear(age)["b"], abs=1e-9)
    assert_allclose([p.age for p in kernel.critical_points], [p.age for p in linear.critical_points], rtol=1e-9)


def test_alternate_search_ends_at_a_point_of_the_exact_path():
    X, y = samples()
    path = model("logistic", paced="linear(lambda)", age="in [0.6, 1.0]").solve(X=X, y=y)
    search = model("logistic", paced="linear(lambda)", age="= 0.6").solve(X=X, y=y, backend="acs")
    assert_allclose(search["f"], path(0.6)["f"], atol=1e-8)


def test_a_saved_path_predicts_at_new_points_as_before(tmp_path):
    X, y = samples()
    path = model("logistic", paced="linear(lambda)").solve(X=X, y=y)
    path.save(tmp_path / "path.npz")
    loaded = spdsl.load_result(tmp_path / "path.npz")
    age = 0.37 * path.age_range[0] + 0.63 * path.age_range[1]
    assert_allclose(loaded(age).x, path(age).x, atol=1e-9)
    new = np.random.default_rng(1).normal(size=(7, 2))
    by_hand = np.exp(-0.7 * ((new[:, None] - X[None]) ** 2).sum(axis=2)) @ path(age)["f"]
    assert_allclose(loaded(age).function("f", new), by_hand, atol=1e-9)

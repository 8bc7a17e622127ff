"""Age-paths under affine constraints and generalized-lasso penalties are partial optima, by cvxpy, at random ages."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import spdsl
from spdsl.diagnostics import SolverError

MODEL = """
data
  X : matrix(n, d)
  y : {kind}(n)
{data}
variable
  w : vector(d)
{intercept}
age lambda in quantiles(0.4, 1)
minimize
  loss         {loss}
  regularizer  {regularizer}
  self_paced   {self_paced}
{constraints}
"""
LOSSES = {
    "squared": ("vector", "(X @ w - y)^2 / (2*n)"),
    "huber": ("vector", "huber(X @ w + b - y, 1) / n"),
    "quantile": ("vector", "quantile(X @ w - y, 0.3) / n"),
    "logistic": ("labels", "logistic(y * (X @ w + b)) / n"),
}
REGULARIZERS = {
    "lasso": "0.02 * norm1(w) + 0.001 * sum_squares(w)",
    "fused": "0.02 * norm1(D @ w) + 0.001 * sum_squares(w)",
    "sparse fused": "0.01 * norm1(D @ w) + 0.01 * norm1(w) + 0.001 * sum_squares(w)",
    "trend filter": "0.02 * norm1(D2 @ w) + 0.001 * sum_squares(w)",
    "ridge": "0.01 * sum_squares(w)",
}
SELF_PACED = {"linear": "linear(lambda)", "mixture": "mixture(lambda, 0.7)", "log": "log(lambda, 0.8)"}
CONSTRAINTS = {
    "none": "",
    "box": "-0.2 <= w; w <= 0.3",
    "simplex": "sum(w) == 1; w >= 0",
    "half-space": "sum(w) <= 0.4; w >= -0.3",
    "monotone": "D @ w >= 0",
    "equations": "A @ w == c",
    "redundant equations": "A @ w == c; 2 * (A @ w) == 2 * c; w <= 1.5",
    "homogeneous": "sum(w) == 0; A @ w <= 1",
}


def problem(loss, regularizer, self_paced, constraint, seed, ties):
    """A model and its data: six features, two of them tied where asked, samples repeated."""
    kind, text = LOSSES[loss]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6))
    if ties:
        X[:, 5] = X[:, 4]
        X[20:28] = X[:8]
    y = X @ np.array([1.0, 1.0, 0.8, 0.0, -0.5, 0.0]) + 0.4 * rng.standard_normal(40)
    y[::7] += 3.0 * rng.standard_normal(6)
    if ties:
        y = np.round(y, 1)
        y[20:28] = y[:8]
    if kind == "labels":
        y = np.where(y > 0, 1.0, -1.0)
    matrices = {"D": np.diff(np.eye(6), axis=0), "D2": np.diff(np.eye(6), n=2, axis=0)}
    A = rng.standard_normal((2, 6))
    matrices |= {"A": A, "c": A @ (0.3 * rng.random(6))}
    regularization, subject = REGULARIZERS[regularizer], CONSTRAINTS[constraint]
    words = re.findall(r"\w+", f"{regularization} {subject}")
    used = {name: value for name, value in matrices.items() if name in words}
    declared = {"D": "matrix(5, d)", "D2": "matrix(4, d)", "A": "matrix(2, d)", "c": "vector(2)"}
    model = spdsl.parse(
        MODEL.format(
            kind=kind,
            data="\n".join(f"  {name} : {declared[name]}" for name in used),
            intercept="  b : scalar" if "+ b" in text else "",
            loss=text,
            regularizer=regularization,
            self_paced=SELF_PACED[self_paced],
            constraints=f"subject to\n  {subject}" if subject else "",
        )
    )
    return model, {"X": X, "y": y, **used}


def solved(model, **data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        return model.solve(backend="path_following", **data)


GENERATE = [Phase.explicit, Phase.generate]  # a model that fails is told at once: to shrink it takes minutes


@settings(
    max_examples=3, deadline=None, derandomize=True, phases=GENERATE, suppress_health_check=[HealthCheck.too_slow]
)
@example("huber", "fused", "linear", "monotone", 0, False)  # penalties and walls of the same rows
@given(
    st.sampled_from(sorted(LOSSES)),
    st.sampled_from(sorted(REGULARIZERS)),
    st.sampled_from(sorted(SELF_PACED)),
    st.sampled_from(sorted(CONSTRAINTS)),
    st.integers(0, 1000),
    st.booleans(),
)
def test_twenty_random_ages_of_a_random_constrained_path_hold_against_cvxpy(
    loss, regularizer, self_paced, constraint, seed, ties
):
    model, data = problem(loss, regularizer, self_paced, constraint, seed, ties)
    path = solved(model, **data)
    assert path.status.name in ("EXACT", "SOLVED"), path.message
    ages = np.random.default_rng(seed).uniform(*path.age_range, 20)
    certificate = model.check(path, ages=ages)
    assert certificate, str(certificate)
    assert max(row.kkt_residual for row in certificate.rows) <= 1e-8


@pytest.mark.parametrize("constraint", sorted(CONSTRAINTS))
def test_every_constraint_holds_at_every_node(constraint):
    model, data = problem("squared", "lasso", "linear", constraint, 3, False)
    path = solved(model, **data)
    rows = {
        "box": lambda w: np.concatenate([-0.2 - w, w - 0.3]),
        "simplex": lambda w: np.concatenate([[abs(w.sum() - 1)], -w]),
        "half-space": lambda w: np.concatenate([[w.sum() - 0.4], -0.3 - w]),
        "monotone": lambda w: -np.diff(w),
        "equations": lambda w: np.abs(data["A"] @ w - data["c"]),
        "redundant equations": lambda w: np.concatenate([np.abs(data["A"] @ w - data["c"]), w - 1.5]),
        "homogeneous": lambda w: np.concatenate([[abs(w.sum())], data["A"] @ w - 1]),
        "none": lambda w: np.zeros(1),
    }[constraint]
    assert max(rows(w).max() for w in path.nodes) <= 1e-12


def test_a_wall_that_is_met_is_a_turning_point_with_its_name():
    model, data = problem("squared", "ridge", "linear", "monotone", 2, False)
    path = solved(model, **data)
    met = [point for point in path.critical_points if "row 4 of constraint 1 reaches its bound" in point.cause]
    assert met
    w = path(met[0].age)["w"]
    assert w[5] == pytest.approx(w[4], abs=1e-12)
    assert met[0].coordinates == (4, 5)


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ("sum(w) == 1; sum(w) == 2", "contradict"),
        ("sum(w) <= -1; w >= 0", "contradict"),
        ("sum(w) == 1; sum(w) >= 3; w <= 0.4", "contradict"),
    ],
)
def test_constraints_that_contradict_each_other_are_said_to(constraints, words):
    X = np.random.default_rng(0).standard_normal((20, 6))
    text = MODEL.format(
        kind="vector", data="", intercept="", loss="(X @ w - y)^2 / n", regularizer="0.01 * norm1(w)",
        self_paced="linear(lambda)", constraints=f"subject to\n  {constraints}",
    )  # fmt: skip
    with pytest.raises(SolverError, match=words):
        solved(spdsl.parse(text), X=X, y=X[:, 0])


@pytest.mark.parametrize("backend", ["acs", "original"])
def test_the_baselines_take_the_same_constraints(backend):
    model, data = problem("squared", "fused", "mixture", "simplex", 2, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        result = model.solve(backend=backend, **data, **({"ages": 5} if backend == "acs" else {}))
    certificate = model.check(result)
    assert certificate, str(certificate)

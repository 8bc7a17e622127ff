"""Paths under group norms: held against cvxpy at v*, against the lasso's path, and against the conditions of each event."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

import spdsl
from spdsl.diagnostics import SolverError
from spdsl.solvers.group_path import backend
from spdsl.solvers.group_path.search import search

MODEL = """
data
  X : matrix(n, d)
  y : vector(n)
  g : vector(d)
variable
  w : vector(d)
  b : scalar
age lambda {age}
minimize
  loss         {loss}
  regularizer  {regularizer}
  self_paced   {self_paced}
{rest}
"""
GROUPS = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
SQUARED = "(X @ w + b - y)^2 / (2*n)"
LOGISTIC = "log(1 + exp(-y * (X @ w + b))) / n"


def sample(seed, labels=False, n=30, d=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, 0] - X[:, 1] + 0.6 * X[:, 2] + 0.3 + 0.3 * rng.standard_normal(n)
    y[: n // 5] += 2.0 * rng.standard_normal(n // 5)
    return {"X": X, "y": np.where(y > 0.0, 1.0, -1.0) if labels else y, "g": GROUPS[:d]}


def solved(
    data, loss=SQUARED, regularizer="0.08 * group_norm(w, g)", self_paced="linear(lambda)", age=None, rest="", **options
):
    age = age or "in quantiles(0.5, 1)"
    model = spdsl.parse(MODEL.format(loss=loss, regularizer=regularizer, self_paced=self_paced, age=age, rest=rest))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        return model, model.solve(**data, **options)


@pytest.mark.parametrize(
    ("loss", "regularizer", "self_paced"),
    [
        (SQUARED, "0.08 * group_norm(w, g)", "linear(lambda)"),
        (SQUARED, "0.05 * group_norm(w, g) + 0.02 * norm1(w) + 0.01 * sum_squares(w)", "linear(lambda)"),
        (SQUARED, "0.1 * norm2(w)", "mixture(lambda, gamma = 0.3)"),
        (LOGISTIC, "0.03 * group_norm(w, g)", "log(lambda, a = 1)"),
        ("huber(X @ w + b - y, 1) / n", "0.05 * group_norm(w, g)", "mixture(lambda, gamma = 0.3)"),
    ],
)
def test_random_ages_of_a_path_hold_against_cvxpy_at_their_weights(loss, regularizer, self_paced):
    model, path = solved(sample(3, labels=loss == LOGISTIC), loss, regularizer, self_paced)
    assert path.backend == "group_path"
    assert path.status is spdsl.Status.EXACT, (path.status, path.message)
    ages = np.random.default_rng(0).uniform(*path.age_range, 8)
    assert max(path(age).kkt_residual for age in ages) <= 1e-10
    assert path.worst_kkt_residual <= 1e-10
    certificate = model.check(path, ages=list(ages[:4]))
    assert certificate, str(certificate)


def test_groups_of_one_coefficient_give_the_path_of_the_lasso():
    data = sample(1)
    _, groups = solved(data | {"g": np.arange(6.0)})
    _, lasso = solved(data, regularizer="0.08 * norm1(w)")
    assert (groups.backend, lasso.backend) == ("group_path", "path_following")
    for age in np.linspace(*lasso.age_range, 9):
        np.testing.assert_allclose(groups(age)["w"], lasso(age)["w"], atol=1e-8)
    assert [round(point.age, 10) for point in groups.jumps] == pytest.approx(
        [round(point.age, 10) for point in lasso.jumps], rel=1e-6
    )
    mine, theirs = ([p.age for p in path.turning_points if p.coordinates] for path in (groups, lasso))
    assert mine == pytest.approx(theirs, rel=1e-8)


def test_where_a_group_enters_or_leaves_its_norm_is_zero_and_its_gradient_on_the_sphere():
    data = sample(8)
    _, path = solved(data, regularizer="0.1 * group_norm(w, g) + 0.2 * sum_squares(w)")
    events = [point for point in path.turning_points if point.cause.startswith("group")]
    assert events
    for event in events:
        at, number = path(event.age), int(event.cause.split()[1])
        where = number == GROUPS
        assert list(np.flatnonzero(where)) == list(event.coordinates)
        r = data["X"] @ at["w"] + at["b"] - data["y"]
        v = np.maximum(1.0 - r**2 / 60.0 / event.age, 0.0)
        assert np.linalg.norm(at["w"][where]) <= 1e-10
        assert np.linalg.norm(data["X"][:, where].T @ (v * r) / 30.0) == pytest.approx(0.1, rel=1e-9)
        near = path(event.age * (1.0 + 1e-6)), path(event.age * (1.0 - 1e-6))
        on = [bool(np.any(solution["w"][where] != 0.0)) for solution in near]
        assert on == ([True, False] if "leaves" in event.cause else [False, True])


def test_the_latent_objective_never_rises_over_a_jump():
    _, path = solved(sample(4), regularizer="0.2 * group_norm(w, g)")
    assert path.jumps
    twice = np.flatnonzero(np.diff(path.ages) == 0.0)
    assert len(twice) >= len(path.jumps)
    for k in twice:
        before, after = (path.bound.objective(path.nodes[i], float(path.ages[i])) for i in (k, k + 1))
        assert after <= before + 1e-12 * abs(before)


def test_a_fixed_age_is_the_partial_optimum_that_alternate_search_finds():
    data = sample(4)
    _, exact = solved(data, age="= 0.05")
    _, rounds = solved(data, age="= 0.05", backend="acs")
    assert exact.backend == "group_path"
    np.testing.assert_allclose(exact["w"], rounds["w"], atol=1e-4)


def test_a_saved_path_is_as_exact_after_loading(tmp_path):
    _, path = solved(sample(2))
    path.save(tmp_path / "path.npz")
    loaded = spdsl.load_result(tmp_path / "path.npz")
    for age in np.linspace(*path.age_range, 5)[1:-1]:
        again = loaded(float(age))
        assert again.kkt_residual <= 1e-10
        np.testing.assert_allclose(again["w"], path(float(age))["w"], atol=1e-12)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"loss": "hinge(y * (X @ w + b)) / n"}, "the loss has kinks"),
        ({"self_paced": "hard(lambda)"}, "the weights jump"),
        ({"regularizer": "0.1 * norm1(w)"}, "no group norm"),
        ({"rest": "subject to\n  w >= 0"}, "constraints"),
        ({"regularizer": "0.1 * group_norm(w, g) + 0.1 * norm2(w)"}, "overlap"),
        ({"regularizer": "0.1 * norm2(X @ w)"}, "coefficients alone"),
    ],
)
def test_what_it_does_not_take_it_says(change, why):
    with pytest.raises(SolverError, match=why):
        solved(sample(0, labels=True), backend="group_path", **change)


def test_a_start_that_does_not_settle_says_how_far_it_was(monkeypatch):
    monkeypatch.setattr(backend, "search", partial(search, most=1))
    with pytest.raises(SolverError, match=r"to start from: 1 rounds don't settle, predictions still move by \d"):
        solved(sample(0), backend="group_path")

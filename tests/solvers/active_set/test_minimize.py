"""The exact w-problem: cvxpy's optimum, for every loss, regularizer and any weights; first minima along rays."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from problems import LOSSES, MARGIN_LOSSES, classification, make, regression

from spdsl.reference.stationarity import kkt_residual
from spdsl.solvers.active_set.build import build
from spdsl.solvers.active_set.flow import flow_down
from spdsl.solvers.active_set.minimize import minimize, residual
from spdsl.solvers.active_set.ray import Ray, first_minimum
from spdsl.solvers.active_set.weighting import FixedWeights

D = 5
REGULARIZERS = [
    {"l1": 0.03},
    {"l2": 0.1},
    {"l1": 0.02, "l2": 0.05, "intercept": True},
    {"l1": 0.02, "nonnegative": True},
    {"l2": 0.1, "fused": 0.02, "D": np.diff(np.eye(D), axis=0)},
    {},
]


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: "+".join(r) or "none")
def test_the_w_problem_is_solved_for_random_weights(loss, regularizer):
    X, y = classification(30, D, 1, flipped=0.4) if loss in MARGIN_LOSSES else regression(30, D, 1)
    bound = make(X, y, loss=loss, self_paced=None, factor=0.05, **regularizer)
    v = np.random.default_rng(2).uniform(0.2, 1.0, 30)
    system = build(bound, self_paced=False).with_weighting(FixedWeights(v))
    minimum = minimize(system, 1.0, np.zeros(system.p))
    assert minimum.failure == ""
    assert residual(system, minimum.evaluation) < 1e-10
    assert kkt_residual(bound, minimum.point.x, v) < 1e-9


def test_lasso_against_cvxpy():
    X, y = regression(40, 8, 3)
    w = cp.Variable(8)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - y) / 80 + 0.05 * cp.norm1(w)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    system = build(make(X, y, l1=0.05, self_paced=None), self_paced=False)
    assert np.abs(minimize(system, 1.0, np.zeros(8)).point.x - w.value).max() < 1e-6


@pytest.mark.parametrize("loss", ["squared", "hinge", "quantile"])
def test_a_ray_of_a_convex_problem_is_stopped_at_its_minimum_and_no_earlier(loss):
    X, y = classification(40, 3, 0) if loss == "hinge" else regression(40, 3, 0)
    bound = make(X, y, loss=loss, l1=0.02, self_paced=None)
    system = build(bound, self_paced=False)
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, d = rng.standard_normal(3), rng.standard_normal(3)
        point = system.point(1.0, x, system.labels(x, 1.0))
        d = -d if Ray(system, point, d).slope(1e-9) >= 0.0 else d
        step = first_minimum(system, point, d, 1.0, careful=False).step
        at = bound.objective(x + step * d)
        for t in np.linspace(0.0, 2.0 * step + 1.0, 200):
            assert bound.objective(x + t * d) >= at - 1e-12


@pytest.mark.parametrize("loss", ["squared", "hinge", "quantile"])
def test_a_ray_of_a_latent_objective_is_stopped_at_a_lower_local_minimum(loss):
    X, y = classification(40, 3, 0) if loss == "hinge" else regression(40, 3, 0)
    bound = make(X, y, loss=loss, l1=0.02, age=0.05)
    system = build(bound)
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, d = rng.standard_normal(3), rng.standard_normal(3)
        point = system.point(0.05, x, system.labels(x, 0.05))
        d = -d if Ray(system, point, d).slope(1e-9) >= 0.0 else d
        landing = first_minimum(system, point, d, 1.0, careful=True)
        at = bound.objective(x + landing.step * d, 0.05)
        assert at < bound.objective(x, 0.05)
        assert bound.objective(x + (landing.step + 1e-6) * d, 0.05) >= at - 1e-12
        assert bound.objective(x + (landing.step - 1e-6) * d, 0.05) >= at - 1e-12


def test_the_flow_ends_at_a_lower_minimum_from_anywhere():
    for seed in range(5):
        X, y = regression(30, 3, seed)
        bound = make(X, y, l1=0.02, self_paced="mixture", factor=4 / 30, age=0.1)
        start = np.random.default_rng(seed).standard_normal(3)
        x = flow_down(build(bound), 0.1, start).point.x
        assert bound.objective(x, 0.1) < bound.objective(start, 0.1)
        near = x + 1e-4 * np.random.default_rng(0).standard_normal((200, 3))
        assert min(bound.objective(point, 0.1) for point in near) >= bound.objective(x, 0.1)


def test_a_problem_without_an_optimum_is_called_unbounded():
    X, y = regression(20, 2, 0)
    bound = make(X, y, loss="quantile", self_paced=None)
    system = build(bound, self_paced=False)
    system.q = np.array([10.0, 0.0])  # a linear term that outgrows the loss
    assert minimize(system, 1.0, np.zeros(2)).failure == "unbounded"

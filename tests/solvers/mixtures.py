"""Mixes of a loss, a regularizer and an SP-regularizer on random data, and their w-problems by cvxpy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from problems import MARGIN_LOSSES, classification, make, regression

D = 4
REGULARIZERS = {
    "lasso": {"l1": 0.03},
    "ridge": {"l2": 0.1},
    "elastic net": {"l1": 0.02, "l2": 0.05},
    "ridge and intercept": {"l2": 0.1, "intercept": True},
    "non-negative lasso": {"l1": 0.02, "nonnegative": True},
    "fused": {"l2": 0.1, "fused": 0.02, "D": np.diff(np.eye(D), axis=0)},
}


def bound_problem(loss, regularizer, self_paced, seed, n=24, age=("quantiles", 0.3, 1.0), rounded=False):
    X, y = classification(n, D, seed) if loss in MARGIN_LOSSES else regression(n, D, seed)
    if rounded:  # ties: few distinct values, and rows that occur twice
        X = np.round(X)
        y = y if loss in MARGIN_LOSSES else np.round(y)
    factor = (4.0 if self_paced == "mixture" else 1.0) / n
    return make(X, y, loss=loss, self_paced=self_paced, factor=factor, age=age, **REGULARIZERS[regularizer])


def convex_optimum(bound, v):
    """The w-problem's optimal value at sample weights v, by cvxpy."""
    X, y = bound.data["X"], bound.data["y"]
    k = bound.parameters
    w, b = cp.Variable(X.shape[1]), cp.Variable() if "b" in bound.layout.slices else 0.0
    margin = cp.multiply(y, X @ w + b)
    rest = X @ w + b - y
    losses = {
        "squared": lambda: cp.square(rest) / 2,
        "huber": lambda: cp.huber(rest, 1.0) / 2,
        "quantile": lambda: cp.maximum(0.3 * rest, -0.7 * rest),
        "logistic": lambda: cp.logistic(-margin),
        "hinge": lambda: cp.pos(1 - margin),
        "squared_hinge": lambda: cp.square(cp.pos(1 - margin)),
        "epsilon": lambda: cp.pos(cp.abs(rest) - 0.2),
    }
    label = bound.problem.loss.function.pieces[0].value.text
    objective = k["factor"] * (v @ losses[label]()) + k["l1"] * cp.norm1(w) + k["l2"] / 2 * cp.sum_squares(w)
    if k["fused"]:
        objective += k["fused"] * cp.norm1(bound.data["D"] @ w)
    problem = cp.Problem(cp.Minimize(objective), [w >= 0] if bound.problem.constraints else [])
    problem.solve(solver=cp.CLARABEL)  # to 1e-8
    return float(problem.value)


def convex_value(bound, x, v):
    return float(v @ bound.losses(x)) + bound.regularization(x)

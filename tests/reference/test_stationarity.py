"""The distance from 0 to the subdifferential, against its dual: the steepest descent over all feasible directions.

For a convex F and a convex set C, dist(0, dF(x) + N_C(x)) = max over unit d in the tangent cone of C at x of -F'(x; d).
The right side needs no multiplier and no derivative: F' is a difference quotient of the objective, and the directions
of a plane or a sphere can be searched.
"""

from __future__ import annotations

import numpy as np
import pytest

from reference.fits import bound, classification, cvx_point, linear, regression
from spdsl.reference.feasibility import infeasibility
from spdsl.reference.stationarity import kkt_residual, residual_vector

STEP = 1e-6
SQUARES = "minimize\n  loss (X @ w - y)^2 / (2*n)\n"
PLANE = regression(n=40, d=2)
SIGNS = classification(n=40, d=2)


def descent_rate(problem, x, weights):
    """d -> -F'(x; d), minus infinity where x + d leaves the constraints."""

    def total(point):
        losses = problem.losses(point) if problem.problem.loss else np.zeros(0)
        return float(weights @ losses) + problem.regularization(point)

    at_x = total(x)
    allowed = 1e-11  # of a step of 1e-6: a curved border is left by 1e-12 only

    def rate(d):
        moved = x + STEP * d
        return (at_x - total(moved)) / STEP if infeasibility(problem, moved) <= allowed else -np.inf

    return rate


def steepest_descent(problem, x, weights, spread=None) -> float:
    """max of -F'(x; d) over feasible unit directions, and 0.

    -F'(x; .) is concave, so the search narrows down around the best direction of a coarse net.
    """
    rate = descent_rate(problem, x, weights)
    spread = spread or (lambda d: d)
    rng = np.random.default_rng(0)
    size = len(x) if len(x) == 2 else 3  # a symmetric 2 x 2 matrix has three coordinates
    if size == 2:
        angles = np.arange(180) * np.pi / 90
        net = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        net = rng.normal(size=(900, 3))
    best, at, width = 0.0, net[0], 0.05 if size == 2 else 0.25
    for _ in range(6):
        for d in net:
            unit = d / np.linalg.norm(d)
            found = rate(spread(unit))
            if found > best:
                best, at = found, unit
        net = at + width * rng.uniform(-1, 1, size=(60 if size == 2 else 150, size))
        width /= 4
    return best


REGULARIZERS = {
    "l1": ("regularizer alpha * norm1(w)", {}),
    "l2 squared": ("regularizer alpha * sum_squares(w)", {}),
    "l2": ("regularizer alpha * norm(w)", {}),
    "elastic net": ("regularizer alpha * norm1(w) + sum_squares(w)/4", {}),
    "generalized lasso": ("regularizer alpha * norm1(D @ w)", {"D": np.array([[1.0, -1.0], [0.5, 0.5], [1.0, 0.0]])}),
    "group": ("regularizer alpha * group_norm(w, g)", {"g": np.array([0.0, 0.0])}),
    "two groups": ("regularizer alpha * group_norm(w, g)", {"g": np.array([0.0, 1.0])}),
    "huber": ("regularizer alpha * sum(huber(w, 0.2))", {}),
    "affine": ("regularizer alpha * sum(w)", {}),
    "insensitive": ("regularizer alpha * sum(epsilon_insensitive(w, 0.3))", {}),
}
POINTS = {
    "anywhere": np.array([0.37, -0.81]),
    "zero": np.zeros(2),
    "on an axis": np.array([0.0, 0.6]),
    "on the diagonal": np.array([0.3, 0.3]),
    "at the corner": np.array([0.3, -0.3]),
}


def with_data(text: str, names) -> str:
    kinds = {"D": "matrix(k, d)", "g": "vector(d)", "Z": "matrix(n, d)"}
    return text.replace("data\n", "data\n" + "".join(f"  {name} : {kinds[name]}\n" for name in names), 1)


@pytest.mark.parametrize("place", POINTS)
@pytest.mark.parametrize("name", REGULARIZERS)
def test_every_regularizers_distance_is_the_steepest_descent(name, place):
    text, more = REGULARIZERS[name]
    problem = bound(with_data(linear(SQUARES + text), more), {"alpha": 0.4}, **PLANE, **more)
    x, v = POINTS[place], np.linspace(0.1, 1, 40)
    residual, _ = residual_vector(problem, x, v, touch=1e-12)
    descent = steepest_descent(problem, x, v)
    assert np.linalg.norm(residual) == pytest.approx(descent, abs=2e-5)


LOSSES = {
    "hinge": "loss hinge(y * (X @ w)) / n",
    "squared hinge": "loss squared_hinge(y * (X @ w)) / n",
    "logistic": "loss logistic(y * (X @ w)) / n",
    "absolute": "loss abs(X @ w - y) / n",
    "quantile": "loss quantile(y - X @ w, 0.3) / n",
    "insensitive": "loss epsilon_insensitive(X @ w - y, 0.25) / n",
    "huber": "loss huber(X @ w - y, 0.5) / n",
    "largest of three": "loss max(X @ w - y, 0.5 * (y - Z @ w), 0.1) / n",
}


@pytest.mark.parametrize("kinked", [0, 1, 4])
@pytest.mark.parametrize("name", LOSSES)
def test_every_losss_distance_is_the_steepest_descent_with_samples_at_their_kinks(name, kinked):
    x = np.array([0.7, -0.2])
    data = {**SIGNS, "y": SIGNS["y"].astype(float)}
    X = data["X"].copy()
    if name in ("absolute", "quantile"):
        data["y"][:kinked] = X[:kinked] @ x
    elif name == "insensitive":
        data["y"][:kinked] = X[:kinked] @ x - 0.25
    elif name == "hinge":  # put rows on the margin: y x'w = 1
        X[:kinked] += np.outer(data["y"][:kinked] - X[:kinked] @ x, x / (x @ x))
    more = {}
    if name == "largest of three":
        more["Z"] = np.roll(X, 1, axis=0)
        more["Z"][:kinked] = X[:kinked]
        data["y"][:kinked] = X[:kinked] @ x  # both of the first two are 0 there, below 0.1
        data["y"][:kinked] -= 0.1  # and now the first meets the third
    target = "labels" if "hinge" in name or name == "logistic" else "vector"
    text = with_data(linear("minimize\n" + LOSSES[name] + "\nregularizer sum_squares(w)/9", target), more)
    problem = bound(text, X=X, y=data["y"], **more)
    v = np.linspace(0.2, 1, 40)
    residual, _ = residual_vector(problem, x, v, touch=1e-9)
    assert np.linalg.norm(residual) == pytest.approx(steepest_descent(problem, x, v), abs=3e-5)


CONSTRAINTS = {
    "nonnegative": ("w >= 0", [np.array([0.0, 0.4]), np.zeros(2), np.array([0.2, 0.3])]),
    "a line": ("sum(w) == 1", [np.array([0.4, 0.6])]),
    "a half plane": ("sum(w) <= 0.5", [np.array([0.2, 0.3]), np.array([0.0, 0.1])]),
    "the l1 ball": ("norm1(w) <= 0.5", [np.array([0.2, 0.3]), np.array([0.5, 0.0]), np.array([0.0, -0.5])]),
    "the l2 ball": ("norm(w) <= 0.5", [np.array([0.3, 0.4]), np.array([0.1, 0.1])]),
    "the box": ("max(abs(w)) <= 0.5", [np.array([0.5, -0.5]), np.array([-0.5, 0.2])]),
    "a box with corners": ("w >= -0.1\n  w <= 0.4", [np.array([0.4, -0.1]), np.array([0.4, 0.0])]),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_constraints_distance_is_the_steepest_feasible_descent(name):
    rows, points = CONSTRAINTS[name]
    text = linear(SQUARES + f"regularizer alpha * norm1(w)\nsubject to\n  {rows}")
    problem = bound(text, {"alpha": 0.1}, **PLANE)
    for x in points:
        v = np.ones(40)
        residual, _ = residual_vector(problem, x, v, touch=1e-9)
        if name == "a line":  # no net of directions meets it
            rate = descent_rate(problem, x, v)
            descent = max(rate(np.array([1.0, -1.0]) / np.sqrt(2)), rate(np.array([-1.0, 1.0]) / np.sqrt(2)))
        else:
            descent = steepest_descent(problem, x, v)
        assert np.linalg.norm(residual) == pytest.approx(max(descent, 0.0), abs=1e-4)


METRIC = """data
  U : matrix(T, d)
  y : labels(T)

parameter
  rho = 0.3

variable
  M : symmetric(d)

minimize
  loss         hinge(y * (1 - mahalanobis(M, U))) / T
  regularizer  rho * trace_norm(M)
"""
PAIRS = {"U": np.random.default_rng(0).normal(size=(12, 2)), "y": np.tile([-1, 1], 6)}
MATRICES = {
    "positive": np.array([[1.0, 0.2], [0.2, 0.5]]),
    "of rank one": np.array([[1.0, 0.5], [0.5, 0.25]]),
    "zero": np.zeros((2, 2)),
    "indefinite": np.array([[0.4, 0.1], [0.1, -0.3]]),
    "negative of rank one": np.array([[-1.0, 0.5], [0.5, -0.25]]),
}


@pytest.mark.parametrize(
    ("name", "cone"),
    [(name, False) for name in MATRICES] + [(name, True) for name in ("positive", "of rank one", "zero")],
)
def test_trace_norms_and_the_semidefinite_cone_agree_with_the_steepest_descent(name, cone):
    M = MATRICES[name]
    problem = bound(METRIC + ("\nsubject to\n  M >> 0\n" if cone else ""), **PAIRS)
    x, v = M.ravel(), np.ones(12)
    residual, _ = residual_vector(problem, x, v, touch=1e-9)
    half = 1 / np.sqrt(2)
    descent = steepest_descent(problem, x, v, lambda d: np.array([d[0], half * d[-1], half * d[-1], d[1]]))
    assert np.linalg.norm(residual) == pytest.approx(descent, abs=2e-3)


KERNEL = """data
  X : matrix(n, d)
  y : labels(n)

variable
  f : rkhs(X, rbf(0.5))
  b : scalar

minimize
  loss         hinge(y * (f(X) + b))
  regularizer  norm(f)^2 / 2
"""


def test_at_optima_the_residual_vanishes_and_beside_them_it_does_not():
    lasso = linear(SQUARES + "regularizer alpha * norm1(w)", intercept=True).replace("X @ w - y", "X @ w + b - y")
    svm = linear("minimize\nloss hinge(y * (X @ w + b))\nregularizer norm(w)^2/2", "labels", intercept=True)
    for text, data in ((lasso, regression()), (svm, classification()), (KERNEL, classification(30))):
        problem = bound(text, **data)
        x = cvx_point(problem)
        v = np.ones(problem.n_samples)
        assert kkt_residual(problem, x, v) < 1e-5
        moved = x + 1e-3 * np.random.default_rng(0).normal(size=x.size)
        assert kkt_residual(problem, moved, v) > 1e-4
        assert kkt_residual(problem, x, 0.9 * v) > 1e-3


def test_an_exact_optimum_has_a_residual_at_machine_precision():
    X = np.eye(3) * np.sqrt(3.0)
    y = np.array([3.0, 0.01, -2.0])
    problem = bound(linear(SQUARES + "regularizer alpha * norm1(w)"), X=X, y=y)
    z = y / np.sqrt(3.0)  # X'X/n = I: the lasso is soft-thresholding of X'y/n
    x = np.sign(z) * np.maximum(np.abs(z) - 0.05, 0)
    assert x[1] == 0
    assert kkt_residual(problem, x, np.ones(3)) <= 1e-12


def test_the_scale_makes_the_residual_free_of_units():
    data = regression()
    problem = bound(linear(SQUARES), **data)
    x = np.full(4, 0.3)
    large = bound(linear(SQUARES), X=data["X"] * 1e-4, y=data["y"] * 1e5)
    v = np.ones(60)
    assert kkt_residual(problem, x, v) == pytest.approx(kkt_residual(large, x * 1e9, v), rel=1e-9)


def test_a_kink_that_is_nearly_touched_counts_with_its_distance():
    text = "data\n  y : vector(n)\nvariable\n  t : scalar\nminimize\n  loss abs(t - y) + (t - y)^2"
    problem, v = bound(text, y=[1.0]), np.ones(1)
    assert kkt_residual(problem, np.array([1.0]), v) <= 1e-12
    assert kkt_residual(problem, np.array([1.0 + 1e-8]), v) == pytest.approx(1e-7, abs=1e-7)
    assert kkt_residual(problem, np.array([1.1]), v) > 0.1


def test_outside_the_found_support_nothing_counts():
    data = regression()
    text = linear(SQUARES + "subject to\n  support(w) in sparse(size = 2)")
    problem = bound(text, **data)
    x = np.zeros(4)
    x[[0, 2]] = np.linalg.lstsq(data["X"][:, [0, 2]], data["y"], rcond=None)[0]
    assert kkt_residual(problem, x, np.ones(60)) <= 1e-12

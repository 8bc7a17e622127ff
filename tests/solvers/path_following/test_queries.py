"""`path(age)` anywhere on a path: on the branch, exact, and by at most two Newton steps from the nearest stop."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from problems import classification, make, regression

import spdsl
from spdsl.data import bind
from spdsl.reference.stationarity import kkt_residual
from spdsl.solvers.active_set.minimize import minimize
from spdsl.solvers.active_set.sweeps import sweeps_of
from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions
from spdsl.solvers.path_following.tracker import Tracker

MODELS = [
    ("squared", "linear", {"l1": 0.02}),
    ("squared", "mixture", {"l1": 0.02}),
    ("logistic", "linear", {"l2": 0.1, "intercept": True}),
    ("squared_hinge", "log", {"l1": 0.01, "l2": 0.05}),
]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: " ".join(model[:2]))
def solved(request):
    loss, self_paced, regularizers = request.param
    X, y = (regression if loss == "squared" else classification)(60, 5, 4)
    factor = (4.0 if self_paced == "mixture" else 1.0) / 60
    age = ("quantiles", 0.3, 1.0)
    bound = make(X, y, loss=loss, self_paced=self_paced, factor=factor, age=age, **regularizers)
    return bound, run(PathFollowing(), bound, PathOptions())


def test_a_query_is_exact_after_at_most_two_newton_steps(solved):
    bound, path = solved
    for age in np.random.default_rng(1).uniform(*path.age_range, 60):
        k = int(np.searchsorted(path.ages, age, side="right")) - 1
        found = path.branch._settled(path.branch._leaper, k, age)
        assert found is not None
        assert found.iterations <= 2
        solution = path(age)
        assert solution.kkt_residual <= 1e-10
        assert kkt_residual(bound, solution.x, solution.weights) <= 1e-9


def test_a_query_is_on_the_branch_not_on_another(solved):
    """The same answer as following the path from its start to that very age and no farther."""
    _, path = solved
    for age in np.random.default_rng(2).uniform(*path.age_range, 3):
        k = int(np.searchsorted(path.ages, age, side="right")) - 1
        followed = path.branch._followed(k, age)
        assert np.abs(followed.point.x - path(age).x).max() <= 1e-9


def test_an_answer_does_not_depend_on_the_questions_before_it(solved):
    bound, path = solved
    ages = np.random.default_rng(3).uniform(*path.age_range, 6)
    other = PathFollowing().resume(bound, path)
    forward = [path(age).x for age in ages]
    backward = [other.at(age)[0] for age in ages[::-1]][::-1]
    assert np.array_equal(forward, backward)


def test_leaps_pass_no_event_unnamed(solved):
    """The critical points are those of the path that stops at every event."""
    _, path = solved
    tracker = Tracker(path.branch.system, leaps=False)
    node = tracker.start(minimize(path.branch.system, path.ages[0], path.nodes[0]), 0.05 * np.ptp(path.ages))
    ages = []
    while node.age < path.ages[-1]:
        node = tracker.advance(node, path.ages[-1])
        if node.kind in ("turning", "jump"):
            ages.append(node.age)
    found = np.array([point.age for point in path.critical_points])
    for age in ages:
        assert np.abs(found - age).min() <= 1e-8 * age
    for age in found:
        assert np.abs(np.array(ages) - age).min() <= 1e-8 * age


SOURCE = """data
  X : matrix(n, d)
  y : {kind}(n)
variable
  w : vector(d)
age lambda in quantiles(0.3, 1)
minimize
  loss {loss} / n
  regularizer 0.02 * {regularizer}
  self_paced {self_paced}
"""
WRITTEN = {
    "squared linear": ("vector", "(X @ w - y)^2", "norm1(w)", "linear(lambda)"),
    "logistic mixture": ("labels", "logistic(y * (X @ w))", "sum_squares(w)", "mixture(lambda, 0.5)"),
}


@pytest.fixture(scope="module", params=WRITTEN)
def compiled(request):
    """A written model's problem, and its path by passes in NumPy and in compiled loops."""
    kind, loss, regularizer, self_paced = WRITTEN[request.param]
    X, y = (regression if kind == "vector" else classification)(300, 5, 4)  # more than one chunk of samples
    text = SOURCE.format(kind=kind, loss=loss, regularizer=regularizer, self_paced=self_paced)
    bound = bind(spdsl.parse(text).problem, arrays={"X": X, "y": y})
    return bound, *(run(PathFollowing(), bound, PathOptions(compiled=how)) for how in ("never", "always"))


def test_compiled_passes_give_the_same_path(compiled):
    _, plain, fast = compiled
    assert fast.branch.system.blocks[0].loops is not None
    assert plain.branch.system.blocks[0].loops is None
    assert np.allclose([jump.age for jump in fast.jumps], [jump.age for jump in plain.jumps], rtol=1e-9)
    for age in np.random.default_rng(4).uniform(*plain.age_range, 30):
        assert np.abs(fast(age).x - plain(age).x).max() <= 1e-8


def test_compiled_passes_find_the_same_numbers(compiled):
    _, plain, fast = compiled
    first, second = (sweeps_of(path.branch.system.blocks[0]) for path in (plain, fast))
    free = np.array([0, 2, 3])
    rng = np.random.default_rng(5)
    p = plain.branch.system.p
    ages = np.quantile(plain.branch.system.losses(plain.nodes[-1]), [0.6, 0.7])
    x0 = plain.nodes[-1]
    x1 = x0 + 0.02 * rng.standard_normal(p)
    dx = rng.standard_normal(free.size)
    ends = []
    for sweeps in (first, second):
        start, end = sweeps.newton(x0, ages[0], free), sweeps.newton(x1, ages[1], free)
        (du0, change0), (du1, _) = (sweeps.along(sweep, free, dx, True) for sweep in (start, end))
        lowest = sweeps.lowest(free, tuple(ages), start, du0, end, du1)
        ends.append([*(getattr(start, what) for what in ("gradient", "by_age", "size", "H")), start.rows[:4]])
        ends[-1] += [du0, change0, sweeps.convex(start, free), lowest]
    for one, other in zip(*ends):
        assert np.allclose(one, other, rtol=1e-10, atol=1e-13)
    H = first.newton(x1, ages[1], free).H
    assert np.linalg.eigvalsh(H - ends[0][-1])[0] >= -1e-12  # the lowest Hessian is below that of an end


def test_a_path_can_be_pickled_and_copied(compiled):
    _, *paths = compiled
    for path in paths:
        for other in (pickle.loads(pickle.dumps(path)), copy.deepcopy(path)):
            age = float(np.mean(path.age_range))
            assert np.array_equal(other(age).x, path(age).x)
            assert other.critical_points == path.critical_points

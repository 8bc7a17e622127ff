"""Kernel SVM paths in the dual: held against scikit-learn at v*, cvxpy, brute-force alternate search, and features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import spdsl
from spdsl.data import bind
from spdsl.problem.kernels import gram
from spdsl.solvers import dispatch
from spdsl.solvers.active_set import flow
from spdsl.solvers.kernel_path.bordered import BorderedInverse
from spdsl.solvers.kernel_path.fit import fit, zero
from spdsl.solvers.kernel_path.model import DualModel
from spdsl.solvers.kernel_path.search import search
from spdsl.solvers.kernel_path.smo import near

MODEL = """
data
  X : matrix(n, d)
  y : {data}(n)
variable
  f : rkhs(X, {kernel})
{intercept}
age lambda {age}
minimize
  loss         {loss}
  regularizer  norm(f)^2 / 2
  self_paced   {paced}
"""


def bound(paced, kernel, X, y):
    return bind(model(paced, kernel, age="in quantiles(0.4, 1)").problem, arrays={"X": X, "y": y})


BLEND = "define blend(v, lambda) = 0.04 / (v + 0.2/lambda)\n"


def samples(n=36, seed=0, flipped=0.15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < flipped, -y, y)


def model(
    paced, kernel="rbf(0.7)", loss="hinge(y * (f(X) + b))", age="in [0.8, 2]", data="labels", intercept="  b : scalar"
):
    text = MODEL.format(paced=paced, kernel=kernel, loss=loss, age=age, data=data, intercept=intercept)
    return spdsl.parse((BLEND if "blend" in paced else "") + text)


def svc(X, y, weights, gamma=0.7):
    from sklearn.svm import SVC

    kept = weights > 1e-12
    if len(set(y[kept])) < 2:
        return None
    fitted = SVC(C=1.0, gamma=gamma, tol=1e-10).fit(X[kept], y[kept], sample_weight=weights[kept])
    return fitted.decision_function(X)


@pytest.mark.parametrize(
    "paced", ["linear(lambda)", "mixture(lambda, 0.5)", "hard(lambda)", "log(lambda, 1)", "blend(lambda)"]
)
@pytest.mark.filterwarnings("ignore::spdsl.diagnostics.SpdslWarning")
def test_an_svm_path_is_exact_and_agrees_with_scikit_learn_at_its_own_weights(paced):
    X, y = samples()
    path = model(paced).solve(X=X, y=y, backend="kernel_path")
    assert path.status.ok
    assert path.worst_kkt_residual <= 1e-8
    assert len(path.critical_points) >= 3
    compared = 0
    for age in np.linspace(*path.age_range, 6)[1:]:
        solution = path(float(age))
        assert solution.kkt_residual <= 1e-8
        truth = svc(X, y, solution.weights)
        if truth is not None:
            compared += 1
            ours = gram("rbf", X, X, {"gamma": 0.7}) @ solution["f"] + solution["b"]
            assert_allclose(ours, truth, atol=1e-5)
    assert compared >= 3


@pytest.mark.parametrize(
    ("loss", "intercept"),
    [
        ("quantile(y - f(X) - b, 0.3)", "  b : scalar"),
        ("epsilon_insensitive(f(X) + b - y, 0.2)", "  b : scalar"),
        ("abs(f(X) - y)", ""),
    ],
)
def test_other_kinked_losses_have_paths_that_cvxpy_certifies(loss, intercept):
    X, _ = samples(25)
    y = np.sin(X[:, 0]) + np.where(np.arange(25) % 5 == 0, 3.0, 0.0)
    compiled = model("linear(lambda)", loss=loss, data="vector", age="in [0.3, 2]", intercept=intercept)
    path = compiled.solve(X=X, y=y, backend="kernel_path")
    assert path.worst_kkt_residual <= 1e-8
    certificate = compiled.check(path, ages=np.linspace(*path.age_range, 3))
    assert certificate.ok, str(certificate)


def test_kernels_of_few_features_are_left_to_the_engine_over_features():
    X, y = samples(24, seed=3)
    compiled = model("linear(lambda)", "linear()", age="in quantiles(0.9, 1)")
    assert compiled.solve(X=X, y=y).backend == "path_following"
    assert not dispatch.get("kernel_path").suits(bound("linear(lambda)", "polynomial(2)", *samples(2001)))
    assert dispatch.get("kernel_path").suits(bound("linear(lambda)", "polynomial(2)", X, y))


def test_the_dual_and_the_features_give_one_path():
    X, y = samples(24, seed=3)
    compiled = model("linear(lambda)", "rbf(0.3)", age="in [1.2, 2.5]")
    dual = compiled.solve(X=X, y=y, backend="kernel_path")
    features = compiled.solve(X=X, y=y, backend="path_following")
    for age in (1.3, 1.9, 2.4):
        first, second = dual(age), features(age)
        assert first.objective == pytest.approx(second.objective, rel=1e-8)
        assert_allclose(first.losses, second.losses, atol=1e-6)


@pytest.mark.parametrize("seed", [2])
@pytest.mark.parametrize(
    ("paced", "age"),
    [
        ("linear(lambda)", "in [1.1, 2.4]"),
        ("mixture(lambda, 0.5)", "in [0.5, 1.5]"),  # smooth folds end its branches
        ("hard(lambda)", "in [0.9, 2.4]"),
        ("log(lambda, 1)", "in [0.9, 2.4]"),
        ("blend(lambda)", "in [0.4, 1.5]"),
    ],
)
@pytest.mark.filterwarnings("ignore::spdsl.diagnostics.SpdslWarning")
def test_the_branch_is_that_of_the_engine_over_features_and_cvxpy_certifies_it_at_random_ages(
    paced, age, seed, monkeypatch
):
    monkeypatch.setattr(flow, "FAITHFUL", 0.02)  # landings of the reference in steps ten times finer
    X, y = samples(32, seed=seed, flipped=0.3)
    compiled = model(paced, "rbf(0.5)", loss="2 * hinge(y * (f(X) + b))", age=age)
    dual = compiled.solve(X=X, y=y, backend="kernel_path")
    features = compiled.solve(X=X, y=y, backend="path_following")
    assert dual.status.ok, dual.message
    assert len(dual.jumps) == len(features.jumps)
    assert_allclose([point.age for point in dual.jumps], [point.age for point in features.jumps], rtol=1e-7)
    ages = np.random.default_rng(seed).uniform(*dual.age_range, 20)
    for at in ages:
        assert dual(float(at)).objective == pytest.approx(
            features(float(at)).objective, rel=1e-8
        )  # b may not be unique
    certificate = compiled.check(dual, ages=ages)
    assert certificate.ok, str(certificate)


def test_a_smooth_fold_is_one_jump():
    X, y = samples(100, seed=0, flipped=0.3)
    path = model("mixture(lambda, 0.5)", "rbf(0.5)", age="in [0.4, 1.4]").solve(X=X, y=y, backend="kernel_path")
    assert path.status.ok, path.message
    assert 1 <= len(path.jumps) <= 8
    assert all(point.change > 1e-3 for point in path.jumps)
    assert path.worst_kkt_residual <= 1e-10


def test_the_hard_paths_jumps_are_those_of_brute_force_alternate_search():
    X, y = samples(24, seed=5)
    path = model("hard(lambda)", age="in [0.8, 2]").solve(X=X, y=y)
    K = gram("rbf", X, X, {"gamma": 0.7})
    age, losses, expected = 0.8, np.maximum(0.0, 1.0 - y * (K @ path(0.8)["f"] + path(0.8)["b"])), []
    chosen = losses < age
    while True:  # the next sample comes in when the age is its loss; then alternate search until nothing changes
        waiting = losses[~chosen]
        if waiting.size == 0 or waiting.min() >= 2.0:
            break
        age = float(waiting.min())
        before = losses
        for _ in range(100):
            inside = losses <= age * (1 + 1e-7)
            if np.array_equal(inside, chosen):
                break
            chosen = inside
            losses = np.maximum(0.0, 1.0 - y * svc(X, y, chosen.astype(float)))
        if np.abs(losses - before).max() > 1e-6:
            expected.append(age)
    assert len(expected) >= 3
    assert_allclose([point.age for point in path.jumps], expected, rtol=1e-5)


def test_the_fit_at_any_weights_is_that_of_scikit_learn():
    X, y = samples(120, seed=2)
    X[7], y[7] = X[3], y[3]  # equal samples are one with a multiplicity
    X[9], y[9] = X[4], -y[4]
    weights = np.random.default_rng(0).random(120)
    weights[7] = weights[3]
    dual = DualModel(bind(model("linear(lambda)").problem, arrays={"X": X, "y": y}))
    assert dual.n == 119
    found = fit(dual, weights[dual.first], zero(dual))
    assert not found.failure
    assert_allclose(dual.s * found.z, svc(X, y, weights)[dual.first], atol=1e-6)


def test_a_start_by_libsvm_leads_to_the_same_fit_as_one_from_nothing():
    X, y = samples(420, seed=4, flipped=0.3)
    dual = DualModel(bind(model("linear(lambda)").problem, arrays={"X": X, "y": y}))
    weights = np.random.default_rng(1).random(dual.n)
    weights[:40] = 0.0
    guess = near(dual, weights)
    assert guess is not None
    first, second = fit(dual, weights, guess), fit(dual, weights, zero(dual))
    assert not first.failure
    assert_allclose(first.z, second.z, atol=1e-8)
    assert_allclose(first.mu, second.mu, atol=1e-8)


def test_rows_that_come_and_go_leave_the_inverse_exact():
    rng = np.random.default_rng(0)
    n = 30
    root = rng.normal(size=(n, n))
    Q, B = root @ root.T, rng.normal(size=(n, 1))
    kept = BorderedInverse(1, n)
    kept.rebuild(np.array([0]), np.array([[0.0, B[0, 0]], [B[0, 0], Q[0, 0]]]))
    for row in [*range(1, 12), *range(20, 25)]:
        kept.add(row, np.concatenate([B[row], Q[row, kept.index]]), Q[row, row])
    for row in (3, 24, 0, 7):
        kept.remove(row)
    index = kept.index
    M = np.block([[np.zeros((1, 1)), B[index].T], [B[index], Q[np.ix_(index, index)]]])
    assert_allclose(kept.N[: kept.k, : kept.k] @ M, np.eye(kept.k), atol=1e-8)


def test_a_saved_svm_path_goes_on_exactly(tmp_path):
    X, y = samples()
    path = model("linear(lambda)").solve(X=X, y=y)
    path.save(tmp_path / "svm.npz")
    loaded = spdsl.load_result(tmp_path / "svm.npz")
    for age in (0.87, 1.1, 1.73):
        assert_allclose(loaded(age).x, path(age).x, atol=1e-8)
        assert loaded(age).kkt_residual <= 1e-8
    assert [point.cause for point in loaded.critical_points] == [point.cause for point in path.critical_points]


@pytest.mark.filterwarnings("ignore::spdsl.diagnostics.SpdslWarning")
@pytest.mark.parametrize(("seed", "paced"), [(0, "log(lambda, 1)"), (4, "linear(lambda)"), (0, "hard(lambda)")])
def test_few_features_and_many_samples_at_their_kinks_have_exact_paths(seed, paced):
    X, y = samples(40, seed=seed, flipped=0.25)
    compiled = model(paced, "polynomial(2)", age="in quantiles(0.4, 1)")
    path = compiled.solve(X=X, y=y)
    assert path.backend == "kernel_path"
    assert path.status is spdsl.Status.EXACT, path.message
    certificate = compiled.check(path, ages=np.linspace(*path.age_range, 4))
    assert certificate.ok, str(certificate)


@pytest.mark.parametrize(
    ("paced", "kernel", "seed"), [("linear(lambda)", "rbf(0.7)", 1), ("mixture(lambda, 0.5)", "rbf(2)", 4)]
)
def test_every_landing_lowers_the_latent_objective(paced, kernel, seed):
    X, y = samples(150, seed=seed, flipped=0.25)
    path = model(paced, kernel, age="in quantiles(0.4, 1)").solve(X=X, y=y)
    assert path.status is spdsl.Status.EXACT
    landed = 0
    for k in np.flatnonzero(np.diff(path.ages) == 0.0):  # before and after, at one age
        left, right = (path.bound.objective(path.nodes[i], float(path.ages[k])) for i in (k, k + 1))
        assert right < left + 1e-9
        landed += right < left - 1e-6
    assert landed >= 3
    assert landed <= len(path.jumps)


def test_many_samples_go_through_compiled_loops_to_the_same_answers():
    X, y = samples(520, seed=0, flipped=0.2)
    path = model("linear(lambda)", age="in [1.0, 1.3]").solve(X=X, y=y)
    assert path.status is spdsl.Status.EXACT, path.message
    assert len(path.critical_points) >= 3
    for age in (1.05, 1.25):
        solution = path(age)
        ours = gram("rbf", X, X, {"gamma": 0.7}) @ solution["f"] + solution["b"]
        assert_allclose(ours, svc(X, y, solution.weights), atol=1e-5)


def test_compiled_sums_and_gaps_are_those_of_numpy():
    X, y = samples(520, seed=1)
    dual = DualModel(bound("mixture(lambda, 0.5)", "rbf(0.7)", X, y))
    rng = np.random.default_rng(0)
    mu = np.where(rng.random(520) < 0.3, rng.normal(size=520), 0.0)
    Q = dual.s[:, None] * gram("rbf", X, X, {"gamma": 0.7}) * dual.s
    assert_allclose(dual.apply(mu), Q @ mu, atol=1e-12)
    state, _, failure = search(dual, 1.1, fit(dual, np.ones(520), zero(dual)))
    assert not failure
    assert state.values().held.size
    way, values = state.by_age(), state.values()
    gap, rate = state.gaps(values, way, 1.0)
    expected, speed = dual.block.gaps(state.labels, values, -state.mu, way.z, -way.mu, 1.1, 1.0)
    assert_allclose(gap, expected, atol=1e-14)
    assert_allclose(rate, speed, atol=1e-14)

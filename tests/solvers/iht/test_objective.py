"""Objectives: gradients against finite differences, blocks unbiased, restricted optima against independent solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from spdsl.solvers.iht.engine import block_slices
from spdsl.solvers.iht.objective import Objective, least_squares, logistic
from spdsl.solvers.iht.restricted import restricted_optimum, restricted_residual


def samples(seed: int = 0, n: int = 40, p: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, rng.normal(size=n), np.where(rng.random(n) < 0.4, 1.0, -1.0)


def objectives() -> dict[str, Objective]:
    X, y, labels = samples()
    return {
        "least squares": least_squares(X, y, scale=0.3),
        "ridge with intercept": least_squares(X, y, l2=0.7, intercept=True),
        "logistic": logistic(X, labels),
        "balanced logistic with ridge": logistic(X, labels, weights="balanced", l2=0.1),
        "sparse logistic": logistic(sparse.csr_array(X), labels, l2=0.1),
    }


@pytest.mark.parametrize("name", objectives())
def test_gradients_and_curvature_are_those_of_finite_differences(name: str) -> None:
    objective = objectives()[name]
    rng = np.random.default_rng(1)
    x, d = rng.normal(size=objective.dimension), rng.normal(size=objective.dimension)
    every = np.arange(objective.dimension)
    for rows in (slice(None), slice(5, 17)):
        f = [objective.value(x + t * d, every, rows) for t in (-1e-4, 0.0, 1e-4)]
        assert objective.gradient(x, every, rows) @ d == pytest.approx((f[2] - f[0]) / 2e-4, rel=1e-6, abs=1e-8)
        assert objective.quadratic(x, d, every, rows) == pytest.approx((f[2] - 2 * f[1] + f[0]) / 1e-8, rel=1e-3)


@pytest.mark.parametrize("name", objectives())
def test_active_columns_alone_give_the_same_numbers(name: str) -> None:
    objective = objectives()[name]
    active = objective.active(np.array([3]))
    x = np.zeros(objective.dimension)
    x[active] = 1.5
    every = np.arange(objective.dimension)
    for rows in (slice(None), slice(0, 7)):
        assert objective.value(x, active, rows) == pytest.approx(objective.value(x, every, rows), rel=1e-13)
        assert objective.gradient(x, active, rows) == pytest.approx(objective.gradient(x, every, rows), rel=1e-12)


def test_the_mean_of_equal_blocks_gradients_is_the_gradient() -> None:
    objective = objectives()["balanced logistic with ridge"]
    x = np.random.default_rng(2).normal(size=objective.dimension)
    every = np.arange(objective.dimension)
    blocks = block_slices(objective.n, 8)
    assert [b.stop - b.start for b in blocks] == [8] * 5
    mean = np.mean([objective.gradient(x, every, rows) for rows in blocks], axis=0)
    assert mean == pytest.approx(objective.gradient(x, every), rel=1e-12)


@pytest.mark.parametrize(("n", "batch"), [(10, 3), (10, 1), (10, 10), (10, 99), (7, 0), (3, 0)])
def test_blocks_cover_every_row_once(n: int, batch: int) -> None:
    rows = np.concatenate([np.arange(n)[block] for block in block_slices(n, batch)])
    assert np.array_equal(rows, np.arange(n))


@pytest.mark.parametrize("name", objectives())
def test_smoothness_is_the_largest_eigenvalue_of_the_restricted_hessian(name: str) -> None:
    objective = objectives()[name]
    x = 0.1 * np.random.default_rng(3).normal(size=objective.dimension)
    for support in (np.array([0, 4, 7]), np.arange(12)):
        active = objective.active(support)
        H = np.empty((active.size, active.size))
        for i, a in enumerate(active):
            step = np.zeros(objective.dimension)
            step[a] = 1e-5
            change = objective.gradient(x + step, active) - objective.gradient(x - step, active)
            H[:, i] = change[active] / 2e-5
        top = float(np.linalg.eigvalsh((H + H.T) / 2)[-1])
        ridge = 0.7 if "ridge with" in name else 0.1  # is added whole, also where the intercept goes without
        assert top * (1 - 1e-4) <= objective.smoothness(x, np.sort(active)) <= 1.05 * top + ridge


def test_restricted_least_squares_is_numpys() -> None:
    X, y, _ = samples()
    support = np.array([1, 5, 8])
    objective = least_squares(X, y)
    x = restricted_optimum(objective, np.zeros(12), objective.active(support))
    assert x[support] == pytest.approx(np.linalg.lstsq(X[:, support], y, rcond=None)[0], rel=1e-10)
    assert np.count_nonzero(x) == 3
    assert restricted_residual(objective, x, support) < 1e-14


def test_more_entries_than_samples_get_a_perfect_fit() -> None:
    X, y, _ = samples(n=6, p=20)
    objective = least_squares(X, y)
    x = restricted_optimum(objective, np.zeros(20), np.arange(20))
    assert X @ x == pytest.approx(y, abs=1e-9)


def test_restricted_logistic_is_that_of_a_quasi_newton_solver() -> None:
    X, _, labels = samples()
    support = np.array([0, 2, 3, 9])
    objective = logistic(X, labels, weights="balanced", l2=0.05)
    active = objective.active(support)
    x = restricted_optimum(objective, np.zeros(13), active)
    positive = labels > 0
    weights = np.where(positive, 0.5 / positive.sum(), 0.5 / (~positive).sum())

    def loss(v: np.ndarray) -> float:
        m = labels * (X[:, support] @ v[:-1] + v[-1])
        return float(weights @ np.logaddexp(0, -m)) + 0.025 * float(v[:-1] @ v[:-1])

    theirs = optimize.minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-10})
    assert objective.value(x, active) <= theirs.fun + 1e-12
    assert x[active] == pytest.approx(theirs.x, abs=1e-5)
    assert restricted_residual(objective, x, active) < 1e-12


def test_an_empty_support_stays_empty() -> None:
    objective = objectives()["least squares"]
    x = restricted_optimum(objective, np.ones(12), np.zeros(0, dtype=np.int64))
    assert not x.any()
    assert restricted_residual(objective, x, np.zeros(0, dtype=np.int64)) == 0.0

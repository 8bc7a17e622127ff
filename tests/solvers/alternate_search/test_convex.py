"""Convex models over many kinks: the exact optimum, from afar, by crossover; and what is too large goes elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import spdsl
from spdsl.solution import Status

L1_SVM = """
data
  X : matrix(n, d)
  y : labels(n)
variable
  w : vector(d)
minimize
  loss         hinge(y * (X @ w)) / n
  regularizer  0.01 * norm1(w)
"""


def classes(n: int, d: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return {"X": X, "y": np.where(X[:, :5].sum(axis=1) + rng.normal(size=n) > 0, 1.0, -1.0)}


def optimum_by_linprog(X: np.ndarray, y: np.ndarray, alpha: float) -> float:
    n, d = X.shape
    A = np.hstack([-y[:, None] * X, y[:, None] * X, -np.eye(n)])
    cost = np.concatenate([np.full(2 * d, alpha), np.full(n, 1.0 / n)])
    return float(linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=(0, None), method="highs").fun)


@pytest.mark.parametrize(("n", "d", "seed"), [(400, 60, 0), (600, 30, 1)])
def test_an_l1_svm_ends_exactly_at_the_optimum_of_the_linear_program(n: int, d: int, seed: int) -> None:
    data = classes(n, d, seed)
    solution = spdsl.parse(L1_SVM).solve(**data)
    assert solution.status is Status.EXACT
    assert solution.objective == pytest.approx(optimum_by_linprog(**data, alpha=0.01), rel=1e-10)


def test_a_run_can_be_stopped_between_its_steps() -> None:
    seen: list[float] = []

    def stop(state: object) -> bool:
        seen.append(1.0)
        return len(seen) == 2

    solution = spdsl.parse(L1_SVM).solve(**classes(400, 60, 0), callback=stop)
    assert solution.status is Status.INTERRUPTED
    assert np.isfinite(solution["w"]).all()


def wide() -> dict[str, object]:
    rng = np.random.default_rng(0)
    n, d = 300, 25_000
    X = sp.csr_array((rng.normal(size=10 * n), rng.integers(0, d, 10 * n), np.arange(0, 10 * n + 1, 10)), shape=(n, d))
    return {"X": X, "y": np.where(rng.normal(size=n) > 0, 1.0, -1.0)}


def test_a_model_too_wide_for_exact_systems_goes_to_the_next_back_end() -> None:
    solution = spdsl.parse(L1_SVM).solve(**wide())
    assert solution.backend == "dual_averaging"


def test_a_back_end_that_was_named_says_what_is_too_large() -> None:
    with pytest.raises(spdsl.SolverError, match=r"25,000 unknowns would take 5\.0 GB"):
        spdsl.parse(L1_SVM).solve(**wide(), backend="original")

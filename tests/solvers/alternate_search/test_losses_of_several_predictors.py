"""Losses of several predictors (`max` of affine maps of different variables): solved by alternate search, held by check."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import spdsl

MULTICLASS = """data
  X  : matrix(n, d)
  c1 : vector(n)
  c2 : vector(n)
  c3 : vector(n)
parameter
  alpha = 0.05
variable
  w1 : vector(d)
  w2 : vector(d)
  w3 : vector(d)
{age}
define own = c1 * (X @ w1) + c2 * (X @ w2) + c3 * (X @ w3)
minimize
  loss  (max(1 - c1 + X @ w1, 1 - c2 + X @ w2, 1 - c3 + X @ w3) - own) / n
  regularizer  alpha * {penalty}
{self_paced}
"""


def three_classes(n=14, seed=0):
    """Three noisy classes of n samples (X, and one indicator a class)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    found = np.argmax(X @ rng.standard_normal((3, 3)) + 0.5 * rng.standard_normal((n, 3)), axis=1)
    return {"X": X} | {f"c{k + 1}": (found == k).astype(float) for k in range(3)}


def test_a_multiclass_hinge_without_weights_is_the_optimum_of_its_linear_program():
    data = three_classes()
    penalty = "(norm1(w1) + norm1(w2) + norm1(w3))"
    solution = spdsl.parse(MULTICLASS.format(age="", self_paced="", penalty=penalty)).solve(**data)
    X, n, d = data["X"], *data["X"].shape
    indicators = [data[f"c{k}"] for k in (1, 2, 3)]
    # Unknowns: W = U - V (3 d each, >= 0) and t (n): minimize sum(t - own) / n + alpha sum(U + V), t >= 1 - c_k + X w_k.
    own = np.concatenate([X.T @ c for c in indicators]) / n
    cost = np.concatenate([0.05 - own, 0.05 + own, np.full(n, 1.0 / n)])
    rows = np.zeros((3 * n, 6 * d + n))
    for k in range(3):
        part = slice(k * n, (k + 1) * n)
        rows[part, k * d : (k + 1) * d], rows[part, (3 + k) * d : (4 + k) * d] = X, -X
        rows[part, 6 * d :] = -np.eye(n)
    limits = np.concatenate([c - 1.0 for c in indicators])
    best = linprog(cost, rows, limits, bounds=[(0, None)] * (6 * d) + [(None, None)] * n)
    assert best.success
    assert solution.objective == pytest.approx(best.fun, abs=1e-8)


@pytest.mark.parametrize("self_paced", ["linear", "hard"])
def test_a_self_paced_multiclass_hinge_is_certified(self_paced):
    model = spdsl.parse(
        MULTICLASS.format(
            age="age lambda = 0.3",
            self_paced=f"  self_paced  {self_paced}(lambda)",
            penalty="(sum_squares(w1) + sum_squares(w2) + sum_squares(w3))",
        )
    )
    solution = model.solve(**three_classes())
    assert solution.backend == "acs"
    assert solution.status.ok, solution.message
    certificate = model.check(solution)
    assert certificate.ok, str(certificate)

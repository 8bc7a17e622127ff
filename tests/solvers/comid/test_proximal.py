"""The elementwise proximal step of a derived loss, held against a scalar minimizer, at kinks and far out too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import spdsl
from spdsl.solvers.comid.proximal import piecewise_prox

TEXT = """
data
  X : matrix(n, d)
  y : vector(n)
variable
  w : vector(d)
minimize
  loss {}
"""
LOSSES = [
    "hinge(X @ w)",
    "squared_hinge(X @ w)",
    "logistic(X @ w)",
    "exp(-(X @ w))",
    "abs(X @ w - y)",
    "huber(X @ w - y)",
    "max(0, 1 - X @ w, 2 - 3 * (X @ w), X @ w - 4)",
    "(X @ w - y)^2",
    "epsilon_insensitive(X @ w - y, 0.3)",
]


@pytest.mark.parametrize("text", LOSSES)
@pytest.mark.parametrize("sigma", [1e-2, 1.0, 50.0])
def test_prox_is_the_minimizer(text: str, sigma: float) -> None:
    function = spdsl.parse(TEXT.format(text)).problem.loss.function  # type: ignore[union-attr]
    v = np.array([-8.0, -1.0, 0.0, 0.3, 1.0, 1.2, 2.0, 5.0, 40.0])
    y = np.linspace(-1, 2, len(v))
    theta = tuple(y for _ in function.parameters)
    kernel = function.kernel
    assert kernel is not None
    z = piecewise_prox(kernel, theta, v, sigma)
    for i in range(len(v)):
        own = tuple(value[i : i + 1] for value in theta)

        def value(at: float, own: tuple = own, i: int = i) -> float:
            point = np.array([at])
            return float(kernel.value(kernel.piece(point, *own), point, *own)[0]) + 0.5 * sigma * (at - v[i]) ** 2

        found = minimize_scalar(value, bracket=(v[i] - 1.0, v[i] + 1.0), tol=1e-12)
        assert value(z[i]) <= value(found.x) + 1e-12 * (1 + abs(value(found.x)))
        assert abs(z[i] - found.x) <= 1e-5 * (1 + abs(found.x))

"""Models, data and fits for the tests of the reference: solved by cvxpy, or by whoever is named."""

from __future__ import annotations

from typing import Any

import numpy as np

import spdsl
from spdsl.data import bind
from spdsl.problem import BoundProblem
from spdsl.reference import to_cvxpy
from spdsl.reference.solve import solve_tightly
from spdsl.solution import Solution, Status

HEAD = """data
  X : matrix(n, d)
  y : {target}(n)

parameter
  alpha = 0.05

variable
  w : vector(d)
{intercept}
"""


def linear(objective: str, target: str = "vector", intercept: bool = False) -> str:
    """The text of a model in w (and b) over X and y."""
    return HEAD.format(target=target, intercept="  b : scalar" if intercept else "") + objective


def bound(text: str, /, parameters: dict[str, Any] | None = None, **arrays: Any) -> BoundProblem:
    """A model's text and data, bound."""
    return bind(spdsl.parse(text).problem, arrays, parameters=parameters)


def cvx_point(problem: BoundProblem, weights: Any = None, support: Any = None) -> np.ndarray:
    """cvxpy's optimum as a flat vector."""
    program, variables = to_cvxpy(problem, weights, support)
    outcome = solve_tightly(program)
    assert outcome.found, outcome
    return problem.layout.pack({name: expression.value for name, expression in variables.items()})


def solution(problem: BoundProblem, x: np.ndarray, age: float | None = None) -> Solution:
    """A result as a back end would return it."""
    return Solution(problem, x, Status.SOLVED, problem.objective(x, age), "test", age=age)


def regression(n: int = 60, d: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return {"X": X, "y": X @ rng.normal(size=d) + rng.normal(size=n)}


def classification(n: int = 80, d: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return {"X": X, "y": np.where(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 0, 1, -1)}

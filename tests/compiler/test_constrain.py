"""Constraints in canonical form: the same points are feasible as by the formulas themselves."""

from __future__ import annotations

import numpy as np
import pytest
from test_lower import DECLARATIONS, PARAMETERS, SIZES, data, direct

from spdsl.compiler import compile_text
from spdsl.problem import AffineConstraint, BallConstraint, BoundProblem, SemidefiniteConstraint, SupportConstraint

NORMS = {
    "l1": lambda u: np.abs(u).sum(),
    "l2": lambda u: np.sqrt((u * u).sum()),
    "linf": lambda u: np.abs(u).max(),
}


def bound(constraint: str) -> BoundProblem:
    text = (
        f"{DECLARATIONS}  loss (X @ w + b - u)^2\n  regularizer trace_norm(M) + norm1(W)\nsubject to\n  {constraint}\n"
    )
    return BoundProblem(compile_text(text), data(), PARAMETERS, SIZES)


def violation(problem: BoundProblem, x: np.ndarray) -> float:
    """By how much the canonical constraints are violated (<= 0: feasible)."""
    worst = -np.inf
    for item in problem.problem.constraints:
        if isinstance(item, AffineConstraint):
            u = problem.predict(item.predictor, x)
            worst = max(worst, float(np.max(u if item.relation == "<=" else np.abs(u))))
        elif isinstance(item, BallConstraint):
            size = NORMS[item.norm](problem.predict(item.predictor, x))
            worst = max(worst, float(size - problem.evaluate(item.radius)))
        else:
            assert isinstance(item, SemidefiniteConstraint)
            worst = max(worst, -float(np.linalg.eigvalsh(problem.layout.unpack(x)[item.variable])[0]))
    return worst


CASES = [
    # as written: left side, relation, right side
    ("w", ">=", "0"),
    ("w", "<=", "c"),
    ("A @ w", "<=", "1"),
    ("sum(w)", "==", "1"),
    ("c @ w + b", "<=", "alpha"),
    ("b", ">=", "1"),
    ("2 * w - 1", "<=", "A.T @ (A @ w)"),
    ("norm(w)", "<=", "2"),
    ("norm2(w - c) / 2", "<=", "C"),
    ("3 * norm1(w) + 1", "<=", "C + 4"),
    ("norm(w)^2", "<=", "C"),
    ("sum_squares(A @ w)", "<=", "4"),
    ("max(abs(w))", "<=", "1"),
    ("abs(w)", "<=", "1"),
    ("abs(A @ w)", "<=", "1 + abs(s)"),
    ("abs(w - c)", "<=", "b"),
    ("max(w, -2*w)", "<=", "1"),
    ("pos(w - 1)", "<=", "1/2"),
    ("norm(W)", "<=", "3"),
    ("norm1(W)", "<=", "3"),
    ("trace(M)", "<=", "4"),
    ("norm(M)", "<=", "2"),
    ("-norm(w)", ">=", "-2"),
    ("X @ w - u", "<=", "b"),
]


@pytest.mark.parametrize(("left", "relation", "right"), CASES)
def test_the_same_points_are_feasible(left, relation, right):
    problem = bound(f"{left} {relation} {right}")
    rng = np.random.default_rng(7)
    feasible = 0
    for trial in range(60):
        size = rng.choice([0.05, 0.5, 2.0])
        M = rng.normal(size=(4, 4)) * size
        values = {"w": rng.normal(size=4) * size, "b": float(rng.normal()), "W": rng.normal(size=(4, 3)) * size}
        values["M"] = M @ M.T
        if relation == "==" and trial % 2:
            values["w"] = values["w"] / values["w"].sum()
        gap = direct(left, values) - direct(right, values)
        worst = float(np.max(gap if relation == "<=" else -gap if relation == ">=" else np.abs(gap)))
        found = violation(problem, problem.layout.pack(values))
        if abs(worst) > 1e-9:
            assert (found <= 1e-12) is (worst <= 0), (worst, found)
        feasible += worst <= 1e-9
    assert 0 < feasible < 60


def test_ranges_chain_into_two_constraints():
    problem = bound("-1 <= w <= 1")
    assert len(problem.problem.constraints) == 2
    assert (
        violation(problem, problem.layout.pack({"w": np.ones(4), "b": 0, "M": np.eye(4), "W": np.zeros((4, 3))})) <= 0
    )


def test_balls_name_their_norm_and_radius():
    found = {}
    for text, norm in (
        ("norm(w) <= 2", "l2"),
        ("norm1(w) <= 2", "l1"),
        ("max(abs(w)) <= 2", "linf"),
        ("abs(w) <= 2", "linf"),
    ):
        (item,) = bound(text).problem.constraints
        assert isinstance(item, BallConstraint)
        found[text] = item.norm
        assert item.norm == norm
        assert item.predictor.is_variable("w")


def test_semidefiniteness_and_supports():
    (cone,) = bound("M >> 0").problem.constraints
    assert cone == SemidefiniteConstraint("M", "M >> 0")
    (item,) = bound("support(w) in sparse(size = d / 2)").problem.constraints
    assert isinstance(item, SupportConstraint)
    assert item.kind == "sparse"
    assert bound("w >= 0").evaluate(item.options["size"]) == 2.0


def test_a_graph_and_a_budget_reach_the_support_constraint():
    text = """
data
  X : matrix(m, p)
  y : vector(m)
  G : graph(p)
variable
  w : vector(p)
minimize
  loss (X @ w - y)^2 / (2*m)
subject to
  support(w) in connected(G, size = 40, budget = 60)
"""
    (item,) = compile_text(text).constraints
    assert (item.kind, item.graph) == ("connected", "G")
    assert {name: getattr(value, "value", None) for name, value in item.options.items()} == {
        "size": 40.0,
        "components": 1.0,
        "budget": 60.0,
    }

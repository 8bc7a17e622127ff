"""Runs cvxpy with tight tolerances, solver after solver until one is accurate, and says how it ended.

In: a `cvxpy.Problem`. Out: an `Outcome`; the problem's variables hold the solution.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

__all__ = ["Outcome", "solve_tightly"]

ATTEMPTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CLARABEL", {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 400}),
    ("CLARABEL", {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 400}),
    ("HIGHS", {}),
    ("OSQP", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 200_000, "polishing": True}),
    ("SCS", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}),
)


@dataclass(frozen=True)
class Outcome:
    """How cvxpy ended: its status, the solver, the optimal value; `accurate` when the solver reached its tolerance."""

    status: str
    solver: str
    value: float
    accurate: bool

    @property
    def found(self) -> bool:
        """Is there a solution at all, accurate or not?"""
        return self.accurate or self.status.endswith("_inaccurate")


def solve_tightly(problem: Any, solver: str | None = None) -> Outcome:
    """Solve by the first solver that reaches tight tolerances; by the first that gives anything if none does."""
    import cvxpy as cp

    attempts = [pair for pair in ATTEMPTS if solver is None or pair[0] == solver.upper()] or [(str(solver), {})]
    fallback: tuple[Outcome, list[Any]] | None = None
    last = Outcome("no solver could take it", "", float("nan"), False)
    for name, options in attempts:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver=name, **options)
        except (cp.error.SolverError, cp.error.DCPError, ValueError, ArithmeticError) as error:
            last = Outcome(f"{type(error).__name__}: {str(error).splitlines()[0]}", name, float("nan"), False)
            continue
        value = float("nan") if problem.value is None else float(problem.value)
        last = Outcome(str(problem.status), name, value, problem.status == cp.OPTIMAL)
        if last.accurate or problem.status in (cp.INFEASIBLE, cp.UNBOUNDED):
            return last
        if last.found and fallback is None:
            fallback = (last, [variable.value for variable in problem.variables()])
    if fallback is None:
        return last
    for variable, kept in zip(problem.variables(), fallback[1]):
        variable.value = kept
    return fallback[0]

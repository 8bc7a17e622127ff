"""Runs cvxpy with tight tolerances, solver after solver until one is accurate, and says how it ended.

In: a `cvxpy.Problem`. Out: an `Outcome`; the problem's variables hold the solution.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

__all__ = ["Outcome", "solve_tightly"]

ATTEMPTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CLARABEL", {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13, "max_iter": 400}),
    ("CLARABEL", {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 400}),
    ("HIGHS", {}),
    ("OSQP", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 200_000, "polishing": True}),
    ("SCS", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}),
)
AGREE = 1e-7  # two runs that end within this of each other, relative, found the same optimum


@dataclass(frozen=True)
class Outcome:
    """How cvxpy ended: its status, the solver, the optimal value; `accurate` when a solver reached its tolerance."""

    status: str
    solver: str
    value: float
    accurate: bool

    @property
    def found(self) -> bool:
        """Is there a solution at all, accurate or not?"""
        return self.accurate or self.status.endswith("_inaccurate")


def solve_tightly(problem: Any, solver: str | None = None) -> Outcome:
    """Solve by the first solver that reaches its tolerance; take the first that gives anything if none does.

    An interior-point run that was asked for more than floating point gives stops with a better point than one that was
    asked for less, but says "inaccurate". So where a looser run confirms its value, the tight run's point is kept.
    """
    attempts = [pair for pair in ATTEMPTS if solver is None or pair[0] == solver.upper()] or [(str(solver), {})]
    first: tuple[Outcome, list[Any]] | None = None
    outcome = Outcome("no solver could take it", "", float("nan"), False)
    for name, options in attempts:
        outcome = _attempt(problem, name, options)
        if outcome.status in ("infeasible", "unbounded"):
            return outcome
        if outcome.accurate:
            if first is not None and _agree(first[0], outcome):
                _restore(problem, first[1])
                return Outcome(outcome.status, outcome.solver, first[0].value, True)
            return outcome
        if outcome.found and first is None:
            first = outcome, [variable.value for variable in problem.variables()]
    if first is None:
        return outcome
    _restore(problem, first[1])
    return first[0]


def _attempt(problem: Any, name: str, options: dict[str, Any]) -> Outcome:
    import cvxpy as cp

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(solver=name, **options)
    except (cp.error.SolverError, cp.error.DCPError, ValueError, ArithmeticError) as error:
        return Outcome(f"solver error: {str(error).splitlines()[0]}", name, float("nan"), False)
    value = float("nan") if problem.value is None else float(problem.value)
    return Outcome(str(problem.status), name, value, problem.status == cp.OPTIMAL)


def _agree(tight: Outcome, loose: Outcome) -> bool:
    return abs(tight.value - loose.value) <= AGREE * max(1e-300, abs(tight.value), abs(loose.value))


def _restore(problem: Any, values: list[Any]) -> None:
    for variable, value in zip(problem.variables(), values):
        variable.value = value

"""Alternate convex search whose w-problems go to cvxpy: for convex parts that the active-set method has no rows for.

In: a bound problem with group norms, norms, trace norms, balls, cones or losses of several predictors. Out: the partial optima
of `acs` as by its own solver, but to an interior-point method's accuracy instead of to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, SolverError
from spdsl.problem import BoundProblem, Problem, SupportConstraint
from spdsl.problem.functions import Array
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.solvers.active_set.build import coefficient_refusals, refusals
from spdsl.solvers.ages import Ages, in_share, resolve_ages
from spdsl.solvers.alternate_search.start import first_weights

__all__ = ["ConicBranch", "ConicProgram", "ConicState", "conic_refusals", "conic_size_refusals", "needs_cone"]

_LARGEST = 20_000  # samples: cvxpy's own limit of patience
_LARGEST_MATRIX = 60  # rows of a symmetric variable
_SETTLED = 3e-7  # a KKT residual with which an age is done
_SOLVED = 1e-5  # a KKT residual that interior points reach where rounds have converged


def needs_cone(problem: Problem) -> bool:
    """Are there parts that the active-set method does not take?"""
    return bool(refusals(problem))


def conic_refusals(problem: Problem, with_matrices: bool = True) -> list[str]:
    """Why cvxpy can't take the w-problem either; empty when it can."""
    reasons = []
    if problem.loss is None:
        reasons.append("the model has no loss")
    reasons.extend(
        f"the constraint `{item.text}` is a set of supports, which is not convex"
        for item in problem.constraints
        if isinstance(item, SupportConstraint)
    )
    if not with_matrices:
        reasons.extend(
            f"`{item.name}` is {item.kind}, and only scalars, vectors and matrices are taken"
            for item in problem.variables
            if item.kind in ("rkhs", "symmetric")
        )
    return reasons


def conic_size_refusals(bound: BoundProblem) -> list[str]:
    """Why the data don't fit: negative coefficients, or more than cvxpy takes in reasonable time."""
    reasons = coefficient_refusals(bound)
    if bound.n_samples > _LARGEST:
        parts = ", ".join(refusals(bound.problem))
        reasons.append(
            f"{parts}; such parts go to cvxpy, which takes {_LARGEST} samples at most, not {bound.n_samples}"
        )
    reasons.extend(
        f"`{item.name}` has {bound.layout.shapes[item.name][0]} rows, and cvxpy takes {_LARGEST_MATRIX} at most"
        for item in bound.problem.variables
        if item.kind == "symmetric" and bound.layout.shapes[item.name][0] > _LARGEST_MATRIX
    )
    return reasons


class ConicProgram:
    """The w-problem at any sample weights.

    Raises
    ------
    SolverError
        When cvxpy can't express a part of it.
    """

    def __init__(self, bound: BoundProblem) -> None:
        from spdsl.reference import TranslationError, to_cvxpy

        self.bound = bound
        try:
            to_cvxpy(bound)
        except TranslationError as error:
            raise SolverError(Diagnostic("SPL506", f"cvxpy can't take this model: {error}")) from error

    def solve(self, weights: Array) -> Array:
        """x (p,) at fixed weights.

        Raises
        ------
        SolverError
            When there is no optimum, or none is found.
        """
        from spdsl.reference import optimum

        # Weights that are as good as 0 would make the solver's numbers differ by more than it can bear.
        outcome, x = optimum(self.bound, np.where(weights > 1e-9, weights, 0.0))
        if x is None:
            raise SolverError(
                Diagnostic(
                    "SPL506",
                    f"a weighted problem of alternate search has no optimum that cvxpy finds ({outcome.status})",
                    help=("add a regularizer that grows in every direction, or relax the constraints",),
                )
            )
        return np.where(np.isnan(x), 0.0, x)  # a variable in no term has no value

    def weights(self, x: Array, age: float) -> Array:
        """v* at x (n,)."""
        return self.bound.weights(self.bound.losses(x), age)

    def round(self, x: Array, age: float) -> tuple[Array, float]:
        """x after one round, and the largest change of the loss's predictors relative to their size."""
        found = self.solve(self.weights(x, age))
        pairs = list(zip(self.bound.margins(found), self.bound.margins(x)))
        moved = max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs)
        return found, moved / max(1.0, *(float(np.abs(a).max(initial=0.0)) for a, _ in pairs))

    def residual(self, x: Array, age: float | None) -> float:
        """The scaled KKT residual at v*, or at weights 1 without an age."""
        from spdsl.reference import kkt_residual

        weights = np.ones(self.bound.n_samples) if age is None else self.weights(x, age)
        return kkt_residual(self.bound, x, weights)

    def first(self, start: Any, seed: int) -> Array:
        """The x that a run starts from, as for the active-set method."""
        weights = first_weights(self.bound.n_samples, start, seed)
        return np.zeros(self.bound.layout.size) if weights is None else self.solve(weights)


@dataclass(frozen=True)
class ConicState:
    """The ages done, and the round at the age in work."""

    program: ConicProgram
    ages: Ages
    grid: Array
    x: Array
    change: float = np.inf
    before: float = np.inf  # the change of the round before
    rounds: int = 0
    done: tuple[Array, ...] = ()
    residuals: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    objectives: tuple[float, ...] = ()
    short: bool = False
    broken: str = ""

    @classmethod
    def begin(cls, bound: BoundProblem, start: Any, seed: int, count: int) -> ConicState:
        """The first fit and the grid of ages."""
        program = ConicProgram(bound)
        x = program.first(start, seed)
        ages = resolve_ages(bound, bound.losses(x))
        return cls(program, ages, ages.grid(count), x)

    def advance(self, tolerance: float, max_rounds: int) -> ConicState:
        """One round, or the end of an age."""
        age = float(self.grid[len(self.done)])
        residual = np.inf
        if self.change <= tolerance or self.rounds >= max_rounds:
            residual = self.program.residual(self.x, age)
        # Rounds converge linearly, so small moves may still be far from the end: on while the residual is not small.
        crawling = residual > _SETTLED and self.change <= 0.95 * self.before and self.change > 1e-3 * tolerance
        if residual < np.inf and not (crawling and self.rounds < max_rounds):
            return replace(
                self,
                change=np.inf,
                before=np.inf,
                rounds=0,
                done=(*self.done, self.x),
                residuals=(*self.residuals, residual),
                counts=(*self.counts, self.rounds),
                short=self.short or self.change > tolerance,
            )
        try:
            x, change = self.program.round(self.x, age)
        except SolverError as error:
            return replace(self, broken=f"at the age {age:.6g}: {error.diagnostics[0].message}")
        objectives = (*self.objectives, self.program.bound.objective(x, age))
        return replace(self, x=x, change=change, before=self.change, rounds=self.rounds + 1, objectives=objectives)

    def status(self) -> Status | None:
        """None while there are ages to do."""
        if self.broken:
            return Status.STALLED
        if len(self.done) < len(self.grid):
            return None
        if self.short:
            return Status.ITERATION_LIMIT
        return Status.SOLVED if max(self.residuals) <= _SOLVED else Status.STALLED

    def finish(self, bound: BoundProblem, status: Status, backend: str) -> Solution | Path:
        """The partial optimum, or those of the grid."""
        statistics = {"rounds": float(sum(self.counts) + self.rounds), "ages": float(len(self.done))}
        message = "; ".join(text for text in (self.broken, self.ages.message) if text)
        count = len(self.objectives)
        if self.ages.is_fixed or not self.done:
            age = self.ages.lower
            return Solution(
                bound=bound,
                x=self.x,
                status=status,
                objective=bound.objective(self.x, age),
                backend=backend,
                age=age,
                message=message,
                kkt_residual=self.residuals[0] if self.residuals else self.program.residual(self.x, age),
                history=History({"round": np.arange(1.0, count + 1.0), "objective": np.array(self.objectives)}),
                statistics=statistics,
            )
        ages, nodes = self.grid[: len(self.done)], np.array(self.done)
        shares = [in_share(bound, bound.losses(x), float(age)) for age, x in zip(ages, nodes)]
        return Path(
            bound=bound,
            ages=ages,
            nodes=nodes,
            kkt_residuals=np.array(self.residuals),
            status=status,
            backend=backend,
            branch=ConicBranch(bound, ages, nodes),
            message=message,
            history=History({"age": ages, "in_share": np.array(shares), "rounds": np.array(self.counts, float)}),
            statistics=statistics,
        )


class ConicBranch:
    """The partial optima of the grid; between its ages the search goes on from the one below."""

    def __init__(self, bound: BoundProblem, ages: Array, nodes: Array) -> None:
        self.bound = bound
        self.ages = ages
        self.nodes = nodes

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) and its KKT residual."""
        program = ConicProgram(self.bound)
        k = min(max(int(np.searchsorted(self.ages, age, side="right")) - 1, 0), len(self.ages) - 1)
        x = self.nodes[k]
        if self.ages[k] != age:
            before = np.inf
            for _ in range(1000):
                x, change = program.round(x, age)
                if change <= 1e-6 and (change > 0.95 * before or program.residual(x, age) <= _SETTLED):
                    break
                before = change
        return x, program.residual(x, age)

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """None: a grid sees no events."""
        return ()

"""The back end `original`: the model without its self-paced term, every sample with weight 1.

In: a bound problem. Out: the exact optimum of a convex model, which is also the baseline that self-paced learning is
held against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.solution import Solution, Status
from spdsl.solvers.active_set.build import build, coefficient_refusals
from spdsl.solvers.active_set.minimize import Minimum
from spdsl.solvers.alternate_search.conic import ConicProgram, conic_refusals, conic_size_refusals, needs_cone
from spdsl.solvers.alternate_search.convex import ConvexFit, feasible
from spdsl.solvers.protocol import BackEnd, CommonOptions
from spdsl.solvers.threads import small_systems

__all__ = ["Original", "OriginalState"]


@dataclass(frozen=True)
class OriginalState:
    """How far the fit has come."""

    fit: ConvexFit | None  # None: by cvxpy alone
    conic: tuple[Array, float] | None = None  # by cvxpy: x and its KKT residual

    @property
    def minimum(self) -> Minimum | None:
        """The optimum, or the point that was reached."""
        return None if self.fit is None else self.fit.minimum


class Original(BackEnd[OriginalState]):
    """One convex problem, solved by the active-set method of `spdsl.solvers.active_set.minimize`."""

    name: ClassVar[str] = "original"
    summary: ClassVar[str] = "the convex model with all samples weighted 1, exactly (active set and Newton)"
    options: ClassVar[type[CommonOptions]] = CommonOptions
    explicit_features: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> list[str]:
        """It needs convex parts over scalars, vectors and matrices."""
        return conic_refusals(problem, with_matrices=False)

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """Coefficients must not be negative; what goes to cvxpy must not be too large for it."""
        return conic_size_refusals(problem) if needs_cone(problem.problem) else coefficient_refusals(problem)

    def init(self, problem: BoundProblem, options: CommonOptions) -> OriginalState:
        """The system and a feasible point; nothing where cvxpy does it all."""
        if needs_cone(problem.problem):
            return OriginalState(None)
        system = build(problem, self_paced=False)
        return OriginalState(ConvexFit(problem, system, None, feasible(system, np.zeros(system.p))))

    def step(self, problem: BoundProblem, options: CommonOptions, state: OriginalState) -> OriginalState:
        """Some steps of the active set, or cvxpy's whole solve where these are too many, or parts have no rows."""
        if state.fit is None:
            program = ConicProgram(problem)
            x = program.solve(np.ones(problem.n_samples))
            return OriginalState(None, (x, program.residual(x, None)))
        with small_systems(state.fit.system.p):
            return OriginalState(state.fit.advanced())

    def done(self, problem: BoundProblem, options: CommonOptions, state: OriginalState) -> Status | None:
        """When it can't get better."""
        if state.conic is not None:
            return Status.SOLVED if state.conic[1] <= 1e-5 else Status.STALLED
        minimum = state.minimum
        if state.fit is None or not state.fit.ended or minimum is None:
            return None
        if minimum.failure:
            kinds = {"unbounded": Status.UNBOUNDED, "limit": Status.ITERATION_LIMIT}
            return kinds.get(minimum.failure, Status.STALLED)
        return Status.EXACT if minimum.residual <= 1e-10 else Status.SOLVED

    def finish(self, problem: BoundProblem, options: CommonOptions, state: OriginalState, status: Status) -> Solution:
        """The optimum; its objective is that of the model without the self-paced term."""
        minimum = state.minimum
        x, residual = state.conic or (np.zeros(problem.layout.size), None)
        if minimum is not None:
            x, residual = minimum.point.x, minimum.residual
        return Solution(
            bound=problem,
            x=x,
            status=status,
            objective=problem.objective(x),
            backend=self.name,
            kkt_residual=residual,
            statistics={} if state.fit is None else {"iterations": float(state.fit.iterations)},
        )

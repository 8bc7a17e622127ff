"""The back end `original`: the model without its self-paced term, every sample with weight 1.

In: a bound problem. Out: the exact optimum of a convex model, which is also the baseline that self-paced learning is
held against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spdsl.problem import BoundProblem, Problem
from spdsl.solution import Solution, Status
from spdsl.solvers.active_set.build import build, coefficient_refusals, refusals
from spdsl.solvers.active_set.minimize import Minimum
from spdsl.solvers.alternate_search.convex import ConvexFit, feasible
from spdsl.solvers.protocol import BackEnd, CommonOptions
from spdsl.solvers.threads import small_systems

__all__ = ["Original", "OriginalState"]


@dataclass(frozen=True)
class OriginalState:
    """How far the fit has come."""

    fit: ConvexFit

    @property
    def minimum(self) -> Minimum | None:
        """The optimum, or the point that was reached."""
        return self.fit.minimum


class Original(BackEnd[OriginalState]):
    """One convex problem, solved by the active-set method of `spdsl.solvers.active_set.minimize`."""

    name: ClassVar[str] = "original"
    summary: ClassVar[str] = "the convex model with all samples weighted 1, exactly (active set and Newton)"
    options: ClassVar[type[CommonOptions]] = CommonOptions
    explicit_features: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> list[str]:
        """It needs parts that make a `System`."""
        return refusals(problem)

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """Coefficients must not be negative."""
        return coefficient_refusals(problem)

    def init(self, problem: BoundProblem, options: CommonOptions) -> OriginalState:
        """The system and a feasible point."""
        system = build(problem, self_paced=False)
        return OriginalState(ConvexFit(problem, system, None, feasible(system, np.zeros(system.p))))

    def step(self, problem: BoundProblem, options: CommonOptions, state: OriginalState) -> OriginalState:
        """Some steps of the active set, or cvxpy's whole solve where these are too many."""
        with small_systems(state.fit.system.p):
            return OriginalState(state.fit.advanced())

    def done(self, problem: BoundProblem, options: CommonOptions, state: OriginalState) -> Status | None:
        """When it can't get better."""
        minimum = state.minimum
        if not state.fit.ended or minimum is None:
            return None
        if minimum.failure:
            kinds = {"unbounded": Status.UNBOUNDED, "limit": Status.ITERATION_LIMIT}
            return kinds.get(minimum.failure, Status.STALLED)
        return Status.EXACT if minimum.residual <= 1e-10 else Status.SOLVED

    def finish(self, problem: BoundProblem, options: CommonOptions, state: OriginalState, status: Status) -> Solution:
        """The optimum; its objective is that of the model without the self-paced term."""
        minimum = state.minimum
        x = np.zeros(problem.layout.size) if minimum is None else minimum.point.x
        return Solution(
            bound=problem,
            x=x,
            status=status,
            objective=problem.objective(x),
            backend=self.name,
            kkt_residual=None if minimum is None else minimum.residual,
            statistics={"iterations": float(state.fit.iterations)},
        )

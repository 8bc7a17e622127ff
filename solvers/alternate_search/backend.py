"""The back end `acs`: alternate convex search at a fixed age or on a grid of ages (GAGA, Algorithm 1).

In: a bound problem and options. Out: a `Solution`, or a `Path` whose nodes are the grid's partial optima, each started from the
one before, as self-paced learning is commonly done.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spdsl.diagnostics import SpdslWarning
from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.solvers.active_set.build import build, coefficient_refusals
from spdsl.solvers.active_set.minimize import Minimum, residual, with_multipliers
from spdsl.solvers.active_set.system import Labels, System
from spdsl.solvers.ages import Ages, age_refusals, in_share, resolve_ages
from spdsl.solvers.alternate_search.conic import (
    ConicBranch,
    ConicState,
    conic_refusals,
    conic_size_refusals,
    needs_cone,
)
from spdsl.solvers.alternate_search.search import polish, round_of_search, search
from spdsl.solvers.alternate_search.start import first_fit, start_option
from spdsl.solvers.protocol import BackEnd, CommonOptions, option
from spdsl.solvers.threads import small_systems

__all__ = ["AlternateSearch", "SearchOptions", "SearchState"]


@dataclass(frozen=True)
class SearchOptions(CommonOptions):
    """Options of `acs`."""

    start: Any = start_option("where the search starts: full (the fit of all samples), zero")
    ages: int = option(
        50,
        "how many equally spaced ages of an interval are solved",
        check=lambda value: None if value >= 2 else "must be at least 2",
    )
    tolerance: float = option(
        1e-6,
        "rounds stop when the loss's predictor moves by less than this, relative to its scale",
        check=lambda value: None if value > 0 else "must be positive",
    )
    max_rounds: int = option(
        1000,
        "rounds after which an age is given up",
        check=lambda value: None if value > 0 else "must be positive",
    )
    polish: bool = option(True, "after the rounds, go by Newton to the partial optimum that they approach, to rounding")


@dataclass(frozen=True)
class SearchState:
    """The ages done, and the round at the age in work."""

    system: System
    ages: Ages
    grid: Array
    x: Array
    labels: Labels | None
    change: float
    rounds: int  # at the age in work
    done: tuple[Minimum, ...]
    counts: tuple[int, ...]
    objectives: tuple[float, ...]
    short: bool = False  # some age ran into max_rounds
    broken: str = ""


class AlternateSearch(BackEnd[SearchState | ConicState]):
    """Alternate convex search: exact w-problems where the active-set method takes them, cvxpy's elsewhere."""

    name: ClassVar[str] = "acs"
    summary: ClassVar[str] = "alternate convex search at one age or a grid of ages (GAGA, Algorithm 1)"
    options: ClassVar[type[CommonOptions]] = SearchOptions
    explicit_features: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> list[str]:
        """It needs a self-paced model with ages and convex parts."""
        return [*conic_refusals(problem), *age_refusals(problem, "there are no weights to alternate with")]

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """Coefficients must not be negative; what goes to cvxpy must not be too large for it."""
        return conic_size_refusals(problem) if needs_cone(problem.problem) else coefficient_refusals(problem)

    def init(self, problem: BoundProblem, options: SearchOptions) -> SearchState | ConicState:
        """The first fit and the grid of ages."""
        if needs_cone(problem.problem):
            begun = ConicState.begin(problem, options.start, options.seed, options.ages)
            if begun.ages.message:
                warnings.warn(begun.ages.message, SpdslWarning, stacklevel=2)
            return begun
        system = build(problem)
        with small_systems(system.p):
            x = first_fit(problem, system, options.start, options.seed)
        ages = resolve_ages(problem, system.losses(x))
        if ages.message:
            warnings.warn(ages.message, SpdslWarning, stacklevel=2)
        return SearchState(system, ages, ages.grid(options.ages), x, None, np.inf, 0, (), (), ())

    def step(
        self, problem: BoundProblem, options: SearchOptions, state: SearchState | ConicState
    ) -> SearchState | ConicState:
        """One round; after the last one of an age, the polish."""
        if isinstance(state, ConicState):
            return state.advance(options.tolerance, options.max_rounds)
        age = float(state.grid[len(state.done)])
        with small_systems(state.system.p):
            if state.change > options.tolerance and state.rounds < options.max_rounds:
                made = round_of_search(state.system, age, state.x, state.labels)
                if made.minimum.failure:
                    return replace(state, broken=f"the w-problem at the age {age:.6g} is {made.minimum.failure}")
                point = made.minimum.point
                return replace(
                    state,
                    x=point.x,
                    labels=point.labels,
                    change=made.change,
                    rounds=state.rounds + 1,
                    objectives=(*state.objectives, problem.objective(point.x, age)),
                )
            return self._settled(options, state, age)

    def _settled(self, options: SearchOptions, state: SearchState, age: float) -> SearchState:
        system = state.system
        if options.polish:
            minimum = polish(system, age, state.x, state.labels)
            if minimum.failure:
                return replace(state, broken=f"no minimum beside the search's end at the age {age:.6g}")
        else:
            minimum = at_rest(system, age, state.x, state.labels)
        return replace(
            state,
            x=minimum.point.x,
            labels=minimum.point.labels,
            change=np.inf,
            rounds=0,
            done=(*state.done, minimum),
            counts=(*state.counts, state.rounds),
            short=state.short or state.change > options.tolerance,
        )

    def done(self, problem: BoundProblem, options: SearchOptions, state: SearchState | ConicState) -> Status | None:
        """All ages done."""
        if isinstance(state, ConicState):
            return state.status()
        if state.broken:
            return Status.UNBOUNDED if "unbounded" in state.broken else Status.STALLED
        if len(state.done) < len(state.grid):
            return None
        worst = max(minimum.residual for minimum in state.done)
        if worst <= 1e-10:
            return Status.EXACT
        return Status.ITERATION_LIMIT if state.short else Status.SOLVED

    def progress(self, state: SearchState | ConicState) -> tuple[float, str]:
        """The share of the ages done."""
        count = len(state.done)
        return count / len(state.grid), f"age {count} of {len(state.grid)}, {sum(state.counts) + state.rounds} rounds"

    def finish(
        self, problem: BoundProblem, options: SearchOptions, state: SearchState | ConicState, status: Status
    ) -> Solution | Path:
        """The partial optimum, or those of the grid."""
        if isinstance(state, ConicState):
            return state.finish(problem, status, self.name)
        statistics = {"rounds": float(sum(state.counts) + state.rounds), "ages": float(len(state.done))}
        message = "; ".join(text for text in (state.broken, state.ages.message) if text)
        if state.ages.is_fixed or not state.done:
            age = state.ages.lower
            minimum = state.done[0] if state.done else at_rest(state.system, age, state.x, state.labels)
            x = minimum.point.x
            return Solution(
                bound=problem,
                x=x,
                status=status,
                objective=problem.objective(x, age),
                backend=self.name,
                age=age,
                message=message,
                kkt_residual=minimum.residual,
                history=_rounds(state.objectives),
                statistics=statistics,
            )
        ages = state.grid[: len(state.done)]
        nodes = np.array([minimum.point.x for minimum in state.done])
        shares = [in_share(problem, state.system.losses(x), float(age)) for age, x in zip(ages, nodes)]
        columns = {"age": ages, "in_share": np.array(shares), "rounds": np.array(state.counts, float)}
        return Path(
            bound=problem,
            ages=ages,
            nodes=nodes,
            kkt_residuals=np.array([minimum.residual for minimum in state.done]),
            status=status,
            backend=self.name,
            branch=GridBranch(problem, ages, nodes, state.system),
            message=message,
            history=History(columns),
            statistics=statistics,
        )

    def resume(self, problem: BoundProblem, path: Path) -> GridBranch | ConicBranch:
        """The branch of a loaded path."""
        if needs_cone(problem.problem):
            return ConicBranch(problem, path.ages, path.nodes)
        return GridBranch(problem, path.ages, path.nodes)


class GridBranch:
    """The partial optima that alternate search reaches from the grid's; between its ages it searches on from the one below."""

    def __init__(self, bound: BoundProblem, ages: Array, nodes: Array, system: System | None = None) -> None:
        self.system = build(bound) if system is None else system
        self.ages = ages
        self.nodes = nodes

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) and its KKT residual."""
        k = min(max(int(np.searchsorted(self.ages, age, side="right")) - 1, 0), len(self.ages) - 1)
        if self.ages[k] == age:
            x = self.nodes[k]
            return x, at_rest(self.system, age, x, None).residual
        found = search(self.system, age, self.nodes[k]).minimum
        return found.point.x, found.residual

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """None: a grid sees no events."""
        return ()


def at_rest(system: System, age: float, x: Array, labels: Labels | None) -> Minimum:
    """x as it is, with the multipliers that fit it best."""
    start = system.labels(x, age) if labels is None else system.relabel(labels, x, age)
    evaluation, factor = with_multipliers(system, system.point(age, x, start))
    return Minimum(evaluation, factor, residual(system, evaluation), 0)


def _rounds(objectives: tuple[float, ...]) -> History:
    count = len(objectives)
    return History({"round": np.arange(1.0, count + 1.0), "objective": np.array(objectives)})

"""The back end `mospl`: multi-objective self-paced learning, an age-path approximated by an evolutionary search.

In: a bound problem with an interval of ages. Out: a `Path` whose nodes are the members of the last front; they are no
partial optima, and their KKT residuals say by how much.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spdsl.diagnostics import Diagnostic, SpdslWarning, UsageError
from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.solvers.active_set.build import build, coefficient_refusals, refusals
from spdsl.solvers.active_set.system import System
from spdsl.solvers.ages import Ages, age_refusals, in_share, resolve_ages
from spdsl.solvers.alternate_search.backend import at_rest
from spdsl.solvers.alternate_search.start import first_fit, start_option
from spdsl.solvers.pareto.evolution import Evolution
from spdsl.solvers.protocol import BackEnd, CommonOptions, option
from spdsl.solvers.threads import small_systems

__all__ = ["Mospl", "MosplOptions", "MosplState"]


@dataclass(frozen=True)
class MosplOptions(CommonOptions):
    """Options of `mospl`."""

    start: Any = start_option("the fit that resolves quantiles and joins the first generation: full, zero")
    population: int = option(
        50,
        "members of a generation",
        check=lambda value: None if value >= 4 else "must be at least 4",
    )
    generations: int = option(
        50,
        "generations, the first not counted",
        check=lambda value: None if value >= 1 else "must be at least 1",
    )
    improve: bool = option(True, "give each child one round of alternate search before it is weighed")


@dataclass(frozen=True)
class MosplState:
    """The run (pymoo's own object, which changes in place) and how many generations it has made."""

    system: System
    ages: Ages
    evolution: Evolution
    generations: int
    best: tuple[tuple[float, float], ...] = ()  # (front's size, least objective of fit) after each generation


class Mospl(BackEnd[MosplState]):
    """NSGA-II over the variables and the age; see `spdsl.solvers.pareto.evolution`."""

    name: ClassVar[str] = "mospl"
    summary: ClassVar[str] = "multi-objective self-paced learning by NSGA-II (Li et al., AAAI 2016), through pymoo"
    options: ClassVar[type[CommonOptions]] = MosplOptions
    explicit_features: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> list[str]:
        """It needs a self-paced model over an interval of ages, and parts that make a `System`."""
        paced = age_refusals(problem, "there is no second objective")
        if problem.self_paced is not None and problem.age is not None and problem.age.upper is None:
            paced = ["it looks for a front over an interval of ages, and the model's age is one number"]
        return [*refusals(problem), *paced]

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """Coefficients must not be negative."""
        return coefficient_refusals(problem)

    def init(self, problem: BoundProblem, options: MosplOptions) -> MosplState:
        """The first generation.

        Raises
        ------
        UsageError
            When pymoo is not installed.
        """
        _need_pymoo()
        system = build(problem)
        with small_systems(system.p):
            x = first_fit(problem, system, options.start, options.seed)
            ages = resolve_ages(problem, system.losses(x))
            if ages.message:
                warnings.warn(ages.message, SpdslWarning, stacklevel=2)
            evolution = Evolution(problem, system, ages, x, options.population, options.improve, options.seed)
            evolution.advance()
        return MosplState(system, ages, evolution, 0, (_best(evolution),))

    def step(self, problem: BoundProblem, options: MosplOptions, state: MosplState) -> MosplState:
        """One generation."""
        with small_systems(state.system.p):
            state.evolution.advance()
        best = (*state.best, _best(state.evolution))
        return replace(state, generations=state.generations + 1, best=best)

    def done(self, problem: BoundProblem, options: MosplOptions, state: MosplState) -> Status | None:
        """After so many generations; nothing tells whether more would change the front."""
        return Status.FINISHED if state.generations >= options.generations else None

    def progress(self, state: MosplState) -> tuple[float, str]:
        """Generations; their number is not in the state, so no fraction."""
        return 0.0, f"generation {state.generations}, front of {state.best[-1][0]:.0f}"

    def finish(
        self, problem: BoundProblem, options: MosplOptions, state: MosplState, status: Status
    ) -> Solution | Path:
        """The front as a path."""
        system, front = state.system, state.evolution.front()
        residuals = [at_rest(system, float(age), x, None).residual for age, x in zip(front.ages, front.points)]
        shares = [in_share(problem, system.losses(x), float(age)) for age, x in zip(front.ages, front.points)]
        columns = {
            "age": front.ages,
            "in_share": np.array(shares),
            "weighted_loss": front.objectives[:, 0],
            "left_out": front.objectives[:, 1],
        }
        return Path(
            bound=problem,
            ages=front.ages,
            nodes=front.points,
            kkt_residuals=np.array(residuals),
            status=status,
            backend=self.name,
            branch=FrontBranch(problem, front.ages, front.points, system),
            message=state.ages.message,
            history=History(columns),
            statistics={
                "generations": float(state.generations),
                "evaluations": float(state.evolution.evaluations),
                "front": float(len(front.ages)),
            },
        )

    def resume(self, problem: BoundProblem, path: Path) -> FrontBranch:
        """The front of a loaded path."""
        return FrontBranch(problem, path.ages, path.nodes)


class FrontBranch:
    """The front: at any age its member of the nearest age, as it is."""

    def __init__(self, bound: BoundProblem, ages: Array, nodes: Array, system: System | None = None) -> None:
        self.system = build(bound) if system is None else system
        self.ages = ages
        self.nodes = nodes

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) of the nearest member and its KKT residual at this age."""
        x = self.nodes[int(np.argmin(np.abs(self.ages - age)))]
        return x, at_rest(self.system, age, x, None).residual

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """None: a front sees no events."""
        return ()


def _best(evolution: Evolution) -> tuple[float, float]:
    front = evolution.front()
    return float(len(front.ages)), float(front.objectives[:, 0].min())


def _need_pymoo() -> None:
    try:
        import pymoo  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError(
            Diagnostic(
                "SPL507",
                "the back end `mospl` needs the package `pymoo`, which is not installed",
                help=("pip install 'spdsl[mospl]'",),
            )
        ) from error

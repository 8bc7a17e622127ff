"""The back end `path_following`: the exact age-path of a self-paced model, or its partial optimum at one age.

In: a bound problem and options. Out: a `Path` whose nodes are exact to rounding and whose critical points say what
happened, or a `Solution`.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from spdsl.diagnostics import SpdslWarning
from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.problem.membership import in_share
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.solvers.active_set.build import build, coefficient_refusals, refusals
from spdsl.solvers.active_set.system import System
from spdsl.solvers.ages import Ages, age_refusals, emptied_class, resolve_ages, samples_in
from spdsl.solvers.alternate_search.search import search
from spdsl.solvers.alternate_search.start import first_fit, start_option
from spdsl.solvers.path_following.between import with_all_events
from spdsl.solvers.path_following.branch import AgeBranch
from spdsl.solvers.path_following.node import Node
from spdsl.solvers.path_following.record import Record, Recorder, critical_points, nodes_of_path
from spdsl.solvers.path_following.steps import Step, StepBranch, StepTracker, has_steps
from spdsl.solvers.path_following.tracker import BrokenPathError, Tracker
from spdsl.solvers.protocol import BackEnd, CommonOptions, option
from spdsl.solvers.threads import small_systems

__all__ = ["PathFollowing", "PathOptions", "PathState"]

_STEP_SECONDS = 0.1  # work between two looks at the clock


@dataclass(frozen=True)
class PathOptions(CommonOptions):
    """Options of `path_following`."""

    start: Any = start_option("where alternate search starts at the lowest age: full (the fit of all samples), zero")
    compiled: str = option(
        "auto",
        "passes over the samples in compiled loops: auto (from 1,000 samples on), always, never; "
        "the first use for a loss and an SP-regularizer compiles them, which takes seconds",
        choices=("auto", "always", "never"),
    )
    max_nodes: int = option(
        1_000_000,
        "nodes after which the path ends early",
        check=lambda value: None if value > 0 else "must be positive",
    )


@dataclass(frozen=True)
class PathState:
    """A path so far: its last node, chunks of records, and why it can't go on, if it can't."""

    system: System
    tracker: Tracker | StepTracker
    ages: Ages
    recorder: Recorder
    last: Node | Step
    chunks: tuple[tuple[Record, ...], ...]
    rounds: int
    broken: str = ""

    @property
    def records(self) -> list[Record]:
        """All records, ascending."""
        return [record for chunk in self.chunks for record in chunk]


class PathFollowing(BackEnd[PathState]):
    """Exact path-following over the age; see `spdsl.solvers.path_following.tracker`."""

    name: ClassVar[str] = "path_following"
    summary: ClassVar[str] = "exact age-path: turning points by extended Newton, jumps by descent (GAGA, whole)"
    options: ClassVar[type[CommonOptions]] = PathOptions
    explicit_features: ClassVar[bool] = True

    def refuses(self, problem: Problem) -> list[str]:
        """It needs a self-paced model with ages, and parts that make a `System`."""
        return [*refusals(problem), *age_refusals(problem, "there is no age to follow")]

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """Coefficients must not be negative."""
        return coefficient_refusals(problem)

    def init(self, problem: BoundProblem, options: PathOptions) -> PathState:
        """Alternate search at the lowest age, polished by Newton."""
        system = build(problem, compiled={"auto": None, "always": True, "never": False}[options.compiled])
        with small_systems(system.p):
            x = first_fit(problem, system, options.start, options.seed)
            losses = system.losses(x)
            ages = resolve_ages(problem, losses)
            found = search(system, ages.lower, x)
            tracker = StepTracker(system) if has_steps(system) else Tracker(system)
            node: Node | Step = tracker.start(found.minimum, 0.05 * (ages.upper - ages.lower))
        if ages.message:
            warnings.warn(ages.message, SpdslWarning, stacklevel=2)
        recorder = Recorder(problem, system)
        first, _ = recorder.add(None, node)
        failure = found.minimum.failure
        broken = f"alternate search found no minimum at the age {ages.lower:.6g} ({failure})" if failure else ""
        return PathState(system, tracker, ages, recorder, node, ((first,),), found.rounds, broken)

    def step(self, problem: BoundProblem, options: PathOptions, state: PathState) -> PathState:
        """Nodes for about a tenth of a second."""
        began = time.monotonic()
        chunk = list(state.chunks[-1])
        node = state.last
        broken = ""
        with small_systems(state.system.p):
            while node.age < state.ages.upper and time.monotonic() - began < _STEP_SECONDS:
                try:
                    node = _advanced(state.tracker, node, state.ages.upper)
                except BrokenPathError as error:
                    broken = f"at the age {node.age:.8g} the path can't go on: {error}"
                    break
                record, replaces = state.recorder.add(chunk[-1], node)
                if replaces:
                    chunk.pop()
                chunk.append(record)
        cut = len(chunk) - 1 if len(chunk) > 1 else 0  # the last record may still be joined by a tied event
        chunks = (
            (*state.chunks[:-1], tuple(chunk[:cut]), tuple(chunk[cut:])) if cut else (*state.chunks[:-1], tuple(chunk))
        )
        return replace(state, last=node, chunks=chunks, broken=broken)

    def done(self, problem: BoundProblem, options: PathOptions, state: PathState) -> Status | None:
        """At the upper age, or broken."""
        if state.broken:
            return Status.PARTIAL_PATH
        if state.last.age >= state.ages.upper:
            return Status.EXACT
        if sum(len(chunk) for chunk in state.chunks) >= options.max_nodes:
            return Status.ITERATION_LIMIT
        return None

    def progress(self, state: PathState) -> tuple[float, str]:
        """The share of the ages followed."""
        count = sum(len(chunk) for chunk in state.chunks)
        return state.ages.share(state.last.age), f"age {state.last.age:.4g}, {count} nodes"

    def finish(self, problem: BoundProblem, options: PathOptions, state: PathState, status: Status) -> Solution | Path:
        """The path, or at a fixed age the solution."""
        system, records = state.system, state.records
        ages, points, residuals = nodes_of_path(records)
        points = system.without_dust(points)
        status = _honest(status, residuals)
        inside = (samples_in(problem, system.losses(x), float(age)) for age, x in zip(ages, points))
        emptied = emptied_class(problem, ages, inside)
        message = "; ".join(text for text in (state.broken, state.ages.message, emptied) if text)
        statistics = _statistics(state, records)
        if state.ages.is_fixed:
            return Solution(
                bound=problem,
                x=points[-1],
                status=status,
                objective=problem.objective(points[-1], state.ages.lower),
                backend=self.name,
                age=state.ages.lower,
                message=message,
                kkt_residual=float(residuals[-1]),
                statistics=statistics,
            )
        return Path(
            bound=problem,
            ages=ages,
            nodes=points,
            kkt_residuals=residuals,
            status=status,
            backend=self.name,
            branch=_branch(system)(
                problem, ages, points, partial(_all_critical_points, problem, system, records), system
            ),
            message=message,
            history=_history(problem, system, records, ages, points),
            statistics=statistics,
        )

    def resume(self, problem: BoundProblem, path: Path) -> AgeBranch:
        """The branch of a loaded path; its critical points are stored with it."""
        system = build(problem)
        return _branch(system)(problem, path.ages, path.nodes, system=system)


def _branch(system: System) -> type[AgeBranch]:
    return StepBranch if has_steps(system) else AgeBranch


def _advanced(tracker: Tracker | StepTracker, node: Node | Step, upper: float) -> Node | Step:
    if isinstance(tracker, StepTracker):
        assert isinstance(node, Step)
        return tracker.advance(node, upper)
    assert isinstance(node, Node)
    return tracker.advance(node, upper)


def _all_critical_points(problem: BoundProblem, system: System, records: list[Record]) -> tuple[CriticalPoint, ...]:
    return critical_points(with_all_events(problem, system, records))


def _honest(status: Status, residuals: Array) -> Status:
    """A path that was followed to its end is exact, solved or stalled by its residuals, not by its being at the end."""
    if status is not Status.EXACT:
        return status
    worst = float(residuals.max(initial=0.0))
    if worst <= 1e-10:
        return Status.EXACT
    return Status.SOLVED if worst <= 1e-8 else Status.STALLED


def _history(problem: BoundProblem, system: System, records: list[Record], ages: Array, points: Array) -> History:
    shares: list[float] = []
    for record in records:
        if record.kind == "jump" and record.left is not None:
            shares.append(in_share(problem, system.losses(record.left), record.age))
        shares.append(record.share)
    nonzeros = np.count_nonzero(points, axis=1)
    return History({"age": ages, "in_share": np.array(shares, float), "nonzeros": np.asarray(nonzeros, float)})


def _statistics(state: PathState, records: list[Record]) -> dict[str, float]:
    tracker = state.tracker
    steps = (
        {} if isinstance(tracker, Tracker) else {"pushes": float(tracker.pushes), "solved_anew": float(tracker.anew)}
    )
    return steps | {
        "nodes": len(records),
        "leaps": sum(record.leapt for record in records),
        "turning_points": sum(record.kind == "turning" for record in records),
        "jumps": sum(record.kind == "jump" for record in records),
        "newton_steps": state.tracker.newton_steps,
        "rejected_strides": state.tracker.rejections,
        "search_rounds": state.rounds,
    }

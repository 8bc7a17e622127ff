"""The back end `group_path`: the exact age-path of a model with group norms, or its partial optimum at one age.

In: a bound problem and options. Out: a `Path` whose nodes are exact to rounding, or a `Solution`.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spdsl.diagnostics import Diagnostic, SolverError, SpdslWarning
from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.problem.membership import in_share
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.solvers.ages import Ages, age_refusals, emptied_class, resolve_ages, samples_in
from spdsl.solvers.alternate_search.start import first_weights, start_option
from spdsl.solvers.group_path.branch import GroupBranch, cause_of, near_border
from spdsl.solvers.group_path.model import GroupModel, data_refusals, make, structure_refusals
from spdsl.solvers.group_path.search import RoundsSpentError, minimum, search
from spdsl.solvers.group_path.state import Spot, residual
from spdsl.solvers.group_path.tracker import GroupNode, GroupTracker, LostPathError
from spdsl.solvers.protocol import BackEnd, CommonOptions, option
from spdsl.solvers.threads import small_systems

__all__ = ["GroupPath", "GroupPathOptions", "GroupPathState"]

_STEP_SECONDS = 0.1  # work between two looks at the clock


@dataclass(frozen=True)
class GroupPathOptions(CommonOptions):
    """Options of `group_path`."""

    start: Any = start_option("where alternate search starts at the lowest age: full (the fit of all samples), zero")
    max_nodes: int = option(
        1_000_000,
        "nodes after which the path ends early",
        check=lambda value: None if value > 0 else "must be positive",
    )


@dataclass(frozen=True)
class GroupPathState:
    """A path so far: rows of (age, x, residual), its events, the last node, and why it can't go on, if it can't."""

    model: GroupModel
    tracker: GroupTracker
    ages: Ages
    last: GroupNode
    rows: tuple[tuple[float, Array, float], ...]
    events: tuple[CriticalPoint, ...]
    rounds: int
    broken: str = ""


class GroupPath(BackEnd[GroupPathState]):
    """Exact path-following in polar coordinates; see `spdsl.solvers.group_path.state`."""

    name: ClassVar[str] = "group_path"
    summary: ClassVar[str] = "exact age-path under group norms, alone or with L1: groups enter and leave in polar form"
    options: ClassVar[type[CommonOptions]] = GroupPathOptions

    def refuses(self, problem: Problem) -> list[str]:
        """It needs a self-paced model with ages, a smooth loss, and a group norm."""
        return [*structure_refusals(problem), *age_refusals(problem, "there is no age to follow")]

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """Groups must not overlap, coefficients not be negative."""
        return data_refusals(problem)

    def init(self, problem: BoundProblem, options: GroupPathOptions) -> GroupPathState:
        """Alternate search at the lowest age, ended by Newton."""
        model = make(problem)
        weights = first_weights(problem.n_samples, options.start, options.seed)
        with small_systems(model.p):
            x = np.zeros(model.p)
            if weights is not None:
                fit = minimum(model, weights, x)
                if fit is None:
                    raise _no_fit("the fit that starts the run")
                x = fit.state.x
            ages = resolve_ages(problem, model.system.losses(x))
            try:
                found = search(model, ages.lower, x)
            except RoundsSpentError as error:
                raise SolverError(
                    Diagnostic(
                        "SPL506",
                        f"alternate search finds no partial optimum at the age {ages.lower:.6g} to start from: {error}",
                        help=("begin the ages a little lower or higher, or start otherwise: `start = zero`",),
                    )
                ) from None
        if found is None:
            raise _no_fit(f"alternate search at the age {ages.lower:.6g}")
        if ages.message:
            warnings.warn(ages.message, SpdslWarning, stacklevel=2)
        spot, rounds = found
        node = GroupNode(spot, "start", 0.05 * (ages.upper - ages.lower))
        return GroupPathState(model, GroupTracker(model), ages, node, (_row(spot),), (), rounds)

    def step(self, problem: BoundProblem, options: GroupPathOptions, state: GroupPathState) -> GroupPathState:
        """Nodes for about a tenth of a second."""
        began, node, broken = time.monotonic(), state.last, ""
        rows, events = list(state.rows), list(state.events)
        with small_systems(state.model.p):
            while node.age < state.ages.upper and time.monotonic() - began < _STEP_SECONDS:
                try:
                    node = state.tracker.advance(node, state.ages.upper)
                except LostPathError as error:
                    broken = f"at the age {node.age:.8g} the path can't go on: {error}"
                    break
                if node.kind == "jump" and node.arrived is not None:
                    rows.append((node.age, node.arrived.state.x, _row(node.arrived)[2]))
                rows.append(_row(node.spot))
                if node.before is not None:
                    events.append(_event(problem, node))
        return replace(state, last=node, rows=tuple(rows), events=tuple(events), broken=broken)

    def done(self, problem: BoundProblem, options: GroupPathOptions, state: GroupPathState) -> Status | None:
        """At the upper age, or broken."""
        if state.broken:
            return Status.PARTIAL_PATH
        if state.last.age >= state.ages.upper:
            return Status.EXACT
        return Status.ITERATION_LIMIT if len(state.rows) >= options.max_nodes else None

    def progress(self, state: GroupPathState) -> tuple[float, str]:
        """The share of the ages followed."""
        return state.ages.share(state.last.age), f"age {state.last.age:.4g}, {len(state.rows)} nodes"

    def finish(
        self, problem: BoundProblem, options: GroupPathOptions, state: GroupPathState, status: Status
    ) -> Solution | Path:
        """The path, or at a fixed age the solution."""
        model = state.model
        ages = np.array([row[0] for row in state.rows])
        points = np.array([row[1] for row in state.rows])
        residuals = np.array([row[2] for row in state.rows])
        if status is Status.EXACT and residuals.max() > 1e-10:
            status = Status.SOLVED if residuals.max() <= 1e-8 else Status.STALLED
        inside = (samples_in(problem, model.system.losses(x), float(age)) for age, x in zip(ages, points))
        emptied = emptied_class(problem, ages, inside)
        message = "; ".join(text for text in (state.broken, state.ages.message, emptied) if text)
        statistics = _statistics(state)
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
        shares = [in_share(problem, model.system.losses(x), float(age)) for age, x in zip(ages, points)]
        nonzeros = np.count_nonzero(points, axis=1).astype(float)
        return Path(
            bound=problem,
            ages=ages,
            nodes=points,
            kkt_residuals=residuals,
            status=status,
            backend=self.name,
            branch=GroupBranch(problem, model, ages, points, state.events),
            message=message,
            history=History({"age": ages, "in_share": np.array(shares, float), "nonzeros": nonzeros}),
            statistics=statistics,
        )

    def resume(self, problem: BoundProblem, path: Path) -> GroupBranch:
        """The branch of a loaded path; its critical points are stored with it."""
        return GroupBranch(problem, make(problem), path.ages, path.nodes)


def _row(spot: Spot) -> tuple[float, Array, float]:
    return spot.state.age, spot.state.x, residual(spot.state, spot.evaluation)


def _event(problem: BoundProblem, node: GroupNode) -> CriticalPoint:
    assert node.before is not None
    text, coordinates = cause_of(problem, node.before, node.spot.state)
    if node.kind != "jump":
        return CriticalPoint(node.age, "turning", text or "the path bends", (), coordinates)
    assert node.arrived is not None
    why, samples = near_border(problem, node.arrived)
    change = float(np.abs(node.spot.state.x - node.before.x).max())
    return CriticalPoint(node.age, "jump", "; ".join(filter(None, (why, text))), samples, coordinates, change)


def _no_fit(what: str) -> SolverError:
    return SolverError(
        Diagnostic(
            "SPL506",
            f"{what} has no finite optimum that could be reached (columns are free, or the classes can be separated)",
            help=("add a quadratic regularizer to what no group norm holds, or start otherwise: `start = zero`",),
        )
    )


def _statistics(state: GroupPathState) -> dict[str, float]:
    return {
        "nodes": len(state.rows),
        "turning_points": sum(event.kind == "turning" for event in state.events),
        "jumps": sum(event.kind == "jump" for event in state.events),
        "newton_steps": state.tracker.newton_steps,
        "rejected_strides": state.tracker.rejections,
        "search_rounds": state.rounds + state.tracker.rounds,
    }

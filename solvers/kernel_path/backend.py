"""The back end `kernel_path`: exact age-paths of SVMs and other kernel models with piecewise affine losses, in the dual.

In: a bound problem and options. Out: a `Path`, or at one age a `Solution`, in expansion coefficients.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from spdsl.diagnostics import SpdslWarning
from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.solvers.ages import Ages, age_refusals, in_share, resolve_ages
from spdsl.solvers.alternate_search.start import first_weights, start_option
from spdsl.solvers.kernel_path.events import Event, LostBranchError
from spdsl.solvers.kernel_path.fit import Fitted, zero
from spdsl.solvers.kernel_path.model import DualModel, refusals
from spdsl.solvers.kernel_path.search import fitted, search, state_of
from spdsl.solvers.kernel_path.tracker import KernelTracker
from spdsl.solvers.protocol import BackEnd, CommonOptions, option

__all__ = ["KernelPath", "KernelPathOptions"]

_STEP_SECONDS = 0.1
_ROOM = 2e8  # bytes of nodes, beyond which turning points are kept without their x


@dataclass(frozen=True)
class KernelPathOptions(CommonOptions):
    """Options of `kernel_path`."""

    start: Any = start_option("where alternate search starts at the lowest age: full (the fit of all samples), zero")
    max_nodes: int = option(
        1_000_000,
        "events and strides after which the path ends early",
        check=lambda value: None if value > 0 else "must be positive",
    )


@dataclass(frozen=True)
class _Node:
    age: float
    x: Array
    residual: float
    left: bool = False  # the side before a jump


@dataclass(frozen=True)
class KernelPathState:
    """A path so far. The tracker moves on in place; what is kept of it is immutable."""

    model: DualModel
    tracker: KernelTracker
    ages: Ages
    nodes: tuple[_Node, ...]
    events: tuple[Event, ...]
    worst: float
    searches: int
    broken: str = ""
    count: int = 0
    lost: tuple[float, int] = (0.0, 0)  # the age at which the branch was lost last, and how often in a row


_MANY = 2000  # samples
_BEYOND = (
    1e-10,
    1e-8,
    1e-6,
    1e-4,
    1e-3,
)  # how far, relative to the age, alternate search begins anew where the branch is lost


class KernelPath(BackEnd[KernelPathState]):
    """See `spdsl.solvers.kernel_path.tracker`."""

    name: ClassVar[str] = "kernel_path"
    summary: ClassVar[str] = (
        "exact age-path of a kernel SVM or another kinked loss, event by event in the dual (GAGA eq. 7)"
    )
    options: ClassVar[type[CommonOptions]] = KernelPathOptions

    def refuses(self, problem: Problem) -> list[str]:
        """It needs one rkhs variable, a piecewise affine loss with kinks, and ages."""
        return [*refusals(problem), *age_refusals(problem, "there is no age to follow")]

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """The norm's coefficient must be positive, and every sample must depend on f."""
        total = sum(float(problem.evaluate(item.coefficient)) for item in problem.problem.regularizers)
        if not (np.isfinite(total) and total > 0.0):
            return [f"the coefficient of the squared norm is {total:g}, and must be positive"]
        loss = problem.problem.loss
        assert loss is not None
        for term in loss.predictors[0].terms:
            if term.kind == "kernel" and term.scale is not None and not np.all(problem.evaluate(term.scale)):
                return ["some samples' losses don't depend on the rkhs variable (their factor is 0)"]
        return []

    def suits(self, problem: BoundProblem) -> bool:
        """Yes, but for thousands of samples under a kernel of few features: the engine over features has smaller systems."""
        (name,) = (item.name for item in problem.problem.variables if item.kind == "rkhs")
        kernel, arguments = problem.kernel_options(name)
        if kernel != "polynomial" or problem.n_samples <= _MANY:
            return True
        degree, d = int(arguments["degree"]), problem.kernel_points(name).shape[1]
        return 2 * math.comb(d + degree, degree) > problem.n_samples

    def init(self, problem: BoundProblem, options: KernelPathOptions) -> KernelPathState:
        """The first fit, alternate search at the lowest age, and the first node."""
        model = DualModel(problem)
        point = zero(model)
        weights = first_weights(problem.n_samples, options.start, options.seed)
        if weights is not None:
            shared = np.bincount(model.group, weights=weights, minlength=model.n) / model.count
            point = fitted(model, shared, point, far=True)
        losses = model.block.call(
            model.block.kernel.value, model.block.kernel.piece(point.z, *model.block.theta), point.z
        )
        ages = resolve_ages(problem, losses[model.group])
        if ages.message:
            warnings.warn(ages.message, SpdslWarning, stacklevel=2)
        state, rounds, failure = search(model, ages.lower, point)
        residual = state.residual()
        node = _Node(ages.lower, model.outward(state.mu, state.b), residual)
        broken = point.failure and f"the fit that starts the run is {point.failure}"
        return KernelPathState(
            model, KernelTracker(state), ages, (node,), (), residual, rounds, "; ".join(filter(None, (broken, failure)))
        )

    def step(self, problem: BoundProblem, options: KernelPathOptions, state: KernelPathState) -> KernelPathState:
        """Events for about a tenth of a second."""
        began = time.monotonic()
        tracker, model = state.tracker, state.model
        here = tracker.state
        nodes, events, worst, count = list(state.nodes), list(state.events), state.worst, state.count
        searches, broken = state.searches, ""
        lost_at, losses = state.lost
        stride = 0.05 * (state.ages.upper - state.ages.lower)
        keep = _ROOM / (8.0 * model.bound.layout.size)
        while here.age < state.ages.upper and time.monotonic() - began < _STEP_SECONDS:
            before = Fitted(here.mu, here.b, here.z, here.labels.copy())
            age = here.age
            try:
                event = _advanced(tracker, state.ages.upper, stride)
            except LostBranchError as error:
                losses = losses + 1 if age <= lost_at * (1.0 + 2.0 * _BEYOND[losses]) else 0
                lost_at, failure = age, "events at one age undo one another"
                if losses < len(_BEYOND) - 1:
                    found, rounds, failure = search(model, age * (1.0 + _BEYOND[losses]), _unpinned(model, before))
                    searches += rounds
                if failure:
                    broken = f"at the age {age:.8g} the path can't go on: {error}"
                    break
                tracker = KernelTracker(found)
                here = found
                change = float(np.abs(found.z - before.z).max())
                kind = "jump" if change > 1e-9 * model.block.scale else "stride"
                event = Event(found.age, kind, (), (before.mu, before.b) if kind == "jump" else None, change)
            count += 1
            residual = here.residual()
            worst = max(worst, residual)
            if event.left is not None:
                nodes.append(_Node(event.age, model.outward(*event.left), nodes[-1].residual, True))
            if event.kind != "turning" or len(nodes) < keep:
                nodes.append(_Node(event.age, model.outward(here.mu, here.b), residual))
            if event.kind != "stride":
                events.append(event)
        return replace(
            state,
            tracker=tracker,
            nodes=tuple(nodes),
            events=tuple(events),
            worst=worst,
            searches=searches,
            broken=broken,
            count=count,
            lost=(lost_at, losses),
        )

    def done(self, problem: BoundProblem, options: KernelPathOptions, state: KernelPathState) -> Status | None:
        """At the upper age, or broken."""
        if state.broken:
            return Status.PARTIAL_PATH
        if state.tracker.state.age >= state.ages.upper:
            return Status.EXACT if state.worst <= 1e-10 else Status.SOLVED if state.worst <= 1e-8 else Status.STALLED
        return Status.ITERATION_LIMIT if state.count >= options.max_nodes else None

    def progress(self, state: KernelPathState) -> tuple[float, str]:
        """The share of the ages followed."""
        age = state.tracker.state.age
        return state.ages.share(age), f"age {age:.4g}, {len(state.events)} events"

    def finish(
        self, problem: BoundProblem, options: KernelPathOptions, state: KernelPathState, status: Status
    ) -> Solution | Path:
        """The path, or at a fixed age the solution."""
        message = "; ".join(text for text in (state.broken, state.ages.message) if text)
        statistics = {
            "nodes": float(len(state.nodes)),
            "turning_points": float(sum(event.kind == "turning" for event in state.events)),
            "jumps": float(sum(event.kind == "jump" for event in state.events)),
            "newton_steps": float(state.tracker.state.newton_steps),
            "search_rounds": float(state.searches),
            "kernel_rows": float(state.model.cached.size),
            "kernel_bytes": float(state.model.memory),
        }
        last = state.nodes[-1]
        if state.ages.is_fixed:
            return Solution(
                bound=problem,
                x=last.x,
                status=status,
                objective=problem.objective(last.x, last.age),
                backend=self.name,
                age=last.age,
                message=message,
                kkt_residual=last.residual,
                statistics=statistics,
            )
        ages = np.array([node.age for node in state.nodes])
        nodes = np.array([node.x for node in state.nodes])
        return Path(
            bound=problem,
            ages=ages,
            nodes=nodes,
            kkt_residuals=np.array([node.residual for node in state.nodes]),
            status=status,
            backend=self.name,
            branch=KernelBranch(state.model, ages, nodes, state.events),
            message=message,
            history=_history(problem, state.model, ages, nodes),
            statistics=statistics,
        )

    def resume(self, problem: BoundProblem, path: Path) -> KernelBranch:
        """The branch of a loaded path."""
        return KernelBranch(DualModel(problem), path.ages, path.nodes, ())


class KernelBranch:
    """The tracked branch at any age: from the node below, event by event."""

    def __init__(self, model: DualModel, ages: Array, nodes: Array, events: Iterable[Event]) -> None:
        self.model, self.ages, self.nodes, self.events = model, ages, nodes, tuple(events)

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) and its scaled KKT residual; at the age of a jump, x after it."""
        k = min(max(int(np.searchsorted(self.ages, age, side="right")) - 1, 0), len(self.ages) - 1)
        state = state_of(self.model, float(self.ages[k]), self.nodes[k])
        if age <= self.ages[k]:
            return self.nodes[k], state.residual()
        tracker = KernelTracker(state)
        try:
            while state.age < age:
                _advanced(tracker, age, age - float(self.ages[k]))
        except LostBranchError:
            point = Fitted(state.mu, state.b, state.z, state.labels)
            state, _, _ = search(self.model, age, _unpinned(self.model, point))
        return self.model.outward(state.mu, state.b), state.residual()

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """Every turning point and jump, in words."""
        return tuple(_told(self.model, event) for event in self.events)


def _advanced(tracker: KernelTracker, upper: float, stride: float) -> Event:
    """The next event, and a point that is as exact as it should be.

    Raises
    ------
    LostBranchError
        When the tracker finds no way on, or a point that is no partial optimum.
    """
    with np.errstate(all="ignore"):  # gaps that never close divide by rates of zero
        event = tracker.advance(upper, stride)
        if tracker.state.residual() > 1e-9 and not (tracker.state.correct() and tracker.state.residual() <= 1e-9):
            raise LostBranchError("the point after an event is no partial optimum")
    return event


def _unpinned(model: DualModel, point: Fitted) -> Fitted:
    """The point with z from its multipliers."""
    return replace(point, z=model.apply(point.mu) + model.B @ point.b + model.c)


def _told(model: DualModel, event: Event) -> CriticalPoint:
    assert model.block.weighting is not None
    names = model.block.weighting.names
    phrases: list[str] = []
    samples: list[int] = []
    for row, before, after in event.causes:
        group = np.flatnonzero(model.group == row)
        samples.extend(int(i) for i in group)
        who = f"sample{'s' * (group.size > 1)} {', '.join(str(i) for i in group)}"
        if before[2] != after[2]:
            phrases.append(f"{who}: {names[before[2]]} -> {names[after[2]]}")
        elif before[1] != after[1]:
            phrases.append(
                f"{who} {'leave' if before[1] >= 0 else 'reach'}{'s' * (group.size == 1)} the kink of the loss"
            )
        elif before[0] != after[0]:
            phrases.append(f"{who} pass{'es' * (group.size == 1)} to another piece of the loss")
    if event.kind == "jump" and not phrases:
        phrases.append("the path folds back")
    return CriticalPoint(
        age=event.age,
        kind="jump" if event.kind == "jump" else "turning",
        cause="; ".join(dict.fromkeys(phrases)),
        samples=tuple(dict.fromkeys(samples)),
        coordinates=(),
        change=event.change if event.kind == "jump" else 0.0,
    )


def _history(problem: BoundProblem, model: DualModel, ages: Array, nodes: Array) -> History:
    shares, support = [], []
    for age, x in zip(ages, nodes):
        mu, b = model.inward(x)
        z = model.apply(mu) + model.B @ b + model.c
        loss = model.block.call(model.block.kernel.value, model.block.kernel.piece(z, *model.block.theta), z)
        shares.append(in_share(problem, loss[model.group], float(age)))
        support.append(float(np.count_nonzero(x[model.where])))
    return History({"age": ages, "in_share": np.array(shares, float), "nonzeros": np.array(support)})

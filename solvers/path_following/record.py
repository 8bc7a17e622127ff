"""What is kept of a path: one light record a node, events told in words; events of one age in one record.

In: the tracker's nodes as they come. Out: records, and from them the nodes of a `Path` and its critical points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.problem.membership import in_share
from spdsl.solution import CriticalPoint
from spdsl.solvers.active_set.minimize import residual
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System
from spdsl.solvers.path_following.causes import Cause, describe
from spdsl.solvers.path_following.leaps import Stop, stop_residual

__all__ = ["Record", "Recorder", "critical_points", "nodes_of_path"]


class Recorded(Protocol):
    """What is asked of a node: see `node.Node`, `steps.Step`."""

    @property
    def age(self) -> float:
        """Its age."""

    @property
    def point(self) -> Point:
        """The labelled point."""

    @property
    def evaluation(self) -> Evaluation:
        """The system there."""

    @property
    def stop(self) -> Stop | None:
        """The stop that it is, which needs no evaluation."""

    @property
    def kind(self) -> str:
        """What it is."""

    @property
    def before(self) -> Labels | None:
        """At an event, the labels that led here."""

    @property
    def cause(self) -> Labels | None:
        """At an event, the labels that say what caused it."""

    @property
    def left(self) -> Array | None:
        """At a jump, x before it."""

    @property
    def change(self) -> float:
        """At a jump, the largest change of x."""

    @property
    def leapt(self) -> bool:
        """Was the way here a leap?"""


@dataclass(frozen=True)
class Record:
    """A node: age, x, what happened there (None: nothing), x before a jump, and the scaled KKT residual."""

    age: float
    x: Array
    kind: str
    residual: float
    cause: Cause | None = None
    left: Array | None = None
    change: float = 0.0
    leapt: bool = False  # the way here was a leap: events of samples may lie on it
    share: float = 1.0  # of the samples that are in


class Recorder:
    """Makes records; remembers the labels before the events of the age in work, so that ties become one event."""

    def __init__(self, problem: BoundProblem, system: System) -> None:
        self.problem = problem
        self.system = system
        self.before: Labels | None = None

    def add(self, last: Record | None, node: Recorded) -> tuple[Record, bool]:
        """The node's record, and whether it replaces the last one (an event of the same age)."""
        record, replaces = self._record(last, node)
        losses = node.evaluation.losses if node.stop is None else node.stop.sweep.rows[3]
        return replace(record, share=in_share(self.problem, losses, node.age)), replaces

    def _record(self, last: Record | None, node: Recorded) -> tuple[Record, bool]:
        if node.stop is None:
            x, error = node.point.x, residual(self.system, node.evaluation)
        else:
            x, error = node.stop.x, stop_residual(self.system, node.stop)
        if node.kind not in ("turning", "jump") or node.before is None or node.cause is None:
            self.before = None
            return Record(node.age, x, node.kind, error, leapt=node.kind == "leap"), False
        tied = last is not None and node.age - last.age <= 1e-12 * node.age
        if not tied or last is None or last.cause is None or self.before is None:
            self.before = node.before
            cause = describe(self.problem, self.system, node.before, node.cause)
            leapt = node.leapt or (tied and last is not None and last.leapt)
            return Record(node.age, x, node.kind, error, cause, node.left, node.change, leapt), tied
        if last.kind == "jump" or node.kind == "jump":
            cause = _joined(last.cause, describe(self.problem, self.system, node.before, node.cause))
            left = last.left if last.left is not None else node.left
            change = float(np.abs(x - left).max(initial=0.0)) if left is not None else 0.0
            return Record(last.age, x, "jump", error, cause, left, change, last.leapt), True
        cause = describe(self.problem, self.system, self.before, node.cause)
        return Record(last.age, x, "turning", error, cause, leapt=last.leapt), True


def _joined(first: Cause | None, second: Cause) -> Cause:
    if first is None:
        return second
    texts = dict.fromkeys([*first.text.split("; "), *second.text.split("; ")])
    return Cause(
        "; ".join(texts),
        tuple(dict.fromkeys([*first.samples, *second.samples])),
        tuple(dict.fromkeys([*first.coordinates, *second.coordinates])),
    )


def critical_points(records: list[Record]) -> tuple[CriticalPoint, ...]:
    """Every turning point and jump, ascending by age."""
    return tuple(
        CriticalPoint(
            age=record.age,
            kind="jump" if record.kind == "jump" else "turning",
            cause=record.cause.text,
            samples=record.cause.samples,
            coordinates=record.cause.coordinates,
            change=record.change if record.kind == "jump" else 0.0,
        )
        for record in records
        if record.cause is not None
    )


def nodes_of_path(records: list[Record]) -> tuple[Array, Array, Array]:
    """Ages (k,), flat vectors (k, p) and residuals (k,), both sides of every jump."""
    ages: list[float] = []
    points: list[Array] = []
    errors: list[float] = []
    for record in records:
        if record.kind == "jump" and record.left is not None:
            ages.append(record.age)
            points.append(record.left)
            errors.append(errors[-1] if errors else record.residual)
        ages.append(record.age)
        points.append(record.x)
        errors.append(record.residual)
    return np.array(ages), np.array(points), np.array(errors)

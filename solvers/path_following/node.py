"""`Node`: a point of the tracked path with its way out, and what happened there.

In: a converged point, or a stop of a leap. Out: its gaps, and the predictor along its tangent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System
from spdsl.solvers.path_following.corrector import Converged, Tangent
from spdsl.solvers.path_following.leaps import Stop

__all__ = ["Node", "predicted"]


@dataclass(frozen=True)
class Node:
    """A point of the path with its outgoing direction.

    Attributes
    ----------
    out, arrived : Tangent
        The direction under the labels that hold from here on, and that under those that led here (None: a landing or start).
    kind : {"start", "stride", "leap", "turning", "jump"}
        A leap passes events of samples without stopping at them.
    before : Labels or None
        At an event, the labels that led here.
    cause : Labels or None
        At an event, the same with the causing terms flipped.
    change : float
        Largest change of x at a jump.
    left : array (p,) or None
        At a jump, x before it.
    leapt : bool
        Whether the way here was a leap.
    to_fold : float
        The way in age to a fold that the last two tangents point at.
    stride : float
        The stride to try next.
    leap : float
        The leap to try next.
    lost : int
        How often of late the way on was a descent anew.
    anchor, tied : float, int
        The age of the first of the nodes that lie, to rounding, at one age, and how many came after it.
    stop : Stop or None
        Where a leap ended, or a turning point that one met: the next leap starts there.
    """

    converged: Converged
    out: Tangent
    kind: Literal["start", "stride", "leap", "turning", "jump"]
    stride: float
    leap: float = 0.0
    arrived: Tangent | None = None
    before: Labels | None = None
    cause: Labels | None = None
    change: float = 0.0
    left: Array | None = None
    to_fold: float = np.inf
    leapt: bool = False
    anchor: float = 0.0
    tied: int = 0
    lost: int = 0
    stop: Stop | None = None

    def gaps(self, system: System) -> tuple[Array, Array]:
        """All gaps and their rates along the way out; kept after the first call."""
        kept: tuple[Array, Array] | None = self.__dict__.get("_gaps")
        if kept is None:
            kept = system.gaps(self.converged.evaluation, self.out.dx, self.out.ds, 1.0)
            self.__dict__["_gaps"] = kept
        return kept

    @property
    def point(self) -> Point:
        """The labelled point."""
        return self.converged.point

    @property
    def evaluation(self) -> Evaluation:
        """The system at the point."""
        return self.converged.evaluation

    @property
    def age(self) -> float:
        """Its age."""
        return self.point.age if self.stop is None else self.stop.age


def predicted(node: Node, h: float) -> Point:
    """The point on a node's tangent h farther in age."""
    point = node.point
    return replace(
        point,
        age=point.age + h,
        x=point.x + h * node.out.dx,
        multipliers=tuple(s + h * ds for s, ds in zip(point.multipliers, node.out.ds)),
    )

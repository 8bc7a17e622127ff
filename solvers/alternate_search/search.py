"""Alternate convex search (GAGA, Algorithm 1): weights by v*, then the w-problem at these weights, until nothing changes.

In: a self-paced system, an age, a start. Out: a partial optimum, polished by Newton to rounding, with the iterates' record.
Each round minimizes a convex majorant of the latent objective G, which therefore never rises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.flow import flow_down
from spdsl.solvers.active_set.minimize import Minimum, minimize
from spdsl.solvers.active_set.system import Labels, System
from spdsl.solvers.active_set.weighting import FixedWeights

__all__ = ["Round", "SearchResult", "round_of_search", "search"]


@dataclass(frozen=True)
class Round:
    """One round: the w-problem's exact solution at the weights of the x before it."""

    minimum: Minimum
    change: float  # largest change of the predictor, relative to its scale


@dataclass(frozen=True)
class SearchResult:
    """A partial optimum, and how it was reached."""

    minimum: Minimum
    rounds: int
    converged: bool


def round_of_search(system: System, age: float, x: Array, labels: Labels | None) -> Round:
    """Weights from x, then the w-problem."""
    weights = system.weights(x, age)
    convex = system.with_weighting(FixedWeights(weights))
    start = None if labels is None else convex.relabel(labels, x, age)
    minimum = minimize(convex, age, x, start)
    block = system.blocks[0]
    moved = np.asarray(block.A @ (minimum.point.x - x))
    return Round(minimum, float(np.abs(moved).max(initial=0.0)) / block.scale)


def search(
    system: System,
    age: float,
    x: Array,
    labels: Labels | None = None,
    tolerance: float = 1e-6,
    max_rounds: int = 1000,
) -> SearchResult:
    """Rounds until the predictor moves by less than `tolerance`, then a descent of G itself to the minimum beside it."""
    rounds, change = 0, np.inf
    minimum: Minimum | None = None
    while rounds < max_rounds and change > tolerance:
        done = round_of_search(system, age, x, labels)
        rounds += 1
        if done.minimum.failure:
            return SearchResult(done.minimum, rounds, False)
        minimum, change = done.minimum, done.change
        x, labels = minimum.point.x, minimum.point.labels
    polished = polish(system, age, x, labels)
    return SearchResult(polished, rounds, change <= tolerance)


def polish(system: System, age: float, x: Array, labels: Labels | None) -> Minimum:
    """The local minimum of G at which alternate search is about to arrive."""
    start = None if labels is None else system.relabel(labels, x, age)
    return flow_down(system, age, x, start)

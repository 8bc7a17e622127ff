"""Supports whose spanning forest costs no more than a budget: a price on the edges, found by bisection.

In: a projector with a budget, prizes. Out: the best support found whose cheapest spanning forest costs at most the
budget; of exactly s nodes where one was found, else of fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from spdsl.solvers.iht.projector import GraphProjector

__all__ = ["affordable_support"]

HALVINGS = 24
NEAR = 1e-3  # relative distance of two prices between which no other support is looked for


def affordable_support(projector: GraphProjector, prizes: NDArray[np.float64]) -> NDArray[np.int32]:
    """The best affordable support: sizes s, s/2, s/4, ... until one is found; a single node costs nothing."""
    s = projector.size
    while s >= 1:
        found = affordable_of_size(projector, prizes, s, min(projector.components, s))
        if found is not None:
            return found if s == projector.size else fill_up(projector, prizes, found)
        s //= 2
    return np.array([int(np.argmax(prizes))], dtype=np.int32)


def affordable_of_size(
    projector: GraphProjector, prizes: NDArray[np.float64], s: int, g: int
) -> NDArray[np.int32] | None:
    """Bisect the price mu of the edges: dearer edges, cheaper forests."""
    budget = projector.budget
    assert budget is not None

    def attempt(mu: float) -> tuple[NDArray[np.int32], bool]:
        support = projector.unbounded(prizes, s, g, mu)
        return support, projector._sub.forest_cost(support) <= budget * (1 + 1e-12)

    support, cheap = attempt(0.0)
    if cheap:
        return support
    costs = projector._sub.costs
    positive = costs[costs > 0]
    low, high = 0.0, 2.0 * float(prizes.max(initial=0.0) or 1.0) / float(positive.min())
    best, cheap = attempt(high)
    if not cheap:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high) if low > 0 else high / 16.0
        support, cheap = attempt(middle)
        if cheap:
            high = middle
            if prizes[support].sum() > prizes[best].sum():
                best = support
        else:
            low = middle
        if high - low <= NEAR * high:
            break
    return best


def fill_up(projector: GraphProjector, prizes: NDArray[np.float64], support: NDArray[np.int32]) -> NDArray[np.int32]:
    """Add the richest affordable neighbours while there is room in size and budget."""
    graph, budget = projector._sub, projector.budget
    assert budget is not None
    chosen = [int(v) for v in support]
    inside = np.zeros(graph.p, dtype=bool)
    inside[support] = True
    spent = graph.forest_cost(support)
    while len(chosen) < projector.size:
        one = inside[graph.edges[:, 0]] != inside[graph.edges[:, 1]]
        cheap = np.flatnonzero(one & (graph.costs <= budget - spent))
        if not cheap.size:
            break
        outer = np.where(inside[graph.edges[cheap, 0]], graph.edges[cheap, 1], graph.edges[cheap, 0])
        pick = int(np.argmax(prizes[outer] - 1e-9 * graph.costs[cheap]))
        inside[outer[pick]] = True
        chosen.append(int(outer[pick]))
        spent = graph.forest_cost(np.array(chosen))
    return np.array(chosen, dtype=np.int32)

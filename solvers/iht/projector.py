"""Projection onto connected supports of exactly s nodes in at most g pieces: the project's own search, cold and warm.

In: a graph, s, g, an optional budget for the edges, an effort. Out: `GraphProjector`, which projects from
scratch or near a support, and the one-shot functions `project`, `head`, `tail` and `size_targeted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.projection import Projection, scaled_prizes

if TYPE_CHECKING:
    from spdsl.solvers.iht.search import Search

__all__ = ["EFFORTS", "Effort", "GraphProjector", "head", "project", "size_targeted", "tail"]

Effort = Literal["fast", "medium", "strong", "exact"]
EFFORTS: tuple[str, ...] = get_args(Effort)
Array = NDArray[np.float64]
Nodes = NDArray[np.int32]


class GraphProjector:
    """Projects vectors onto the supports of exactly `size` nodes that form at most `components` connected pieces.

    Parameters
    ----------
    graph : Graph
    size, components : int
        s and g.
    budget : float, optional
        Largest total cost of a spanning forest of the support. With a budget the support may have fewer than `size`
        nodes (when no forest of `size` nodes that was found costs so little); without one it always has `size`.
    effort : {"fast", "medium", "strong", "exact"}
        How much time a search takes; ``exact`` lists or programs all supports, and refuses when they are too many.

    Raises
    ------
    UsageError
        When no admissible support exists: size > p, components > size, or pieces of the graph that are too small.
    """

    def __init__(
        self,
        graph: Graph,
        size: int,
        components: int = 1,
        budget: float | None = None,
        effort: Effort = "medium",
    ) -> None:
        check_sizes(graph, size, components, budget)
        if effort not in EFFORTS:
            raise UsageError(
                Diagnostic("SPL505", f"effort can't be {effort!r}", help=(f"one of: {', '.join(EFFORTS)}",))
            )
        self.graph, self.size, self.components = graph, int(size), int(components)
        self.effort = effort
        self.budget = None if budget is None or (graph.unit_costs and budget >= size - 1) else float(budget)
        self._sub, self._nodes = eligible_part(graph, self.size, self.components)
        self._place: Nodes | None = None
        if self._nodes is not None:
            self._place = np.full(graph.p, -1, dtype=np.int32)
            self._place[self._nodes] = np.arange(self._nodes.size, dtype=np.int32)

    def __call__(self, x: ArrayLike) -> Projection:
        """Project from scratch; the answer depends on x only."""
        vector, prizes, scale = scaled_prizes(x, self.graph.p)
        support = self._whole(self._search(self._part(prizes)))
        return Projection(vector, support, prizes, scale, f"own, {self.effort}", self.bound)

    def near(self, x: ArrayLike, last: NDArray[np.int64]) -> NDArray[np.int64]:
        """A support that captures at least what `last` (an admissible one) does, searched around it."""
        prizes = self._part(scaled_prizes(x, self.graph.p)[1])
        if self.budget is not None or self.effort == "exact":
            return self._whole(self._search(prizes))
        start = (last if self._place is None else self._place[last]).astype(np.int32)
        return self._whole(
            self._over(self.size, self.components).warm(prizes, start, EFFORTS.index(self.effort)).support
        )

    def bound(self, prizes: Array) -> float:
        """No admissible support captures more than this of `prizes` (the smallest of a few dual bounds)."""
        from spdsl.solvers.iht.bound import dual_bound, largest_sum

        part = self._part(prizes)
        best = float(largest_sum(part, self.size))
        if best == 0.0:
            return 0.0
        ranked = np.sort(part)[::-1]
        slope = self._slope(part)
        for lam in (1.5 * slope, 2.0 * slope, slope, float(ranked[self.size - 1])):
            if lam > 0.0:
                best = min(best, float(dual_bound(self._sub, part, self.size, self.components, lam)))
        return best

    # -- the search --------------------------------------------------------------------------------------------------

    def _part(self, prizes: Array) -> Array:
        return prizes if self._nodes is None else prizes[self._nodes]

    def _whole(self, support: Nodes) -> NDArray[np.int64]:
        nodes = support if self._nodes is None else self._nodes[support]
        return np.sort(nodes).astype(np.int64)

    def _search(self, prizes: Array) -> Nodes:
        if self.budget is not None:
            from spdsl.solvers.iht.budget import affordable_support

            return affordable_support(self, prizes)
        return self.unbounded(prizes, self.size, self.components, 0.0)

    @cached_property
    def _searches(self) -> dict[tuple[int, int], Search]:
        return {}

    def _over(self, s: int, g: int) -> Search:
        """The search for s nodes in g pieces (a budget may ask for fewer than `size`)."""
        if (s, g) not in self._searches:
            from spdsl.solvers.iht.search import Search

            self._searches[s, g] = Search(self._sub, anchors(self._sub, self.components), s, g)
        return self._searches[s, g]

    def unbounded(self, prizes: Array, s: int, g: int, mu: float) -> Nodes:
        """The search with edges at mu times their cost and no budget."""
        if self.effort == "exact" and mu == 0.0:
            from spdsl.solvers.iht.exact import exact_support

            return exact_support(self._sub, prizes, s, g)
        return self._over(s, g).cold(prizes, min(EFFORTS.index(self.effort), 2), mu).support

    def _slope(self, prizes: Array) -> float:
        """Marginal energy of the last node, from a fast search."""
        found = self._over(self.size, self.components).cold(prizes, 0)
        return found.slope if np.isfinite(found.slope) else found.value / self.size


def project(
    x: ArrayLike,
    graph: Graph,
    size: int,
    components: int = 1,
    budget: float | None = None,
    effort: Effort = "medium",
) -> Projection:
    """The best support that the search finds for x: exactly `size` nodes in at most `components` pieces."""
    return GraphProjector(graph, size, components, budget, effort)(x)


def tail(
    x: ArrayLike,
    graph: Graph,
    size: int,
    components: int = 1,
    budget: float | None = None,
    effort: Effort = "medium",
) -> Projection:
    """A tail approximation: ``|x - x_S| <= sqrt(7) min |x - x_S'|`` over the weighted graph model.

    The better of the project's own support and that of Hegde, Indyk and Schmidt (2015), which may be larger than
    `size`.
    """
    from spdsl.solvers.iht.guaranteed import tail_nodes

    return better_of(x, graph, size, components, budget, effort, "tail", tail_nodes)


def head(
    x: ArrayLike,
    graph: Graph,
    size: int,
    components: int = 1,
    budget: float | None = None,
    effort: Effort = "medium",
) -> Projection:
    """A head approximation: ``|x_S| >= sqrt(1/14) max |x_S'|`` over the weighted graph model.

    The better of the project's own support and that of Hegde, Indyk and Schmidt (2015), which may be larger than
    `size`.
    """
    from spdsl.solvers.iht.guaranteed import head_nodes

    return better_of(x, graph, size, components, budget, effort, "head", head_nodes)


def better_of(
    x: ArrayLike,
    graph: Graph,
    size: int,
    components: int,
    budget: float | None,
    effort: Effort,
    name: str,
    theory: object,
) -> Projection:
    """The higher energy of the own search and a guaranteed one."""
    assert callable(theory)
    own = GraphProjector(graph, size, components, budget, effort)(x)
    nodes = np.asarray(theory(graph, own.prizes, size, components, budget), dtype=np.int64)
    if own.prizes[nodes].sum() <= own.scaled_energy:
        return own
    return Projection(own.vector, np.sort(nodes), own.prizes, own.scale, f"{name}, theory", own.bounder)


def size_targeted(
    x: ArrayLike,
    graph: Graph,
    low: int,
    high: int,
    components: int = 1,
    max_forests: int = 50,
) -> Projection:
    """The projection of the published experiments: bisect until a forest has `low` to `high` nodes (it may miss).

    Raises
    ------
    UsageError
        When ``low > high`` or the sizes are not admissible.
    """
    from spdsl.solvers.iht.guaranteed import size_targeted_nodes

    if low > high or low < 1:
        raise UsageError(Diagnostic("SPL511", f"no support has {low} to {high} nodes"))
    vector, prizes, scale = scaled_prizes(x, graph.p)
    nodes, forests = size_targeted_nodes(graph, prizes, low, high, components, max_forests)
    support = np.sort(nodes).astype(np.int64)

    def bounder(values: Array) -> float:
        return GraphProjector(graph, max(low, support.size, 1), components, effort="fast").bound(values)

    return Projection(vector, support, prizes, scale, "size-targeted", bounder, forests)


def check_sizes(graph: Graph, size: int, components: int, budget: float | None) -> None:
    """Refuse sizes for which no admissible support exists."""
    complaint = ""
    helps: Sequence[str] = ()
    room = int(np.sort(graph.component_sizes)[::-1][: max(components, 1)].sum()) if graph.p else 0
    if size < 1 or components < 1:
        complaint = f"size and components are at least 1, not {size} and {components}"
    elif size > graph.p:
        complaint = f"a support of {size} nodes is asked for, and the graph has {graph.p}"
        helps = (f"ask for size <= {graph.p}",)
    elif components > size:
        complaint = f"{size} nodes can't form {components} pieces"
        helps = (f"ask for components <= {size}",)
    elif budget is not None and not (np.isfinite(budget) and budget >= 0):
        complaint = f"a budget is a finite number that is not negative, not {budget}"
    elif room < size:
        complaint = (
            f"the graph falls into {graph.component_sizes.size} pieces, and the {components} largest have only {room} "
            f"nodes together: no support of {size} nodes has at most {components} pieces"
        )
        helps = (f"ask for size <= {room}, or for more components",)
    if complaint:
        raise UsageError(Diagnostic("SPL511", complaint, help=tuple(helps)))


def eligible_part(graph: Graph, s: int, g: int) -> tuple[Graph, Nodes | None]:
    """For one piece: the subgraph of the components that can hold s nodes (None: all of them can)."""
    if g > 1 or int(graph.component_sizes.min()) >= s:
        return graph, None
    fits = graph.component_sizes[graph.component] >= s
    nodes = np.flatnonzero(fits).astype(np.int32)
    place = np.cumsum(fits) - 1
    inside = fits[graph.edges[:, 0]]
    return Graph.from_edges(place[graph.edges[inside]], nodes.size, graph.costs[inside]), nodes


def anchors(graph: Graph, g: int) -> Nodes:
    """The first node of each of the g largest components: without them a search could miss components of zeros."""
    largest = np.argsort(-graph.component_sizes, kind="stable")[:g]
    first = np.full(graph.component_sizes.size, -1, dtype=np.int64)
    label = graph.component
    first[label[::-1]] = np.arange(graph.p - 1, -1, -1)
    return first[largest].astype(np.int32)

"""The sets of supports that iterates are projected onto: sparse, connected, groups, and unions of given supports.

In: a vector. Out: the numbers of the entries that stay. Each set offers `tail(x, last)`, warm when it gets its last
answer, and `head(x, factor)` over supports `factor` times as large, as CoSaMP and the paper's head projection want it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.projection import scaled_prizes
from spdsl.solvers.iht.projector import Effort, GraphProjector

__all__ = [
    "ConnectedSet",
    "EnlargedSet",
    "GroupSet",
    "PublishedConnectedSet",
    "SparseSet",
    "SupportSet",
    "SupportUnion",
]

Array = NDArray[np.float64]
Nodes = NDArray[np.int64]


class SupportSet(Protocol):
    """What the methods ask of a set."""

    size: int
    """How many entries a support has, at most."""

    def tail(self, x: Array, last: Nodes | None = None) -> Nodes:
        """The entries of a best support for x, ascending; near `last` where that is faster."""

    def head(self, x: Array, factor: float = 1.0) -> Nodes:
        """The entries of a best support about `factor` times as large."""


class SparseSet:
    """All supports of at most s of p entries."""

    def __init__(self, p: int, size: int) -> None:
        if not 1 <= size <= p:
            raise UsageError(Diagnostic("SPL511", f"a support of {size} entries is asked for, and the vector has {p}"))
        self.p, self.size = p, int(size)

    def tail(self, x: Array, last: Nodes | None = None) -> Nodes:
        return largest(scaled_prizes(x, self.p)[1], self.size)

    def head(self, x: Array, factor: float = 1.0) -> Nodes:
        return largest(scaled_prizes(x, self.p)[1], enlarged(self.size, factor, self.p))


class ConnectedSet:
    """All supports of s nodes in at most g connected pieces of a graph, within a budget of edge costs."""

    def __init__(
        self,
        graph: Graph,
        size: int,
        components: int = 1,
        budget: float | None = None,
        effort: Effort = "fast",
    ) -> None:
        self.graph, self.size, self.components, self.budget = graph, int(size), int(components), budget
        self.effort: Effort = effort
        self.projector = GraphProjector(graph, size, components, budget, effort)
        self.heads: dict[float, GraphProjector] = {}

    def tail(self, x: Array, last: Nodes | None = None) -> Nodes:
        return self.projector(x).support if last is None else self.projector.near(x, last)

    def head(self, x: Array, factor: float = 1.0) -> Nodes:
        if factor not in self.heads:
            self.heads[factor] = self._larger(factor)
        return self.heads[factor](x).support

    def _larger(self, factor: float) -> GraphProjector:
        room = int(np.sort(self.graph.component_sizes)[::-1][: max(1, round(factor * self.components))].sum())
        pieces = max(1, round(factor * self.components)) if factor > 1 else self.components
        size = min(room, self.graph.p, max(pieces, round(factor * self.size)))
        budget = None if self.budget is None else max(factor, 1.0) * self.budget
        return GraphProjector(self.graph, size, min(pieces, size), budget, self.effort)


class PublishedConnectedSet:
    """The projections of the published GraphStoIHT experiments: size-targeted Steiner forests.

    The tail aims at s to 1.1 s nodes, the head at p/2 to 1.1 p/2 (at 2 s to 2.2 s and twice the pieces for CoSaMP);
    each grows at most 50 forests and may miss.
    """

    def __init__(self, graph: Graph, size: int, components: int = 1) -> None:
        from spdsl.solvers.iht.projector import check_sizes

        check_sizes(graph, size, components, None)
        self.graph, self.size, self.components = graph, int(size), int(components)
        self.forests = 0

    def tail(self, x: Array, last: Nodes | None = None) -> Nodes:
        return self._targeted(x, self.size, self.components)

    def head(self, x: Array, factor: float = 1.0) -> Nodes:
        """`factor` 2 is CoSaMP's head; any other the head of p / 2."""
        if factor == 2.0:
            return self._targeted(x, min(2 * self.size, self.graph.p), 2 * self.components)
        return self._targeted(x, max(1, self.graph.p // 2), self.components)

    def _targeted(self, x: Array, size: int, components: int) -> Nodes:
        from spdsl.solvers.iht.guaranteed import size_targeted_nodes

        prizes = scaled_prizes(x, self.graph.p)[1]
        high = min(self.graph.p, max(size, int(1.1 * size)))
        nodes, forests = size_targeted_nodes(self.graph, prizes, size, high, components)
        self.forests += forests
        return np.sort(nodes).astype(np.int64)


class EnlargedSet:
    """Supports `factor` times as large as another set's, for runs that are cut to its size only at their end."""

    def __init__(self, inner: SupportSet, factor: float) -> None:
        self.inner, self.factor = inner, factor
        self.size = inner.size  # what the answer is cut to

    def tail(self, x: Array, last: Nodes | None = None) -> Nodes:
        return self.inner.head(x, self.factor)

    def head(self, x: Array, factor: float = 1.0) -> Nodes:
        return self.inner.head(x, factor)


class GroupSet:
    """All supports inside at most `count` groups of entries, each entry in one group.

    Parameters
    ----------
    labels : array (p,)
        The group of each entry, any values.
    count : int
    size : int, optional
        Entries at most, beside the count of groups: the groups that are best for their `size` largest entries are not
        exact then, so the groups are picked first and the largest entries in them after.
    """

    def __init__(self, labels: ArrayLike, count: int, size: int | None = None) -> None:
        _, self.group = np.unique(np.asarray(labels), return_inverse=True)
        self.groups = int(self.group.max(initial=-1)) + 1
        if not 1 <= count <= self.groups:
            raise UsageError(Diagnostic("SPL511", f"{count} groups are asked for, and there are {self.groups}"))
        self.count = int(count)
        sizes = np.sort(np.bincount(self.group))[::-1]
        whole = int(sizes[: self.count].sum())
        self.cap = size
        self.size = whole if size is None else min(int(size), whole)

    def tail(self, x: Array, last: Nodes | None = None) -> Nodes:
        return self._best(x, self.count, self.cap)

    def head(self, x: Array, factor: float = 1.0) -> Nodes:
        cap = None if self.cap is None else enlarged(self.cap, factor, self.group.size)
        return self._best(x, enlarged(self.count, factor, self.groups), cap)

    def _best(self, x: Array, count: int, cap: int | None) -> Nodes:
        prizes = scaled_prizes(x, self.group.size)[1]
        energy = np.asarray(np.bincount(self.group, weights=prizes, minlength=self.groups), dtype=float)
        inside = np.zeros(self.groups, dtype=bool)
        inside[largest(energy, count)] = True
        nodes = np.flatnonzero(inside[self.group])
        if cap is not None and nodes.size > cap:
            nodes = nodes[largest(prizes[nodes], cap)]
        return nodes


class SupportUnion:
    """All supports inside the union of at most `count` of the given ones.

    One support is picked exactly; several greedily, each for the energy that it adds (at least 1 - 1/e of the best).
    """

    def __init__(self, p: int, supports: Sequence[ArrayLike], count: int = 1) -> None:
        self.p, self.count = p, int(count)
        self.supports = [np.unique(np.asarray(nodes, dtype=np.int64)) for nodes in supports]
        if not 1 <= count <= len(self.supports):
            raise UsageError(
                Diagnostic("SPL511", f"{count} supports are asked for, and {len(self.supports)} are given")
            )
        for i, nodes in enumerate(self.supports):
            if nodes.size and not (nodes[0] >= 0 and nodes[-1] < p):
                raise UsageError(
                    Diagnostic("SPL511", f"support {i} names entries outside the vector's {p} (0 to {p - 1})")
                )
        self.size = int(np.sort([nodes.size for nodes in self.supports])[::-1][:count].sum())

    def tail(self, x: Array, last: Nodes | None = None) -> Nodes:
        return self._pick(x, self.count)

    def head(self, x: Array, factor: float = 1.0) -> Nodes:
        return self._pick(x, enlarged(self.count, factor, len(self.supports)))

    def _pick(self, x: Array, count: int) -> Nodes:
        left = scaled_prizes(x, self.p)[1].copy()
        chosen = np.zeros(self.p, dtype=bool)
        for _ in range(count):
            gains = [float(left[nodes].sum()) for nodes in self.supports]
            nodes = self.supports[int(np.argmax(gains))]
            chosen[nodes] = True
            left[nodes] = 0.0
        return np.flatnonzero(chosen)


def enlarged(count: int, factor: float, most: int) -> int:
    """`factor` times as many, at least one and at most all there are."""
    return min(most, max(1, round(factor * count)))


def largest(values: Array, count: int) -> Nodes:
    """Positions of the `count` largest values, ascending; of equal ones the first."""
    if count >= values.size:
        return np.arange(values.size)
    edge = np.partition(values, values.size - count)[values.size - count]
    above = np.flatnonzero(values > edge)
    ties = np.flatnonzero(values == edge)[: count - above.size]
    return np.sort(np.concatenate([above, ties]))

"""A graph as arrays: checked, without self-loops or parallel edges, ready for the kernels.

In: an edge list, a grid's shape, a SciPy adjacency or a NetworkX graph. Out: `Graph`, which holds each edge once
(the cheaper of parallel ones) and each node's neighbours in compressed rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdsl.diagnostics import DataError, Diagnostic

__all__ = ["Graph", "grid"]


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with `p` nodes, numbered from 0, whose edges have costs.

    Attributes
    ----------
    p : int
        Number of nodes.
    edges : int array (m, 2)
        Each edge once, smaller node first, in increasing order.
    costs : float array (m,)
        Cost of each edge, non-negative and finite.
    indptr, neighbours, edge_of : int arrays (p + 1,), (2 m,), (2 m,)
        Node v's neighbours are ``neighbours[indptr[v]:indptr[v+1]]``, reached through edges ``edge_of[...]``.
    names : tuple or None
        The nodes' own names where the source had any (NetworkX).
    """

    p: int
    edges: NDArray[np.int32]
    costs: NDArray[np.float64]
    indptr: NDArray[np.int32]
    neighbours: NDArray[np.int32]
    edge_of: NDArray[np.int32]
    names: tuple[Any, ...] | None = None

    @classmethod
    def from_edges(
        cls, edges: ArrayLike, p: int | None = None, costs: ArrayLike | None = None, place: str = "the graph"
    ) -> Graph:
        """The graph of an edge list; self-loops are dropped, of parallel edges the cheapest stays.

        Parameters
        ----------
        edges : int array (m, 2)
        p : int, optional
            Number of nodes; by default one more than the largest node that an edge names.
        costs : array (m,), optional
            By default every edge costs 1.
        place : str
            Where the edges come from, for messages.

        Raises
        ------
        DataError
            When a node is not a whole number of ``0 .. p-1``, or a cost is negative or not finite.
        """
        pairs = _edge_array(edges, place)
        largest = int(pairs.max(initial=-1))
        count = largest + 1 if p is None else int(p)
        if pairs.size and int(pairs.min()) < 0:
            row = int(np.argmin(pairs.min(axis=1)))
            raise _bad(f"edge {row} joins node {pairs[row].min()}, and nodes are numbered from 0", place)
        if largest >= count:
            row = int(np.argmax(pairs.max(axis=1)))
            raise _bad(
                f"edge {row} joins node {largest}, but the graph has {count} nodes (0 to {count - 1})",
                place,
                "number the nodes from 0, in the order of the vector's entries",
            )
        price = _cost_array(costs, len(pairs), place)
        low, high = pairs.min(axis=1), pairs.max(axis=1)
        keep = low != high
        low, high, price = low[keep], high[keep], price[keep]
        order = np.lexsort((price, high, low))
        low, high, price = low[order], high[order], price[order]
        first = np.ones(len(low), dtype=bool)
        first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        clean = np.stack([low[first], high[first]], axis=1).astype(np.int32)
        return cls(count, clean, np.ascontiguousarray(price[first]), *_rows(count, clean))

    @classmethod
    def from_adjacency(cls, adjacency: Any, place: str = "the adjacency matrix") -> Graph:
        """The graph of a square SciPy sparse (or dense) adjacency: a stored non-zero is an edge with that cost.

        Both triangles are read; where they disagree the smaller cost counts.
        """
        from scipy import sparse

        matrix = sparse.coo_array(adjacency)
        if matrix.shape[0] != matrix.shape[1]:
            raise _bad(f"it is {matrix.shape[0]} x {matrix.shape[1]}, and an adjacency is square", place)
        stored = matrix.data != 0
        pairs = np.stack([matrix.row[stored], matrix.col[stored]], axis=1)
        values = matrix.data[stored]
        costs = np.ones(len(pairs)) if values.dtype == bool else values.astype(float)
        return cls.from_edges(pairs, matrix.shape[0], costs, place)

    @classmethod
    def from_networkx(cls, graph: Any, weight: str = "cost", place: str = "the NetworkX graph") -> Graph:
        """The graph of a NetworkX graph: nodes in its order, edge attribute `weight` as cost (1 where absent)."""
        names = tuple(graph.nodes)
        number = {name: i for i, name in enumerate(names)}
        triples = [(number[u], number[v], data.get(weight, 1.0)) for u, v, data in graph.edges(data=True)]
        pairs = np.array([(u, v) for u, v, _ in triples], dtype=np.int64).reshape(-1, 2)
        built = cls.from_edges(pairs, len(names), np.array([c for *_, c in triples], dtype=float), place)
        return cls(**{**_fields(built), "names": names})

    @cached_property
    def half_edges(self) -> NDArray[np.int32]:
        """The half-edge of each neighbour in the rows: 2 e on the side of ``edges[e, 0]``, 2 e + 1 on the other (2 m,)."""
        node = np.repeat(np.arange(self.p), np.diff(self.indptr))
        far = self.edges[self.edge_of, 0] != node
        return np.asarray(2 * self.edge_of + far, dtype=np.int32)

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """The connected component of each node, numbered from 0 (p,)."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        ones = np.ones(len(self.neighbours), dtype=np.int8)
        rows = sparse.csr_array((ones, self.neighbours, self.indptr), shape=(self.p, self.p))
        return np.asarray(connected_components(rows, directed=False)[1], dtype=np.int32)

    @cached_property
    def component_sizes(self) -> NDArray[np.int64]:
        """Number of nodes of each connected component."""
        return np.bincount(self.component, minlength=1 if self.p else 0)

    @cached_property
    def unit_costs(self) -> bool:
        """Whether every edge costs 1, so that a forest of s nodes and g trees costs exactly s - g."""
        return bool(np.all(self.costs == 1.0))

    @cached_property
    def grid_shape(self) -> tuple[int, int] | None:
        """Height and width when this is the grid graph of `grid`, with at least two rows and columns; else None."""
        inner = self.neighbours[: self.indptr[1]] if self.p else self.neighbours
        if inner.size != 2:
            return None
        width = int(inner.max())  # the corner's neighbours are node 1 and the node below
        height, rest = divmod(self.p, width)
        if rest or width < 2 or len(self.edges) != height * (width - 1) + width * (height - 1):
            return None
        return (height, width) if np.array_equal(self.edges, grid(height, width).edges) else None

    def components_of(self, support: ArrayLike) -> list[NDArray[np.int64]]:
        """The connected pieces of the subgraph on the nodes `support`, each sorted, largest first."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        nodes = np.unique(np.asarray(support, dtype=np.int64))
        if not nodes.size:
            return []
        place = np.full(self.p, -1, dtype=np.int64)
        place[nodes] = np.arange(nodes.size)
        inside = self.inner_edges(nodes)
        ends = place[self.edges[inside]]
        links = sparse.coo_array(
            (np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(nodes.size, nodes.size)
        )
        count, label = connected_components(links, directed=False)
        pieces = [nodes[label == k] for k in range(count)]
        return sorted(pieces, key=lambda piece: (-piece.size, int(piece[0])))

    def inner_edges(self, support: ArrayLike) -> NDArray[np.int64]:
        """Indices of the edges whose two ends lie in `support`."""
        mask = np.zeros(self.p, dtype=bool)
        mask[np.asarray(support, dtype=np.int64)] = True
        return np.flatnonzero(mask[self.edges[:, 0]] & mask[self.edges[:, 1]])

    def forest_cost(self, support: ArrayLike) -> float:
        """Cost of the cheapest forest that spans `support` with as few trees as its subgraph allows."""
        inside = self.inner_edges(support)
        if self.unit_costs:
            return float(np.unique(np.asarray(support)).size - len(self.components_of(support)))
        from spdsl.solvers.iht.tree_building import spanning_cost

        cheapest = inside[np.argsort(self.costs[inside], kind="stable")]
        return float(spanning_cost(self.edges[cheapest], self.costs[cheapest]))


def grid(height: int, width: int) -> Graph:
    """The grid of `height` x `width` nodes: node ``r * width + c``, edges of cost 1 to the right and down."""
    if height < 1 or width < 1:
        raise _bad(f"a grid needs at least one row and one column, not {height} x {width}", "grid")
    number = np.arange(height * width, dtype=np.int64).reshape(height, width)
    right = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return Graph.from_edges(np.concatenate([right, down]), height * width)


def _edge_array(edges: ArrayLike, place: str) -> NDArray[np.int64]:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise _bad(f"an edge list has two columns, and this one has shape {pairs.shape}", place)
    if pairs.dtype.kind not in "iuf":
        raise _bad(f"nodes are whole numbers, and these are {pairs.dtype}", place)
    whole = pairs.astype(np.int64) if pairs.dtype.kind != "f" or np.isfinite(pairs).all() else None
    if whole is None or (pairs.dtype.kind == "f" and bool(np.any(whole != pairs))):
        raise _bad("nodes are whole numbers, and some of these are fractions or not finite", place)
    return whole


def _cost_array(costs: ArrayLike | None, count: int, place: str) -> NDArray[np.float64]:
    if costs is None:
        return np.ones(count)
    price = np.array(costs, dtype=float).ravel()
    if len(price) != count:
        raise _bad(f"{len(price)} costs for {count} edges", place)
    wrong = np.flatnonzero(~(np.isfinite(price) & (price >= 0)))
    if wrong.size:
        raise _bad(
            f"edge {wrong[0]} costs {price[wrong[0]]}, and a cost is a finite number that is not negative", place
        )
    return price


def _rows(p: int, edges: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    tail = np.concatenate([edges[:, 0], edges[:, 1]])
    head = np.concatenate([edges[:, 1], edges[:, 0]])
    number = np.tile(np.arange(len(edges), dtype=np.int32), 2)
    order = np.lexsort((head, tail))
    indptr = np.zeros(p + 1, dtype=np.int32)
    np.cumsum(np.bincount(tail, minlength=p), out=indptr[1:])
    return indptr, head[order].astype(np.int32), number[order]


def _fields(graph: Graph) -> dict[str, Any]:
    names = ("p", "edges", "costs", "indptr", "neighbours", "edge_of")
    return {name: getattr(graph, name) for name in names}


def _bad(message: str, place: str, *help: str) -> DataError:
    return DataError(Diagnostic("SPL441", message, place=place, help=help))

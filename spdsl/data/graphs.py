"""Graphs for `graph(p)`: nodes are the coordinates of a vector, edges carry costs.

In: edge lists, adjacency matrices, networkx graphs, grids. Out: `Graph`, simple and undirected.
The rule for edges that a simple graph can't hold: self-loops are dropped, and of parallel edges (the two directions
count as parallel) the cheapest stays, because no tree would use another. How many went is kept in `dropped`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdsl.data.arrays import is_sparse
from spdsl.data.complaints import Complaints, Spot, counted, listed
from spdsl.diagnostics import nearest_name
from spdsl.problem.functions import Array

__all__ = ["EdgeList", "Graph", "graph_from_text", "grid", "to_graph"]


@dataclass(frozen=True)
class Graph:
    """A simple undirected graph.

    Attributes
    ----------
    n_nodes : int
    edges : int64 array (E, 2)
        Smaller end first, in ascending order, each edge once.
    costs : float64 array (E,)
        Finite and >= 0.
    names : tuple of str, optional
        The nodes' names, where they had any.
    dropped : tuple of int
        How many self-loops and how many parallel edges were left out.
    """

    n_nodes: int
    edges: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)
    costs: Array = field(repr=False)
    names: tuple[str, ...] | None = field(default=None, repr=False)
    dropped: tuple[int, int] = (0, 0)

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return len(self.edges)


@dataclass(frozen=True)
class EdgeList:
    """Edges as they were read: ends are node ids from 0 (`ids`) or names (`ends`), costs may be absent.

    `where(k)` is the place of edge k; `n_nodes` is None when the list doesn't say.
    """

    ids: np.ndarray[Any, np.dtype[np.int64]] | None
    ends: Sequence[tuple[str, str]] | None
    costs: Any
    source: str
    lines: Any = None
    n_nodes: int | None = None
    names: tuple[str, ...] | None = None
    stem: str = ""

    @property
    def part_names(self) -> tuple[str, ...]:
        """What `NAME=SOURCE` can refer to: nothing, the list is one whole."""
        return ()

    def where(self, k: int) -> str:
        """The place of edge k."""
        if self.lines is not None:
            return f"{self.source}:{int(self.lines[k])}"
        return f"{self.source}, edge {k} (counted from 0)"


def grid(height: int, width: int) -> Graph:
    """The grid graph: node ``r * width + c``, edges to the right and the lower neighbour, all costs 1."""
    if height < 1 or width < 1:
        raise ValueError(f"a grid needs at least one row and one column, not {height} x {width}")
    ids = np.arange(height * width, dtype=np.int64).reshape(height, width)
    right = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    return _simple(height * width, np.concatenate([right, down]), None, None)


def graph_from_text(text: str) -> Graph | None:
    """The graph that ``grid(50, 50)`` names; None when the text is something else."""
    found = re.fullmatch(r"\s*grid\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*", text)
    return grid(int(found[1]), int(found[2])) if found and int(found[1]) and int(found[2]) else None


def to_graph(
    value: Any,
    spot: Spot,
    complaints: Complaints,
    n_nodes: int | None = None,
    node_names: Sequence[str] | None = None,
) -> Graph | None:
    """A `Graph` from whatever describes one. None after a complaint.

    Parameters
    ----------
    value : Graph, EdgeList, networkx graph, square matrix (dense or SciPy sparse; non-zero entries are costs), array
        (E, 2) of node ids, or a tuple ``(edges, costs)`` or ``(n_nodes, edges, costs)``
    n_nodes : int, optional
        The size that other data fix; used where the value doesn't say.
    node_names : sequence of str, optional
        Names of the columns that the nodes stand for; named nodes are matched with them.
    """
    if isinstance(value, Graph):
        return value
    edges = value if isinstance(value, EdgeList) else _as_edge_list(value, spot, complaints)
    if edges is None:
        return None
    before = len(complaints.diagnostics)
    if edges.ids is None:
        ids, names, count = _number_nodes(edges, spot, complaints, n_nodes, node_names)
    else:
        ids, names = edges.ids, edges.names
        most = int(ids.max()) + 1 if len(ids) else 0
        count = next((number for number in (edges.n_nodes, n_nodes) if number is not None), most)
        _check_ids(ids, count, edges, spot, complaints)
    costs = _check_costs(edges, spot, complaints)
    if len(complaints.diagnostics) > before:
        return None
    graph = _simple(count, ids, costs, names)
    loops, parallel = graph.dropped
    if loops:
        complaints.note(f"{counted(loops, 'self-loop')} of `{spot.name}` left out: no tree uses one")
    if parallel:
        complaints.note(f"{counted(parallel, 'parallel edge')} of `{spot.name}` left out; the cheapest of each stays")
    return graph


def _simple(n_nodes: int, ids: Any, costs: Array | None, names: tuple[str, ...] | None) -> Graph:
    """Drop self-loops and all but the cheapest of parallel edges; order ends and edges."""
    ids = np.asarray(ids, np.int64).reshape(-1, 2)
    costs = np.ones(len(ids)) if costs is None else costs
    low, high = ids.min(axis=1, initial=2**62), ids.max(axis=1, initial=-1)
    proper = low < high
    low, high, kept = low[proper], high[proper], costs[proper]
    order = np.lexsort((kept, high, low))
    low, high, kept = low[order], high[order], kept[order]
    first = np.ones(len(low), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    dropped = (int((~proper).sum()), int((~first).sum()))
    edges = np.stack([low[first], high[first]], axis=1)
    return Graph(n_nodes, np.ascontiguousarray(edges), np.ascontiguousarray(kept[first]), names, dropped)


def _check_ids(ids: Any, count: int, edges: EdgeList, spot: Spot, complaints: Complaints) -> None:
    outside = np.flatnonzero(((ids < 0) | (ids >= count)).any(axis=1))
    if not len(outside):
        return
    k = int(outside[0])
    bad = next(int(end) for end in ids[k] if not 0 <= end < count)
    helps = ["node ids count from 0"]
    if ids.min() == 1:
        helps = [
            "node ids count from 0, and these seem to count from 1: bind it as "
            f"`{spot.name}=FILE:from1`, or subtract 1 in Python"
        ]
    complaints.add(
        "SPL420",
        f"an edge of `{spot.name}` ends in node {bad}, but the nodes are 0 to {count - 1}"
        + (f" ({counted(len(outside), 'such edge')} in all)" if len(outside) > 1 else ""),
        edges.where(k),
        helps,
    )


def _check_costs(edges: EdgeList, spot: Spot, complaints: Complaints) -> Array | None:
    if edges.costs is None:
        return None
    costs = np.asarray(edges.costs, np.float64)
    bad = np.flatnonzero(~(np.isfinite(costs) & (costs >= 0)))
    if len(bad):
        k = int(bad[0])
        complaints.add(
            "SPL420",
            f"an edge of `{spot.name}` has the cost {costs[k]:g}; costs are finite and at least 0"
            + (f" ({counted(len(bad), 'such edge')} in all)" if len(bad) > 1 else ""),
            edges.where(k),
        )
    return costs


def _number_nodes(
    edges: EdgeList,
    spot: Spot,
    complaints: Complaints,
    n_nodes: int | None,
    node_names: Sequence[str] | None,
) -> tuple[Any, tuple[str, ...] | None, int]:
    """Node ids for named ends: by the columns' names where there are any, else in order of appearance."""
    assert edges.ends is not None
    own = edges.names or tuple(dict.fromkeys(end for pair in edges.ends for end in pair))
    names = own
    if node_names is not None:
        known = set(node_names)
        strange = [name for name in own if name not in known]
        if not strange:
            names = tuple(node_names)
        elif edges.names is None or len(own) != len(node_names) or len(strange) < len(own):
            near = nearest_name(strange[0], node_names)
            helps = [f"did you mean `{near}`?"] if near else [f"the columns are {listed(list(node_names))}"]
            k = next((k for k, pair in enumerate(edges.ends) if strange[0] in pair), 0)
            complaints.add(
                "SPL421",
                f"{counted(len(strange), 'node')} of `{spot.name}` {'is' if len(strange) == 1 else 'are'} no column "
                f"of its data, such as {strange[0]!r}",
                edges.where(k),
                helps,
            )
            return None, None, 0
        else:
            complaints.note(f"nodes of `{spot.name}` have other names than the columns: taken in their own order")
    elif edges.names is None and n_nodes is not None:
        complaints.add(
            "SPL421",
            f"`{spot.name}` names its nodes ({listed(own, 4)}), but the columns that they belong to have no names",
            edges.source,
            ["number the nodes from 0 in the columns' order, or give the columns names"],
        )
        return None, None, 0
    index = {name: k for k, name in enumerate(names)}
    ids = np.array([(index[u], index[v]) for u, v in edges.ends], dtype=np.int64).reshape(-1, 2)
    return ids, names, len(names)


def _as_edge_list(value: Any, spot: Spot, complaints: Complaints) -> EdgeList | None:
    if hasattr(value, "number_of_nodes") and hasattr(value, "edges"):
        return _from_networkx(value, spot)
    if is_sparse(value):
        return _from_adjacency(value.tocoo(), spot, complaints)
    n_nodes: Any = None
    costs: Any = None
    if isinstance(value, (tuple, list)) and len(value) == 3 and np.ndim(value[0]) == 0 and np.ndim(value[1]) == 2:
        n_nodes, value, costs = value
    elif isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 2:
        value, costs = value
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.ndim == 2 and array.shape[0] == array.shape[1] != 2 and array.dtype.kind in "biuf" and costs is None:
        rows, columns = np.nonzero(array)
        from scipy.sparse import coo_array

        return _from_adjacency(coo_array((array[rows, columns], (rows, columns)), array.shape), spot, complaints)
    if array.ndim != 2 or array.shape[1] not in (2, 3) or array.dtype.kind not in "iuf":
        complaints.add(
            "SPL420",
            f"`{spot.name}` is declared {spot.declared}, but it is {_described(value, array)}",
            spot.place,
            [
                "a graph is an array (E, 2) of node ids, a tuple (edges, costs) or (n_nodes, edges, costs), a square "
                "SciPy matrix, a networkx graph, or `spdsl.data.grid(h, w)`"
            ],
        )
        return None
    if array.shape[1] == 3:
        array, costs = array[:, :2], array[:, 2]
    ids = array.astype(np.int64)
    if array.dtype.kind == "f" and not (ids == array).all():
        k = int(np.flatnonzero((ids != array).any(axis=1))[0])
        complaints.add("SPL420", f"edge {k} of `{spot.name}` has ends that aren't whole numbers", spot.place)
        return None
    if costs is not None and (np.ndim(costs) != 1 or len(costs) != len(ids)):
        complaints.add(
            "SPL420",
            f"`{spot.name}` has {counted(len(ids), 'edge')} but costs of shape {np.shape(costs)}",
            spot.place,
        )
        return None
    return EdgeList(ids, None, costs, spot.place, n_nodes=None if n_nodes is None else int(n_nodes))


def _described(value: Any, array: Any) -> str:
    if array.ndim and array.dtype.kind in "biufc":
        return f"an array of shape {array.shape} and type {array.dtype}"
    return f"a {type(value).__name__}"


def _from_adjacency(matrix: Any, spot: Spot, complaints: Complaints) -> EdgeList | None:
    """Non-zero entries as edges; both triangles count as parallel, so an asymmetric pair keeps the cheaper."""
    if matrix.shape[0] != matrix.shape[1]:
        complaints.add(
            "SPL420", f"`{spot.name}` is no adjacency matrix: its shape is {matrix.shape}, not square", spot.place
        )
        return None
    ids = np.stack([matrix.row, matrix.col], axis=1).astype(np.int64)
    costs = np.asarray(matrix.data, np.float64)
    upper = ids[:, 0] <= ids[:, 1]
    mirrored = {(int(v), int(u)): c for (u, v), c in zip(ids[~upper], costs[~upper])}
    # A symmetric matrix tells each edge twice: that is no parallel edge to report.
    if len(mirrored) == int((ids[:, 0] < ids[:, 1]).sum()) and all(
        mirrored.get((int(u), int(v))) == c for (u, v), c in zip(ids[upper], costs[upper]) if u != v
    ):
        ids, costs = ids[upper], costs[upper]
    return EdgeList(ids, None, costs, spot.place, n_nodes=int(matrix.shape[0]))


def _from_networkx(graph: Any, spot: Spot) -> EdgeList:
    """Edge attribute ``cost``, else ``weight``, else 1; nodes keep their order, named when they aren't 0..n-1."""
    nodes = list(graph.nodes)
    costs = np.array(
        [data.get("cost", data.get("weight", 1.0)) for _, _, data in graph.edges(data=True)], dtype=np.float64
    )
    numbered = all(isinstance(node, (int, np.integer)) for node in nodes)
    if numbered and set(map(int, nodes)) == set(range(len(nodes))):
        ids = np.array([(int(u), int(v)) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
        return EdgeList(ids, None, costs, spot.place, n_nodes=len(nodes))
    ends = [(str(u), str(v)) for u, v in graph.edges()]
    return EdgeList(None, ends, costs, spot.place, n_nodes=len(nodes), names=tuple(map(str, nodes)))

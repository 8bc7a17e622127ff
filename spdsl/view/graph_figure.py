"""The support of a vector on its graph: an image on a grid, nodes and edges on any other graph.

In: a `Solution` whose back end told the subgraph of its support. Out: marks on a matplotlib axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solution import Solution
from spdsl.solution.frame import entry_names
from spdsl.view.labels import shortened
from spdsl.view.theme import Theme

__all__ = ["draw_support", "graph_variable", "places"]

MANY = 1500  # nodes above which a drawing of nodes and edges would be one blot
NAMED = 40  # nodes that get their names
ROUNDS = 60


def graph_variable(solution: Solution) -> str | None:
    """The vector whose support lies on a graph that is small enough to draw; None without one."""
    if "subgraph_edges" not in solution.extra or "support" not in solution.extra:
        return None
    for constraint in solution.bound.problem.constraints:
        if getattr(constraint, "kind", "") == "connected":
            support = np.asarray(solution.extra["support"])
            return str(constraint.variable) if "grid" in solution.extra or 0 < len(support) <= MANY else None  # type: ignore[union-attr]
    return None


def draw_support(axis: Any, solution: Solution, name: str, theme: Theme) -> None:
    """Draw the vector on its graph: every node of a grid, or the subgraph of the support."""
    value = np.asarray(solution[name], float)
    support = np.asarray(solution.extra["support"], dtype=int)
    pieces = round(float(solution.extra["components"]))
    if "grid" in solution.extra:
        picture = _draw_image(axis, value.reshape(np.asarray(solution.extra["grid"], dtype=int)))
    else:
        picture = _draw_nodes(axis, solution, name, value, support, theme)
    axis.figure.colorbar(picture, ax=axis, pad=0.012, fraction=0.045).outline.set_visible(False)
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_visible(False)
    axis.set_title(f"{name} on its graph: {len(support)} nodes in {pieces} piece{'s' * (pieces != 1)}", pad=4)


def _draw_image(axis: Any, image: Array) -> Any:
    """A grid as an image: blue below zero and red above, or from black to white where nothing is negative."""
    size = float(np.max(np.abs(image), initial=0.0)) or 1.0
    signed = bool(image.min() < 0.0)
    return axis.imshow(
        image, cmap="RdBu_r" if signed else "gray", vmin=-size if signed else 0.0, vmax=size, interpolation="nearest"
    )


def _draw_nodes(axis: Any, solution: Solution, name: str, value: Array, support: Any, theme: Theme) -> Any:
    """The subgraph of the support as nodes, coloured by their entries, and edges."""
    from matplotlib.collections import LineCollection

    edges = np.searchsorted(support, np.asarray(solution.extra["subgraph_edges"], dtype=int).reshape(-1, 2))
    at = places(len(support), edges, np.asarray(solution.extra["component_of"], dtype=int))
    size = float(np.max(np.abs(value), initial=0.0)) or 1.0
    axis.add_collection(LineCollection(list(at[edges]), colors=theme.faint, linewidths=0.8, zorder=1))
    picture = axis.scatter(
        at[:, 0],
        at[:, 1],
        s=float(np.clip(3000 / len(support), 8, 90)),
        c=value[support],
        cmap="RdBu_r",
        vmin=-size,
        vmax=size,
        edgecolors=theme.muted,
        linewidths=0.6,
        zorder=2,
    )
    if len(support) <= NAMED:
        names = entry_names(solution.bound)[solution.bound.layout.slices[name]]
        for node, (x, y) in zip(support, at):
            label = shortened(names[node].removeprefix(f"{name}[").removesuffix("]"))
            axis.annotate(label, (x, y), (4, 4), textcoords="offset points", fontsize=6.5, color=theme.ink)
    axis.margins(0.08)
    axis.set_aspect("equal", adjustable="datalim")
    return picture


def places(count: int, edges: Any, piece_of: Any) -> Array:
    """Places of the nodes (count, 2): distances on paper follow those in the graph, pieces stand side by side.

    Classical scaling of the distances, then rounds of stress majorization (Gansner, Koren and North 2004).

    Parameters
    ----------
    edges : int array (m, 2)
    piece_of : int array (count,)
        The connected piece of each node.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import shortest_path

    at = np.zeros((count, 2))
    links = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (count, count)).tocsr()
    left = 0.0
    for piece in range(int(piece_of.max(initial=-1)) + 1):
        nodes = np.flatnonzero(piece_of == piece)
        own = shortest_path(links[nodes][:, nodes], directed=False, unweighted=True)
        local = _spread(own)
        at[nodes] = local - local.min(axis=0) + (left, 0.0)
        left += float(np.ptp(local[:, 0])) + 1.5
    return at


def _spread(distances: Array) -> Array:
    """Places in the plane for one connected piece."""
    n = len(distances)
    if n == 1:
        return np.zeros((1, 2))
    middle = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * middle @ distances**2 @ middle)
    at = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    # Twins of one neighbourhood would fall onto each other: a small fixed turn of the circle keeps them apart.
    turn = 2.399963 * np.arange(n)
    at = at + 0.05 * np.column_stack([np.cos(turn), np.sin(turn)])
    weights = 1.0 / np.maximum(distances, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    for _ in range(ROUNDS):
        gaps = np.linalg.norm(at[:, None] - at[None], axis=2)
        pull = weights * distances / np.maximum(gaps, 1e-9)
        np.fill_diagonal(pull, 0.0)
        at = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ at)
    return np.asarray(at)

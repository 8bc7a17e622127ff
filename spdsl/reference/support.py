"""Support constraints: is the support found in the set? Counted directly: entries, components, groups, edge costs.

In: a `SupportConstraint` and a point. Out: complaints in sentences, and the mask of the support.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.problem import BoundProblem, SupportConstraint
from spdsl.problem.functions import Array

__all__ = ["support_complaints", "support_counts", "support_mask"]

NOTHING = 1e-14  # relative to the largest entry: below this an entry counts as zero


def _found(bound: BoundProblem, constraint: SupportConstraint, x: Array) -> Any:
    entries = x[bound.layout.slices[constraint.variable]]
    largest = float(np.max(np.abs(entries), initial=0.0))
    return np.abs(entries) > NOTHING * largest


def support_mask(bound: BoundProblem, constraint: SupportConstraint, x: Array) -> Any:
    """Over the flat vector: True where entries may move (the found support, and every other variable)."""
    mask = np.ones(bound.layout.size, dtype=bool)
    mask[bound.layout.slices[constraint.variable]] = _found(bound, constraint, x)
    return mask


def support_complaints(bound: BoundProblem, constraint: SupportConstraint, x: Array) -> list[str]:
    """Sentences on what the support of x violates; empty when it is in the set."""
    found = np.flatnonzero(_found(bound, constraint, x))
    options = {name: bound.evaluate(value) for name, value in constraint.options.items()}
    name = constraint.variable
    complaints: list[str] = []
    if "size" in options and len(found) > int(options["size"]):
        complaints.append(f"support({name}) has {len(found)} entries, more than size = {int(options['size'])}")
    if constraint.kind == "groups":
        touched = len(np.unique(_groups(options["groups"], bound, name)[found]))
        if "count" in options and touched > int(options["count"]):
            complaints.append(f"support({name}) touches {touched} groups, more than count = {int(options['count'])}")
    if constraint.kind == "union_of":
        count = int(options["count"])
        if not _covered(frozenset(found.tolist()), _rows(options["supports"]), count):
            complaints.append(f"support({name}) does not lie in the union of {count} of the given supports")
    if constraint.kind == "connected" and len(found):
        assert constraint.graph is not None
        components, cost = _forest(bound.data[constraint.graph], found)
        if "components" in options and components > int(options["components"]):
            complaints.append(
                f"support({name}) has {components} components, more than components = {int(options['components'])}"
            )
        if "budget" in options and cost > float(options["budget"]) * (1 + 1e-12):
            complaints.append(f"support({name}) needs edges of cost {cost:.6g}, above budget = {options['budget']:.6g}")
    return complaints


def support_counts(bound: BoundProblem, constraint: SupportConstraint, x: Array) -> str:
    """What was counted on the support of x, as a sentence."""
    found = np.flatnonzero(_found(bound, constraint, x))
    counted = f"support({constraint.variable}) was counted: {len(found)} entries"
    if constraint.kind == "connected" and len(found):
        assert constraint.graph is not None
        components, cost = _forest(bound.data[constraint.graph], found)
        return f"{counted} in {components} component{'s' * (components != 1)}, spanned by edges of cost {cost:.6g}"
    if constraint.kind == "groups":
        groups = _groups(bound.evaluate(constraint.options["groups"]), bound, constraint.variable)
        touched = len(np.unique(groups[found]))
        return f"{counted} in {touched} group{'s' * (touched != 1)}"
    return counted


def _groups(groups: Any, bound: BoundProblem, name: str) -> Any:
    """A group's number for each entry: given, or consecutive blocks of a length."""
    if np.ndim(groups):
        return np.asarray(groups).ravel()
    size = bound.layout.slices[name].stop - bound.layout.slices[name].start
    return np.arange(size) // int(groups)


def _rows(supports: Any) -> list[frozenset[int]]:
    """The given supports: for each row the columns in which it is not zero."""
    dense = supports.toarray() if hasattr(supports, "toarray") else np.asarray(supports)
    return [frozenset(np.flatnonzero(row).tolist()) for row in dense]


def _covered(entries: frozenset[int], supports: list[frozenset[int]], count: int) -> bool:
    """Do at most `count` of the supports hold all entries? Tries each support that holds the first open entry."""
    if not entries:
        return True
    if count < 1:
        return False
    first = min(entries)
    return any(_covered(entries - nodes, supports, count - 1) for nodes in supports if first in nodes)


def _forest(graph: Any, nodes: Any) -> tuple[int, float]:
    """Components of the induced subgraph, and the cost of its cheapest spanning forest."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

    place = np.full(int(graph.n_nodes), -1)
    place[nodes] = np.arange(len(nodes))
    ends = place[np.asarray(graph.edges)]
    inside = (ends >= 0).all(axis=1)
    ends, costs = ends[inside], np.asarray(graph.costs, float)[inside]
    # A stored zero is no edge to csgraph: shift all costs, which changes no spanning forest.
    shifted = csr_array((costs + 1.0, (ends[:, 0], ends[:, 1])), (len(nodes), len(nodes)))
    components, _ = connected_components(shifted, directed=False)
    tree = minimum_spanning_tree(shifted)
    return int(components), float(tree.sum() - tree.nnz)

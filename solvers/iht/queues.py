"""A binary heap of node numbers ordered by keys, and disjoint sets: the small structures that the kernels share.

In: arrays that the caller owns. Out: the same arrays, put in order in place.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

from spdsl.solvers.iht.compiled import compiled

__all__ = ["find", "push", "sift_down", "sift_up"]


@compiled
def sift_down(keys, items, place, size, at):
    """Restore a heap of `items` ordered by ``keys[item]`` below position `at`; `place` holds each item's position."""
    item = items[at]
    key = keys[item]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[items[child + 1]] < keys[items[child]]:
            child += 1
        below = items[child]
        if keys[below] >= key:
            break
        items[at] = below
        place[below] = at
        at = child
    items[at] = item
    place[item] = at


@compiled
def sift_up(keys, items, place, at):
    """Restore the heap above position `at`."""
    item = items[at]
    key = keys[item]
    while at > 0:
        up = (at - 1) // 2
        above = items[up]
        if keys[above] <= key:
            break
        items[at] = above
        place[above] = at
        at = up
    items[at] = item
    place[item] = at


@compiled
def push(keys, items, place, size, item):
    """Add an item, or move it up when it is there and its key has fallen; returns the new size."""
    if place[item] < 0:
        place[item] = size
        items[size] = item
        sift_up(keys, items, place, size)
        return size + 1
    sift_up(keys, items, place, place[item])
    return size


@compiled
def find(leader, node):
    """Representative in a disjoint-set forest, halving the path on the way."""
    while leader[node] != node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node

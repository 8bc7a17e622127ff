"""Binary heaps of node numbers ordered by keys, and disjoint sets: the small structures that the kernels share.

In: arrays that the caller owns. Out: the same arrays, put in order in place.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

from spdsl.solvers.iht.compiled import compiled

__all__ = ["add", "drop_first", "find", "push", "settle", "sift_down", "sift_up"]


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
def add(keys, items, size, key, item):
    """Add an item with a key of its own to a heap whose keys lie beside its items; returns the new size."""
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if keys[up] <= key:
            break
        keys[at] = keys[up]
        items[at] = items[up]
        at = up
    keys[at] = key
    items[at] = item
    return size + 1


@compiled
def settle(keys, items, size, at, key, item):
    """Put an item at or below position `at` of such a heap, where its children are in order."""
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at] = keys[child]
        items[at] = items[child]
        at = child
    keys[at] = key
    items[at] = item


@compiled
def drop_first(keys, items, size):
    """Remove the item with the least key from such a heap; returns the new size."""
    size -= 1
    settle(keys, items, size, 0, keys[size], items[size])
    return size


@compiled
def find(leader, node):
    """Representative in a disjoint-set forest, halving the path on the way."""
    while leader[node] != node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node

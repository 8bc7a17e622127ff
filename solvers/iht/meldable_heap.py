"""Skew heaps in shared arrays: melded, shifted as a whole, robbed of any member, each in O(log n) amortized.

In: arrays `key`, `left`, `right`, `up` and `shift` over items 0..k-1; a heap is the item at its root, -1 an empty
one. The Goemans-Williamson growth keeps one heap of half-edges for each cluster and shifts it when the cluster wakes
up.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

from spdsl.solvers.iht.compiled import compiled

__all__ = ["meld", "remove", "shift_all"]


@compiled
def settle(item, key, left, right, shift):
    """Hand an item's pending shift on to its children."""
    d = shift[item]
    if d != 0.0:
        l, r = left[item], right[item]
        if l >= 0:
            key[l] += d
            shift[l] += d
        if r >= 0:
            key[r] += d
            shift[r] += d
        shift[item] = 0.0


@compiled
def meld(a, b, key, left, right, up, shift):
    """The heap of the members of both heaps."""
    if a < 0:
        return b
    if b < 0:
        return a
    if key[b] < key[a]:
        a, b = b, a
    root = a
    up[root] = -1
    while True:
        settle(a, key, left, right, shift)
        r = right[a]
        right[a] = left[a]
        if r < 0:
            left[a] = b
            up[b] = a
            return root
        if key[b] < key[r]:
            r, b = b, r
        left[a] = r
        up[r] = a
        a = r


@compiled
def remove(root, item, key, left, right, up, shift):
    """The heap without one of its members (its root or any other)."""
    settle(item, key, left, right, shift)
    above = up[item]
    rest = meld(left[item], right[item], key, left, right, up, shift)
    left[item] = -1
    right[item] = -1
    up[item] = -1
    if rest >= 0:
        up[rest] = above
    if above < 0:
        return rest
    if left[above] == item:
        left[above] = rest
    else:
        right[above] = rest
    return root


@compiled
def shift_all(root, amount, key, shift):
    """Add `amount` to every key of a heap."""
    if root >= 0:
        key[root] += amount
        shift[root] += amount

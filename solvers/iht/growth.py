"""The growth phase of Goemans and Williamson's method for prize-collecting Steiner forests, with its dual variables.

In: edges with costs, non-negative prizes, and the number of clusters at which growth stops (0: run to the end). Out:
the forest of merges and, for every cluster that ever lived, its dual value y_C and its place in the laminar family.
Source: Goemans and Williamson (1995), in the unrooted form with a target number of trees of Hegde, Indyk and Schmidt
(2014).

Every half-edge plans how much its side may still grow; the two plans of an edge never exceed its slack, so no edge is
ever overfilled, and an edge whose plan is used up is looked at again. Clusters keep their half-edges in meldable
heaps whose keys are times; a cluster that has stopped keeps its clock, and its heap is shifted when it wakes.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels take arrays of one fixed kind each, said in their docstrings; numba infers the rest.

from __future__ import annotations

import numpy as np

from spdsl.solvers.iht.compiled import compiled
from spdsl.solvers.iht.meldable_heap import meld, remove, shift_all
from spdsl.solvers.iht.queues import sift_down, sift_up

__all__ = ["grow"]

TIGHT = 1e-12  # an edge counts as full when its slack is below this share of its cost


@compiled
def climb(node, ancestor, climbed):
    """The living cluster above a node, and the dual collected on the way below it; paths are shortened."""
    total = 0.0
    top = node
    while ancestor[top] >= 0:
        total += climbed[top]
        top = ancestor[top]
    rest = total
    while ancestor[node] >= 0 and ancestor[node] != top:
        above, part = ancestor[node], climbed[node]
        ancestor[node], climbed[node] = top, rest
        rest -= part
        node = above
    return top, total


@compiled
def grow(indptr, half, ends, costs, prizes, target):
    """Grow clusters until at most `target` are active.

    Parameters
    ----------
    indptr, half : int arrays (n + 1,), (2 m,)
        The half-edges of each node: 2 e on the side of ``ends[e, 0]``, 2 e + 1 on the other.
    ends : int array (m, 2)
    costs : float array (m,)
        Non-negative.
    prizes : float array (n,)
        Non-negative.
    target : int
        0 runs until every cluster has stopped.

    Returns
    -------
    merges : int array (k,)
        Edges of the forest, in the order in which clusters met.
    dual : float array (n + k,)
        y_C of every cluster; the first n are the single nodes.
    parent : int array (n + k,)
        The cluster that swallowed each one, -1 for those that were never swallowed.
    active : bool array (n + k,)
        Was the cluster growing when growth stopped?
    """
    n, m = prizes.shape[0], ends.shape[0]
    most = 2 * n
    # Clusters.
    parent = np.full(most, -1, np.int32)
    ancestor = np.full(most, -1, np.int32)
    climbed = np.zeros(most)
    dual = np.zeros(most)
    born = np.zeros(most)
    stopped = np.zeros(most)
    left_over = np.zeros(most)  # prize not yet paid out when the cluster was born
    active = np.zeros(most, np.bool_)
    heap = np.full(most, -1, np.int32)
    merges = np.empty(n, np.int32)
    # Half-edges: 2 e on the side of ends[e, 0], 2 e + 1 on the other. Their heaps are built when a node is first touched.
    key = np.empty(2 * m)
    left = np.empty(2 * m, np.int32)
    right = np.empty(2 * m, np.int32)
    up = np.empty(2 * m, np.int32)
    shift = np.empty(2 * m)
    gone = np.zeros(2 * m, np.bool_)
    # A node whose prize is below half of each of its edges' costs stops before anything can reach it: no event, and
    # no heap until a cluster swallows it.
    asleep = np.ones(n, np.bool_)
    for v in range(n):
        for a in range(indptr[v], indptr[v + 1]):
            if 2.0 * prizes[v] >= costs[half[a] >> 1]:
                asleep[v] = False
                break
        if prizes[v] <= 0.0:
            asleep[v] = True
    late = np.zeros(target + 1)  # the largest prizes of sleepers: how many of them are still growing
    for v in range(n):
        if asleep[v] and prizes[v] > late[target]:
            i = target
            while i > 0 and late[i - 1] < prizes[v]:
                late[i] = late[i - 1]
                i -= 1
            late[i] = prizes[v]
    when = np.empty(most)
    queue = np.empty(most, np.int32)
    place = np.full(most, -1, np.int32)
    waiting = 0
    for v in range(n):
        left_over[v] = prizes[v]
        if asleep[v]:
            stopped[v] = prizes[v]
            dual[v] = prizes[v]
            continue
        for a in range(indptr[v], indptr[v + 1]):
            h = half[a]
            u = ends[h >> 1, 1 - (h & 1)]
            key[h] = costs[h >> 1] - prizes[u] if asleep[u] else 0.5 * costs[h >> 1]
            left[h], right[h], up[h], shift[h] = -1, -1, -1, 0.0
            heap[v] = meld(heap[v], h, key, left, right, up, shift)
        active[v] = True
        when[v] = prizes[v] if heap[v] < 0 else min(prizes[v], key[heap[v]])
        queue[waiting] = v
        place[v] = waiting
        waiting += 1
    for at in range(waiting // 2 - 1, -1, -1):
        sift_down(when, queue, place, waiting, at)
    clusters, count = n, 0
    last = 0.0
    while waiting > 0:
        c = np.int64(queue[0])
        now = when[c]
        if waiting <= target:
            alive = waiting
            for i in range(target + 1):
                if late[i] > now:
                    alive += 1
            if alive <= target:
                break
        last = now
        end = born[c] + left_over[c]
        if heap[c] < 0 or key[heap[c]] > end:
            # The cluster has paid out its prizes.
            active[c] = False
            stopped[c] = now
            dual[c] = now - born[c]
            waiting -= 1
            place[c] = -1
            if waiting > 0:
                queue[0] = queue[waiting]
                place[queue[0]] = 0
                sift_down(when, queue, place, waiting, 0)
            continue
        h = heap[c]
        heap[c] = remove(h, h, key, left, right, up, shift)
        e = h >> 1
        other = h ^ 1
        merged = -1
        if not gone[h]:
            a, sum_a = climb(ends[e, h & 1], ancestor, climbed)
            b, sum_b = climb(ends[e, other & 1], ancestor, climbed)
            if a == b:
                gone[other] = True  # an inner edge: its other half is thrown away when it comes up
            else:
                sum_a += now - born[a]
                sum_b += (now - born[b]) if active[b] else dual[b]
                slack = costs[e] - sum_a - sum_b
                if slack <= TIGHT * costs[e] or now + 0.5 * slack <= now:
                    merged = b
                else:
                    touched = b >= n or not asleep[b]
                    if touched:
                        heap[b] = remove(heap[b], other, key, left, right, up, shift)
                    if active[b]:
                        key[h], key[other] = now + 0.5 * slack, now + 0.5 * slack
                    else:
                        key[h], key[other] = now + slack, stopped[b]
                    heap[c] = meld(heap[c], h, key, left, right, up, shift)
                    if touched:
                        heap[b] = meld(heap[b], other, key, left, right, up, shift)
                    if active[b]:
                        when[b] = min(born[b] + left_over[b], key[heap[b]])
                        sift_up(when, queue, place, place[b])
                        sift_down(when, queue, place, waiting, place[b])
        if merged >= 0:
            b = merged
            if b < n and asleep[b]:
                # Towards sleeping neighbours its half-edges plan all that is left; the others have planned it already.
                asleep[b] = False
                for a in range(indptr[b], indptr[b + 1]):
                    k = half[a]
                    if k != other:
                        u = ends[k >> 1, 1 - (k & 1)]
                        key[k] = max(costs[k >> 1] - prizes[u], stopped[b]) if asleep[u] else stopped[b]
                        left[k], right[k], up[k], shift[k] = -1, -1, -1, 0.0
                        heap[b] = meld(heap[b], k, key, left, right, up, shift)
            else:
                heap[b] = remove(heap[b], other, key, left, right, up, shift)
            rest = max(left_over[c] - (now - born[c]), 0.0)
            dual[c] = now - born[c]
            if active[b]:
                rest += max(left_over[b] - (now - born[b]), 0.0)
                dual[b] = now - born[b]
                # It leaves the queue.
                hole = place[b]
                waiting -= 1
                place[b] = -1
                if hole < waiting:
                    queue[hole] = queue[waiting]
                    place[queue[hole]] = hole
                    sift_up(when, queue, place, hole)
                    sift_down(when, queue, place, waiting, place[queue[hole]])
            else:
                shift_all(heap[b], now - stopped[b], key, shift)
            new = clusters
            clusters += 1
            merges[count] = e
            count += 1
            for side in range(2):
                old = c if side == 0 else b
                parent[old] = new
                ancestor[old] = new
                climbed[old] = dual[old]
                active[old] = False
            active[new] = True
            born[new] = now
            left_over[new] = rest
            heap[new] = meld(heap[c], heap[b], key, left, right, up, shift)
            # The new cluster takes the old one's place in the queue.
            hole = place[c]
            place[c] = -1
            queue[hole] = new
            place[new] = hole
            c = new
        end = born[c] + left_over[c]
        when[c] = end if heap[c] < 0 else max(now, min(end, key[heap[c]]))
        sift_up(when, queue, place, place[c])
        sift_down(when, queue, place, waiting, place[c])
    if target > 0:
        # Growth ends when the last sleeper that was one too many has stopped.
        last = max(last, late[target - waiting])
        for v in range(n):
            if asleep[v] and prizes[v] > last:
                active[v] = True
                dual[v] = last
    for i in range(waiting):
        c = queue[i]
        dual[c] = max(last - born[c], 0.0)
    return merges[:count], dual[:clusters], parent[:clusters], active[:clusters]

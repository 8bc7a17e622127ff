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
def grow(ends, costs, prizes, target):
    """Grow clusters until at most `target` are active.

    Parameters
    ----------
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
    # Half-edges: 2 e on the side of ends[e, 0], 2 e + 1 on the other.
    key = np.zeros(2 * m)
    left = np.full(2 * m, -1, np.int32)
    right = np.full(2 * m, -1, np.int32)
    up = np.full(2 * m, -1, np.int32)
    shift = np.zeros(2 * m)
    gone = np.zeros(2 * m, np.bool_)
    for e in range(m):
        u, v = ends[e, 0], ends[e, 1]
        pu, pv = prizes[u], prizes[v]
        # A node without a prize never grows by itself: the other side plans the whole edge.
        if (pu > 0 and pv > 0) or (pu <= 0 and pv <= 0):
            share = 0.5 * costs[e]
            key[2 * e], key[2 * e + 1] = share, share
        elif pu > 0:
            key[2 * e], key[2 * e + 1] = costs[e], 0.0
        else:
            key[2 * e], key[2 * e + 1] = 0.0, costs[e]
        heap[u] = meld(heap[u], 2 * e, key, left, right, up, shift)
        heap[v] = meld(heap[v], 2 * e + 1, key, left, right, up, shift)
    # One queue of clusters by their next event.
    when = np.empty(most)
    queue = np.empty(most, np.int32)
    place = np.full(most, -1, np.int32)
    waiting = 0
    for v in range(n):
        left_over[v] = prizes[v]
        if prizes[v] > 0:
            active[v] = True
            when[v] = prizes[v] if heap[v] < 0 else min(prizes[v], key[heap[v]])
            queue[waiting] = v
            place[v] = waiting
            waiting += 1
    for at in range(waiting // 2 - 1, -1, -1):
        sift_down(when, queue, place, waiting, at)
    clusters, count = n, 0
    last = 0.0
    while waiting > target:
        c = np.int64(queue[0])
        now = when[c]
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
                    heap[b] = remove(heap[b], other, key, left, right, up, shift)
                    if active[b]:
                        key[h], key[other] = now + 0.5 * slack, now + 0.5 * slack
                    else:
                        key[h], key[other] = now + slack, stopped[b]
                    heap[c] = meld(heap[c], h, key, left, right, up, shift)
                    heap[b] = meld(heap[b], other, key, left, right, up, shift)
                    if active[b]:
                        when[b] = min(born[b] + left_over[b], key[heap[b]])
                        sift_up(when, queue, place, place[b])
                        sift_down(when, queue, place, waiting, place[b])
        if merged >= 0:
            b = merged
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
        last = now
    for i in range(waiting):
        c = queue[i]
        dual[c] = max(last - born[c], 0.0)
    return merges[:count], dual[:clusters], parent[:clusters], active[:clusters]

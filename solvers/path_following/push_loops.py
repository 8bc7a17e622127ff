"""Compiled jumps of hard weights for quadratic losses and penalties of single coefficients (Lasso, ridge, elastic net, bounds).

In: the arrays of a `WeighedProblem`, changed in place. Out: how the jump ended. The same algorithm as in `pushes`, which is its
twin for tests. Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray

__all__ = ["DONE", "ENDLESS", "SINGULAR", "jump"]

DONE, SINGULAR, ENDLESS = 0, 1, 2
_FREE = -1
_SINGULAR = 1e-10


@njit(cache=True)  # type: ignore[untyped-decorator]
def _apply(N: Array, index: IntArray, k: int, a: Array, u: Array) -> float:
    """u = N a over the free coordinates; returns a'N a."""
    total = 0.0
    for r in range(k):
        value = 0.0
        for s in range(k):
            value += N[r, s] * a[index[s]]
        u[r] = value
        total += value * a[index[r]]
    return total


@njit(cache=True)  # type: ignore[untyped-decorator]
def _bend(G: Array, N: Array, index: IntArray, k: int, a: Array, change: float, u: Array) -> bool:
    """Add change * a a' to the Hessian."""
    p = a.shape[0]
    for r in range(p):
        scaled = change * a[r]
        for s in range(p):
            G[r, s] += scaled * a[s]
    ratio = 1.0 + change * _apply(N, index, k, a, u)
    if not ratio > 1e-8:
        return False
    for r in range(k):
        scaled = change / ratio * u[r]
        for s in range(k):
            N[r, s] -= scaled * u[s]
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _free(G: Array, N: Array, index: IntArray, place: IntArray, k: int, j: int, u: Array) -> bool:
    """Border the inverse by a coordinate."""
    size, terms = 0.0, abs(G[j, j])
    for r in range(k):
        value = 0.0
        for s in range(k):
            value += N[r, s] * G[index[s], j]
        u[r] = value
    for r in range(k):
        size += u[r] * G[index[r], j]
    pivot = G[j, j] - size
    if not abs(pivot) > _SINGULAR * max(terms, abs(size)):
        return False
    for r in range(k):
        for s in range(k):
            N[r, s] += u[r] * u[s] / pivot
    for r in range(k):
        N[r, k] = N[k, r] = -u[r] / pivot
    N[k, k] = 1.0 / pivot
    index[k], place[j] = j, k
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _fix(N: Array, index: IntArray, place: IntArray, k: int, j: int) -> bool:
    """Take a coordinate out of the inverse; the last takes its place."""
    here, last = place[j], k - 1
    if here != last:
        for s in range(k):
            N[here, s], N[last, s] = N[last, s], N[here, s]
        for r in range(k):
            N[r, here], N[r, last] = N[r, last], N[r, here]
        index[here] = index[last]
        place[index[here]] = here
    place[j] = -1
    corner, size = N[last, last], 0.0
    for r in range(last):
        size = max(size, abs(N[r, last]))
    if not abs(corner) > 1e-12 * size:
        return False
    for r in range(last):
        scaled = N[r, last] / corner
        for s in range(last):
            N[r, s] -= scaled * N[last, s]
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _push(
    a: Array,
    z0: float,
    f1: float,
    bend: float,
    factor: float,
    weight: float,
    target: float,
    state: Any,
    shape: Any,
    work: Any,
) -> int:
    """One weight to its new value; the number of free coordinates afterwards, -1 when the system turns singular."""
    x, gradient, G, N, index, place, fixed, interval, lower, upper, k = state
    position, low, high, count, table, smooth = shape
    u, dx, change = work
    p = a.shape[0]
    old = factor * weight
    sigma, z = 0.0, z0
    if old != 0.0:
        sigma = old * (f1 + bend * z)
        if bend != 0.0 and not _bend(G, N, index, k, a, -old * bend, u):
            return -1
    share = factor * target
    for _ in range(60 + 4 * p):
        short = share * (f1 + bend * z) - sigma
        sign = 1.0 if short > 0.0 else -1.0
        speed = -sign * _apply(N, index, k, a, u)
        for r in range(p):
            dx[r] = 0.0
            change[r] = sign * a[r]
        for r in range(k):
            dx[index[r]] = -sign * u[r]
        for r in range(k):
            j = index[r]
            for s in range(p):
                change[s] += G[j, s] * dx[j]
        ends = abs(short) / max(1.0 - sign * share * bend * speed, 1e-300)
        first, which = np.inf, -1
        for j in range(p):
            if fixed[j] == _FREE:
                value, rate = x[j], dx[j]
            elif fixed[j] >= 0:
                value, rate = -gradient[j], -change[j]
            else:
                continue
            if rate < 0.0:
                when = max((lower[j] - value) / rate, 0.0)
            elif rate > 0.0:
                when = max((upper[j] - value) / rate, 0.0)
            else:
                continue
            if when < first:
                first, which = when, j
        step = min(ends, first)
        for r in range(p):
            x[r] += step * dx[r]
            gradient[r] += step * change[r]
        sigma += sign * step
        z += step * speed
        if ends <= first:
            if share * bend != 0.0 and not _bend(G, N, index, k, a, share * bend, u):
                return -1
            return int(k)
        j = which
        if fixed[j] >= 0:
            side = 0 if change[j] > 0.0 else 1
            interval[j] = fixed[j] + side
            fixed[j] = _FREE
            gradient[j] += table[j, interval[j]]
            if not _free(G, N, index, place, k, j, u):
                return -1
            k += 1
        else:
            side = 0 if dx[j] < 0.0 else 1
            kink = interval[j] - 1 + side
            if smooth[j, kink]:
                interval[j] += 1 if side else -1
            else:
                fixed[j] = kink
                gradient[j] -= table[j, interval[j]]
                x[j] = position[j, kink]
                if not _fix(N, index, place, k, j):
                    return -1
                k -= 1
        if fixed[j] >= 0:
            lower[j], upper[j] = low[j, fixed[j]], high[j, fixed[j]]
        else:
            lower[j] = position[j, interval[j] - 1] if interval[j] > 0 else -np.inf
            upper[j] = position[j, interval[j]] if interval[j] < count[j] else np.inf
    return -1


@njit(cache=True)  # type: ignore[untyped-decorator]
def jump(
    A: Array,
    c: Array,
    f0: Array,
    f1: Array,
    bend: Array,
    factor: Array,
    losses: Array,
    weights: Array,
    band: IntArray,
    first: IntArray,
    limits: Array,
    levels: Array,
    state: Any,
    shape: Any,
    max_rounds: int,
) -> tuple[int, int, int, int]:
    """Rounds of alternate search until no weight changes.

    Parameters
    ----------
    A, c : the design (n, p) and offsets (n,)
    f0, f1, bend, factor : arrays (n,)
        The loss at z is f0 + f1 z + bend z^2 / 2; the objective weighs it by `factor`.
    losses, weights, band, first : arrays (n,)
        Losses, weights and bands, brought up to date; `first` takes the bands of the first round.
    limits, levels : the borders of the bands beyond the jump, and v by band
    state : (x, gradient, G, N, index, place, fixed, interval, lower, upper, k)
    shape : (position, low, high, count, table, smooth) of the coordinates

    Returns
    -------
    status, k, rounds, pushes : int
        DONE; SINGULAR (the weights are then as `band` says, and x is what it was on the way); ENDLESS.
    """
    n, p = A.shape
    work = (np.empty(p + 1), np.empty(p), np.empty(p))
    x, gradient, G, N, index, place, fixed, interval, lower, upper, k = state
    pushes = 0
    for rounds in range(max_rounds):
        changed = 0
        for i in range(n):
            b = 0
            for border in range(limits.shape[0]):
                if losses[i] > limits[border]:
                    b += 1
            band[i] = b
            if rounds == 0:
                first[i] = b
            if levels[b] != weights[i]:
                changed += 1
        if changed == 0:
            return DONE, k, rounds, pushes
        for rising in range(2):
            for i in range(n):
                target = levels[band[i]]
                if target == weights[i] or (target > weights[i]) != (rising == 0):
                    continue
                z = c[i]
                for j in range(p):
                    z += A[i, j] * x[j]
                now = (x, gradient, G, N, index, place, fixed, interval, lower, upper, k)
                pushes += 1
                after = _push(A[i], z, f1[i], bend[i], factor[i], weights[i], target, now, shape, work)
                if after < 0:
                    for m in range(n):
                        weights[m] = levels[band[m]]
                    return SINGULAR, k, rounds + 1, pushes
                k = after
                weights[i] = target
        for i in range(n):
            z = c[i]
            for j in range(p):
                z += A[i, j] * x[j]
            losses[i] = f0[i] + z * (f1[i] + 0.5 * bend[i] * z)
    return ENDLESS, k, max_rounds, pushes

"""Compiled landings for piecewise affine pulls: the flow of `descent`, which is its twin for tests, in one loop.

In: samples, terms, and a place that is no minimum with the way out of it; the place is changed. Out: whether the flow came to
rest. Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.cell_loops import CHUNK, Samples, Terms, add, borders, copy

__all__ = ["Spot", "land"]

_FAITHFUL, _LONGEST, _SHORTEST = 0.2, 1e6, 1e-6  # as in `flow` and `descent`
_FREE = -1  # as in `coordinates`
_FAST = {"contract", "reassoc", "nsz"}


class Spot(NamedTuple):
    """A place: x (p,), what the coordinates do (p,), and the loss there.

    gradient (p,) has all parts but the coordinate functions of fixed coordinates; size (p,): sums of absolute terms. z, push,
    bends, convex (n,): predictions, pulls, curvatures, and those without the weights' change.
    """

    x: Array
    interval: IntArray
    fixed: IntArray
    gradient: Array
    size: Array
    z: Array
    push: Array
    bends: Array
    convex: Array


@njit(error_model="numpy", fastmath=_FAST, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def product(column: Array, push: Array) -> float:
    """push'column."""
    total = 0.0
    for i in range(push.size):
        total += push[i] * column[i]
    return total


@njit(error_model="numpy", fastmath=_FAST, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def products(column: Array, push: Array) -> Any:
    """push'column and |push|'|column|."""
    first, second = 0.0, 0.0
    for i in range(push.size):
        term = push[i] * column[i]
        first += term
        second += abs(term)
    return first, second


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def beside(terms: Terms, spot: Spot, j: int) -> Any:
    """What is beside the loss in one part of the gradient, and the sum of its terms' sizes."""
    total, size = terms.q[j], abs(terms.q[j])
    if terms.has_q:
        for k in range(spot.x.size):
            term = terms.Q[j, k] * spot.x[k]
            total += term
            size += abs(term)
    if spot.fixed[j] == _FREE:
        slope = terms.rise[j, spot.interval[j]] * spot.x[j] + terms.level[j, spot.interval[j]]
        total += slope
        size += abs(slope)
    elif spot.fixed[j] >= 0:
        low, high = abs(terms.low[j, spot.fixed[j]]), abs(terms.high[j, spot.fixed[j]])
        size += max(low if low < np.inf else 0.0, high if high < np.inf else 0.0)
    return total, size


@njit(error_model="numpy", fastmath=_FAST, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def pulls(samples: Samples, t: float, at: Array, start: int, z: Array, push: Array) -> None:
    """The pulls of some samples, as sums of ramps: one for each border, so that the loop has no branches."""
    slope, offset = samples.slope, samples.offset
    first, level = slope[0, 0] + t * slope[0, 1], offset[0, 0] + t * offset[0, 1]
    for i in range(z.size):
        push[i] = first * z[i] + level
    for k in range(at.size):
        change = slope[k + 1, 0] - slope[k, 0] + t * (slope[k + 1, 1] - slope[k, 1])
        for i in range(z.size):
            push[i] += change * max(z[i] - at[k], 0.0)
    for i in range(z.size):
        push[i] *= samples.factor[start + i]


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def look(samples: Samples, terms: Terms, t: float, spot: Spot, columns: IntArray) -> None:
    """Predictions at a spot, and some parts of the gradient (0 elsewhere)."""
    p, n = samples.At.shape
    count = samples.slope.shape[0] - 1
    at, moves = np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    for j in range(p):
        spot.gradient[j] = 0.0
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        z, push = spot.z[start:end], spot.push[start:end]
        copy(samples.c[start:end], z)
        for j in range(p):
            if spot.x[j] != 0.0:
                add(spot.x[j], samples.At[j, start:end], z)
        pulls(samples, t, at, start, z, push)
        for a in range(columns.size):
            spot.gradient[columns[a]] += product(samples.At[columns[a], start:end], push)
    for a in range(columns.size):
        spot.gradient[columns[a]] += beside(terms, spot, columns[a])[0]


@njit(error_model="numpy", fastmath=_FAST, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def by_cell(z: Array, at: Array, values: Array, factor: float, out: Array, more: bool) -> None:
    """out = (or, with `more`, +=) factor times what `values` has for each sample's cell: without branches."""
    for i in range(z.size):
        out[i] = factor * values[0] + (out[i] if more else 0.0)
    for k in range(at.size):
        change = factor * (values[k + 1] - values[k])
        if change != 0.0:
            for i in range(z.size):
                out[i] += change if z[i] >= at[k] else 0.0


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def complete(samples: Samples, terms: Terms, t: float, spot: Spot) -> None:
    """The rest of a spot that was looked at: all of the gradient, its terms' sizes, and the samples' curvatures."""
    p, n = samples.At.shape
    count = samples.slope.shape[0] - 1
    at, moves = np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    for j in range(p):
        spot.gradient[j], spot.size[j] = beside(terms, spot, j)
    steep, level = np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        z, push, bends = spot.z[start:end], spot.push[start:end], spot.bends[start:end]
        by_cell(z, at, samples.slope[:, 0], 1.0, bends, False)
        by_cell(z, at, samples.slope[:, 1], t, bends, True)
        by_cell(z, at, samples.bend[:, 0], 1.0, steep[: end - start], False)
        by_cell(z, at, samples.bend[:, 1], 1.0, level[: end - start], False)
        for i in range(end - start):  # v phi'', where the pull is v phi'
            bends[i] *= samples.factor[start + i]
            slope = steep[i] * z[i] + level[i]
            spot.convex[start + i] = max(push[i] * steep[i] / slope if slope != 0.0 else bends[i], 0.0)
        for j in range(p):
            first, second = products(samples.At[j, start:end], push)
            spot.gradient[j] += first
            spot.size[j] += second


@njit(error_model="numpy", fastmath=_FAST, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def gram(samples: Samples, columns: IntArray, weights: Array, H: Array) -> None:
    """A' diag(weights) A over some columns."""
    f = columns.size
    scaled = np.empty(CHUNK)
    for a in range(f):
        for b in range(f):
            H[a, b] = 0.0
    for start in range(0, weights.size, CHUNK):
        m = min(CHUNK, weights.size - start)
        for a in range(f):
            column = samples.At[columns[a], start : start + m]
            for i in range(m):
                scaled[i] = weights[start + i] * column[i]
            for b in range(a + 1):
                other = samples.At[columns[b], start : start + m]
                total = 0.0
                for i in range(m):
                    total += scaled[i] * other[i]
                H[a, b] += total
    for a in range(f):
        for b in range(a):
            H[b, a] = H[a, b]


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def move(terms: Terms, spot: Spot, dx: Array, into: Spot) -> bool:
    """On along dx (p,), to the first kink of a free coordinate at most, which is held there; was there one?"""
    step, at, kept = 1.0, -1, -1
    for j in range(dx.size):
        if spot.fixed[j] >= 0 or dx[j] == 0.0:
            continue
        for kink in range(terms.kinks[j]):
            ahead = spot.interval[j] <= kink if dx[j] > 0.0 else spot.interval[j] > kink
            if ahead and not terms.smooth[j, kink]:
                reach = max((terms.position[j, kink] - spot.x[j]) / dx[j], 0.0)
                if reach < step:
                    step, at, kept = reach, j, kink
    for j in range(dx.size):
        into.x[j] = spot.x[j] + step * dx[j]
        into.interval[j], into.fixed[j] = spot.interval[j], spot.fixed[j]
        if spot.fixed[j] == _FREE:
            place, slack = spot.interval[j], 0.1 * terms.unit[j]
            below = place > 0 and into.x[j] < terms.position[j, place - 1] - slack
            above = place < terms.kinks[j] and into.x[j] > terms.position[j, place] + slack
            if below or above:
                place = 0
                for kink in range(terms.kinks[j]):
                    if terms.position[j, kink] <= into.x[j]:
                        place += 1
                into.interval[j] = place
    if at >= 0:
        into.fixed[at] = kept
        into.x[at] = terms.position[at, kept]
    return at >= 0


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def violation(terms: Terms, spot: Spot) -> float:
    """How far the multipliers of fixed coordinates leave their bounds."""
    worst = 0.0
    for j in range(spot.x.size):
        if spot.fixed[j] >= 0:
            worst = max(worst, terms.low[j, spot.fixed[j]] + spot.gradient[j])
            worst = max(worst, -spot.gradient[j] - terms.high[j, spot.fixed[j]])
    return worst


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def with_free(terms: Terms, spot: Spot, columns: IntArray, M: Array, with_rise: bool) -> None:
    """Add what is beside the loss to a Hessian."""
    for a in range(columns.size):
        if with_rise and spot.fixed[columns[a]] == _FREE:
            M[a, a] += terms.rise[columns[a], spot.interval[columns[a]]]
        if terms.has_q:
            for b in range(columns.size):
                M[a, b] += terms.Q[columns[a], columns[b]]


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def least(M: Array, g: Array, low: Array, high: Array, d: Array) -> None:
    """d = argmin of g'd + d'Md/2 + sum_j max(low_j d_j, high_j d_j), by coordinate descent from where d is."""
    f = g.size
    rest = np.empty(f)
    whole = 0.0
    for a in range(f):
        rest[a] = g[a]
        whole = max(whole, abs(g[a]))
        for b in range(f):
            rest[a] += M[a, b] * d[b]
    for _ in range(1000):
        largest = 0.0
        for j in range(f):
            goal = M[j, j] * d[j] - rest[j]
            new = (min(goal - low[j], 0.0) + max(goal - high[j], 0.0)) / M[j, j]
            step = new - d[j]
            if step != 0.0:
                add(step, M[j], rest)
                d[j] = new
                largest = max(largest, abs(step) * M[j, j])
        if largest <= 1e-9 * whole:
            break


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def release(samples: Samples, terms: Terms, spot: Spot, faint: float) -> bool:
    """Let those fixed coordinates go that the flow moves: its direction is least in g'd + d'Md/2 over what kinks allow."""
    p = 0  # coordinates that are not pinned
    for j in range(spot.x.size):
        if spot.fixed[j] >= _FREE:
            p += 1
    columns, k = np.empty(p, np.int64), 0
    for j in range(spot.x.size):
        if spot.fixed[j] >= _FREE:
            columns[k] = j
            k += 1
    M = np.empty((p, p))
    gram(samples, columns, spot.convex, M)
    with_free(terms, spot, columns, M, False)
    trace = 0.0
    for a in range(p):
        trace += M[a, a]
    g, low, high, d = np.empty(p), np.zeros(p), np.zeros(p), np.zeros(p)
    for a in range(p):
        j = columns[a]
        M[a, a] += max(1e-6 * trace / p, faint)
        g[a] = spot.gradient[j]
        if spot.fixed[j] >= 0:
            low[a], high[a] = terms.low[j, spot.fixed[j]], terms.high[j, spot.fixed[j]]
    least(M, g, low, high, d)
    moving = False
    for a in range(p):
        j = columns[a]
        if spot.fixed[j] >= 0 and d[a] != 0.0:
            spot.interval[j] = spot.fixed[j] + (1 if d[a] > 0.0 else 0)
            spot.fixed[j] = -1
            moving = True
    return moving


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def model(samples: Samples, terms: Terms, spot: Spot, free: IntArray, faint: float, H: Array) -> Any:
    """Eigenvalues and eigenvectors of (H, M) over the free coordinates; H is written."""
    f = free.size
    M = np.empty((f, f))
    gram(samples, free, spot.bends, H)
    gram(samples, free, spot.convex, M)
    whole, change = 0.0, 0.0
    for a in range(f):
        whole += M[a, a]
        change += H[a, a] - M[a, a]
    with_free(terms, spot, free, M, True)
    with_free(terms, spot, free, H, True)
    for a in range(f):
        M[a, a] += max(1e-6 * (whole + abs(change)) / f, faint)
    L = np.linalg.cholesky(M)
    B = np.empty((f, f))
    for a in range(f):  # B = L^-1 H L^-T, V = L^-T W: by substitution
        for b in range(f):
            total = H[a, b]
            for k in range(a):
                total -= L[a, k] * B[k, b]
            B[a, b] = total / L[a, a]
    for a in range(f):
        for b in range(f):
            total = B[b, a]
            for k in range(a):
                total -= L[a, k] * B[b, k]
            B[b, a] = total / L[a, a]
    values, W = np.linalg.eigh(B)
    V = np.empty((f, f))
    for b in range(f):
        for r in range(f):
            a = f - 1 - r
            total = W[a, b]
            for k in range(a + 1, f):
                total -= L[k, a] * V[k, b]
            V[a, b] = total / L[a, a]
    return values, V


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def flow(values: Array, V: Array, slopes: Array, time: float, free: IntArray, dx: Array) -> None:
    """dx (p,) = where the flow of the quadratic model is after some time."""
    f = free.size
    for j in range(dx.size):
        dx[j] = 0.0
    for b in range(f):
        exponent = min(max(values[b] * time, -60.0), 60.0)
        reach = time if abs(exponent) < 1e-8 else -np.expm1(-exponent) / values[b]
        for a in range(f):
            dx[free[a]] -= V[a, b] * reach * slopes[b]


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def in_eigenvectors(V: Array, g: Array, out: Array) -> float:
    """out = V'g; returns its norm."""
    size = 0.0
    for b in range(g.size):
        total = 0.0
        for a in range(g.size):
            total += V[a, b] * g[a]
        out[b] = total
        size += total * total
    return float(np.sqrt(size))


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def stepped(
    samples: Samples, terms: Terms, t: float, spot: Spot, tried: Spot, free: IntArray, H: Array, values: Array, V: Array,
    time: float,
) -> float:  # fmt: skip
    """One step of the flow, as long as the model's gradient holds at its end: the next one's time, or -1 when none does."""
    f = free.size
    g, expected, off, slopes, other = np.empty(f), np.empty(f), np.empty(f), np.empty(f), np.empty(f)
    for a in range(f):
        g[a] = spot.gradient[free[a]]
    size = in_eigenvectors(V, g, slopes)
    dx = np.empty(spot.x.size)
    for _ in range(80):
        flow(values, V, slopes, time, free, dx)
        stopped = move(terms, spot, dx, tried)
        still = True
        for j in range(dx.size):
            still = still and tried.x[j] == spot.x[j]
        if stopped and still and time > _SHORTEST:
            time *= 0.25  # a coordinate that was let go turns back later: not yet
            continue
        look(samples, terms, t, tried, free)
        for a in range(f):
            expected[a] = g[a]
            for b in range(f):
                expected[a] += H[a, b] * (tried.x[free[b]] - spot.x[free[b]])
            j = free[a]
            there = tried.gradient[j]
            if tried.fixed[j] >= 0:  # held now: by the function that it moved in
                there += terms.rise[j, tried.interval[j]] * tried.x[j] + terms.level[j, tried.interval[j]]
            off[a] = there - expected[a]
        error, whole = in_eigenvectors(V, off, other), size + in_eigenvectors(V, expected, other)
        if error <= _FAITHFUL * whole and error < np.inf:
            return min(4.0 * time, 4.0 * _LONGEST) if error < 0.25 * _FAITHFUL * whole else time
        time *= 0.25
    return -1.0


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def room(samples: Samples, t: float, spot: Spot, direction: Array, near: float) -> float:
    """The share of a displacement, at most 1, that stays within half of the way to the next change of a sample's cell."""
    count = samples.slope.shape[0] - 1
    at, moves = np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    dz = spot.bends  # free until the next look
    for i in range(dz.size):
        dz[i] = 0.0
        spot.z[i] = samples.c[i]
    for j in range(direction.size):
        if spot.fixed[j] == _FREE and direction[j] != 0.0:
            add(direction[j], samples.At[j], dz)
        if spot.x[j] != 0.0:
            add(spot.x[j], samples.At[j], spot.z)
    share = 1.0
    for k in range(count):
        for i in range(dz.size):
            gap = at[k] - spot.z[i]
            if abs(gap) > near and gap * dz[i] > 0.0:
                share = min(share, 0.5 * gap / dz[i])
    return share


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def displace(
    samples: Samples, terms: Terms, t: float, spot: Spot, tried: Spot, direction: Array, unit: float, near: float
) -> None:
    """Move a spot a little along a direction: as far as it takes for the slope downhill to leave rounding behind.

    But only half-way to where the next sample changes its cell: behind it the slope may rise again.
    """
    free = free_of(spot)
    share = room(samples, t, spot, direction, near)
    longest = 0.0
    for j in range(direction.size):
        direction[j] *= share
        if spot.fixed[j] == _FREE:
            longest = max(longest, abs(direction[j]))
    for _ in range(7 if share == 1.0 else 1):
        stopped = move(terms, spot, direction, tried)
        look(samples, terms, t, tried, free)
        complete(samples, terms, t, tried)
        downhill = 0.0
        for j in range(direction.size):
            if tried.fixed[j] == _FREE:
                downhill += tried.gradient[j] * direction[j]
        if stopped or downhill < -1e-8 * scale_of(tried, unit) * longest:
            break
        for j in range(direction.size):
            direction[j] *= 3.0
        longest *= 3.0


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def free_of(spot: Spot) -> IntArray:
    """The free coordinates, ascending."""
    count = 0
    for j in range(spot.x.size):
        if spot.fixed[j] == _FREE:
            count += 1
    free, k = np.empty(count, np.int64), 0
    for j in range(spot.x.size):
        if spot.fixed[j] == _FREE:
            free[k] = j
            k += 1
    return free


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def scale_of(spot: Spot, unit: float) -> float:
    """What residuals are divided by."""
    scale = 1e-3 * unit
    for j in range(spot.size.size):
        scale = max(scale, spot.size[j])
    return scale


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def land(
    samples: Samples, terms: Terms, t: float, spot: Spot, tried: Spot, direction: Array, faint: float, unit: float, near: float,
    most: int,
) -> int:  # fmt: skip
    """Follow the flow from a spot, displaced along `direction` (p,), until it rests, at most for `most` steps.

    `near`: samples this near to a border are on it. Returns 1 or 2, the spot where it rests, or 0 when it does not.
    """
    displace(samples, terms, t, spot, tried, direction, unit, near)
    spot, tried = tried, spot
    time, idle, here = 1.0, 0, 2
    for _ in range(most):
        scale, inner = scale_of(spot, unit), 0.0
        for j in range(spot.x.size):
            if spot.fixed[j] == _FREE:
                inner = max(inner, abs(spot.gradient[j]))
        if violation(terms, spot) > max(1e-10 * scale, 0.01 * inner) and release(samples, terms, spot, faint):
            complete(samples, terms, t, spot)  # what is free has parts of its own now
            idle += 1
            if idle > 30:
                return 0
            continue
        free = free_of(spot)
        f = free.size
        if f == 0:
            return here
        H = np.empty((f, f))
        values, V = model(samples, terms, spot, free, faint, H)
        convex = values[0] >= -1e-11 * max(abs(values[0]), abs(values[f - 1]))
        if convex and (inner <= 1e-9 * scale or time >= _LONGEST):
            return here
        time = stepped(samples, terms, t, spot, tried, free, H, values, V, time)
        if time < 0.0:
            return 0
        way, size = 0.0, 1e-300
        for j in range(spot.x.size):
            way, size = max(way, abs(tried.x[j] - spot.x[j])), max(size, abs(spot.x[j]))
        idle = idle + 1 if way <= 1e-14 * size else 0
        if idle > 30:
            return 0
        spot, tried, here = tried, spot, 3 - here
        complete(samples, terms, t, spot)
    return 0

"""Compiled event by event following of piecewise affine pulls: tens of thousands of turning points a second.

In: samples, terms and sums, changed in place. Out: where the stretch ended and why. Within cells the path is the solution of
one linear system in x whose matrix is affine in t = 1/age; a sample that changes its cell changes the matrix by a rank of one.
So each event costs the products of small matrices and a look at those samples that can be next: the *candidates*, which are
chosen anew whenever the path leaves a tube about its tangent. `s` is the fall of t. Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.cell_loops import (
    Samples,
    Sums,
    Terms,
    add,
    borders,
    by_inverse_age,
    change_cell,
    copy,
    gradient,
    invert,
    predict,
    times,
)

__all__ = ["COORDINATE", "END", "FULL", "REACHED", "SHARED", "TROUBLE", "Track", "follow"]

REACHED, END, COORDINATE, FULL, TROUBLE, SHARED = 0, 1, 2, 3, 4, 5
_WINDOW, _SAMPLE = -1, -2  # what may come next, beside COORDINATE
_SINGULAR = 1e-9  # what is left of a curvature, relative, where the Hessian stops being positive definite
_TUBE, _WIDEST = 0.3, 30.0  # radius of the tube, relative to the way through it: at first, at most
_TIED = 200  # events in one place after which they are taken to undo one another
_MANY = 200  # candidates that are too many


class Track(NamedTuple):
    """Where the path is: x, gradient (p,), the cells (n,), the free coordinates, and what they can't leave.

    rise, level (p,): coordinate functions' curvature and slope at 0 in their intervals. lower, upper (p,): of free x, and of
    held coordinates' gradient; unit (p,): their rounding. K (f, f): the inverse Hessian, nearly. z, work (n,).
    """

    x: Array
    here: Array
    cell: IntArray
    free: IntArray
    is_free: Any
    rise: Array
    level: Array
    lower: Array
    upper: Array
    unit: Array
    K: Array
    z: Array
    first: Array
    second: Array
    candidates: IntArray


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def add_solved(K: Array, right: Array, free: IntArray, out: Array, factor: float) -> None:
    """out += factor K right, over the free coordinates."""
    for a in range(free.size):
        total = 0.0
        for b in range(free.size):
            total += K[a, b] * right[free[b]]
        out[free[a]] += factor * total


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def tangent(track: Track, sums: Sums, terms: Terms, t: float, dx: Array, rate: Array) -> bool:
    """dx/ds, and the gradient's change by s in held coordinates; by K with steps of refinement. False where none helps."""
    p = dx.size
    by_t, rest = np.empty(p), np.empty(p)
    by_inverse_age(sums, track.x, by_t)
    for attempt in range(8):
        if attempt in (0, 4):
            for i in range(p):
                dx[i] = 0.0
        times(sums, terms, track.rise, dx, t, rate)
        worst, whole = 0.0, 1e-300
        for i in range(p):
            rest[i] = by_t[i] - rate[i]
            if track.is_free[i]:
                worst, whole = max(worst, abs(rest[i])), max(whole, abs(by_t[i]))
        if worst <= 1e-8 * whole:
            break
        if attempt == 4 and not invert(sums, terms, track.rise, track.free, t, track.K):
            return False
        add_solved(track.K, rest, track.free, dx, 1.0)
    for i in range(p):
        rate[i] -= by_t[i]
    return bool(worst <= 1e-5 * whole)


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def distance(x: Array, origin: Array, way: float, straight: Array) -> float:
    """|x - origin - way straight|."""
    total = 0.0
    for j in range(x.size):
        total += (x[j] - origin[j] - way * straight[j]) ** 2
    return float(np.sqrt(total))


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def choose(samples: Samples, track: Track, dx: Array, t: float, way: float, tube: float) -> Any:
    """The candidates while x stays within a radius about x + s dx for s up to `way`: their number, and the radius."""
    count = samples.slope.shape[0] - 1
    first, last, moves = np.empty(count), np.empty(count), np.empty(count)
    borders(samples, t, first, moves)
    borders(samples, t - way, last, moves)
    z, dz = track.first, track.second
    predict(samples, track.x, z)
    for i in range(dz.size):
        dz[i] = 0.0
    for j in range(dx.size):
        if dx[j] != 0.0:
            add(way * dx[j], samples.At[j], dz)
    radius = tube * distance(dx, dx, -1.0, dx) * way
    found = 0
    for i in range(z.size):
        k = track.cell[i]
        margin = radius * samples.length[i]
        low = min(z[i], z[i] + dz[i]) - margin
        high = max(z[i], z[i] + dz[i]) + margin
        if (k > 0 and low < max(first[k - 1], last[k - 1])) or (k < count and high > min(first[k], last[k])):
            track.candidates[found] = i
            track.z[i] = z[i]
            found += 1
    return found, radius


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def sooner(gap: float, rate: float, near: float, step: float, pending: bool) -> float:
    """When a gap closes at a rate, if that is sooner than `step` (or now, while nothing else is pending); -1 otherwise."""
    if rate >= 0.0:
        return -1.0
    reach = 0.0 if gap <= near else gap / -rate
    return reach if reach < step or (reach == 0.0 and not pending) else -1.0


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def next_event(
    samples: Samples, track: Track, dx: Array, rate: Array, t: float, size: int, near: float, step: float
) -> Any:
    """The first event by the tangent within `step`: (the step to it, its kind, index and side)."""
    count = samples.slope.shape[0] - 1
    at, moves = np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    kind, index, side = _WINDOW, -1, 0
    for m in range(size):
        i = track.candidates[m]
        k = track.cell[i]
        dz = 0.0
        for j in range(dx.size):
            dz += samples.A[i, j] * dx[j]
        if k > 0:
            reach = sooner(track.z[i] - at[k - 1], dz + moves[k - 1], near, step, kind != _WINDOW)
            if reach >= 0.0:
                step, kind, index, side = reach, _SAMPLE, i, 0
        if k < count:
            reach = sooner(at[k] - track.z[i], -dz - moves[k], near, step, kind != _WINDOW)
            if reach >= 0.0:
                step, kind, index, side = reach, _SAMPLE, i, 1
    for j in range(dx.size):
        value = track.x[j] if track.is_free[j] else track.here[j]
        change = dx[j] if track.is_free[j] else rate[j]
        if track.lower[j] > -np.inf:
            reach = sooner(value - track.lower[j], change, track.unit[j], step, kind != _WINDOW)
            if reach >= 0.0:
                step, kind, index, side = reach, COORDINATE, j, 0
        if track.upper[j] < np.inf:
            reach = sooner(track.upper[j] - value, -change, track.unit[j], step, kind != _WINDOW)
            if reach >= 0.0:
                step, kind, index, side = reach, COORDINATE, j, 1
    return step, kind, index, side


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def ready(samples: Samples, track: Track, dx: Array, t: float, size: int, near: float) -> int:
    """How many candidates are on a border that they are about to cross."""
    count, found = samples.slope.shape[0] - 1, 0
    at, moves = np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    for m in range(size):
        i = track.candidates[m]
        k = track.cell[i]
        dz = 0.0
        for j in range(dx.size):
            dz += samples.A[i, j] * dx[j]
        below = k > 0 and track.z[i] - at[k - 1] <= near and dz + moves[k - 1] < 0.0
        above = k < count and at[k] - track.z[i] <= near and -dz - moves[k] < 0.0
        if below or above:
            found += 1
    return found


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def flip_all(samples: Samples, track: Track, sums: Sums, t: float, size: int, near: float) -> int:
    """Carry all candidates on a border that moves over them to their other cells; x does not move. How many there were."""
    count, found = samples.slope.shape[0] - 1, 0
    at, moves = np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    for m in range(size):
        i = track.candidates[m]
        k = track.cell[i]
        other = k
        if k > 0 and track.z[i] - at[k - 1] <= near and moves[k - 1] < 0.0:
            other = k - 1
        elif k < count and at[k] - track.z[i] <= near and moves[k] > 0.0:
            other = k + 1
        if other != k:
            change_cell(samples, i, k, other, sums)
            track.cell[i] = other
            found += 1
    return found


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def remaining(samples: Samples, track: Track, dx: Array, t: float, i: int, side: int) -> float:
    """The way to the border that sample i is on, to rounding: what is left to its event, or was gone too far."""
    count = samples.slope.shape[0] - 1
    at, moves = np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    k = track.cell[i] if side else track.cell[i] - 1
    rate = moves[k]
    for j in range(dx.size):
        rate += samples.A[i, j] * dx[j]
    return float((at[k] - track.z[i]) / rate)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def correct(track: Track, sums: Sums, terms: Terms, t: float, exact: float, trial: Array, there: Array) -> bool:
    """Newton by K from `trial` at t, the cells as they are; `there` is the gradient. False when it does not converge."""
    last = np.inf
    for iteration in range(14):
        gradient(sums, terms, track.rise, track.level, trial, t, there)
        worst = 0.0
        for a in range(track.free.size):
            worst = max(worst, abs(there[track.free[a]]))
        if worst <= exact or (iteration > 2 and worst <= 100.0 * exact and worst > 0.5 * last):
            return True
        if not worst < 1e300:
            return False
        if iteration in (4, 9) and not invert(sums, terms, track.rise, track.free, t, track.K):
            return False
        last = worst
        add_solved(track.K, there, track.free, trial, -1.0)
    return False


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def crossed(before: float, after: float, near: float, share: float) -> float:
    """The share of a step at which a gap closes, if it closes and does so before `share`."""
    if after >= -near:
        return share
    before = max(before, 0.0)
    return min(share, before / (before - after))


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def passed(
    samples: Samples, track: Track, trial: Array, there: Array, t: float, t1: float, size: int, near: float
) -> float:
    """The share of a step to `trial` until the first border is crossed by a candidate or coordinate; 1 when none is."""
    count = samples.slope.shape[0] - 1
    at, at1, moves = np.empty(count), np.empty(count), np.empty(count)
    borders(samples, t, at, moves)
    borders(samples, t1, at1, moves)
    share = 1.0
    for m in range(size):
        i = track.candidates[m]
        k = track.cell[i]
        value = samples.c[i]
        for j in range(trial.size):
            value += samples.A[i, j] * trial[j]
        track.first[i] = value
        if k > 0:
            share = crossed(track.z[i] - at[k - 1], value - at1[k - 1], near, share)
        if k < count:
            share = crossed(at[k] - track.z[i], at1[k] - value, near, share)
    for j in range(trial.size):
        before = track.x[j] if track.is_free[j] else track.here[j]
        after = trial[j] if track.is_free[j] else there[j]
        share = crossed(before - track.lower[j], after - track.lower[j], track.unit[j], share)
        share = crossed(track.upper[j] - before, track.upper[j] - after, track.unit[j], share)
    return share


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def advance(
    samples: Samples, track: Track, sums: Sums, terms: Terms, dx: Array, t: float, end: float, step: float, size: int,
    exact: float, near: float,
) -> float:  # fmt: skip
    """On along the tangent by `step` at most, as far as no border is crossed; the new t, or -1 where that fails."""
    trial, there = np.empty(dx.size), np.empty(dx.size)
    for _ in range(40):
        t1 = t - step
        if t1 - end <= 1e-15 * t:
            t1 = end
        copy(track.x, trial)
        add(step, dx, trial)
        if not correct(track, sums, terms, t1, exact, trial, there):
            step *= 0.25
            if step <= 1e-14 * t or not invert(sums, terms, track.rise, track.free, t, track.K):
                return -1.0
            continue
        share = passed(samples, track, trial, there, t, t1, size, near)
        if share == 1.0:
            copy(trial, track.x)
            copy(there, track.here)
            for m in range(size):
                track.z[track.candidates[m]] = track.first[track.candidates[m]]
            return t1
        step *= min(max(share, 1e-3), 1.0 - 1e-12)
    return -1.0


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[untyped-decorator]
def flip(samples: Samples, track: Track, sums: Sums, terms: Terms, t: float, i: int, other: int, u: Array) -> float:
    """Carry sample i to its other cell; what is left of the curvature along u = K a. Up to _SINGULAR nothing is changed."""
    k, f = track.cell[i], track.free.size
    row = samples.A[i]
    change = samples.slope[other, 0] - samples.slope[k, 0] + t * (samples.slope[other, 1] - samples.slope[k, 1])
    change *= samples.factor[i]
    left = 1.0
    for attempt in range(2):
        for j in range(row.size):
            u[j] = 0.0
        add_solved(track.K, row, track.free, u, 1.0)
        total = 0.0
        for j in range(row.size):
            total += u[j] * row[j]
        left = 1.0 + change * total
        if left > 0.2 or attempt == 1:
            break
        if not invert(sums, terms, track.rise, track.free, t, track.K):
            return -np.inf
    if left > _SINGULAR:
        change_cell(samples, i, k, other, sums)
        track.cell[i] = other
        for a in range(f):
            for b in range(f):
                track.K[a, b] -= change / left * u[track.free[a]] * u[track.free[b]]
    return left


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def follow(
    samples: Samples, track: Track, sums: Sums, terms: Terms, state: Array, exact: float, near: float, most: int,
    direction: Array,
) -> Any:  # fmt: skip
    """Follow the path from t = state[0] to state[1], `most` events at most; state[2] is the way to try in the next window.

    Returns (why, index, side or other cell, events); at the branch's END `direction` (p,) leads on.
    """
    p = track.x.size
    t, end, way = state[0], state[1], state[2]
    if not invert(sums, terms, track.rise, track.free, t, track.K):
        return TROUBLE, 0, 0, 0
    gradient(sums, terms, track.rise, track.level, track.x, t, track.here)
    dx, rate, straight, origin, u = np.zeros(p), np.empty(p), np.zeros(p), np.empty(p), np.empty(p)
    events, windows, tied, expected, stuck, size = 0, 0, 0, 0, 0, 0
    radius, began, deviation = -1.0, t, 0.0  # of the window; none yet
    few, tube = _MANY, _TUBE
    while True:
        if not tangent(track, sums, terms, t, dx, rate):
            return TROUBLE, 1, 0, events
        if radius >= 0.0:
            deviation = distance(track.x, origin, began - t, straight)
        through = way - (began - t) <= max(1e-9 * way, 1e-14 * t)
        turned = distance(dx, straight, 0.0, straight)
        if radius < 0.0 or through or radius - deviation < 1e-6 * way * turned:
            windows += 1
            if windows > 20 * most + 100:
                return TROUBLE, 2, 0, events
            if radius >= 0.0:
                way, tube = (2.0 * way, 0.7 * tube) if through else (1.5 * way, min(2.0 * tube, _WIDEST))
            last = 2 * samples.c.size
            while True:
                way = min(max(way, 1e-13 * t), t - end)
                size, radius = choose(samples, track, dx, t, way, tube)
                if size <= few or 4 * size > 3 * last:  # few, or nearer ones alone
                    break
                last = size
                way *= 0.5
            copy(track.x, origin)
            copy(dx, straight)
            began, deviation, turned = t, 0.0, 0.0
        step = way - (began - t)
        if turned > 0.0:
            step = min(step, (radius - deviation) / turned)
        window = max(step, 0.0)
        step, kind, index, side = next_event(samples, track, dx, rate, t, size, near, window)
        if step == 0.0 and kind == COORDINATE:
            state[0], state[2] = t, way
            return COORDINATE, index, side, events
        if step == 0.0 and kind == _SAMPLE:
            if track.free.size == 0:  # nothing moves but the borders: no event depends on another
                events += flip_all(samples, track, sums, t, size, near)
                gradient(sums, terms, track.rise, track.level, track.x, t, track.here)
                continue
            other = track.cell[index] + (1 if side else -1)
            if tied == 0:
                expected = ready(samples, track, dx, t, size, near)
            left = flip(samples, track, sums, terms, t, index, other, u)
            if left == -np.inf:
                return TROUBLE, 3, 0, events
            if left <= _SINGULAR:
                add(1.0 if side else -1.0, u, direction)
                rest = remaining(samples, track, dx, t, index, side)
                add(rest, dx, track.x)
                state[0], state[2] = t - rest, way
                return END, index, other, events
            events += 1
            tied += 1
            if tied > _TIED + 2 * size:
                return TROUBLE, 4, 0, events
            gradient(sums, terms, track.rise, track.level, track.x, t, track.here)
            continue
        if t - end <= 1e-15 * t or events >= most:
            state[0], state[2] = t, way
            return (FULL if t - end > 1e-15 * t else REACHED), 0, 0, events
        if tied > 0 and tied != expected:  # tied samples: what one does keeps another from its event
            state[0], state[2] = t, way
            return SHARED, 0, 0, events
        if step == 0.0:  # the window is used up
            radius = -1.0
            stuck += 1
        else:
            t1 = advance(samples, track, sums, terms, dx, t, end, step, size, exact, near)
            if t1 < 0.0:
                return TROUBLE, 5, 0, events
            tied, stuck = (0, 0) if t - t1 > 1e-15 * t else (tied, stuck + 1)
            t = t1
        if stuck > _TIED:
            return TROUBLE, 6, 0, events

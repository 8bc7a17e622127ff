"""`descend`: `flow_down` by sweeps, for losses without kinks and weights without jumps.

In: a place that is no minimum, and the way out of it. Out: the stop at the minimum that the flow runs into, or None where it
takes more than sweeps to say (then `flow_down` does).

The flow is the same, dx/dt = -M(x)^-1 grad G(x) with M the Hessian of the w-problem, its steps are exact for the local
quadratic model, and only coordinates have kinks on the way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.flow import FAITHFUL, LONGEST, flow_step
from spdsl.solvers.active_set.sweeps import Sweep
from spdsl.solvers.path_following.leaps import Leaper, Place, Stop, stays, violation

__all__ = ["descend", "ended"]

_SHORTEST = 1e-6  # time within which the flow keeps its first direction


def descend(leaper: Leaper, place: Place, direction: Array, max_steps: int = 400) -> Stop | None:
    """The minimum that the flow runs into from a place, with a first displacement (p,) along `direction`."""
    descent = _Descent(leaper)
    place = descent.displaced(place, direction)
    sweep: Sweep | None = None
    time, idle = 1.0, 0
    for _ in range(max_steps):
        free = place.free
        if sweep is None:
            sweep = leaper.sweeps.newton(place.x, place.age, free)
        gradient, bend = leaper.completed(place, sweep)
        scale = leaper.system.magnitude_of(place.x, sweep.size, place.interval, place.fixed)
        inner = float(np.abs(gradient[free]).max(initial=0.0))
        if violation(leaper.system, place, gradient) > max(1e-10 * scale, 0.01 * inner):
            released = descent.released(place, sweep, gradient)
            if released is not None:
                place, sweep = released, None
                idle += 1
                if idle > 30:
                    return None
                continue
        if free.size == 0:
            break
        factor = leaper.factor(sweep.H, free, bend)
        if factor.verdict != "indefinite" and (inner <= 1e-9 * scale or time >= LONGEST):
            break
        found = descent.step(place, sweep, gradient, bend, factor.reduced, time)
        if found is None:
            return None
        moved, sweep, time = found
        advance = float(np.abs(moved.x - place.x).max(initial=0.0))
        idle = idle + 1 if advance <= 1e-14 * (1e-300 + float(np.abs(place.x).max(initial=0.0))) else 0
        if idle > 30:
            return None
        place = moved
    else:
        return None
    return ended(leaper, place)


class _Descent:
    def __init__(self, leaper: Leaper) -> None:
        self.leaper = leaper
        self.coordinates = leaper.system.coordinates

    def displaced(self, place: Place, direction: Array) -> Place:
        """The place a little along a direction: as far as it takes for the slope downhill to leave rounding behind."""
        moved = place
        for _ in range(7):
            moved, stopped = self.moved(place, direction)
            if stopped:
                return moved
            sweep = self.leaper.sweeps.newton(moved.x, moved.age, moved.free)
            gradient, _ = self.leaper.completed(moved, sweep)
            free = moved.free
            scale = self.leaper.system.magnitude_of(moved.x, sweep.size, moved.interval, moved.fixed)
            if float(gradient[free] @ direction[free]) < -1e-8 * scale * np.abs(direction[free]).max(initial=0.0):
                return moved
            direction = 3.0 * direction
        return moved

    def moved(self, place: Place, dx: Array) -> tuple[Place, bool]:
        """On along dx (p,), to the first kink of a free coordinate at most, which is held there; was there one?"""
        coordinates, x = self.coordinates, place.x
        step, at = 1.0, (-1, -1)
        for kink in range(coordinates.position.shape[1]):
            ahead = np.where(dx > 0.0, place.interval <= kink, place.interval > kink)
            real = (kink < coordinates.count) & ~coordinates.smooth_border[:, kink] & (place.fixed == FREE)
            columns = np.flatnonzero(ahead & real & (dx != 0.0))
            if columns.size:
                reach = np.maximum((coordinates.position[columns, kink] - x[columns]) / dx[columns], 0.0)
                nearest = int(np.argmin(reach))
                if reach[nearest] < step:
                    step, at = float(reach[nearest]), (int(columns[nearest]), kink)
        x = x + step * dx
        interval = np.where(place.fixed == FREE, coordinates.relabel(x, place.interval), place.interval)
        fixed = place.fixed
        if at[0] >= 0:
            fixed = fixed.copy()
            fixed[at[0]] = at[1]
            x[at[0]] = coordinates.position[at]
        return Place(place.age, x, interval, fixed), at[0] >= 0

    def released(self, place: Place, sweep: Sweep, gradient: Array) -> Place | None:
        """The place without the fixed coordinates that the flow sets in motion; None when it moves none.

        The flow's direction d is least in g'd + d'Md/2 over the cone of what the kinks allow. A coordinate whose multiplier is
        out of bounds may still stay: the others' motion holds it.
        """
        held = np.flatnonzero(place.fixed >= 0)
        columns = np.concatenate([place.free, held])
        M = self.leaper.factor(self.leaper.sweeps.convex(sweep, columns), columns, np.zeros(columns.size)).reduced
        size = max(1e-6 * float(np.trace(M)) / columns.size, self.leaper.system.faint)
        low, high = self.coordinates.bounds(place.fixed)
        M[np.diag_indices_from(M)] += size
        g, f = gradient[columns], place.free.size
        d = np.zeros(columns.size)
        d[:f] = np.linalg.solve(M[:f, :f], -g[:f])
        pull = -(g + M @ d)[f:]
        if np.all((low[held] <= pull) & (pull <= high[held])):
            return None
        d = _least(M, g, low[columns], high[columns], d)
        interval, fixed = place.interval.copy(), place.fixed.copy()
        moving = d[f:]
        for k in np.flatnonzero(moving):
            self.coordinates.flip(interval, fixed, int(moving[k] > 0.0), int(held[k]))
        return Place(place.age, place.x, interval, fixed) if np.any(moving) else None

    def step(
        self, place: Place, sweep: Sweep, gradient: Array, bend: Array, H: Array, time: float
    ) -> tuple[Place, Sweep | None, float] | None:
        """One step of the flow: the place after it, its sweep where the free coordinates are the same, the next time."""
        leaper, free = self.leaper, place.free
        M = leaper.sweeps.convex(sweep, free)
        size = (float(np.trace(M)) + abs(float(np.trace(sweep.H - M)))) / free.size
        M = leaper.factor(M, free, bend).reduced
        M[np.diag_indices_from(M)] += max(1e-6 * size, leaper.system.faint)
        values, vectors = eigh(H, M)
        slopes = vectors.T @ gradient[free]
        for _ in range(80):
            z = flow_step(values, vectors, slopes, time)
            dx = np.zeros(leaper.system.p)
            dx[free] = z
            moved, stopped = self.moved(place, dx)
            if stopped and time > _SHORTEST and np.array_equal(moved.x, place.x):
                time *= 0.25  # a coordinate that was let go turns back later: not yet
                continue
            z = (moved.x - place.x)[free]
            there = leaper.sweeps.newton(moved.x, moved.age, free)
            same = replace(moved, fixed=place.fixed)
            expected, found = gradient[free] + H @ z, leaper.completed(same, there)[0][free]
            off = float(np.linalg.norm(vectors.T @ (found - expected)))
            whole = float(np.linalg.norm(slopes) + np.linalg.norm(vectors.T @ expected))
            if np.isfinite(off) and off <= FAITHFUL * whole:
                longer = min(time * 4.0, 4.0 * LONGEST) if off < 0.25 * FAITHFUL * whole else time
                return moved, None if stopped else there, longer
            time *= 0.25
        return None


def ended(leaper: Leaper, place: Place) -> Stop | None:
    """The minimum beside the end of the flow, to rounding."""
    found = leaper.settle(place, max_iterations=10)
    if found is None or found.factor.verdict == "indefinite":
        return None
    system, place = leaper.system, found.place
    good = stays(system, place) and violation(system, place, found.gradient) <= 1e-10 * found.scale
    return found if good else None


def _least(M: Array, g: Array, low: Array, high: Array, start: Array) -> Array:
    """argmin of g'd + d'Md/2 + sum_j max(low_j d_j, high_j d_j), by coordinate descent from a start."""
    d, residual = start.copy(), g + M @ start
    diagonal = np.diag(M)
    for _ in range(1000):
        largest = 0.0
        for j in range(g.size):
            rest = diagonal[j] * d[j] - residual[j]
            new = (min(rest - low[j], 0.0) + max(rest - high[j], 0.0)) / diagonal[j]
            step = new - d[j]
            if step != 0.0:
                residual += step * M[:, j]
                d[j] = new
                largest = max(largest, abs(step) * diagonal[j])
        if largest <= 1e-9 * float(np.abs(g).max(initial=0.0)):
            break
    return d

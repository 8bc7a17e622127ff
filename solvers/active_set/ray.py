"""The first minimum along a ray, exact over kinks; where G bends down, the first that shows at a row of points.

In: a system, a point, a direction. Out: the step length, and the term at whose kink the minimum lies, if it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.system import Point, System

__all__ = ["Landing", "first_kink", "first_minimum"]


@dataclass(frozen=True)
class Landing:
    """Where a line search ended. `kink` is (block, border, row), block -1 for a coordinate; None at a smooth minimum."""

    step: float
    kink: tuple[int, int, int] | None = None
    unbounded: bool = False


class Ray:
    """G along x + t d, with held rows held: slopes at any t that is not a kink, and the kinks on the way."""

    def __init__(self, system: System, point: Point, direction: Array) -> None:
        self.system = system
        self.point = point
        direction = np.where(point.labels.fixed == FREE, direction, 0.0)
        self.direction = direction
        self.u = [block.predict(point.x) for block in system.blocks]
        self.du = [np.asarray(block.A @ direction) for block in system.blocks]
        self.wall = np.inf  # the step at which the first wall is met
        for block, labels, u, du in zip(system.blocks, point.labels.rows, self.u, self.du):
            held = labels.held
            if held.size:
                u[held] = block.borders[labels.kink[held], held]
                du[held] = 0.0
            noise = 1e-14 * (np.abs(du).max(initial=0.0))
            du[np.abs(du) <= noise] = 0.0
            if block.is_wall:
                u[:] = np.where(labels.kink < 0, np.maximum(u, block.borders[0]), u)
                towards = np.flatnonzero((du < 0.0) & (labels.kink < 0))
                steps = (block.borders[0, towards] - u[towards]) / du[towards]
                self.wall = min(self.wall, float(steps.min(initial=np.inf)))
        self.free = point.labels.fixed == FREE
        # Two kinks closer than this can't be told apart: u and x move by rounding only in between.
        speed = [float(np.abs(du).max(initial=0.0)) / b.scale for b, du in zip(system.blocks, self.du) if b.any_kink]
        speed.append(float(np.abs(direction / system.coordinates.scale).max(initial=0.0)))
        self.tie = 1e-14 / max(max(speed), 1e-300)
        self.quadratic = float(system.q @ direction)
        self.bend = 0.0
        if system.Q is not None:
            Qd = system.Q @ direction
            self.quadratic += float(Qd @ point.x)
            self.bend = float(Qd @ direction)

    def slope(self, t: float) -> float:
        """The derivative of G at t, by the pieces that hold x + t d; inf at and beyond a wall."""
        if t >= self.wall:
            return np.inf
        total = self.quadratic + t * self.bend
        for block, labels, u, du in zip(self.system.blocks, self.point.labels.rows, self.u, self.du):
            z = u + t * du
            pieces = block.labels_beyond(labels, z, self.point.age)
            values = block.evaluate(pieces, z, self.point.age)
            total += float(values.gradient @ du)
        x = self.point.x + t * self.direction
        coordinates = self.system.coordinates
        interval = np.where(self.free, coordinates.interval(x), 0)
        slopes = np.where(self.direction != 0.0, coordinates.slope(x, interval), 0.0)
        return total + float(slopes @ self.direction)

    def jump(self, name: tuple[int, int, int]) -> float:
        """By how much the slope along the ray jumps at a term's kink."""
        number, border, row = name
        if number < 0:
            return float(self.system.coordinates.unit[row, border] * abs(self.direction[row]))
        block = self.system.blocks[number]
        jump = block.right[border, row] - block.left[border, row]
        return float(block.factor[row] * jump * abs(self.du[number][row]))

    def kinks(self) -> tuple[Array, list[tuple[int, int, int]]]:
        """Step lengths at which a term passes a kink, ascending, with the terms."""
        steps: list[Array] = []
        names: list[tuple[int, int, int]] = []
        for number, (block, labels) in enumerate(zip(self.system.blocks, self.point.labels.rows)):
            if not block.any_kink:
                continue
            u, du = self.u[number], self.du[number]
            for border in np.flatnonzero(block.kinked):
                ahead = np.where(du > 0.0, labels.piece <= border, labels.piece > border)
                rows = np.flatnonzero(ahead & (du != 0.0) & (labels.kink < 0))
                steps.append(np.maximum((block.borders[border, rows] - u[rows]) / du[rows], 0.0))
                names.extend((number, int(border), int(row)) for row in rows)
        coordinates = self.system.coordinates
        d, interval = self.direction, self.point.labels.interval
        for kink in range(coordinates.position.shape[1]):
            ahead = np.where(d > 0.0, interval <= kink, interval > kink)
            real = (kink < coordinates.count) & ~coordinates.smooth_border[:, kink]
            columns = np.flatnonzero(ahead & real & (d != 0.0) & self.free)
            distance = coordinates.position[columns, kink] - self.point.x[columns]
            steps.append(np.maximum(distance / d[columns], 0.0))
            names.extend((-1, kink, int(j)) for j in columns)
        if not steps:
            return np.zeros(0), []
        flat = np.concatenate(steps)
        order = np.argsort(flat, kind="stable")
        return flat[order], [names[i] for i in order]


def first_minimum(system: System, point: Point, direction: Array, reach: float, careful: bool) -> Landing:
    """The first minimum of G along a descent direction.

    Parameters
    ----------
    reach : float
        A step length to try first (1 for Newton).
    careful : bool
        G may be concave on the way: look at many points below `reach` and grow slowly beyond it.
    """
    ray = Ray(system, point, direction)
    steps, names = ray.kinks()
    before, after = 0.0, reach
    found = False
    for trial in reach * np.linspace(0.0, 1.0, 9)[1:] if careful else (reach,):
        if ray.slope(float(trial)) >= 0.0:
            after, found = float(trial), True
            break
        before = float(trial)
    while not found:
        after = before * (1.5 if careful else 2.0)
        if not np.isfinite(after) or after > 1e18 * reach:
            return Landing(before, unbounded=True)
        if ray.slope(after) >= 0.0:
            found = True
        else:
            before = after
    # `before` < the minimum <= `after`; narrow to one kink, or one cluster of tied ones, at most.
    clusters = [c for c in _clusters(steps, ray.tie) if steps[c.start] < after and steps[c.stop - 1] >= before]
    low, high = 0, len(clusters)
    while low < high:  # find the first cluster behind which G rises
        middle = (low + high) // 2
        behind = min(after, steps[clusters[middle + 1].start] if middle + 1 < len(clusters) else after)
        t = 0.5 * (float(steps[clusters[middle].stop - 1]) + behind)
        if ray.slope(t) >= 0.0:
            high, after = middle, t
        else:
            low, before = middle + 1, t
    if low < len(clusters):
        tied = clusters[low]
        first, last = float(steps[tied.start]), float(steps[tied.stop - 1])
        in_front = before + (1.0 - 1e-9) * (first - before)
        behind = last + 1e-9 * (after - last)
        if first <= before or ray.slope(in_front) < 0.0:
            if ray.slope(behind) >= 0.0:
                strongest = max(range(tied.start, tied.stop), key=lambda k: ray.jump(names[k]))
                return Landing(float(steps[strongest]), names[strongest])
            before = max(before, behind)
        else:
            after = in_front
    return Landing(_root(ray.slope, before, after))


def first_kink(system: System, point: Point, direction: Array) -> Landing | None:
    """The first kink on the way along a direction, also one that is touched already; None when there is none."""
    ray = Ray(system, point, direction)
    steps, names = ray.kinks()
    return Landing(float(steps[0]), names[0]) if steps.size else None


def _clusters(steps: Array, tie: float) -> list[range]:
    """Runs of kinks that are tied to rounding."""
    if steps.size == 0:
        return []
    apart = np.diff(steps) > tie + 1e-13 * steps[1:]
    edges = [0, *(np.flatnonzero(apart) + 1).tolist(), steps.size]
    return [range(i, j) for i, j in pairwise(edges)]


def _root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Where a slope changes its sign: secant steps kept inside a bracket."""
    f_low, f_high = slope(low), slope(high)
    if f_low >= 0.0:
        return low
    if f_high <= 0.0:
        return high
    for _ in range(60):
        width = high - low
        t = low - f_low * width / (f_high - f_low)
        if not low < t < high:
            break
        value = slope(t)
        if value == 0.0 or width <= 4e-16 * abs(high):
            return t
        if value < 0.0:
            low, f_low = t, value
        else:
            high, f_high = t, value
        if abs(value) <= 1e-12 * max(abs(f_low), abs(f_high)):
            return t
        if high - low > 0.5 * width:  # slow: bisect
            t = 0.5 * (low + high)
            value = slope(t)
            if value < 0.0:
                low, f_low = t, value
            else:
                high, f_high = t, value
    return 0.5 * (low + high)

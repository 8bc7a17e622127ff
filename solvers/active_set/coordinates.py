"""Coordinate functions: all regularizers and bounds that act on single entries of x, merged into one PC^r function each.

|w_j|, w_j^2, huber(w_j), w_j >= 0 and their sums become, for each coordinate, sorted kinks with one-sided slopes and the
intervals between them. A coordinate is *free* inside an interval, or *fixed* at a kink, or *pinned* for good.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from spdsl.problem.functions import Array, PieceKernel
from spdsl.solvers.active_set.rows import FAR
from spdsl.solvers.active_set.weighting import IntArray

__all__ = ["FREE", "PINNED", "BoxKernel", "CoordinateBlock", "Coordinates"]

FREE = -1
PINNED = -2


@dataclass
class CoordinateBlock:
    """factor * sum_r psi(a_r x_{index_r} + d_r)."""

    index: IntArray
    a: Array
    d: Array
    kernel: PieceKernel
    theta: tuple[Any, ...]
    factor: Array
    piece_of: IntArray = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # (rows, intervals)

    def call(self, function: Any, piece: Any, z: Array) -> Array:
        """A kernel function over the block's rows."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(function(piece, z, *self.theta), float), z.shape)


class Coordinates:
    """The merged coordinate functions of all p coordinates.

    Attributes
    ----------
    position, low, high : arrays (p, R)
        Kinks, ascending, padded with inf, and the one-sided slopes of the whole coordinate function there; an infinite
        slope is a bound of the feasible set.
    count : int array (p,)
        Number of kinks.
    scale : array (p,)
        A change of x_j that matters.
    """

    def __init__(self, p: int, blocks: list[CoordinateBlock], scale: Array) -> None:
        self.p = p
        self.blocks = blocks
        self.scale = scale
        kinks: list[list[float]] = [[] for _ in range(p)]
        for block in blocks:
            for border in range(len(block.kernel.kinked)):
                # Smooth borders split intervals too: the piece is then constant on each.
                at = np.broadcast_to(np.asarray(block.kernel.breaks(*block.theta)[border], float), block.a.shape)
                for row in range(len(block.index)):
                    if block.factor[row] != 0.0 and np.isfinite(at[row]):
                        kinks[block.index[row]].append(float((at[row] - block.d[row]) / block.a[row]))
        merged = [_distinct(values) for values in kinks]
        width = max((len(values) for values in merged), default=0)
        self.count = np.array([len(values) for values in merged], np.int64)
        self.position = np.full((p, width), np.inf)
        for j, values in enumerate(merged):
            self.position[j, : len(values)] = values
        self.touched = np.zeros(p, bool)
        for block in blocks:
            self.touched[block.index] = True
            self._tabulate(block)
        self.table: Array | None = None  # slopes by interval, when no piece bends
        if not any(self._bends(block) for block in blocks):
            slopes = [self.slope(self.inside(np.full(p, k)), np.minimum(k, self.count)) for k in range(width + 1)]
            self.table = np.stack(slopes, axis=1)
        self.low = np.zeros((p, width))
        self.high = np.zeros((p, width))
        for kink in range(width):
            at = np.where(np.isfinite(self.position[:, kink]), self.position[:, kink], 0.0)
            self.low[:, kink] = self.slope(at, np.full(p, kink))
            self.high[:, kink] = self.slope(at, np.full(p, kink + 1))
        with np.errstate(invalid="ignore"):
            jump = self.high - self.low
        self.unit = np.where(np.isfinite(jump), jump, 1.0)
        self.smooth_border = self.unit <= 0.0
        self.unit = np.maximum(self.unit, 1e-300)

    @property
    def limits(self) -> tuple[Array, Array]:
        """The bounds of every coordinate (p,) each, infinite where there is none."""
        lower, upper = np.full(self.p, -np.inf), np.full(self.p, np.inf)
        for kink in range(self.position.shape[1]):
            at, exists = self.position[:, kink], kink < self.count
            lower = np.where(exists & np.isneginf(self.low[:, kink]), np.maximum(lower, at), lower)
            upper = np.where(exists & np.isposinf(self.high[:, kink]), np.minimum(upper, at), upper)
        return lower, upper

    @cached_property
    def is_quadratic(self) -> bool:
        """Is every piece of every function quadratic or affine, so that curvatures change at borders only?"""
        return all(
            bool(np.all(bend == bends[0]))
            for block in self.blocks
            for bends in self._curvatures(block)
            for bend in bends
        )

    def _bends(self, block: CoordinateBlock) -> bool:
        return any(bool(np.any(bend)) for bends in self._curvatures(block) for bend in bends)

    def _curvatures(self, block: CoordinateBlock) -> list[list[Array]]:
        """Curvatures at some places, piece by piece."""
        points = [np.full(len(block.index), value) for value in (-1.7, -0.4, 0.3, 1.1)]
        return [
            [block.call(block.kernel.curvature, np.full(len(block.index), piece), z) for z in points]
            for piece in range(block.kernel.n_pieces)
        ]

    def _tabulate(self, block: CoordinateBlock) -> None:
        """The piece of each row in each interval of its coordinate: looked up at a point inside."""
        width = self.position.shape[1]
        block.piece_of = np.zeros((len(block.index), width + 1), np.int64)
        for interval in range(width + 1):
            inside = self.inside(np.full(self.p, interval))[block.index]
            block.piece_of[:, interval] = block.kernel.piece(block.a * inside + block.d, *block.theta)

    def inside(self, interval: IntArray) -> Array:
        """A point inside each coordinate's interval (clipped to those that exist)."""
        if self.position.shape[1] == 0:
            return np.zeros(self.p)
        columns = np.arange(self.p)
        interval = np.minimum(interval, self.count)
        left = np.where(interval > 0, self.position[columns, np.maximum(interval - 1, 0)], -np.inf)
        right = np.where(
            interval < self.count,
            self.position[columns, np.minimum(interval, self.position.shape[1] - 1)],
            np.inf,
        )
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (left + right)
        step = np.maximum(1.0, np.abs(np.where(np.isfinite(left), left, 0.0)))
        middle = np.where(np.isfinite(left) & ~np.isfinite(right), left + step, middle)
        step = np.maximum(1.0, np.abs(np.where(np.isfinite(right), right, 0.0)))
        middle = np.where(~np.isfinite(left) & np.isfinite(right), right - step, middle)
        return np.where(np.isfinite(left) | np.isfinite(right), middle, 0.0)

    def interval(self, x: Array) -> IntArray:
        """The interval of each coordinate; at a kink the one on its right."""
        return np.asarray((self.position <= x[:, None]).sum(axis=1), np.int64)

    def relabel(self, x: Array, interval: IntArray) -> IntArray:
        """Intervals anew by x; a coordinate on a border of its interval, to rounding, keeps it."""
        width = self.position.shape[1]
        if width == 0:
            return interval
        columns = np.arange(self.p)
        lower = np.where(interval > 0, self.position[columns, np.maximum(interval - 1, 0)], -np.inf)
        upper = np.where(interval < self.count, self.position[columns, np.minimum(interval, width - 1)], np.inf)
        slack = 1e-14 * self.scale
        stays = (x >= lower - slack) & (x <= upper + slack)
        return np.where(stays, interval, self.interval(x))

    def at_kink(self, x: Array) -> IntArray:
        """The kink at which each coordinate lies exactly (to rounding), else FREE; smooth borders don't count."""
        result = np.full(self.p, FREE)
        for kink in range(self.position.shape[1]):
            near = np.abs(x - self.position[:, kink]) <= 1e-14 * self.scale
            result[near & ~self.smooth_border[:, kink]] = kink
        return result

    def slope(self, x: Array, interval: IntArray) -> Array:
        """The coordinate functions' slopes by the pieces of the given intervals (p,)."""
        if self.table is not None:
            return np.asarray(self.table[np.arange(self.p), interval])
        total = np.zeros(self.p)
        for block in self.blocks:
            piece = self._piece(block, interval)
            z = block.a * x[block.index] + block.d
            np.add.at(total, block.index, block.factor * block.a * block.call(block.kernel.slope, piece, z))
        return total

    def curvature(self, x: Array, interval: IntArray) -> Array:
        """Their second derivatives (p,)."""
        if self.table is not None:
            return np.zeros(self.p)
        total = np.zeros(self.p)
        for block in self.blocks:
            piece = self._piece(block, interval)
            z = block.a * x[block.index] + block.d
            bend = block.call(block.kernel.curvature, piece, z)
            np.add.at(total, block.index, block.factor * block.a**2 * bend)
        return total

    def value(self, x: Array) -> float:
        """The sum of all coordinate functions; bounds count nothing inside the feasible set."""
        total = 0.0
        for block in self.blocks:
            z = block.a * x[block.index] + block.d
            piece = block.kernel.piece(z, *block.theta)
            total += float(block.factor @ block.call(block.kernel.value, piece, z))
        return total

    def _piece(self, block: CoordinateBlock, interval: IntArray) -> IntArray:
        if block.piece_of.shape[1] <= 1:
            return block.piece_of[:, 0]
        return np.asarray(block.piece_of[np.arange(len(block.index)), interval[block.index]])

    def bounds(self, fixed: IntArray) -> tuple[Array, Array]:
        """Slopes allowed at the kinks where coordinates are fixed (p,); 0 elsewhere."""
        if self.position.shape[1] == 0:
            return np.zeros(self.p), np.zeros(self.p)
        columns = np.arange(self.p)
        kink = np.maximum(fixed, 0)
        held = fixed >= 0
        return np.where(held, self.low[columns, kink], 0.0), np.where(held, self.high[columns, kink], 0.0)

    def gaps(
        self, x: Array, interval: IntArray, fixed: IntArray, multiplier: Array, dx: Array, dm: Array
    ) -> tuple[Array, Array]:
        """Signed distances (2, p) to the next change, and their rates. `multiplier` is minus the rest's gradient."""
        gap = np.full((2, self.p), FAR)
        rate = np.zeros((2, self.p))
        width = self.position.shape[1]
        if width == 0:
            return gap, rate
        columns = np.arange(self.p)
        free = fixed == FREE
        below = free & (interval > 0)
        above = free & (interval < self.count)
        lower = self.position[columns, np.maximum(interval - 1, 0)]
        upper = self.position[columns, np.minimum(interval, width - 1)]
        with np.errstate(invalid="ignore"):
            gap[0] = np.where(below, (x - lower) / self.scale, FAR)
            gap[1] = np.where(above, (upper - x) / self.scale, FAR)
        rate[0] = np.where(below, dx / self.scale, 0.0)
        rate[1] = np.where(above, -dx / self.scale, 0.0)
        held = np.flatnonzero(fixed >= 0)
        if held.size:
            kink = fixed[held]
            low, high, unit = self.low[held, kink], self.high[held, kink], self.unit[held, kink]
            gap[0, held] = np.where(np.isfinite(low), (multiplier[held] - low) / unit, FAR)
            gap[1, held] = np.where(np.isfinite(high), (high - multiplier[held]) / unit, FAR)
            rate[0, held] = np.where(np.isfinite(low), dm[held] / unit, 0.0)
            rate[1, held] = np.where(np.isfinite(high), -dm[held] / unit, 0.0)
        return gap, rate

    def flip(self, interval: IntArray, fixed: IntArray, side: int, j: int) -> None:
        """Carry one coordinate over the border that its gap `side` measures; writes into the labels."""
        if fixed[j] >= 0:
            interval[j] = fixed[j] + side
            fixed[j] = FREE
        else:
            kink = interval[j] - 1 + side
            if self.smooth_border[j, kink]:
                interval[j] += 1 if side else -1
            else:
                fixed[j] = kink


class BoxKernel:
    """The indicator of [0, inf) as a PC^r function with an infinite slope on its left; z is the distance from the bound."""

    n_pieces = 2
    kinked: tuple[bool, ...] = (True,)

    def breaks(self) -> tuple[Any, ...]:
        """The bound."""
        return (0.0,)

    def piece(self, z: Array) -> Any:
        """0 outside, 1 inside."""
        return (z >= 0.0).astype(np.int8)

    def value(self, piece: Any, z: Array) -> Array:
        """0: feasibility is kept, never weighed."""
        return np.zeros_like(z)

    def slope(self, piece: Any, z: Array) -> Array:
        """-inf outside, 0 inside."""
        return np.where(np.broadcast_to(piece, z.shape) == 0, -np.inf, 0.0)

    def curvature(self, piece: Any, z: Array) -> Array:
        """0."""
        return np.zeros_like(z)

    def compiled(self) -> Any:
        """Not needed: bounds are never evaluated in a hot loop."""
        raise NotImplementedError


def _distinct(values: list[float]) -> list[float]:
    """Sorted, with those equal to rounding merged."""
    result: list[float] = []
    for value in sorted(values):
        if not result or value - result[-1] > 1e-13 * max(1.0, abs(value)):
            result.append(value)
    return result

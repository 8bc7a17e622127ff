"""Sweeps: single passes over all samples of a loss without kinks, labels by value; what Newton along a path needs, no more.

In: a row block, x and an age. Out: the loss's gradient, its derivative by the age and its Hessian over the free coordinates;
how both change along a tangent; the lowest Hessian over a stretch. Thousands of samples go through compiled loops over the
transposed design (chunks of samples stay in the cache, and the loops run along samples, so that they vectorize); the others,
and designs too large to hold a dense copy of, go through NumPy. Both give the same numbers up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.linear import gram
from spdsl.solvers.active_set.rows import RowBlock, RowLabels
from spdsl.solvers.active_set.weighting import IntArray

__all__ = ["Sweep", "Sweeps", "sweeps_of"]

_LARGEST = 2e8  # bytes of a dense copy of a sparse design
_WIDER = 0.1  # hulls are widened by this share


@dataclass(frozen=True)
class Sweep:
    """The loss at a point.

    Attributes
    ----------
    gradient, by_age, size : arrays (p,)
        The gradient, its derivative by the age, and the sum of the absolute values of its terms.
    H : array (f, f)
        The Hessian over the free coordinates.
    rows : array (5, n), or (4, n) where that costs extra
        u, curvature, derivative of the pull by the age, loss and the convex part of the curvature, of every sample.
    age : float
    """

    gradient: Array
    by_age: Array
    size: Array
    H: Array
    rows: Array
    age: float


class Sweeps(Protocol):
    """The passes over one block."""

    def newton(self, x: Array, age: float, free: IntArray) -> Sweep:
        """The loss at x."""

    def along(self, sweep: Sweep, free: IntArray, dx: Array, wanted: bool) -> tuple[Array, Array]:
        """How u (n,) and the loss's gradient (p,) change by the age along dx (f,); the latter only when it is wanted."""

    def convex(self, sweep: Sweep, free: IntArray) -> Array:
        """The Hessian (f, f) of the w-problem: without what the weights' change takes away."""

    def lowest(
        self, free: IntArray, ages: tuple[float, float], start: Sweep, du0: Array, end: Sweep, du1: Array
    ) -> Array:
        """The Hessian (f, f) with every sample's curvature at its least over the stretch between two points."""


def sweeps_of(block: RowBlock) -> Sweeps:
    """Compiled passes where the block has loops and a design that can be held dense, else those in NumPy."""
    p = int(block.A.shape[1])
    if block.loops is not None and (isinstance(block.A, np.ndarray) or 8.0 * block.m * p <= _LARGEST):
        return CompiledSweeps(block)
    return PlainSweeps(block)


class CompiledSweeps:
    """Passes in compiled loops."""

    def __init__(self, block: RowBlock) -> None:
        A: Any = block.A
        self.At = np.ascontiguousarray((A.toarray() if hasattr(A, "toarray") else A).T)
        self.block = block

    def newton(self, x: Array, age: float, free: IntArray) -> Sweep:
        """See `Sweeps`."""
        block = self.block
        sums = np.empty((3, x.size))
        H = np.empty((free.size, free.size))
        rows = np.empty((5, block.m))
        block.loops.newton(
            self.At, block.c, x, free, age, block.theta_rows, block.own, block.factor, sums, H, rows
        )  # fmt: skip
        return Sweep(sums[0], sums[1], sums[2], H, rows, age)

    def along(self, sweep: Sweep, free: IntArray, dx: Array, wanted: bool) -> tuple[Array, Array]:
        """See `Sweeps`."""
        du, change = np.empty(self.block.m), np.empty(self.At.shape[0] if wanted else 0)
        self.block.loops.along(self.At, free, dx, sweep.rows, du, change)
        return du, change

    def convex(self, sweep: Sweep, free: IntArray) -> Array:
        """See `Sweeps`."""
        H = np.empty((free.size, free.size))
        self.block.loops.whole_gram(self.At, free, sweep.rows[4], H)
        return H

    def lowest(
        self, free: IntArray, ages: tuple[float, float], start: Sweep, du0: Array, end: Sweep, du1: Array
    ) -> Array:
        """See `Sweeps`."""
        block = self.block
        H = np.empty((free.size, free.size))
        block.loops.lowest(
            self.At, free, *ages, start.rows, du0, end.rows, du1, block.theta_rows, block.own, block.factor, H
        )
        return H


class PlainSweeps:
    """Passes in NumPy."""

    def __init__(self, block: RowBlock) -> None:
        self.block = block
        self._columns: tuple[bytes, Any] = (b"none yet", None)

    def _over(self, free: IntArray) -> Any:
        """The design over the free coordinates; the last choice is kept."""
        if np.array_equal(free, np.arange(self.block.A.shape[1])):  # not any order of all of them
            return self.block.A
        key = free.tobytes()
        if self._columns[0] != key:
            self._columns = key, self.block.A[:, free]
        return self._columns[1]

    def newton(self, x: Array, age: float, free: IntArray) -> Sweep:
        """See `Sweeps`."""
        block = self.block
        u = block.predict(x)
        labels = block.labels(u, age)
        values = block.evaluate(labels, u, age)
        rows = np.stack([u, values.curvature, values.by_age, values.loss])
        sides = block.A.T @ np.stack([values.gradient, values.by_age], axis=1)
        H = gram(self._over(free), values.curvature)
        return Sweep(sides[:, 0], sides[:, 1], np.asarray(block.size.T @ np.abs(values.gradient)), H, rows, age)

    def along(self, sweep: Sweep, free: IntArray, dx: Array, wanted: bool) -> tuple[Array, Array]:
        """See `Sweeps`."""
        du = np.asarray(self._over(free) @ dx)
        change = self.block.A.T @ (sweep.rows[1] * du + sweep.rows[2]) if wanted else np.zeros(0)
        return du, np.asarray(change)

    def convex(self, sweep: Sweep, free: IntArray) -> Array:
        """See `Sweeps`."""
        block, weighting = self.block, self.block.weighting
        assert weighting is not None
        u, loss = sweep.rows[0], sweep.rows[3]
        weight = weighting.evaluate(weighting.band(loss, sweep.age), loss, sweep.age)[0]
        bend = block.call(block.kernel.curvature, block.kernel.piece(u, *block.theta), u)
        return gram(self._over(free), np.maximum(block.factor * weight * bend, 0.0))

    def lowest(
        self, free: IntArray, ages: tuple[float, float], start: Sweep, du0: Array, end: Sweep, du1: Array
    ) -> Array:
        """See `Sweeps`."""
        third = (ages[1] - ages[0]) / 3.0
        corners = np.stack([start.rows[0], end.rows[0], start.rows[0] + third * du0, end.rows[0] - third * du1])
        low, high = corners.min(axis=0), corners.max(axis=0)
        widen = _WIDER * (high - low)
        floor = np.minimum(start.rows[1], end.rows[1])
        return gram(self._over(free), self._least(floor, low - widen, high + widen, *ages))

    def _least(self, floor: Array, low: Array, high: Array, first: float, last: float) -> Array:
        """Each sample's least curvature over its hull and the stretch's ages (n,)."""
        block = self.block
        labels: list[RowLabels] = []
        corners = [(low, first), (high, first), (low, last), (high, last)]
        for u, age in [*corners, (0.5 * (low + high), 0.5 * (first + last))]:
            labels.append(block.labels(u, age))
            np.minimum(floor, block.evaluate(labels[-1], u, age).curvature, out=floor)
        pieces, bands = np.stack([item.piece for item in labels]), np.stack([item.band for item in labels])
        lowest = pieces.min(axis=0), bands.min(axis=0)
        highest = pieces.max(axis=0), bands.max(axis=0)
        mixed = np.flatnonzero((lowest[0] != highest[0]) | (lowest[1] != highest[1]))
        if mixed.size == 0:
            return floor
        part = block.some(mixed)
        none = np.full(mixed.size, -1)
        for piece in range(int(lowest[0].min()), int(highest[0].max()) + 1):
            for band in range(int(lowest[1].min()), int(highest[1].max()) + 1):
                own = RowLabels(
                    _between(piece, lowest[0][mixed], highest[0][mixed]),
                    none,
                    _between(band, lowest[1][mixed], highest[1][mixed]),
                )
                for u, age in corners:
                    floor[mixed] = np.minimum(floor[mixed], part.evaluate(own, u[mixed], age).curvature)
        return floor


def _between(label: int, lowest: IntArray, highest: IntArray) -> IntArray:
    return np.asarray(np.clip(np.full(lowest.shape, label), lowest, highest), np.int64)

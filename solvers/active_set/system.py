"""`System`: a bound problem as row blocks, coordinate functions and a constant quadratic; evaluated at labelled points.

In: a `BoundProblem`. Out: at a `Point` (age, x, labels, multipliers) the gradient, the Hessian, the tangent's right-hand side,
the gaps to the next events; labels from x; losses and objective.

    G(x) = sum_i F(phi(a_i'x + c_i)) + sum_b factor_b sum_k psi_b(b_k'x + d_k) + sum_j omega_j(x_j) + x'Qx/2 + q'x
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE, PINNED, Coordinates
from spdsl.solvers.active_set.linear import BorderedFactor, gram, independent_rows
from spdsl.solvers.active_set.rows import RowBlock, RowLabels, RowValues
from spdsl.solvers.active_set.walls import columns_to_free
from spdsl.solvers.active_set.weighting import IntArray, Weighting

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

__all__ = ["Evaluation", "Labels", "Point", "System"]


@dataclass(frozen=True)
class Labels:
    """What every row and coordinate does at a point."""

    rows: tuple[RowLabels, ...]
    interval: IntArray  # (p,)
    fixed: IntArray  # (p,): the kink at which a coordinate is fixed, FREE or PINNED

    def copy(self) -> Labels:
        """Arrays of its own."""
        return Labels(tuple(item.copy() for item in self.rows), self.interval.copy(), self.fixed.copy())

    @property
    def free(self) -> IntArray:
        """Free coordinates, ascending."""
        return np.flatnonzero(self.fixed == FREE)


@dataclass(frozen=True)
class Point:
    """A labelled point: age, x (p,), and for every block the multipliers (m,), 0 in smooth rows."""

    age: float
    x: Array
    labels: Labels
    multipliers: tuple[Array, ...]


@dataclass(frozen=True)
class Evaluation:
    """A system at a point. `gradient` (p,) holds everything but the coordinate functions of fixed coordinates."""

    point: Point
    rows: tuple[RowValues, ...]
    gradient: Array
    bend: Array  # curvature of the coordinate functions (p,)
    free: IntArray

    @property
    def weights(self) -> Array:
        """v (n,)."""
        return self.rows[0].weight

    @property
    def losses(self) -> Array:
        """l (n,)."""
        return self.rows[0].loss


class System:
    """The blocks of one problem; `blocks[0]` is the loss.

    Parameters
    ----------
    blocks : row blocks, the loss first
    coordinates : merged coordinate functions
    Q : array (p, p) or None
        Constant Hessian of the quadratic regularizers.
    q : array (p,)
    pinned : int array
        Coordinates held at their value for good: columns that depend on others and that nothing regularizes.
    """

    def __init__(
        self,
        blocks: list[RowBlock],
        coordinates: Coordinates,
        Q: Array | None,
        q: Array,
        pinned: IntArray,
        constant: float = 0.0,
    ) -> None:
        self.blocks = blocks
        self.coordinates = coordinates
        self.Q = Q
        self.q = q
        self.pinned = pinned
        self.constant = constant
        self.p = coordinates.p
        self._columns: tuple[bytes, list[Any]] = (b"none yet", [])

    def with_weighting(self, weighting: Weighting) -> System:
        """The same system with the samples weighted otherwise."""
        loss = self.blocks[0]
        other = object.__new__(RowBlock)
        other.__dict__.update(loss.__dict__)
        other.weighting = weighting
        other.loops = None
        return System([other, *self.blocks[1:]], self.coordinates, self.Q, self.q, self.pinned, self.constant)

    @property
    def weighting(self) -> Weighting:
        """How the samples are weighed."""
        weighting = self.blocks[0].weighting
        assert weighting is not None
        return weighting

    # -- labels ------------------------------------------------------------------------------------------------------

    def labels(self, x: Array, age: float, tolerance: float = 1e-12) -> Labels:
        """Labels by x: coordinates exactly at a kink are fixed; of the rows at one, a largest independent set is held.

        Rows within `tolerance` of a kink, relative to the data's scale, count as at it; the nearest are held first.
        """
        fixed = self.coordinates.at_kink(x)
        fixed[self.pinned] = PINNED
        interval = self.coordinates.interval(x)
        self.free_for_equations(fixed, interval)
        free = np.flatnonzero(fixed == FREE)
        rows: list[RowLabels] = []
        touching: list[tuple[float, int, int, int]] = []
        for number, block in enumerate(self.blocks):
            u = block.predict(x)
            rows.append(block.labels(u, age))
            if block.any_kink:
                for border in np.flatnonzero(block.kinked):
                    distance = np.abs(u - block.borders[border])
                    near = np.flatnonzero((distance <= tolerance * block.scale) | block.is_equation)
                    touching.extend((float(distance[row]), number, int(border), int(row)) for row in near)
        if touching:
            if tolerance > 1e-12:
                touching.sort()
            stack = np.vstack([dense(self.blocks[b].A[[row]][:, free]) for _, b, _, row in touching])
            for index in independent_rows(stack, np.array([self.blocks[b].is_equation for _, b, _, _ in touching])):
                _, number, border, row = touching[index]
                rows[number].kink[row] = border
                rows[number].piece[row] = border
        return Labels(tuple(rows), interval, fixed)

    def free_for_equations(self, fixed: IntArray, interval: IntArray) -> bool:
        """Set coordinates free until the equations' rows are independent over the free ones; writes into both. Any set free?"""
        equations = [dense(block.A) for block in self.blocks if block.is_equation]
        if not equations:
            return False
        chosen = columns_to_free(np.vstack(equations), np.flatnonzero(fixed == FREE), np.flatnonzero(fixed >= 0))
        for j in chosen:
            beyond = np.isposinf(self.coordinates.high[j, fixed[j]])  # an upper bound: inside is on its left
            interval[j] = fixed[j] + (0 if beyond else 1)
            fixed[j] = FREE
        return bool(chosen.size)

    def relabel(self, labels: Labels, x: Array, age: float) -> Labels:
        """Pieces, bands and intervals anew by x; what is held or fixed stays so."""
        rows = tuple(block.relabel(item, block.predict(x), age) for block, item in zip(self.blocks, labels.rows))
        interval = self.coordinates.relabel(x, labels.interval)
        return Labels(rows, np.where(labels.fixed == FREE, interval, labels.interval), labels.fixed)

    def snap(self, x: Array, labels: Labels) -> Array:
        """x with fixed coordinates exactly at their kinks."""
        held = np.flatnonzero(labels.fixed >= 0)
        if held.size == 0:
            return x
        x = x.copy()
        x[held] = self.coordinates.position[held, labels.fixed[held]]
        return x

    def without_dust(self, x: Array) -> Array:
        """x (..., p) with entries that are rounding set to 0, where other terms than the loss and bounds hold them there."""
        if len(self.blocks) == 1:
            return x
        return np.where(np.abs(x) <= 1e-14 * self.coordinates.scale, 0.0, x)

    def point(self, age: float, x: Array, labels: Labels) -> Point:
        """A point without multipliers."""
        return Point(age, self.snap(x, labels), labels, tuple(np.zeros(block.m) for block in self.blocks))

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, point: Point) -> Evaluation:
        """Slopes, curvatures and the gradient with the point's multipliers."""
        x = point.x
        gradient = self.q.copy()
        if self.Q is not None:
            gradient += self.Q @ x
        rows = []
        for block, labels, s in zip(self.blocks, point.labels.rows, point.multipliers):
            values = block.evaluate(labels, block.predict(x), point.age)
            pull = values.gradient
            if values.held.size:
                pull = pull.copy()
                pull[values.held] = s[values.held]
            gradient += block.A.T @ pull
            rows.append(values)
        fixed = point.labels.fixed
        free = fixed == FREE
        gradient += np.where(free, self.coordinates.slope(x, point.labels.interval), 0.0)
        bend = self.coordinates.curvature(x, point.labels.interval)
        return Evaluation(point, tuple(rows), gradient, bend, np.flatnonzero(free))

    def magnitude(self, evaluation: Evaluation) -> float:
        """The size of the gradient's terms: max over coordinates of the sum of their absolute values.

        This is what KKT residuals are divided by; at least a thousandth of `unit`: where all terms
        vanish (a perfect fit), what is left of them is the rounding of the predictor.
        """
        kept: float | None = evaluation.__dict__.get("_magnitude")
        if kept is not None:
            return kept
        size = np.zeros(self.p)
        for block, values, s in zip(self.blocks, evaluation.rows, evaluation.point.multipliers):
            pull = np.abs(values.gradient)
            if values.held.size:
                pull[values.held] = np.abs(s[values.held])
            size += block.size.T @ pull
        labels = evaluation.point.labels
        found = self.magnitude_of(evaluation.point.x, size, labels.interval, labels.fixed)
        evaluation.__dict__["_magnitude"] = found
        return found

    def magnitude_of(self, x: Array, size: Array, interval: IntArray, fixed: IntArray) -> float:
        """`magnitude` from the sums of the absolute values of all rows' terms (p,)."""
        total = size + np.abs(self.q)
        if self.Q is not None:
            total = total + np.abs(self.Q) @ np.abs(x)
        slope = np.abs(self.coordinates.slope(x, interval))
        low, high = self.coordinates.bounds(fixed)
        edges = np.where(np.isfinite(low), np.abs(low), 0.0), np.where(np.isfinite(high), np.abs(high), 0.0)
        total = total + np.where(fixed == FREE, slope, np.maximum(*edges))
        return max(float(total.max(initial=0.0)), 1e-3 * self.unit)

    @cached_property
    def unit(self) -> float:
        """The size of the loss's gradient at x = 0 with all weights 1 (1 where that is 0)."""
        block = self.blocks[0]
        slope = block.call(block.kernel.slope, block.kernel.piece(block.c, *block.theta), block.c)
        total = block.size.T @ np.abs(block.factor * slope)
        return float(np.max(total, initial=0.0)) or 1.0

    @cached_property
    def faint(self) -> float:
        """A curvature that is as good as none."""
        return 1e-10 * self.unit / float(np.max(self.coordinates.scale, initial=1e-300))

    def columns(self, free: IntArray) -> list[Any]:
        """Each block's design over the free coordinates; the last choice is kept."""
        if free.size == self.p:
            return [block.A for block in self.blocks]
        key = free.tobytes()
        if self._columns[0] != key:
            self._columns = (key, [block.A[:, free] for block in self.blocks])
        return self._columns[1]

    def hessian(self, evaluation: Evaluation, absolute: bool = False) -> Array:
        """The Hessian over the free coordinates; with `absolute`, of the convex majorant with |curvature|."""
        free = evaluation.free
        curvatures = [values.curvature for values in evaluation.rows]
        return self.assemble(free, curvatures, evaluation.bend, absolute)

    def assemble(self, free: IntArray, curvatures: list[Array], bend: Array, absolute: bool = False) -> Array:
        """Q + sum of A' diag(c) A + diag(bend), over the free coordinates."""
        H = np.zeros((free.size, free.size)) if self.Q is None else self.Q[np.ix_(free, free)].copy()
        for design, c in zip(self.columns(free), curvatures):
            if np.any(c):
                H += gram(design, np.abs(c) if absolute else c)
        H[np.diag_indices_from(H)] += bend[free]
        return H

    def border(self, evaluation: Evaluation) -> Array:
        """Rows of the held terms over the free coordinates (k, f)."""
        parts = [
            dense(design[values.held])
            for design, values in zip(self.columns(evaluation.free), evaluation.rows)
            if values.held.size
        ]
        return np.vstack(parts) if parts else np.zeros((0, evaluation.free.size))

    def rows_of_equations(self, evaluation: Evaluation) -> BoolArray:
        """Which rows of `border` are equations (k,)."""
        parts = [np.full(values.held.size, block.is_equation) for block, values in zip(self.blocks, evaluation.rows)]
        return np.concatenate(parts)

    def factor(self, evaluation: Evaluation) -> BorderedFactor:
        """The bordered system at a point."""
        return BorderedFactor(self.hessian(evaluation), self.border(evaluation), 1e-3 * self.faint)

    def off_kink(self, evaluation: Evaluation) -> Array:
        """kink - u of the held rows (k,)."""
        x = evaluation.point.x
        parts = []
        for block, labels, values in zip(self.blocks, evaluation.point.labels.rows, evaluation.rows):
            if values.held.size:
                held = values.held
                u = np.asarray(block.A[held] @ x) + block.c[held]
                parts.append(block.borders[labels.kink[held], held] - u)
        return np.concatenate(parts) if parts else np.zeros(0)

    def spread(self, evaluation: Evaluation, dx_free: Array, ds_held: Array) -> tuple[Array, tuple[Array, ...]]:
        """Full vectors from those over the free coordinates and the held rows."""
        dx = np.zeros(self.p)
        dx[evaluation.free] = dx_free
        ds = []
        start = 0
        for block, values in zip(self.blocks, evaluation.rows):
            full = np.zeros(block.m)
            full[values.held] = ds_held[start : start + values.held.size]
            start += values.held.size
            ds.append(full)
        return dx, tuple(ds)

    def age_slope(self, evaluation: Evaluation) -> Array:
        """The gradient's derivative by the age at fixed x and multipliers (p,)."""
        return np.asarray(self.blocks[0].A.T @ evaluation.rows[0].by_age)

    # -- gaps --------------------------------------------------------------------------------------------------------

    def gaps(self, evaluation: Evaluation, dx: Array, ds: tuple[Array, ...], dage: float) -> tuple[Array, Array]:
        """All signed distances to the next change of labels, flat, and their rates along (dx, ds, dage).

        The order is block by block, four gaps (m,) each, then two gaps (p,) of the coordinates; see `locate_gap`.
        """
        point = evaluation.point
        change = np.zeros(self.p)
        if self.Q is not None:
            change += self.Q @ dx
        parts: list[Array] = []
        rates: list[Array] = []
        for block, labels, values, s, ds_block in zip(
            self.blocks, point.labels.rows, evaluation.rows, point.multipliers, ds
        ):
            du = np.asarray(block.A @ dx)
            gap, rate = block.gaps(labels, values, s, du, ds_block, point.age, dage)
            parts.append(gap.ravel())
            rates.append(rate.ravel())
            pull = values.curvature * du + values.by_age * dage
            if values.held.size:
                pull[values.held] = ds_block[values.held]
            change += block.A.T @ pull
        gap, rate = self.coordinates.gaps(
            point.x, point.labels.interval, point.labels.fixed, -evaluation.gradient, dx, -change
        )
        parts.append(gap.ravel())
        rates.append(rate.ravel())
        return np.concatenate(parts), np.concatenate(rates)

    def gap_of(
        self, index: int, evaluation: Evaluation, moves: list[tuple[Array, tuple[Array, ...], float]]
    ) -> tuple[float, list[float]]:
        """One gap and its rates along some directions (dx, ds, dage); cheaper than all of them."""
        point = evaluation.point
        number, side, row = self.locate_gap(index)
        if number >= 0:
            block, s = self.blocks[number], point.multipliers[number]
            gap, by_u, by_s, by_age = block.gap_of(
                point.labels.rows[number], evaluation.rows[number], side, row, float(s[row]), point.age
            )
            a = dense(block.A[[row]])[0]
            return gap, [by_u * float(a @ dx) + by_s * float(ds[number][row]) + by_age * dage for dx, ds, dage in moves]
        sign = 1.0 if side == 0 else -1.0
        coordinates, labels = self.coordinates, point.labels
        kink = int(labels.fixed[row])
        if kink < 0:
            border = float(coordinates.position[row, int(labels.interval[row]) - 1 + side])
            scale = float(coordinates.scale[row])
            return sign * (float(point.x[row]) - border) / scale, [sign * float(dx[row]) / scale for dx, _, _ in moves]
        bound = float((coordinates.low if side == 0 else coordinates.high)[row, kink])
        unit = float(coordinates.unit[row, kink])
        gap = sign * (-float(evaluation.gradient[row]) - bound) / unit
        return gap, [-sign * self._entry_change(row, evaluation, *move) / unit for move in moves]

    def _entry_change(self, j: int, evaluation: Evaluation, dx: Array, ds: tuple[Array, ...], dage: float) -> float:
        """How one entry of the gradient changes along a direction."""
        total = 0.0 if self.Q is None else float(self.Q[j] @ dx)
        for block, values, ds_block in zip(self.blocks, evaluation.rows, ds):
            pull = values.curvature * np.asarray(block.A @ dx) + values.by_age * dage
            if values.held.size:
                pull[values.held] = ds_block[values.held]
            total += float(np.asarray(block.A[:, [j]].T @ pull)[0])
        return total

    def locate_gap(self, index: int) -> tuple[int, int, int]:
        """(block, side, row) of a flat gap index; block -1 and the coordinate for coordinate functions."""
        for number, block in enumerate(self.blocks):
            if index < 4 * block.m:
                return number, index // block.m, index % block.m
            index -= 4 * block.m
        return -1, index // self.p, index % self.p

    # -- objective ---------------------------------------------------------------------------------------------------

    def losses(self, x: Array) -> Array:
        """l (n,)."""
        block = self.blocks[0]
        u = block.predict(x)
        return block.call(block.kernel.value, block.kernel.piece(u, *block.theta), u)

    def weights(self, x: Array, age: float) -> Array:
        """v (n,) by the system's weighting."""
        loss = self.losses(x)
        return self.weighting.evaluate(self.weighting.band(loss, age), loss, age)[0]


def dense(matrix: Any) -> Array:
    """A dense array of a dense or sparse one."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, float)

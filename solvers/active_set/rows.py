"""Blocks of scalar terms factor * phi(a'x + c): the loss with its sample weights, and regularizers such as |(D w)_k|.

In: a design, an offset and a PC^r kernel. Out: slopes, curvatures, bounds of multipliers at kinks, and the gaps: signed
distances of every row to the next change of its labels.

A row is either *smooth* (inside the selection function `piece`) or *held* at the kink `kink` with a multiplier between its
one-sided slopes. A row of the loss also has a `band`, the piece of v* that weighs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spdsl.problem.functions import Array, PieceKernel
from spdsl.solvers.active_set.weighting import IntArray, SelfPacedWeights, Weighting

__all__ = ["FAR", "RowBlock", "RowLabels", "RowValues"]

_NONE = (np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))
FAR = 1e30  # the gap to a border that does not exist

# The four gaps of a row, in this order.
LOWER, UPPER, BAND_LOWER, BAND_UPPER = range(4)


@dataclass(frozen=True)
class RowLabels:
    """What every row of a block does: its piece, its kink (-1: smooth) and its band."""

    piece: IntArray
    kink: IntArray
    band: IntArray

    def copy(self) -> RowLabels:
        """Arrays of its own."""
        return RowLabels(self.piece.copy(), self.kink.copy(), self.band.copy())

    @property
    def held(self) -> IntArray:
        """Rows at a kink, ascending."""
        return np.flatnonzero(self.kink >= 0)


@dataclass(frozen=True)
class RowValues:
    """A block at a point. `gradient`, `curvature` and `by_age` are 0 in held rows; the bounds are for held rows only."""

    u: Array
    loss: Array
    slope: Array  # phi'
    weight: Array  # v, ones without weights
    gradient: Array  # factor v phi'
    curvature: Array  # factor (v phi'' + v_l phi'^2)
    by_age: Array  # factor v_age phi'
    held: IntArray
    low: Array
    high: Array
    low_by_age: Array
    high_by_age: Array


class RowBlock:
    """factor * sum_i v_i phi(a_i'x + c_i).

    Parameters
    ----------
    A : array or CSR array (m, p)
    c : array (m,)
    kernel, theta : the PC^r function and its parameters
    factor : float or array (m,)
    weighting : Weighting or None
        None for a regularizer.
    """

    def __init__(
        self,
        A: Any,
        c: Array,
        kernel: PieceKernel,
        theta: tuple[Any, ...],
        factor: Any = 1.0,
        weighting: Weighting | None = None,
    ) -> None:
        self.A = A
        self.c = c
        self.kernel = kernel
        self.theta = theta
        self.m = int(c.shape[0])
        self.factor = np.broadcast_to(np.asarray(factor, float), (self.m,))
        self.weighting = weighting
        self.borders = np.zeros((kernel.n_pieces - 1, self.m))
        for index, border in enumerate(kernel.breaks(*theta)):
            self.borders[index] = border
        self.kinked = np.asarray(kernel.kinked, bool)
        self.any_kink = bool(self.kinked.any())
        self.left = np.zeros_like(self.borders)
        self.right = np.zeros_like(self.borders)
        for index in np.flatnonzero(self.kinked).tolist():
            self.left[index] = self.call(kernel.slope, np.full(self.m, index), self.borders[index])
            self.right[index] = self.call(kernel.slope, np.full(self.m, index + 1), self.borders[index])
        # Infinite slopes: a wall on one side (an inequality), or on both (an equation, whose rows are always held).
        self.is_wall = bool(np.isinf(self.left).any() or np.isinf(self.right).any())
        self.is_equation = bool(self.is_wall and np.isinf(self.left).all() and np.isinf(self.right).all())
        self.loops: Any = None  # compiled loops over the rows, see `compile_loops`
        self.theta_rows = self.own = np.zeros((1, 0))
        sizes = [np.abs(c).max(initial=0.0)]
        finite = self.borders[np.isfinite(self.borders)]
        if finite.size:
            sizes.append(float(np.abs(finite).max()))
        self.scale = max(sizes) or 1.0

    def __getstate__(self) -> dict[str, Any]:
        """Compiled loops do not travel: they are loaded again."""
        return {**self.__dict__, "loops": self.loops is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, loops=None)
        if state["loops"]:
            self.compile_loops()

    def compile_loops(self) -> None:
        """Use compiled loops, where the kernels have them: worth their start for thousands of rows."""
        make = getattr(self.kernel, "fused", None)
        if make is None or not isinstance(self.weighting, SelfPacedWeights):
            return
        self.loops = make(self.weighting.kernel)
        if any(np.ndim(t) for t in self.theta):
            self.theta_rows = np.stack([np.broadcast_to(np.asarray(t, float), (self.m,)) for t in self.theta], axis=1)
        else:
            self.theta_rows = np.array([self.theta], float).reshape(1, len(self.theta))
        self.theta_rows = np.ascontiguousarray(self.theta_rows)
        self.own = np.asarray(self.weighting.theta, float)
        self.factor = np.ascontiguousarray(self.factor)

    def call(self, function: Any, piece: Any, z: Array) -> Array:
        """A function of the kernel at all rows."""
        values = np.asarray(function(piece, z, *self.theta), float)
        return values if values.shape == z.shape else np.broadcast_to(values, z.shape)

    @cached_property
    def size(self) -> Any:
        """|A|."""
        return abs(self.A)

    @cached_property
    def kernel_is_affine(self) -> bool:
        """No piece bends (|u|, hinges): the curvature is 0 whatever u is."""
        z = np.linspace(-1.0, 1.0, 5)[:, None] * self.scale
        return all(
            not np.any(self.call(self.kernel.curvature, np.full(self.m, piece), np.full(self.m, float(v))))
            for piece in range(self.kernel.n_pieces)
            for v in z[:, 0]
        )

    def some(self, rows: IntArray) -> RowBlock:
        """The block of some of its rows alone, without kinks (for curvatures only)."""
        part = object.__new__(RowBlock)
        part.__dict__.update(self.__dict__)
        part.m = int(rows.size)
        part.factor = self.factor[rows]
        part.theta = tuple(t[rows] if np.ndim(t) else t for t in self.theta)
        part.borders = self.borders[:, rows]
        part.loops = None
        return part

    def predict(self, x: Array) -> Array:
        """u = A x + c."""
        return np.asarray(self.A @ x) + self.c

    def labels(self, u: Array, age: float) -> RowLabels:
        """Labels of rows that are all smooth; those of equations are always held."""
        if self.loops is not None:
            both = np.empty((2, self.m), np.int64)
            self.loops.label(u, age, self.theta_rows, self.own, both[0], both[1])
            return RowLabels(both[0], np.full(self.m, -1), both[1])
        piece = np.asarray(self.kernel.piece(u, *self.theta), np.int64)
        if self.is_equation:
            return RowLabels(np.zeros(self.m, np.int64), np.zeros(self.m, np.int64), np.zeros(self.m, np.int64))
        if self.weighting is None or self.weighting.n_bands == 1:
            return RowLabels(piece, np.full(self.m, -1), np.zeros(self.m, np.int64))
        loss = self.call(self.kernel.value, piece, u)
        return RowLabels(piece, np.full(self.m, -1), self.weighting.band(loss, age))

    def relabel(self, labels: RowLabels, u: Array, age: float) -> RowLabels:
        """Labels anew by u, as `labels_beyond`, but a row on a border of its piece, to rounding, keeps its piece.

        It may just have been let go on that side.
        """
        fresh = self.labels_beyond(labels, u, age)
        if self.any_kink and not self.is_wall:
            last = self.borders.shape[0] - 1
            columns = np.arange(self.m)
            lower = np.where(labels.piece > 0, self.borders[np.maximum(labels.piece - 1, 0), columns], -np.inf)
            upper = np.where(labels.piece <= last, self.borders[np.minimum(labels.piece, last), columns], np.inf)
            slack = 1e-13 * self.scale
            stays = (labels.kink < 0) & (u >= lower - slack) & (u <= upper + slack)
            fresh.piece[stays] = labels.piece[stays]
        return fresh

    def labels_beyond(self, labels: RowLabels, u: Array, age: float) -> RowLabels:
        """Pieces and bands anew by u; held rows stay held (their band follows the loss at the kink)."""
        fresh = self.labels(u, age)
        held = labels.held
        if held.size == 0:
            return fresh
        fresh.kink[held] = labels.kink[held]
        fresh.piece[held] = labels.kink[held]
        if self.weighting is not None and self.weighting.n_bands > 1:
            at = self.borders[labels.kink[held], held]
            fresh.band[held] = self.weighting.band(self.value_at(held, labels.kink[held], at), age)
        return fresh

    def value_at(self, rows: IntArray, piece: IntArray, z: Array) -> Array:
        """phi of some rows."""
        theta = tuple(t[rows] if np.ndim(t) else t for t in self.theta)
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(self.kernel.value(piece, z, *theta), float), z.shape)

    def evaluate(self, labels: RowLabels, u: Array, age: float) -> RowValues:
        """Everything about the block at u."""
        held = labels.held if self.any_kink else np.zeros(0, np.int64)
        if held.size:
            u = u.copy()
            u[held] = self.borders[labels.kink[held], held]
        if self.loops is not None:
            out = np.empty((6, self.m))
            self.loops.evaluate(labels.piece, labels.band, u, age, self.theta_rows, self.own, self.factor, out)
            loss, slope, weight, gradient, curvature, by_age = out
            weight_by_age = np.zeros(0)
            if held.size:
                weight_by_age = self._rates(labels, held, loss, slope, by_age, age)
            return self._with_held(
                labels,
                held,
                RowValues(u, loss, slope, weight, gradient, curvature, by_age, held, *_NONE),
                weight_by_age,
            )
        with np.errstate(all="ignore"):
            loss = self.call(self.kernel.value, labels.piece, u)
            slope = self.call(self.kernel.slope, labels.piece, u)
            bend = self.call(self.kernel.curvature, labels.piece, u)
            if self.weighting is None:
                weight = np.ones(self.m)
                gradient = self.factor * slope
                curvature = self.factor * bend
                by_age = np.zeros(self.m)
                weight_by_age = np.zeros(held.size)
            else:
                weight, by_loss, weight_by_age = self.weighting.evaluate(labels.band, loss, age)
                pull = self.factor * slope
                gradient = weight * pull
                curvature = self.factor * (weight * bend) + by_loss * slope * pull
                by_age = weight_by_age * pull
                weight_by_age = weight_by_age[held]
                if not np.isfinite(curvature).all():  # v' is unbounded at a border (polynomial, t > 2)
                    curvature = np.nan_to_num(curvature, nan=0.0, posinf=1e150, neginf=-1e150)
        values = RowValues(u, loss, slope, weight, gradient, curvature, by_age, held, *_NONE)
        return self._with_held(labels, held, values, weight_by_age)

    def _rates(self, labels: RowLabels, held: IntArray, loss: Array, slope: Array, by_age: Array, age: float) -> Array:
        """dv/dage of held rows: read off what the loops gave, where the slope is not 0."""
        pull = self.factor[held] * slope[held]
        if pull.all():
            return np.asarray(by_age[held] / pull)
        assert self.weighting is not None
        return self.weighting.evaluate(labels.band[held], loss[held], age)[2]

    def _with_held(self, labels: RowLabels, held: IntArray, values: RowValues, weight_by_age: Array) -> RowValues:
        """The same with nothing of the held rows but the bounds of their multipliers."""
        if held.size == 0:
            return values
        gradient, curvature, by_age = values.gradient.copy(), values.curvature.copy(), values.by_age.copy()
        gradient[held] = curvature[held] = by_age[held] = 0.0
        left = self.factor[held] * self.left[labels.kink[held], held]
        right = self.factor[held] * self.right[labels.kink[held], held]
        v, rate = values.weight[held], weight_by_age
        with np.errstate(invalid="ignore"):
            return RowValues(
                values.u, values.loss, values.slope, values.weight, gradient, curvature, by_age, held,
                _product(left, v, left), _product(right, v, right), _product(left, rate, 0.0), _product(right, rate, 0.0),
            )  # fmt: skip

    def gaps(
        self, labels: RowLabels, values: RowValues, s: Array, du: Array, ds: Array, age: float, dage: float
    ) -> tuple[Array, Array]:
        """Signed distances (4, m) to the next change of each row's labels, and their rates of change.

        In units of the block's scale (u), of the jump of the slope (multipliers) and of the age (losses). Negative means
        that the labels are wrong. `du`, `ds` and `dage` say how u, the multipliers and the age change.
        """
        gap = np.full((4, self.m), FAR)
        rate = np.zeros((4, self.m))
        n_borders = self.borders.shape[0]
        if n_borders:
            columns = np.arange(self.m)
            below = labels.piece > 0
            above = labels.piece < n_borders
            lower = self.borders[np.maximum(labels.piece - 1, 0), columns]
            upper = self.borders[np.minimum(labels.piece, n_borders - 1), columns]
            with np.errstate(invalid="ignore"):
                gap[LOWER] = np.where(below & np.isfinite(lower), (values.u - lower) / self.scale, FAR)
                gap[UPPER] = np.where(above & np.isfinite(upper), (upper - values.u) / self.scale, FAR)
            rate[LOWER] = np.where(gap[LOWER] < FAR, du / self.scale, 0.0)
            rate[UPPER] = np.where(gap[UPPER] < FAR, -du / self.scale, 0.0)
            self.held_gaps(labels, values, s, ds, dage, gap, rate)
        if self.weighting is not None and self.weighting.n_bands > 1:
            borders, moves = self.weighting.borders(age)
            change = values.slope * du
            if values.held.size:
                change = change.copy()
                change[values.held] = 0.0
            band = labels.band
            last = borders.shape[0]
            low, high = np.maximum(band - 1, 0), np.minimum(band, last - 1)
            has_low = (band > 0) & np.isfinite(borders[low])
            has_high = (band < last) & np.isfinite(borders[high])
            with np.errstate(invalid="ignore"):
                gap[BAND_LOWER] = np.where(has_low, (values.loss - borders[low]) / age, FAR)
                gap[BAND_UPPER] = np.where(has_high, (borders[high] - values.loss) / age, FAR)
            rate[BAND_LOWER] = np.where(has_low, (change - moves[low] * dage) / age, 0.0)
            rate[BAND_UPPER] = np.where(has_high, (moves[high] * dage - change) / age, 0.0)
        return gap, rate

    def gap_of(
        self, labels: RowLabels, values: RowValues, side: int, row: int, s: float, age: float
    ) -> tuple[float, float, float, float]:
        """One gap, and its derivatives by u, by the multiplier and by the age: the same numbers as in `gaps`."""
        sign = 1.0 if side in (LOWER, BAND_LOWER) else -1.0
        if side in (BAND_LOWER, BAND_UPPER):
            assert self.weighting is not None
            borders, moves = self.weighting.borders(age)
            border = int(labels.band[row]) - (1 if side == BAND_LOWER else 0)
            by_u = 0.0 if labels.kink[row] >= 0 else float(values.slope[row])
            gap = sign * (float(values.loss[row]) - float(borders[border])) / age
            return gap, sign * by_u / age, 0.0, -sign * float(moves[border]) / age
        if labels.kink[row] >= 0:
            k = int(np.searchsorted(values.held, row))
            bound, rate = (values.low, values.low_by_age) if side == LOWER else (values.high, values.high_by_age)
            unit = float(self.unit(labels, values.held[k : k + 1])[0])
            return sign * (s - float(bound[k])) / unit, 0.0, sign / unit, -sign * float(rate[k]) / unit
        border = int(labels.piece[row]) - (1 if side == LOWER else 0)
        gap = sign * (float(values.u[row]) - float(self.borders[border, row])) / self.scale
        return gap, sign / self.scale, 0.0, 0.0

    def held_gaps(
        self, labels: RowLabels, values: RowValues, s: Array, ds: Array, dage: float, gap: Array, rate: Array
    ) -> None:
        """Write the gaps of held rows' multipliers, and their rates, into (4, m)."""
        held = values.held
        if held.size == 0:
            return
        unit = self.unit(labels, held)
        gap[LOWER, held] = np.where(np.isfinite(values.low), (s[held] - values.low) / unit, FAR)
        gap[UPPER, held] = np.where(np.isfinite(values.high), (values.high - s[held]) / unit, FAR)
        rate[LOWER, held] = np.where(np.isfinite(values.low), (ds[held] - values.low_by_age * dage) / unit, 0.0)
        rate[UPPER, held] = np.where(np.isfinite(values.high), (values.high_by_age * dage - ds[held]) / unit, 0.0)

    def unit(self, labels: RowLabels, held: IntArray) -> Array:
        """The unit of a held row's multiplier: the jump of factor * phi' at its kink."""
        kink = labels.kink[held]
        jump = self.factor[held] * (self.right[kink, held] - self.left[kink, held])
        return np.where(np.isfinite(jump), np.maximum(jump, 1e-300), 1.0)

    def flip(self, labels: RowLabels, side: int, row: int, weight: float) -> None:
        """Carry one row over the border that its gap `side` measures; writes into `labels`."""
        if side == BAND_LOWER:
            labels.band[row] -= 1
        elif side == BAND_UPPER:
            labels.band[row] += 1
        elif labels.kink[row] >= 0:  # a multiplier reached its bound: leave the kink on that side
            labels.piece[row] = labels.kink[row] + (1 if side == UPPER else 0)
            labels.kink[row] = -1
        else:
            border = labels.piece[row] if side == UPPER else labels.piece[row] - 1
            if self.kinked[border] and weight > 0.0:
                labels.kink[row] = border
                labels.piece[row] = border
            else:
                labels.piece[row] += 1 if side == UPPER else -1

    def entry_multiplier(self, labels: RowLabels, side: int, row: int, weight: float) -> float:
        """The multiplier with which a smooth row arrives at the kink that it is now held at."""
        kink = labels.kink[row]
        slope = self.left[kink, row] if side == UPPER else self.right[kink, row]
        return float(self.factor[row] * weight * slope) if np.isfinite(slope) else 0.0


def _product(bound: Array, weight: Array, infinite: Any) -> Array:
    """bound * weight; where the bound is infinite (a constraint's) `infinite` stands instead, whatever the weight."""
    return np.where(np.isfinite(bound), bound * weight, infinite)

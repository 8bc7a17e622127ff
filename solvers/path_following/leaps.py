"""Leaps: certified strides over many events of samples at once, for losses without kinks and weights without jumps.

In: a node and a stride. Out: the point there, on the same branch, or how much shorter the next try should be.

Where phi is smooth and v* continuous, G is differentiable whatever the samples do, so Newton may renew their labels at every
step (semismooth Newton) and needs to stop at no event of theirs. What must not be passed over is the end of the branch: so
a leap holds only when the Hessian is positive definite with every sample's curvature at its least over the leap (the floor),
a sample that changes its piece or band on the way counted with the worst of them: then G is strictly convex on a tube about
the leap, and holds one minimum at each age. Coordinates (entries at 0, bounds) keep their places within a leap; the first to
leave its place ends it. Events of samples inside a leap are found, one by one, when someone asks for the critical points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.linear import BorderedFactor, gram
from spdsl.solvers.active_set.rows import RowLabels, RowValues
from spdsl.solvers.active_set.system import Evaluation, Point, System
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.corrector import Converged, Tangent, tangent
from spdsl.solvers.path_following.hermite import earliest_crossing

__all__ = ["Leap", "Leaper", "settled"]

_EXACT, _GOOD = 1e-13, 1e-11  # scaled residuals: aimed at, and good enough where rounding stops Newton
_NARROW = 24  # columns up to which a compiled pass over all rows beats BLAS
_WIDER = 0.1  # hulls are widened by this share


@dataclass(frozen=True)
class Leap:
    """Where a leap ends. `event` is the flat index of the coordinate's gap that ends it, -1: none."""

    converged: Converged
    arrived: Tangent
    event: int = -1


def settled(
    system: System, point: Point, scale: float, max_iterations: int = 6, event: int = -1
) -> tuple[Converged, Tangent] | None:
    """Newton at the point's age with the samples' labels renewed at every step; None when it does not converge fast.

    With `event`, the index of a gap, the age moves too, to where that gap is 0.
    """
    block = system.blocks[0]
    last = np.inf
    before = 0
    if event < 0 and block.loops is not None:
        point, before = _quickly(system, point, scale)
    for iteration in range(before, max_iterations + 1):
        rows = block.labels(block.predict(point.x), point.age)
        point = replace(point, labels=replace(point.labels, rows=(rows,)))
        evaluation = system.evaluate(point)
        error = float(np.abs(evaluation.gradient[evaluation.free]).max(initial=0.0)) / scale
        if not np.isfinite(error) or (iteration > 2 and error > max(0.5 * last, _GOOD)):
            return None
        done = iteration > 0 and (error <= _EXACT or (error <= _GOOD and error > 0.1 * last))
        if not done and iteration == max_iterations:
            return None
        factor = BorderedFactor(system.hessian(evaluation), np.zeros((0, evaluation.free.size)), 1e-3 * system.faint)
        if done and event < 0:
            return Converged(evaluation, factor, iteration), tangent(system, evaluation, factor)
        step, _ = factor.solve(-evaluation.gradient[evaluation.free], np.zeros(0))
        dx, ds = system.spread(evaluation, step, np.zeros(0))
        dage = 0.0
        if event >= 0:
            direction = tangent(system, evaluation, factor)
            gap, (by_step, by_age) = system.gap_of(
                event, evaluation, [(dx, ds, 0.0), (direction.dx, direction.ds, 1.0)]
            )
            if by_age == 0.0:
                return None
            dage = -(gap + by_step) / by_age
            if done and abs(gap) <= _GOOD and abs(dage) <= 1e-13 * point.age:
                return Converged(evaluation, factor, iteration), direction
            dx = dx + dage * direction.dx
        last = error
        point = replace(point, age=point.age + dage, x=point.x + dx)
        if point.age <= 0.0:
            return None
    return None


def _quickly(system: System, point: Point, scale: float) -> tuple[Point, int]:
    """Newton steps by single compiled passes over a narrow dense design, until the residual is small; how many."""
    free = point.labels.free
    A = system.columns(free)[0]
    if not isinstance(A, np.ndarray) or free.size > _NARROW or free.size == 0:
        return point, 0
    block = system.blocks[0]
    fixed = np.where(point.labels.fixed == FREE, 0.0, point.x)
    c = block.c + block.A @ fixed if np.any(fixed) else block.c
    rest = system.q[free] + system.coordinates.slope(point.x, point.labels.interval)[free]
    Q = None if system.Q is None else system.Q[np.ix_(free, free)]
    if system.Q is not None and np.any(fixed):
        rest = rest + (system.Q @ fixed)[free]
    if system.coordinates.table is None:
        return point, 0
    gradient, by_age, H = np.empty(free.size), np.empty(free.size), np.empty((free.size, free.size))
    x = point.x[free]
    last, steps = np.inf, 0
    while True:
        block.loops.newton(A, c, x, point.age, block.theta_rows, block.own, block.factor, gradient, by_age, H)
        total = gradient + rest
        if Q is not None:
            total = total + Q @ x
            H += Q
        error = float(np.abs(total).max()) / scale
        if error <= _EXACT or not error < 0.7 * last or steps == 4:
            break
        last = error
        factor = BorderedFactor(H, np.zeros((0, free.size)), 1e-3 * system.faint)
        x = x + factor.solve(-total, np.zeros(0))[0]
        steps += 1
    full = point.x.copy()
    full[free] = x
    return replace(point, x=full), steps


class Leaper:
    """Makes leaps in one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.newton_steps = 0
        self.scale = 1.0

    @staticmethod
    def serves(system: System) -> bool:
        """Has the loss no kinks, do the weights not jump, and is nothing else made of rows?"""
        return len(system.blocks) == 1 and not system.blocks[0].any_kink and system.weighting.continuous

    def leap(self, start: Converged, out: Tangent, age: float) -> Leap | float:
        """From a node to an age, or to the first coordinate's event on the way; or the share of the way to try next."""
        system = self.system
        scale = self.scale = system.magnitude(start.evaluation)
        found = settled(system, _ahead(start.point, out, age - start.point.age), scale)
        if found is None:
            return 0.3
        self.newton_steps += found[0].iterations
        if found[0].factor.verdict != "definite":
            return 0.3
        event, share = self._first_event(start, out, *found)
        if event >= 0:
            at = share * (age - start.point.age)
            landed = settled(system, _ahead(start.point, out, at), scale, 8, event)
            if (
                landed is None
                or landed[0].factor.verdict != "definite"
                or not start.point.age < landed[0].point.age <= age * (1.0 + 1e-12)
            ):
                return max(0.5 * share, 0.1)
            self.newton_steps += landed[0].iterations
            found = landed
            other, _ = self._first_event(start, out, *found, arriving=event)
            if other >= 0 or found[0].factor.verdict != "definite":
                return max(0.5 * share, 0.1)
        if not self._one_minimum(start.evaluation, found[0].evaluation, out, found[1]):
            return 0.5 * share
        return Leap(*found, event)

    def _first_event(
        self, start: Converged, out: Tangent, end: Converged, arrived: Tangent, arriving: int = -1, halvings: int = 2
    ) -> tuple[int, float]:
        """The flat index of the first coordinate's gap to close, and the share of the way; -1 when none does.

        The gaps are curves with corners at the samples' events, so where one comes near 0 on the way the halves are looked at.
        """
        first, last = start.point.age, end.point.age
        offset = 4 * self.system.blocks[0].m
        gap0, rate0 = self._coordinate_gaps(start.evaluation, out)
        gap1, rate1 = self._coordinate_gaps(end.evaluation, arrived)
        own = arriving - offset if arriving >= 0 else -1
        crossing = earliest_crossing(gap0, rate0, gap1, rate1, last - first, _GOOD, own)
        if crossing.index >= 0:
            return crossing.index + offset, crossing.at
        if halvings and _comes_near(gap0, rate0, gap1, rate1, last - first, own):
            middle = settled(self.system, _half_way(start.point, out, end.point, arrived), self.scale)
            if middle is None:
                return offset, 0.5
            self.newton_steps += middle[0].iterations
            index, at = self._first_event(start, out, *middle, halvings=halvings - 1)
            if index >= 0:
                return index, 0.5 * at
            index, at = self._first_event(*middle, end, arrived, arriving, halvings - 1)
            if index >= 0:
                return index, 0.5 + 0.5 * at
        return -1, 1.0

    def _coordinate_gaps(self, evaluation: Evaluation, way: Tangent) -> tuple[Array, Array]:
        """The coordinates' gaps (2p,) and their rates along the path, as in `System.gaps`."""
        kept: tuple[Array, Array] | None = evaluation.__dict__.get("_coordinate_gaps")
        if kept is not None:
            return kept
        system, point = self.system, evaluation.point
        block, values = system.blocks[0], evaluation.rows[0]
        change = block.A.T @ (values.curvature * np.asarray(block.A @ way.dx) + values.by_age)
        if system.Q is not None:
            change = change + system.Q @ way.dx
        gap, rate = system.coordinates.gaps(
            point.x, point.labels.interval, point.labels.fixed, -evaluation.gradient, way.dx, -change
        )
        found = gap.ravel(), rate.ravel()
        evaluation.__dict__["_coordinate_gaps"] = found
        return found

    # -- the certificate ---------------------------------------------------------------------------------------------

    def _one_minimum(self, start: Evaluation, end: Evaluation, out: Tangent, arrived: Tangent) -> bool:
        """Is the Hessian positive definite with all curvatures at their least over the leap?"""
        system = self.system
        block = system.blocks[0]
        h = end.point.age - start.point.age
        u0, u1 = start.rows[0].u, end.rows[0].u
        b1 = u0 + (h / 3.0) * np.asarray(block.A @ out.dx)
        b2 = u1 - (h / 3.0) * np.asarray(block.A @ arrived.dx)
        low = np.minimum(np.minimum(u0, u1), np.minimum(b1, b2))
        high = np.maximum(np.maximum(u0, u1), np.maximum(b1, b2))
        widen = _WIDER * (high - low)
        floor = self._floor(start.rows[0], end.rows[0], low - widen, high + widen, start.point.age, end.point.age)
        free = start.free
        H = np.zeros((free.size, free.size)) if system.Q is None else system.Q[np.ix_(free, free)].copy()
        H += gram(system.columns(free)[0], floor)
        H[np.diag_indices_from(H)] += np.minimum(start.bend, end.bend)[free]
        return BorderedFactor(H, np.zeros((0, free.size)), 1e-3 * system.faint).verdict == "definite"

    def _floor(self, start: RowValues, end: RowValues, low: Array, high: Array, first: float, last: float) -> Array:
        """Each sample's least curvature over its hull and the leap's ages (m,)."""
        block = self.system.blocks[0]
        floor = np.minimum(start.curvature, end.curvature)
        if block.loops is not None:
            block.loops.floors(low, high, first, last, block.theta_rows, block.own, block.factor, floor)
            return floor
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


def _comes_near(gap0: Array, rate0: Array, gap1: Array, rate1: Array, h: float, arriving: int) -> bool:
    """Is a gap's hull, widened by half, at 0? Gaps that are 0 at an end and open from there on are far enough."""
    b1, b2 = gap0 + h * rate0 / 3.0, gap1 - h * rate1 / 3.0
    low, high = (
        np.minimum(np.minimum(gap0, gap1), np.minimum(b1, b2)),
        np.maximum(np.maximum(gap0, gap1), np.maximum(b1, b2)),
    )
    near = (low - 0.5 * (high - low) < 0.0) & (high > _GOOD)
    near &= ~((gap0 <= _GOOD) & (b1 > 0.0) & (b2 > 0.5 * gap1)) & ~((gap1 <= _GOOD) & (b2 > 0.0) & (b1 > 0.5 * gap0))
    if arriving >= 0:
        near[arriving] = False
    return bool(near.any())


def _half_way(first: Point, out: Tangent, last: Point, arrived: Tangent) -> Point:
    """The middle of the cubic through two points and their tangents."""
    h = last.age - first.age
    return replace(first, age=first.age + 0.5 * h, x=0.5 * (first.x + last.x) + 0.125 * h * (out.dx - arrived.dx))


def _ahead(point: Point, out: Tangent, h: float) -> Point:
    return replace(point, age=point.age + h, x=point.x + h * out.dx)

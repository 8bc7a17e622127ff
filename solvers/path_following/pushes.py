"""The w-problem while its sample weights change: each weight is pushed to its new value with the solution exact all the way.

In: a system, a labelled minimum at some weights, new weights. Out: the labelled minimum at these.

A pushed sample acts on x by a force sigma a_i alone, sigma = v_i phi'(z_i). While sigma moves, everything else follows along a
straight line (quadratic pieces), until a term changes its label: the next line begins there. The push ends where sigma is
the new weight's share of the slope at z_i: one root, since z_i falls as sigma rises. Where pieces aren't quadratic
(logistic) the weights are set outright and chord steps of the kept inverse lead to the minimum, labels corrected one at a
time. What neither reaches is minimized from where it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.minimize import minimize, violations
from spdsl.solvers.active_set.rows import FAR
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System
from spdsl.solvers.active_set.weighting import FixedWeights, IntArray
from spdsl.solvers.path_following.kept import KeptInverse, row_of
from spdsl.solvers.path_following.quadratic import OneRow, has_constant_bends, is_quadratic

__all__ = ["NoMinimumError", "WeighedProblem"]

_MANY = 60  # pushes at once, beyond which the problem is minimized instead
_EXACT, _GOOD = 1e-13, 1e-12  # scaled residuals that chord steps aim at, and settle for
_CHORDS = 25
_AGE = 1.0  # fixed weights know no age


class NoMinimumError(Exception):
    """The w-problem has no minimum that could be reached; the message says how the search ended."""


class WeighedProblem:
    """Mutable: x, labels, multipliers and weights move together.

    Attributes
    ----------
    evaluation : Evaluation
        Of the problem at its weights; KKT residual and losses are read from it.
    lower, upper : arrays (p,)
        Between what every coordinate may move as it is: borders of its interval, bounds of its multiplier.
    pushes, chords, anew : int
        Weights moved by homotopy, chord steps, and problems that had to be minimized.
    """

    def __init__(self, system: System, point: Point, weights: Array) -> None:
        self.system = system
        self.weights = weights.copy()
        self.convex = system.with_weighting(FixedWeights(self.weights))
        self.quadratic = all(is_quadratic(block) for block in system.blocks) and has_constant_bends(system)
        self.pushes = self.chords = self.anew = 0
        self.x, self.labels, self.multipliers = point.x.copy(), _bandless(point.labels), list(point.multipliers)
        self.bordered = [k for k, block in enumerate(system.blocks) if block.borders.shape[0]]
        self.evaluation = self._evaluated()
        self.gradient = self.evaluation.gradient.copy()
        self.kept = KeptInverse(self.convex, self.evaluation)
        if not (self.kept.usable and self._settled()):
            self.minimize()
        self._set_limits()

    @property
    def losses(self) -> Array:
        """l (n,) at x."""
        return self.system.losses(self.x)

    # -- from one set of weights to another ----------------------------------------------------------------------------

    def move(self, weights: Array) -> None:
        """To the minimum at other weights; `settle` takes rounding off when all moves are made.

        Raises
        ------
        NoMinimumError
            When there is none, or none can be reached.
        """
        changed = np.flatnonzero(weights != self.weights)
        if not self.kept.usable or changed.size > _MANY:
            done = False
        elif self.quadratic:
            rising = weights[changed] > self.weights[changed]
            order = np.concatenate([changed[rising], changed[~rising]])  # entries first: they keep the system regular
            done = all(self._push(int(i), float(weights[i])) for i in order)
        else:
            for i in changed.tolist():
                self._let_go_of(i)
            self.weights[:] = weights
            done = self.kept.usable and self._settled(changes=2 * self.system.p)
        if not done:
            self.weights[:] = weights
            self.minimize()

    def settle(self) -> bool:
        """Take rounding off after moves; False when the point had to be minimized, so that losses may have changed.

        Raises
        ------
        NoMinimumError
            As `move`.
        """
        if self.kept.usable and self._settled():
            return True
        self.minimize()
        return False

    def _let_go_of(self, i: int) -> None:
        """A sample that is held at a kink and changes its weight."""
        rows = self.labels.rows[0]
        if rows.kink[i] >= 0:
            rows.piece[i], rows.kink[i] = rows.kink[i] + 1, -1
            self.multipliers[0][i] = 0.0
            self.kept.release(0, i)

    def minimize(self) -> None:
        """From where x is to the minimum at the weights, by the active-set method.

        Raises
        ------
        NoMinimumError
            When there is none, or none is reached.
        """
        labels = self.convex.relabel(self.labels, self.x, _AGE)
        found = minimize(self.convex, _AGE, self.x, labels)
        if found.failure:
            raise NoMinimumError(f"the problem at its sample weights is {found.failure}")
        self.anew += 1
        point = found.point
        self.x, self.labels, self.multipliers = point.x.copy(), point.labels.copy(), list(point.multipliers)
        self.evaluation = found.evaluation
        self.gradient = self.evaluation.gradient.copy()
        self.kept.rebuild(self.evaluation)
        self._set_limits()

    # -- chord steps ---------------------------------------------------------------------------------------------------

    def _evaluated(self) -> Evaluation:
        return self.convex.evaluate(Point(_AGE, self.x, self.labels, tuple(self.multipliers)))

    def _settled(self, changes: int = 0) -> bool:
        """To rounding under the labels by chord steps; then labels that turn out wrong are changed, so many at most."""
        system, last, renewed = self.convex, np.inf, False
        for _ in range(_CHORDS + changes):
            self._relabel()
            self.evaluation = self._evaluated()
            scale, free = system.magnitude(self.evaluation), self.evaluation.free
            off = system.off_kink(self.evaluation)
            error = float(np.abs(self.evaluation.gradient[free]).max(initial=0.0)) / scale
            error = max(error, float(np.abs(off).max(initial=0.0)))
            if error <= _EXACT or (error <= _GOOD and error > 0.2 * last):
                worst, where = violations(system, self.evaluation)
                if worst <= _GOOD * scale:
                    self.gradient = self.evaluation.gradient.copy()
                    self._set_limits()
                    return not self._outside().size
                if changes <= 0 or not self._released(where):
                    return False
                changes, last = changes - 1, np.inf
                continue
            if not np.isfinite(error):
                return False
            if error > 0.3 * last:  # the inverse is too old
                if renewed:
                    return False
                self.kept.rebuild(self.evaluation)
                renewed = True
                if not self.kept.usable:
                    return False
            last = error
            targets = dict(zip(self.kept.rows, self._off_by_id(off)))
            dx, ds = self.kept.solve(-self.evaluation.gradient, targets)
            self.chords += 1
            self.x = self.x + dx
            self.multipliers = [s + d for s, d in zip(self.multipliers, ds)]
            if changes > 0:
                passed = self._outside()
                for j in passed.tolist():
                    self._stopped(j)
                changes -= passed.size
                if passed.size:
                    last = np.inf
                    if not self.kept.usable:
                        return False
            elif not self.quadratic and self._outside().size:
                return False
        return False

    def _relabel(self) -> None:
        """Pieces anew by x, where there is more than one; what is held or fixed stays so."""
        rows = list(self.labels.rows)
        for number in self.bordered:
            block = self.convex.blocks[number]
            rows[number] = block.relabel(rows[number], block.predict(self.x), _AGE)
        coordinates, labels = self.system.coordinates, self.labels
        interval = labels.interval
        if not self.quadratic:
            moved = coordinates.relabel(self.x, labels.interval)
            interval = np.where(labels.fixed == FREE, moved, labels.interval)
        self.labels = Labels(tuple(rows), interval, labels.fixed)

    def _off_by_id(self, off: Array) -> list[float]:
        """kink - u of the held rows in the kept inverse's order of rows (`off` is by block and row)."""
        order = sorted(self.kept.rows)
        by_id = dict(zip(order, off.tolist()))
        return [by_id[i] for i in self.kept.rows]

    def _outside(self) -> IntArray:
        """Free coordinates that have left their interval over a kink."""
        coordinates, labels = self.system.coordinates, self.labels
        there = coordinates.relabel(self.x, labels.interval)
        return np.flatnonzero((labels.fixed == FREE) & (there != labels.interval))

    def _stopped(self, j: int) -> None:
        """Fix a coordinate at the kink of its interval that it has passed, or give it its new interval."""
        coordinates, labels = self.system.coordinates, self.labels
        kink = labels.interval[j] - (1 if coordinates.interval(self.x)[j] < labels.interval[j] else 0)
        if coordinates.smooth_border[j, kink]:
            labels.interval[j] = coordinates.interval(self.x)[j]
            return
        labels.fixed[j] = kink
        self.x[j] = coordinates.position[j, kink]
        self.kept.fix(j)

    def _released(self, where: tuple[int, int, int]) -> bool:
        """Let one fixed coordinate or held row go; False when that leaves a singular system."""
        number, side, row = where
        if number < 0:
            self.system.coordinates.flip(self.labels.interval, self.labels.fixed, side, row)
            return self.kept.free(row)
        self.system.blocks[number].flip(self.labels.rows[number], side, row, 1.0)
        self.multipliers[number] = self.multipliers[number].copy()
        self.multipliers[number][row] = 0.0
        return self.kept.release(number, row)

    # -- one push ------------------------------------------------------------------------------------------------------

    def _push(self, i: int, target: float) -> bool:
        """One weight to its new value; False when some step of the way leaves a singular system, or goes in circles."""
        block, rows = self.system.blocks[0], self.labels.rows[0]
        self.pushes += 1
        if self.bordered:
            self.multipliers = [s.copy() for s in self.multipliers]
        a = row_of(block.A, i)
        one = OneRow(block, i, a)
        share = float(block.factor[i]) * target
        kink = int(rows.kink[i])
        if kink >= 0:
            sigma = float(self.multipliers[0][i])
            low, high = share * float(block.left[kink, i]), share * float(block.right[kink, i])
            if low <= sigma <= high:
                self.weights[i] = target
                return True
            if not self.kept.release(0, i):
                return False
            rows.kink[i], rows.piece[i] = -1, kink + (1 if sigma > high else 0)
            self.multipliers[0][i] = 0.0
        else:
            piece, z = int(rows.piece[i]), one.z(self.x)
            old = float(block.factor[i] * self.weights[i])
            sigma = old * one.slope(piece, z) if old else 0.0
            if old and not self.kept.bend(a, -old * one.curvature(piece, z)):
                return False
        self.weights[i] = 0.0
        return self._slide(one, share, sigma, target)

    def _slide(self, one: OneRow, share: float, sigma: float, target: float) -> bool:
        """Move the force sigma to share * phi'(z), from line to line."""
        block, rows, i = one.block, self.labels.rows[0], one.i
        gradient = self.gradient
        for _ in range(60 + 4 * self.system.p):
            piece, z = int(rows.piece[i]), one.z(self.x)
            short = (share * one.slope(piece, z) if share else 0.0) - sigma
            sign = 1.0 if short > 0.0 else -1.0
            dx, ds = self.kept.solve(-sign * one.a)
            speed, bend = float(one.a @ dx), share * one.curvature(piece, z) if share else 0.0
            ends = abs(short) / max(1.0 - sign * bend * speed, 1e-300)
            border = one.border(piece, speed)
            meets = np.inf if border < 0 else max((float(block.borders[border, i]) - z) / speed, 0.0)
            change = self.kept.change(dx, ds) + sign * one.a
            index, first = self._next_event(i, dx, ds, gradient, change)
            step = min(ends, meets, first)
            self.x = self.x + step * dx
            if self.kept.rows:
                self.multipliers = [s + step * d for s, d in zip(self.multipliers, ds)]
            gradient += step * change
            sigma += sign * step
            if step == ends:
                self.weights[i] = target
                return self.kept.bend(one.a, bend)
            if step == first:
                if not self._flip(index, gradient):
                    return False
                continue
            if block.kinked[border]:
                low, high = share * float(block.left[border, i]), share * float(block.right[border, i])
                if low <= sigma <= high:
                    self.weights[i] = target
                    rows.kink[i] = rows.piece[i] = border
                    self.multipliers[0][i] = sigma
                    return self.kept.hold(0, i)
            rows.piece[i] = border if speed < 0.0 else border + 1
        return False

    def _next_event(
        self, pushed: int, dx: Array, ds: tuple[Array, ...], gradient: Array, change: Array
    ) -> tuple[int, float]:
        """The first gap of any other term to close along a line, as a flat index, and how far it is."""
        index, first = self._next_coordinate(dx, -gradient, -change)
        if self.bordered:
            other, when = self._next_row(pushed, dx, ds)
            if when < first:
                return other, when
        return index, first

    def _next_row(self, pushed: int, dx: Array, ds: tuple[Array, ...]) -> tuple[int, float]:
        """The first row to reach a border or a bound of its multiplier."""
        start, found, first = 0, -1, np.inf
        for number, (block, rows) in enumerate(zip(self.convex.blocks, self.labels.rows)):
            if number in self.bordered:
                values = block.evaluate(rows, block.predict(self.x), _AGE)
                du = np.asarray(block.A @ dx)
                gap, rate = block.gaps(rows, values, self.multipliers[number], du, ds[number], _AGE, 0.0)
                if number == 0:
                    gap[:, (self.weights == 0.0) & (rows.kink < 0)] = FAR
                    gap[:, pushed] = FAR
                flat, speed = gap.ravel(), rate.ravel()
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    when = np.where((speed < 0.0) & (flat < FAR), np.maximum(flat, 0.0) / -speed, np.inf)
                index = int(np.argmin(when))
                if when[index] < first:
                    found, first = start + index, float(when[index])
            start += 4 * block.m
        return found, first

    def _next_coordinate(self, dx: Array, multiplier: Array, dm: Array) -> tuple[int, float]:
        """The first coordinate to reach a kink, or whose multiplier reaches a bound."""
        free = self.labels.fixed == FREE
        value, rate = np.where(free, self.x, multiplier), np.where(free, dx, dm)
        falls = rate < 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            when = np.maximum((np.where(falls, self.lower, self.upper) - value) / rate, 0.0)
        when[(rate == 0.0) | np.isnan(when)] = np.inf
        j = int(np.argmin(when)) if when.size else 0
        first = float(when[j]) if when.size else np.inf
        return sum(4 * block.m for block in self.system.blocks) + (0 if falls[j] else self.system.p) + j, first

    def _set_limits(self) -> None:
        """Between what every coordinate may move as it is: borders of its interval, bounds of its multiplier."""
        coordinates, fixed, interval = self.system.coordinates, self.labels.fixed, self.labels.interval
        columns, width = np.arange(self.system.p), coordinates.position.shape[1]
        self.lower, self.upper = np.full(columns.size, -np.inf), np.full(columns.size, np.inf)
        if width == 0:
            return
        below, above = (fixed == FREE) & (interval > 0), (fixed == FREE) & (interval < coordinates.count)
        self.lower[below] = coordinates.position[columns[below], interval[below] - 1]
        self.upper[above] = coordinates.position[columns[above], interval[above]]
        held = np.flatnonzero(fixed >= 0)
        self.lower[held], self.upper[held] = coordinates.low[held, fixed[held]], coordinates.high[held, fixed[held]]

    def _set_limit(self, j: int) -> None:
        coordinates, kink, interval = self.system.coordinates, self.labels.fixed[j], self.labels.interval[j]
        if kink >= 0:
            self.lower[j], self.upper[j] = coordinates.low[j, kink], coordinates.high[j, kink]
        elif kink == FREE:
            self.lower[j] = coordinates.position[j, interval - 1] if interval > 0 else -np.inf
            self.upper[j] = coordinates.position[j, interval] if interval < coordinates.count[j] else np.inf

    def _flip(self, index: int, gradient: Array) -> bool:
        """Carry one term over its border; writes into `gradient`. False when what is left is singular."""
        number, side, row = self.convex.locate_gap(index)
        if number < 0:
            regular = self._flip_coordinate(side, row, gradient)
            self._set_limit(row)
            return regular
        block, rows = self.convex.blocks[number], self.labels.rows[number]
        weight = float(self.weights[row]) if number == 0 else 1.0
        a = row_of(block.A, row)
        one = OneRow(block, row, a)
        share = float(block.factor[row]) * weight
        z, piece, held = one.z(self.x), int(rows.piece[row]), bool(rows.kink[row] >= 0)
        block.flip(rows, side, row, weight)
        if held:
            self.multipliers[number][row] = 0.0
            return self.kept.bend(a, share * one.curvature(int(rows.piece[row]), z)) and self.kept.release(number, row)
        if rows.kink[row] >= 0:
            self.multipliers[number][row] = block.entry_multiplier(rows, side, row, weight)
            return self.kept.hold(number, row) and self.kept.bend(a, -share * one.curvature(piece, z))
        bend = one.curvature(int(rows.piece[row]), z) - one.curvature(piece, z)
        return self.kept.bend(a, share * bend)

    def _flip_coordinate(self, side: int, j: int, gradient: Array) -> bool:
        coordinates, labels = self.system.coordinates, self.labels
        held = labels.fixed[j] >= 0
        before = float(coordinates.curvature(self.x, labels.interval)[j]) if not held else 0.0
        slope = float(coordinates.slope(self.x, labels.interval)[j])
        coordinates.flip(labels.interval, labels.fixed, side, j)
        if labels.fixed[j] >= 0:
            gradient[j] -= slope
            self.x = self.convex.snap(self.x, labels)
            self.kept.G[j, j] -= before
            return self.kept.fix(j)
        after = float(coordinates.curvature(self.x, labels.interval)[j])
        if held:
            gradient[j] += float(coordinates.slope(self.x, labels.interval)[j])
            self.kept.G[j, j] += after
            return self.kept.free(j)
        unit = np.zeros(self.system.p)
        unit[j] = 1.0
        return self.kept.bend(unit, after - before)


def _bandless(labels: Labels) -> Labels:
    """The labels without bands: fixed weights have one."""
    rows = tuple(replace(item.copy(), band=np.zeros_like(item.band)) for item in labels.rows)
    return Labels(rows, labels.interval.copy(), labels.fixed.copy())

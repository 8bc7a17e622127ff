"""Leaps: certified strides over many events of samples at once, for losses without kinks and weights without jumps.

In: a stop and an age. Out: the stop there, on the same branch, or how much shorter the next try should be.

Where phi is smooth and v* continuous, G is differentiable whatever the samples do, so Newton may renew their labels at every
step (semismooth Newton) and needs to stop at no event of theirs: one sweep over the samples makes a whole Newton system. What
must not be passed over is the end of the branch: so a leap holds only when the Hessian is positive definite with every
sample's curvature at its least over the leap, a sample that changes its piece or band on the way counted with the worst of
them: then G is strictly convex on a tube about the leap, and holds one minimum at each age. Coordinates (entries at 0, bounds)
keep their places within a leap; the first to leave its place ends it. Events of samples inside a leap are found, one by one,
when someone asks for the critical points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.linear import BorderedFactor
from spdsl.solvers.active_set.sweeps import Sweep, sweeps_of
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.corrector import Converged, Tangent
from spdsl.solvers.path_following.crossing import due
from spdsl.solvers.path_following.hermite import earliest_crossing

__all__ = ["Leap", "Leaper", "Passed", "Place", "Stop", "stays", "stop_residual", "violation"]

_EXACT, _GOOD = 1e-12, 1e-11  # scaled residuals: aimed at, and good enough where rounding stops Newton
_SPARE, _LONGER = 0.3, 2.5  # the margin that a leap aims at; how many times as long as the last it may be


@dataclass(frozen=True)
class Place:
    """Where Newton starts: an age, x (p,), and what the coordinates do."""

    age: float
    x: Array
    interval: IntArray
    fixed: IntArray

    @cached_property
    def free(self) -> IntArray:
        """Free coordinates, ascending."""
        return np.flatnonzero(self.fixed == FREE)


@dataclass(frozen=True)
class Stop:
    """A KKT point at which the samples' labels are those of its values.

    Attributes
    ----------
    gradient : array (p,)
        Everything but the coordinate functions of fixed coordinates.
    bend : array (f,)
        Curvature of the coordinate functions of free coordinates.
    dx : array (p,)
        d(x)/d(age).
    scale : float
        What residuals are divided by.
    """

    place: Place
    sweep: Sweep
    gradient: Array
    bend: Array
    factor: BorderedFactor
    dx: Array
    scale: float
    iterations: int

    @property
    def age(self) -> float:
        """Its age."""
        return self.place.age

    @property
    def x(self) -> Array:
        """Its x (p,)."""
        return self.place.x


@dataclass(frozen=True)
class Leap:
    """Where a leap ends, and how many times as long as the one tried the next should be.

    `event` is the index of the coordinate's gap (2, p) that ends it, -1: none; `beyond` the stop after that event, when it
    is a plain turning point.
    """

    stop: Stop
    longer: float
    event: int = -1
    beyond: Stop | None = None


class Passed(Converged):
    """A stop as a labelled KKT point, evaluated only when someone asks."""

    def __init__(self, system: System, stop: Stop) -> None:
        self.__dict__.update(system=system, stop=stop)

    @cached_property
    def point(self) -> Point:
        """The labelled point."""
        system, place = self.__dict__["system"], self.__dict__["stop"].place
        rows = system.blocks[0].labels(self.__dict__["stop"].sweep.rows[0], place.age)
        return Point(place.age, place.x, Labels((rows,), place.interval, place.fixed), (np.zeros(system.blocks[0].m),))

    @cached_property
    def evaluation(self) -> Evaluation:
        """The system there."""
        found: Evaluation = self.__dict__["system"].evaluate(self.point)
        return found

    @property
    def factor(self) -> BorderedFactor:
        """The factorized system."""
        found: BorderedFactor = self.__dict__["stop"].factor
        return found

    @property
    def iterations(self) -> int:
        """Newton steps."""
        found: int = self.__dict__["stop"].iterations
        return found


class Leaper:
    """Makes leaps in one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.sweeps = sweeps_of(system.blocks[0])
        self.newton_steps = 0
        self._straight = np.zeros(system.p)

    @staticmethod
    def serves(system: System) -> bool:
        """Has the loss no kinks, do the weights not jump, and is nothing else made of rows?"""
        return len(system.blocks) == 1 and not system.blocks[0].any_kink and system.weighting.continuous

    # -- stops -------------------------------------------------------------------------------------------------------

    def at(self, converged: Converged, out: Tangent) -> Stop:
        """A node of the event engine as a stop, with the node's own way out."""
        if isinstance(converged, Passed):
            found: Stop = converged.__dict__["stop"]
            return found
        point = converged.point
        place = Place(point.age, point.x, point.labels.interval, point.labels.fixed)
        sweep = self.sweeps.newton(place.x, place.age, place.free)
        gradient, bend = self.completed(place, sweep)
        scale = self.system.magnitude_of(place.x, sweep.size, place.interval, place.fixed)
        return Stop(place, sweep, gradient, bend, converged.factor, out.dx, scale, 0)

    def completed(self, place: Place, sweep: Sweep) -> tuple[Array, Array]:
        """The gradient with all its parts, and the coordinate functions' curvature over the free coordinates."""
        system, free = self.system, place.free
        gradient = sweep.gradient + system.q
        if system.Q is not None:
            gradient += system.Q @ place.x
        table = system.coordinates.table
        if table is not None:
            gradient[free] += table[free, place.interval[free]]
            return gradient, self._straight[: free.size]
        gradient[free] += system.coordinates.slope(place.x, place.interval)[free]
        return gradient, system.coordinates.curvature(place.x, place.interval)[free]

    def hessian(self, H: Array, free: IntArray, bend: Array) -> Array:
        """The Hessian over the free coordinates: the loss's, the quadratic's and the coordinate functions'."""
        if self.system.Q is not None:
            H = H + self.system.Q[np.ix_(free, free)]
        if self.system.coordinates.table is None:
            H = H + np.diag(bend)
        return H

    def factor(self, H: Array, free: IntArray, bend: Array) -> BorderedFactor:
        """The same, factorized."""
        return BorderedFactor(self.hessian(H, free, bend), np.zeros((0, free.size)), 1e-3 * self.system.faint)

    def settle(self, place: Place, scale: float | None = None, max_iterations: int = 6, event: int = -1) -> Stop | None:
        """Newton at the place's age with the samples' labels renewed at every step; None when it does not converge fast.

        `scale` is what residuals are divided by (None: that of the place). With `event`, the index of a coordinate's gap, the
        age moves too, to where that gap is 0.
        """
        system, p = self.system, self.system.p
        free = place.free
        f = free.size
        held = event >= 0 and place.fixed[event % p] != FREE
        wanted = np.append(free, event % p) if held else free
        last = np.inf
        for iteration in range(max_iterations + 1):
            sweep = self.sweeps.newton(place.x, place.age, wanted)
            gradient, bend = self.completed(place, sweep)
            if scale is None:
                scale = system.magnitude_of(place.x, sweep.size, place.interval, place.fixed)
            error = float(np.abs(gradient[free]).max(initial=0.0)) / scale
            if not np.isfinite(error) or (iteration > 2 and error > max(0.5 * last, _GOOD)):
                return None
            done = error <= _EXACT or (iteration > 0 and error <= _GOOD and error > 0.1 * last)
            if not done and iteration == max_iterations:
                return None
            factor = self.factor(sweep.H[:f, :f], free, bend)
            both = factor.solve(-np.stack([gradient[free], sweep.by_age[free]], axis=1), np.zeros(0))[0]
            step, way = both[:, 0], both[:, 1]
            dage = 0.0
            if event >= 0:
                gap, (by_step, by_age) = self._gap(event, place, sweep, gradient, (step, way))
                if by_age == 0.0:
                    return None
                dage = -(gap + by_step) / by_age
                done = done and abs(gap) <= _GOOD and abs(dage) <= 1e-13 * place.age
                step = step + dage * way
            if done:
                dx = np.zeros(p)
                dx[free] = way
                size = system.magnitude_of(place.x, sweep.size, place.interval, place.fixed)
                return Stop(place, sweep, gradient, bend, factor, dx, size, iteration)
            last = error
            x = place.x.copy()
            x[free] += step
            place = Place(place.age + dage, x, place.interval, place.fixed)
            if place.age <= 0.0:
                return None
        return None

    def way(self, place: Place) -> Array:
        """d(x)/d(age) (p,) at a place that is, nearly, a KKT point."""
        sweep = self.sweeps.newton(place.x, place.age, place.free)
        factor = self.factor(sweep.H, place.free, self.completed(place, sweep)[1])
        dx = np.zeros(self.system.p)
        dx[place.free] = factor.solve(-sweep.by_age[place.free], np.zeros(0))[0]
        return dx

    # -- leaps -------------------------------------------------------------------------------------------------------

    def leap(self, start: Stop, age: float) -> Leap | float:
        """From a stop to an age, or to the first coordinate's event on the way; or the share of the way to try next."""
        found = self.settle(_ahead(start, age - start.age), start.scale)
        if found is None:
            return 0.3
        self.newton_steps += found.iterations
        if found.factor.verdict != "definite":
            return 0.3
        event, share = self._first_event(start, found)
        if event >= 0:
            landed = self.settle(_ahead(start, share * (age - start.age)), start.scale, 8, event)
            if (
                landed is None
                or landed.factor.verdict != "definite"
                or not start.age < landed.age <= age * (1.0 + 1e-12)
            ):
                return max(0.5 * share, 0.1)
            self.newton_steps += landed.iterations
            found = landed
            other, _ = self._first_event(start, found, arriving=event)
            if other >= 0:
                return max(0.5 * share, 0.1)
        margin = self._margin(start, found)
        if not margin > 0.0:
            return min(max((1.0 - _SPARE) / (1.0 - margin), 0.1), 0.7) * share
        longer = min((1.0 - _SPARE) / max(1.0 - margin, 1e-3), _LONGER) * share
        return Leap(found, longer, event, self.beyond(found, event) if event >= 0 else None)

    def _first_event(self, start: Stop, end: Stop, arriving: int = -1, halvings: int = 2) -> tuple[int, float]:
        """The index of the first coordinate's gap to close, and the share of the way; -1 when none does.

        The gaps are curves with corners at the samples' events, so where one comes near 0 on the way the halves are looked at.
        """
        if self.system.coordinates.position.shape[1] == 0:
            return -1, 1.0
        h = end.age - start.age
        gap0, rate0 = self._gaps(start)
        gap1, rate1 = self._gaps(end)
        crossing = earliest_crossing(gap0, rate0, gap1, rate1, h, _GOOD, arriving)
        if crossing.index >= 0:
            return crossing.index, crossing.at
        if halvings and _comes_near(gap0, rate0, gap1, rate1, h, arriving):
            middle = self.settle(_half_way(start, end), start.scale)
            if middle is None:
                return 0, 0.5
            self.newton_steps += middle.iterations
            index, at = self._first_event(start, middle, halvings=halvings - 1)
            if index >= 0:
                return index, 0.5 * at
            index, at = self._first_event(middle, end, arriving, halvings - 1)
            if index >= 0:
                return index, 0.5 + 0.5 * at
        return -1, 1.0

    def beyond(self, stop: Stop, event: int) -> Stop | None:
        """The stop after a coordinate's event, when the branch goes on in one way only; None where more must be looked at."""
        coordinates = self.system.coordinates
        side, j = divmod(event, self.system.p)
        interval, fixed, x = stop.place.interval.copy(), stop.place.fixed.copy(), stop.x
        coordinates.flip(interval, fixed, side, j)
        if fixed[j] >= 0:
            x = x.copy()
            x[j] = coordinates.position[j, fixed[j]]
        found = self.settle(Place(stop.age, x, interval, fixed), stop.scale)
        if found is None or found.factor.verdict != "definite":
            return None
        if violation(self.system, found.place, found.gradient) > _GOOD * found.scale:
            return None
        if float(np.abs(found.x - stop.x).max()) > 1e-9 * float(np.abs(stop.x).max(initial=1e-300)):
            return None
        return None if due(*self._gaps(found), found.age, 100.0 * _GOOD).size else found

    def _moves(self, stop: Stop) -> tuple[Array, Array]:
        """How u (n,) and the gradient (p,) change along the path; kept."""
        kept: tuple[Array, Array] | None = stop.__dict__.get("_moves")
        if kept is None:
            free = stop.place.free
            wanted = self.system.coordinates.position.shape[1] > 0
            du, change = self.sweeps.along(stop.sweep, free, stop.dx[free], wanted)
            if wanted and self.system.Q is not None:
                change = change + self.system.Q @ stop.dx
            kept = stop.__dict__["_moves"] = du, change
        return kept

    def _gaps(self, stop: Stop) -> tuple[Array, Array]:
        """The coordinates' gaps (2p,) and their rates along the path, as in `System.gaps`; kept."""
        kept: tuple[Array, Array] | None = stop.__dict__.get("_gaps")
        if kept is None:
            place, (_, change) = stop.place, self._moves(stop)
            gap, rate = self.system.coordinates.gaps(
                place.x, place.interval, place.fixed, -stop.gradient, stop.dx, -change
            )
            kept = stop.__dict__["_gaps"] = gap.ravel(), rate.ravel()
        return kept

    def _gap(
        self, event: int, place: Place, sweep: Sweep, gradient: Array, moves: tuple[Array, Array]
    ) -> tuple[float, tuple[float, float]]:
        """One coordinate's gap, its change by a step at a fixed age and its rate along the path (both over the free ones)."""
        coordinates, free = self.system.coordinates, place.free
        side, j = divmod(event, self.system.p)
        sign = 1.0 if side == 0 else -1.0
        kink = int(place.fixed[j])
        if kink < 0:
            at = int(np.searchsorted(free, j))
            border, scale = (
                float(coordinates.position[j, int(place.interval[j]) - 1 + side]),
                float(coordinates.scale[j]),
            )
            gap = sign * (float(place.x[j]) - border) / scale
            return gap, (sign * float(moves[0][at]) / scale, sign * float(moves[1][at]) / scale)
        bound, unit = (coordinates.low if side == 0 else coordinates.high)[j, kink], float(coordinates.unit[j, kink])
        row = sweep.H[free.size, : free.size]
        if self.system.Q is not None:
            row = row + self.system.Q[j, free]
        gap = sign * (-float(gradient[j]) - float(bound)) / unit
        along = float(row @ moves[1]) + float(sweep.by_age[j])
        return gap, (-sign * float(row @ moves[0]) / unit, -sign * along / unit)

    def _margin(self, start: Stop, end: Stop) -> float:
        """The certificate: positive when the Hessian is positive definite with all curvatures at their least over the leap.

        It is the smallest eigenvalue of that lowest Hessian relative to the Hessian at the end: 1 where nothing bends less
        on the way. What is lacking to 1 grows with the leap, about linearly.
        """
        free = start.place.free
        if free.size == 0:
            return 1.0
        du0, du1 = self._moves(start)[0], self._moves(end)[0]
        H = self.sweeps.lowest(free, (start.age, end.age), start.sweep, du0, end.sweep, du1)
        lowest = self.factor(H, free, np.minimum(start.bend, end.bend))
        margin = end.factor.least_relative(lowest.reduced)
        return margin if lowest.verdict == "definite" else min(margin, 0.0)


def stop_residual(system: System, stop: Stop) -> float:
    """The scaled KKT residual of a stop."""
    inner = float(np.abs(stop.gradient[stop.place.free]).max(initial=0.0))
    return max(inner, violation(system, stop.place, stop.gradient)) / stop.scale


def violation(system: System, place: Place, gradient: Array) -> float:
    """How far the multipliers of fixed coordinates leave their bounds."""
    low, high = system.coordinates.bounds(place.fixed)
    excess = np.maximum(low + gradient, -gradient - high)
    return float(excess[place.fixed >= 0].max(initial=0.0))


def stays(system: System, place: Place) -> bool:
    """Are all free coordinates within the intervals that the place says?"""
    inside = system.coordinates.relabel(place.x, place.interval)
    return np.array_equal(inside[place.free], place.interval[place.free])


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


def _half_way(first: Stop, last: Stop) -> Place:
    """The middle of the cubic through two stops and their tangents, with what the coordinates do after the first."""
    h = last.age - first.age
    x = 0.5 * (first.x + last.x) + 0.125 * h * (first.dx - last.dx)
    return Place(first.age + 0.5 * h, x, first.place.interval, first.place.fixed)


def _ahead(stop: Stop, h: float) -> Place:
    """The tangent's predictor: the path has a corner at each sample's event, so that a higher order gains nothing."""
    return Place(stop.age + h, stop.x + h * stop.dx, stop.place.interval, stop.place.fixed)

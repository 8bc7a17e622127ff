"""The event engine: follows one branch of local minima of G over the age, from event to event, and over its jumps.

In: a system and a first labelled minimum. Out: nodes, one for every stride and every event, each exact to rounding.

Between two events the labels are constant and the path is a smooth curve. `Tracker.advance` predicts the first gap to close,
finds its age by extended Newton, and makes sure that no other gap closes before (Hermite curves of all gaps) and that the
reduced Hessian stays positive definite on the way (its floor over the step). At the event the rows' labels are flipped: when the
reduced Hessian is still positive definite it is a turning point, otherwise the branch ends there: a jump.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.flow import flow_down
from spdsl.solvers.active_set.minimize import Minimum
from spdsl.solvers.active_set.system import Labels, Point, System
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.corrector import Converged, Tangent, correct, corrected_event, tangent
from spdsl.solvers.path_following.crossing import STEADY, Crossed, cross, due
from spdsl.solvers.path_following.descent import descend
from spdsl.solvers.path_following.ends import End, end_ahead
from spdsl.solvers.path_following.event_engine import EventEngine
from spdsl.solvers.path_following.floor import stays_convex
from spdsl.solvers.path_following.folds import find_fold
from spdsl.solvers.path_following.hermite import Crossing, earliest_crossing
from spdsl.solvers.path_following.jumps import land_after_event, land_after_fold, sized, way_out
from spdsl.solvers.path_following.leaps import Leap, Leaper, Passed, Place, Stop
from spdsl.solvers.path_following.node import Node, predicted

__all__ = ["BrokenPathError", "Tracker"]

NOISE = 1e-11  # gaps (in their units) below this are zero
_SMALLEST = 1e-13  # relative to the age: the shortest stride


class BrokenPathError(Exception):
    """The path can't be followed any further; the message says why."""


_BEYOND = 1e-12, 1e-10, 1e-8, 1e-6, 1e-4  # how far, relative to the age, a descent begins anew
_PATIENCE = 3  # descents anew, one soon after the other, after which the next begins farther ahead
_NEAR = 1e-3  # relative: nodes that are closer are soon after one another
_SAME = 1e-9  # ages that differ by less, relative, are one
_TRIES = 8  # leaps from one node
_CERTIFIED = 0.9  # share of the way to the end of a branch
_DUST = 1e-4  # relative to the coordinates' scale: x smaller than this is compared with this
_PATIENCE = 1  # leaps that fail before the end of the branch is looked for
_TIES = 100  # nodes at one age after which its events are taken to undo one another


class Tracker:
    """Follows a branch. Has no state but the system and counters for the statistics."""

    def __init__(self, system: System, leaps: bool = True) -> None:
        self.system = system
        self.lander = Leaper(system) if Leaper.serves(system) else None  # what landings go by, with leaps or without
        self.leaper = self.lander if leaps else None
        self._size = float(system.coordinates.scale.min(initial=1.0))
        self._engine: EventEngine | None = None
        self._engine_for = 0.0  # the last age that it serves; 0: not yet asked
        self.newton_steps = 0
        self.rejections = 0

    # -- nodes -------------------------------------------------------------------------------------------------------

    def start(self, minimum: Minimum, stride: float) -> Node:
        """The first node."""
        converged = Converged(minimum.evaluation, minimum.factor, 0)
        return Node(converged, self._tangent(converged), "start", stride)

    def _tangent(self, converged: Converged) -> Tangent:
        return tangent(self.system, converged.evaluation, converged.factor)

    def advance(self, node: Node, upper: float) -> Node:
        """The next node, at most at the age `upper`.

        Raises
        ------
        BrokenPathError
            When no minimum is found after a jump, or events at one age follow one another without end.
        """
        found = self._advance(node, upper)
        if found.lost == 0 and found.age <= node.age * (1.0 + _NEAR):
            found = replace(found, lost=node.lost)
        anchor = node.anchor or node.age
        if found.age > anchor * (1.0 + _SAME):
            return found
        rounds, over = divmod(node.tied + 1, _TIES)
        if over == 0:  # tied events that undo one another: on by descent, farther each time
            if rounds > len(_BEYOND):
                raise BrokenPathError("events at one age undo one another without end")
            found = self._anew(node, upper, _BEYOND[rounds - 1 :])
        return replace(found, anchor=anchor, tied=node.tied + 1)

    def _advance(self, node: Node, upper: float) -> Node:
        if self.leaper is not None and node.stop is not None:
            node, landed = self._leap(self.leaper, node, upper)
            if landed is not None:
                return landed
        gaps, rates = node.gaps(self.system)
        ready = due(gaps, rates, node.age, NOISE)
        if ready.size:
            return self._through(node, node.converged, node.out, ready, at_node=True)
        if self.leaper is not None and node.stop is None:
            node, landed = self._leap(self.leaper, node, upper)
            if landed is not None:
                return landed
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            closing = rates < -STEADY / node.age
            remaining = np.where(closing, np.maximum(gaps, 0.0) / -rates, np.inf)
        index = int(np.argmin(remaining))
        first = float(remaining[index])
        room = upper - node.age
        if node.to_fold < min(0.1 * node.age, room, first):
            landed = self._fold(node, upper)
            if landed is not None:
                return landed
        if first < min(node.stride, room):
            found = self._event(node, index, first, room)
            if found is not None:
                return found
            self.rejections += 1
            return self._stride(node, min(0.5 * first, room), upper)
        return self._stride(node, min(node.stride, room), upper)

    # -- leaps ---------------------------------------------------------------------------------------------------------

    def _leap(self, leaper: Leaper, node: Node, upper: float) -> tuple[Node, Node | None]:
        """The node after a leap, if one leads farther than the next event; else the node with less hope of leaps."""
        start = node.stop or leaper.at(node.converged, node.out)
        engine = self._event_engine(leaper, node.age, upper)
        if engine is not None:
            ahead = engine.ahead(start)
            if isinstance(ahead, Leap):
                return node, self._leapt(node, ahead, node.leap)
            if isinstance(ahead, End):
                landed = self._over(leaper, node, ahead, node.leap)
                if landed is not None:
                    return node, landed
            if ahead is None and engine.at_tie:
                return node, None  # no leap can pass what the engine could not
        h = min(node.leap or node.stride, upper - node.age)
        for attempt in range(_TRIES):
            if h <= 1e-9 * node.age or (attempt > 1 and h <= self._next_event(node)):
                break
            age = upper if node.age + h >= upper * (1.0 - 1e-15) else node.age + h
            found = leaper.leap(start, age)
            if isinstance(found, Leap):
                return node, self._leapt(node, found, h * (found.longer if attempt == 0 else min(found.longer, 1.1)))
            self.rejections += 1
            if attempt == _PATIENCE:
                ended = self._ended(leaper, node, start, h, upper)
                if isinstance(ended, Node):
                    return node, ended
                found = min(found, ended)
            h *= found
        return replace(node, leap=max(h, 1.1e-9 * node.age)), None

    def _ended(self, leaper: Leaper, node: Node, start: Stop, h: float, upper: float) -> Node | float:
        """The landing after the end of the branch within h, when sweeps alone can tell it; or the share of h to leap next.

        Nearly the whole way to the end must be certified, or another branch's end could be taken for this one's.
        """
        end = end_ahead(leaper, start, h)
        if end is None or not start.age < end.place.age <= upper:
            return 1.0
        way = end.place.age - start.age
        most = leaper.leap(start, start.age + _CERTIFIED * way)
        if not isinstance(most, Leap):
            return most * _CERTIFIED * way / h
        if most.event >= 0:
            return self._leapt(node, most, way)
        return self._over(leaper, node, end, h) or 0.5 * way / h

    def _over(self, leaper: Leaper, node: Node, end: End, h: float) -> Node | None:
        """The landing after the end of a branch; None where sweeps alone can't tell it."""
        landed = self._descended(leaper, node, end.place, sized(self.system, end.direction), h)
        if landed is None:
            return None
        before, behind = (Labels((rows,), end.place.interval, end.place.fixed) for rows in (end.before, end.behind))
        return replace(landed, before=before, cause=behind, leapt=True)

    def _event_engine(self, leaper: Leaper, age: float, upper: float) -> EventEngine | None:
        """The engine for pulls that are piecewise affine, up to an age; None where they aren't."""
        if self._engine_for != upper:
            self._engine, self._engine_for = EventEngine.of(leaper, age, upper), upper
        return self._engine

    def _descended(self, leaper: Leaper, node: Node, place: Place, direction: Array, h: float) -> Node | None:
        """The node at the minimum below a place where the branch ends; None where sweeps alone can't tell it."""
        landed = None if self._engine is None else self._engine.land(place, direction)
        landed = landed or descend(leaper, place, direction)
        if landed is None:
            return None
        change = float(np.abs(landed.x - place.x).max(initial=0.0))
        if not change > 1e-9 * max(float(np.abs(place.x).max(initial=0.0)), _DUST * self._size):
            return None
        found = self._stopped(landed, "jump", node.stride, 4.0 * h)
        return replace(found, arrived=None, change=change, left=place.x)

    def _next_event(self, node: Node) -> float:
        """About how far the next event of any kind is."""
        gaps, rates = node.gaps(self.system)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return float(np.where(rates < 0.0, np.maximum(gaps, 0.0) / -rates, np.inf).min(initial=np.inf))

    def _leapt(self, node: Node, leap: Leap, longer: float) -> Node:
        self.newton_steps += leap.stop.iterations
        landed = self._stopped(leap.stop, "leap", node.stride, longer)
        if leap.event < 0:
            return landed
        if leap.beyond is not None and leap.beyond.age > (node.anchor or node.age) * (1.0 + _SAME):
            rows, place = landed.point.labels.rows, leap.beyond.place
            after = Labels(rows, place.interval, place.fixed)
            turned = self._stopped(leap.beyond, "turning", node.stride, 2.0 * longer)
            return replace(turned, arrived=landed.out, before=landed.point.labels, cause=after, leapt=True)
        event = leap.event + 4 * self.system.blocks[0].m
        gaps, rates = landed.gaps(self.system)
        ready = due(gaps, rates, landed.age, 10.0 * NOISE)
        ready = ready if event in ready else np.append(ready, event)
        return replace(self._through(landed, landed.converged, landed.out, ready, at_node=True), leapt=True)

    def _stopped(self, stop: Stop, kind: Literal["leap", "turning", "jump"], stride: float, leap: float) -> Node:
        """A stop as a node."""
        way = Tangent(stop.dx, (np.zeros(self.system.blocks[0].m),))
        return Node(Passed(self.system, stop), way, kind, stride, leap, way, stop=stop)

    # -- strides -----------------------------------------------------------------------------------------------------

    def _stride(self, node: Node, h: float, upper: float) -> Node:
        """A stride without an event, or the first event that turns up within it."""
        scale = self.system.magnitude(node.converged.evaluation)
        tried = h
        if upper - node.age <= 10.0 * _SMALLEST * node.age:  # the end is here, to rounding
            point = replace(node.point, age=upper)
            last = correct(self.system, point, scale, 6) or Converged(
                self.system.evaluate(point), node.converged.factor, 0
            )
            return Node(last, node.out, "stride", node.stride, node.leap, node.out)
        while h > _SMALLEST * node.age:
            age = upper if node.age + h >= upper * (1.0 - 1e-15) else node.age + h
            h = age - node.age
            converged = correct(self.system, predicted(node, h), scale, 6)
            if converged is None or converged.iterations > 5:
                h = self._halved(h)
                continue
            self.newton_steps += converged.iterations
            arrived = self._tangent(converged)
            crossing, _ = self._check(node, converged, arrived, -1)
            if crossing is None or crossing.index == -2:
                h = self._halved(h)
                continue
            if crossing.index >= 0:
                found = self._event(node, crossing.index, crossing.at * h, upper - node.age)
                if found is not None:
                    return found
                h = self._halved(min(h, 2.0 * crossing.at * h if crossing.at > 0.0 else h))
                continue
            return self._next(node, converged, arrived, tried)
        return self._anew(node, upper)

    def _anew(self, node: Node, upper: float, shares: tuple[float, ...] = _BEYOND) -> Node:
        """The descent from a node to the minimum a little beyond its age, where no step of Newton leads on.

        So it is where G is flat: its slope grows out of rounding (weights that were as good as 0 come to count).
        """
        for share in shares[min(node.lost // _PATIENCE, len(shares) - 1) :]:
            age = min(node.age * (1.0 + share), upper)
            minimum = flow_down(self.system, age, node.point.x)
            if not minimum.failure and minimum.residual <= 1e-11:
                left = replace(node.point, age=age)
                landed = self._landed(node, left, minimum, None, node.point.labels, minimum.point.labels)
                return replace(landed, lost=node.lost + 1)
        raise BrokenPathError("no step however short leads on, and no fold ends the branch")

    def _next(self, node: Node, converged: Converged, arrived: Tangent, tried: float) -> Node:
        """The node after a stride; the next stride is twice this one if it went well, and less than the way to a fold."""
        h = converged.point.age - node.age
        longest = 2.0 * h if h < tried * (1.0 - 1e-9) else max(2.0 * h, node.stride)
        A = self.system.blocks[0].A
        first, second = (float(np.linalg.norm(np.asarray(A @ dx))) for dx in (node.out.dx, arrived.dx))
        to_fold = np.inf
        if second > 1.02 * first > 0.0:  # before a fold |du/dage|^-2 falls linearly to zero
            to_fold = h / ((second / first) ** 2 - 1.0)
            longest = min(longest, max(0.7 * to_fold, 0.01 * h))
        return Node(converged, arrived, "stride", longest, 2.0 * node.leap, arrived, to_fold=to_fold)

    def _halved(self, h: float) -> float:
        self.rejections += 1
        return 0.5 * h

    def _check(
        self, node: Node, converged: Converged, arrived: Tangent, arriving: int
    ) -> tuple[Crossing | None, tuple[Array, Array]]:
        """Is the curve from the node to a new point one smooth stretch? None: too bent, or a fold may hide in it.

        Also the gaps and rates at its end.
        """
        system = self.system
        h = converged.point.age - node.age
        end = system.gaps(converged.evaluation, arrived.dx, arrived.ds, 1.0)
        if h <= 0.0:
            return Crossing(-1), end
        if converged.factor.verdict == "indefinite" or not _alike(system, node.out.dx, arrived.dx, h):
            return None, end
        gap1, rate1 = _same_units(system, node, converged, *end)
        crossing = earliest_crossing(*node.gaps(system), gap1, rate1, h, NOISE, arriving)
        if crossing.index >= 0:
            return crossing, end
        if not stays_convex(system, node.converged.evaluation, converged.evaluation, node.out, arrived):
            return None, end
        return crossing, end

    # -- events ------------------------------------------------------------------------------------------------------

    def _event(self, node: Node, index: int, dt: float, room: float) -> Node | None:
        """The node at the first event, starting from a guess which gap closes and when; None when the guess fails."""
        scale = self.system.magnitude(node.converged.evaluation)
        for _ in range(8):
            result = corrected_event(self.system, predicted(node, dt), index, scale)
            if result is None:
                return None
            converged, arrived = result
            self.newton_steps += converged.iterations
            passed = converged.point.age - node.age
            if passed > room or passed > 20.0 * dt + 1e-12 * node.age:
                return None
            if passed < -1e-9 * node.age:
                return None
            crossing, end = self._check(node, converged, arrived, index)
            if crossing is None or crossing.index == -2:
                return None
            if crossing.index == -1:
                ready = due(*end, converged.point.age, 10.0 * NOISE)
                ready = ready if index in ready else np.append(ready, index)
                return self._through(node, converged, arrived, ready, at_node=False)
            index, dt = crossing.index, crossing.at * passed
        return None

    def _through(self, node: Node, converged: Converged, arrived: Tangent, ready: IntArray, at_node: bool) -> Node:
        """Carry the rows whose gaps closed over their borders: a turning point, or a jump."""
        before = converged.point.labels
        crossed = cross(self.system, converged, [int(k) for k in ready], NOISE)
        came = node.arrived if at_node else arrived
        if isinstance(crossed, Crossed):
            beyond, out = self._exact(crossed)
            labels = crossed.evaluation.point.labels
            return Node(beyond, out, "turning", node.stride, 2.0 * node.leap, came, before, labels)
        if self.lander is not None:
            point, direction = converged.point, way_out(self.system, converged, crossed)
            if direction is not None:
                place = Place(point.age, point.x, crossed.interval, crossed.fixed)
                landed = self._descended(self.lander, node, place, direction, node.leap)
                if landed is not None:
                    return replace(landed, arrived=came, before=before, cause=crossed)
        minimum = land_after_event(self.system, converged, crossed)
        return self._landed(node, converged.point, minimum, came, before, crossed)

    def _exact(self, crossed: Crossed) -> tuple[Converged, Tangent]:
        """The point beyond an event; ties are put on their kinks together, which may move it by more than rounding."""
        beyond = Converged(crossed.evaluation, crossed.factor, 0)
        gradient = crossed.evaluation.gradient[crossed.evaluation.free]
        scale = self.system.magnitude(crossed.evaluation)
        if float(np.abs(gradient).max(initial=0.0)) <= 1e-12 * scale:
            return beyond, crossed.tangent
        corrected = correct(self.system, crossed.evaluation.point, scale)
        return (beyond, crossed.tangent) if corrected is None else (corrected, self._tangent(corrected))

    def _fold(self, node: Node, upper: float) -> Node | None:
        """The landing after a fold ahead; None when there is none in reach."""
        fold = find_fold(self.system, node.converged, node.out, node.to_fold, NOISE, upper)
        if fold is None:
            return None
        minimum = land_after_fold(self.system, fold)
        left = fold.converged.point
        return self._landed(node, left, minimum, None, left.labels, left.labels)

    def _landed(
        self, node: Node, left: Point, minimum: Minimum, came: Tangent | None, before: Labels, cause: Labels
    ) -> Node:
        if minimum.failure:
            raise BrokenPathError(
                {
                    "unbounded": "after a jump the objective falls without bound; add a regularizer",
                    "stalled": "after a jump no minimum could be reached in floating point",
                    "limit": "after a jump the descent to the next minimum took too many steps",
                }[minimum.failure]
            )
        evaluation = replace(minimum.evaluation, point=replace(minimum.point, age=left.age))
        converged = Converged(self.system.evaluate(evaluation.point), minimum.factor, 0)
        change = float(np.abs(converged.point.x - left.x).max(initial=0.0))
        size = float(np.abs(left.x).max(initial=0.0))
        kind: Literal["turning", "jump"] = "jump" if change > 1e-9 * max(size, _DUST * self._size) else "turning"
        return Node(
            converged, self._tangent(converged), kind, node.stride, 4.0 * node.leap, came, before, cause, change, left.x
        )


def _alike(system: System, first: Array, second: Array, h: float) -> bool:
    """Do two tangents differ by less than half, or their predictions by less than a thousandth of the loss's scale?"""
    block = system.blocks[0]
    du, dv = np.asarray(block.A @ first), np.asarray(block.A @ second)
    if np.linalg.norm(du - dv) <= 0.5 * max(np.linalg.norm(du), np.linalg.norm(dv)):
        return True
    return bool(h * np.abs(du - dv).max(initial=0.0) <= 1e-3 * block.scale)


def _same_units(system: System, node: Node, converged: Converged, gap: Array, rate: Array) -> tuple[Array, Array]:
    """Gaps of losses are in units of their own age; bring those at a step's end to the units of its start."""
    ratio = converged.point.age / node.age
    block = system.blocks[0]
    bands = slice(2 * block.m, 4 * block.m)
    gap, rate = gap.copy(), rate.copy()
    near = gap[bands] < 1e29
    gap[bands] = np.where(near, gap[bands] * ratio, gap[bands])
    rate[bands] = rate[bands] * ratio
    return gap, rate

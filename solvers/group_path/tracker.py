"""Follows a path under group norms: predictor and Newton in polar coordinates, with labels of samples renewed at every step.

In: a spot on the path. Out: the next node: a stride, an event of a group or coordinate, or the landing after a jump.

A stride is taken when Newton converges fast, no gap of a group or coordinate closes on the way, and the Hessian stays
positive definite with every sample at its least curvature within the hull of the step, across borders too: so events of
samples may be passed, jumps may not. Where strides shrink to nothing the branch ends: a jump, after which alternate convex search
(which never raises the latent objective) finds the next minimum just beyond.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.group_path.model import GroupModel
from spdsl.solvers.group_path.search import RoundsSpentError, search
from spdsl.solvers.group_path.state import Spot, State, gaps_of, hessian, newton, settled_flip
from spdsl.solvers.path_following.hermite import earliest_crossing

__all__ = ["GroupNode", "GroupTracker", "LostPathError"]

NOISE = 1e-11
_SHORTEST = 1e-12  # relative to the age: strides below this are none
# Descents after a jump, one after the other: how far beyond its age (relative), how far along the path's direction (of the
# loss's scale), and with how many rounds. Alternate search crawls beside a smooth fold, the slower the nearer it starts.
_DESCENTS = (1e-9, 1e-5, 150), (1e-9, 1e-3, 150), (1e-8, 1e-2, 300), (1e-6, 1e-2, 2000)
_HULL = np.linspace(0.0, 1.0, 9)


class LostPathError(Exception):
    """The path can't be followed any further; the message says why."""


@dataclass(frozen=True)
class GroupNode:
    """A spot, how it was reached, the state before an event, and the stride to try next."""

    spot: Spot
    kind: str  # start, stride, turning, jump
    stride: float
    before: State | None = None
    arrived: Spot | None = None  # at an event: the spot under the labels that led here

    @property
    def age(self) -> float:
        """Its age."""
        return self.spot.state.age


class GroupTracker:
    """Counts its work; has no other state."""

    def __init__(self, model: GroupModel) -> None:
        self.model = model
        self.newton_steps = 0
        self.rejections = 0
        self.rounds = 0

    def advance(self, node: GroupNode, upper: float) -> GroupNode:
        """The next node, at most at `upper`.

        Raises
        ------
        LostPathError
            When no minimum is found after a jump.
        """
        spot, age = node.spot, node.age
        h, tried = min(node.stride, upper - age), 0
        while h > _SHORTEST * age or (h > 0.0 and age + h >= upper and tried == 0):
            target = upper if age + h >= upper * (1.0 - 1e-15) else age + h
            h = target - age
            found = self._stride(node, target)
            if isinstance(found, GroupNode):
                return found
            if isinstance(found, Spot):
                return GroupNode(found, "stride", 2.0 * h if not tried else h)
            tried += 1
            self.rejections += 1
            h *= 0.5 if found is None else found
        if upper - age <= 4.0 * _SHORTEST * age:
            last = newton(replace(spot.state, age=upper), 8)
            if last is not None:
                return GroupNode(last, "stride", node.stride)
        return self._jump(node, upper)

    def _stride(self, node: GroupNode, target: float) -> Spot | GroupNode | float | None:
        """A stride to an age, or the event on the way; else the share of it to try next."""
        spot, h = node.spot, target - node.age
        end = self._corrected(spot, target)
        if end is None or end.iterations > 4 or not self._alike(spot, end, h):
            return None
        gaps, rates = gaps_of(spot)
        crossing = earliest_crossing(gaps, rates, *gaps_of(end), h, NOISE)
        if crossing.index == -2:
            return None
        if crossing.index >= 0:
            return self._event(node, crossing.index, crossing.at * h, h)
        if not end.definite or not self._stays_convex(spot, end, h):
            return None
        return end

    def _corrected(self, spot: Spot, target: float) -> Spot | None:
        h = target - spot.state.age
        found = newton(replace(spot.state.moved(spot.motion, h, h), age=target))
        if found is not None:
            self.newton_steps += found.iterations
        return found

    def _alike(self, first: Spot, second: Spot, h: float) -> bool:
        block = self.model.system.blocks[0]
        du, dv = np.asarray(block.A @ first.motion.x), np.asarray(block.A @ second.motion.x)
        if np.linalg.norm(du - dv) <= 0.5 * max(np.linalg.norm(du), np.linalg.norm(dv)):
            return True
        return bool(h * np.abs(du - dv).max(initial=0.0) <= 1e-3 * block.scale)

    def _stays_convex(self, first: Spot, second: Spot, h: float) -> bool:
        """Positive definite with the least curvature of every sample over the step, and the least of every group."""
        block = self.model.system.blocks[0]
        a, b = first.evaluation.rows[0], second.evaluation.rows[0]
        b1 = a.u + h * np.asarray(block.A @ first.motion.x) / 3.0
        b2 = b.u - h * np.asarray(block.A @ second.motion.x) / 3.0
        low = np.minimum(np.minimum(a.u, b.u), np.minimum(b1, b2))
        high = np.maximum(np.maximum(a.u, b.u), np.maximum(b1, b2))
        low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
        floor = np.minimum(a.curvature, b.curvature)
        for share in _HULL:
            u = low + share * (high - low)
            for age in (first.state.age, second.state.age):
                floor = np.minimum(floor, block.evaluate(block.labels(u, age), u, age).curvature)
        middle = self._between(first.state, second.state)
        lowered = hessian(middle, floor)
        frame = replace(second, state=middle).frame.__class__(middle, lowered)
        bend = frame.bend.copy()
        turned = np.zeros(frame.free.size)
        for index in np.flatnonzero(middle.active):
            where = self.model.groups[index]
            cosine = min(float(middle.d[where] @ first.state.d[where]), float(middle.d[where] @ second.state.d[where]))
            sine = float(np.sqrt(max(0.0, 1.0 - cosine * cosine)))
            if sine > 0.3:
                return False
            at = self.model.of[frame.free] == index
            # Over the step ||P - P_middle|| <= sine, and the group's bend is alpha P / r, least where r is largest.
            turned[at] = sine * self.model.alpha[index] / max(middle.r[index], 1e-300)
        lowered = lowered - np.diag(np.where(np.isfinite(turned), turned, 0.0))
        return frame.definite(lowered, bend)

    def _between(self, first: State, second: State) -> State:
        """The state half-way, with the larger radius of the two."""
        d = 0.5 * (first.d + second.d)
        for index in np.flatnonzero(first.active):
            where = self.model.groups[index]
            d[where] /= np.linalg.norm(d[where])
        return replace(first, d=d, r=np.maximum(first.r, second.r))

    # -- events ------------------------------------------------------------------------------------------------------

    def _event(self, node: GroupNode, index: int, guess: float, h: float) -> GroupNode | float | None:
        """The node at the first gap that closes, found by secants kept inside a bracket; a share of h when that fails."""
        for _ in range(6):
            found = self._closed(node.spot, index, guess, h)
            if found is None:
                return 0.5
            at = found.state.age - node.age
            gaps, rates = gaps_of(found)
            crossing = (
                earliest_crossing(*gaps_of(node.spot), gaps, rates, at, NOISE, index)
                if at > _SHORTEST * node.age
                else None
            )
            if crossing is not None and crossing.index == -2:
                return 0.5
            if crossing is None or crossing.index < 0:
                if at > _SHORTEST * node.age and not (found.definite and self._stays_convex(node.spot, found, at)):
                    return min(0.5, 0.9 * at / h)
                ready = np.flatnonzero((gaps <= 10.0 * NOISE) & (rates < -1e-9 / found.state.age)).tolist()
                ready = ready if index in ready else [*ready, index]
                beyond = settled_flip(found, ready, NOISE)
                if beyond is None:
                    return self._landed(found, node.stride)
                return GroupNode(beyond, "turning", node.stride, found.state, found)
            index, guess, h = crossing.index, crossing.at * at, at
        return 0.5

    def _closed(self, spot: Spot, index: int, guess: float, h: float) -> Spot | None:
        """The spot at which gap `index` is zero, within h."""
        low, high, t = 0.0, h, min(max(guess, 0.0), h)
        best: Spot | None = None
        for _ in range(60):
            found = self._corrected(spot, spot.state.age + t)
            if found is None:
                return None
            gap, rate = (float(part[index]) for part in gaps_of(found))
            best = found
            if abs(gap) <= 1e-14:
                return found
            if gap > 0.0:
                low = t
            else:
                high = t
            following = t - gap / rate if rate < 0.0 else -1.0
            if not low <= following <= high:
                following = 0.5 * (low + high)
            if abs(following - t) <= 2e-16 * spot.state.age:
                return found if abs(gap) <= 10.0 * NOISE else None
            t = following
        return best if best is not None and abs(gap) <= 10.0 * NOISE else None

    # -- jumps -------------------------------------------------------------------------------------------------------

    def _jump(self, node: GroupNode, upper: float) -> GroupNode:
        return self._landed(node.spot, node.stride)

    def _landed(self, left: Spot, stride: float) -> GroupNode:
        """The next minimum, by alternate search just beyond the age, taken back to it by Newton."""
        age, block = left.state.age, self.model.system.blocks[0]
        reach = float(np.abs(np.asarray(block.A @ left.motion.x)).max(initial=0.0)) / block.scale
        for beyond, leave, most in _DESCENTS:
            start = left.state.x + left.motion.x * (leave / reach if reach > 0.0 else 0.0)
            later = age * (1.0 + beyond)
            try:
                found = search(self.model, later, start, None, most)
            except RoundsSpentError:
                found = None
            if found is None:
                continue
            spot, rounds = found
            self.rounds += rounds
            back = newton(replace(spot.state, age=age), 8)
            if back is not None and back.definite and np.all(gaps_of(back)[0] >= -NOISE):
                spot = back
            x, y = left.state.x, spot.state.x
            moved = float(np.abs(x - y).max()) > 1e-9 * max(float(np.abs(x).max()), 1e-300)
            if moved:
                return GroupNode(spot, "jump", stride, left.state, left)
            if spot.state.age > age:
                return GroupNode(spot, "turning", stride, left.state, left)
        raise LostPathError("the branch ends, and no minimum was found beyond it")


def sizes(state: State) -> Array:
    """|x_g| (G,)."""
    return np.where(state.active, state.r, 0.0)

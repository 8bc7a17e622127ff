"""The path of a model whose sample weights are steps of the loss (hard): x is constant between jumps, and every event is a jump.

In: a system and a partial optimum. Out: `Step`s, one for every jump and one for the last age.

Between jumps the losses are constant, so the next jump is at the first age at which a sample's weight steps up. There alternate
convex search is run to its fixed point, round by round: the weights by the losses, then the exact w-problem at these
weights, which is reached from the last one by moving the weights that differ (`WeighedProblem`). The weights of tied samples move
together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.degenerate import untangle
from spdsl.solvers.active_set.minimize import Minimum, residual, with_multipliers
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System
from spdsl.solvers.active_set.weighting import FixedWeights, IntArray, SelfPacedWeights
from spdsl.solvers.path_following.branch import AgeBranch
from spdsl.solvers.path_following.compiled_jumps import CompiledJumps
from spdsl.solvers.path_following.pushes import NoMinimumError, WeighedProblem
from spdsl.solvers.path_following.tracker import BrokenPathError

__all__ = ["Step", "StepBranch", "StepTracker", "has_steps"]

_TIED = 1e-12  # losses that differ by less, relative, are one
_ROUNDS = 1000
_LARGEST = 5000  # unknowns, of which a square matrix is kept


@dataclass(frozen=True)
class Step:
    """A point of the path: at its start, after a jump, or at its last age. Attributes as in `node.Node`."""

    age: float
    evaluation: Evaluation
    losses: Array
    band: IntArray
    kind: Literal["start", "jump", "turning", "stride"]
    before: Labels | None = None
    cause: Labels | None = None
    left: Array | None = None
    change: float = 0.0
    leapt: bool = False
    stop: None = None

    @property
    def point(self) -> Point:
        """The labelled point."""
        return self.evaluation.point


def has_steps(system: System) -> bool:
    """Are the weights constant on every band of losses?"""
    weighting = system.weighting
    if weighting.continuous or not isinstance(weighting, SelfPacedWeights) or system.p > _LARGEST:
        return False
    bands = np.arange(weighting.n_bands)
    for age in (0.31, 0.77):
        for share in (0.2, 0.9, 1.7):
            _, by_loss, by_age = weighting.evaluate(bands, np.full(bands.size, share * age), age)
            if np.any(by_loss) or np.any(by_age):
                return False
    return True


class StepTracker:
    """Follows the path from jump to jump. The problem that it keeps is that of the last step."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.problem: WeighedProblem | None = None
        self.loops: CompiledJumps | None = None
        self.last: Step | None = None
        self.rejections = 0
        self._by_band: Array | None = None

    @property
    def newton_steps(self) -> int:
        """Chord steps."""
        return 0 if self.problem is None else self.problem.chords

    @property
    def pushes(self) -> int:
        """Weights that were moved with the solution exact all the way."""
        return 0 if self.problem is None else self.problem.pushes

    @property
    def anew(self) -> int:
        """w-problems that were minimized from the last point instead."""
        return 0 if self.problem is None else self.problem.anew

    def start(self, minimum: Minimum, stride: float) -> Step:
        """The first step, at a partial optimum."""
        point, system = minimum.point, self.system
        weights = system.weights(point.x, point.age)
        try:
            self._take(WeighedProblem(system, point, weights))
        except NoMinimumError as error:
            raise BrokenPathError(str(error)) from error
        assert self.problem is not None
        losses = system.losses(self.problem.x)
        band = system.weighting.band(losses, point.age)
        self.last = Step(point.age, self.problem.evaluation, losses, band, "start")
        return self.last

    def advance(self, step: Step, upper: float) -> Step:
        """The path after the next jump, or at the age `upper` when there is none before.

        Raises
        ------
        BrokenPathError
            When a w-problem has no minimum, or alternate search doesn't end.
        """
        problem = self._at(step)
        found = self._next_jump(step)
        if found is None or found[0] > upper:
            return replace(step, age=upper, kind="stride", before=None, cause=None, left=None, change=0.0)
        age, limits = found
        left, old_labels = problem.x, problem.labels.copy()
        try:
            if self.loops is not None:
                losses, band, first = self.loops.jump(step.losses, limits, self._levels(), _ROUNDS)
            else:
                losses, band, first = self._by_moves(problem, step.losses, limits)
        except NoMinimumError as error:
            raise BrokenPathError(f"at a jump {error}") from error
        before = _with_band(old_labels, step.band)
        change = float(np.abs(problem.x - left).max(initial=0.0))
        moved = change > 1e-9 * float(np.abs(left).max(initial=1e-300))  # or the sample changes nothing
        self.last = Step(
            age, problem.evaluation, losses, band, "jump" if moved else "turning", before,
            _with_band(old_labels, first), left if moved else None, change if moved else 0.0,
        )  # fmt: skip
        return self.last

    def _by_moves(self, problem: WeighedProblem, losses: Array, limits: Array) -> tuple[Array, IntArray, IntArray]:
        """Alternate search at a jump, weight by weight: the losses and bands after it, the bands of the first round."""
        levels, settled = self._levels(), True
        first: IntArray | None = None
        for _ in range(_ROUNDS):
            band = sum(((losses > limit).astype(np.int64) for limit in limits), np.zeros(losses.size, np.int64))
            weights = levels[band]
            first = band if first is None else first
            if np.array_equal(weights, problem.weights):
                if settled or problem.settle():
                    return losses, band, first
                settled = True
            else:
                problem.move(weights)
                settled = False
            losses = problem.losses
        raise BrokenPathError("alternate search at a jump came to no end")

    def _at(self, step: Step) -> WeighedProblem:
        """The problem at a step: the one that is kept, or for an older step a new one."""
        if self.problem is None or step is not self.last:
            fresh = WeighedProblem(self.system, step.point, self._levels()[step.band])
            if self.problem is not None:
                fresh.pushes, fresh.chords, fresh.anew = self.pushes, self.newton_steps, self.anew + fresh.anew
            self._take(fresh)
            self.last = step
        assert self.problem is not None
        return self.problem

    def _take(self, problem: WeighedProblem) -> None:
        self.problem = problem
        self.loops = CompiledJumps(problem) if CompiledJumps.serve(problem) else None

    def _levels(self) -> Array:
        """v by band; it depends on neither the loss nor the age."""
        if self._by_band is None:
            bands = np.arange(self.system.weighting.n_bands)
            self._by_band = self.system.weighting.evaluate(bands, np.ones(bands.size), 1.0)[0]
        return self._by_band

    def _next_jump(self, step: Step) -> tuple[float, Array] | None:
        """The first age beyond which some sample belongs to a lower band, and the borders just beyond it."""
        weighting = self.system.weighting
        assert isinstance(weighting, SelfPacedWeights)
        first, nearest, which = np.inf, np.inf, -1
        for border in range(weighting.n_bands - 1):
            above = step.losses[step.band > border]
            if above.size == 0:
                continue
            loss = float(above.min())
            age = _age_of_border(weighting, border, loss, step.age)
            if age < first:
                first, nearest, which = age, loss, border
        if which < 0 or not np.isfinite(first):
            return None
        limits = weighting.borders(first)[0].copy()
        limits[which] = max(limits[which], nearest)
        return first, limits * (1.0 + _TIED)


def _age_of_border(weighting: SelfPacedWeights, border: int, loss: float, age: float) -> float:
    """The age, at least `age`, at which a border of the bands is at a loss; inf when it never is."""

    def at(age: float) -> float:
        return float(weighting.kernel.breaks(age, *weighting.theta)[border])

    for guess in (loss, float(np.sqrt(max(loss, 0.0)))):  # where a border is the age itself, say exactly that age
        if guess >= age and at(guess) == loss:
            return guess
    if at(age) >= loss:
        return age
    low, high = age, 2.0 * age
    while at(high) < loss:
        low, high = high, 2.0 * high
        if high > 1e150:
            return np.inf
    while high > low * (1.0 + 4e-16):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if at(middle) < loss else (low, middle)
    return high


def _with_band(labels: Labels, band: IntArray) -> Labels:
    return replace(labels, rows=(replace(labels.rows[0], band=band), *labels.rows[1:]))


class StepBranch(AgeBranch):
    """The branch of a path of steps: x at an age is that of the last node at or below it."""

    def at(self, age: float) -> tuple[Array, float]:
        """x (p,) and its scaled KKT residual; at the age of a jump, x after it."""
        k = int(np.searchsorted(self.ages, age, side="right")) - 1
        x, error = self._at_node(min(max(k, 0), len(self.ages) - 1), age)
        return x, error if error <= 1e-10 else self._residual(x, age)

    def _residual(self, x: Array, age: float) -> float:
        """The residual at the weights of x, where more terms touch their kinks than can be held (data of few values)."""
        convex = self.system.with_weighting(FixedWeights(self.system.weights(x, age)))
        labels = untangle(convex, convex.point(age, x, convex.labels(x, age)), 1e-10).labels
        evaluation, _ = with_multipliers(convex, convex.point(age, x, labels))
        return residual(convex, evaluation)

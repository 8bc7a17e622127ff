"""`GroupModel`: a smooth `System` with group norms and L1 terms beside it, and what of a problem fits that.

In: a bound problem. Out: gradients and Hessians of the smooth part, the groups, their coefficients, L1 slopes at zero.

    G(x) = smooth(x) + sum_g alpha_g ||x_g|| + sum_j (high_j x_j+ - low_j x_j-),   groups disjoint
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spdsl.problem import BoundProblem, GroupNorm, Norm, Problem, Separable
from spdsl.problem.functions import Array
from spdsl.solvers.active_set.build import build, coefficient_refusals, refusals
from spdsl.solvers.active_set.coordinates import FREE, Coordinates
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System, dense
from spdsl.solvers.active_set.weighting import FixedWeights, IntArray

__all__ = ["GroupModel", "data_refusals", "make", "structure_refusals"]


@dataclass(frozen=True)
class GroupModel:
    """The parts of G.

    Attributes
    ----------
    system : System
        The smooth part: the weighted loss, quadratic and linear terms.
    groups : tuple of int arrays
        Disjoint, ascending.
    alpha : array (G,)
    of : int array (p,)
        Each coordinate's group, -1 outside.
    low, high : arrays (p,)
        One-sided slopes of the L1 terms at 0; equal where there are none.
    """

    system: System
    groups: tuple[IntArray, ...]
    alpha: Array
    of: IntArray
    low: Array
    high: Array

    @property
    def p(self) -> int:
        """Coordinates."""
        return self.system.p

    def smooth(self, x: Array, age: float) -> Evaluation:
        """The smooth part at x, every sample in the pieces that hold it."""
        block = self.system.blocks[0]
        rows = block.labels(block.predict(x), age)
        labels = Labels((rows,), np.zeros(self.p, np.int64), np.full(self.p, FREE))
        return self.system.evaluate(Point(age, x, labels, (np.zeros(block.m),)))

    def at_weights(self, weights: Array) -> GroupModel:
        """The w-problem at these sample weights (n,)."""
        return replace(self, system=self.system.with_weighting(FixedWeights(weights)))

    def value(self, x: Array, weights: Array) -> float:
        """The smooth part's value at fixed weights."""
        total = float(weights @ self.system.losses(x)) + float(self.system.q @ x)
        return total if self.system.Q is None else total + 0.5 * float(x @ self.system.Q @ x)

    def soft(self, z: Array, by: float | Array = 1.0) -> Array:
        """z (p,) less its projection on by * [low, high]."""
        return np.asarray(z - np.clip(z, by * self.low, by * self.high))

    def prox(self, z: Array, step: float) -> Array:
        """The proximal step of all penalties: soft thresholds, then shrunk groups."""
        x = self.soft(z, step)
        for alpha, where in zip(self.alpha, self.groups):
            size = float(np.linalg.norm(x[where]))
            x[where] *= max(0.0, 1.0 - step * alpha / size) if size > 0.0 else 0.0
        return x

    def scale(self, evaluation: Evaluation) -> float:
        """What KKT residuals are divided by."""
        penalties = max(float(np.abs(self.low).max()), float(np.abs(self.high).max()))
        return self.system.magnitude(evaluation) + penalties + float(self.alpha.max())


def _is_group(item: object) -> bool:
    return isinstance(item, (GroupNorm, Norm))


def _without(problem: Problem) -> Problem:
    return replace(problem, regularizers=tuple(item for item in problem.regularizers if not _is_group(item)))


def structure_refusals(problem: Problem) -> list[str]:
    """Why a problem's parts don't fit; empty when they do."""
    reasons = refusals(_without(problem))
    if not any(_is_group(item) for item in problem.regularizers):
        reasons.append("the model has no group norm")
    if problem.constraints:
        reasons.append("constraints beside a group norm are not taken")
    loss = problem.loss
    if loss is not None and loss.function.kernel is not None and any(loss.function.kernel.kinked):
        reasons.append("the loss has kinks, and only smooth ones are taken beside a group norm")
    self_paced = problem.self_paced
    if self_paced is not None and self_paced.kernel is not None and not self_paced.kernel.continuous:
        reasons.append("the weights jump at an age")
    for item in problem.regularizers:
        kernel = item.function.kernel if isinstance(item, Separable) and not item.function.is_quadratic else None
        if kernel is not None and (kernel.n_pieces != 2 or not any(kernel.kinked)):
            reasons.append("beside a group norm only L1 and quadratic regularizers are taken")
    return reasons


def data_refusals(bound: BoundProblem) -> list[str]:
    """Why the data don't fit: groups that overlap or have offsets, L1 terms of several coefficients, bad coefficients."""
    reasons = coefficient_refusals(bound)
    if reasons:
        return reasons
    taken = np.zeros(bound.layout.size, bool)
    for item in bound.problem.regularizers:
        if isinstance(item, (GroupNorm, Norm)):
            matrix, offset = bound.design(item.predictor)
            B = dense(matrix)
            used = np.flatnonzero(np.any(B != 0.0, axis=0))
            equal = np.unique(np.abs(B[B != 0.0])).size <= 1
            if np.any(offset) or np.any((B != 0.0).sum(axis=1) > 1) or np.any((B != 0.0).sum(axis=0) > 1) or not equal:
                reasons.append("a group norm is taken of coefficients alone, without matrices or offsets")
            elif np.any(taken[used]) and float(bound.evaluate(item.coefficient)) > 0.0:
                reasons.append("groups of two group norms overlap")
            taken[used] = True
    if reasons:
        return reasons
    whole = _whole(bound)
    coordinates = whole.coordinates
    at_zero = coordinates.count * np.where(coordinates.count > 0, 1, 0)
    if len(whole.blocks) > 1 or coordinates.table is None or np.any(at_zero > 1):
        reasons.append("beside a group norm only L1 terms of single coefficients are taken")
    elif coordinates.position.shape[1] and np.any(coordinates.position[coordinates.count > 0, 0] != 0.0):
        reasons.append("beside a group norm only L1 terms with their kink at zero are taken")
    return reasons


def _whole(bound: BoundProblem, compiled: bool | None = None) -> System:
    return build(replace(bound, problem=_without(bound.problem)), compiled=compiled)


def make(bound: BoundProblem) -> GroupModel:
    """The model of a bound problem that nothing refuses."""
    whole = _whole(bound)
    p = whole.p
    none = np.zeros(0, np.int64)
    bare = Coordinates(p, [], whole.coordinates.scale)
    system = System(whole.blocks, bare, whole.Q, whole.q, none, whole.constant)
    low = high = np.zeros(p)
    table = whole.coordinates.table
    if table is not None and table.shape[1] > 1:
        kinked = whole.coordinates.count > 0
        low, high = np.where(kinked, table[:, 0], 0.0), np.where(kinked, table[:, 1], 0.0)
    groups: list[IntArray] = []
    alpha: list[float] = []
    for item in bound.problem.regularizers:
        if not isinstance(item, (GroupNorm, Norm)):
            continue
        B = dense(bound.design(item.predictor)[0])
        coefficient = float(bound.evaluate(item.coefficient)) * float(np.abs(B).max(initial=0.0))
        if coefficient == 0.0:
            continue
        numbers = np.zeros(B.shape[0]) if isinstance(item, Norm) else bound.group_labels(item, B.shape[0])
        for number in np.unique(numbers):
            where = np.flatnonzero(np.any(B[numbers == number] != 0.0, axis=0))
            if where.size:
                groups.append(where)
                alpha.append(coefficient)
    of = np.full(p, -1)
    for index, where in enumerate(groups):
        of[where] = index
    return GroupModel(system, tuple(groups), np.array(alpha), of, low, high)

"""`flow_down`: follow the continuous limit of alternate convex search from a point down to the minimum that it runs into.

In: a system, an age, a start. Out: the minimum at the end of dx/dt = -M(x)^-1 grad G(x), M the Hessian of the w-problem.

Alternate search is this flow with steps of length 1, which crawl near a fold and may leap over the nearest minimum
elsewhere. Here
each step solves the flow exactly for the local quadratic model of G on the manifold of held terms (an exponential step: Newton's
step as its time goes to infinity), and its time is chosen so that the model's gradient holds at its end. So a landing
after a jump is, to that tolerance, the one that ever smaller steps of alternate search would reach; a start beside the border
of two basins may fall to either side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.degenerate import untangle
from spdsl.solvers.active_set.linear import BorderedFactor
from spdsl.solvers.active_set.minimize import Minimum, minimize, released, violations, with_multipliers
from spdsl.solvers.active_set.ray import Landing, first_kink
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System

__all__ = ["FAITHFUL", "LONGEST", "flow_down", "flow_step"]

FAITHFUL = 0.2  # a step is taken when the model's gradient is off by less than this share
LONGEST = 1e6  # times longer than this are as good as infinite


@dataclass(frozen=True)
class _Model:
    """The local quadratic model in the eigenvectors of (H, M) on the manifold of held terms."""

    evaluation: Evaluation
    factor: BorderedFactor
    values: Array
    vectors: Array
    slopes: Array

    def step(self, time: float) -> Array:
        """The flow of the model after some time, in reduced coordinates."""
        return flow_step(self.values, self.vectors, self.slopes, time)


def flow_step(values: Array, vectors: Array, slopes: Array, time: float) -> Array:
    """Where the flow of a quadratic model is after some time: `slopes` is its gradient in the eigenvectors of (H, M)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        exponent = np.clip(values * time, -60.0, 60.0)
        reach = np.where(np.abs(exponent) < 1e-8, time, -np.expm1(-exponent) / values)
    return np.asarray(vectors @ (-reach * slopes))


def flow_down(
    system: System,
    age: float,
    x: Array,
    labels: Labels | None = None,
    direction: Array | None = None,
    max_steps: int = 400,
) -> Minimum:
    """The minimum that the flow from x runs into.

    Parameters
    ----------
    direction : array (p,), optional
        A first displacement, for a start at which the gradient vanishes.
    """
    point = system.point(age, x, labels.copy() if labels is not None else system.labels(x, age))
    if labels is None and any(rows.held.size for rows in point.labels.rows):
        untangled = untangle(system, point, 1e-12)
        point = system.point(age, x, untangled.labels)
    if direction is not None:
        point = _displaced(system, point, direction)
    time, idle = 1.0, 0
    for _ in range(max_steps):
        evaluation, factor = with_multipliers(system, point)
        point = evaluation.point
        scale = system.magnitude(evaluation)
        inner = float(np.abs(evaluation.gradient[evaluation.free]).max(initial=0.0))
        violation, worst = violations(system, evaluation)
        if violation > max(1e-10 * scale, 0.01 * inner):
            point = released(system, point, worst)
            idle += 1
            if idle > 30:
                break
            continue
        if factor.verdict != "indefinite" and (inner <= 1e-9 * scale or time >= LONGEST):
            break
        model = _model(system, evaluation, factor)
        moved, time = _stepped(system, model, time)
        if moved is None:
            break
        advance = float(np.abs(moved.x - point.x).max(initial=0.0))
        idle = idle + 1 if advance <= 1e-14 * (1e-300 + float(np.abs(point.x).max(initial=0.0))) else 0
        if idle > 30:
            break
        point = moved
    return minimize(system, age, point.x, point.labels)


def _displaced(system: System, point: Point, direction: Array) -> Point:
    """The point a little along a direction: as far as it takes for the slope downhill to leave rounding behind.

    Beside a fold the slope grows with the square of the way, so the first 1e-6 of the loss's scale may show nothing of it.
    """
    for _ in range(7):
        landing = first_kink(system, point, direction)
        stopped = landing is not None and landing.step < 1.0
        step = landing.step if landing is not None and stopped else 1.0
        moved = system.point(point.age, point.x + step * direction, point.labels)
        moved = replace(moved, labels=system.relabel(point.labels, moved.x, point.age))
        if landing is not None and stopped and landing.kink:
            return _held(system, moved, landing.kink)
        there = system.evaluate(moved)
        free = there.free
        if (
            float(there.gradient[free] @ direction[free])
            < -1e-8 * system.magnitude(there) * np.abs(direction[free]).max()
        ):
            return moved
        direction = 3.0 * direction
    return moved


def _model(system: System, evaluation: Evaluation, factor: BorderedFactor) -> _Model:
    convex = [
        values.curvature if number else _convex_part(system, evaluation)
        for number, values in enumerate(evaluation.rows)
    ]
    M = system.assemble(evaluation.free, convex, evaluation.bend)
    size = float(np.trace(system.hessian(evaluation, absolute=True))) / max(M.shape[0], 1)
    M[np.diag_indices_from(M)] += max(1e-6 * size, system.faint)
    if factor.Z is not None:
        M = factor.Z.T @ M @ factor.Z
    values, vectors = eigh(factor.reduced, 0.5 * (M + M.T))
    slopes = vectors.T @ factor.project(evaluation.gradient[evaluation.free])
    return _Model(evaluation, factor, values, vectors, slopes)


def _convex_part(system: System, evaluation: Evaluation) -> Array:
    """v phi'' of the loss: its curvature without the part that the weights' change takes away."""
    block, labels, values = system.blocks[0], evaluation.point.labels.rows[0], evaluation.rows[0]
    bend = block.factor * values.weight * block.call(block.kernel.curvature, labels.piece, values.u)
    if values.held.size:
        bend = bend.copy()
        bend[values.held] = 0.0
    return np.maximum(bend, 0.0)


def _stepped(system: System, model: _Model, time: float) -> tuple[Point | None, float]:
    """One step of the flow and the time for the next: as long as the model's gradient holds at its end."""
    evaluation, factor = model.evaluation, model.factor
    point = evaluation.point
    for _ in range(80):
        z = model.step(time)
        dx, _ = system.spread(evaluation, factor.lift(z), np.zeros(factor.k))
        landing = first_kink(system, point, dx)
        if landing is not None and landing.step <= 1e-12 and _leaves(system, model, landing, dx):
            time *= 0.25  # just let go, and moving away: the way back is a later one
            continue
        if landing is not None and landing.step < 1.0:
            dx = dx * landing.step
            z = z * landing.step
        moved = system.point(point.age, point.x + dx, point.labels)
        moved = replace(moved, labels=system.relabel(point.labels, moved.x, point.age), multipliers=point.multipliers)
        there = system.evaluate(moved)
        expected = factor.project(evaluation.gradient[evaluation.free]) + factor.reduced @ z
        found = factor.project(there.gradient[evaluation.free])
        off = np.linalg.norm(model.vectors.T @ (found - expected))
        size = np.linalg.norm(model.slopes) + np.linalg.norm(model.vectors.T @ expected)
        if not np.isfinite(off) or off > FAITHFUL * size:
            time *= 0.25
            continue
        longer = min(time * 4.0, 4.0 * LONGEST) if off < 0.25 * FAITHFUL * size else time
        if landing is not None and landing.step < 1.0 and landing.kink is not None:
            moved = _held(system, moved, landing.kink)
        return moved, longer
    return None, time


def _leaves(system: System, model: _Model, landing: Landing, dx: Array) -> bool:
    """Does the term at whose kink a long step ends set out in the other direction?"""
    if landing.kink is None:
        return False
    number, _, row = landing.kink
    start, _ = system.spread(
        model.evaluation, model.factor.lift(-(model.vectors @ model.slopes)), np.zeros(model.factor.k)
    )
    if number < 0:
        return bool(start[row] * dx[row] < 0.0)
    A = system.blocks[number].A[row]
    return bool(float(np.sum(A @ start)) * float(np.sum(A @ dx)) < 0.0)


def _held(system: System, point: Point, kink: tuple[int, int, int]) -> Point:
    labels = point.labels.copy()
    number, border, row = kink
    if number < 0:
        labels.fixed[row] = border
    else:
        labels.rows[number].kink[row] = border
        labels.rows[number].piece[row] = border
    return system.point(point.age, point.x, labels)

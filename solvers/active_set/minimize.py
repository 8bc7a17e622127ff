"""`minimize`: from a point down to a local minimum of G at a fixed age, exactly.

In: a system, an age, a start (x and, if known, labels). Out: a labelled minimum with multipliers.

An active-set method: Newton on the manifold of held terms where G is convex there, a step by the absolute eigenvalues
where it is not; each step ends at a minimum along its ray, and a term whose kink stops it is held from then on. A held
term whose multiplier leaves its bounds is let go, one at a time, the worst first; where that runs in circles, 0 is
projected onto the subdifferential. With fixed weights G is convex and this is the exact solver of the w-problem; with
v* it ends the descent that `flow_down` steers. The result depends on nothing but the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.degenerate import untangle
from spdsl.solvers.active_set.linear import BorderedFactor
from spdsl.solvers.active_set.ray import Landing, first_minimum
from spdsl.solvers.active_set.system import Evaluation, Labels, Point, System

__all__ = ["Minimum", "minimize", "released", "residual", "violations", "with_multipliers"]


@dataclass(frozen=True)
class Minimum:
    """Where a descent ended: a labelled point with its evaluation and factorized system."""

    evaluation: Evaluation
    factor: BorderedFactor
    residual: float
    iterations: int
    failure: str = ""  # empty: a local minimum; "unbounded", "stalled" or "limit"

    @property
    def point(self) -> Point:
        """The labelled point."""
        return self.evaluation.point


def minimize(
    system: System,
    age: float,
    x: Array,
    labels: Labels | None = None,
    direction: Array | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 2000,
) -> Minimum:
    """The next local minimum of G downhill from x.

    Parameters
    ----------
    x : array (p,)
        A feasible start.
    labels : Labels, optional
        Which terms are held and fixed at x; found from x if not given.
    direction : array (p,), optional
        The first step's direction: the way out of a degenerate point.
    tolerance : float
        For the scaled KKT residual.
    """
    start = labels.copy() if labels is not None else system.labels(x, age)
    point = system.point(age, x, start)
    if labels is None and any(rows.held.size for rows in start.rows):
        untangled = untangle(system, point, tolerance)
        point, direction = system.point(age, x, untangled.labels), untangled.direction
    stalls = crawls = 0
    best = np.inf
    for iteration in range(max_iterations):
        if direction is None:
            point = replace(point, labels=system.relabel(point.labels, point.x, age))
        evaluation, factor = with_multipliers(system, point)
        point = evaluation.point
        scale = system.magnitude(evaluation)
        inner = _norm(evaluation.gradient[evaluation.free]) if direction is None else np.inf
        off = _norm(system.off_kink(evaluation))
        violation, worst = violations(system, evaluation)
        settled = inner <= max(tolerance * scale, 0.05 * violation if factor.verdict == "definite" else 0.0)
        if settled and off <= 1e-9 and factor.verdict != "indefinite":
            if violation <= max(tolerance * scale, 1e-300):
                return _cleared(system, Minimum(evaluation, factor, max(inner, violation) / scale, iteration), scale)
            point = released(system, point, worst)
            continue
        step, convex = (direction, False) if direction is not None else _direction(system, evaluation, factor)
        direction = None
        if not np.any(step):
            stalls += 1
            if stalls > 3:
                return Minimum(evaluation, factor, max(inner, violation) / scale, iteration, "stalled")
            if violation > 0.0:
                point = released(system, point, worst)
            continue
        if convex and _quiet(system, evaluation, step, inner, scale):
            moved = replace(point, x=point.x + step)
            if inner >= 0.5 * best and inner <= 1e4 * tolerance * scale:
                stalls += 1  # rounding: no Newton step gets any closer
                if stalls > 4:
                    done = violation <= 1e-10 * scale
                    return Minimum(
                        evaluation, factor, max(inner, violation) / scale, iteration, "" if done else "stalled"
                    )
            best = min(best, inner)
            point = system.point(age, moved.x, point.labels)
            continue
        landing = first_minimum(system, point, step, 1.0, careful=not convex)
        if landing.step == 0.0 and landing.kink is None and factor.verdict == "indefinite" and settled:
            step, landing = _off_saddle(system, point, step)
        if landing.unbounded:
            return Minimum(evaluation, factor, np.inf, iteration, "unbounded")
        crawling = landing.step * _norm(step) <= 1e-15 * (_norm(point.x) + 1e-300)
        crawls = crawls + 1 if crawling else 0
        if crawls > 60:
            return Minimum(evaluation, factor, max(inner, violation) / scale, iteration, "stalled")
        if crawls >= 3 and crawls % 3 == 0:  # tied kinks: no single term to hold or let go leads on
            untangled = untangle(system, point, tolerance)
            point, direction = system.point(age, point.x, untangled.labels), untangled.direction
            continue
        point = _moved(system, point, step, landing)
    evaluation, factor = with_multipliers(system, point)
    return Minimum(evaluation, factor, residual(system, evaluation), max_iterations, "limit")


def _cleared(system: System, minimum: Minimum, scale: float) -> Minimum:
    """The same minimum with entries that are rounding set to 0, when that leaves it as exact as it was."""
    x = minimum.point.x
    dust = (x != 0.0) & (np.abs(x) <= 1e-14 * system.coordinates.scale) & (minimum.point.labels.fixed == FREE)
    if not np.any(dust):
        return minimum
    evaluation = system.evaluate(replace(minimum.point, x=np.where(dust, 0.0, x)))
    error = residual(system, evaluation)
    return replace(minimum, evaluation=evaluation, residual=error) if error <= max(minimum.residual, 1e-13) else minimum


def residual(system: System, evaluation: Evaluation) -> float:
    """The scaled KKT residual at a labelled point with its own multipliers."""
    violation, _ = violations(system, evaluation)
    inner = _norm(evaluation.gradient[evaluation.free])
    return max(inner, violation) / (system.magnitude(evaluation))


def violations(system: System, evaluation: Evaluation) -> tuple[float, tuple[int, int, int]]:
    """How far multipliers leave their bounds: the largest violation, and (block, side, row) that has it."""
    point = evaluation.point
    largest, where = 0.0, (-1, 0, 0)
    for number, (values, s) in enumerate(zip(evaluation.rows, point.multipliers)):
        if values.held.size == 0:
            continue
        for side, excess in enumerate((values.low - s[values.held], s[values.held] - values.high)):
            row = int(np.argmax(excess))
            if excess[row] > largest:
                largest, where = float(excess[row]), (number, side, int(values.held[row]))
    low, high = system.coordinates.bounds(point.labels.fixed)
    fixed = point.labels.fixed >= 0
    for side, excess in enumerate((low + evaluation.gradient, -evaluation.gradient - high)):
        excess = np.where(fixed, excess, 0.0)
        row = int(np.argmax(excess)) if excess.size else 0
        if excess.size and excess[row] > largest:
            largest, where = float(excess[row]), (-1, side, row)
    return largest, where


def with_multipliers(system: System, point: Point) -> tuple[Evaluation, BorderedFactor]:
    """Evaluate with the multipliers that fit the gradient best."""
    bare = replace(point, multipliers=tuple(np.zeros(block.m) for block in system.blocks))
    evaluation = system.evaluate(bare)
    factor = system.factor(evaluation)
    if factor.k == 0:
        return evaluation, factor
    if factor.dependent:
        point = _thinned(system, evaluation)
        return with_multipliers(system, point)
    s = factor.multipliers(evaluation.gradient[evaluation.free])
    _, multipliers = system.spread(evaluation, np.zeros(evaluation.free.size), s)
    return system.evaluate(replace(bare, multipliers=multipliers)), factor


def _thinned(system: System, evaluation: Evaluation) -> Point:
    """The point with a largest independent subset of its held rows, the equations always among them."""
    from spdsl.solvers.active_set.linear import independent_rows

    labels = evaluation.point.labels.copy()
    if system.free_for_equations(labels.fixed, labels.interval):
        return replace(evaluation.point, labels=labels)
    equations = system.rows_of_equations(evaluation)
    keep = set(independent_rows(system.border(evaluation), equations).tolist()) | set(np.flatnonzero(equations))
    position = 0
    for block, values, rows in zip(system.blocks, evaluation.rows, labels.rows):
        for row in values.held:
            if position not in keep:
                rows.kink[row] = -1
                if block.is_wall:
                    rows.piece[row] = 1  # inside
            position += 1
    return replace(evaluation.point, labels=labels)


def _direction(system: System, evaluation: Evaluation, factor: BorderedFactor) -> tuple[Array, bool]:
    """A descent direction on the manifold of held terms, and whether it is a Newton step of a convex model."""
    gradient = evaluation.gradient[evaluation.free]
    off = system.off_kink(evaluation)
    if factor.verdict == "definite":
        step, _ = factor.solve(-gradient, off)
        return system.spread(evaluation, step, np.zeros(factor.k))[0], True
    majorant = system.hessian(evaluation, absolute=True)
    if factor.Z is not None:
        majorant = factor.Z.T @ majorant @ factor.Z
    size = float(np.trace(majorant)) / max(majorant.shape[0], 1)
    majorant = 0.5 * (majorant + majorant.T) + np.eye(majorant.shape[0]) * max(1e-8 * size, system.faint)
    values, vectors = eigh(factor.reduced, majorant)
    slopes = vectors.T @ factor.project(gradient)
    noise = 1e-12 * system.magnitude(evaluation) * np.linalg.norm(vectors, axis=0)
    slopes[np.abs(slopes) <= noise] = 0.0  # else rounding would drive flat directions
    part = -slopes / np.maximum(np.abs(values), 1e-8)
    if values[0] < -1e-10 and not np.any(slopes):  # a saddle: leave along its steepest bend, largest entry positive
        part[0] = 1.0 if vectors[np.argmax(np.abs(vectors[:, 0])), 0] > 0.0 else -1.0
    step = factor.lift(vectors @ part)
    return system.spread(evaluation, step, np.zeros(factor.k))[0], False


def _off_saddle(system: System, point: Point, step: Array) -> tuple[Array, Landing]:
    """Beside a saddle or a fold the gradient is rounding: the way down is found by looking, both ways and ever nearer."""
    for share in (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        for way in (step, -step):
            landing = first_minimum(system, point, share * way, 1.0, careful=True)
            if landing.step > 0.0 or landing.kink is not None:
                return share * way, landing
    return step, Landing(0.0)


def _quiet(system: System, evaluation: Evaluation, step: Array, inner: float, scale: float) -> bool:
    """Is the Newton step so small, and so far from every border, that no line search is needed?"""
    if inner > 1e-6 * scale:
        return False
    zeros = tuple(np.zeros(block.m) for block in system.blocks)
    gaps, rates = system.gaps(evaluation, step, zeros, 0.0)
    inside = gaps > 0.0
    return bool(np.all((gaps + rates)[inside] > 0.0))


def released(system: System, point: Point, where: tuple[int, int, int]) -> Point:
    """The point with one held term let go on the side that its multiplier points to."""
    labels = point.labels.copy()
    number, side, row = where
    if number < 0:
        system.coordinates.flip(labels.interval, labels.fixed, side, row)
    else:
        system.blocks[number].flip(labels.rows[number], side, row, 1.0)
    return system.point(point.age, point.x, labels)


def _moved(system: System, point: Point, step: Array, landing: Landing) -> Point:
    """The point after a line search, holding the term whose kink stopped it."""
    labels = point.labels.copy()
    x = point.x + landing.step * step
    if landing.kink is not None:
        number, border, row = landing.kink
        if number < 0:
            labels.fixed[row] = border
        else:
            labels.rows[number].kink[row] = border
            labels.rows[number].piece[row] = border
    elif landing.step == 0.0:
        return point
    moved = system.point(point.age, x, labels)
    return replace(moved, labels=system.relabel(labels, moved.x, point.age))


def _norm(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))

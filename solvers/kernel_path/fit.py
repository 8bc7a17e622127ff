"""`fit`: the kernel model's optimum at fixed sample weights, exactly, from any start: an active-set method in the dual.

In: a dual model, weights (n,), a start. Out: a `Fitted` point: z, mu, b and labels. Held are samples at a kink, and only they are
unknowns: the others' multipliers are known from their piece. Newton on the held set, exact line search over the kinks, the one
that stops it is held; a held one whose multiplier leaves its bounds is let go, the worst first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import RowBlock, RowLabels, RowValues
from spdsl.solvers.active_set.weighting import FixedWeights, IntArray
from spdsl.solvers.kernel_path.directions import Direction, Directions
from spdsl.solvers.kernel_path.model import DualModel

__all__ = ["Fitted", "fit", "zero"]

_ROUNDING = 1e-12
_RESTS = 1e-11  # moves of z below this, relative, are none


@dataclass(frozen=True)
class Fitted:
    """A point: mu, z (n,), b (q,), and the labels of the loss; `failure` is empty when it is the optimum asked for."""

    mu: Array
    b: Array
    z: Array
    labels: RowLabels
    failure: str = ""


def zero(model: DualModel) -> Fitted:
    """f = 0 and b = 0."""
    labels = model.block.labels(model.c, 1.0)
    return Fitted(np.zeros(model.n), np.zeros(model.q), model.c.copy(), labels)


def fit(model: DualModel, weights: Array, start: Fitted, max_iterations: int = 50_000) -> Fitted:
    """The optimum at fixed weights."""
    block = model.weighed(FixedWeights(weights))
    mu, b, z = start.mu.copy(), start.b.copy(), start.z.copy()
    labels = RowLabels(start.labels.piece.copy(), start.labels.kink.copy(), np.zeros(model.n, np.int64))
    work = Directions(model)
    for row in labels.held[weights[labels.held] == 0.0]:
        labels.kink[row] = -1
    _hold_independent(work, labels)
    labels = block.relabel(labels, z, 1.0)
    kinks = block.borders[labels.kink[labels.held], labels.held]
    snapped = bool(np.all(np.abs(z[labels.held] - kinks) <= 1e-9 * block.scale))
    idle = 0
    for _ in range(max_iterations):
        values = block.evaluate(labels, z, 1.0)
        held = labels.held
        rest = -values.gradient - mu
        rest[held] = 0.0
        off = np.zeros(model.n)
        if snapped:
            z[held] = values.u[held]  # but for rounding they are
        off[held] = values.u[held] - z[held]
        step = _step(work, mu, rest, off)
        force = float(np.abs(step.mu).max(initial=0.0)) / model.force
        move = float(np.abs(step.z).max(initial=0.0)) / block.scale
        if max(force, move) <= _ROUNDING or idle > 3:
            row, side = _worst(model, values, mu, held)
            if row < 0:
                return Fitted(mu, b, z, labels)
            _let_go(work, block, labels, row, side)
            idle = 0
            continue
        if not snapped:  # a start's held samples are not quite at their kinks: one whole step puts them there
            mu, b, z = mu + step.mu, b + step.b, z + step.z
            labels = block.relabel(labels, z, 1.0)
            snapped = True
            continue
        if (
            move <= _RESTS
        ):  # f rests: multipliers that it does not depend on (few features) go where they are due at once
            mu, b, z = mu + step.mu, b + step.b, z + step.z
            idle += 1
            continue
        t, kink = _line_search(block, labels, values, mu, z, step, model)
        if t > 1.0 and work.usable:  # only by rounding: a Newton step ends at the minimum or before
            t, kink = 1.0, None
        if not np.isfinite(t):
            return Fitted(mu, b, z, labels, "unbounded")
        idle = idle + 1 if kink is None and t * max(force, move) <= _ROUNDING else 0
        mu, b, z = mu + t * step.mu, b + t * step.b, z + t * step.z
        labels = block.relabel(labels, z, 1.0)
        if kink is not None:
            border, row = kink
            if work.add(row, 0.0):
                labels.kink[row] = labels.piece[row] = border
                z[row] = block.borders[border, row]
            else:  # it depends on the held ones: it moves with them, and passes its kink
                labels.piece[row] = border + (1 if step.z[row] > 0.0 else 0)
    return Fitted(mu, b, z, labels, "limit")


def _hold_independent(work: Directions, labels: RowLabels) -> None:
    """Take the held rows into work; those that depend on others are let go."""
    held = labels.held
    work.rebuild(held)
    if work.usable or held.size == 0:
        return
    work.rebuild(np.zeros(0, np.int64))
    for row in held.tolist():
        if not work.add(row, 0.0):
            labels.kink[row] = -1


def _step(work: Directions, mu: Array, rest: Array, off: Array) -> Direction:
    """Newton's step; where no held sample pins the intercepts, f moves first, and they when f rests."""
    model = work.model
    if not work.usable:
        if float(np.abs(rest).max(initial=0.0)) > _ROUNDING * model.force:
            return Direction(rest, np.zeros(model.q), model.apply(rest), True)
        pull = model.B.T @ mu
        if work.rows.size:
            basis = np.linalg.svd(model.B[work.rows])[2][np.linalg.matrix_rank(model.B[work.rows]) :]
            pull = basis.T @ (basis @ pull)
        if float(np.abs(pull).max(initial=0.0)) <= _ROUNDING * model.force:
            pull = np.zeros(model.q)
        return Direction(np.zeros(model.n), pull, model.B @ pull, True)
    step = work.solve(off, -(model.B.T @ mu), rest)
    if not step.converged:
        work.rebuild(work.rows.copy())
        step = work.solve(off, -(model.B.T @ mu), rest)
    return step


def _worst(model: DualModel, values: RowValues, mu: Array, held: IntArray) -> tuple[int, int]:
    """The held row whose multiplier is farthest outside its bounds, and on which side; (-1, 0) when none is."""
    if held.size == 0:
        return -1, 0
    below, above = values.low + mu[held], -mu[held] - values.high
    excess = np.maximum(below, above)
    k = int(np.argmax(excess))
    if excess[k] <= 1e-11 * model.force:
        return -1, 0
    return int(held[k]), 0 if below[k] > above[k] else 1


def _let_go(work: Directions, block: RowBlock, labels: RowLabels, row: int, side: int) -> None:
    block.flip(labels, side, row, 1.0)
    work.remove(row)


def _line_search(
    block: RowBlock, labels: RowLabels, values: RowValues, mu: Array, z: Array, step: Direction, model: DualModel
) -> tuple[float, tuple[int, int] | None]:
    """The minimum along the step: its length, and the (kink, row) at which it lies; inf when there is none."""
    spread = step.z - model.B @ step.b  # Q dmu
    smooth = labels.kink < 0
    dz = np.where(smooth, step.z, 0.0)
    dz[np.abs(dz) <= 1e-14 * (float(np.abs(dz).max(initial=0.0)) + block.scale)] = 0.0  # rounding reaches no kink
    slope = float(spread @ mu) + float(values.gradient @ dz)
    bend = float(spread @ step.mu)
    lengths, jumps, names = [], [], []
    for border in np.flatnonzero(block.kinked).tolist():
        ahead = smooth & np.where(dz > 0.0, labels.piece <= border, labels.piece > border) & (dz != 0.0)
        rows = np.flatnonzero(ahead)
        lengths.append(np.maximum((block.borders[border, rows] - z[rows]) / dz[rows], 0.0))
        v = values.weight[rows] * block.factor[rows]
        jumps.append(v * (block.right[border, rows] - block.left[border, rows]) * np.abs(dz[rows]))
        names.append(np.column_stack([np.full(rows.size, border), rows]))
    t, jump, name = np.concatenate(lengths), np.concatenate(jumps), np.concatenate(names)
    real = jump > 0.0
    t, jump, name = t[real], jump[real], name[real]
    order = np.argsort(t, kind="stable")
    t, jump, name = t[order], jump[order], name[order]
    before = slope + t * bend + np.concatenate([[0.0], np.cumsum(jump)[:-1]]) if t.size else np.zeros(0)
    after = before + jump
    reached = np.flatnonzero(after >= 0.0)
    if reached.size == 0:
        total = slope + float(jump.sum())
        return (-total / bend if bend > 0.0 and total < 0.0 else 0.0 if total >= 0.0 else np.inf), None
    k = int(reached[0])
    if before[k] <= 0.0 or (k == 0 and slope >= 0.0):
        return float(t[k]), (int(name[k, 0]), int(name[k, 1]))
    passed = slope + float(jump[:k].sum())
    return (max(-passed / bend, 0.0) if bend > 0.0 else float(t[k])), None

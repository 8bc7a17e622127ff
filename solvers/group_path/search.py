"""Minima at one age: the w-problem at fixed weights, and alternate convex search down to a partial optimum.

In: a model, an age, a start. Out: a `Spot` exact to rounding, or None.

The w-problem is convex: accelerated proximal steps (Beck and Teboulle 2009, restarted where they rise) find which groups are
zero, Newton with these labels ends it exactly; a label whose gap is negative there is flipped, the worst first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.group_path.model import GroupModel
from spdsl.solvers.group_path.state import Spot, State, flip, from_x, gaps_of, newton, residual

__all__ = ["Found", "RoundsSpentError", "minimum", "search"]

_STATIONARY = 1e-11  # scaled residual of a minimum
_FLIPS = 40

Found = tuple[Spot, int]


class RoundsSpentError(Exception):
    """Alternate search was stopped before it came to rest; the message says how far it was."""


def _finished(state: State) -> Spot | None:
    """Newton from a state, labels flipped where a gap is negative; None where that leads nowhere."""
    for _ in range(_FLIPS):
        spot = newton(state, 12)
        if spot is None:
            return None
        if residual(spot.state, spot.evaluation) <= _STATIONARY:
            gaps, _ = gaps_of(spot)
            if np.all(gaps >= -1e-9):
                return spot
        gaps, _ = gaps_of(spot)
        worst = int(np.argmin(gaps))
        if gaps[worst] >= 0.0:
            return None
        state = flip(spot.state, spot.evaluation.gradient, worst)
    return None


def minimum(model: GroupModel, weights: Array, x: Array, labels: State | None = None) -> Spot | None:
    """The optimum of the w-problem at weights (n,), from x; None when it isn't reached (no finite optimum)."""
    convex = model.at_weights(weights)
    if labels is not None:
        found = _finished(replace(labels, model=convex))
        if found is not None:
            return found
    step, before, momentum, ahead = 1.0 / max(model.system.unit, 1e-300), x, 1.0, x
    longest = step
    for iteration in range(1, 20_001):
        value, gradient = convex.value(ahead, weights), convex.smooth(ahead, 1.0).gradient
        for _ in range(100):
            moved = convex.prox(ahead - step * gradient, step)
            dx = moved - ahead
            rise = convex.value(moved, weights) - value - float(gradient @ dx)
            if rise <= float(dx @ dx) / (2.0 * step) + 1e-14 * abs(value):
                break
            step *= 0.5
        if float((ahead - moved) @ (moved - before)) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = moved + (momentum - 1.0) / following * (moved - before)
        before, momentum, step = moved, following, 1.1 * step
        if not np.all(np.isfinite(moved)) or step > 1e12 * longest:
            return None  # it falls without bound
        if iteration % 50 == 0 and (iteration <= 500 or iteration % 500 == 0):
            found = _finished(from_x(convex, 1.0, moved))
            if found is not None:
                return found
    return None


def search(model: GroupModel, age: float, x: Array, labels: State | None = None, most: int = 2000) -> Found | None:
    """Alternate convex search from x; where rounds contract, Newton takes them to the partial optimum that they approach.

    None where a w-problem has no optimum that could be reached.

    Raises
    ------
    RoundsSpentError
        When `most` rounds don't settle.
    """
    scale, last = model.system.blocks[0].scale, np.inf
    for rounds in range(1, most + 1):
        spot = minimum(model, model.system.weights(x, age), x, labels)
        if spot is None:
            return None
        labels = replace(spot.state, model=model, age=age)
        moved = _distance(model, labels.x, x) / scale
        x = labels.x
        if moved <= 1e-2 and (moved < 0.95 * last or moved <= 1e-9):
            ended = _finished(labels)
            reach = 20.0 * moved * max(1.0, 1.0 / max(1.0 - (moved / last if last > 0.0 else 0.0), 1e-3)) + 1e-9
            if ended is not None and ended.definite and _distance(model, ended.state.x, x) / scale <= reach:
                return ended, rounds
        last = moved
    raise RoundsSpentError(f"{most} rounds don't settle, predictions still move by {last:.1e} of their scale")


def _distance(model: GroupModel, first: Array, second: Array) -> float:
    return float(np.abs(np.asarray(model.system.blocks[0].A @ (first - second))).max(initial=0.0))

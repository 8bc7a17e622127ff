"""Choosing gamma, the scale of the steps, on short trial runs.

In: a function that runs a method for some steps at a given gamma and scores it. Out: the best gamma of a geometric
grid. The best gamma hardly depends on the length of a run, as gamma_k already grows like the rates ask for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spdsl.solvers.dual_averaging.linear import LinearModel

__all__ = ["best_gamma", "natural_gamma"]


def natural_gamma(model: LinearModel) -> float:
    """Root mean square of a stochastic gradient at 0: gamma's natural unit, as gamma d(w*) ~ |g|^2 / gamma."""
    design = model.design
    slopes = model.slopes_at(np.broadcast_to(design.offset, (design.shape[0],)).astype(float))
    if design.width:
        squares = np.einsum("ij,ij->i", design.data.reshape(design.shape), design.data.reshape(design.shape))
    else:
        ends = np.concatenate([[0.0], np.cumsum(design.data.astype(float) ** 2)])
        squares = ends[design.indptr[1:]] - ends[design.indptr[:-1]]
    pairs = design.row_scale.reshape(-1, 2)
    size = float(np.sqrt(np.mean((model.scale * slopes) ** 2 * (pairs[:, 0] ** 2 * squares + pairs[:, 1] ** 2))))
    return size if size > 0.0 else 1.0


def best_gamma(unit: float, score: Callable[[float], float]) -> tuple[float, int]:
    """The gamma with the least score, and the number of trials.

    A walk over factors of 4 from `unit`, downhill until the score rises on both sides, then one half-step to each side.
    """
    known: dict[int, float] = {}

    def at(half_steps: int) -> float:
        if half_steps not in known:
            value = score(unit * 2.0**half_steps)
            known[half_steps] = value if np.isfinite(value) else np.inf
        return known[half_steps]

    place = 0
    for _ in range(14):
        best = min((place - 2, place, place + 2), key=lambda item: (at(item), abs(item - place)))
        if best == place:
            break
        place = best
    place = min((place - 1, place, place + 1), key=lambda item: (at(item), abs(item - place)))
    return unit * 2.0**place, len(known)

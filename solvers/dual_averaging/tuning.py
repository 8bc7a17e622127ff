"""Choosing gamma, the scale of the steps, on short trial runs.

In: the settled method and the rows that it will draw. Out: the best gamma of a geometric grid. Trials are short, as
gamma_k already grows like the rates ask for, and their ends are scored on a sample of the rows: else the trials would
take longer than the run to an answer of two or three digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from spdsl.solvers.dual_averaging.linear import LinearModel
from spdsl.solvers.dual_averaging.sampling import Sampler
from spdsl.solvers.dual_averaging.setting import Setting

__all__ = ["best_gamma", "natural_gamma", "sample_of", "tuned_gamma"]

_SCORED = 4096  # rows that trials are scored on
_START = -4  # half-steps of 2 from the natural unit, where the walk begins
_LONG, _LESS = 8, 2.0**-0.5  # runs of so many times a trial's steps take so much of the gamma that trials find


def tuned_gamma(setting: Setting, sampler: Sampler, target: int) -> tuple[float, int]:
    """The gamma for a run of `target` steps, and the number of trial runs it took.

    The best gamma falls slowly as runs lengthen, so interpolated runs take less than the trials find (not those with stated
    noise). Over six seeds .7 of it ended ten passes nearer the optimum on a9a, rcv1_vw_sample, reuters21578_earnacq and the
    sparse synthetic set (gaps by .65 to .86); half is better still on three of them, and worse on a9a (by 1.4).
    """
    model, batch = setting.model, setting.options.batch
    rows = model.design.shape[0]
    trial = max(1, min(target, 100_000 // batch, max(rows // (16 * batch), 2_000)))
    if setting.dense:
        trial = max(1, min(trial, max(rows // (4 * batch), 500), 300))
    drawn = sampler.rows(0, trial * batch)
    sample, weight = model, 1.0
    if rows > _SCORED:
        sample = sample_of(model, np.sort(np.random.default_rng(setting.options.seed).choice(rows, _SCORED, False)))
        weight = rows / _SCORED

    def score(gamma: float) -> float:
        engine = setting.engine(gamma)
        with np.errstate(all="ignore"):
            engine.advance(drawn)
            w, b = setting.point(engine)
            return weight * float(np.sum(sample.losses(w, b))) + model.penalty(w, b)

    found, trials = best_gamma(natural_gamma(sample), score)
    noisy = setting.options.gradient_noise is not None
    long = setting.primal and not setting.dense and not noisy and target >= _LONG * trial
    return (_LESS * found if long else found), trials


def sample_of(model: LinearModel, chosen: Any) -> LinearModel:
    """The same model with the rows `chosen` (int64); sums over samples are then sums over these."""
    design = model.design
    if design.width:
        data = design.data.reshape(design.shape)[chosen]
        parts = {"data": data.ravel(), "indptr": design.indptr, "indices": design.indices}
    else:
        lengths = design.indptr[chosen + 1] - design.indptr[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(design.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        parts = {"data": design.data[places], "indices": design.indices[places], "indptr": indptr}
    factors, offset = design.row_scale, design.offset
    smaller = replace(
        design,
        **parts,
        shape=(len(chosen), design.shape[1]),
        row_scale=factors if factors.size == 2 else factors.reshape(-1, 2)[chosen].ravel(),
        offset=offset if offset.size == 1 else offset[chosen],
    )
    parameters = tuple(np.asarray(part)[chosen] if np.ndim(part) else part for part in model.parameters)
    return replace(model, design=smaller, parameters=parameters)


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

    A walk over factors of 4 from a sixteenth of `unit`, near which sparse sets have theirs, downhill until the score rises on
    both sides, then one half-step to each side.
    """
    known: dict[int, float] = {}

    def at(half_steps: int) -> float:
        if half_steps not in known:
            value = score(unit * 2.0**half_steps)
            known[half_steps] = value if np.isfinite(value) else np.inf
        return known[half_steps]

    place = _START
    for _ in range(14):
        best = min((place - 2, place, place + 2), key=lambda item: (at(item), abs(item - place)))
        if best == place:
            break
        place = best
    place = min((place - 1, place, place + 1), key=lambda item: (at(item), abs(item - place)))
    return unit * 2.0**place, len(known)

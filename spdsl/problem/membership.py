"""Which samples are *in* at an age: the one reading of it, for quantiles of ages, histories, tables and figures.

In: a bound problem, its losses and an age. Out: a mask, or the share. A sample is in when v* > 0, where v* reaches 0 at a
finite loss; else when its loss is below the last border of v* (log and Huber weights: v* = 1); and where v* has no border
at all (Welsch, Cauchy) when v* >= 1/2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spdsl.problem.functions import Array

if TYPE_CHECKING:
    from spdsl.problem.bound import BoundProblem

__all__ = ["in_share", "last_border", "samples_in"]


def samples_in(bound: BoundProblem, losses: Array, age: float | None) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which samples are in at an age (n,), bool; all of them in a model without ages."""
    if bound.problem.self_paced is None or age is None:
        return np.ones(losses.shape, bool)
    border = last_border(bound, age)
    if border is None:
        return bound.weights(losses, age) >= 0.5
    return losses < border  # below it v* > 0, where it reaches 0 there


def in_share(bound: BoundProblem, losses: Array, age: float | None) -> float:
    """The share of samples that are in; 1 where there are none."""
    return float(np.mean(samples_in(bound, losses, age))) if losses.size else 1.0


def last_border(bound: BoundProblem, age: float) -> float | None:
    """The largest finite loss at which v* changes its formula; None where there is none."""
    self_paced = bound.problem.self_paced
    if self_paced is None or self_paced.kernel is None:
        return np.inf
    borders = [float(border) for border in self_paced.kernel.breaks(age, *bound.weight_parameters())]
    finite = [border for border in borders if np.isfinite(border)]
    return finite[-1] if finite else None

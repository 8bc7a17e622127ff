"""The ages of a run: the model's `age` statement in numbers, and where its interval lies among the losses.

In: a bound problem and the losses of the fit that starts the run. Out: the lower and upper age, and a sentence when the
interval takes in no sample, or every sample from its start. What *in* means is said by `spdsl.problem.membership`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, SolverError
from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.problem.membership import in_share, last_border, samples_in

__all__ = [
    "Ages",
    "age_refusals",
    "emptied_class",
    "entry_age",
    "in_share",
    "last_border",
    "resolve_ages",
    "samples_in",
]


@dataclass(frozen=True)
class Ages:
    """The interval of ages (equal ends for a fixed age), and what is to be said of it ("" if nothing)."""

    lower: float
    upper: float
    message: str = ""

    @property
    def is_fixed(self) -> bool:
        """One age only."""
        return self.lower == self.upper

    def grid(self, count: int) -> Array:
        """So many equally spaced ages from end to end; the one age when it is fixed."""
        return np.array([self.lower]) if self.is_fixed else np.linspace(self.lower, self.upper, count)

    def share(self, age: float) -> float:
        """How much of the interval lies below an age, in [0, 1]."""
        share = (age - self.lower) / (self.upper - self.lower) if self.upper > self.lower else 1.0
        return min(max(share, 0.0), 1.0)


def age_refusals(problem: Problem, lacking: str) -> list[str]:
    """Why a problem has no weights that move with an age; `lacking` says what a model without `self_paced` lacks."""
    if problem.self_paced is None:
        return [f"the model has no self_paced term, so {lacking}"]
    if problem.age is None:
        return ["the model has no age statement"]
    if problem.self_paced.kernel is None:
        return ["no sample weights were derived from the self-paced term"]
    return []


def entry_age(bound: BoundProblem, loss: float) -> float:
    """The age beyond which a sample of this loss is in: at that age itself its loss is on the border of v*.

    Found by bisection: v* rises with the age (Definition 2, axiom iii). 0 when it is in at every age, inf when at none.
    """
    self_paced = bound.problem.self_paced
    assert self_paced is not None
    low, high = self_paced.age_range

    def is_in(age: float) -> bool:
        return bool(samples_in(bound, np.array([loss]), age)[0])

    smallest = max(low * (1.0 + 1e-12), 1e-150)
    largest = min(high * (1.0 - 1e-12), 1e150)
    if is_in(smallest):
        return 0.0
    if not is_in(largest):
        return float("inf")
    below, above = smallest, largest
    while above > below * (1.0 + 4e-16):
        middle = float(np.sqrt(below) * np.sqrt(above)) if above > 2.0 * below else 0.5 * (below + above)
        if not below < middle < above:
            break
        if is_in(middle):
            above = middle
        else:
            below = middle
    if self_paced.kernel is not None:  # where a border is the age itself, say exactly that age
        for exact in (loss, float(np.sqrt(loss))):
            if abs(exact - above) <= 1e-14 * above:
                return exact
    return above


def resolve_ages(bound: BoundProblem, losses: Array) -> Ages:
    """The model's ages, quantiles by the losses of the fit that starts the run.

    Raises
    ------
    SolverError
        When the ages are out of order, or outside those for which the SP-regularizer is one.
    """
    age = bound.problem.age
    self_paced = bound.problem.self_paced
    assert age is not None
    assert self_paced is not None
    lower = float(bound.evaluate(age.lower))
    upper = lower if age.upper is None else float(bound.evaluate(age.upper))
    if age.kind == "quantiles":
        lower, upper = _from_quantiles(bound, losses, lower, upper)
    low, high = self_paced.age_range
    if not low < lower <= upper < high or not np.isfinite(upper):
        raise SolverError(
            Diagnostic(
                "SPL506",
                f"the ages [{lower:.6g}, {upper:.6g}] are not an interval inside ({low:.6g}, {high:.6g}), the ages at "
                f"which `{self_paced.name}` is a self-paced regularizer",
            )
        )
    return Ages(lower, upper, _where_among(bound, losses, lower, upper))


def _from_quantiles(bound: BoundProblem, losses: Array, first: float, last: float) -> tuple[float, float]:
    """The ages from which on the shares `first` and `last` of the samples are in."""
    if not 0.0 <= first <= last <= 1.0:
        raise SolverError(Diagnostic("SPL506", f"quantiles({first:.6g}, {last:.6g}) need 0 <= first <= last <= 1"))
    at_zero = np.abs(bound.losses(np.zeros(bound.layout.size)))  # of a perfect fit, all that is left is rounding
    rounding = max(1e-12 * losses.max(initial=0.0), 1e-14 * np.max(at_zero, initial=0.0, where=np.isfinite(at_zero)))
    ordered = np.sort(np.where(losses > rounding, losses, 0.0))  # rounding is no loss
    n = len(ordered)
    ages = []
    for share in (first, last):
        rank = max(int(np.ceil(share * n - 1e-9)), 1)
        ages.append(entry_age(bound, float(ordered[rank - 1])))
    lower, upper = ages
    positive = ordered[ordered > 0.0]
    if lower == 0.0 and positive.size:  # a share of the losses is 0: start where the first of the others comes in
        lower = entry_age(bound, float(positive[0]))
    if not (0.0 < lower <= upper and np.isfinite(upper)):
        raise SolverError(
            Diagnostic(
                "SPL506",
                f"no ages take in shares {first:.6g} to {last:.6g} of the samples: under the starting fit the losses "
                f"range from {ordered[0]:.6g} to {ordered[-1]:.6g}",
                help=("give the ages in the loss's own units: `age lambda in [a, b]`",),
            )
        )
    if lower == upper and first < last:  # all losses that count are equal: go on to where these have weight
        upper = 2.0 * lower
    return lower, upper


def _where_among(bound: BoundProblem, losses: Array, lower: float, upper: float) -> str:
    """What a user should know when the interval misses the losses."""
    spread = f"under the starting fit the losses range from {losses.min():.6g} to {losses.max():.6g}"
    interval = f"the age {lower:.6g}" if lower == upper else f"the age interval [{lower:.6g}, {upper:.6g}]"
    if not samples_in(bound, losses, upper).any():
        return f"{interval} lies below every loss, so no sample is in at its start; {spread}"
    if lower < upper and samples_in(bound, losses, lower).all():
        return f"{interval} lies above every loss, so every sample is in throughout; {spread}"
    return ""


def emptied_class(bound: BoundProblem, ages: Array, inside: Iterable[np.ndarray[Any, np.dtype[np.bool_]]]) -> str:
    """What a user should know when at some of the ages every sample that is in is of one class ("" when at none).

    Parameters
    ----------
    ages : array (k,), ascending
    inside : k bool arrays (n,)
        Which samples are in at each age; looked at only when the samples have classes.
    """
    loss = bound.problem.loss
    assert loss is not None
    for item in bound.problem.data:
        if item.kind != "labels" or item.dims != (loss.rows,):
            continue
        y = np.asarray(bound.data[item.name])
        counts = [(int(np.sum(y[mask] > 0.0)), int(np.sum(mask))) for mask in inside]
        alone = [k for k, (positive, total) in enumerate(counts) if total and positive in (0, total)]
        if not alone or np.unique(y).size == 1:
            return ""
        where = f"the age {ages[alone[0]]:.6g}"
        if len(alone) > 1:
            where = f"{len(alone)} of {len(ages)} ages between {ages[alone[0]]:.6g} and {ages[alone[-1]]:.6g}"
        which = " or ".join(f"{value:g}" for value in sorted({1.0 if counts[k][0] else -1.0 for k in alone}))
        return (
            f"at {where} all samples that are in are of one class (`{item.name}` = {which}): "
            "nothing there holds an intercept back, which grows until the slope of the loss is rounding"
        )
    return ""

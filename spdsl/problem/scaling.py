"""Standardizing data: every column to mean 0 and standard deviation 1, remembered so that later data get the same.

In: a `BoundProblem` and names of its data. Out: a `BoundProblem` with scaled arrays and their `Scaling`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spdsl.diagnostics import DataError, Diagnostic, UsageError, nearest_name
from spdsl.problem.functions import Array

if TYPE_CHECKING:
    from spdsl.problem.bound import BoundProblem

__all__ = ["Scaling", "standardize"]


@dataclass(frozen=True, eq=False)
class Scaling:
    """What was taken off and divided by: scalars for a vector, arrays (d,) for a matrix's columns."""

    mean: Array = field(repr=False)
    deviation: Array = field(repr=False)

    def apply(self, value: Array) -> Array:
        """The same scaling for other data of the same columns."""
        return np.asarray((value - self.mean) / self.deviation)

    def undo(self, value: Array) -> Array:
        """Back in the data's own units."""
        return np.asarray(value * self.deviation + self.mean)


def standardize(bound: BoundProblem, names: Iterable[str]) -> BoundProblem:
    """The problem with each named vector and each column of each named matrix at mean 0 and deviation 1.

    The deviation is that of the population (ddof = 0), as in scikit-learn; a constant column is centred only.

    Raises
    ------
    UsageError
        For a name that is no vector or matrix of the model's data.
    DataError
        For a sparse matrix, which centring would fill.
    """
    kinds = {item.name: item.kind for item in bound.problem.data}
    data: dict[str, Any] = dict(bound.data)
    scaling = dict(bound.scaling)
    for name in dict.fromkeys(names):
        if kinds.get(name) not in ("vector", "matrix"):
            raise _not_scalable(name, kinds)
        value = data[name]
        if hasattr(value, "tocsr"):
            raise DataError(
                Diagnostic(
                    "SPL430",
                    f"{name} is sparse, and centring its columns would fill it",
                    place=bound.origin.get(name, ""),
                    help=("scale its columns beforehand without centring, or pass it as a dense array",),
                )
            )
        mean = value.mean(axis=0)
        deviation = value.std(axis=0)
        flat = deviation <= 10 * np.finfo(float).eps * np.maximum(np.abs(mean), np.finfo(float).tiny)
        scaling[name] = Scaling(mean, np.where(flat, 1.0, deviation))
        data[name] = scaling[name].apply(value)
    return replace(bound, data=data, scaling=scaling)


def _not_scalable(name: str, kinds: Mapping[str, str]) -> UsageError:
    able = [known for known, kind in kinds.items() if kind in ("vector", "matrix")]
    what = f"is of type {kinds[name]}" if name in kinds else "is not declared under `data`"
    near = nearest_name(name, able)
    return UsageError(
        Diagnostic(
            "SPL430",
            f"`{name}` can't be standardized: it {what}",
            help=((f"did you mean `{near}`?",) if near else ())
            + (f"vectors and matrices of this model: {', '.join(able) or 'none'}",),
        )
    )

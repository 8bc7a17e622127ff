"""The canonical regularizers: each is `coefficient` times a convex function of an affine map of the variables.

norm1, sum_squares, norm(.)^2, sum(huber(.)) and the like are all `Separable` (their scalar function is derived,
never looked up);
the others couple coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from spdsl.problem.expressions import Expression
from spdsl.problem.functions import ScalarFunction
from spdsl.problem.predictors import Predictor

__all__ = ["GroupNorm", "KernelNorm", "LinearTerm", "Norm", "Regularizer", "Separable", "TraceNorm"]


@dataclass(frozen=True)
class Separable:
    """coefficient * sum_k psi(u_k), u = predictor; psi is PC^r. L1: psi = |u|; squared L2: psi = u^2."""

    coefficient: Expression
    function: ScalarFunction
    predictor: Predictor


@dataclass(frozen=True)
class Norm:
    """coefficient * ||u||_2 (Frobenius for a matrix), not squared."""

    coefficient: Expression
    predictor: Predictor


@dataclass(frozen=True)
class GroupNorm:
    """coefficient * sum over groups g of sqrt(|g|)-free ||u_g||_2; `groups` evaluates to an int array (m,) of
    group labels, or to one number, the length of consecutive groups (see `BoundProblem.group_labels`)."""

    coefficient: Expression
    predictor: Predictor
    groups: Expression


@dataclass(frozen=True)
class TraceNorm:
    """coefficient * sum of singular values of a symmetric variable."""

    coefficient: Expression
    variable: str


@dataclass(frozen=True)
class KernelNorm:
    """coefficient * ||f||_H^2 of an rkhs variable: alpha' K alpha in its coefficients."""

    coefficient: Expression
    variable: str


@dataclass(frozen=True)
class LinearTerm:
    """coefficient * sum of the rows of an affine map (trace(M), c @ w)."""

    coefficient: Expression
    predictor: Predictor


Regularizer: TypeAlias = Separable | Norm | GroupNorm | TraceNorm | KernelNorm | LinearTerm

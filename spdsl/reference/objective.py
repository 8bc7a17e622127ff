"""The objective's parts evaluated anew: losses and regularizers from the formulas' atoms and the affine maps.

In: a `BoundProblem` and a point. Out: numbers that share no code with `BoundProblem.objective` nor with the kernels.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem import BoundProblem, GroupNorm, KernelNorm, LinearTerm, Norm, Regularizer, Separable, TraceNorm
from spdsl.problem.functions import Array
from spdsl.reference.affine import affine_map
from spdsl.reference.scalar import value

__all__ = ["recomputed_losses", "recomputed_regularization"]


def recomputed_losses(bound: BoundProblem, x: Array) -> Array:
    """l_i(x) (n,)."""
    loss = bound.problem.loss
    if loss is None:
        return np.zeros(0)
    arguments = [affine_map(bound, predictor)(x) for predictor in loss.predictors]
    return value(loss.function, arguments, bound.parameters_of(loss.function))


def recomputed_regularization(bound: BoundProblem, x: Array) -> float:
    """The sum of all regularizers."""
    return float(sum(_regularizer(bound, item, x) for item in bound.problem.regularizers))


def _regularizer(bound: BoundProblem, item: Regularizer, x: Array) -> float:
    coefficient = float(bound.evaluate(item.coefficient))
    if isinstance(item, TraceNorm):
        d = bound.layout.shapes[item.variable][0]
        matrix = x[bound.layout.slices[item.variable]].reshape(d, d)
        return coefficient * float(np.linalg.svd(matrix, compute_uv=False).sum())
    if isinstance(item, KernelNorm):
        alpha = x[bound.layout.slices[item.variable]]
        return coefficient * float(alpha @ bound.gram(item.variable) @ alpha)
    u = affine_map(bound, item.predictor)(x)
    if isinstance(item, Separable):
        return coefficient * float(value(item.function, [u], bound.parameters_of(item.function)).sum())
    if isinstance(item, Norm):
        return coefficient * float(np.sqrt(u @ u))
    if isinstance(item, GroupNorm):
        groups = bound.group_labels(item, u.size)
        return coefficient * sum(float(np.sqrt(np.sum(u[groups == group] ** 2))) for group in np.unique(groups))
    assert isinstance(item, LinearTerm)
    return coefficient * float(u.sum())

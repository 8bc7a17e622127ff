"""How far a point is from satisfying the constraints, relative to the size of what they compare.

In: a `BoundProblem` and a point. Out: the largest relative violation. Supports: see `spdsl.reference.support`.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem import AffineConstraint, BallConstraint, BoundProblem, Constraint, SemidefiniteConstraint
from spdsl.problem.functions import Array
from spdsl.reference.affine import affine_map

__all__ = ["infeasibility"]

TINY = 1e-300


def infeasibility(bound: BoundProblem, x: Array) -> float:
    """The largest violation of a constraint over the largest of its terms; an asymmetric matrix counts as one."""
    violations = [_violation(bound, item, x) for item in bound.problem.constraints]
    for item in bound.problem.variables:
        if item.kind == "symmetric":
            d = bound.layout.shapes[item.name][0]
            matrix = x[bound.layout.slices[item.name]].reshape(d, d)
            violations.append(float(np.abs(matrix - matrix.T).max()) / max(float(np.abs(matrix).max()), TINY))
    return max(violations, default=0.0)


def _violation(bound: BoundProblem, constraint: Constraint, x: Array) -> float:
    if isinstance(constraint, AffineConstraint):
        mapped = affine_map(bound, constraint.predictor)
        u = mapped(x)
        over = np.abs(u) if constraint.relation == "==" else np.maximum(u, 0.0)
        return float(over.max(initial=0.0)) / max(mapped.terms_size(x), TINY)
    if isinstance(constraint, BallConstraint):
        u = affine_map(bound, constraint.predictor)(x)
        radius = float(bound.evaluate(constraint.radius))
        order = {"l1": 1, "l2": 2, "linf": np.inf}[constraint.norm]
        norm = float(np.linalg.norm(u, order))
        return max(norm - radius, 0.0) / max(norm, abs(radius), TINY)
    if isinstance(constraint, SemidefiniteConstraint):
        d = bound.layout.shapes[constraint.variable][0]
        matrix = x[bound.layout.slices[constraint.variable]].reshape(d, d)
        values = np.linalg.eigvalsh((matrix + matrix.T) / 2.0)
        return max(-float(values[0]), 0.0) / max(float(np.abs(values).max()), TINY)
    return 0.0

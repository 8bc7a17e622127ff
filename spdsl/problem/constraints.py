"""The canonical constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from spdsl.problem.expressions import Expression
from spdsl.problem.predictors import Predictor

__all__ = ["AffineConstraint", "BallConstraint", "Constraint", "SemidefiniteConstraint", "SupportConstraint"]


@dataclass(frozen=True)
class AffineConstraint:
    """u <= 0 or u == 0 in every row of the predictor (``w >= a`` becomes ``a - w <= 0``)."""

    predictor: Predictor
    relation: Literal["<=", "=="]
    text: str = ""


@dataclass(frozen=True)
class BallConstraint:
    """||u||_norm <= radius."""

    predictor: Predictor
    norm: Literal["l1", "l2", "linf"]
    radius: Expression
    text: str = ""


@dataclass(frozen=True)
class SemidefiniteConstraint:
    """A symmetric variable is positive semidefinite."""

    variable: str
    text: str = ""


@dataclass(frozen=True)
class SupportConstraint:
    """The support of a vector variable lies in a set.

    `kind` is ``sparse``, ``connected``, ``groups`` or ``union_of``; `graph` names the graph of ``connected``; `options` hold the
    other arguments by name (size, components, budget, groups, supports, ...), as expressions over data and parameters.
    """

    variable: str
    kind: Literal["sparse", "connected", "groups", "union_of"]
    graph: str | None = None
    options: dict[str, Expression] = field(default_factory=dict)
    text: str = ""


Constraint: TypeAlias = AffineConstraint | BallConstraint | SemidefiniteConstraint | SupportConstraint

"""`Problem`: loss + regularizers + self-paced regularizer, subject to constraints, with symbolic sizes and no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spdsl.diagnostics import Diagnostic
from spdsl.problem.constraints import Constraint
from spdsl.problem.expressions import Expression
from spdsl.problem.functions import ScalarFunction
from spdsl.problem.predictors import Predictor
from spdsl.problem.regularizers import Regularizer
from spdsl.problem.requirements import Range, Requirement
from spdsl.problem.self_paced import SelfPaced

__all__ = [
    "Age",
    "DataDeclaration",
    "Loss",
    "ParameterDeclaration",
    "Problem",
    "SolveRequest",
    "VariableDeclaration",
]


@dataclass(frozen=True)
class DataDeclaration:
    """A name under ``data``; `dims` are sizes' names or literal numbers as text, such as ("n", "d") or ("n", "3")."""

    name: str
    kind: Literal["scalar", "vector", "matrix", "labels", "symmetric", "graph"]
    dims: tuple[str, ...]


@dataclass(frozen=True)
class ParameterDeclaration:
    """A name under ``parameter``; `default` is over earlier parameters and sizes, None when it must be given.

    `kind` is scalar unless declared otherwise (a vector or matrix parameter is given like data).
    """

    name: str
    default: Expression | None
    kind: Literal["scalar", "vector", "matrix"] = "scalar"
    dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class VariableDeclaration:
    """A name under ``variable``. For ``rkhs``, `kernel` is (name, arguments) and `points` names the data matrix."""

    name: str
    kind: Literal["scalar", "vector", "matrix", "symmetric", "rkhs"]
    dims: tuple[str, ...]
    kernel: tuple[str, tuple[tuple[str, Expression], ...]] | None = None
    points: Expression | None = None


@dataclass(frozen=True)
class Age:
    """The age statement: an interval (a path), a fixed value, or an interval in quantiles of the starting losses."""

    name: str
    kind: Literal["interval", "fixed", "quantiles"]
    lower: Expression
    upper: Expression | None = None


@dataclass(frozen=True)
class Loss:
    """One loss per sample: phi(z_1, ..., z_k) with z_j the predictors; its sum over samples is minimized.

    `elementwise` is False when the model wrote a scalar (already summed) loss: then the rows were recovered from
    the sum
    where possible.
    """

    predictors: tuple[Predictor, ...]
    function: ScalarFunction
    rows: str
    elementwise: bool = True


@dataclass(frozen=True)
class SolveRequest:
    """The ``solve`` statement: a back end's name and its options (numbers, booleans, texts, or (name, args,
    kwargs))."""

    backend: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """A learning problem in canonical form."""

    name: str
    source: str  # the model file's text: what a saved result needs to be solved again
    data: tuple[DataDeclaration, ...]
    parameters: tuple[ParameterDeclaration, ...]
    variables: tuple[VariableDeclaration, ...]
    loss: Loss | None
    regularizers: tuple[Regularizer, ...] = ()
    self_paced: SelfPaced | None = None
    age: Age | None = None
    constraints: tuple[Constraint, ...] = ()
    request: SolveRequest | None = None
    assumptions: tuple[str, ...] = ()  # what `assume convex` was said of, in the model's words
    labels: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()  # of the checker and of the derivation
    requirements: tuple[Requirement | Range, ...] = ()  # what proofs took for granted; see `requirements.unmet`
    derived_for: Mapping[str, float] | None = None  # the values it was derived for, None: the parameters' defaults

    def variable(self, name: str) -> VariableDeclaration:
        """The declaration of a variable."""
        return next(item for item in self.variables if item.name == name)

"""What a checked model is: tables of names, expanded and typed expressions, verdicts and warnings.

In: a tree that the checker found right. Out: everything that the compiler needs to lower it, with no names
left to look up and no `define` left to expand (except the one that `self_paced` names).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from spdsl.diagnostics import Diagnostic, Span
from spdsl.language.record import Record, place
from spdsl.language.tree import (
    AgeStatement,
    Call,
    DataDeclaration,
    DefineStatement,
    Expression,
    Model,
    Name,
    ParameterDeclaration,
    VariableDeclaration,
)
from spdsl.language.types import Dimension, Kind, Sign, Type, Verdict

__all__ = [
    "Age",
    "AgeForm",
    "CheckedModel",
    "Constraint",
    "DataEntry",
    "DefineEntry",
    "Inequality",
    "Kernel",
    "Objective",
    "OptionCall",
    "OptionValue",
    "ParameterEntry",
    "RangeCondition",
    "RequestedOption",
    "SelfPaced",
    "SignCondition",
    "SizeEntry",
    "SizeUse",
    "SolveRequest",
    "SupportConstraint",
    "VariableEntry",
]


class DataEntry(Record):
    """A declared datum: kind SCALAR, VECTOR, MATRIX, LABELS, SYMMETRIC or GRAPH."""

    name: str
    kind: Kind
    shape: tuple[Dimension, ...]
    declaration: DataDeclaration


class ParameterEntry(Record):
    """A parameter; its default may use numbers, sizes and earlier parameters."""

    name: str
    default: Expression
    declaration: ParameterDeclaration


class DefineEntry(Record):
    """A `define`; the body is as written (calls of other `define`s not expanded)."""

    name: str
    arguments: tuple[str, ...]
    body: Expression
    declaration: DefineStatement


class Kernel(Record):
    """The kernel of an rkhs variable: `rbf(gamma)`, `polynomial(degree, coef0)`, `linear()`,
    `precomputed(K)`.

    `arguments` holds one scalar expression a kernel parameter, by name, defaults filled in; for `precomputed`
    the `Name` of a data matrix under ``"K"``.
    """

    name: str
    arguments: Mapping[str, Expression]
    span: Span = place(kw_only=True)


class VariableEntry(Record):
    """A variable: kind SCALAR, VECTOR, MATRIX, SYMMETRIC or RKHS (then with `points` = the data matrix,
    `kernel`).
    """

    name: str
    kind: Kind
    shape: tuple[Dimension, ...]
    declaration: VariableDeclaration
    points: str | None = None
    kernel: Kernel | None = None


class SizeUse(Record):
    """Where a size occurs: axis `axis` (from 0) of the datum or variable `name`."""

    name: str
    axis: int
    span: Span = place(kw_only=True)


class SizeEntry(Record):
    """A symbolic size and all the declarations that mention it."""

    name: str
    uses: tuple[SizeUse, ...]


class AgeForm(Enum):
    """How the ages are given."""

    INTERVAL = "interval"
    QUANTILES = "quantiles"
    FIXED = "fixed"


class Age(Record):
    """The age; `low is high` for a fixed one. Both are constant scalar expressions of parameters and sizes."""

    name: str
    form: AgeForm
    low: Expression
    high: Expression
    statement: AgeStatement


class SignCondition(Record):
    """A constant of parameters on whose sign (NONNEGATIVE or NONPOSITIVE) a verdict rests, such as ``1 - rho``."""

    expression: Expression
    sign: Sign


class RangeCondition(Record):
    """An argument that depends on names and has to lie in a range, such as tau of `quantile` between 0 and 1.

    The defaults lie in it; the values of a run may not. `what` and `wanted` are the halves of the sentence to say then.
    """

    expression: Expression
    low: float | None
    high: float | None
    open_low: bool
    what: str
    wanted: str


class Objective(Record):
    """One `loss` or `regularizer` statement.

    `expression` has every `define` expanded; a loss is scalar only without `self_paced`, else a vector with
    one element a sample. `written` is the expression as the user wrote it. The verdicts CONVEX
    and UNDECIDED rest on `needs_nonnegative`: data (sample weights, say) that must be >= 0 everywhere, which only
    binding can tell.
    """

    expression: Expression
    verdict: Verdict
    assume_convex: bool
    written: Expression
    needs_nonnegative: frozenset[str] = frozenset()
    span: Span = place(kw_only=True)


class SelfPaced(Record):
    """`self_paced name(age, ...)`.

    For a built-in, `define` is None and `options` holds its parameters by name (``gamma`` of mixture, ``a``
    of log, ``t`` of polynomial), defaults filled in. For a user's f, `define` has v as its first and the age
    as its second argument, `body` is f with every other `define` expanded, over the names
    `define.arguments[:2]`, and `options` gives the remaining arguments by name. `age` is the expression given
    for the age (the age's name).
    """

    name: str
    age: Expression
    options: Mapping[str, Expression]
    define: DefineEntry | None
    body: Expression | None
    span: Span = place(kw_only=True)


class Inequality(Record):
    """`left operator right` with operator ``<=``, ``>=``, ``==`` or ``>>``; a chain is split into its pairs.

    Shapes agree, or one side is scalar and is repeated. ``M >> 0`` says that M - right is positive
    semidefinite.
    """

    left: Expression
    operator: str
    right: Expression
    verdict: Verdict
    assume_convex: bool
    needs_nonnegative: frozenset[str] = frozenset()
    span: Span = place(kw_only=True)


class SupportConstraint(Record):
    """`support(variable) in set(...)`.

    `set` is ``"connected"``, ``"sparse"``, ``"groups"`` or ``"union_of"``; `arguments` by name: connected has ``graph`` (a
    `Name`), ``size``, ``components`` and ``budget`` (an absent budget is missing from the mapping); sparse
    has ``size``; groups has ``groups`` (a `Name` of a data vector of group numbers, or a number: the length
    of consecutive blocks) and ``count``; union_of has ``supports`` (a `Name` of a data matrix, one support a row) and
    ``count``.
    """

    variable: str
    set: str
    arguments: Mapping[str, Expression]
    span: Span = place(kw_only=True)


Constraint: TypeAlias = Inequality | SupportConstraint


class OptionCall(Record):
    """An option's value such as `subset(0.5, seed = 1)` or `normal(theta, sigma)`."""

    name: str
    arguments: tuple[OptionValue, ...]
    options: Mapping[str, OptionValue]
    span: Span = place(kw_only=True)


OptionValue: TypeAlias = bool | int | float | str | Name | OptionCall | Expression
"""A literal (a bare word that names nothing, such as `full`, is a str like a quoted string), a `Name` of a
parameter, datum or size, an `OptionCall`, or a constant expression of parameters and sizes such as `1/n`.
"""


class RequestedOption(Record):
    """`name = value` of a back end."""

    name: str
    value: OptionValue
    name_span: Span = place(kw_only=True)
    value_span: Span = place(kw_only=True)


class SolveRequest(Record):
    """The `solve` section: the back end's name and its options; nothing about them is checked in this room."""

    name: str
    options: tuple[RequestedOption, ...]
    call: Call
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class CheckedModel(Record):
    """A model with nothing wrong in it that can be seen without data.

    Several losses are to be summed elementwise, several regularizers summed. Names in the expressions are
    data, parameters, sizes, variables (and, in `self_paced.body`, the two arguments): no two tables share a
    name.
    """

    tree: Model = place(kw_only=True)
    data: Mapping[str, DataEntry]
    parameters: Mapping[str, ParameterEntry]
    defines: Mapping[str, DefineEntry]
    variables: Mapping[str, VariableEntry]
    sizes: Mapping[str, SizeEntry]
    age: Age | None
    losses: tuple[Objective, ...]
    regularizers: tuple[Objective, ...]
    self_paced: SelfPaced | None
    constraints: tuple[Constraint, ...]
    solve: SolveRequest | None
    types: Mapping[int, Type] = place(kw_only=True)
    """By ``id`` of the node, for every node of every expression above; read it through `type_of`."""
    warnings: tuple[Diagnostic, ...] = ()
    parameter_signs: Mapping[str, Sign] = MappingProxyType({})
    """The sign (NONNEGATIVE or NONPOSITIVE) of each parameter on which a verdict rests, taken from its default: an
    override of the other sign would make the model non-convex and has to be refused."""
    sign_conditions: tuple[SignCondition, ...] = ()
    """The same for constants of several parameters or numbers, such as ``1 - rho``."""
    ranges: tuple[RangeCondition, ...] = ()
    """Arguments whose range only the values of a run can break."""

    def type_of(self, node: Expression) -> Type:
        """The type of a node of this model's (expanded) expressions."""
        return self.types[id(node)]

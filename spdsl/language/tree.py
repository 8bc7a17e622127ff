"""The tree of a model file: frozen nodes with spans, equal when they mean the same.

In: tokens that the parser reduced. Out: what the checker, the formatter and (after checking) the compiler
walk. Spans never take part in `==`, so that two files that differ in layout have equal trees. Runs of
operators of one precedence are flat (`Chain`), and the parser refuses nesting deeper than `MAXIMUM_DEPTH`, so
a recursive walk is safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from spdsl.diagnostics import Source, Span
from spdsl.language.record import Record, place

__all__ = [
    "MAXIMUM_DEPTH",
    "AgeStatement",
    "Boolean",
    "Call",
    "Case",
    "Chain",
    "Comment",
    "Comparison",
    "ConstraintStatement",
    "DataDeclaration",
    "DefineStatement",
    "Evaluation",
    "Expression",
    "Interval",
    "LossStatement",
    "Membership",
    "Model",
    "Name",
    "Number",
    "Option",
    "ParameterDeclaration",
    "Piecewise",
    "Power",
    "RegularizerStatement",
    "Section",
    "SelfPacedStatement",
    "SolveStatement",
    "Statement",
    "Text",
    "Transpose",
    "TypeExpression",
    "Unary",
    "VariableDeclaration",
    "children",
    "walk",
]

MAXIMUM_DEPTH = 100
"""The deepest nesting that the parser accepts and that expanding `define`s may reach."""


# --- expressions -------------------------------------------------------------------------------------------


class Number(Record):
    """`16`, `0.5`, `5e-3`; `value` is an int when the text is digits only."""

    value: int | float
    text: str = place(kw_only=True)
    span: Span = place(kw_only=True)


class Boolean(Record):
    """`true` or `false`; only in the options of `solve`."""

    value: bool
    span: Span = place(kw_only=True)


class Text(Record):
    """`"..."`; only in the options of `solve`."""

    value: str
    span: Span = place(kw_only=True)


class Name(Record):
    """A declared name, in its canonical spelling (`lambda` for λ)."""

    name: str
    span: Span = place(kw_only=True)


class Unary(Record):
    """`-operand` or `+operand`; binds tighter than `*`, looser than `^`."""

    operator: str
    operand: Expression
    span: Span = place(kw_only=True)


class Chain(Record):
    """A left-associative run `operands[0] operators[0] operands[1] ...`.

    All operators are of one precedence: either from ``+ -`` or from ``* / @``.
    """

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    span: Span = place(kw_only=True)


class Power(Record):
    """`base ^ exponent`, right-associative."""

    base: Expression
    exponent: Expression
    span: Span = place(kw_only=True)


class Transpose(Record):
    """`operand.T`"""

    operand: Expression
    span: Span = place(kw_only=True)


class Option(Record):
    """`name = value` among the arguments of a call."""

    name: str
    value: Expression
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class Call(Record):
    """`function(arguments..., options...)`: an atom, a `define`, a kernel, a set, an SP-regularizer or a back
    end.
    """

    function: str
    arguments: tuple[Expression, ...]
    options: tuple[Option, ...] = ()
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class Case(Record):
    """`value if condition`, or `value otherwise` (condition None) inside `piecewise`."""

    value: Expression
    condition: Comparison | None
    span: Span = place(kw_only=True)


class Piecewise(Record):
    """`piecewise(a if c1, b if c2, e otherwise)`: elementwise, the first condition that holds decides."""

    cases: tuple[Case, ...]
    span: Span = place(kw_only=True)


class Evaluation(Record):
    """`f(points)` of an rkhs variable f; made by the checker from a `Call`, never by the parser."""

    variable: str
    points: Expression
    span: Span = place(kw_only=True)


Expression: TypeAlias = (
    Number | Boolean | Text | Name | Unary | Chain | Power | Transpose | Call | Piecewise | Evaluation
)


# --- pieces of statements ----------------------------------------------------------------------------------


class Comparison(Record):
    """`a <= b`, or a chain `a <= b <= c`; operators from ``<= >= == >> < >`` (the strict ones only in
    `piecewise`).
    """

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    operator_spans: tuple[Span, ...] = place(kw_only=True)
    span: Span = place(kw_only=True)


class Membership(Record):
    """`element in set`, as in `support(w) in connected(G, size = 40)`."""

    element: Expression
    set: Expression
    span: Span = place(kw_only=True)


class Interval(Record):
    """`[low, high]`"""

    low: Expression
    high: Expression
    span: Span = place(kw_only=True)


class TypeExpression(Record):
    """`matrix(n, d)`: `arguments` are `Name`s and `Number`s (sizes), for rkhs a `Name` and a kernel `Call`."""

    name: str
    arguments: tuple[Expression, ...]
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


# --- statements --------------------------------------------------------------------------------------------


class DataDeclaration(Record):
    """`X : matrix(n, d)` in `data`."""

    name: str
    type: TypeExpression
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class ParameterDeclaration(Record):
    """`alpha = 5e-3` in `parameter`."""

    name: str
    value: Expression
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class DefineStatement(Record):
    """`blend(v, lambda) = ...` in `define`; without arguments it names an expression: `r = X @ w - y`."""

    name: str
    arguments: tuple[str, ...]
    body: Expression
    argument_spans: tuple[Span, ...] = place(kw_only=True)
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class VariableDeclaration(Record):
    """`w : vector(d)` in `variable`."""

    name: str
    type: TypeExpression
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class AgeStatement(Record):
    """`age lambda in [a, b]`, `age lambda in quantiles(a, b)` or `age lambda = a`."""

    name: str
    value: Expression | Interval
    fixed: bool
    name_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class LossStatement(Record):
    """`loss expression [assume convex]` in `minimize`."""

    expression: Expression
    assume_convex: bool = False
    keyword_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class RegularizerStatement(Record):
    """`regularizer expression [assume convex]` in `minimize`."""

    expression: Expression
    assume_convex: bool = False
    keyword_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class SelfPacedStatement(Record):
    """`self_paced linear(lambda)` in `minimize`."""

    expression: Expression
    keyword_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class ConstraintStatement(Record):
    """A comparison or a membership in `subject to`, with an optional `assume convex` at its end."""

    relation: Comparison | Membership
    assume_convex: bool = False
    span: Span = place(kw_only=True)


class SolveStatement(Record):
    """`back_end(options...)` in `solve`."""

    method: Call
    span: Span = place(kw_only=True)


Statement: TypeAlias = (
    DataDeclaration
    | ParameterDeclaration
    | DefineStatement
    | VariableDeclaration
    | AgeStatement
    | LossStatement
    | RegularizerStatement
    | SelfPacedStatement
    | ConstraintStatement
    | SolveStatement
)


class Section(Record):
    """A keyword (`data`, ..., `subject to`, `solve`) and its statements, in the order of the file."""

    keyword: str
    statements: tuple[Statement, ...]
    keyword_span: Span = place(kw_only=True)
    span: Span = place(kw_only=True)


class Comment(Record):
    """`# ...` up to the end of its line; `text` begins with `#`."""

    text: str
    span: Span = place(kw_only=True)


class Model(Record):
    """A whole file."""

    sections: tuple[Section, ...]
    comments: tuple[Comment, ...] = place(kw_only=True, default=())
    source: Source = place(kw_only=True)

    def statements(self) -> Iterator[Statement]:
        """All statements, in the order of the file."""
        for section in self.sections:
            yield from section.statements


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly below an expression, in the order of the text (options and conditions
    included).
    """
    match node:
        case Unary() | Transpose():
            return (node.operand,)
        case Chain():
            return node.operands
        case Power():
            return (node.base, node.exponent)
        case Call():
            return node.arguments + tuple(option.value for option in node.options)
        case Piecewise():
            found: list[Expression] = []
            for case in node.cases:
                found.append(case.value)
                if case.condition is not None:
                    found.extend(case.condition.operands)
            return tuple(found)
        case Evaluation():
            return (node.points,)
        case _:
            return ()


def walk(node: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first, in the order of the text."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))

"""Hypothesis strategies for whole programs: syntactically right, not necessarily meaningful."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spdsl.diagnostics import Source, Span
from spdsl.language.printer import unparse_statement
from spdsl.language.tree import (
    AgeStatement,
    Boolean,
    Call,
    Case,
    Chain,
    Comparison,
    ConstraintStatement,
    DataDeclaration,
    DefineStatement,
    Expression,
    Interval,
    LossStatement,
    Membership,
    Model,
    Name,
    Number,
    Option,
    ParameterDeclaration,
    Piecewise,
    Power,
    RegularizerStatement,
    Section,
    SelfPacedStatement,
    SolveStatement,
    Text,
    Transpose,
    TypeExpression,
    Unary,
    VariableDeclaration,
)

_SOURCE = Source("<generated>", "")
_AT: Any = Span(_SOURCE, 0, 0)
_NAMES = st.sampled_from(["w", "X", "y", "alpha", "lambda", "r_2", "Gamma", "e", "T", "norm1", "size", "convex"])
_NUMBERS = st.sampled_from(["0", "1", "16", "0.5", "5e-3", ".25", "3.", "1E+2"])


def _number(text: str) -> Number:
    return Number(int(text) if text.isdigit() else float(text), text=text, span=_AT)


def _chain(operands: list[Expression], operators: list[str]) -> Chain:
    return Chain(tuple(operands), tuple(operators[: len(operands) - 1]), span=_AT)


def _call(function: str, arguments: list[Expression], options: list[Option]) -> Call:
    return Call(function, tuple(arguments), tuple(options), name_span=_AT, span=_AT)


def _extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    operands = st.lists(inner, min_size=2, max_size=4)
    options = st.lists(st.builds(lambda n, v: Option(n, v, name_span=_AT, span=_AT), _NAMES, inner), max_size=2)
    cases = st.lists(st.tuples(inner, comparisons(inner)), min_size=1, max_size=2)
    return st.one_of(
        st.builds(_chain, operands, st.lists(st.sampled_from("+-"), min_size=3, max_size=3)),
        st.builds(_chain, operands, st.lists(st.sampled_from("*/@"), min_size=3, max_size=3)),
        st.builds(lambda o, x: Unary(o, x, span=_AT), st.sampled_from("+-"), inner),
        st.builds(lambda a, b: Power(a, b, span=_AT), inner, inner),
        st.builds(lambda a: Transpose(a, span=_AT), inner),
        st.builds(_call, _NAMES, st.lists(inner, max_size=3), options),
        st.builds(_piecewise, cases, inner),
    )


def _piecewise(cases: list[tuple[Expression, Comparison]], last: Expression) -> Piecewise:
    made = [Case(value, condition, span=_AT) for value, condition in cases]
    return Piecewise((*made, Case(last, None, span=_AT)), span=_AT)


def comparisons(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Comparison]:
    """`a <= b`, `a < b <= c`, ..."""
    operators = st.lists(st.sampled_from(["<=", ">=", "==", ">>", "<", ">"]), min_size=1, max_size=2)

    def made(sides: list[Expression], signs: list[str]) -> Comparison:
        return Comparison(tuple(sides[: len(signs) + 1]), tuple(signs), operator_spans=(), span=_AT)

    return st.builds(made, st.lists(inner, min_size=3, max_size=3), operators)


_LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.builds(lambda name: Name(name, span=_AT), _NAMES),
    st.builds(_number, _NUMBERS),
    st.builds(lambda value: Boolean(value, span=_AT), st.booleans()),
    st.builds(lambda value: Text(value, span=_AT), st.sampled_from(["", "a b", "# no comment", "x;y"])),
)

expressions: st.SearchStrategy[Expression] = st.recursive(_LEAVES, _extend, max_leaves=12)
"""Expressions of all kinds."""


def _types() -> st.SearchStrategy[TypeExpression]:
    names = st.sampled_from(["scalar", "vector", "matrix", "rkhs", "nothing"])
    return st.builds(
        lambda name, sizes: TypeExpression(name, tuple(sizes), name_span=_AT, span=_AT),
        names,
        st.lists(expressions, max_size=2),
    )


def _section(keyword: str, statements: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[Section]:
    return st.builds(
        lambda found: Section(keyword, tuple(found), keyword_span=_AT, span=_AT),
        st.lists(statements, min_size=1, max_size=most),
    )


def _define(name: str, arguments: list[str], body: Expression) -> DefineStatement:
    return DefineStatement(name, tuple(arguments), body, argument_spans=(), name_span=_AT, span=_AT)


def _intervals() -> st.SearchStrategy[Interval]:
    return st.builds(lambda a, b: Interval(a, b, span=_AT), expressions, expressions)


def _age(name: str, value: Expression | Interval, fixed: bool) -> AgeStatement:
    return AgeStatement(name, value, fixed and not isinstance(value, Interval), name_span=_AT, span=_AT)


sections: st.SearchStrategy[Section] = st.one_of(
    _section("data", st.builds(lambda n, t: DataDeclaration(n, t, name_span=_AT, span=_AT), _NAMES, _types())),
    _section("variable", st.builds(lambda n, t: VariableDeclaration(n, t, name_span=_AT, span=_AT), _NAMES, _types())),
    _section(
        "parameter", st.builds(lambda n, v: ParameterDeclaration(n, v, name_span=_AT, span=_AT), _NAMES, expressions)
    ),
    _section("define", st.builds(_define, _NAMES, st.lists(_NAMES, max_size=3), expressions)),
    _section("age", st.builds(_age, _NAMES, st.one_of(expressions, _intervals()), st.booleans()), 1),
    _section(
        "minimize",
        st.one_of(
            st.builds(lambda e, a: LossStatement(e, a, keyword_span=_AT, span=_AT), expressions, st.booleans()),
            st.builds(lambda e, a: RegularizerStatement(e, a, keyword_span=_AT, span=_AT), expressions, st.booleans()),
            st.builds(lambda e: SelfPacedStatement(e, keyword_span=_AT, span=_AT), expressions),
        ),
    ),
    _section(
        "subject to",
        st.one_of(
            st.builds(lambda c, a: ConstraintStatement(c, a, span=_AT), comparisons(expressions), st.booleans()),
            st.builds(
                lambda a, b: ConstraintStatement(Membership(a, b, span=_AT), False, span=_AT), expressions, expressions
            ),
        ),
    ),
    _section(
        "solve", st.builds(lambda c: SolveStatement(c, span=_AT), st.builds(_call, _NAMES, st.just([]), st.just([])))
    ),
)

trees: st.SearchStrategy[Model] = st.builds(
    lambda found: Model(tuple(found), source=_SOURCE), st.lists(sections, min_size=1, max_size=4)
)
"""Whole models."""

_BETWEEN = st.sampled_from(
    ["\n", "\n\n", ";", " ;\n", "  # a comment; with = signs ( and so on\n", "\n# alone\n\n", "\n   # in\n"]
)


@st.composite
def laid_out(draw: st.DrawFn) -> tuple[Model, str]:
    """A tree, and a text of it in a wild layout."""
    tree = draw(trees)
    pieces: list[str] = [draw(st.sampled_from(["", "\n", "# top\n", "\ufeff"]))]
    for section in tree.sections:
        pieces.append(section.keyword + draw(st.sampled_from([" ", "\n", "\n\n    ", "  # why\n"])))
        for statement in section.statements:
            text = unparse_statement(statement)
            if draw(st.booleans()):
                text = (
                    text.replace(" + ", " +\n   ")
                    .replace(" @ ", "@")
                    .replace("(", draw(st.sampled_from(["(", "( ", "(\n"])))
                )
            pieces.append(text)
            pieces.append(draw(_BETWEEN))
        if "\n" not in pieces[-1] and ";" not in pieces[-1]:
            pieces.append("\n")
    return tree, "".join(pieces)

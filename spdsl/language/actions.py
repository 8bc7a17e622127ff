"""Makes tree nodes: one method for each `-> action` of grammars/spl.lark.

In: the children of a reduced rule (tokens and nodes) and the offsets it covers. Out: a node, or a list under way.
"""

from __future__ import annotations

from typing import Any

from spdsl.diagnostics import Source, Span
from spdsl.language.complaints import Complaints
from spdsl.language.lexer import Token
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
    Name,
    Number,
    Option,
    ParameterDeclaration,
    Piecewise,
    Power,
    RegularizerStatement,
    SelfPacedStatement,
    SolveStatement,
    Text,
    Transpose,
    TypeExpression,
    Unary,
    VariableDeclaration,
)

__all__ = ["DEEPENING", "Actions", "Run"]

DEEPENING = frozenset({"unary", "power", "transpose", "call", "piecewise", "chain"})
"""The actions whose node is one level deeper than its children (`chain` only when it makes a `Chain`)."""


class Run(list[Any]):
    """Operands and the operator tokens between them, while a chain or a comparison grows."""


class Actions:
    """The actions over one source; `child` is the list of children, `start` and `end` the offsets of the rule."""

    def __init__(self, source: Source, complaints: Complaints) -> None:
        self.source = source
        self.complaints = complaints

    def span(self, token: Token) -> Span:
        """The span of a token."""
        return Span(self.source, token.start, token.end)

    # --- lists ---

    def first(self, child: list[Any], start: int, end: int) -> list[Any]:
        return [child[0]]

    def next(self, child: list[Any], start: int, end: int) -> list[Any]:
        child[0].append(child[2])
        return child[0]  # type: ignore[no-any-return]

    def run_first(self, child: list[Any], start: int, end: int) -> Run:
        return Run(child)

    def run_next(self, child: list[Any], start: int, end: int) -> Run:
        run = child[0]
        if type(run) is not Run:
            return Run(child)
        run.append(child[1])
        run.append(child[2])
        return run

    # --- expressions ---

    def chain(self, child: list[Any], start: int, end: int) -> Expression:
        run = child[0]
        if type(run) is not Run:
            return run  # type: ignore[no-any-return]
        operators = tuple([token.text for token in run[1::2]])
        return Chain(tuple(run[::2]), operators, span=Span(self.source, start, end))

    def unary(self, child: list[Any], start: int, end: int) -> Expression:
        return Unary(child[0].text, child[1], span=Span(self.source, start, end))

    def power(self, child: list[Any], start: int, end: int) -> Expression:
        return Power(child[0], child[2], span=Span(self.source, start, end))

    def transpose(self, child: list[Any], start: int, end: int) -> Expression:
        return Transpose(child[0], span=Span(self.source, start, end))

    def number(self, child: list[Any], start: int, end: int) -> Expression:
        text = child[0].text
        value = int(text) if text.isdigit() and len(text) <= 15 else float(text)
        span = Span(self.source, start, end)
        if value == float("inf"):
            self.complaints.error("SPL106", f"`{text}` is too large", span, "", "numbers go up to about 1.8e308")
        return Number(value, text=text, span=span)

    def name(self, child: list[Any], start: int, end: int) -> Expression:
        return Name(child[0].text, span=Span(self.source, start, end))

    def text(self, child: list[Any], start: int, end: int) -> Expression:
        return Text(child[0].text[1:-1], span=Span(self.source, start, end))

    def true(self, child: list[Any], start: int, end: int) -> Expression:
        return Boolean(True, span=Span(self.source, start, end))

    def false(self, child: list[Any], start: int, end: int) -> Expression:
        return Boolean(False, span=Span(self.source, start, end))

    def brackets(self, child: list[Any], start: int, end: int) -> Expression:
        return child[1]  # type: ignore[no-any-return]

    def call_empty(self, child: list[Any], start: int, end: int) -> Expression:
        return Call(child[0].text, (), (), name_span=self.span(child[0]), span=Span(self.source, start, end))

    def call(self, child: list[Any], start: int, end: int) -> Expression:
        arguments: list[Expression] = []
        options: list[Option] = []
        for item in child[2]:
            if isinstance(item, Option):
                options.append(item)
                continue
            if options:
                message = "an argument without a name stands after one with a name"
                help_ = f"move it before `{options[0].name} = ...`"
                self.complaints.error("SPL114", message, item.span, "", help_)
            arguments.append(item)
        return Call(
            child[0].text,
            tuple(arguments),
            tuple(options),
            name_span=self.span(child[0]),
            span=Span(self.source, start, end),
        )

    def option(self, child: list[Any], start: int, end: int) -> Option:
        span = Span(self.source, start, end)
        return Option(child[0].text, child[2], name_span=self.span(child[0]), span=span)

    def piecewise(self, child: list[Any], start: int, end: int) -> Expression:
        cases: list[Case] = child[2]
        span = Span(self.source, start, end)
        ends = [i for i, case in enumerate(cases) if case.condition is None]
        if not ends:
            help_ = "end it with the value of all other points: `..., 0 otherwise)`"
            self.complaints.error("SPL123", "`piecewise` has no `otherwise`", span, "", help_)
        elif ends[0] != len(cases) - 1:
            help_ = "move it to the end"
            place = cases[ends[0] + 1].span
            self.complaints.error("SPL123", "nothing can follow `otherwise`", place, "never reached", help_)
        elif len(cases) == 1:
            help_ = "write the value alone, or add a case: `piecewise(a if x <= 0, b otherwise)`"
            self.complaints.error("SPL123", "`piecewise` has a single case", span, "", help_)
        return Piecewise(tuple(cases), span=span)

    def case_if(self, child: list[Any], start: int, end: int) -> Case:
        return Case(child[0], child[2], span=Span(self.source, start, end))

    def case_otherwise(self, child: list[Any], start: int, end: int) -> Case:
        return Case(child[0], None, span=Span(self.source, start, end))

    # --- pieces of statements ---

    def comparison(self, child: list[Any], start: int, end: int) -> Comparison:
        run = child[0]
        tokens = run[1::2]
        return Comparison(
            tuple(run[::2]),
            tuple([token.text for token in tokens]),
            operator_spans=tuple([self.span(token) for token in tokens]),
            span=Span(self.source, start, end),
        )

    def interval(self, child: list[Any], start: int, end: int) -> Interval:
        return Interval(child[1], child[3], span=Span(self.source, start, end))

    def type_plain(self, child: list[Any], start: int, end: int) -> TypeExpression:
        span = Span(self.source, start, end)
        return TypeExpression(child[0].text, (), name_span=span, span=span)

    def type_with(self, child: list[Any], start: int, end: int) -> TypeExpression:
        span = Span(self.source, start, end)
        return TypeExpression(child[0].text, tuple(child[2]), name_span=self.span(child[0]), span=span)

    # --- statements ---

    def data_declaration(self, child: list[Any], start: int, end: int) -> DataDeclaration:
        span = Span(self.source, start, end)
        return DataDeclaration(child[0].text, child[2], name_span=self.span(child[0]), span=span)

    def variable_declaration(self, child: list[Any], start: int, end: int) -> VariableDeclaration:
        span = Span(self.source, start, end)
        return VariableDeclaration(child[0].text, child[2], name_span=self.span(child[0]), span=span)

    def parameter_declaration(self, child: list[Any], start: int, end: int) -> ParameterDeclaration:
        span = Span(self.source, start, end)
        return ParameterDeclaration(child[0].text, child[2], name_span=self.span(child[0]), span=span)

    def define_name(self, child: list[Any], start: int, end: int) -> DefineStatement:
        return self._define(child[0], [], child[2], start, end)

    def define_function(self, child: list[Any], start: int, end: int) -> DefineStatement:
        return self._define(child[0], child[2], child[5], start, end)

    def _define(self, name: Token, arguments: list[Token], body: Expression, start: int, end: int) -> DefineStatement:
        return DefineStatement(
            name.text,
            tuple([token.text for token in arguments]),
            body,
            argument_spans=tuple([self.span(token) for token in arguments]),
            name_span=self.span(name),
            span=Span(self.source, start, end),
        )

    def age_fixed(self, child: list[Any], start: int, end: int) -> AgeStatement:
        span = Span(self.source, start, end)
        return AgeStatement(child[0].text, child[2], True, name_span=self.span(child[0]), span=span)

    def age_in(self, child: list[Any], start: int, end: int) -> AgeStatement:
        span = Span(self.source, start, end)
        return AgeStatement(child[0].text, child[2], False, name_span=self.span(child[0]), span=span)

    def loss(self, child: list[Any], start: int, end: int) -> LossStatement:
        span = Span(self.source, start, end)
        return LossStatement(child[1], len(child) == 3, keyword_span=self.span(child[0]), span=span)

    loss_assumed = loss

    def regularizer(self, child: list[Any], start: int, end: int) -> RegularizerStatement:
        span = Span(self.source, start, end)
        return RegularizerStatement(child[1], len(child) == 3, keyword_span=self.span(child[0]), span=span)

    regularizer_assumed = regularizer

    def self_paced(self, child: list[Any], start: int, end: int) -> SelfPacedStatement:
        span = Span(self.source, start, end)
        return SelfPacedStatement(child[1], keyword_span=self.span(child[0]), span=span)

    def constraint(self, child: list[Any], start: int, end: int) -> ConstraintStatement:
        return ConstraintStatement(child[0], len(child) == 2, span=Span(self.source, start, end))

    constraint_assumed = constraint

    def membership(self, child: list[Any], start: int, end: int) -> ConstraintStatement:
        span = Span(self.source, start, end)
        return ConstraintStatement(Membership(child[0], child[2], span=span), False, span=span)

    def solve_plain(self, child: list[Any], start: int, end: int) -> SolveStatement:
        span = Span(self.source, start, end)
        return SolveStatement(Call(child[0].text, (), (), name_span=span, span=span), span=span)

    def solve(self, child: list[Any], start: int, end: int) -> SolveStatement:
        return SolveStatement(child[0], span=Span(self.source, start, end))

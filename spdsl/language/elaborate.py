"""Gives every expression its type and expands `define`s: names, shapes, signs and curvatures in one walk.

In: an expression as parsed and a scope. Out: the expression with nothing left to look up (arguments of atoms all
positional, defaults filled in) and the type of each of its nodes; complaints about what doesn't fit. A node whose
type is None has been complained about; what contains it stays silent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spdsl.diagnostics import Related, Span
from spdsl.language import operators
from spdsl.language.arguments import check_range, wanted_range
from spdsl.language.calls import call_type
from spdsl.language.checked import RangeCondition
from spdsl.language.complaints import Complaints
from spdsl.language.constants import constant_value
from spdsl.language.printer import shown, unparse
from spdsl.language.rules import sign_of_number
from spdsl.language.scope import Binding, Scope
from spdsl.language.scope import Role as NameRole
from spdsl.language.signatures import Parameter
from spdsl.language.tree import (
    MAXIMUM_DEPTH,
    Boolean,
    Call,
    Case,
    Chain,
    Evaluation,
    Expression,
    Name,
    Number,
    Piecewise,
    Power,
    Text,
    Transpose,
    Unary,
)
from spdsl.language.types import Curvature, Kind, Sign, Type
from spdsl.language.unknown import unknown_name

__all__ = ["MAXIMUM_NODES", "Elaborator", "Typed"]

_NUMERIC = frozenset({Kind.SCALAR, Kind.VECTOR, Kind.MATRIX, Kind.LABELS, Kind.SYMMETRIC})

MAXIMUM_NODES = 100_000
"""The most nodes that the `define`s of a model may unfold to."""

Typed = tuple[Expression, Type | None]


class Elaborator:
    """Types expressions; one for a whole model, so that the budget of nodes and the types are shared.

    Attributes
    ----------
    types : dict
        By ``id`` of a node its type; the nodes are kept alive.
    reasons : dict
        By ``id`` of a node why its curvature is unknown, where the reason lies in the node itself.
    nonnegative : frozenset of str
        Data that are taken to be >= 0.
    unsigned : frozenset of str
        Parameters whose sign is taken to be unknown.
    defaults : dict
        The default of each parameter.
    default_signs : dict
        By the text of a constant such as ``1 - rho``: the constant, and the sign that it has under the defaults.
    signed_texts : frozenset of str or None
        Such constants whose sign is looked up, None for all.
    points : dict
        The data matrix over which each rkhs variable lives.
    """

    def __init__(self, complaints: Complaints, scope: Scope) -> None:
        self.complaints = complaints
        self.scope = scope
        self.types: dict[int, Type] = {}
        self.reasons: dict[int, str] = {}
        self.nonnegative: frozenset[str] = frozenset()
        self.unsigned: frozenset[str] = frozenset()
        self.defaults: dict[str, Expression] = {}
        self.default_signs: dict[str, tuple[Expression, Sign]] = {}
        self.ranges: dict[str, RangeCondition] = {}
        self.signed_texts: frozenset[str] | None = None
        self.points: dict[str, str] = {}
        self._alive: list[Expression] = []
        self._calls: list[tuple[str, Span]] = []
        self._depth = 0
        self._nodes = 0

    # --- for callers ---

    def expression(self, node: Expression, scope: Scope | None = None) -> Typed:
        """The expanded expression and its type, of any kind."""
        return self._elaborate(node, scope or self.scope)

    def number(self, node: Expression, what: str, scope: Scope | None = None) -> Typed:
        """A constant scalar (of parameters, sizes and scalar data); anything else is complained about."""
        made, type_ = self.numeric(node, scope)
        if type_ is None:
            return made, None
        if type_.shape or type_.variables:
            reason, help_ = "depends on " + _listed(type_.variables), "use a `parameter`"
            if type_.shape:
                reason, help_ = f"is a {type_}", "vectors and matrices come from `data`"
            elif isinstance(made, Name):
                reason = "is a variable"
            message = f"{what} is a number that is known before solving, and `{shown(node)}` {reason}"
            self.error("SPL213", message, node.span, "", help_)
            return made, None
        return made, type_

    def numeric(self, node: Expression, scope: Scope | None = None) -> Typed:
        """An expression that one can calculate with: no graph, no function, no text."""
        typed = self._elaborate(node, scope or self.scope)
        made, type_ = typed
        if type_ is None or type_.kind in _NUMERIC:
            return typed
        if type_.kind is Kind.GRAPH:
            help_ = "a graph is used in `support(w) in connected(G, size = 10)`"
            self.error("SPL215", f"`{shown(node)}` is a graph: one can't calculate with it", node.span, "", help_)
            return made, None
        if type_.kind is Kind.RKHS:
            points = self._points_of(made)
            helps = (f"evaluate it: `{shown(node)}({points})`", f"or take its norm: `norm({shown(node)})`")
            self.error("SPL228", f"`{shown(node)}` is a function, not a vector", node.span, "", *helps)
            return made, None
        help_ = "write `support(w) in sparse(10)` in `subject to`"
        self.error("SPL227", "`support` can only stand to the left of `in`", node.span, "", help_)
        return made, None

    def error(
        self, code: str, message: str, span: Span, label: str = "", *helps: str, related: Sequence[Related] = ()
    ) -> None:
        """Complain, and say in which call of a `define` it happened."""
        if self._calls:
            name, call = self._calls[0]
            related = (*related, Related(call, f"in this use of `{name}`"))
        self.complaints.error(code, message, span, label, *helps, related=tuple(related))

    def sign_by_default(self, node: Expression) -> Sign:
        """The sign of a constant of parameters under their defaults, such as that of ``1 - rho``; noted."""
        value = constant_value(node, self.defaults)
        text = unparse(node)
        if value is None or (self.signed_texts is not None and text not in self.signed_texts):
            return Sign.UNKNOWN
        # 0 may be overridden: take it for one of the numbers >= 0.
        sign = Sign.NONPOSITIVE if value < 0 else Sign.NONNEGATIVE
        self.default_signs[text] = (node, sign)
        return sign

    def check_range(self, parameter: Parameter, made: Expression, argument: Expression, what: str) -> None:
        """Complain of an argument out of range under the defaults; note one that other values may bring there."""
        value = constant_value(made, self.defaults)
        check_range(parameter, value, argument, what, self.complaints)
        wanted = wanted_range(parameter)
        if wanted and constant_value(made) is None:
            condition = RangeCondition(
                made, parameter.low, parameter.high, parameter.open_low, f"`{parameter.name}` of `{what}`", wanted
            )
            self.ranges.setdefault(f"{condition.what}: {unparse(made)}", condition)

    def keep(self, node: Expression, type_: Type | None, reason: str = "") -> Typed:
        """Remember the type of a node, and why its curvature is unknown."""
        if type_ is not None:
            self.types[id(node)] = type_
            self._alive.append(node)
            if reason and type_.curvature is Curvature.UNKNOWN:
                self.reasons[id(node)] = reason
        return node, type_

    # --- the walk ---

    def _elaborate(self, node: Expression, scope: Scope) -> Typed:
        if self._calls:
            self._nodes += 1
        if self._depth > MAXIMUM_DEPTH or self._nodes > MAXIMUM_NODES:
            self._too_large(node)
            return node, None
        self._depth += 1
        typed = _HANDLERS[type(node)](self, node, scope)
        self._depth -= 1
        return typed

    def _too_large(self, node: Expression) -> None:
        span = self._calls[0][1] if self._calls else node.span
        if self._depth > MAXIMUM_DEPTH:
            message = f"the `define`s used here unfold to an expression nested more than {MAXIMUM_DEPTH} deep"
        else:
            message = f"the `define`s of this model unfold to more than {MAXIMUM_NODES:,} operations"
        self.complaints.error("SPL225", message, span, "", "write the expression with `@` and `sum`, or split it")

    def _number(self, node: Number, scope: Scope) -> Typed:
        return self.keep(node, Type(Kind.SCALAR, sign=sign_of_number(node.value)))

    def _not_a_number(self, node: Boolean | Text, scope: Scope) -> Typed:
        what = "a text" if isinstance(node, Text) else f"`{shown(node)}`"
        self.error("SPL215", f"{what} can only be an option of `solve`", node.span)
        return node, None

    def _name(self, node: Name, scope: Scope) -> Typed:
        binding = scope.find(node.name)
        if binding is None:
            unknown_name(self, node.name, node.span, scope)
            return node, None
        if binding.role is NameRole.DEFINE:
            return self._named_expression(node, binding)
        if binding.role is NameRole.AGE:
            help_ = "it belongs to `self_paced` only; for a weight that is swept, use a `parameter`"
            self.error("SPL220", f"the age `{node.name}` can't be used here", node.span, "", help_)
            return node, None
        if binding.role is NameRole.ARGUMENT and binding.node is not None:
            return binding.node, self.types.get(id(binding.node))
        type_ = binding.type
        if type_ is not None:
            if binding.role is NameRole.DATA and node.name in self.nonnegative:
                type_ = type_.replace(sign=Sign.NONNEGATIVE)
            elif binding.role is NameRole.PARAMETER and node.name in self.unsigned:
                type_ = type_.replace(sign=Sign.UNKNOWN)
        return self.keep(node, type_)

    def _named_expression(self, node: Name, binding: Binding) -> Typed:
        define = binding.define
        if define is None:
            return node, None
        if define.arguments:
            form = f"{define.name}({', '.join(define.arguments)})"
            message = f"`{define.name}` is a function of {len(define.arguments)}, and is used like a number"
            self.error("SPL214", message, node.span, "", f"write `{form}`")
            return node, None
        return self.expand(define.name, define.body, Scope(self.scope), node.span)

    def expand(self, name: str, body: Expression, scope: Scope, span: Span) -> Typed:
        """The body of a `define` in the scope of its arguments; `span` is the place of the call."""
        self._calls.append((name, span))
        try:
            return self._elaborate(body, scope)
        finally:
            self._calls.pop()

    def _unary(self, node: Unary, scope: Scope) -> Typed:
        operand, type_ = self.numeric(node.operand, scope)
        made = node if operand is node.operand else node.replace(operand=operand)
        if type_ is None:
            return made, None
        return self.keep(made, operators.signed(node.operator, type_))

    def _chain(self, node: Chain, scope: Scope) -> Typed:
        parts = [self.numeric(operand, scope) for operand in node.operands]
        made = node
        if any(part is not operand for (part, _), operand in zip(parts, node.operands)):
            made = node.replace(operands=tuple(part for part, _ in parts))
        types = [type_ for _, type_ in parts if type_ is not None]
        if len(types) < len(parts):
            return made, None
        combine = operators.sum_type if node.operators[0] in "+-" else operators.product_type
        return self.keep(made, *combine(self, made, node, types))

    def _power(self, node: Power, scope: Scope) -> Typed:
        base, base_type = self.numeric(node.base, scope)
        exponent, exponent_type = self.numeric(node.exponent, scope)
        made = node
        if base is not node.base or exponent is not node.exponent:
            made = node.replace(base=base, exponent=exponent)
        if base_type is None or exponent_type is None:
            return made, None
        return self.keep(made, *operators.power_type(self, made, base_type, exponent_type))

    def _transpose(self, node: Transpose, scope: Scope) -> Typed:
        operand, type_ = self.numeric(node.operand, scope)
        if type_ is not None and len(type_.shape) < 2:
            return operand, type_  # a vector is its own transpose, so that `w.T @ w` is `w @ w`
        made = node if operand is node.operand else node.replace(operand=operand)
        if type_ is None:
            return made, None
        return self.keep(made, type_.replace(shape=tuple(reversed(type_.shape))))

    def _piecewise(self, node: Piecewise, scope: Scope) -> Typed:
        cases: list[Case] = []
        values: list[Type | None] = []
        conditions: list[Type | None] = []
        for case in node.cases:
            value, type_ = self.numeric(case.value, scope)
            values.append(type_)
            condition = case.condition
            if condition is not None:
                sides = [self.numeric(side, scope) for side in condition.operands]
                conditions += [side_type for _, side_type in sides]
                condition = condition.replace(operands=tuple(side for side, _ in sides))
                for operator, span in zip(condition.operators, condition.operator_spans):
                    if operator in (">>", "=="):
                        help_ = "use `<`, `<=`, `>` or `>=`"
                        message = f"a case of `piecewise` can't be told by `{operator}`"
                        self.error("SPL123", message, span, "", help_)
                        values[-1] = None
            cases.append(case.replace(value=value, condition=condition))
        made = node.replace(cases=tuple(cases))
        known_values = [type_ for type_ in values if type_ is not None]
        known_conditions = [type_ for type_ in conditions if type_ is not None]
        if len(known_values) < len(values) or len(known_conditions) < len(conditions):
            return made, None
        return self.keep(made, *operators.piecewise_type(self, made, known_values, known_conditions))

    def _evaluation(self, node: Evaluation, scope: Scope) -> Typed:
        return node, self.types.get(id(node))

    def _points_of(self, node: Expression) -> str:
        return self.points.get(node.name, "X") if isinstance(node, Name) else "X"


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


_HANDLERS: dict[type, Callable[[Elaborator, Any, Scope], Typed]] = {
    Number: Elaborator._number,
    Boolean: Elaborator._not_a_number,
    Text: Elaborator._not_a_number,
    Name: Elaborator._name,
    Unary: Elaborator._unary,
    Chain: Elaborator._chain,
    Power: Elaborator._power,
    Transpose: Elaborator._transpose,
    Piecewise: Elaborator._piecewise,
    Call: call_type,
    Evaluation: Elaborator._evaluation,
}

"""Writes expressions and statements in the language's own spelling, with no more brackets than needed.

In: nodes of a tree. Out: text that parses to an equal tree.
"""

from __future__ import annotations

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
    Evaluation,
    Expression,
    Interval,
    LossStatement,
    Membership,
    Model,
    Name,
    Number,
    ParameterDeclaration,
    Piecewise,
    Power,
    RegularizerStatement,
    SelfPacedStatement,
    SolveStatement,
    Statement,
    Text,
    Transpose,
    TypeExpression,
    Unary,
    VariableDeclaration,
)

__all__ = ["shown", "unparse", "unparse_model", "unparse_statement"]

# How tightly an expression binds; an operand that binds less tightly than its place needs gets brackets.
_SUM, _PRODUCT, _SIGN, _POWER, _POSTFIX, _ATOM = range(6)


def unparse(node: Expression) -> str:
    """The text of an expression."""
    return _text(node)[0]


def shown(node: Expression, limit: int = 40) -> str:
    """A short form for messages: as written when that fits on a line, else shortened in the middle."""
    text = node.span.text if node.span.end - node.span.start <= limit else unparse(node)
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    return f"{text[: limit - 14]} ... {text[-9:]}"


def unparse_statement(statement: Statement) -> str:
    """The text of a statement, without the keyword of its section."""
    match statement:
        case DataDeclaration() | VariableDeclaration():
            return f"{statement.name} : {_type(statement.type)}"
        case ParameterDeclaration():
            return f"{statement.name} = {unparse(statement.value)}"
        case DefineStatement():
            arguments = f"({', '.join(statement.arguments)})" if statement.arguments else ""
            return f"{statement.name}{arguments} = {unparse(statement.body)}"
        case AgeStatement():
            value = statement.value
            text = f"[{unparse(value.low)}, {unparse(value.high)}]" if isinstance(value, Interval) else unparse(value)
            return f"{statement.name} {'=' if statement.fixed else 'in'} {text}"
        case LossStatement():
            return f"loss {unparse(statement.expression)}{_assumed(statement.assume_convex)}"
        case RegularizerStatement():
            return f"regularizer {unparse(statement.expression)}{_assumed(statement.assume_convex)}"
        case SelfPacedStatement():
            return f"self_paced {unparse(statement.expression)}"
        case ConstraintStatement():
            relation = statement.relation
            if isinstance(relation, Membership):
                return f"{unparse(relation.element)} in {unparse(relation.set)}"
            return f"{_comparison(relation)}{_assumed(statement.assume_convex)}"
        case SolveStatement():
            method = statement.method
            return unparse(method) if method.arguments or method.options else method.function


def unparse_model(model: Model) -> str:
    """A whole model, without its comments."""
    lines: list[str] = []
    for section in model.sections:
        lines.append(section.keyword)
        lines.extend(f"  {unparse_statement(statement)}" for statement in section.statements)
        lines.append("")
    return "\n".join(lines)


def _assumed(assumed: bool) -> str:
    return " assume convex" if assumed else ""


def _type(type_: TypeExpression) -> str:
    arguments = f"({', '.join(unparse(item) for item in type_.arguments)})" if type_.arguments else ""
    return f"{type_.name}{arguments}"


def _comparison(relation: Comparison) -> str:
    parts = [unparse(relation.operands[0])]
    for operator, operand in zip(relation.operators, relation.operands[1:]):
        parts.append(f" {operator} {unparse(operand)}")
    return "".join(parts)


def _case(case: Case) -> str:
    if case.condition is None:
        return f"{unparse(case.value)} otherwise"
    return f"{unparse(case.value)} if {_comparison(case.condition)}"


def _within(node: Expression, least: int) -> str:
    text, binding = _text(node)
    return text if binding >= least else f"({text})"


def _text(node: Expression) -> tuple[str, int]:
    match node:
        case Number():
            return node.text, _ATOM
        case Name():
            return node.name, _ATOM
        case Boolean():
            return ("true" if node.value else "false"), _ATOM
        case Text():
            return f'"{node.value}"', _ATOM
        case Chain():
            level = _SUM if node.operators[0] in "+-" else _PRODUCT
            # A chain as an operand of its own kind was bracketed by the user: `(a + b) + c` is not `a + b + c`.
            parts = [_within(node.operands[0], level + 1)]
            for operator, operand in zip(node.operators, node.operands[1:]):
                space = "" if operator == "/" and isinstance(operand, Number) else " "
                parts.append(f"{space}{operator}{space}{_within(operand, level + 1)}")
            return "".join(parts), level
        case Unary():
            return f"{node.operator}{_within(node.operand, _SIGN)}", _SIGN
        case Power():
            return f"{_within(node.base, _POSTFIX)}^{_within(node.exponent, _SIGN)}", _POWER
        case Transpose():
            inner = _within(node.operand, _POSTFIX)
            return f"({inner}).T" if isinstance(node.operand, Number) else f"{inner}.T", _POSTFIX
        case Call():
            items = [unparse(argument) for argument in node.arguments]
            items += [f"{option.name} = {unparse(option.value)}" for option in node.options]
            return f"{node.function}({', '.join(items)})", _ATOM
        case Evaluation():
            return f"{node.variable}({unparse(node.points)})", _ATOM
        case Piecewise():
            return f"piecewise({', '.join(_case(case) for case in node.cases)})", _ATOM

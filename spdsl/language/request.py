"""Reads `solve`: the name of a back end and the values of its options.

In: a `solve` statement. Out: a `SolveRequest`; which back ends and options there are is known elsewhere.
"""

from __future__ import annotations

from spdsl.diagnostics import Related
from spdsl.language.checked import OptionCall, OptionValue, RequestedOption, SolveRequest
from spdsl.language.declarations import Declarations
from spdsl.language.printer import shown
from spdsl.language.scope import Role
from spdsl.language.signatures import ATOMS
from spdsl.language.tree import Boolean, Call, Expression, Name, Number, Option, SolveStatement, Text, Unary

__all__ = ["read_request"]


def read_request(statement: SolveStatement, declarations: Declarations) -> SolveRequest:
    """The request of a `solve` statement; complaints go to the declarations' notebook."""
    method = statement.method
    for argument in method.arguments:
        message = "the options of a back end have names"
        help_ = f"write `name = {shown(argument)}`"
        declarations.complaints.error("SPL235", message, argument.span, "", help_)
    options = []
    for option in _once(method.options, declarations):
        value = _value(option.value, declarations)
        if value is not None:
            options.append(
                RequestedOption(option.name, value, name_span=option.name_span, value_span=option.value.span)
            )
    return SolveRequest(method.function, tuple(options), method, name_span=method.name_span, span=statement.span)


def _once(options: tuple[Option, ...], declarations: Declarations) -> list[Option]:
    seen: dict[str, Option] = {}
    for option in options:
        if option.name in seen:
            first = Related(seen[option.name].span, "given here first")
            message = f"the option `{option.name}` is given twice"
            declarations.complaints.error("SPL232", message, option.span, "", "delete one of them", related=(first,))
        else:
            seen[option.name] = option
    return list(seen.values())


def _value(node: Expression, declarations: Declarations) -> OptionValue | None:
    """A literal, a word, a name, a call of something that isn't an atom, or a constant expression."""
    match node:
        case Number():
            return node.value
        case Boolean() | Text():
            return node.value
        case Unary(operator="-", operand=Number() as number):
            return -number.value
        case Name():
            binding = declarations.scope.find(node.name)
            if binding is None or binding.role is Role.AGE:
                return node.name
            made, type_ = declarations.elaborator.expression(node)
            return None if type_ is None else made
        case Call() if node.function not in ATOMS and node.function not in declarations.defines:
            values = [_value(argument, declarations) for argument in node.arguments]
            options = {item.name: _value(item.value, declarations) for item in _once(node.options, declarations)}
            return OptionCall(
                node.function,
                tuple(value for value in values if value is not None),
                {name: value for name, value in options.items() if value is not None},
                span=node.span,
            )
        case _:
            made, type_ = declarations.elaborator.number(node, "the value of an option")
            return None if type_ is None else made

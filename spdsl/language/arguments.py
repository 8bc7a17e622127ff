"""Matches the arguments of a call, by position or by name, against the parameters of what is called.

In: a `Call` and parameters. Out: the argument of every parameter, by name; complaints about counts, names, repeats
and numbers out of range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spdsl.diagnostics import Related, nearest_name
from spdsl.language.complaints import Complaints
from spdsl.language.printer import shown
from spdsl.language.signatures import Parameter
from spdsl.language.tree import Call, Expression, Number

__all__ = ["check_range", "default_number", "match_arguments", "usage", "values_by_name", "wanted_range"]


def usage(name: str, parameters: Sequence[Parameter]) -> str:
    """How a call looks: `huber(x, delta = 1)`."""
    shown = []
    for parameter in parameters:
        if parameter.default is not None:
            shown.append(f"{parameter.name} = {parameter.default:g}")
        elif parameter.optional:
            shown.append(f"{parameter.name} = ...")
        else:
            shown.append(parameter.name)
    return f"{name}({', '.join(shown)})"


def match_arguments(
    call: Call,
    parameters: Sequence[Parameter],
    complaints: Complaints,
    what: str,
    given: Sequence[Expression] | None = None,
) -> dict[str, Expression] | None:
    """The argument of each parameter (absent ones with a default or optional are left out); None after a complaint.

    `given` replaces the positional arguments of the call (without the age, say).
    """
    positional = list(call.arguments if given is None else given)
    before = call.arguments[: len(call.arguments) - len(positional)]
    form = usage(call.function, [*(Parameter(shown(argument)) for argument in before), *parameters])
    if len(positional) > len(parameters):
        extra = positional[len(parameters)]
        message = f"{what} `{call.function}` takes {_count(len(parameters))}, and this is one more"
        complaints.error("SPL211", message, extra.span, "", *_meant(call), f"its form is `{form}`")
        return None
    matched = {parameter.name: value for parameter, value in zip(parameters, positional)}
    right = True
    names = [parameter.name for parameter in parameters]
    for option in call.options:
        if option.name not in names:
            near = nearest_name(option.name, names)
            helps = [f"did you mean `{near}`?"] if near else []
            message = f"{what} `{call.function}` has no argument `{option.name}`"
            complaints.error("SPL212", message, option.name_span, "", *helps, f"its form is `{form}`")
            right = False
        elif option.name in matched:
            first = Related(matched[option.name].span, "given here first")
            message = f"the argument `{option.name}` is given twice"
            complaints.error("SPL232", message, option.span, "", "delete one of them", related=(first,))
            right = False
        else:
            matched[option.name] = option.value
    if not right:
        return None
    missing = [p.name for p in parameters if p.name not in matched and p.default is None and not p.optional]
    if missing:
        listed = " and ".join(f"`{name}`" for name in missing)
        message = f"{what} `{call.function}` needs {listed}"
        complaints.error("SPL211", message, call.span, "", f"its form is `{form}`")
        return None
    return matched


def _meant(call: Call) -> list[str]:
    """What is often meant by a second argument: targets beside predictions, or the order of a norm."""
    first, second = (shown(argument) for argument in call.arguments[:2])
    if call.function in ("hinge", "squared_hinge", "logistic"):
        label, score = (first, second) if first.isidentifier() else (second, first)
        return [f"losses of classes take the margin: `{call.function}({label} * ({score}))`"]
    if call.function == "norm" and second in ("1", "2"):
        return [f"the {second}-norm is `norm{second}({first})`"]
    if call.function in ("square", "abs") and not isinstance(call.arguments[1], Number):
        return [f"losses of numbers take the residual: `{call.function}({first} - {second})`"]
    return []


def default_number(parameter: Parameter, call: Call) -> Number:
    """The default of a parameter as a node, placed at the call."""
    assert parameter.default is not None
    value = int(parameter.default) if parameter.default == int(parameter.default) else parameter.default
    return Number(value, text=f"{value:g}", span=call.span)


def check_range(
    parameter: Parameter, value: float | None, argument: Expression, what: str, complaints: Complaints
) -> None:
    """Complain when a number lies outside of what a parameter may be."""
    if value is None:
        return
    low, high = parameter.low, parameter.high
    too_low = low is not None and (value <= low if parameter.open_low else value < low)
    too_high = high is not None and value > high
    if too_low or too_high:
        message = f"`{parameter.name}` of `{what}` {wanted_range(parameter)}, and this is {value:g}"
        complaints.error("SPL230", message, argument.span)
    elif parameter.whole and value != int(value):
        message = f"`{parameter.name}` of `{what}` is a whole number, and this is {value:g}"
        complaints.error("SPL230", message, argument.span)


def wanted_range(parameter: Parameter) -> str:
    """What a parameter's value has to be, as the end of a sentence; empty when it may be anything."""
    low, high = parameter.low, parameter.high
    if low is not None and high is not None:
        return f"must lie between {low:g} and {high:g}"
    if low is not None:
        return f"must be {'above' if parameter.open_low else 'at least'} {low:g}"
    return "" if high is None else f"must be at most {high:g}"


def values_by_name(
    parameters: Sequence[Parameter], matched: Mapping[str, Expression], call: Call
) -> dict[str, Expression]:
    """The matched arguments with the defaults filled in, in the order of the parameters."""
    filled: dict[str, Expression] = {}
    for parameter in parameters:
        if parameter.name in matched:
            filled[parameter.name] = matched[parameter.name]
        elif parameter.default is not None:
            filled[parameter.name] = default_number(parameter, call)
    return filled


def _count(number: int) -> str:
    return {0: "no arguments", 1: "one argument"}.get(number, f"{number} arguments")

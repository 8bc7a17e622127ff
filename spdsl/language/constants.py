"""The value of a constant expression under the parameters' defaults, where numbers alone decide it.

In: an expression. Out: a float, or None when it depends on data or sizes (or is no number). Used for range checks and
for the exponents of powers.
"""

from __future__ import annotations

from collections.abc import Mapping

from spdsl.language.tree import Chain, Expression, Name, Number, Power, Unary

__all__ = ["constant_value"]


def constant_value(node: Expression, defaults: Mapping[str, Expression] | None = None) -> float | None:
    """The value; names are looked up among the parameters' defaults (none given: any name makes it unknown)."""
    try:
        return _value(node, defaults or {})
    except (OverflowError, ZeroDivisionError):
        return None


def _value(node: Expression, defaults: Mapping[str, Expression]) -> float | None:
    match node:
        case Number():
            return float(node.value)
        case Name():
            default = defaults.get(node.name)
            return None if default is None else _value(default, defaults)
        case Unary():
            operand = _value(node.operand, defaults)
            return None if operand is None else (-operand if node.operator == "-" else operand)
        case Power():
            base, exponent = _value(node.base, defaults), _value(node.exponent, defaults)
            if base is None or exponent is None:
                return None
            power = base**exponent
            return power if isinstance(power, float) else None
        case Chain():
            return _chain(node, defaults)
        case _:
            return None


def _chain(node: Chain, defaults: Mapping[str, Expression]) -> float | None:
    total = _value(node.operands[0], defaults)
    for operator, operand in zip(node.operators, node.operands[1:]):
        value = _value(operand, defaults)
        if total is None or value is None or operator == "@":
            return None
        match operator:
            case "+":
                total += value
            case "-":
                total -= value
            case "*":
                total *= value
            case "/":
                total /= value
    return total

"""Between expressions and sympy: conversion that recognizes stable functions, and differentiation.

In: an `Expression` over named quantities. Out: a sympy expression. It imports sympy, so nothing that a cached model
needs may import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import sympy

from spdsl.compiler.quantities import Quantity
from spdsl.problem.expressions import Expression, Name, Number

__all__ = ["Symbolic", "derivative", "sigmoid", "softplus", "symbol", "to_sympy"]

Symbolic: TypeAlias = Any  # a sympy expression: sympy is untyped


def symbol(quantity: Quantity) -> Symbolic:
    """The sympy symbol of a quantity, with what is known of its sign as assumption."""
    known = {
        "positive": {"positive": True},
        "nonnegative": {"nonnegative": True},
        "negative": {"negative": True},
        "nonpositive": {"nonpositive": True},
        "count": {"positive": True, "integer": True},
        "real": {"real": True},
        "labels": {"real": True, "nonzero": True},
    }[quantity.sign]
    return sympy.Symbol(quantity.name, **known)


class softplus(sympy.Function):  # type: ignore[misc] # noqa: N801 (spelled as in formulas)
    """log(1 + e^u)."""

    nargs = 1
    is_real = True
    is_positive = True

    def fdiff(self, argindex: int = 1) -> Symbolic:
        """The derivative, a sigmoid."""
        return sigmoid(self.args[0])


class sigmoid(sympy.Function):  # type: ignore[misc] # noqa: N801
    """1 / (1 + e^-u)."""

    nargs = 1
    is_real = True
    is_positive = True

    def fdiff(self, argindex: int = 1) -> Symbolic:
        """The derivative as a product without cancellation."""
        return sigmoid(self.args[0]) * sigmoid(-self.args[0])


# --- expression -> sympy --------------------------------------------------------------------------------------------


def number(value: float) -> Symbolic:
    """A literal as an exact decimal: 5e-3 is 1/200, so that formulas stay readable and cancellations exact."""
    if value != value or value in (float("inf"), float("-inf")):
        return sympy.Float(value)
    if value == int(value) and abs(value) < 1e15:
        return sympy.Integer(int(value))
    return sympy.Rational(repr(float(value)))


def to_sympy(expression: Expression, symbols: Mapping[str, Symbolic]) -> Symbolic:
    """An expression in primitives (see `atoms.expand_atoms`) as sympy, with stable functions recognized."""
    results: list[Symbolic] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Number):
            results.append(number(node.value))
        elif isinstance(node, Name):
            results.append(symbols[node.name])
        elif ready:
            count = len(node.arguments)
            arguments = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(apply(node.function, arguments))
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    return results[0]


def apply(function: str, arguments: list[Symbolic]) -> Symbolic:
    """A primitive applied to sympy arguments."""
    match function:
        case "add":
            return sympy.Add(*arguments)
        case "multiply":
            return sympy.Mul(*arguments)
        case "divide":
            return _quotient(arguments[0], arguments[1])
        case "negative":
            return -arguments[0]
        case "power":
            return arguments[0] ** arguments[1]
        case "sqrt":
            return sympy.sqrt(arguments[0])
        case "exp":
            return sympy.exp(arguments[0])
        case "log":
            return _logarithm(arguments[0])
        case "softplus":
            return softplus(arguments[0])
        case "abs":
            return sympy.Abs(arguments[0])
        case "max":
            return sympy.Max(*arguments)
        case "min":
            return sympy.Min(*arguments)
        case "piecewise":
            pairs = list(zip(arguments[0:-1:2], arguments[1:-1:2]))
            return sympy.Piecewise(*pairs, (arguments[-1], True))
        case "less":
            return arguments[0] < arguments[1]
        case "less_equal":
            return arguments[0] <= arguments[1]
        case "greater":
            return arguments[0] > arguments[1]
        case "greater_equal":
            return arguments[0] >= arguments[1]
        case "equal":
            return sympy.Eq(arguments[0], arguments[1])
        case "and":
            return sympy.And(*arguments)
    raise KeyError(function)


def _log_sum(total: Symbolic) -> Symbolic | None:
    """log of a sum of two positive terms of which one at least is c e^u, as a stable softplus; None otherwise."""
    if not isinstance(total, sympy.Add) or len(total.args) != 2 or not total.has(sympy.exp):
        return None
    first, second = (_log_of_exponential(term) for term in total.args)
    if first is None or second is None:
        return None
    if first.is_number or (not second.is_number and sympy.default_sort_key(first) < sympy.default_sort_key(second)):
        return first + softplus(second - first)
    return second + softplus(first - second)


def _log_of_exponential(term: Symbolic) -> Symbolic | None:
    """u + log(c) of c e^u with a positive c, None for other terms."""
    coefficient, factors = term.as_independent(sympy.exp)
    if not coefficient.is_positive:
        return None
    exponent = sympy.Integer(0)
    for factor in sympy.Mul.make_args(factors):
        if factor == 1:
            continue
        if not isinstance(factor, sympy.exp):
            return None
        exponent += factor.args[0]
    return exponent + sympy.log(coefficient)


def _logarithm(argument: Symbolic) -> Symbolic:
    stable = _log_sum(argument)
    return sympy.log(argument) if stable is None else stable


def _quotient(above: Symbolic, below: Symbolic) -> Symbolic:
    """above / below; e^a / (e^a + e^b) in any spelling becomes a sigmoid."""
    stable = _log_sum(below)
    if stable is None:
        return above / below
    log_above = _log_of_exponential(above)
    parts = [_log_of_exponential(term) for term in below.args]
    if log_above is not None:
        for own, other in (parts, parts[::-1]):
            assert own is not None
            difference = sympy.expand(log_above - own)
            if difference.is_number:
                return sympy.exp(difference) * sigmoid(sympy.expand(own - other))
    return above / below


# --- differentiation ------------------------------------------------------------------------------------------------


def derivative(e: Symbolic, x: Symbolic) -> Symbolic:
    """The derivative; as `sympy.diff`, whose first call loads tensors and group theory, and which takes thousands of
    terms slowly."""
    if e == x:
        return sympy.Integer(1)
    if not e.has(x):
        return sympy.Integer(0)
    if e.is_Add:
        return sympy.Add(*(derivative(term, x) for term in e.args if term.has(x)))
    if e.is_Mul:
        moving = [factor for factor in e.args if factor.has(x)]
        rest = sympy.Mul(*(factor for factor in e.args if not factor.has(x)))
        parts = []
        for position, factor in enumerate(moving):
            parts.append(sympy.Mul(rest, *moving[:position], derivative(factor, x), *moving[position + 1 :]))
        return sympy.Add(*parts)
    if e.is_Pow:
        base, exponent = e.args
        if not exponent.has(x):
            return exponent * base ** (exponent - 1) * derivative(base, x)
        inner = derivative(exponent, x) * sympy.log(base)
        return e * (inner + exponent * derivative(base, x) / base if base.has(x) else inner)
    if len(e.args) == 1 and isinstance(e, (sympy.exp, sympy.log, softplus, sigmoid)):
        return e.fdiff(1) * derivative(e.args[0], x)
    return sympy.diff(e, x)

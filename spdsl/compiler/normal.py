"""Sums of products of constants in a normal form, to see that two predictors are multiples of each other (no sympy).

In: expressions without variables. Out: ``{monomial: coefficient}``; a monomial is a sorted tuple of (factor, power).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from spdsl.problem.expressions import Call, Expression, Number, text

__all__ = ["Monomial", "Normal", "add", "collected", "expression", "multiply", "normal", "single", "size"]

Monomial: TypeAlias = tuple[tuple[Expression, int], ...]
Normal: TypeAlias = dict[Monomial, float]

LONGEST = 64  # products of sums are multiplied out up to so many terms


def normal(value: Expression | None) -> Normal:
    """The normal form; None is zero."""
    if value is None:
        return {}
    if isinstance(value, Number):
        return {(): value.value} if value.value else {}
    if not isinstance(value, Call):
        return {((value, 1),): 1.0}
    if value.function == "negative":
        return scaled(normal(value.arguments[0]), -1.0)
    if value.function == "add":
        total: Normal = {}
        for argument in value.arguments:
            for monomial, coefficient in normal(argument).items():
                total[monomial] = total.get(monomial, 0.0) + coefficient
        return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}
    if value.function == "multiply":
        product: Normal = {(): 1.0}
        for argument in value.arguments:
            product = multiply(product, normal(argument))
        return product
    if (
        value.function == "power"
        and isinstance(value.arguments[1], Number)
        and value.arguments[1].value in (2.0, 3.0, 4.0)
    ):
        base = normal(value.arguments[0])
        if len(base) <= 4:
            power: Normal = {(): 1.0}
            for _ in range(int(value.arguments[1].value)):
                power = multiply(power, base)
            return power
    if value.function == "divide":
        below = single(normal(value.arguments[1]))
        if below is not None and below[1]:
            inverse = tuple((factor, -power) for factor, power in below[0])
            return multiply(normal(value.arguments[0]), {inverse: 1.0 / below[1]})
    return {((value, 1),): 1.0}


def collected(value: Expression, longest: int = 20) -> Expression:
    """The expression with like terms collected in every sum of more than `longest` terms (not recursive)."""
    results: list[Expression] = []
    stack: list[tuple[Expression, bool]] = [(value, False)]
    while stack:
        node, ready = stack.pop()
        if not isinstance(node, Call):
            results.append(node)
        elif ready:
            count = len(node.arguments)
            made = Call(node.function, tuple(results[len(results) - count :]))
            del results[len(results) - count :]
            long = node.function == "add" and count > longest
            results.append(expression(normal(made)) if long else made)
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    return results[0]


def size(value: Expression) -> int:
    """The number of nodes."""
    count, stack = 0, [value]
    while stack:
        node = stack.pop()
        count += 1
        if isinstance(node, Call):
            stack.extend(node.arguments)
    return count


def single(form: Normal) -> tuple[Monomial, float] | None:
    """The monomial and coefficient of a form of one term, None for others."""
    return next(iter(form.items())) if len(form) == 1 else None


def scaled(form: Normal, factor: float) -> Normal:
    """The form times a number."""
    return {monomial: coefficient * factor for monomial, coefficient in form.items()}


def add(left: Normal, right: Normal, factor: float = 1.0) -> Normal:
    """left + factor * right."""
    total = dict(left)
    for monomial, coefficient in right.items():
        new = total.get(monomial, 0.0) + factor * coefficient
        if new == 0.0:
            total.pop(monomial, None)
        else:
            total[monomial] = new
    return total


def multiply(left: Normal, right: Normal) -> Normal:
    """The product, multiplied out when it stays short."""
    if len(left) * len(right) > LONGEST:
        return {((expression(left), 1), (expression(right), 1)): 1.0}
    product: Normal = {}
    for a, first in left.items():
        for b, second in right.items():
            product = add(product, {joined(a, b): first * second})
    return product


def joined(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials."""
    powers: dict[Expression, int] = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(((f, p) for f, p in powers.items() if p), key=lambda item: text(item[0])))


def expression(form: Mapping[Monomial, float]) -> Expression:
    """An expression again."""
    if not form:
        return Number(0.0)
    terms = [_term(monomial, coefficient) for monomial, coefficient in form.items()]
    return terms[0] if len(terms) == 1 else Call("add", tuple(terms))


def _term(monomial: Monomial, coefficient: float) -> Expression:
    above: list[Expression] = [] if abs(coefficient) == 1.0 else [Number(abs(coefficient))]
    below: list[Expression] = []
    for factor, power in monomial:
        raised = factor if abs(power) == 1 else Call("power", (factor, Number(float(abs(power)))))
        (above if power > 0 else below).append(raised)
    top: Expression = _product(above) if above else Number(1.0)
    found = Call("divide", (top, _product(below))) if below else top
    return Call("negative", (found,)) if coefficient < 0 else found


def _product(factors: list[Expression]) -> Expression:
    return factors[0] if len(factors) == 1 else Call("multiply", tuple(factors))

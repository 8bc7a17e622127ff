"""Interval arithmetic over sympy expressions, rounded outwards: a lower bound that is sure.

In: an expression and an interval for each symbol. Out: a number below every value that the expression takes there
(-inf when nothing is known).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from spdsl.compiler.algebra import Symbolic

__all__ = ["enclosure", "lower_bound"]

Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)


def lower_bound(expression: Symbolic, box: Mapping[Any, Interval]) -> float:
    """A lower bound of the expression on a box."""
    return enclosure(expression, box)[0]


def enclosure(e: Symbolic, box: Mapping[Any, Interval]) -> Interval:
    """An interval that holds every value of the expression on a box."""
    if e.is_Symbol:
        return box.get(e, EVERYTHING)
    if e.is_Number or e.is_NumberSymbol:
        value = float(e)
        return _wider(value, value)
    parts = [enclosure(argument, box) for argument in e.args]
    if e.is_Add:
        low = math.fsum(part[0] for part in parts) if _sound(parts, 0) else -math.inf
        high = math.fsum(part[1] for part in parts) if _sound(parts, 1) else math.inf
        return _wider(low, high)
    if e.is_Mul:
        result = parts[0]
        for part in parts[1:]:
            result = _product(result, part)
        return result
    if e.is_Pow:
        return _power(parts[0], parts[1], e.exp)
    return _function(type(e).__name__, parts)


def _sound(parts: list[Interval], end: int) -> bool:
    """Is the sum of these ends no inf - inf?"""
    ends = [part[end] for part in parts]
    return not (math.inf in ends and -math.inf in ends)


def _wider(low: float, high: float) -> Interval:
    """Rounded outwards by a few units in the last place; an exact zero stays one."""
    if math.isnan(low) or math.isnan(high):
        return EVERYTHING
    return low - 4e-16 * abs(low), high + 4e-16 * abs(high)


def _product(left: Interval, right: Interval) -> Interval:
    ends = [0.0 if 0.0 in (a, b) else a * b for a in left for b in right]  # 0 * inf: the limit of a bounded factor
    if (0.0 in left and math.inf in map(abs, right)) or (0.0 in right and math.inf in map(abs, left)):
        ends += [0.0]
    return _wider(min(ends), max(ends))


def _power(base: Interval, exponent: Interval, shown: Symbolic) -> Interval:
    low, high = base
    if shown.is_Integer:
        n = int(shown)
        if n < 0:
            inner = _power(base, (-n, -n), -shown)
            if inner[0] <= 0.0 <= inner[1]:
                return (1.0 / inner[1] if inner[1] > 0 else 0.0, math.inf) if inner[0] == 0.0 else EVERYTHING
            return _wider(*sorted((_inverse(inner[0]), _inverse(inner[1]))))
        ends = sorted((_raised(low, n), _raised(high, n)))
        if n % 2 == 0 and low < 0 < high:
            ends[0] = 0.0
        return _wider(*ends)
    if low < 0 or (exponent[0] <= 0 <= exponent[1] and (low == 0 or high == math.inf)):
        return EVERYTHING
    return _wider(*_general(base, exponent))


def _general(base: Interval, exponent: Interval) -> Interval:
    """x^p is monotone in x and in p: its extremes lie at the corners."""
    ends = [_positive_power(b, p) for b in base for p in exponent]
    return min(ends), max(ends)


def _raised(value: float, n: int) -> float:
    try:
        return float(value**n)
    except OverflowError:
        return math.inf if value > 0 or n % 2 == 0 else -math.inf


def _inverse(value: float) -> float:
    return 0.0 if math.isinf(value) else 1.0 / value


def _positive_power(base: float, p: float) -> float:
    if base == 0.0:
        return 0.0 if p > 0 else math.inf
    if math.isinf(base):
        return math.inf if p > 0 else 0.0
    try:
        return float(base**p)
    except OverflowError:
        return math.inf


def _function(name: str, parts: list[Interval]) -> Interval:
    low, high = parts[0]
    if name == "exp":
        return _wider(max(0.0, _exp(low) * (1 - 1e-15)), _exp(high))
    if name == "log":
        if high <= 0:
            return EVERYTHING
        return _wider(-math.inf if low <= 0 else _log(low), _log(high))
    if name == "softplus":
        return _wider(max(0.0, _softplus(low) * (1 - 1e-15)), _softplus(high))
    if name == "sigmoid":
        return _wider(max(0.0, _sigmoid(low) * (1 - 1e-15)), min(1.0, _sigmoid(high)))
    if name == "Abs":
        return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if name == "Max":
        return max(p[0] for p in parts), max(p[1] for p in parts)
    if name == "Min":
        return min(p[0] for p in parts), min(p[1] for p in parts)
    return EVERYTHING


def _exp(u: float) -> float:
    return math.inf if u > 709 else math.exp(u)


def _log(u: float) -> float:
    return math.inf if math.isinf(u) else math.log(u)


def _softplus(u: float) -> float:
    return max(u, 0.0) + (0.0 if math.isinf(u) else math.log1p(math.exp(-abs(u))))


def _sigmoid(u: float) -> float:
    if math.isinf(u):
        return 1.0 if u > 0 else 0.0
    return 1.0 / (1.0 + math.exp(-u)) if u > -709 else 0.0

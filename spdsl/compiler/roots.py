"""Where a smooth scalar function changes its sign: closed forms where there are any, bracketed numbers otherwise.

In: a sympy expression, the scope that says which symbol is the argument, an interval. Out: (formula, place) pairs,
ascending, each verified numerically at the parameters' typical values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from spdsl.compiler.algebra import Symbolic, derivative, sigmoid, softplus
from spdsl.compiler.failures import NoClosedFormError
from spdsl.compiler.scope import Scope
from spdsl.compiler.spelling import formula

__all__ = ["invert", "zeros"]


def zeros(expression: Symbolic, scope: Scope, low: float, high: float) -> list[tuple[Symbolic, float]]:
    """The sign changes of `expression` strictly inside (low, high).

    Raises
    ------
    NoClosedFormError
        When one depends on parameters and neither inversion nor sympy gives a formula for it.
    """
    z = scope.symbol
    if not expression.has(z):
        return []
    candidates = _polynomial_roots(expression, z)
    if candidates is not None:
        return _changes(expression, candidates, scope, low, high)
    brackets = _brackets(expression, scope, low, high)
    if not brackets:
        return []
    found = _changes(expression, invert(expression, z, sympy.Integer(0)), scope, low, high)
    depends_on_parameters = bool(expression.free_symbols - {z})
    if len(found) != len(brackets) and depends_on_parameters:
        found = _changes(expression, _solve(expression, z), scope, low, high)
    if len(found) == len(brackets):
        return found
    if depends_on_parameters:
        raise NoClosedFormError(formula(expression).text)
    return [(sympy.Float(root), root) for root in (_bisect(expression, scope, *bracket) for bracket in brackets)]


def _polynomial_roots(expression: Symbolic, z: Symbolic) -> list[Symbolic] | None:
    """Roots of a polynomial of degree 1 or 2, None for anything else."""
    expanded = sympy.expand(expression)
    if not expanded.is_polynomial(z):
        return None
    slope = derivative(expanded, z)
    if not slope.has(z):
        return [_ratio(-expanded.coeff(z, 0), expanded.coeff(z, 1))]
    if not derivative(slope, z).has(z):
        a, b, c = (expanded.coeff(z, power) for power in (2, 1, 0))
        if b == 0:
            root = sympy.sqrt(_ratio(-c, a))
            return [-root, root]
        square = sympy.expand(b**2 - 4 * a * c)
        root = sympy.sqrt(square if square.is_number else sympy.factor(square))
        return [_ratio(-b - root, 2 * a), _ratio(-b + root, 2 * a)]
    return None


def _ratio(above: Symbolic, below: Symbolic) -> Symbolic:
    """above / below, simplified; polynomial arithmetic, which is slow to load, only where it is needed."""
    return sympy.expand(above / below) if below.is_number else sympy.cancel(above / below)


def invert(expression: Symbolic, z: Symbolic, target: Symbolic) -> list[Symbolic]:
    """Solutions of expression = target by undoing one operation after the other, for an argument that occurs once.

    Every candidate is a formula to be verified: roots of even order give both signs.
    """
    pending = [(expression, target)]
    solutions: list[Symbolic] = []
    while pending:
        left, right = pending.pop()
        if right.has(z):  # the rest of a sum or product did not cancel
            continue
        if left == z:
            solutions.append(right)
            continue
        holders = [argument for argument in left.args if argument.has(z)]
        if len(holders) != 1:
            return []
        holder = holders[0]
        if left.is_Add:
            pending.append((holder, right - (left - holder)))
        elif left.is_Mul:
            pending.append((holder, right / (left / holder)))
        elif left.is_Pow and left.exp.has(z):
            pending.append((holder, sympy.log(right) / sympy.log(left.base)))
        elif left.is_Pow:
            root = sympy.powdenest(right ** (1 / left.exp), force=False)
            pending.append((holder, root))
            if left.exp.is_Integer and left.exp % 2 == 0:
                pending.append((holder, -root))
        elif isinstance(left, sympy.exp):
            pending.append((holder, sympy.log(right)))
        elif isinstance(left, sympy.log):
            pending.append((holder, sympy.exp(right)))
        elif isinstance(left, softplus):
            pending.append((holder, sympy.log(sympy.exp(right) - 1)))
        elif isinstance(left, sigmoid):
            pending.append((holder, sympy.log(right / (1 - right))))
        else:
            return []
    return solutions


def _solve(expression: Symbolic, z: Symbolic) -> list[Symbolic]:
    try:
        return [root for root in sympy.solve(expression, z) if not root.has(sympy.I)]
    except (NotImplementedError, ValueError, TypeError, AttributeError, RecursionError):
        return []


def _changes(
    expression: Symbolic, candidates: list[Symbolic], scope: Scope, low: float, high: float
) -> list[tuple[Symbolic, float]]:
    """Those candidates that lie inside and at which the sign really changes, ascending."""
    found: list[tuple[Symbolic, float]] = []
    for candidate in candidates:
        place = scope.number(candidate, 0.0)
        if not np.isfinite(place) or not low < place < high:
            continue
        step = 1e-6 * max(1.0, abs(place))
        step = min(step, 0.5 * (place - low), 0.5 * (high - place))
        left, right = scope.number(expression, place - step), scope.number(expression, place + step)
        if left * right < 0 and all(abs(place - other) > 1e-12 * max(1.0, abs(place)) for _, other in found):
            found.append((candidate, place))
    return sorted(found, key=lambda item: item[1])


def _brackets(expression: Symbolic, scope: Scope, low: float, high: float) -> list[tuple[float, float]]:
    """Neighbouring grid points between which the sign changes; the grid is dense near 0 and reaches far out."""
    grid = spread(low, high)
    values = np.broadcast_to(np.asarray(scope.function(expression)(grid, scope.typical), float), grid.shape)
    signs: Any = np.sign(values)
    keep = np.isfinite(values) & (signs != 0)
    grid, signs = grid[keep], signs[keep]
    where = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    return [(float(grid[i]), float(grid[i + 1])) for i in where]


def spread(low: float, high: float, count: int = 2001) -> Any:
    """Points strictly inside (low, high): uniform where both ends are finite, else to +-1e6 with growing steps."""
    if np.isfinite(low) and np.isfinite(high):
        return np.linspace(low, high, count + 2)[1:-1]
    scale = np.sinh(np.linspace(-14.5, 14.5, count))  # to about 1e6
    if np.isfinite(low):
        return low + np.exp(np.linspace(-20.0, 14.0, count))
    if np.isfinite(high):
        return (high - np.exp(np.linspace(-20.0, 14.0, count)))[::-1]
    return scale


def _bisect(expression: Symbolic, scope: Scope, low: float, high: float) -> float:
    left = scope.number(expression, low)
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        value = scope.number(expression, middle)
        if value == 0:
            return middle
        if value * left < 0:
            high = middle
        else:
            low, left = middle, value

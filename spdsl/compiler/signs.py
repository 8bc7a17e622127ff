"""Proves that a smooth function is nowhere negative on an interval: by sympy's assumptions, by roots, by interval
arithmetic.

In: a sympy expression, a segment, the scope. Out: True only where it is proved; the reason in a few words. The first
two ways hold for every value of the parameters with their signs, the last one for their typical values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import sympy

from spdsl.compiler.algebra import Symbolic
from spdsl.compiler.branches import Segment
from spdsl.compiler.intervals import lower_bound
from spdsl.compiler.quantities import Quantity
from spdsl.compiler.scope import Scope

__all__ = ["proof_of_nonnegativity"]

SMALL = 80  # operations up to which costly transformations are tried
CELLS = 4000


def proof_of_nonnegativity(expression: Symbolic, segment: Segment, scope: Scope) -> str | None:
    """How it is proved that `expression` >= 0 on the segment, None when it isn't."""
    if any(bool(spelling.is_nonnegative) for spelling in _cheap(expression)):
        return "by the signs of its parts"
    z = scope.symbol
    if not expression.has(z):
        return None
    for shifted in _shifted(expression, segment, z):
        if any(bool(spelling.is_nonnegative) for spelling in _cheap(shifted)):
            return "by the signs of its parts"
    if _no_sign_change(expression, segment, scope):
        return "by isolating its real roots"
    if expression.count_ops() <= SMALL and any(bool(spelling.is_nonnegative) for spelling in _costly(expression)):
        return "by the signs of its parts"
    if _by_intervals(expression, segment, scope):
        return "by interval arithmetic" + (", at the parameters' default values" if scope.quantities else "")
    return None


def _cheap(expression: Symbolic) -> Iterator[Symbolic]:
    yield expression
    if expression.count_ops() <= SMALL:
        yield sympy.expand(expression)
        yield sympy.factor_terms(expression)


def _costly(expression: Symbolic) -> Iterator[Symbolic]:
    yield sympy.together(expression)
    yield sympy.factor(expression)
    yield sympy.simplify(expression)


def _shifted(expression: Symbolic, segment: Segment, z: Symbolic) -> Iterator[Symbolic]:
    """The expression over t > 0, the distance from an end of the segment (as a share of it when there are two)."""
    t = sympy.Dummy("t", positive=True)
    lower = None if segment.lower is None else segment.lower.at
    upper = None if segment.upper is None else segment.upper.at
    if lower is not None and upper is not None:
        yield expression.subs(z, lower + (upper - lower) * t / (1 + t))
    elif lower is not None:
        yield expression.subs(z, lower + t)
    elif upper is not None:
        yield expression.subs(z, upper - t)


def _no_sign_change(expression: Symbolic, segment: Segment, scope: Scope) -> bool:
    """For polynomials with numeric coefficients: no real root of odd order inside, and positive somewhere."""
    z = scope.symbol
    if expression.free_symbols != {z} or not expression.is_polynomial(z):
        return False
    low = None if segment.lower is None else sympy.nsimplify(segment.lower.at)
    high = None if segment.upper is None else sympy.nsimplify(segment.upper.at)
    if any(end is not None and not end.is_rational for end in (low, high)):
        return False
    polynomial = sympy.Poly(expression, z)
    if any(not coefficient.is_rational for coefficient in polynomial.all_coeffs()):
        return False
    _, factors = polynomial.factor_list()
    for factor, power in factors:
        if power % 2 and factor.count_roots(low, high) > sum(
            1 for end in (low, high) if end is not None and factor.eval(end) == 0
        ):
            return False
    inside = [segment.inside, segment.inside + 0.1234]
    return any(scope.number(expression, point) > 0 for point in inside)


def _by_intervals(expression: Symbolic, segment: Segment, scope: Scope) -> bool:
    """Bisection of the segment until every cell's lower bound is >= 0, or the budget is spent."""
    box = {scope.symbols[item.name]: _range(item) for item in scope.quantities}
    low, high = segment.ends
    pending = [(low, high)] if low > -1e300 and high < 1e300 else _cells(low, high)
    for _ in range(CELLS):
        if not pending:
            return True
        a, b = pending.pop()
        if lower_bound(expression, {**box, scope.symbol: (a, b)}) >= 0:
            continue
        if b - a < 1e-7 * max(1.0, abs(a)) or b == float("inf") or a == -float("inf"):
            return False
        middle = 0.5 * (a + b)
        pending += [(a, middle), (middle, b)]
    return False


def _range(item: Quantity) -> tuple[float, float]:
    """The typical value of a parameter; everything that its sign allows for data."""
    if not item.varies:
        return item.reference, item.reference
    low = {"positive": 0.0, "nonnegative": 0.0, "labels": -1.0, "count": 1.0}.get(item.sign, -math.inf)
    high = {"negative": 0.0, "nonpositive": 0.0, "labels": 1.0}.get(item.sign, math.inf)
    return low, high


def _cells(low: float, high: float) -> list[tuple[float, float]]:
    ends = [-float("inf"), -1e6, -1e3, -30.0, -1.0, 0.0, 1.0, 30.0, 1e3, 1e6, float("inf")]
    inner = [end for end in ends if low < end < high]
    cuts = [low, *inner, high]
    return list(pairwise(cuts))

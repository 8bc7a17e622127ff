"""Other spellings of small formulas: for reading, and so that an argument may come to occur only once.

In: a sympy expression. Out: equal ones. Only cheap transformations: `sympy.simplify` may take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy

from spdsl.compiler.algebra import Symbolic

__all__ = ["shortest", "spellings"]

LARGEST = 120  # operations; beyond that only the expression itself


def spellings(expression: Symbolic) -> Iterator[Symbolic]:
    """The expression, expanded, with powers joined, factored."""
    seen: list[Symbolic] = []

    def fresh(candidate: Symbolic) -> bool:
        if candidate in seen:
            return False
        seen.append(candidate)
        return True

    if fresh(expression):
        yield expression
    if expression.is_Atom or expression.count_ops() > LARGEST:
        return
    expanded = sympy.expand(expression)
    joined = sympy.powsimp(expanded)
    for candidate in (expanded, joined, sympy.expand(sympy.expand_log(joined, force=True))):
        if fresh(candidate):
            yield candidate
    for base in (joined, expression):
        try:
            factored = sympy.factor_terms(base), sympy.factor(base)
        except (sympy.PolynomialError, NotImplementedError, ValueError):
            continue
        for candidate in factored:
            if fresh(candidate):
                yield candidate


def shortest(expression: Symbolic) -> Symbolic:
    """The spelling with the fewest operations (the first of equals)."""
    return min(spellings(expression), key=lambda candidate: candidate.count_ops())

"""Scalar functions of several predictors, such as the largest of two: no kernel, only their pieces for people.

In: a `Scalarized` formula of several arguments. Out: a `ScalarFunction` without kernel; the reference translates its
body.
"""

from __future__ import annotations

from spdsl.compiler.scalarize import Scalarized
from spdsl.problem.expressions import Call, Expression, names, text
from spdsl.problem.functions import Formula, Piece, ScalarFunction

__all__ = ["by_argument", "several_arguments"]


def several_arguments(formula: Scalarized, convexity: str) -> ScalarFunction:
    """The record; its one piece is the formula itself (selection functions of several arguments have no order)."""
    whole = Formula(text(formula.body))
    unknown = Formula("")
    return ScalarFunction(
        body=formula.body,
        arguments=formula.arguments,
        parameters=tuple(item.name for item in formula.quantities),
        values=formula.values,
        pieces=(Piece(None, None, whole, unknown, unknown),),
        kinks=(),
        convexity=convexity,
        kernel=None,
    )


def by_argument(formula: Scalarized) -> dict[str, Expression] | None:
    """The terms of a sum, gathered by the one argument that each has; None when a term has several."""
    if not isinstance(formula.body, Call) or formula.body.function != "add":
        return None
    found: dict[str, list[Expression]] = {}
    for term in formula.body.arguments:
        mentioned = names(term) & set(formula.arguments)
        if len(mentioned) > 1:
            return None
        if mentioned:
            found.setdefault(next(iter(mentioned)), []).append(term)
    return {z: terms[0] if len(terms) == 1 else Call("add", tuple(terms)) for z, terms in found.items()}

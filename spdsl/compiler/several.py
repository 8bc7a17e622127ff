"""Scalar functions of several predictors, such as the largest of two: no kernel, only their pieces for people.

In: a `Scalarized` formula of several arguments. Out: a `ScalarFunction` without kernel; the reference translates its
body.
"""

from __future__ import annotations

from spdsl.compiler.scalarize import Scalarized
from spdsl.problem.expressions import text
from spdsl.problem.functions import Formula, Piece, ScalarFunction

__all__ = ["several_arguments"]


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

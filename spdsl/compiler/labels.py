"""Labels inside a formula: its pieces are derived for -1 and for +1, and joined, as every function of a label is
affine in it.

In: a formula in primitives, the scope. Out: segments whose borders and formulas mention the label as a symbol. The
kink of ``hinge(y*z) + z^2`` lies at y: on the right for one class, on the left for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import sympy

from spdsl.compiler.algebra import Symbolic
from spdsl.compiler.atoms import mentions
from spdsl.compiler.branches import Border, Segment, enumerate_segments, merge, same
from spdsl.compiler.scope import Scope
from spdsl.problem.expressions import Expression, Number, substituted

__all__ = ["segments_of"]


def segments_of(expression: Expression, scope: Scope) -> list[Segment]:
    """The pieces of an expression in primitives, equal neighbours merged."""
    label = next((item for item in scope.quantities if item.sign == "labels" and mentions(expression, item.name)), None)
    if label is None:
        return merge(enumerate_segments(expression, scope), scope)
    positive, negative = (
        segments_of(substituted(expression, {label.name: Number(value)}), scope) for value in (1.0, -1.0)
    )
    return _joined(positive, negative, scope.symbols[label.name])


def _joined(positive: Sequence[Segment], negative: Sequence[Segment], label: Symbolic) -> list[Segment]:
    """One list of segments: g(y) = (g(1) + g(-1))/2 + y (g(1) - g(-1))/2; the shorter list gets empty pieces."""
    count = max(len(positive), len(negative))
    above, below = _padded(positive, count), _padded(negative, count)
    borders: list[Border | None] = [above[0].lower]
    for left, right in zip(above[1:], below[1:]):
        assert left.lower is not None
        assert right.lower is not None
        borders.append(Border(_mixed(left.lower.at, right.lower.at, label), left.lower.place))
    borders.append(above[-1].upper)
    formulas = [_mixed(left.formula, right.formula, label) for left, right in zip(above, below)]
    return [Segment(low, high, formula) for (low, high), formula in zip(pairwise(borders), formulas)]


def _padded(segments: Sequence[Segment], count: int) -> list[Segment]:
    """Empty pieces added at the last border, with the formula of the last piece; a single piece is cut at 0."""
    padded = list(segments)
    while len(padded) < count:
        last = padded.pop()
        if not padded:
            zero = Border(sympy.Integer(0), 0.0)
            padded = [replace(last, upper=zero), replace(last, lower=zero)]
        else:
            padded += [replace(last, upper=last.lower), last]
    return padded


def _mixed(positive: Symbolic, negative: Symbolic, label: Symbolic) -> Symbolic:
    if same(positive, negative):
        return positive
    return sympy.expand((positive + negative) / 2) + label * sympy.expand((positive - negative) / 2)

"""Enumerates the branches of a scalar formula: its smooth pieces from left to right and the borders between them.

In: an expression in primitives (`abs`, `max`, `min`, `piecewise` and smooth functions) over one argument and
parameters. Out: `Segment`s with sympy formulas. The tree is walked from the leaves up, each node combining the pieces
of its children, so nested kinks need no case distinction; `sympy.solve` on a piecewise equation, which loses branches
silently, is never used. The order of the borders is decided at the parameters' typical values; `derive` verifies it
at others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import sympy

from spdsl.compiler.algebra import Symbolic, apply, to_sympy
from spdsl.compiler.atoms import COMPARISONS, mentions
from spdsl.compiler.failures import TooManyPiecesError
from spdsl.compiler.roots import zeros
from spdsl.compiler.scope import Scope
from spdsl.problem.expressions import Call, Expression

__all__ = ["MAXIMUM_PIECES", "Border", "Segment", "enumerate_segments", "merge", "same"]

MAXIMUM_PIECES = 120  # labels of pieces are int8
INFINITY = float("inf")


@dataclass(frozen=True)
class Border:
    """A border between two segments: its formula over the parameters, and its place at their typical values."""

    at: Symbolic
    place: float


@dataclass(frozen=True)
class Segment:
    """One smooth piece; None for an unbounded side."""

    lower: Border | None
    upper: Border | None
    formula: Symbolic

    @property
    def ends(self) -> tuple[float, float]:
        """The interval at the parameters' typical values."""
        return (
            -INFINITY if self.lower is None else self.lower.place,
            INFINITY if self.upper is None else self.upper.place,
        )

    @property
    def inside(self) -> float:
        """A point well inside."""
        low, high = self.ends
        if low == -INFINITY:
            return 0.0 if high == INFINITY else high - 1.0 - abs(high)
        return low + 1.0 + abs(low) if high == INFINITY else 0.5 * (low + high)


def enumerate_segments(expression: Expression, scope: Scope) -> list[Segment]:
    """The pieces of an expression (atoms expanded), ascending, equal neighbours not yet merged.

    Raises
    ------
    TooManyPiecesError
        For more than `MAXIMUM_PIECES`.
    """
    return _Enumerator(scope).segments(expression)


class _Enumerator:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        start = None if scope.lower is None else Border(sympy.nsimplify(scope.lower), scope.lower)
        end = None if scope.upper is None else Border(sympy.nsimplify(scope.upper), scope.upper)
        self.whole = Segment(start, end, None)

    def segments(self, node: Expression) -> list[Segment]:
        if not isinstance(node, Call) or not mentions(node, self.scope.argument):
            return [replace(self.whole, formula=to_sympy(node, self.scope.symbols))]
        if node.function == "piecewise":
            return self.piecewise(node)
        children = [self.segments(argument) for argument in node.arguments]
        if node.function == "abs":
            return self.choose([children[0], _mapped(children[0], lambda u: -u)], largest=True)
        if node.function in ("max", "min") and len(children) > 1:
            return self.choose(children, largest=node.function == "max")
        return self.combine(node.function, children)

    def combine(self, function: str, children: list[list[Segment]]) -> list[Segment]:
        """A smooth function of children: applied cell by cell of the common refinement."""
        cells = self.refine(children)
        return [replace(cell, formula=apply(function, list(formulas))) for cell, formulas in cells]

    def choose(self, children: list[list[Segment]], largest: bool) -> list[Segment]:
        """The largest (smallest) of the children, two at a time."""
        result = children[0]
        for child in children[1:]:
            chosen: list[Segment] = []
            for cell, (left, right) in self.refine([result, child]):
                difference = left - right
                for part in self.split(cell, difference):
                    ahead = self.sign(difference, part)
                    chosen.append(replace(part, formula=left if (ahead > 0) == largest else right))
            result = self.limited(merge(chosen, self.scope))
        return result

    def piecewise(self, node: Call) -> list[Segment]:
        """The first condition that holds decides; conditions split cells where their two sides cross."""
        *pairs, last = node.arguments
        values, conditions = pairs[0::2], pairs[1::2]
        rest = [replace(self.whole, formula=None)]
        done: list[Segment] = []
        for value, condition in zip(values, conditions):
            mine: list[Segment] = []
            others: list[Segment] = []
            for cell in rest:
                for part, holds in self.decide(condition, cell):
                    (mine if holds else others).append(part)
            done += self.fill(value, mine)
            rest = others
        done += self.fill(last, rest)
        return self.limited(sorted(done, key=lambda segment: segment.ends))

    def fill(self, value: Expression, cells: list[Segment]) -> list[Segment]:
        """The pieces of `value` inside given cells."""
        return [
            replace(part, formula=formulas[0])
            for cell in cells
            for part, formulas in self.refine([self.segments(value)], cell)
        ]

    def decide(self, condition: Expression, cell: Segment) -> list[tuple[Segment, bool]]:
        """A cell cut where a condition changes, each part with the condition's truth."""
        assert isinstance(condition, Call)
        if condition.function == "and":
            parts = [(cell, True)]
            for item in condition.arguments:
                parts = [
                    (part, holds and kept)
                    for whole, kept in parts
                    for part, holds in (self.decide(item, whole) if kept else [(whole, False)])
                ]
            return parts
        assert condition.function in COMPARISONS
        sides = [self.segments(side) for side in condition.arguments]
        found = []
        for inner, (left, right) in self.refine(sides, cell):
            for part in self.split(inner, left - right):
                gap = self.sign(left - right, part)
                if gap == 0:
                    holds = condition.function in ("less_equal", "greater_equal", "equal")
                else:
                    holds = condition.function.startswith("less" if gap < 0 else "greater")
                found.append((part, holds))
        return found

    def split(self, cell: Segment, difference: Symbolic) -> list[Segment]:
        """A cell cut at the sign changes of a smooth function."""
        low, high = cell.ends
        borders = [Border(at, place) for at, place in zeros(difference, self.scope, low, high)]
        cuts: list[Border | None] = [cell.lower, *borders, cell.upper]
        return [replace(cell, lower=a, upper=b) for a, b in pairwise(cuts)]

    def sign(self, difference: Symbolic, cell: Segment) -> float:
        """The sign of a function inside a cell in which it doesn't change; 0 only where it vanishes all over.

        Several points: it may touch zero without crossing it, just in the middle.
        """
        low, high = cell.ends
        middle = cell.inside
        spread = min(middle - low, high - middle, 1.0 + abs(middle))
        found = [self.scope.number(difference, middle + share * spread) for share in (0.0, 0.37, -0.61, 0.83)]
        return max((value for value in found if value == value), key=abs, default=0.0)

    def refine(
        self, children: list[list[Segment]], within: Segment | None = None
    ) -> list[tuple[Segment, tuple[Symbolic, ...]]]:
        """The common refinement of several subdivisions: cells with one formula a child."""
        within = self.whole if within is None else within
        low, high = within.ends
        borders: list[Border] = []
        for child in children:
            borders += [item.lower for item in child[1:] if item.lower is not None and low < item.lower.place < high]
        if len(borders) > 1:
            borders = _distinct(borders)
        cuts: list[Border | None] = [within.lower, *borders, within.upper]
        cells = [Segment(a, b, None) for a, b in pairwise(cuts)]
        self.limited(cells)
        if len(cells) == 1 and all(len(child) == 1 for child in children):
            return [(cells[0], tuple(child[0].formula for child in children))]
        return [(cell, tuple(_at(child, cell.inside) for child in children)) for cell in cells]

    def limited(self, segments: list[Segment]) -> list[Segment]:
        if len(segments) > MAXIMUM_PIECES:
            raise TooManyPiecesError(f"more than {MAXIMUM_PIECES} pieces")
        return segments


def merge(segments: Sequence[Segment], scope: Scope) -> list[Segment]:
    """Neighbours with the same formula joined."""
    merged: list[Segment] = []
    for segment in segments:
        if merged and same(merged[-1].formula, segment.formula):
            merged[-1] = replace(merged[-1], upper=segment.upper)
        else:
            merged.append(segment)
    return merged


def same(left: Symbolic, right: Symbolic) -> bool:
    """Are two formulas equal, as far as expanding shows?"""
    return bool(left == right or sympy.expand(left - right) == 0)


def _at(child: list[Segment], z: float) -> Symbolic:
    for segment in child:
        if z <= segment.ends[1]:
            return segment.formula
    return child[-1].formula


def _mapped(segments: list[Segment], change: Callable[[Symbolic], Symbolic]) -> list[Segment]:
    return [replace(segment, formula=change(segment.formula)) for segment in segments]


def _distinct(borders: list[Border]) -> list[Border]:
    """Sorted, without borders that have the same formula or, having none in common, the same place."""
    kept: list[Border] = []
    for border in sorted(borders, key=lambda item: item.place):
        if kept and abs(kept[-1].place - border.place) <= 1e-12 * max(1.0, abs(border.place)):
            continue
        kept.append(border)
    return kept

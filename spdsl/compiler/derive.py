"""Derives a scalar function: pieces, kinks, derivatives, convexity, and the sources of its kernels.

In: a formula over one argument, and what is known of its parameters. Out: a `DerivedFunction` (text) and two source
files. Every piece is verified numerically against the formula, on a grid, at the parameters' typical values and at
others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import sympy

from spdsl.compiler import normal
from spdsl.compiler.algebra import Symbolic, derivative
from spdsl.compiler.atoms import expand_atoms
from spdsl.compiler.branches import Segment, same
from spdsl.compiler.convexity import judge
from spdsl.compiler.derived import DerivedFunction
from spdsl.compiler.failures import DerivationError, TooManyPiecesError
from spdsl.compiler.labels import segments_of
from spdsl.compiler.quantities import Quantity
from spdsl.compiler.roots import spread
from spdsl.compiler.scope import Scope
from spdsl.compiler.sources import function_sources
from spdsl.compiler.spelling import formula
from spdsl.problem.expressions import Expression, evaluate, text
from spdsl.problem.functions import Formula, Kink, Piece

__all__ = ["SmoothPiece", "derive_function", "smooth_pieces"]

MAXIMUM_SIZE = 1500  # operations: sympy takes a millisecond or more for each


@dataclass(frozen=True)
class SmoothPiece:
    """One selection function with its derivatives, as sympy expressions."""

    segment: Segment
    value: Symbolic
    slope: Symbolic
    curvature: Symbolic


def derive_function(
    body: Expression, argument: str, quantities: Sequence[Quantity]
) -> tuple[DerivedFunction, str, str]:
    """Derive phi(z; theta).

    Returns
    -------
    derived : DerivedFunction
    numpy_source, numba_source : str

    Raises
    ------
    DerivationError
        When the pieces do not agree with the formula.
    NoClosedFormError
        When a border depends on parameters without a formula for it.
    TooManyPiecesError
    """
    scope = Scope(argument, tuple(quantities))
    short = normal.collected(body)
    if normal.size(short) > MAXIMUM_SIZE:
        raise TooManyPiecesError(f"{normal.size(short)} operations, and at most {MAXIMUM_SIZE} can be derived")
    pieces = smooth_pieces(short, scope)
    sound = sound_samples(body, pieces, scope)
    kinks = [kink_between(left, right, scope) for left, right in pairwise(pieces)]
    verdict, reason, witness = judge(pieces, sound, scope)
    derived = DerivedFunction(
        argument=argument,
        parameters=tuple(item.name for item in quantities),
        formula=Formula(text(short), formula(_whole(short, scope)).latex),
        pieces=tuple(as_piece(piece) for piece in pieces),
        kinks=tuple(kinks),
        convexity=verdict,
        reason=reason,
        witness=witness,
        nonnegative=is_nonnegative(pieces, sound, scope),
    )
    sources = function_sources(
        title=f"phi({argument}) = {text(short)}"[:200],
        argument=argument,
        parameters=derived.parameters,
        borders=[piece.segment.lower.at for piece in pieces[1:] if piece.segment.lower is not None],
        kinked=[not kink.smooth for kink in kinks],
        rows=[(piece.value, piece.slope, piece.curvature) for piece in pieces],
    )
    return derived, *sources


def smooth_pieces(body: Expression, scope: Scope) -> list[SmoothPiece]:
    """The pieces of a formula with tidy derivatives, equal neighbours merged."""
    pieces = []
    for segment in segments_of(expand_atoms(body), scope):
        value = segment.formula
        slope = tidy(derivative(value, scope.symbol))
        pieces.append(SmoothPiece(segment, value, slope, tidy(derivative(slope, scope.symbol))))
    return pieces


def tidy(expression: Symbolic) -> Symbolic:
    """The shorter of an expression and its expansion."""
    if expression.is_Atom or expression.count_ops() > 60:
        return expression
    expanded = sympy.expand(expression)
    return expanded if expanded.count_ops() < expression.count_ops() else expression


def sound_samples(body: Expression, pieces: Sequence[SmoothPiece], scope: Scope) -> list[dict[str, float]]:
    """The sampled data at which every piece agrees with the formula, as evaluated by the language's own operations.

    The typical values have to be among them. At other data kinks may lie in another order, or other branches may hold:
    `spdsl.problem.unmet` finds such rows when data are bound.

    Raises
    ------
    DerivationError
    """
    sound = []
    for values in scope.data_samples():
        complaint = _disagreement(body, pieces, scope, values)
        if complaint and values == scope.typical:
            raise DerivationError(complaint)
        if not complaint:
            sound.append(values)
    return sound


def _disagreement(body: Expression, pieces: Sequence[SmoothPiece], scope: Scope, values: Mapping[str, float]) -> str:
    borders = borders_at(pieces, scope, values)
    if borders is None:
        return "its pieces have no order"
    grid = grid_around(borders, scope)
    grid = grid[~np.isin(grid, borders)]  # at a jump either side may hold
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(evaluate(body, {**values, scope.argument: grid}), grid.shape)
    label = np.searchsorted(borders, grid, side="right")
    for k, piece in enumerate(pieces):
        mine = label == k
        found = np.broadcast_to(scope.function(piece.value)(grid[mine], values), grid[mine].shape)
        wanted = expected[mine]
        with np.errstate(all="ignore"):
            wrong = np.isfinite(wanted) & ~(np.abs(found - wanted) <= 1e-9 * np.maximum(1.0, np.abs(wanted)))
        if wrong.any():
            at = float(grid[mine][wrong][0])
            shown = "".join(f", {name} = {value:.6g}" for name, value in values.items())
            return (
                f"its pieces do not agree with it at {scope.argument} = {at:.6g}{shown}: "
                f"{float(found[wrong][0]):.6g} instead of {float(wanted[wrong][0]):.6g}"
            )
    return ""


def borders_at(pieces: Sequence[SmoothPiece], scope: Scope, values: Mapping[str, float]) -> list[float] | None:
    """The places of the borders at given parameters, None when they are not ascending there."""
    borders = [scope.number(p.segment.lower.at, 0.0, values) for p in pieces[1:] if p.segment.lower is not None]
    if any(not np.isfinite(border) for border in borders) or any(np.diff(borders) < 0):
        return None
    return borders


def grid_around(borders: Sequence[float], scope: Scope) -> Any:
    """Points at, near and between borders, and far out, within the argument's domain."""
    scale = max([1.0, *(abs(border) for border in borders)])
    parts = [scale * np.linspace(-3.0, 3.0, 61), spread(-np.inf, np.inf, 41)]
    parts += [border + scale * np.array([-1e-3, -1e-6, 1e-6, 1e-3]) for border in borders]
    grid = np.sort(np.concatenate(parts))  # np.unique would import numpy.ma
    if scope.lower is not None:
        grid = grid[grid >= scope.lower]
    if scope.upper is not None:
        grid = grid[grid <= scope.upper]
    return grid


def kink_between(left: SmoothPiece, right: SmoothPiece, scope: Scope) -> Kink:
    """The border between neighbours, with both slopes."""
    border = right.segment.lower
    assert border is not None
    before = tidy(left.slope.subs(scope.symbol, border.at))
    after = tidy(right.slope.subs(scope.symbol, border.at))
    smooth = same(before, after) or all(
        abs(scope.number(before, 0.0, values) - scope.number(after, 0.0, values))
        <= 1e-9 * max(1.0, abs(scope.number(before, 0.0, values)))
        for values in scope.samples()
    )
    return Kink(formula(border.at), formula(before), formula(after), bool(smooth))


def is_nonnegative(pieces: Sequence[SmoothPiece], samples: Sequence[Mapping[str, float]], scope: Scope) -> bool:
    """Is the function nowhere negative on a dense grid at sampled parameters?"""
    for values in samples:
        borders = borders_at(pieces, scope, values) or []
        grid = grid_around(borders, scope)
        label = np.searchsorted(borders, grid, side="right")
        for k, piece in enumerate(pieces):
            found = np.asarray(scope.function(piece.value)(grid[label == k], values))
            if (found < -1e-12).any():
                return False
    return True


def as_piece(piece: SmoothPiece) -> Piece:
    """The text form."""
    segment = piece.segment
    return Piece(
        lower=None if segment.lower is None else formula(segment.lower.at),
        upper=None if segment.upper is None else formula(segment.upper.at),
        value=formula(piece.value),
        slope=formula(piece.slope),
        curvature=formula(piece.curvature),
    )


def _whole(body: Expression, scope: Scope) -> Symbolic:
    """The formula as one sympy expression, for LaTeX."""
    from spdsl.compiler.algebra import to_sympy

    return to_sympy(expand_atoms(body), scope.symbols)

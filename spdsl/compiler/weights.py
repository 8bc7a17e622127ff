"""Derives the sample weights v*(l, lambda) = argmin over v in [0, 1] of v l + f(v, lambda), from f alone.

In: the formula of f and what is known of its parameters. Out: a `DerivedWeights` (partition, formulas, derivatives,
verdicts) and two source files. The built-in SP-regularizers take this very route (GAGA, Definition 2; Table of
section 2).

By ascending loss v* leaves 1 at -f'(1), follows l + f'(v) = 0 through every smooth piece of f, rests at the kinks of
f, and reaches 0 at -f'(0+); where f is linear in v it jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from spdsl.compiler.algebra import Symbolic, derivative
from spdsl.compiler.axioms import judge_axioms
from spdsl.compiler.derive import SmoothPiece, smooth_pieces
from spdsl.compiler.derived import DerivedWeights
from spdsl.compiler.failures import DerivationError
from spdsl.compiler.quantities import Quantity
from spdsl.compiler.roots import invert
from spdsl.compiler.scope import Scope
from spdsl.compiler.simplify import shortest, spellings
from spdsl.compiler.sources import ImplicitRow, weight_sources
from spdsl.compiler.spelling import formula
from spdsl.problem.expressions import Expression, evaluate, text
from spdsl.problem.functions import Formula
from spdsl.problem.self_paced import WeightPiece

__all__ = ["derive_weights"]

PRECISE = 1e-9  # relative errors below do not count against a spelling
NEAR_ZERO = (1e-100, 1e-200, 1e-300)  # stand for 0+


@dataclass(frozen=True)
class Stretch:
    """v* between two losses: a constant, a formula in l, or implicitly the zero of l + f'(v)."""

    name: str
    lower: Symbolic | None
    upper: Symbolic | None
    weight: Symbolic | None
    piece: SmoothPiece | None


def derive_weights(
    body: Expression, argument: str, age: str, quantities: Sequence[Quantity], losses_nonnegative: bool = True
) -> tuple[DerivedWeights, str, str]:
    """Derive v*.

    Parameters
    ----------
    body : Expression
        f over `argument` (v), `age` (lambda) and the quantities.
    losses_nonnegative : bool
        Without it, a plateau v* = 1 for negative losses is kept as a piece of its own.

    Returns
    -------
    derived, numpy_source, numba_source

    Raises
    ------
    DerivationError
        When f is no function of v on (0, 1] for any age.
    """
    lowest, highest = age_range(body, argument, age, quantities)
    typical = 1.0 if highest == float("inf") else 0.5 * (lowest + highest)
    aged = Quantity(age, "positive", typical)
    scope = Scope(argument, (*quantities, aged), lower=0.0, upper=1.0, positive=True)
    pieces = [_tidied(piece, scope) for piece in smooth_pieces(body, scope)]
    axioms = judge_axioms(pieces, scope, age, (lowest, highest))
    samples = _sound_samples(pieces, scope, age, highest)
    stretches = _stretches(pieces, scope, samples, losses_nonnegative)
    l = sympy.Symbol("l", positive=True)
    lam = scope.symbols[age]
    rows: list[tuple[Symbolic, Symbolic, Symbolic] | ImplicitRow] = []
    shown: list[WeightPiece] = []
    for stretch in stretches:
        row, piece = _row(stretch, l, lam, scope, samples)
        rows.append(row)
        shown.append(piece)
    continuous = all(not _flat(piece, scope, samples) for piece in pieces)
    whole = sum((piece.value for piece in pieces), sympy.Integer(0)) if len(pieces) == 1 else None
    derived = DerivedWeights(
        argument=argument,
        age=age,
        parameters=tuple(item.name for item in quantities),
        formula=Formula(text(body), formula(whole).latex if whole is not None else ""),
        pieces=tuple(shown),
        continuous=continuous,
        axioms=tuple(axioms),
        age_range=(lowest, highest),
        stationarity=formula(l + pieces[-1].slope),
    )
    sources = weight_sources(
        title=f"v*(l, {age}) of f = {text(body)}"[:200],
        argument=argument,
        age=age,
        parameters=derived.parameters,
        names_of_pieces=[stretch.name for stretch in stretches],
        continuous=continuous,
        borders=[stretch.lower for stretch in stretches[1:]],
        rows=rows,
        pieces=[(piece.segment.upper.at, piece.value) for piece in pieces if piece.segment.upper is not None],
        finite_at_zero=all(np.isfinite(scope.number(pieces[0].value, 0.0, values)) for values in samples),
    )
    return derived, *sources


def age_range(body: Expression, argument: str, age: str, quantities: Sequence[Quantity]) -> tuple[float, float]:
    """The ages, from the smallest on, for which f is a real number on (0, 1]: an open interval.

    Raises
    ------
    DerivationError
    """
    points = np.array([0.05, 0.3, 0.5, 0.7, 0.95])

    def valid(value: float) -> bool:
        values = {item.name: item.reference for item in quantities}
        with np.errstate(all="ignore"):
            found = np.asarray(evaluate(body, {**values, argument: points, age: np.float64(value)}), float)
        return bool(np.isfinite(found).all())

    ages = np.geomspace(1e-4, 1e4, 65) * 1.0000007
    holds = [valid(value) for value in ages]
    if not any(holds):
        raise DerivationError(f"f({argument}, {age}) is not a real number for any {age} > 0")
    first = holds.index(True)
    last = first
    while last + 1 < len(holds) and holds[last + 1]:
        last += 1
    lowest = 0.0 if first == 0 else _edge(valid, ages[first - 1], ages[first])
    highest = float("inf") if last == len(ages) - 1 else _edge(valid, ages[last + 1], ages[last])
    return lowest, highest


def _edge(valid: object, outside: float, inside: float) -> float:
    assert callable(valid)
    for _ in range(200):
        middle = 0.5 * (outside + inside)
        if middle in (outside, inside):
            break
        if valid(middle):
            inside = middle
        else:
            outside = middle
    near = round(inside, 9)
    return float(near) if abs(near - inside) <= 1e-12 * max(1.0, abs(near)) else float(inside)


def _sound_samples(pieces: Sequence[SmoothPiece], scope: Scope, age: str, highest: float) -> list[dict[str, float]]:
    """Parameter values to verify at: those at which f is convex in v with f'(1) <= 0 (not t < 1 for polynomial)."""
    kept = []
    for values in scope.samples(16):
        if highest < float("inf"):
            values = {**values, age: min(values[age], 0.9 * highest)}
        grid = [(piece, np.linspace(*piece.segment.ends, 12)[1:-1]) for piece in pieces]
        curvatures = [scope.function(piece.curvature)(v, values) for piece, v in grid]
        if all(np.all(np.asarray(c) >= 0) for c in curvatures) and not scope.number(pieces[-1].slope, 1, values) > 1e-9:
            kept.append(values)
    return kept or [scope.typical]


def _tidied(piece: SmoothPiece, scope: Scope) -> SmoothPiece:
    slope = shortest(piece.slope)
    return SmoothPiece(piece.segment, piece.value, slope, shortest(derivative(slope, scope.symbol)))


def _flat(piece: SmoothPiece, scope: Scope, samples: Sequence[dict[str, float]]) -> bool:
    """Is f linear in v on this piece?"""
    if not piece.slope.has(scope.symbol):
        return True
    return all(abs(scope.number(piece.curvature, piece.segment.inside, values)) < 1e-14 for values in samples)


# --- the partition --------------------------------------------------------------------------------------------------


def _stretches(
    pieces: Sequence[SmoothPiece], scope: Scope, samples: Sequence[dict[str, float]], nonnegative: bool
) -> list[Stretch]:
    """From v = 1 down to v = 0, by ascending loss."""
    v = scope.symbol
    found: list[Stretch] = []
    top = shortest(-pieces[-1].slope.subs(v, 1))
    tops = [scope.number(top, 1.0, values) for values in samples]
    if not nonnegative or any(place > 1e-13 for place in tops):
        found.append(Stretch("E", None, top, sympy.Integer(1), None))
    for position in range(len(pieces) - 1, -1, -1):
        piece = pieces[position]
        if not _flat(piece, scope, samples):
            start = found[-1].upper if found else None
            found.append(Stretch("M" if found else "E", start, _exit(piece, scope, samples), None, piece))
        if position > 0:  # v* rests at a kink of f
            border = pieces[position - 1].segment.upper
            assert border is not None
            start = found[-1].upper if found else None
            rest = shortest(-pieces[position - 1].slope.subs(v, border.at))
            if _flat(piece, scope, samples):
                start = shortest(-piece.slope.subs(v, border.at))
                if found:
                    found[-1] = Stretch(found[-1].name, found[-1].lower, start, found[-1].weight, found[-1].piece)
            found.append(Stretch("M" if found else "E", start, rest, border.at, None))
    exit_loss = _exit(pieces[0], scope, samples)
    if exit_loss is not None:
        if not found:  # f is linear in v: hard
            found.append(Stretch("E", None, exit_loss, sympy.Integer(1), None))
        found.append(Stretch("D", exit_loss, None, sympy.Integer(0), None))
    return found


def _exit(piece: SmoothPiece, scope: Scope, samples: Sequence[dict[str, float]]) -> Symbolic | None:
    """-f' at the left end of a piece; None when it is infinite there."""
    border = piece.segment.lower
    assert border is not None
    if border.at != 0:
        return shortest(-piece.slope.subs(scope.symbol, border.at))
    places = [[-scope.number(piece.slope, v, values) for v in NEAR_ZERO] for values in samples]
    if any(_grows_without_end(*found) for found in places):
        return None
    for spelling in (piece.slope, *spellings(piece.slope)):
        at_zero = spelling.replace(
            lambda e: e.is_Pow and e.base == scope.symbol and e.exp.free_symbols,
            lambda e: sympy.Integer(0),
        ).subs(scope.symbol, 0)
        if at_zero.has(sympy.zoo, sympy.oo, sympy.nan):
            continue
        at_zero = shortest(-at_zero)
        exits = [scope.number(at_zero, 0.0, values) for values in samples]
        if all(abs(exit_loss - c) <= 1e-6 * abs(c) + 10 * abs(c - b) for exit_loss, (_, b, c) in zip(exits, places)):
            return at_zero
    raise DerivationError(f"the limit of -f' at {scope.argument} = 0 has no formula that could be found")


def _grows_without_end(a: float, b: float, c: float) -> bool:
    """Do values at `NEAR_ZERO` diverge? Those of a logarithm grow by equal steps, those of a limit by falling ones."""
    return not np.isfinite(c) or (c - b > 0.9 * (b - a) and c - b > 1e-9 * abs(c))


# --- formulas -------------------------------------------------------------------------------------------------------


def _row(
    stretch: Stretch, l: Symbolic, lam: Symbolic, scope: Scope, samples: Sequence[dict[str, float]]
) -> tuple[tuple[Symbolic, Symbolic, Symbolic] | ImplicitRow, WeightPiece]:
    lower = None if stretch.lower is None else formula(stretch.lower)
    upper = None if stretch.upper is None else formula(stretch.upper)
    if stretch.piece is None:
        assert stretch.weight is not None
        row = (stretch.weight, sympy.Integer(0), derivative(stretch.weight, lam))
        return row, WeightPiece(stretch.name, lower, upper, *(formula(item) for item in row))
    closed = closed_form(stretch.piece, l, scope, samples)
    if closed is not None:
        row = _row_of(closed, stretch.piece, l, lam, scope, samples)
        return row, WeightPiece(stretch.name, lower, upper, *(formula(item) for item in row))
    piece = stretch.piece
    mixed = shortest(derivative(piece.slope, lam))
    assert piece.segment.lower is not None
    assert piece.segment.upper is not None
    implicit = ImplicitRow(piece.slope, piece.curvature, mixed, piece.segment.lower.at, piece.segment.upper.at)
    by_loss, by_age = -1 / piece.curvature, -mixed / piece.curvature
    return implicit, WeightPiece(stretch.name, lower, upper, None, formula(by_loss), formula(by_age))


def closed_form(piece: SmoothPiece, l: Symbolic, scope: Scope, samples: Sequence[dict[str, float]]) -> Symbolic | None:
    """v with l + f'(v) = 0 as a formula in l, verified on a grid at sampled parameters; None when there is none."""
    tried: list[Symbolic] = []
    for spelling in spellings(piece.slope):
        for candidate in invert(spelling, scope.symbol, -l):
            if candidate in tried:
                continue
            tried.append(candidate)
            if _solves(candidate, piece, scope, samples):
                return candidate
    return None


def _row_of(
    closed: Symbolic, piece: SmoothPiece, l: Symbolic, lam: Symbolic, scope: Scope, samples: Sequence[dict[str, float]]
) -> tuple[Symbolic, Symbolic, Symbolic]:
    """v* and its derivatives, each in the shortest of its precise spellings: (1 - l/lambda)^50, not its expansion.

    The truth to compare with is known from v: l = -f'(v), dv*/dl = -1/f''(v), dv*/dlambda = -f'_lambda(v)/f''(v).
    """
    low, high = piece.segment.ends
    v = low + (high - low) * np.linspace(0.02, 1.0, 9)
    mixed = derivative(piece.slope, lam)
    inner = Scope("l", scope.quantities, positive=True)
    formulas = (closed, derivative(closed, l), derivative(closed, lam))
    candidates = [list(spellings(item)) for item in formulas]
    errors = [[0.0] * len(item) for item in candidates]
    for values in samples[:4]:
        for scale in (1.0, 1e-30, 1e-100, 1e30):  # the smallest and the largest ages too
            aged = {**values, lam.name: values[lam.name] * scale}
            losses, curvature, by_age = (
                np.broadcast_to(scope.function(item)(v, aged), v.shape)
                for item in (-piece.slope, piece.curvature, mixed)
            )
            with np.errstate(all="ignore"):
                truths = (v, -1 / curvature, -by_age / curvature)
            for which, truth in enumerate(truths):
                if not (np.isfinite(truth).all() and np.isfinite(losses).all() and (losses >= 0).all()):
                    continue
                for number, candidate in enumerate(candidates[which]):
                    found = np.broadcast_to(inner.function(candidate)(losses, aged), v.shape)
                    size = np.maximum(np.abs(truth), 1e-300)
                    with np.errstate(all="ignore"):
                        error = float(np.max(np.nan_to_num(np.abs(found - truth) / size, nan=np.inf)))
                    errors[which][number] = max(errors[which][number], error)
    best = [
        min(zip(wrong, item), key=lambda pair: (max(pair[0], PRECISE), pair[1].count_ops()))[1]
        for wrong, item in zip(errors, candidates)
    ]
    return best[0], best[1], best[2]


def _solves(candidate: Symbolic, piece: SmoothPiece, scope: Scope, samples: Sequence[dict[str, float]]) -> bool:
    """Does the candidate give back v from l = -f'(v), to 1e-9, wherever v lies in the piece?

    Where v hardly changes f' (polynomial with a large t, near the exit) a candidate that has the same f' will do.
    """
    low, high = piece.segment.ends
    grid = low + (high - low) * np.linspace(0.02, 0.98, 25)
    function = Scope("l", scope.quantities, positive=True).function(candidate)
    slope_of = scope.function(piece.slope)
    for values in samples[:6]:
        slope = np.broadcast_to(slope_of(grid, values), grid.shape)
        if not np.isfinite(slope).all():
            continue
        found = np.broadcast_to(function(-slope, values), grid.shape)
        gap = np.abs(np.broadcast_to(slope_of(found, values), grid.shape) - slope)
        inside = (found >= low - 1e-12) & (found <= high + 1e-12)
        right = np.isclose(found, grid, rtol=1e-9, atol=1e-12) | inside & (gap <= 1e-13 * np.max(np.abs(slope)))
        if not right.all():
            return False
    return True

"""Proves or refutes the axioms that make f(v, lambda) a self-paced regularizer (GAGA, Definition 2).

In: the smooth pieces of f in v, the ages for which f is defined. Out: one `AxiomVerdict` an axiom; a refuted one has
a counterexample (v, l, lambda). (i) f is convex in v. (ii) v* falls with l, from 1 to 0. (iii) v* grows with lambda,
to at most 1, from 0: only its limit at lambda -> 0 is a warning, as the log regularizer of the paper itself fails it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import sympy

from spdsl.compiler.algebra import derivative
from spdsl.compiler.derive import SmoothPiece
from spdsl.compiler.scope import Scope
from spdsl.problem.self_paced import AxiomVerdict

__all__ = ["judge_axioms"]

CONVEX = "(i) f is convex in v"
FALLS = "(ii) v* falls with the loss, from 1 to 0"
GROWS = "(iii) v* grows with the age, from 0 to at most 1"


def judge_axioms(
    pieces: Sequence[SmoothPiece], scope: Scope, age: str, ages: tuple[float, float]
) -> list[AxiomVerdict]:
    """The verdicts, in the order of the definition."""
    sampled = list(_samples(scope, age, ages))
    first = _convex(pieces, scope, sampled, age)
    if first.verdict == "refuted":
        return [first]
    return [first, _falls(pieces, scope, sampled, age), *_grows(pieces, scope, sampled, age)]


def _samples(scope: Scope, age: str, ages: tuple[float, float]) -> Iterator[dict[str, float]]:
    """The parameters' typical values, at ages over the whole range."""
    low, high = ages
    if high == float("inf"):
        grid = (low or 0.0) + np.geomspace(1e-3, 1e3, 25)
    else:
        grid = low + (high - low) * np.linspace(0.02, 0.98, 25)
    middle = sorted(grid, key=lambda value: abs(np.log(max(value, 1e-9) / scope.typical[age])))
    for value in middle:  # the most usual age first, for a counterexample that is easy to read
        yield {**scope.typical, age: float(value)}


GRID = np.linspace(0.0, 1.0, 401)[1:]


def _on(piece: SmoothPiece) -> Any:
    low, high = piece.segment.ends
    return GRID[(low <= GRID) & (high >= GRID)]


def _convex(
    pieces: Sequence[SmoothPiece], scope: Scope, sampled: Sequence[Mapping[str, float]], age: str
) -> AxiomVerdict:
    for values in sampled:
        for piece in pieces:
            v = _on(piece)
            curvature = np.broadcast_to(scope.function(piece.curvature)(v, values), v.shape)
            bad = ~(curvature >= -1e-12 * max(1.0, float(np.nanmax(np.abs(curvature), initial=0.0))))
            if bad.any():
                middle = len(v[bad]) // 2
                at, found = float(v[bad][middle]), float(curvature[bad][middle])
                example = {"v": at, "l": -scope.number(piece.slope, at, values), age: values[age]}
                return AxiomVerdict(
                    CONVEX, "refuted", f"f'' = {found:.6g} at v = {at:.6g}, {age} = {values[age]:.6g}", example
                )
        for left, right in pairwise(pieces):
            border = right.segment.ends[0]
            below, above = scope.number(left.value, border, values), scope.number(right.value, border, values)
            if not abs(above - below) <= 1e-9 * max(1.0, abs(below), abs(above)):
                example = {"v": border, "l": -scope.number(left.slope, border, values), age: values[age]}
                reason = f"f jumps from {below:.6g} to {above:.6g} at v = {border:.6g}, {age} = {values[age]:.6g}"
                return AxiomVerdict(CONVEX, "refuted", reason, example)
            before, after = scope.number(left.slope, border, values), scope.number(right.slope, border, values)
            if after < before - 1e-12:
                example = {"v": border, "l": -before, age: values[age]}
                reason = f"f' falls from {before:.6g} to {after:.6g} at v = {border:.6g}"
                return AxiomVerdict(CONVEX, "refuted", reason, example)
    if all(_nonnegative(piece.curvature) for piece in pieces) and len(pieces) == 1:
        return AxiomVerdict(CONVEX, "proved", "f'' >= 0 for every v and age")
    return AxiomVerdict(CONVEX, "checked numerically", "f'' >= 0 on a grid of v and ages")


def _nonnegative(expression: Any) -> bool:
    return bool(expression.is_nonnegative or sympy.factor_terms(expression).is_nonnegative)


def _falls(
    pieces: Sequence[SmoothPiece], scope: Scope, sampled: Sequence[Mapping[str, float]], age: str
) -> AxiomVerdict:
    """f convex makes v* fall; left are the limits: f'(1) <= 0 gives v*(0) = 1, f' finite inside gives v* -> 0."""
    for values in sampled:
        slope = scope.number(pieces[-1].slope, 1.0, values)
        if slope > 1e-10:
            v = _root(pieces, scope, 0.0, values)
            reason = f"v* = {v:.6g} < 1 at l = 0 and {age} = {values[age]:.6g}: the limit as l -> 0 has to be 1"
            return AxiomVerdict(FALLS, "refuted", reason, {"v": v, "l": 0.0, age: values[age]})
        for piece in pieces:
            v = _on(piece)
            slopes = np.broadcast_to(scope.function(piece.slope)(v, values), v.shape)
            if not np.isfinite(slopes).all():
                at = float(v[~np.isfinite(slopes)][0])
                reason = f"f' is not finite at v = {at:.6g}, so that v* never passes it"
                return AxiomVerdict(FALLS, "refuted", reason, {"v": at, "l": float("inf"), age: values[age]})
    top = sympy.expand(pieces[-1].slope.subs(scope.symbol, 1))
    if top.is_nonpositive:
        return AxiomVerdict(FALLS, "proved", "f is convex, f'(1) <= 0, and f' is finite on (0, 1]")
    return AxiomVerdict(FALLS, "checked numerically", "f is convex, and f'(1) <= 0 at all ages that were tried")


def _grows(
    pieces: Sequence[SmoothPiece], scope: Scope, sampled: Sequence[Mapping[str, float]], age: str
) -> list[AxiomVerdict]:
    """v* grows with the age iff f' falls with it."""
    mixed = [derivative(piece.slope, scope.symbols[age]) for piece in pieces]
    examples = {values[age]: _fall(pieces, mixed, scope, values, age) for values in sampled}
    failing = sorted(value for value, example in examples.items() if example is not None)
    if failing:
        return [_monotonicity(pieces, mixed, scope, examples, failing, age)]
    proved = all(_nonnegative(-item) for item in mixed)
    limit = _limit_at_zero(pieces, scope, age)
    if limit is not None:
        return [limit]
    how: Literal["proved", "checked numerically"] = "proved" if proved and len(pieces) == 1 else "checked numerically"
    return [AxiomVerdict(GROWS, how, f"f' falls as {age} grows, and v* -> 0 as {age} -> 0")]


def _fall(
    pieces: Sequence[SmoothPiece], mixed: Sequence[Any], scope: Scope, values: Mapping[str, float], age: str
) -> dict[str, float] | None:
    """A point (v, l, lambda) at which v* falls as the age grows, None when there is none on a grid of v."""
    for piece, by_age in zip(pieces, mixed):
        v = _on(piece)
        change = np.broadcast_to(scope.function(by_age)(v, values), v.shape)
        slopes = np.broadcast_to(scope.function(piece.slope)(v, values), v.shape)
        bad = (change > 1e-10 * np.maximum(1.0, np.abs(slopes))) & (slopes < 0)  # v* = v needs l = -f' > 0
        if bad.any():
            at = float(v[bad][np.argmax(change[bad])])
            return {"v": at, "l": -scope.number(piece.slope, at, values), age: values[age]}
    return None


def _monotonicity(
    pieces: Sequence[SmoothPiece],
    mixed: Sequence[Any],
    scope: Scope,
    examples: Mapping[float, dict[str, float] | None],
    failing: Sequence[float],
    age: str,
) -> AxiomVerdict:
    """Refuted when it fails from the smallest ages on; a warning with the border when it holds below some age.

    The logarithmic regularizer is of the second kind: f'_lambda(v) = v zeta^(v-1) - 1 is positive near v = 1 exactly
    when zeta < 1/e, so its v* grows with the age only for lambda <= 1 - 1/e, not for all of its 0 < lambda < 1.
    """
    below = [value for value in examples if value < failing[0]]
    border = below and not any(examples[value] is None for value in examples if value > failing[0])
    example = examples[failing[-1] if border else next(value for value in examples if value in failing)] or {}
    reason = (
        f"v* falls as {age} grows, at l = {example['l']:.6g}, {age} = {example[age]:.6g}, where v* = {example['v']:.6g}"
    )
    if not border:
        return AxiomVerdict(GROWS, "refuted", reason, example)
    low, high = max(below), failing[0]
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        if _fall(pieces, mixed, scope, {**scope.typical, age: middle}, age) is None:
            low = middle
        else:
            high = middle
    return AxiomVerdict(GROWS, "warning", f"it holds only for {age} < {low:.3g}: {reason}", example)


def _limit_at_zero(pieces: Sequence[SmoothPiece], scope: Scope, age: str) -> AxiomVerdict | None:
    for loss in (1.0, 0.1):
        weights = [_root(pieces, scope, loss, {**scope.typical, age: tiny}) for tiny in (1e-6, 1e-9, 1e-12)]
        if weights[-1] > 1e-3 and abs(weights[-1] - weights[-2]) < 1e-3 * weights[-1]:
            reason = f"v* -> {weights[-1]:.6g}, not 0, as {age} -> 0 at l = {loss:g}: no age leaves every sample out"
            return AxiomVerdict(GROWS, "warning", reason, {"v": weights[-1], "l": loss, age: 0.0})
    return None


def _root(pieces: Sequence[SmoothPiece], scope: Scope, loss: float, values: Mapping[str, float]) -> float:
    """v* by bisection on l + f'(v), straight from the definition."""
    low, high = 0.0, 1.0
    for _ in range(200):
        v = 0.5 * (low + high)
        piece = next((item for item in pieces if v <= item.segment.ends[1]), pieces[-1])
        if loss + scope.number(piece.slope, v, values) > 0:
            high = v
        else:
            low = v
    return high if high < 1.0 - 1e-15 else 1.0

"""Piecewise functions for cvxpy: as the largest of their pieces, or piece by piece along the argument.

In: a `piecewise` node of a convex scalar function, the argument as a cvxpy expression. Out: a cvxpy expression that
equals it at the optimum. Borders between pieces are found by bisection on the node's own conditions.

A convex g with pieces g_0, ..., g_m between borders b_1 < ... < b_m is, because its slope only grows,

    g(z) = min  g_0(b_1 + s_0) + sum_k [g_k(b_k + s_k) - g_k(b_k)]
           s.t. z = b_1 + s_0 + sum_k s_k,   s_0 <= 0,   0 <= s_k <= b_{k+1} - b_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, SpdslError
from spdsl.problem import ScalarFunction
from spdsl.problem.expressions import Call, Expression, Number, text
from spdsl.problem.functions import Array
from spdsl.reference.scalar import value

__all__ = ["TranslationError", "translate_piecewise"]

FARTHEST = 1e4
LINE = np.unique(
    np.concatenate([np.linspace(-8, 8, 641), np.geomspace(8, FARTHEST, 80), -np.geomspace(8, FARTHEST, 80)])
)
Translate = Callable[[Expression, Any], Any]


class TranslationError(SpdslError, ValueError):
    """cvxpy can't express this; `sentence` says what."""

    def __init__(self, sentence: str) -> None:
        super().__init__(Diagnostic("SPL601", sentence))
        self.sentence = sentence


def translate_piecewise(
    function: ScalarFunction, node: Call, argument: Any, theta: Sequence[Any], translate: Translate
) -> Any:
    """The node at a cvxpy expression (n,).

    `translate` turns a branch of the node into cvxpy at a given argument.

    Raises
    ------
    TranslationError
        Where neither form is valid, or a branch has no form of its own.
    """
    import cvxpy as cp

    if len(function.arguments) != 1:
        raise TranslationError(f"cvxpy has no form for a piecewise function of several predictors: `{text(node)}`")
    branches = [node.arguments[k] for k in range(0, len(node.arguments) - 1, 2)] + [node.arguments[-1]]
    rows = _parameter_rows(theta)
    values = np.array([[_at(function, branch, LINE, row) for branch in branches] for row in rows])
    whole = np.array([_at(function, node, LINE, row) for row in rows])
    size = float(np.max(np.abs(whole[np.isfinite(whole)]), initial=1.0))
    if np.allclose(values.max(axis=1), whole, rtol=1e-9, atol=1e-13 * size, equal_nan=True):
        translated = [translate(branch, argument) for branch in branches]
        shape = argument.shape
        filled = [item if hasattr(item, "is_convex") else np.broadcast_to(item, shape) for item in translated]
        return cp.maximum(*filled)
    if len(rows) > 1:
        raise TranslationError(
            f"cvxpy has no form for this piecewise function with one parameter a sample: `{text(node)}`"
        )
    return _along(function, node, branches, argument, rows[0], translate)


def _along(
    function: ScalarFunction,
    node: Call,
    branches: list[Expression],
    argument: Any,
    theta: tuple[float, ...],
    translate: Translate,
) -> Any:
    """Piece by piece along the argument; see the module's text."""
    import cvxpy as cp

    labels, borders = _borders(function, node, len(branches), theta)
    if not borders:
        return translate(branches[labels[0]], argument)
    _hold_convex(function, node, theta)
    n = argument.shape
    total: Any = 0.0
    steps = []
    for k, label in enumerate(labels):
        start = borders[max(k - 1, 0)]
        step = cp.Variable(n, nonpos=k == 0, nonneg=k > 0)
        steps.append(step)
        total = total + translate(branches[label], start + step)
        if k > 0:
            total = total - float(_at(function, branches[label], np.array([start]), theta)[0])
        if 0 < k < len(borders):
            total = total + cp.sum(cp.transforms.indicator([step <= borders[k] - start]))
    total = total + cp.sum(cp.transforms.indicator([argument == borders[0] + sum(steps)]))
    return total


def _borders(
    function: ScalarFunction, node: Call, count: int, theta: tuple[float, ...]
) -> tuple[list[int], list[float]]:
    """Which branch holds on each stretch of the line, and where the stretches meet."""
    chosen = list(node.arguments)
    for k in range(count):
        chosen[2 * k if k < count - 1 else -1] = Number(float(k))
    index = Call("piecewise", tuple(chosen))

    def label(z: float) -> int:
        return round(float(_at(function, index, np.array([z]), theta)[0]))

    seen = np.rint(_at(function, index, LINE, theta)).astype(int)
    labels, borders = [int(seen[0])], []
    for k in np.flatnonzero(np.diff(seen)).tolist():
        low, high = float(LINE[k]), float(LINE[k + 1])
        while high - low > 4e-16 * max(abs(low), abs(high), 1e-3):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if label(middle) == seen[k] else (low, middle)
        labels.append(int(seen[k + 1]))
        borders.append(round(high, 14))
    return labels, borders


def _hold_convex(function: ScalarFunction, node: Call, theta: tuple[float, ...]) -> None:
    """The form is valid for convex functions only."""
    found = _at(function, node, LINE, theta)
    slopes = np.diff(found) / np.diff(LINE)
    if np.any(np.diff(slopes) < -1e-7 * np.maximum(1.0, np.abs(slopes[1:]))):
        raise TranslationError(f"this part of a formula isn't convex by itself: `{text(node)}`")


def _parameter_rows(theta: Sequence[Any]) -> list[tuple[float, ...]]:
    """The distinct parameters (at most 50 of many)."""
    count = max((np.size(number) for number in theta), default=1)
    filled = np.array([np.broadcast_to(np.ravel(np.asarray(number, float)), (count,)) for number in theta])
    distinct = np.unique(filled.T, axis=0) if len(theta) else np.zeros((1, 0))
    chosen = distinct[np.linspace(0, len(distinct) - 1, min(len(distinct), 50)).astype(int)]
    return [tuple(float(number) for number in row) for row in chosen]


def _at(function: ScalarFunction, body: Expression, z: Array, theta: tuple[float, ...]) -> Array:
    return value(replace(function, body=body), [z], theta)

"""Proves or refutes that a piecewise function is convex: curvature of every piece, slopes across every kink.

In: smooth pieces with derivatives, the scope. Out: a verdict, a sentence, and for a refutation a point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from spdsl.compiler.scope import Scope
from spdsl.compiler.signs import proof_of_nonnegativity

if TYPE_CHECKING:
    from spdsl.compiler.derive import SmoothPiece

__all__ = ["judge"]

Verdict = Literal["proved", "refuted", "undecided"]


def judge(
    pieces: Sequence[SmoothPiece], samples: Sequence[Mapping[str, float]], scope: Scope
) -> tuple[Verdict, str, dict[str, float]]:
    """The verdict on a function, refuted only at `samples` (values of its parameters at which the pieces are right)."""
    refuted = _refutation(pieces, samples, scope)
    if refuted is not None:
        return refuted
    ways = [proof_of_nonnegativity(piece.curvature, piece.segment, scope) for piece in pieces]
    if all(way is not None for way in ways):
        hardest = next((way for way in ways if way is not None and "interval" in way), "by the signs of its parts")
        if len(pieces) == 1:
            return "proved", f"its curvature is nonnegative, {hardest}", {}
        return "proved", f"every piece has nonnegative curvature ({hardest}) and the slopes increase at the kinks", {}
    return "undecided", "no point contradicts it, but the curvature's sign could not be proved", {}


def _refutation(
    pieces: Sequence[SmoothPiece], samples: Sequence[Mapping[str, float]], scope: Scope
) -> tuple[Verdict, str, dict[str, float]] | None:
    from spdsl.compiler.derive import borders_at, grid_around

    for values in samples:
        borders = borders_at(pieces, scope, values) or []
        grid = grid_around(borders, scope)
        label = np.searchsorted(borders, grid, side="right")
        for k, piece in enumerate(pieces):
            mine = grid[label == k]
            curvature = np.broadcast_to(scope.function(piece.curvature)(mine, values), mine.shape)
            wrong = curvature < -1e-12
            if wrong.any():
                at = _readable(mine[wrong], curvature[wrong])
                found = scope.number(piece.curvature, at, values)
                reason = f"its curvature is {found:.6g} at {scope.argument} = {at:.6g}"
                return "refuted", reason, {scope.argument: at, **values}
        for border, left, right in zip(borders, pieces, pieces[1:]):
            heights = [scope.number(piece.value, border, values) for piece in (left, right)]
            slopes = [scope.number(piece.slope, border, values) for piece in (left, right)]
            if abs(heights[0] - heights[1]) > 1e-9 * max(1.0, abs(heights[0])):
                reason = f"it jumps from {heights[0]:.6g} to {heights[1]:.6g} at {scope.argument} = {border:.6g}"
                return "refuted", reason, {scope.argument: border, **values}
            if slopes[1] < slopes[0] - 1e-9 * max(1.0, abs(slopes[0])):
                reason = f"its slope falls from {slopes[0]:.6g} to {slopes[1]:.6g} at {scope.argument} = {border:.6g}"
                return "refuted", reason, {scope.argument: border, **values}
    return None


def _readable(points: np.ndarray, curvatures: np.ndarray) -> float:
    """Of the points with negative curvature the plainest to read: near 0, and clearly negative."""
    clear = points[curvatures <= 0.1 * curvatures[np.argsort(np.abs(points))[:10]].min()]
    return float(clear[np.argmin(np.abs(clear))])

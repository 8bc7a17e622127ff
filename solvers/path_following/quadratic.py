"""Where pieces are quadratic: whether a system's are, and one row of a block in plain numbers.

In: a block or a system. Out: verdicts; a row's predictor, slope, curvature and the next border of its piece.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import RowBlock
from spdsl.solvers.active_set.system import System

__all__ = ["OneRow", "has_constant_bends", "is_quadratic"]


class OneRow:
    """One row of a block: its predictor, slope and curvature as numbers."""

    def __init__(self, block: RowBlock, i: int, a: Array) -> None:
        self.block, self.i, self.a = block, i, a
        self.theta = tuple(t[i] if np.ndim(t) else t for t in block.theta)

    def z(self, x: Array) -> float:
        """a'x + c."""
        return float(self.a @ x) + float(self.block.c[self.i])

    def slope(self, piece: int, z: float) -> float:
        """phi'."""
        return float(np.ravel(self.block.kernel.slope(piece, np.array([z]), *self.theta))[0])

    def curvature(self, piece: int, z: float) -> float:
        """phi''."""
        return float(np.ravel(self.block.kernel.curvature(piece, np.array([z]), *self.theta))[0])

    def border(self, piece: int, speed: float) -> int:
        """The border of its piece that the row meets, moving at a speed; -1: none."""
        border = piece - 1 if speed < 0.0 else piece
        if speed == 0.0 or not 0 <= border < self.block.borders.shape[0]:
            return -1
        return border if np.isfinite(self.block.borders[border, self.i]) else -1


def is_quadratic(block: RowBlock) -> bool:
    """Is every piece's curvature free of z?"""
    points = block.scale * np.array([-1.3, -0.7, 0.2, 0.9, 2.1])
    for piece in range(block.kernel.n_pieces):
        with np.errstate(all="ignore"):
            bends = [block.call(block.kernel.curvature, np.full(block.m, piece), np.full(block.m, z)) for z in points]
        if any(not np.array_equal(bends[0], bend) for bend in bends[1:]):
            return False
    return True


def has_constant_bends(system: System) -> bool:
    """Is the curvature of every coordinate function constant on each interval?"""
    coordinates = system.coordinates
    if coordinates.table is not None:
        return True
    for interval in range(coordinates.position.shape[1] + 1):
        labels = np.minimum(interval, coordinates.count)
        inside = coordinates.inside(labels)
        if not np.array_equal(coordinates.curvature(inside, labels), coordinates.curvature(inside + 0.1, labels)):
            return False
    return True

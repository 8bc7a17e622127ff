"""What the loop over pairs asks of a representation of M.

In: pairs' differences u and weights w, one COMID step being Theta <- shrink(Theta + sum w u u'). Out: margins,
M itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.divergences import Penalty

__all__ = ["Block", "Representation", "decrease"]


@dataclass
class Block:
    """Pairs in the order in which they are met: z_t = offset + slope * mu - sign * u'Mu, flat on [low, high)."""

    U: Array  # (B, d), contiguous
    sign: Array
    slope: Array
    offset: Array
    low: Array
    high: Array
    shrink: Array  # eta_t * trace coefficient
    margins: Array  # filled as pairs are met
    traces: Array


class Representation(Protocol):
    """What the engine asks of a representation: `scans` tells whether it has a loop over pairs of its own."""

    scans: bool
    tau: float  # the part of the shrink that has not been put into the arrays

    def scan(self, block: Block, start: int, mu: float) -> int:
        """Go over pairs from `start` while only shrinking is needed; the index of the first that needs more."""

    def squares(self, U: Array) -> Array:
        """u'Mu for each row of U (B, d)."""

    def step(self, U: Array, weights: Array, penalty: Penalty) -> Representation:
        """Theta <- shrink(Theta + sum_i weights_i u_i u_i'), penalty already times eta."""

    def matrix(self) -> Array:
        """M (d, d)."""

    def trace(self) -> float:
        """tr M."""

    def factor(self) -> tuple[Array, Array, float]:
        """(F, coef, level) with M = level I + F' diag(coef) F."""

    def copy(self) -> Representation:
        """An independent copy."""


def decrease(sizes: Array, weights: Array) -> float:
    """How far sum w u u' can push the smallest eigenvalue down; `sizes` are the u'u (k,)."""
    return -float(np.minimum(weights, 0.0) @ sizes)

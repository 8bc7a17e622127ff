"""What a projection onto supports returns: the support, the energy it captures, and how much any other could capture.

In: a vector and a support found by one of the searches. Out: a `Projection`; the dual bound is computed when it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdsl.diagnostics import DataError, Diagnostic

__all__ = ["Projection", "check_prizes", "scaled_prizes"]


@dataclass(frozen=True, eq=False)
class Projection:
    """A support and how good it is.

    Attributes
    ----------
    support : int array (s,)
        Node numbers, ascending.
    share : float
        Captured share of the vector's energy, ``sum x_S^2 / sum x^2`` (1 for the zero vector).
    scale : float
        The largest absolute entry; energies are ``scale ** 2`` times sums of scaled prizes and overflow above 1e154.
    method : str
        How the support was found.
    """

    vector: NDArray[np.float64] = field(repr=False)
    support: NDArray[np.int64]
    prizes: NDArray[np.float64] = field(repr=False)
    scale: float
    method: str
    bounder: Callable[[NDArray[np.float64]], float] = field(repr=False)
    forests: int = 0

    @property
    def scaled_energy(self) -> float:
        """Captured energy in units of ``scale ** 2``."""
        return float(self.prizes[self.support].sum())

    @property
    def energy(self) -> float:
        """Captured energy ``sum of x_S^2``."""
        return self.norm**2 if self.norm < 1e150 else float("inf")

    @property
    def norm(self) -> float:
        """``|x_S|``, safe from overflow and underflow."""
        return self.scale * float(np.sqrt(self.scaled_energy))

    @cached_property
    def share(self) -> float:
        """Captured share of the whole energy."""
        whole = float(self.prizes.sum())
        return 1.0 if whole == 0.0 else min(1.0, self.scaled_energy / whole)

    @cached_property
    def scaled_bound(self) -> float:
        """No admissible support captures more than this, in units of ``scale ** 2``."""
        return max(self.bounder(self.prizes), self.scaled_energy)

    @property
    def bound(self) -> float:
        """No admissible support captures more energy than this (the dual bound)."""
        norm = self.scale * float(np.sqrt(self.scaled_bound))
        return norm**2 if norm < 1e150 else float("inf")

    @property
    def head_factor(self) -> float:
        """A certified lower bound on c_H: ``|x_S| >= head_factor * best |x_S'|``."""
        return 1.0 if self.scaled_bound == 0.0 else float(np.sqrt(self.scaled_energy / self.scaled_bound))

    @property
    def tail_factor(self) -> float:
        """A certified upper bound on c_T: ``|x - x_S| <= tail_factor * least |x - x_S'|`` (inf when that may be 0)."""
        whole = float(self.prizes.sum())
        missed, least = whole - self.scaled_energy, whole - self.scaled_bound
        if missed <= 1e-14 * whole:
            return 1.0
        return float(np.sqrt(missed / least)) if least > 1e-14 * whole else float("inf")

    @property
    def projected(self) -> NDArray[np.float64]:
        """The vector with everything outside the support set to 0 (p,)."""
        out = np.zeros_like(self.vector)
        out[self.support] = self.vector[self.support]
        return out


def scaled_prizes(x: ArrayLike, p: int) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The vector, its squared entries in units of the largest one, and that one's absolute value.

    Raises
    ------
    DataError
        When x has the wrong length or an entry that is not finite.
    """
    vector = np.ascontiguousarray(x, dtype=np.float64)
    if vector.shape != (p,):
        raise DataError(
            Diagnostic("SPL442", f"the vector to project has shape {vector.shape}, and the graph has {p} nodes")
        )
    scale = float(np.abs(vector).max(initial=0.0))
    if not np.isfinite(scale):
        where = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise DataError(
            Diagnostic(
                "SPL442",
                f"entry {where} of the vector to project is {vector[where]}",
                help=("every entry must be finite; an iterate that blew up asks for a smaller step",),
            )
        )
    if scale == 0.0:
        return vector, np.zeros(p), 0.0
    # Dividing first keeps squares of 1e+-200 in range; a subnormal scale has no finite inverse.
    prizes = vector / scale
    prizes *= prizes
    return vector, prizes, scale


def check_prizes(prizes: NDArray[np.float64], p: int) -> None:
    """Refuse what are no prizes of p nodes.

    Raises
    ------
    DataError
        When there are not p of them, or one is negative or not finite.
    """
    if prizes.shape != (p,):
        raise DataError(Diagnostic("SPL442", f"the prizes have shape {prizes.shape}, and the graph has {p} nodes"))
    if not (prizes.min(initial=0.0) >= 0.0 and prizes.max(initial=0.0) < np.inf):
        where = int(np.flatnonzero(~(np.isfinite(prizes) & (prizes >= 0.0)))[0])
        raise DataError(
            Diagnostic(
                "SPL442",
                f"the prize of node {where} is {prizes[where]}, and a prize is a finite number that is not negative",
                help=("prizes are squared entries of a vector",),
            )
        )

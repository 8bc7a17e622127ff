"""The exact representations of M between steps, and which one a run starts from.

In: a divergence, a dimension, a penalty. Out: M_0 = level I. Each step returns the representation to go on with:

- `unclipped.Factors` and `unclipped.Dense` while no eigenvalue can have reached 0: no decomposition at all;
- `spectrum.Spectrum` when eigenvalues are clipped (low rank), and for the other divergences;
- `quadrature.DenseDual` for von Neumann and Burg at full rank.

The objects change in place; `copy` before keeping one.
"""

from __future__ import annotations

import numpy as np

from spdsl.solvers.comid.divergences import Divergence, Penalty, SquaredFrobenius
from spdsl.solvers.comid.representation import Representation
from spdsl.solvers.comid.spectrum import Spectrum
from spdsl.solvers.comid.unclipped import Dense, Factors

__all__ = ["Dense", "Factors", "Representation", "Spectrum", "start"]


def start(divergence: Divergence, d: int, penalty: Penalty, level: float = 1.0) -> Representation:
    """M_0 = level I in the cheapest exact representation."""
    if isinstance(divergence, SquaredFrobenius) and penalty.is_shift:
        return Factors.identity(d, level)
    theta = divergence.dual(np.full(1, level), np.full(1, float(d)))
    return Spectrum(divergence, np.empty((0, d)), np.empty(0), float(theta[0]))

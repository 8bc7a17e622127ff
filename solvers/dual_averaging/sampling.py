"""Which row a step looks at: a function of (seed, step), so that a run can stop anywhere and go on with the same bits.

In: the number of rows, the order's name, the seed. Out: row numbers for any range of draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ORDERS", "Sampler"]

ORDERS = ("uniform", "shuffle", "sequential")
_CHUNK = 1 << 16


class Sampler:
    """Row numbers by draw number.

    Parameters
    ----------
    n : int
        Number of rows.
    order : {"uniform", "shuffle", "sequential"}
        Independent uniform draws (what the theory assumes), a fresh permutation every pass, or the rows as they lie.
    seed : int
        Draw t is the same for the same seed, whatever was asked for before.
    """

    def __init__(self, n: int, order: str, seed: int) -> None:
        self.n = n
        self.order = order
        self.seed = seed
        self._kept: tuple[int, Any] | None = None

    def rows(self, first: int, count: int) -> Any:
        """Rows of the draws ``first <= t < first + count``, int64."""
        if self.order == "sequential":
            return (first + np.arange(count, dtype=np.int64)) % self.n
        size = _CHUNK if self.order == "uniform" else self.n
        parts = []
        t = first
        while t < first + count:
            chunk, inside = divmod(t, size)
            taken = min(size - inside, first + count - t)
            parts.append(self._chunk(chunk)[inside : inside + taken])
            t += taken
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _chunk(self, chunk: int) -> Any:
        if self._kept is None or self._kept[0] != chunk:
            generator = np.random.default_rng([self.seed, chunk])
            drawn = (
                generator.integers(self.n, size=_CHUNK) if self.order == "uniform" else generator.permutation(self.n)
            )
            self._kept = (chunk, drawn)
        return self._kept[1]

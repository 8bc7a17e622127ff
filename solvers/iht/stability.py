"""Stability selection: how often each entry is chosen over seeds and halves of the samples.

In: a model, its data by name, how many repeats. Out: `Stability`: selection shares and the entries that pass a
threshold. Repeats go through joblib, so that a user's backend spreads them. Source: Meinshausen and Buehlmann (2010),
with the error bound of their Theorem 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stability", "stability"]


@dataclass(frozen=True)
class Stability:
    """Selection shares over repeats.

    Attributes
    ----------
    shares : array (p,)
        In which share of the repeats each entry was in the support.
    supports : tuple of int arrays
        The support of each repeat.
    """

    shares: NDArray[np.float64]
    supports: tuple[NDArray[np.int64], ...] = field(repr=False)

    def chosen(self, threshold: float = 0.6) -> NDArray[np.int64]:
        """The entries that are chosen in at least that share of the repeats."""
        return np.flatnonzero(self.shares >= threshold)

    def expected_false(self, threshold: float = 0.6) -> float:
        """A bound on the expected number of wrongly chosen entries: q^2 / ((2 threshold - 1) p).

        It holds when the wrong entries are exchangeable; inf for thresholds of at most 1/2.
        """
        if threshold <= 0.5:
            return float("inf")
        q = float(self.shares.sum())  # entries chosen in a repeat, on average
        return q * q / ((2.0 * threshold - 1.0) * self.shares.size)


def stability(
    model: Any,
    data: Mapping[str, Any],
    rows: tuple[str, ...],
    variable: str = "w",
    repeats: int = 50,
    share: float = 0.5,
    seed: int = 0,
    jobs: int = 1,
    **options: Any,
) -> Stability:
    """Solve a model `repeats` times, each on a random share of the samples and with a seed of its own.

    Parameters
    ----------
    model : spdsl.Model
        A model whose solutions are sparse, by a support constraint or otherwise.
    data : mapping
        Arrays by the names of the model's data.
    rows : tuple of str
        The names whose rows are samples; they are drawn together.
    variable : str
        The vector whose support counts.
    share : float
        Share of the samples in each repeat; 1 repeats over seeds only.
    jobs : int
        As joblib's `n_jobs`.
    options
        Handed on to ``model.solve``.
    """
    from joblib import Parallel, delayed

    n = int(data[rows[0]].shape[0])
    rng = np.random.default_rng(seed)
    draws = [np.sort(rng.choice(n, max(1, round(share * n)), replace=False)) for _ in range(repeats)]

    def mask(repeat: int) -> NDArray[np.bool_]:
        picked = {name: value[draws[repeat]] if name in rows else value for name, value in data.items()}
        return np.asarray(model.solve(**picked, seed=seed + repeat, **options)[variable] != 0.0)

    masks = np.array(Parallel(n_jobs=jobs)(delayed(mask)(repeat) for repeat in range(max(1, repeats))))
    return Stability(masks.mean(axis=0), tuple(np.flatnonzero(row) for row in masks))

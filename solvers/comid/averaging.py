"""The weighted mean of the iterates (M_t, mu_t), summed without forming each M_t.

In: the representation over a run of steps that only shrink, with the iterates' weights. Out: the mean as a dense matrix.
Rows that `Factors` appends keep their coefficient, so they are added once, when the representation changes.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.comid.representations import Dense, Factors, Representation, Spectrum

__all__ = ["Average"]


class Average:
    """sum_t weight_t M_t, sum_t weight_t mu_t and sum_t weight_t."""

    def __init__(self, d: int) -> None:
        self.d = d
        self.weight = 0.0
        self.mu_sum = 0.0
        self.level_sum = 0.0
        self.dense: Array | None = None  # allocated when first needed: (d, d)
        self._open: Factors | None = None
        self._since: list[float] = []  # total weight before each row of the open factors was there

    @staticmethod
    def empty(d: int) -> Average:
        """No iterate yet."""
        return Average(d)

    def observe(self, representation: Representation, weights: Array, taus: Array, mu: float) -> None:
        """Iterates that differ by their shrink only: `weights` and `taus` (k,) of M, and one mu."""
        if self._open is not None and representation is not self._open:
            self._close()
        total = float(weights.sum())
        if isinstance(representation, Factors):
            self._open = representation
            self._since.extend([self.weight] * (representation.count - len(self._since)))
            self.level_sum += float(weights @ (representation.level - taus))
        elif isinstance(representation, Dense):
            self._sum()[...] += total * representation.D
            self.level_sum -= float(weights @ taus)
        elif isinstance(representation, Spectrum):
            self._observe_spectrum(representation, weights, taus)
        else:
            self._sum()[...] += total * representation.matrix()
        self.weight += total
        self.mu_sum += total * mu

    def matrix(self) -> Array:
        """The mean of M_t (d, d); its weight must be positive."""
        total = self._added(self._open, None if self.dense is None else self.dense.copy())
        total.flat[:: self.d + 1] += self.level_sum
        return 0.5 * (total + total.T) / self.weight

    @property
    def mu(self) -> float:
        """The mean of mu_t."""
        return self.mu_sum / self.weight

    def copy(self, representation: Representation, twin: Representation) -> Average:
        """An independent copy, for a run that goes on with `twin` in place of `representation`."""
        other = Average(self.d)
        other.weight, other.mu_sum, other.level_sum = self.weight, self.mu_sum, self.level_sum
        other.dense = None if self.dense is None else self.dense.copy()
        if self._open is representation and isinstance(twin, Factors):
            other._open, other._since = twin, list(self._since)
        elif self._open is not None:
            other.dense = self._added(self._open, other.dense)
        return other

    def _sum(self) -> Array:
        if self.dense is None:
            self.dense = np.zeros((self.d, self.d))
        return self.dense

    def _observe_spectrum(self, spectrum: Spectrum, weights: Array, taus: Array) -> None:
        theta = np.append(spectrum.theta, spectrum.level)
        counts = np.append(np.ones(len(spectrum.theta)), float(self.d - len(spectrum.theta)))
        m = np.zeros(len(theta))
        for weight, tau in zip(weights, taus):
            shifted = theta - tau
            if spectrum.divergence.clips:
                shifted = np.maximum(shifted, 0.0)
            m += weight * spectrum.divergence.primal(shifted, counts)
        self._sum()[...] += (spectrum.V.T * (m[:-1] - m[-1])) @ spectrum.V
        self.level_sum += float(m[-1])

    def _close(self) -> None:
        if self._open is not None:
            self.dense = self._added(self._open, self.dense)
        self._open, self._since = None, []

    def _added(self, factors: Factors | None, dense: Array | None) -> Array:
        total = np.zeros((self.d, self.d)) if dense is None else dense
        if factors is None:
            return total
        rows = len(self._since)  # rows appended after the last iterate was seen carry no weight yet
        F, coef = factors.F[:rows], factors.coef[:rows]
        total += (F.T * (coef * (self.weight - np.array(self._since)))) @ F
        return total

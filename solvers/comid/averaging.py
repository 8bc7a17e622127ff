"""The weighted mean of the iterates (M_t, mu_t), summed without forming each M_t.

In: the representation over a run of steps that only shrink, with the iterates' weights. Out: the mean as a dense
matrix. Sums over such a run are taken one iterate after the other and turned into a matrix only when a gradient
changes M (`settle`), so a mean does not depend on how a run is cut. Rows that `Factors` appends keep their
coefficient: they are added once, when the representation changes.
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
        self.dense: Array | None = None  # settled part (d, d), allocated when first needed
        self._last: Representation | None = None  # what the unsettled sums belong to
        self._since: list[float] = []  # Factors: total weight before each of its rows was there
        self._scalar = 0.0  # Dense: unsettled weight of D
        self._spectrum: Array | None = None  # Spectrum: unsettled weighted eigenvalues, the level's last

    def observe(self, representation: Representation, weights: Array, taus: Array, mu: float) -> None:
        """Iterates that differ by their shrink only: `weights` and `taus` (k,) of M, and one mu."""
        if self._last is not representation:
            self._close()
            self._last = representation
        if isinstance(representation, Factors):
            self._since.extend([self.weight] * (representation.count - len(self._since)))
            self.level_sum = _add(self.level_sum, weights * (representation.level - taus))
        elif isinstance(representation, Dense):
            self._scalar = _add(self._scalar, weights)
            self.level_sum = _add(self.level_sum, weights * -taus)
        elif isinstance(representation, Spectrum):
            self._observe_spectrum(representation, weights, taus)
        else:
            self._settled()[...] += float(weights.sum()) * representation.matrix()
        self.weight = _add(self.weight, weights)
        self.mu_sum = _add(self.mu_sum, weights * mu)

    def settle(self) -> None:
        """Call before a step changes the arrays of the representation observed last."""
        if isinstance(self._last, Dense) and self._scalar:
            self._settled()[...] += self._scalar * self._last.D
            self._scalar = 0.0
        elif isinstance(self._last, Spectrum) and self._spectrum is not None:
            self._settled()[...] += _spectral_sum(self._last, self._spectrum)
            self.level_sum += float(self._spectrum[-1])
            self._spectrum = None

    def matrix(self) -> Array:
        """The mean of M_t (d, d); its weight must be positive."""
        whole = self.copy(None, None)
        whole.settle()
        whole._close()
        total = whole._settled()
        total.flat[:: self.d + 1] += whole.level_sum
        return 0.5 * (total + total.T) / self.weight

    @property
    def mu(self) -> float:
        """The mean of mu_t."""
        return self.mu_sum / self.weight

    def copy(self, representation: Representation | None, twin: Representation | None) -> Average:
        """An independent copy, for a run that goes on with `twin` in place of `representation`."""
        other = Average(self.d)
        other.weight, other.mu_sum, other.level_sum = self.weight, self.mu_sum, self.level_sum
        other.dense = None if self.dense is None else self.dense.copy()
        other._last = twin if self._last is representation and twin is not None else self._last
        other._since, other._scalar = list(self._since), self._scalar
        other._spectrum = None if self._spectrum is None else self._spectrum.copy()
        return other

    def _settled(self) -> Array:
        if self.dense is None:
            self.dense = np.zeros((self.d, self.d))
        return self.dense

    def _observe_spectrum(self, spectrum: Spectrum, weights: Array, taus: Array) -> None:
        theta = np.append(spectrum.theta, spectrum.level)
        counts = np.append(np.ones(len(spectrum.theta)), float(self.d - len(spectrum.theta)))
        m = np.zeros(len(theta)) if self._spectrum is None else self._spectrum
        for weight, tau in zip(weights, taus):
            shifted = theta - tau
            if spectrum.divergence.clips:
                shifted = np.maximum(shifted, 0.0)
            m = m + weight * spectrum.divergence.primal(shifted, counts)
        self._spectrum = m

    def _close(self) -> None:
        """Add the rows of the factors observed last, with the weight they had while they were there."""
        if isinstance(self._last, Factors):
            rows = len(self._since)  # rows appended after the last iterate was seen carry no weight
            F, coef = self._last.F[:rows], self._last.coef[:rows]
            self._settled()[...] += (F.T * (coef * (self.weight - np.array(self._since)))) @ F
        self._last, self._since = None, []


def _add(total: float, terms: Array) -> float:
    """total + terms[0] + terms[1] + ..., in that order."""
    return float(np.add.accumulate(np.append(total, terms))[-1])


def _spectral_sum(spectrum: Spectrum, m: Array) -> Array:
    return np.asarray((spectrum.V.T * (m[:-1] - m[-1])) @ spectrum.V)

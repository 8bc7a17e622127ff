"""Kernel MDML by the kernel PCA route: coordinates Z with Z Z' = K, on which a linear metric is the feature-space
metric.

In: points and a kernel. Out: their exact coordinates, those of new points, and a linear metric's representer
matrix A with d^2(x, z) = (k_x - k_z)' A (k_x - k_z). Starting from M = I on Z equals explicit feature-space
MDML; the paper's eq. 14 with M = I in coefficient space does not, so this route is taken (Kunapuli & Shavlik
2012, section 3.3, corrected).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdsl.diagnostics import DataError, Diagnostic
from spdsl.problem.functions import Array
from spdsl.problem.kernels import gram

__all__ = ["KernelMap"]


@dataclass(frozen=True)
class KernelMap:
    """x -> w^-1/2 V' k(X, x), with K = V diag(w) V' over the points X it was fitted on.

    Attributes
    ----------
    points : array (n, d)
    V : array (n, r)
        Eigenvectors of K with eigenvalues above the cut.
    w : array (r,)
        Those eigenvalues.
    """

    kernel: str
    options: Mapping[str, Any]
    points: Array = field(repr=False)
    V: Array = field(repr=False)
    w: Array = field(repr=False)

    @staticmethod
    def fit(points: Array, kernel: str, options: Mapping[str, Any], cut: float = 1e-12) -> KernelMap:
        """Eigendecompose the kernel matrix of `points` (n, d); eigenvalues below `cut` times the largest are
        dropped.

        Raises
        ------
        DataError
            When the kernel is not positive semidefinite on these points, or not finite.
        """
        K = gram(kernel, points, points, options)
        if not np.isfinite(K).all():
            raise DataError(
                Diagnostic("SPL563", f"the {kernel} kernel is not finite on these points", help=("scale the points",))
            )
        w, V = np.linalg.eigh(0.5 * (K + K.T))
        largest = float(max(w[-1], 0.0))
        if float(w[0]) < -1e-8 * max(largest, 1e-300):
            raise DataError(
                Diagnostic(
                    "SPL563",
                    f"the {kernel} kernel is not positive semidefinite on these points: an eigenvalue is {w[0]:.3g}",
                    help=("use rbf, linear, or polynomial with coef0 >= 0 and a whole degree",),
                )
            )
        kept = w > cut * largest
        return KernelMap(kernel, dict(options), points, np.ascontiguousarray(V[:, kept]), w[kept])

    def transform(self, X: Array) -> Array:
        """Coordinates (m, r) of points (m, d); of those fitted on, exactly V sqrt(w) up to rounding."""
        rows = gram(self.kernel, X, self.points, self.options)
        return np.asarray(rows @ (self.V / np.sqrt(self.w)))

    def coordinates(self) -> Array:
        """The coordinates (n, r) of the points it was fitted on."""
        return np.asarray(self.V * np.sqrt(self.w))

    def representer(self, M: Array) -> Array:
        """A (n, n) of a metric M (r, r) on the coordinates."""
        half = self.V / np.sqrt(self.w)
        return np.asarray(half @ M @ half.T)

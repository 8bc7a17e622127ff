"""The smooth objective that iterative hard thresholding lowers: a loss of affine predictors plus smooth regularizers.

In: a design, an offset and the loss's value, slope and curvature by sample; some columns are thresholded (`penalized`),
the rest (an intercept) are free. Out: values, gradients of all samples or of a block, products with the Hessian, and
the optimum on a given support. `least_squares` and `logistic` build it from arrays; `binding` builds it from a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Objective", "Ridge", "least_squares", "logistic"]

Array = NDArray[np.float64]
Nodes = NDArray[np.int64]
COPIED = 1 << 25  # numbers up to which a dense design is kept by columns too (256 MB)
Sampled = Callable[[Array, slice], Array]


@dataclass(frozen=True)
class Ridge:
    """The regularizer ``sum_k weights_k x_k^2 / 2``; other smooth ones offer the same three methods."""

    weights: Array

    def value(self, x: Array) -> float:
        """The regularizer at x."""
        return 0.5 * float(self.weights @ (x * x))

    def gradient(self, x: Array) -> Array:
        """Its gradient (D,)."""
        return self.weights * x

    def curvature(self, x: Array) -> Array:
        """The diagonal of its Hessian (D,); an upper bound on it where it is not diagonal."""
        return self.weights


@dataclass(frozen=True, eq=False)
class Objective:
    """``sum_i phi_i(A_i x + c_i) + regularizers(x)`` with the columns `thresholded` of x subject to a support set.

    Attributes
    ----------
    design : array (n, D), C-contiguous, or SciPy CSR array
    offset : array (n,)
    value_of, slope_of, curvature_of : callables (z of the rows, slice of rows) -> array
        phi, phi' and phi'' of each sample of a block.
    thresholded : slice
        Which entries of x the support set speaks of.
    """

    design: Any
    offset: Array
    value_of: Sampled
    slope_of: Sampled
    curvature_of: Sampled
    thresholded: slice
    regularizers: tuple[Any, ...] = ()
    free: Nodes = field(init=False)

    def __post_init__(self) -> None:
        everything = np.arange(self.dimension)
        inside = np.zeros(self.dimension, dtype=bool)
        inside[self.thresholded] = True
        object.__setattr__(self, "free", everything[~inside])

    @property
    def sparse(self) -> bool:
        """Is the design a SciPy matrix?"""
        return hasattr(self.design, "tocsr")

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.offset.size

    @property
    def dimension(self) -> int:
        """Length of x."""
        return int(self.design.shape[1])

    @property
    def p(self) -> int:
        """Length of the thresholded part."""
        return len(range(*self.thresholded.indices(self.dimension)))

    @cached_property
    def at_zero(self) -> float:
        """The objective at x = 0."""
        return self.value(np.zeros(self.dimension), self.free[:0])

    def active(self, support: Nodes) -> Nodes:
        """The entries of x that may differ from 0: the support (numbered within the thresholded part) and the free."""
        first = self.thresholded.indices(self.dimension)[0]
        return np.concatenate([support + first, self.free]) if self.free.size else support + first

    @cached_property
    def by_columns(self) -> Any:
        """A sparse design by columns."""
        return self.design.tocsc()

    @cached_property
    def by_features(self) -> Array | None:
        """A dense design by columns (D, n), so that a few of them are read without the others; None for large ones."""
        return np.ascontiguousarray(self.design.T) if self.design.size <= COPIED else None

    def block(self, rows: slice, active: Nodes) -> Array:
        """The design's rows and columns asked for, dense (b, k)."""
        if self.sparse:
            return np.asarray(self.by_columns[:, active].tocsr()[rows].toarray())
        if self.by_features is not None:
            return np.asarray(self.by_features[active, rows].T)
        return np.asarray(self.design[rows][:, active])

    def margins(self, x: Array, active: Nodes, rows: slice) -> Array:
        """z = A x + c on a block, reading the active columns only where they are few."""
        if self.sparse or 4 * active.size > self.dimension:
            return np.asarray(self.design[rows] @ x) + self.offset[rows]
        if self.by_features is not None:
            return np.asarray(x[active] @ self.by_features[active, rows]) + self.offset[rows]
        return np.asarray(self.design[rows][:, active] @ x[active]) + self.offset[rows]

    def value(self, x: Array, active: Nodes, rows: slice = slice(None)) -> float:
        """The objective; on a block, the loss stands for all samples (n / b times the block's)."""
        z = self.margins(x, active, rows)
        loss = float(self.value_of(z, rows).sum()) * (self.n / z.size)
        return loss + float(sum(item.value(x) for item in self.regularizers))

    def gradient(self, x: Array, active: Nodes, rows: slice = slice(None)) -> Array:
        """The gradient (D,); on a block an unbiased estimate of it for blocks drawn uniformly."""
        z = self.margins(x, active, rows)
        slope = self.slope_of(z, rows)
        slope = slope * (self.n / z.size)
        g = np.asarray(self.design[rows].T @ slope)
        for item in self.regularizers:
            g += item.gradient(x)
        return g

    def quadratic(self, x: Array, d: Array, active: Nodes, rows: slice = slice(None)) -> float:
        """d' H d on the active entries, H the Hessian (of the block, times n / b) at x."""
        z = self.margins(x, active, rows)
        change = self.block(rows, active) @ d[active]
        total = float(self.curvature_of(z, rows) @ (change * change)) * (self.n / z.size)
        return total + sum(float(item.curvature(x)[active] @ (d[active] ** 2)) for item in self.regularizers)

    def smoothness(self, x: Array, active: Nodes, rows: slice = slice(None)) -> float:
        """The largest eigenvalue of the Hessian restricted to the active entries (of the block, times n / b)."""
        if not active.size:
            return 0.0
        z = self.margins(x, active, rows)
        weight = np.maximum(self.curvature_of(z, rows), 0.0) * (self.n / z.size)
        scaled = self.block(rows, active) * np.sqrt(weight)[:, None]
        top = largest_singular_value(scaled) ** 2
        return top + max((float(item.curvature(x)[active].max()) for item in self.regularizers), default=0.0)


def largest_singular_value(matrix: Array) -> float:
    """By power iteration until it rises by less than 0.05%; a little is added, because it comes from below."""
    vector = 1.0 + 1e-3 * np.cos(np.arange(matrix.shape[1]))
    vector /= np.linalg.norm(vector)
    value = 0.0
    for _ in range(100):
        image = matrix.T @ (matrix @ vector)
        norm = float(np.linalg.norm(image))
        if norm == 0.0:
            return 0.0
        vector = image / norm
        if norm - value <= 1e-3 * norm:
            break
        value = norm
    return float(np.sqrt(1.02 * norm))


def least_squares(X: Any, y: ArrayLike, scale: float = 1.0, l2: float = 0.0, intercept: bool = False) -> Objective:
    """``scale * |X w + b - y|^2 / 2 + l2 |w|^2 / 2``."""

    def value(z: Array, rows: slice) -> Array:
        return 0.5 * scale * z * z

    def slope(z: Array, rows: slice) -> Array:
        return scale * z

    def curvature(z: Array, rows: slice) -> Array:
        return np.full(z.size, scale)

    return from_design(X, -np.asarray(y, dtype=float), value, slope, curvature, l2, intercept)


def logistic(
    X: Any, y: ArrayLike, weights: ArrayLike | None = None, l2: float = 0.0, intercept: bool = True
) -> Objective:
    """``sum_i weights_i log(1 + exp(-y_i (X_i w + b))) + l2 |w|^2 / 2`` with y of -1 and +1.

    `weights` defaults to 1 / n; ``"balanced"`` gives each class the total weight 1/2.
    """
    labels = np.asarray(y, dtype=float)
    n = labels.size
    if isinstance(weights, str):
        positive = labels > 0
        share = np.where(positive, 0.5 / max(positive.sum(), 1), 0.5 / max((~positive).sum(), 1))
    else:
        share = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=float)

    def value(z: Array, rows: slice) -> Array:
        losses: Array = share[rows] * np.logaddexp(0.0, -labels[rows] * z)
        return losses

    def inverse(z: Array, rows: slice) -> Array:
        m = labels[rows] * z
        return np.asarray(np.exp(-np.logaddexp(0.0, m)))

    def slope(z: Array, rows: slice) -> Array:
        first: Array = -share[rows] * labels[rows] * inverse(z, rows)
        return first

    def curvature(z: Array, rows: slice) -> Array:
        s = inverse(z, rows)
        second: Array = share[rows] * s * (1.0 - s)
        return second

    return from_design(X, np.zeros(n), value, slope, curvature, l2, intercept)


def from_design(
    X: Any, offset: Array, value: Sampled, slope: Sampled, curvature: Sampled, l2: float, intercept: bool
) -> Objective:
    """An objective over w and, last, an intercept that neither the set nor the ridge touches."""
    n, p = X.shape
    if hasattr(X, "tocsc"):
        from scipy import sparse

        ones: Any = np.ones((n, 1))
        design: Any = sparse.csr_array(sparse.hstack([X, ones]) if intercept else X)
    else:
        design = np.ascontiguousarray(X, dtype=float)
        if intercept:
            design = np.hstack([design, np.ones((n, 1))])
    weights = np.concatenate([np.full(p, l2), np.zeros(int(intercept))])
    ridge = (Ridge(weights),) if l2 else ()
    return Objective(design, offset, value, slope, curvature, slice(0, p), ridge)

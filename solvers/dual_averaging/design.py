"""The rows that the engines walk over: a CSR or dense matrix as flat arrays, a factor and an offset for each row.

In: a matrix (m, d), dense or SciPy CSR, row factors, offsets. Out: a `Design`; z_i = factor_i (x_i'w) + intercept
factor_i b + offset_i. Sparse input is never made dense; its arrays are used as they are (float32/64, int32/64).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem.functions import Array

__all__ = ["Design", "make_design"]


@dataclass(frozen=True)
class Design:
    """Rows for the compiled loops.

    Attributes
    ----------
    data, indices, indptr : ndarray
        CSR arrays; for a dense matrix `data` is the raveled matrix and `indices` is 0 .. d - 1, shared by all rows.
    width : int
        d for a dense matrix, 0 for CSR.
    shape : tuple (m, d)
    row_scale : ndarray, pairs (factor, intercept factor), flat; one pair when all rows share it
    offset : ndarray (m,), or (1,) when all rows share it
    longest : int
        The most entries in a row.
    """

    data: Any
    indices: Any
    indptr: Any
    width: int
    shape: tuple[int, int]
    row_scale: Array
    offset: Array
    longest: int

    @property
    def steps(self) -> tuple[int, int]:
        """Strides of `row_scale` and `offset`: 0 when one entry serves all rows."""
        return (2 if self.row_scale.size > 2 else 0), (1 if self.offset.size > 1 else 0)

    @property
    def bytes_used(self) -> int:
        """Memory of the arrays."""
        return int(sum(part.nbytes for part in (self.data, self.indices, self.indptr, self.row_scale, self.offset)))

    def products(self, w: Array, b: float = 0.0) -> Array:
        """The predictors z (m,) at (w, b)."""
        if self.width:  # in blocks: float32 rows are never widened all at once
            rows, step = self.data.reshape(self.shape), max(1, (1 << 22) // max(self.width, 1))
            z = np.empty(self.shape[0])
            for begin in range(0, self.shape[0], step):
                z[begin : begin + step] = rows[begin : begin + step] @ w
        else:
            import scipy.sparse

            z = scipy.sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape) @ w
        pairs = self.row_scale.reshape(-1, 2)
        return np.asarray(pairs[:, 0] * z + pairs[:, 1] * b + self.offset, float)

    def adjoint(self, u: Array) -> tuple[Array, float]:
        """The transposed map: (sum of factor_i u_i x_i, sum of intercept factor_i u_i)."""
        pairs = self.row_scale.reshape(-1, 2)
        weighted = pairs[:, 0] * u
        if self.width:
            g = self.data.reshape(self.shape).T @ weighted
        else:
            import scipy.sparse

            g = scipy.sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape).T @ weighted
        return np.asarray(g, float), float(np.sum(pairs[:, 1] * u))

    def row(self, i: int) -> tuple[Any, Any]:
        """Columns and entries of row i."""
        if self.width:
            return self.indices, self.data[i * self.width : (i + 1) * self.width]
        begin, end = self.indptr[i], self.indptr[i + 1]
        return self.indices[begin:end], self.data[begin:end]


def make_design(matrix: Any, scale: Any = 1.0, intercept: Any = 0.0, offset: Any = 0.0) -> Design:
    """Flat arrays of a matrix.

    Parameters
    ----------
    matrix : array or SciPy sparse (m, d)
    scale, intercept, offset : float or array (m,)
        Factor of each row, factor of the intercept in it (0: none), and its offset.
    """
    m, d = matrix.shape
    if hasattr(matrix, "tocsr"):
        csr = matrix.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        data = csr.data if csr.data.dtype in (np.float32, np.float64) else csr.data.astype(np.float64)
        indices = csr.indices if csr.indices.dtype in (np.int32, np.int64) else csr.indices.astype(np.int64)
        indptr = csr.indptr.astype(np.int64, copy=False)
        width, longest = 0, int(np.diff(indptr).max(initial=0))
    else:
        dense = np.ascontiguousarray(matrix)
        if dense.dtype not in (np.float32, np.float64):
            dense = dense.astype(np.float64)
        data, indices = dense.ravel(), np.arange(d, dtype=np.int32)
        indptr, width, longest = np.zeros(1, np.int64), d, d
    factors = np.stack(np.broadcast_arrays(np.asarray(scale, float), np.asarray(intercept, float)), axis=-1)
    return Design(
        np.ascontiguousarray(data),
        np.ascontiguousarray(indices),
        np.ascontiguousarray(indptr),
        width,
        (int(m), int(d)),
        np.ascontiguousarray(factors.ravel()),
        np.atleast_1d(np.asarray(offset, float)),
        longest,
    )

"""Affine maps of the variables, assembled anew for the certificate: apply, adjoint, single rows.

In: a `Predictor` of a `BoundProblem`. Out: an `AffineMap` over the flat vector. A quadratic form is kept as its rows
d_t, never expanded to (m, d^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from spdsl.problem import BoundProblem, Predictor, Term
from spdsl.problem.functions import Array

__all__ = ["AffineMap", "affine_map", "term_matrix", "term_scale"]


@dataclass(frozen=True)
class _Part:
    """One variable's part: `matrix` (m, size), or the rows d_t (m, d) of a quadratic form; `scale` (m,)."""

    where: slice
    matrix: Any
    scale: Any
    quadratic: bool = False


@dataclass(frozen=True)
class AffineMap:
    """z = A x + c with m rows over the flat vector of `size` entries."""

    parts: tuple[_Part, ...]
    offset: Array
    size: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.offset)

    def __call__(self, x: Array) -> Array:
        return self.linear(x) + self.offset

    def terms_size(self, x: Array) -> float:
        """The largest entry of |A| |x| or of |c|: what rows near zero are small against, also where terms cancel."""
        total = np.zeros(self.n_rows)
        for part in self.parts:
            matrix, entries = abs(part.matrix), np.abs(x[part.where])
            if part.quadratic:
                d = matrix.shape[1]
                inner = matrix @ entries.reshape(d, d)
                values = matrix.multiply(inner).sum(axis=1) if _sparse(inner, matrix) else (inner * matrix).sum(axis=1)
            else:
                values = matrix @ entries
            total += np.abs(part.scale) * np.asarray(values).reshape(self.n_rows)
        return max(float(part.max(initial=0.0)) for part in (total, np.abs(self.offset)))

    def linear(self, x: Array) -> Array:
        """A x (m,)."""
        total = np.zeros(self.n_rows)
        for part in self.parts:
            entries = x[part.where]
            if part.quadratic:
                d = part.matrix.shape[1]
                inner = part.matrix @ entries.reshape(d, d)
                values = part.matrix.multiply(inner).sum(axis=1) if _sparse(inner, part.matrix) else inner * part.matrix
                values = np.asarray(values).reshape(self.n_rows, -1).sum(axis=1)
            else:
                values = np.asarray(part.matrix @ entries).ravel()
            total += part.scale * values
        return total

    def adjoint(self, t: Array) -> Array:
        """A' t (p,)."""
        total = np.zeros(self.size)
        for part in self.parts:
            weights = part.scale * t
            if part.quadratic:
                rows = part.matrix
                product = rows.T @ (
                    scipy.sparse.diags_array(weights) @ rows if _sparse(rows) else weights[:, None] * rows
                )
                total[part.where] += np.asarray(product.toarray() if _sparse(product) else product).ravel()
            else:
                total[part.where] += np.asarray(part.matrix.T @ weights).ravel()
        return total

    def rows(self, chosen: Any) -> Any:
        """The rows of A with these indices: CSR (k, p)."""
        blocks = []
        k = len(chosen)
        for part in self.parts:
            scale = part.scale[chosen]
            if part.quadratic:
                rows = part.matrix[chosen]
                rows = rows.toarray() if _sparse(rows) else rows
                block: Any = np.einsum("ti,tj->tij", rows, rows).reshape(k, -1)
            else:
                block = part.matrix[chosen]
            block = scipy.sparse.csr_array(block)
            block = scipy.sparse.diags_array(scale) @ block
            columns = block.tocoo()
            blocks.append(
                scipy.sparse.csr_array((columns.data, (columns.row, columns.col + part.where.start)), (k, self.size))
            )
        total = scipy.sparse.csr_array((k, self.size))
        for block in blocks:
            total = total + block
        return total.tocsr()


def _sparse(*values: Any) -> bool:
    return any(hasattr(value, "tocsr") for value in values)


def affine_map(bound: BoundProblem, predictor: Predictor) -> AffineMap:
    """The predictor over the flat vector."""
    m = bound.rows(predictor)
    offset = np.zeros(m)
    if predictor.offset is not None:
        offset = np.broadcast_to(np.ravel(np.asarray(bound.evaluate(predictor.offset), float)), (m,)).copy()
    parts = tuple(_part(bound, term, m) for term in predictor.terms)
    return AffineMap(parts, offset, bound.layout.size)


def _part(bound: BoundProblem, term: Term, m: int) -> _Part:
    where = bound.layout.slices[term.variable]
    matrix = term_matrix(bound, term, m)
    return _Part(where, matrix, term_scale(bound, term, m), term.kind == "quadratic_form")


def term_scale(bound: BoundProblem, term: Term, m: int) -> Array:
    """What multiplies the rows of a term (m,)."""
    scale = 1.0 if term.scale is None else bound.evaluate(term.scale)
    return np.broadcast_to(np.ravel(np.asarray(scale, float)), (m,)).copy()


def term_matrix(bound: BoundProblem, term: Term, m: int) -> Any:
    """A term's matrix (m, size of its variable) without its scale; for a quadratic form the rows d_t (m, d)."""
    shape = bound.layout.shapes[term.variable]
    size = int(np.prod(shape)) if shape else 1
    if term.kind == "identity":
        return scipy.sparse.eye_array(size, format="csr")
    if term.kind == "ones":
        return np.ones((m, 1))
    if term.kind == "trace":
        return np.broadcast_to(np.eye(shape[0]).reshape(1, -1), (m, size))
    assert term.matrix is not None
    matrix = bound.evaluate(term.matrix)
    if term.kind == "kernel":
        return bound.gram(term.variable, matrix)
    if term.kind == "row":
        row = matrix.toarray() if _sparse(matrix) else np.asarray(matrix, float)
        return np.broadcast_to(row.reshape(1, -1), (m, size))
    return matrix

"""Sets of multipliers and their projections; all the subgradients at a point as a sum over them.

In: bounds, radii, generators. Out: `Subdifferential`, whose least residual `spdsl.reference.least_residual` finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from spdsl.problem.functions import Array

__all__ = ["Ball", "Block", "Box", "Congruence", "L1Cone", "MultiplierSet", "Simplex", "Spectrum", "Subdifferential"]

SMALL = 200_000  # entries up to which generators are kept dense


@dataclass(frozen=True)
class Box:
    """lower <= t <= upper, entry by entry."""

    lower: Array
    upper: Array

    def project(self, t: Array) -> Array:
        return np.clip(t, self.lower, self.upper)


@dataclass(frozen=True)
class Ball:
    """|t|_2 <= radius."""

    radius: float

    def project(self, t: Array) -> Array:
        norm = float(np.linalg.norm(t))
        return t if norm <= self.radius else t * (self.radius / norm)


@dataclass(frozen=True)
class Simplex:
    """t >= 0, and sums to one within each of `n` consecutive groups of `size`."""

    n: int
    size: int

    def project(self, t: Array) -> Array:
        rows = t.reshape(self.n, self.size)
        ordered = -np.sort(-rows, axis=1)
        excess = np.cumsum(ordered, axis=1) - 1.0
        counts = np.arange(1, self.size + 1)
        last = np.maximum((ordered * counts > excess).sum(axis=1), 1)
        shift = excess[np.arange(self.n), last - 1] / last
        return np.asarray(np.maximum(rows - shift[:, None], 0.0)).ravel()


@dataclass(frozen=True)
class L1Cone:
    """s times a subgradient of the l1 norm, s >= 0: t = s * sign where sign is not 0, |t| <= s elsewhere."""

    sign: Array

    def project(self, t: Array) -> Array:
        """Exact: the squared distance is convex and piecewise quadratic in s."""
        fixed, free = self.sign != 0, np.sort(np.abs(t[self.sign == 0]))[::-1]
        inner, count = float(t[fixed] @ self.sign[fixed]), int(fixed.sum())
        s = inner / count if count else 0.0
        for k, size in enumerate(free, 1):
            if size <= s:
                break
            s = (inner + float(free[:k].sum())) / (count + k)
        s = max(s, 0.0)
        return np.where(fixed, s * self.sign, np.clip(t, -s, s))


@dataclass(frozen=True)
class Spectrum:
    """Symmetric r x r matrices (flattened) with eigenvalues in [lower, upper]."""

    r: int
    lower: float
    upper: float

    def project(self, t: Array) -> Array:
        matrix = t.reshape(self.r, self.r)
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
        return np.asarray((vectors * np.clip(values, self.lower, self.upper)) @ vectors.T).ravel()


MultiplierSet: TypeAlias = Box | Ball | Simplex | L1Cone | Spectrum


class Congruence:
    """The generators of {N S N'}: symmetric r x r matrices S to entries of a d x d variable, never expanded."""

    def __init__(self, basis: Array, where: slice, size: int) -> None:
        self.basis, self.where = basis, where
        self.shape = (basis.shape[1] ** 2, size)

    def __matmul__(self, residual: Array) -> Array:
        d = self.basis.shape[0]
        return np.asarray(self.basis.T @ residual[self.where].reshape(d, d) @ self.basis).ravel()

    @property
    def T(self) -> _Transposed:
        return _Transposed(self)

    def matrix(self) -> Any:
        """All generators, written out (r^2, p)."""
        full = np.zeros(self.shape)
        full[:, self.where] = np.kron(self.basis, self.basis).T
        return scipy.sparse.csr_array(full)


class _Transposed:
    def __init__(self, original: Congruence) -> None:
        self.original = original

    def __matmul__(self, t: Array) -> Array:
        r = self.original.basis.shape[1]
        total = np.zeros(self.original.shape[1])
        basis = self.original.basis
        total[self.original.where] = np.asarray(basis @ t.reshape(r, r) @ basis.T).ravel()
        return total


@dataclass(frozen=True)
class Block:
    """Generators (m, p), one a multiplier, and the set of the multipliers."""

    rows: Any
    set: MultiplierSet

    def __post_init__(self) -> None:
        if hasattr(self.rows, "tocsr") and self.rows.shape[0] * self.rows.shape[1] <= SMALL:
            object.__setattr__(self, "rows", self.rows.toarray())

    @cached_property
    def columns(self) -> Any:
        """The transposed generators."""
        return self.rows.T.tocsr() if hasattr(self.rows, "tocsr") else self.rows.T


@dataclass
class Subdifferential:
    """g + product of intervals (one a coordinate) + sum over blocks of G' t: all the subgradients at a point.

    `symmetric` lists the entries (slices, orders) of symmetric matrices, whose residual counts in its symmetric part.
    """

    gradient: Array
    lower: Array
    upper: Array
    blocks: list[Block] = field(default_factory=list)
    symmetric: list[tuple[slice, int]] = field(default_factory=list)
    fixed: Any = None  # coordinates that aren't free to move (outside a found support): they don't count

    @property
    def signature(self) -> tuple[Any, ...]:
        """Equal for equal sums, as far as what is touched goes."""
        sizes = tuple((type(block.set).__name__, block.rows.shape) for block in self.blocks)
        return self.gradient.tobytes(), self.lower.tobytes(), self.upper.tobytes(), sizes

    def residual(self, u: Array) -> Array:
        """u (gradient and blocks) plus the best choice in the intervals."""
        shifted = u + np.clip(-u, self.lower, self.upper)
        for where, order in self.symmetric:
            matrix = shifted[where].reshape(order, order)
            shifted[where] = ((matrix + matrix.T) / 2.0).ravel()
        if self.fixed is not None:
            shifted[self.fixed] = 0.0
        return shifted

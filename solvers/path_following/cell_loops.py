"""Compiled passes for piecewise affine pulls: what the event engine and its landings share.

In: the samples with the cells of their pull, and the coordinate functions as tables. Out: borders, cells, the sums that make
the Hessian and the gradient, and inverses. Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray

__all__ = [
    "CHUNK", "Samples", "Sums", "Terms", "add", "assign", "beside_borders", "borders", "by_inverse_age", "carry",
    "change_cell", "copy", "differing", "gather", "gradient", "invert", "predict", "times",
]  # fmt: skip

CHUNK = 256  # samples whose values stay in the innermost cache
_PIVOT = 1e-11
_FAST = {"contract", "reassoc", "nsz"}


class Samples(NamedTuple):
    """Rows a_i of the design (both layouts), z = a'x + c, their factors and norms; by cell: the pull's coefficients and phi'.

    A (n, p), At (p, n), c, factor, length (n,); slope, offset, bend (k, 2): the pull is (slope[:, 0] + slope[:, 1] t) z +
    offset[:, 0] + offset[:, 1] t with t = 1 / age, and phi' is bend[:, 0] z + bend[:, 1].
    """

    A: Array
    At: Array
    c: Array
    factor: Array
    length: Array
    slope: Array
    offset: Array
    bend: Array


class Terms(NamedTuple):
    """The rest of the objective: x'Qx / 2 + q'x, and coordinate functions with slopes rise x + level by interval.

    Q (p, p), q (p,), has_q; position, low, high (p, r): kinks and the one-sided slopes there; smooth (p, r): borders that are
    no kinks; kinks (p,): how many; rise, level (p, r + 1); unit (p,): a change of x that is rounding.
    """

    Q: Array
    q: Array
    has_q: bool
    position: Array
    low: Array
    high: Array
    smooth: Any
    kinks: IntArray
    rise: Array
    level: Array
    unit: Array


class Sums(NamedTuple):
    """H (2, p, p), g (2, p): the loss's Hessian and its gradient at x = 0, each as a constant and a factor of t."""

    H: Array
    g: Array


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def borders(samples: Samples, t: float, at: Array, moves: Array) -> None:
    """Where neighbouring cells meet, and how these places change with t."""
    slope, offset = samples.slope, samples.offset
    for k in range(at.size):
        bend_by_t = slope[k + 1, 1] - slope[k, 1]
        rise_by_t = offset[k + 1, 1] - offset[k, 1]
        bend = (slope[k + 1, 0] - slope[k, 0]) + t * bend_by_t
        rise = (offset[k + 1, 0] - offset[k, 0]) + t * rise_by_t
        at[k] = -rise / bend
        moves[k] = -(rise_by_t * bend - rise * bend_by_t) / (bend * bend)


@njit(cache=True, error_model="numpy", fastmath=_FAST)  # type: ignore[untyped-decorator]
def add(factor: float, values: Array, total: Array) -> None:
    """total += factor values."""
    for i in range(total.size):
        total[i] += factor * values[i]


@njit(cache=True)  # type: ignore[untyped-decorator]
def copy(values: Array, into: Array) -> None:
    """into = values; a loop, since array expressions take numba seconds to compile."""
    for i in range(into.size):
        into[i] = values[i]


@njit(cache=True)  # type: ignore[untyped-decorator]
def predict(samples: Samples, x: Array, z: Array) -> None:
    """z = A x + c."""
    copy(samples.c, z)
    for j in range(x.size):
        if x[j] != 0.0:
            add(x[j], samples.At[j], z)


@njit(cache=True)  # type: ignore[untyped-decorator]
def assign(z: Array, at: Array, cell: IntArray) -> None:
    """The cell of every sample."""
    for i in range(z.size):
        k = 0
        for j in range(at.size):
            if z[i] >= at[j]:
                k += 1
        cell[i] = k


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def gather(samples: Samples, cell: IntArray, sums: Sums) -> None:
    """The sums over all samples."""
    H, g = sums.H, sums.g
    p = g.shape[1]
    for part in range(2):
        for j in range(p):
            g[part, j] = 0.0
            for k in range(p):
                H[part, j, k] = 0.0
    for i in range(cell.size):
        row, factor = samples.A[i], samples.factor[i]
        for part in range(2):
            bend = factor * samples.slope[cell[i], part]
            push = bend * samples.c[i] + factor * samples.offset[cell[i], part]
            if bend != 0.0:
                for j in range(p):
                    scaled = bend * row[j]
                    if scaled != 0.0:
                        for k in range(j + 1):
                            H[part, j, k] += scaled * row[k]
            if push != 0.0:
                add(push, row, g[part])
    for part in range(2):
        for j in range(p):
            for k in range(j):
                H[part, k, j] = H[part, j, k]


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def change_cell(samples: Samples, i: int, old: int, new: int, sums: Sums) -> None:
    """Carry one sample from a cell to another."""
    row, factor = samples.A[i], samples.factor[i]
    for part in range(2):
        bend = factor * (samples.slope[new, part] - samples.slope[old, part])
        push = bend * samples.c[i] + factor * (samples.offset[new, part] - samples.offset[old, part])
        if bend != 0.0:
            for j in range(row.size):
                if row[j] != 0.0:
                    add(bend * row[j], row, sums.H[part, j])
        if push != 0.0:
            add(push, row, sums.g[part])


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def carry(samples: Samples, old: IntArray, new: IntArray, sums: Sums) -> int:
    """Carry all samples whose cell differs; `old` becomes `new`. Returns how many."""
    count = 0
    for i in range(old.size):
        if old[i] != new[i]:
            change_cell(samples, i, old[i], new[i], sums)
            old[i] = new[i]
            count += 1
    return count


@njit(cache=True)  # type: ignore[untyped-decorator]
def differing(old: IntArray, new: IntArray) -> int:
    """How many entries differ."""
    count = 0
    for i in range(old.size):
        count += old[i] != new[i]
    return count


@njit(cache=True)  # type: ignore[untyped-decorator]
def beside_borders(z: Array, at: Array, near: float) -> int:
    """How many samples are on a border, to `near`."""
    count = 0
    for i in range(z.size):
        for k in range(at.size):
            if abs(z[i] - at[k]) <= near:
                count += 1
    return count


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def invert(sums: Sums, terms: Terms, rise: Array, free: IntArray, t: float, K: Array) -> bool:
    """K = the inverse of the Hessian over the free coordinates; False when it is not positive definite."""
    f = free.size
    L = np.empty((f, f))
    for a in range(f):
        for b in range(a + 1):
            i, j = free[a], free[b]
            total = sums.H[0, i, j] + t * sums.H[1, i, j] + terms.Q[i, j]
            if a == b:
                total += rise[i]
            whole = total
            for k in range(b):
                total -= L[a, k] * L[b, k]
            if a > b:
                L[a, b] = total / L[b, b]
            elif total > _PIVOT * abs(whole):
                L[a, a] = np.sqrt(total)
            else:
                return False
    for a in range(f):  # L := its inverse
        L[a, a] = 1.0 / L[a, a]
        for b in range(a):
            total = 0.0
            for k in range(b, a):
                total -= L[a, k] * L[k, b]
            L[a, b] = total * L[a, a]
    for a in range(f):
        for b in range(a + 1):
            total = 0.0
            for k in range(a, f):
                total += L[k, a] * L[k, b]
            K[a, b] = K[b, a] = total
    return True


@njit(cache=True, error_model="numpy", fastmath=_FAST)  # type: ignore[untyped-decorator]
def times(sums: Sums, terms: Terms, rise: Array, x: Array, t: float, out: Array) -> None:
    """The Hessian times x (p,)."""
    for i in range(x.size):
        first, second = rise[i] * x[i], 0.0
        for j in range(x.size):
            first += sums.H[0, i, j] * x[j]
            second += sums.H[1, i, j] * x[j]
        if terms.has_q:
            for j in range(x.size):
                first += terms.Q[i, j] * x[j]
        out[i] = first + t * second


@njit(cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def gradient(sums: Sums, terms: Terms, rise: Array, level: Array, x: Array, t: float, out: Array) -> None:
    """All of the gradient (p,) but held coordinates' own slopes."""
    times(sums, terms, rise, x, t, out)
    for i in range(x.size):
        out[i] += sums.g[0, i] + t * sums.g[1, i] + terms.q[i] + level[i]


@njit(cache=True, error_model="numpy", fastmath=_FAST)  # type: ignore[untyped-decorator]
def by_inverse_age(sums: Sums, x: Array, out: Array) -> None:
    """The gradient's derivative by t (p,)."""
    for i in range(x.size):
        total = sums.g[1, i]
        for j in range(x.size):
            total += sums.H[1, i, j] * x[j]
        out[i] = total

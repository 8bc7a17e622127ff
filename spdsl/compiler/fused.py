"""One pass over all samples: the numba twins of a loss and of v* in single loops, for engines that work on many samples.

In: the stored derivations of a PC^r function and of v*. Out: compiled loops that label samples, evaluate them under given
labels, make Newton's system, and bound curvatures from below. They are kept on the disk beside the twins; where no file can
be written there are none, and the NumPy tier serves.
"""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

from spdsl.compiler.store import Stored, import_loops

__all__ = ["fused_loops"]

_SOURCE = '''"""Loops over the samples of {function} and {weights}."""

import numpy as np
from numba import njit
from {function_module} import piece_curvature, piece_of as piece_at, piece_slope, piece_value
from {weights_module} import piece_dage, piece_dloss, piece_of as band_at, piece_weight


@njit(cache=CACHE, error_model="numpy")
def label(u, age, theta, own, piece, band):
    for i in range(u.size):
        row = theta[min(i, theta.shape[0] - 1)]
        piece[i] = piece_at(u[i], row)
        band[i] = band_at(piece_value(piece[i], u[i], row), age, own)


@njit(cache=CACHE, error_model="numpy")
def evaluate(piece, band, u, age, theta, own, factor, out):
    for i in range(u.size):
        row = theta[min(i, theta.shape[0] - 1)]
        loss = piece_value(piece[i], u[i], row)
        slope = piece_slope(piece[i], u[i], row)
        weight = piece_weight(band[i], loss, age, own)
        pull = factor[i] * slope
        bend = factor[i] * weight * piece_curvature(piece[i], u[i], row)
        bend += piece_dloss(band[i], loss, age, own) * slope * pull
        out[0, i] = loss
        out[1, i] = slope
        out[2, i] = weight
        out[3, i] = weight * pull
        out[4, i] = finite(bend)
        out[5, i] = piece_dage(band[i], loss, age, own) * pull


@njit(cache=CACHE, error_model="numpy")
def finite(value):
    if np.isnan(value):
        return 0.0
    return min(max(value, -1e150), 1e150)


@njit(cache=CACHE, error_model="numpy")
def curvature(piece, band, u, age, row, own, factor):
    loss = piece_value(piece, u, row)
    slope = piece_slope(piece, u, row)
    bend = factor * piece_weight(band, loss, age, own) * piece_curvature(piece, u, row)
    return finite(bend + piece_dloss(band, loss, age, own) * slope * slope * factor)


@njit(cache=CACHE, error_model="numpy", fastmath={"contract", "reassoc"})
def newton(A, c, x, age, theta, own, factor, gradient, by_age, H):
    """The loss's gradient (f,), its derivative by the age (f,) and its Hessian (f, f) at x: one pass over A (m, f)."""
    m, f = A.shape
    gradient[:] = 0.0
    by_age[:] = 0.0
    H[:, :] = 0.0
    for i in range(m):
        row = theta[min(i, theta.shape[0] - 1)]
        u = c[i]
        for j in range(f):
            u += A[i, j] * x[j]
        piece = piece_at(u, row)
        loss = piece_value(piece, u, row)
        band = band_at(loss, age, own)
        pull = factor[i] * piece_slope(piece, u, row)
        push = piece_weight(band, loss, age, own) * pull
        aging = piece_dage(band, loss, age, own) * pull
        bend = curvature(piece, band, u, age, row, own, factor[i])
        if push == 0.0 and bend == 0.0 and aging == 0.0:
            continue
        for j in range(f):
            gradient[j] += push * A[i, j]
            by_age[j] += aging * A[i, j]
            scaled = bend * A[i, j]
            for k in range(j + 1):
                H[j, k] += scaled * A[i, k]
    for j in range(f):
        for k in range(j):
            H[k, j] = H[j, k]


@njit(cache=CACHE, error_model="numpy")
def floors(low, high, first, last, theta, own, factor, floor):
    for i in range(low.size):
        row = theta[min(i, theta.shape[0] - 1)]
        least = floor[i]
        first_piece, last_piece, first_band, last_band = 127, 0, 127, 0
        for corner in range(5):
            u = low[i] if corner < 2 else high[i]
            age = first if corner % 2 == 0 else last
            if corner == 4:
                u, age = 0.5 * (low[i] + high[i]), 0.5 * (first + last)
            piece = piece_at(u, row)
            band = band_at(piece_value(piece, u, row), age, own)
            least = min(least, curvature(piece, band, u, age, row, own, factor[i]))
            first_piece, last_piece = min(first_piece, piece), max(last_piece, piece)
            first_band, last_band = min(first_band, band), max(last_band, band)
        if first_piece < last_piece or first_band < last_band:
            for piece in range(first_piece, last_piece + 1):
                for band in range(first_band, last_band + 1):
                    for corner in range(4):
                        u = low[i] if corner < 2 else high[i]
                        age = first if corner % 2 == 0 else last
                        least = min(least, curvature(piece, band, u, age, row, own, factor[i]))
        floor[i] = least
'''


def fused_loops(function: Stored, weights: Stored) -> SimpleNamespace | None:
    """The loops of a function and of v*: ``label``, ``evaluate`` and ``floors``; None where they can't be kept."""
    function.compiled(), weights.compiled()  # so that their modules can be imported by name
    modules = [f"spdsl_kernels_{item.name}" for item in (function, weights)]
    source = _SOURCE
    for name, value in (
        ("{function}", function.name),
        ("{weights}", weights.name),
        ("{function_module}", modules[0]),
        ("{weights_module}", modules[1]),
    ):
        source = source.replace(name, value)
    return import_loops(f"loops_{hashlib.sha256(source.encode()).hexdigest()[:24]}", source)

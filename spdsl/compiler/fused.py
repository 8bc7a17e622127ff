"""One pass over all samples: the numba twins of a loss and of v* in single loops, for engines that work on many samples.

In: the stored derivations of a PC^r function and of v*. Out: compiled loops that label samples, evaluate them under given
labels, make Newton's system, and bound its Hessian from below. They are kept on the disk beside the twins; where no file can
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

BANDS = {bands}
CHUNK = 256  # samples whose values stay in the innermost cache


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


@njit(cache=CACHE, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def newton(At, c, x, free, age, theta, own, factor, sums, H, rows):
    """One pass over all samples at x, in chunks that stay in the cache.

    sums (3, p): the loss's gradient, its derivative by the age, the sum of its terms' sizes. H (f, f): the Hessian over the
    free coordinates. rows (5, n): u, curvatures, derivatives of the pulls by the age, losses, the curvatures' convex part.
    """
    p, n = At.shape
    f = free.size
    sums[:, :] = 0.0
    H[:, :] = 0.0
    push, scaled = np.empty(CHUNK), np.empty(CHUNK)
    pieces, bands, order = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    last = theta.shape[0] - 1
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        m = end - start
        u, bends, agings = rows[0, start:end], rows[1, start:end], rows[2, start:end]
        losses, convex = rows[3, start:end], rows[4, start:end]
        for i in range(m):
            u[i] = c[start + i]
        for j in range(p):
            if x[j] != 0.0:
                add(x[j], At[j, start:end], u)
        for i in range(m):
            row = theta[min(start + i, last)]
            pieces[i] = piece_at(u[i], row)
            losses[i] = piece_value(pieces[i], u[i], row)
            bands[i] = band_at(losses[i], age, own)
        for band in range(BANDS):
            for k in range(gathered(bands, m, band, order)):
                i = order[k]
                row = theta[min(start + i, last)]
                piece, loss = pieces[i], losses[i]
                weight = piece_weight(band, loss, age, own)
                slope = piece_slope(piece, u[i], row)
                pull = factor[start + i] * slope
                push[i] = weight * pull
                agings[i] = piece_dage(band, loss, age, own) * pull
                bend = factor[start + i] * weight * piece_curvature(piece, u[i], row)
                convex[i] = max(finite(bend), 0.0)
                bends[i] = finite(bend + piece_dloss(band, loss, age, own) * slope * pull)
        for j in range(p):
            column = At[j, start:end]
            first, second, third = 0.0, 0.0, 0.0
            for i in range(m):
                term = push[i] * column[i]
                first += term
                third += abs(term)
                second += agings[i] * column[i]
            sums[0, j] += first
            sums[1, j] += second
            sums[2, j] += third
        gram(At, free, start, end, bends, scaled, H)
    mirror(H)


@njit(cache=CACHE)
def gathered(labels, m, label, order):
    """Those of the first m samples that have a label, in order: how many. So loops run over samples of one band at a time,
    and the processor has no branch to guess (which costs more than the arithmetic where labels are mixed)."""
    count = 0
    for i in range(m):
        order[count] = i
        count += labels[i] == label
    return count


@njit(cache=CACHE, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def add(factor, values, total):
    for i in range(total.size):
        total[i] += factor * values[i]


@njit(cache=CACHE, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def gram(At, free, start, end, c, scaled, H):
    m = end - start
    for a in range(free.size):
        column = At[free[a], start:end]
        for i in range(m):
            scaled[i] = c[i] * column[i]
        for b in range(a + 1):
            other = At[free[b], start:end]
            total = 0.0
            for i in range(m):
                total += scaled[i] * other[i]
            H[a, b] += total


@njit(cache=CACHE, error_model="numpy")
def whole_gram(At, free, c, H):
    """A' diag(c) A over the free coordinates (f, f)."""
    H[:, :] = 0.0
    scaled = np.empty(CHUNK)
    for start in range(0, c.size, CHUNK):
        end = min(start + CHUNK, c.size)
        gram(At, free, start, end, c[start:end], scaled, H)
    mirror(H)


@njit(cache=CACHE)
def mirror(H):
    for a in range(H.shape[0]):
        for b in range(a):
            H[b, a] = H[a, b]


@njit(cache=CACHE, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def along(At, free, dx, rows, du, change):
    """How u (n,) and the loss's gradient (p,) change by the age along the path's tangent dx over the free coordinates."""
    p, n = At.shape
    change[:] = 0.0
    pull = np.empty(CHUNK)
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        m = end - start
        part, bends, agings = du[start:end], rows[1, start:end], rows[2, start:end]
        part[:] = 0.0
        for a in range(free.size):
            add(dx[a], At[free[a], start:end], part)
        for i in range(m):
            pull[i] = bends[i] * part[i] + agings[i]
        for j in range(change.size):
            column = At[j, start:end]
            total = 0.0
            for i in range(m):
                total += pull[i] * column[i]
            change[j] += total


@njit(cache=CACHE, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def lowest(At, free, first, last, before, du0, after, du1, theta, own, factor, H):
    """The Hessian with every sample's curvature at its least over a stretch between two ages.

    u runs in the hull of the Bezier points of its Hermite cubic, widened by a tenth. The least curvature is taken over the
    hull's ends at both ages and the middle; where these differ in piece or band, over all pieces and bands between.
    """
    n = At.shape[1]
    third = (last - first) / 3.0
    H[:, :] = 0.0
    floor, scaled = np.empty(CHUNK), np.empty(CHUNK)
    lows, highs = np.empty(CHUNK), np.empty(CHUNK)
    pieces, bands, order = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    end_row = theta.shape[0] - 1
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        m = end - start
        for i in range(m):
            k = start + i
            u0, u1 = before[0, k], after[0, k]
            b1, b2 = u0 + third * du0[k], u1 - third * du1[k]
            low, high = min(min(u0, u1), min(b1, b2)), max(max(u0, u1), max(b1, b2))
            widen = 0.1 * (high - low)
            lows[i], highs[i] = low - widen, high + widen
            floor[i] = min(before[1, k], after[1, k])
        for i in range(m):
            row = theta[min(start + i, end_row)]
            pieces[i], bands[i] = only(lows[i], highs[i], first, last, row, own)
        for band in range(BANDS):
            for k in range(gathered(bands, m, band, order)):
                i = order[k]
                row = theta[min(start + i, end_row)]
                floor[i] = least_inside(pieces[i], band, lows[i], highs[i], first, last, row, own, factor[start + i], floor[i])
        for k in range(gathered(bands, m, -1, order)):
            i = order[k]
            row = theta[min(start + i, end_row)]
            floor[i] = least(lows[i], highs[i], first, last, row, own, factor[start + i], floor[i])
        gram(At, free, start, end, floor, scaled, H)
    mirror(H)


@njit(cache=CACHE, error_model="numpy")
def only(low, high, first, last, row, own):
    """The piece and the band of a hull's ends and middle at both ages; -1, -1 where they differ."""
    middle = 0.5 * (low + high)
    piece, other, third = piece_at(low, row), piece_at(high, row), piece_at(middle, row)
    values = piece_value(piece, low, row), piece_value(other, high, row), piece_value(third, middle, row)
    band = band_at(values[0], first, own)
    same = (piece == other) & (piece == third)
    same &= (band_at(values[0], last, own) == band) & (band_at(values[1], first, own) == band)
    same &= (band_at(values[1], last, own) == band) & (band_at(values[2], 0.5 * (first + last), own) == band)
    return (piece, band) if same else (-1, -1)


@njit(cache=CACHE, error_model="numpy")
def least_inside(piece, band, low, high, first, last, row, own, factor, found):
    """The least curvature at a hull's ends and middle, all in one piece and band."""
    found = min(found, curvature(piece, band, low, first, row, own, factor))
    found = min(found, curvature(piece, band, low, last, row, own, factor))
    found = min(found, curvature(piece, band, high, first, row, own, factor))
    found = min(found, curvature(piece, band, high, last, row, own, factor))
    return min(found, curvature(piece, band, 0.5 * (low + high), 0.5 * (first + last), row, own, factor))


@njit(cache=CACHE, error_model="numpy")
def least(low, high, first, last, row, own, factor, found):
    first_piece, last_piece, first_band, last_band = 127, 0, 127, 0
    for place in range(3):
        u = low if place == 0 else (high if place == 1 else 0.5 * (low + high))
        piece = piece_at(u, row)
        loss = piece_value(piece, u, row)
        slope = piece_slope(piece, u, row)
        bend = piece_curvature(piece, u, row)
        first_piece, last_piece = min(first_piece, piece), max(last_piece, piece)
        for time in range(2 if place < 2 else 1):
            age = 0.5 * (first + last) if place == 2 else (first if time == 0 else last)
            band = band_at(loss, age, own)
            first_band, last_band = min(first_band, band), max(last_band, band)
            weighed = piece_weight(band, loss, age, own) * bend + piece_dloss(band, loss, age, own) * slope * slope
            found = min(found, finite(factor * weighed))
    if first_piece < last_piece or first_band < last_band:
        for piece in range(first_piece, last_piece + 1):
            for band in range(first_band, last_band + 1):
                for corner in range(4):
                    u = low if corner < 2 else high
                    age = first if corner % 2 == 0 else last
                    found = min(found, curvature(piece, band, u, age, row, own, factor))
    return found
'''


# A division by what is the same for all samples becomes a multiplication.
_EXACTLY, _QUICKLY = "error_model='numpy'", "error_model='numpy', fastmath={'arcp', 'contract'}"


def fused_loops(function: Stored, weights: Stored) -> SimpleNamespace | None:
    """The loops of a function and of v*, None where they can't be kept.

    ``label`` and ``evaluate`` serve blocks of rows; ``newton``, ``along``, ``whole_gram`` and ``lowest`` are whole sweeps.
    """
    for item in (function, weights):  # so that their modules can be imported by name
        if import_loops(f"quick_{item.name}", item.numba_source.replace(_EXACTLY, _QUICKLY)) is None:
            return None
    modules = [f"spdsl_kernels_quick_{item.name}" for item in (function, weights)]
    source = _SOURCE
    for name, value in (
        ("{function}", function.name),
        ("{weights}", weights.name),
        ("{bands}", str(len(weights.derived.pieces))),
        ("{function_module}", modules[0]),
        ("{weights_module}", modules[1]),
    ):
        source = source.replace(name, value)
    return import_loops(f"loops_{hashlib.sha256(source.encode()).hexdigest()[:24]}", source)

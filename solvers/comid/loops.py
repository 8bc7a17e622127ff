"""Compiled loops over pairs whose margin asks for no gradient: there a step of COMID only shrinks the spectrum.

In: a block of pairs, the current representation of M as plain arrays, the shrinks to come. Out: the index of
the first pair that needs a gradient (or a clip), the accumulated shrink, and the margins and traces met on the
way.

Each loop handles one pair after the other with the same operations whatever the block's length, so results do not
depend on how a run is cut into blocks. Importing this module imports numba; a loop's Python twin is its
``py_func``.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["CLIP", "EXPONENTIAL", "INVERSE", "lanczos", "scan_dense", "scan_factors", "scan_spectrum"]

CLIP, EXPONENTIAL, INVERSE = 0, 1, 2  # how m follows from theta: max(theta, 0), exp(theta), -1/theta


@numba.njit(cache=True, error_model="numpy")
def _primal(theta, kind):  # type: ignore[no-untyped-def]
    if kind == CLIP:
        return max(theta, 0.0)
    if kind == EXPONENTIAL:
        return float(np.exp(theta))
    return -1.0 / theta


@numba.njit(cache=True, error_model="numpy")
def scan_factors(  # type: ignore[no-untyped-def]
    U, sign, slope, offset, low, high, shrink, start, F, coef, level, tau, mu, room, trace, margins, traces
):
    """M = (level - tau) I + F' diag(coef) F, no eigenvalue of which can reach 0 while tau < room."""
    d = U.shape[1]
    k = F.shape[0]
    for t in range(start, U.shape[0]):
        u = U[t]
        square = 0.0
        for j in range(d):
            square += u[j] * u[j]
        q = (level - tau) * square
        if k > 0:
            p = np.dot(F, u)
            for i in range(k):
                q += coef[i] * p[i] * p[i]
        z = offset[t] + slope[t] * mu - sign[t] * q
        margins[t] = z
        traces[t] = trace - d * tau
        if not (low[t] <= z < high[t]) or tau + shrink[t] >= room:
            return t, tau
        tau += shrink[t]
    return U.shape[0], tau


@numba.njit(cache=True, error_model="numpy")
def scan_dense(U, sign, slope, offset, low, high, shrink, start, D, tau, mu, room, trace, margins, traces):  # type: ignore[no-untyped-def]
    """M = D - tau I with D dense, no eigenvalue of which can reach 0 while tau < room."""
    d = U.shape[1]
    for t in range(start, U.shape[0]):
        u = U[t]
        p = np.dot(D, u)
        q = 0.0
        square = 0.0
        for j in range(d):
            q += p[j] * u[j]
            square += u[j] * u[j]
        q -= tau * square
        z = offset[t] + slope[t] * mu - sign[t] * q
        margins[t] = z
        traces[t] = trace - d * tau
        if not (low[t] <= z < high[t]) or tau + shrink[t] >= room:
            return t, tau
        tau += shrink[t]
    return U.shape[0], tau


@numba.njit(cache=True, error_model="numpy")
def scan_spectrum(  # type: ignore[no-untyped-def]
    U, sign, slope, offset, low, high, shrink, start, V, theta, level, tau, mu, kind, room, margins, traces
):
    """Theta = level I + V' diag(theta - level) V, all shifted by -tau; M by `kind`. Rows of V are orthonormal."""
    d = U.shape[1]
    k = V.shape[0]
    for t in range(start, U.shape[0]):
        u = U[t]
        ground = _primal(level - tau, kind)
        square = 0.0
        for j in range(d):
            square += u[j] * u[j]
        q = ground * square
        trace = ground * (d - k)
        if k > 0:
            p = np.dot(V, u)
            for i in range(k):
                m = _primal(theta[i] - tau, kind)
                q += (m - ground) * p[i] * p[i]
                trace += m
        z = offset[t] + slope[t] * mu - sign[t] * q
        margins[t] = z
        traces[t] = trace
        if not (low[t] <= z < high[t]) or tau + shrink[t] >= room:
            return t, tau
        tau += shrink[t]
    return U.shape[0], tau


@numba.njit(cache=True, error_model="numpy")
def lanczos(D, unit, basis, diagonal, off, reached, wanted):  # type: ignore[no-untyped-def]
    """Lanczos steps reached + 1, ..., wanted on the symmetric D from `unit`; (steps made, did the space close?)."""
    for j in range(reached, wanted):
        if j == 0:
            basis[0] = unit
        w = np.dot(D, basis[j])
        diagonal[j] = np.dot(w, basis[j])
        Q = basis[: j + 1]
        for _ in range(2):
            w = w - np.dot(np.dot(Q, w), Q)
        size = np.sqrt(np.dot(w, w))
        off[j] = size
        if size <= 1e-14 * (np.abs(diagonal[0]) + 1e-300) or j + 1 == D.shape[0]:
            return j + 1, True
        if j + 1 < basis.shape[0]:
            basis[j + 1] = w / size
        elif j + 1 < wanted:
            return j + 1, False
    return wanted, False

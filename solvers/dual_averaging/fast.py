"""The two loops that most runs spend their time in: one sample a step, gradients at the interpolated w or at z.

In and out: as `kernels`, whose general loop does the same for every method and batch. Here nothing is done for a case
that can't occur, rows and records are fetched ahead, what a record needs in nine steps of ten is done without a branch,
and the rest is left to `gaps`. This module imports numba: import it inside functions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from spdsl.solvers.dual_averaging.compiled import inner
from spdsl.solvers.dual_averaging.gaps import catch_up, mark
from spdsl.solvers.dual_averaging.kernels import compile_loop, step_intercept
from spdsl.solvers.dual_averaging.unchecked import at, both_if_greater, prefetch, put

__all__ = ["run_averaged", "run_interpolated"]

_NEAR = 1 << 13  # records that the nearest caches hold anyway (32 bytes each)


@inner
def nearest_bound(general, low_all, high_all):  # type: ignore[no-untyped-def]
    """How far a coordinate may be from 0 before a bound can be met; below 0 when each must be looked at."""
    nearest = -np.inf if general else np.inf
    for k in range(high_all.size):
        nearest = min(nearest, high_all[k], -low_all[k])
    return nearest


@cache
def run_interpolated(data: str, index: str) -> Any:
    """The loop of interpolated dual averaging for the given element types, one sample a step."""
    return compile_loop(_run_interpolated, data, index, fused=True)


@cache
def run_averaged(data: str, index: str) -> Any:
    """The loop of plain dual averaging and of eq. 11 without interpolation, for the given element types."""
    return compile_loop(_run_averaged, data, index, fused=True)


def _run_interpolated(  # type: ignore[no-untyped-def]
    slope, value, theta, theta_step, rows, batch, scale,
    data, indices, indptr, width, row_scale, row_scale_step, offset, offset_step,
    state, curvature, intercept, seen,
    first, steps,
    family, primal, summed, general, delta, eta,
    rho_all, rho_step, bias_all, bias_step, low_all, high_all, box_step,
    shape, weight, sums, threshold, divisor, prefix, step_size,
    buffer, averages,
):  # fmt: skip
    """Family 0 only: the gradient is taken at w = total / A, one sample a step."""
    with_intercept = intercept[0] > 0.0
    track = averages.shape[0] > 1
    far = width == 0 and state.shape[0] > _NEAR
    own = theta[0].copy()  # the row's parameters: a view of them would be counted as a reference, at each step
    tight = nearest_bound(general, low_all, high_all)
    for t in range(steps):
        i = first + t
        row = at(rows, t)
        ahead, end = 0, 0
        if width == 0 and t + 8 < steps:  # rows are drawn at random: have them at hand in time
            following = at(rows, t + 8)
            prefetch(indptr, following)
            prefetch(row_scale, following * row_scale_step)
            following = at(rows, t + 4)
            last = at(indptr, following + 1) - 1
            for q in range(at(indptr, following), last, 64 // data.itemsize):
                prefetch(data, q)
            for q in range(at(indptr, following), last, 64 // indices.itemsize):
                prefetch(indices, q)
            prefetch(data, last)
            prefetch(indices, last)
            if far:  # and then the records that they touch, one at each look below
                following = at(rows, t + 2)
                ahead, end = at(indptr, following), at(indptr, following + 1)
        if width > 0:  # dense rows share one array of column numbers
            begin, shift, count = 0, row * width, width
        else:
            begin = shift = at(indptr, row)
            count = at(indptr, row + 1) - begin
        P, R, T = at(prefix, 3 * i), at(prefix, 3 * i + 1), at(threshold, i)
        dot = 0.0
        for q in range(count):
            j = np.int64(at(indices, begin + q))
            c, e = at(state, 4 * j + 2), at(state, 4 * j + 3)
            total = at(state, 4 * j + 1) + c * P + e * R
            if not abs(c) >= abs(e) * T:
                total = catch_up(
                    state, j, i, at(rho_all, j * rho_step), at(bias_all, j * bias_step),
                    at(low_all, j * box_step), at(high_all, j * box_step), shape, threshold, divisor, prefix,
                )  # fmt: skip
            put(buffer, q, total)
            dot += at(data, shift + q) * total
            if ahead < end:
                prefetch(state, 4 * np.int64(at(indices, ahead)))
                ahead += 1
        while ahead < end:
            prefetch(state, 4 * np.int64(at(indices, ahead)))
            ahead += 1
        unit, unit_intercept = at(row_scale, row * row_scale_step), at(row_scale, row * row_scale_step + 1)
        z = unit * dot / at(sums, i) + at(offset, row * offset_step)
        if with_intercept:
            z += unit_intercept * intercept[2] / at(sums, i)
        if theta_step > 0:
            for q in range(own.size):
                own[q] = theta[row, q]
        s = slope(z, own)
        if track:
            averages[row, 0] += weight[i]
            averages[row, 1] += weight[i] * s
            averages[row, 2] += weight[i] * (z * s - value(z, own))
        if s != 0.0:
            factor = at(weight, i) * scale * s * unit
            T, room = at(threshold, i + 1), tight * at(divisor, i + 1)
            for q in range(count):
                j = np.int64(at(indices, begin + q))
                sigma, total = at(state, 4 * j) + factor * at(data, shift + q), at(buffer, q)
                rho = at(rho_all, j * rho_step)
                c, e = both_if_greater(abs(sigma), rho * T, -sigma, np.copysign(rho, sigma))
                put(state, 4 * j, sigma)
                put(state, 4 * j + 1, total - c * P - e * R)
                put(state, 4 * j + 2, c)
                put(state, 4 * j + 3, e)
                if abs(sigma) - rho * T > room:
                    mark(
                        state, j, total, i, rho, at(low_all, j * box_step), at(high_all, j * box_step), 1.0, general,
                        threshold, divisor, prefix,
                    )  # fmt: skip
        if with_intercept:
            gradient = s * scale * unit_intercept
            step_intercept(
                intercept, gradient, i, family, weight, sums, threshold, divisor, step_size, shape, delta, eta
            )


def _run_averaged(  # type: ignore[no-untyped-def]
    slope, value, theta, theta_step, rows, batch, scale,
    data, indices, indptr, width, row_scale, row_scale_step, offset, offset_step,
    state, curvature, intercept, seen,
    first, steps,
    family, primal, summed, general, delta, eta,
    rho_all, rho_step, bias_all, bias_step, low_all, high_all, box_step,
    shape, weight, sums, threshold, divisor, prefix, step_size,
    buffer, averages,
):  # fmt: skip
    """Families 0 and 1: the gradient is taken at the dual iterate z, one sample a step."""
    with_intercept = intercept[0] > 0.0
    track = averages.shape[0] > 1
    far = width == 0 and state.shape[0] > _NEAR
    mu = shape[3]
    own = theta[0].copy()
    tight = nearest_bound(general, low_all, high_all)
    for t in range(steps):
        i = first + t
        row = at(rows, t)
        ahead, end = 0, 0
        if width == 0 and t + 8 < steps:
            following = at(rows, t + 8)
            prefetch(indptr, following)
            prefetch(row_scale, following * row_scale_step)
            following = at(rows, t + 4)
            last = at(indptr, following + 1) - 1
            for q in range(at(indptr, following), last, 64 // data.itemsize):
                prefetch(data, q)
            for q in range(at(indptr, following), last, 64 // indices.itemsize):
                prefetch(indices, q)
            prefetch(data, last)
            prefetch(indices, last)
            if far:
                following = at(rows, t + 2)
                ahead, end = at(indptr, following), at(indptr, following + 1)
        if width > 0:
            begin, shift, count = 0, row * width, width
        else:
            begin = shift = at(indptr, row)
            count = at(indptr, row + 1) - begin
        T, D, part = at(threshold, i), at(divisor, i), 1.0 / at(divisor, i)
        dot = 0.0
        for q in range(count):
            j = np.int64(at(indices, begin + q))
            s_j, limit = at(state, 4 * j) + at(bias_all, j * bias_step) * T, at(rho_all, j * rho_step) * T
            z_j, _ = both_if_greater(abs(s_j), limit, (np.copysign(limit, s_j) - s_j) * part, 0.0)
            if abs(s_j) - limit > tight * D:
                z_j = min(max(z_j, at(low_all, j * box_step)), at(high_all, j * box_step))
            put(buffer, q, z_j)
            dot += at(data, shift + q) * z_j
            if ahead < end:
                prefetch(state, 4 * np.int64(at(indices, ahead)))
                ahead += 1
        while ahead < end:
            prefetch(state, 4 * np.int64(at(indices, ahead)))
            ahead += 1
        unit, unit_intercept = at(row_scale, row * row_scale_step), at(row_scale, row * row_scale_step + 1)
        z = unit * dot + at(offset, row * offset_step)
        if with_intercept:
            z += unit_intercept * intercept[3]
        if theta_step > 0:
            for q in range(own.size):
                own[q] = theta[row, q]
        s = slope(z, own)
        if track:
            averages[row, 0] += weight[i]
            averages[row, 1] += weight[i] * s
            averages[row, 2] += weight[i] * (z * s - value(z, own))
        if s != 0.0:
            P, R, following_T = at(prefix, 3 * i), at(prefix, 3 * i + 1), at(threshold, i + 1)
            D, step = at(divisor, i + 1), at(step_size, i)
            factor, a = scale * s * unit, at(weight, i)
            for q in range(count):
                j = np.int64(at(indices, begin + q))
                rho = at(rho_all, j * rho_step)
                gradient = factor * at(data, shift + q)
                total = 0.0
                if summed:
                    c, e = at(state, 4 * j + 2), at(state, 4 * j + 3)
                    total = at(state, 4 * j + 1) + c * P + e * R
                    if not abs(c) >= abs(e) * T:
                        total = catch_up(
                            state, j, i, rho, at(bias_all, j * bias_step), at(low_all, j * box_step),
                            at(high_all, j * box_step), shape, threshold, divisor, prefix,
                        )  # fmt: skip
                if family == 0:
                    sigma = at(state, 4 * j) + a * gradient
                else:
                    v = at(buffer, q) - step * gradient
                    z_j = np.copysign(max(abs(v) - step * rho, 0.0), v) / (1.0 + step * mu)
                    z_j = min(max(z_j, at(low_all, j * box_step)), at(high_all, j * box_step))
                    sigma = 0.0 if z_j == 0.0 else -np.copysign(abs(z_j) * D + rho * following_T, z_j)
                put(state, 4 * j, sigma)
                if summed:
                    limit = rho * following_T
                    c, e = both_if_greater(abs(sigma), limit, -sigma, np.copysign(rho, sigma))
                    put(state, 4 * j + 1, total - c * P - e * R)
                    put(state, 4 * j + 2, c)
                    put(state, 4 * j + 3, e)
                    if abs(sigma) - limit > tight * D:
                        mark(
                            state, j, total, i, rho, at(low_all, j * box_step), at(high_all, j * box_step), 1.0,
                            general, threshold, divisor, prefix,
                        )  # fmt: skip
        if with_intercept:
            gradient = s * scale * unit_intercept
            step_intercept(
                intercept, gradient, i, family, weight, sums, threshold, divisor, step_size, shape, delta, eta
            )

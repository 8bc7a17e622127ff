"""The two loops that most runs spend their time in: one sample a step, gradients at the interpolated w or at z.

In and out: as `kernels`, whose general loop does the same for every method and batch. Here nothing is done for a case
that can't occur, rows are fetched ahead, and coordinates that don't change are not written. This module imports numba:
import it inside functions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spdsl.solvers.dual_averaging.gaps import gap_general, mark, overtaken, total_at
from spdsl.solvers.dual_averaging.kernels import compile_loop, step_intercept

__all__ = ["run_averaged", "run_interpolated"]


@cache
def run_interpolated(data: str, index: str) -> Any:
    """The loop of interpolated dual averaging for the given element types, one sample a step."""
    return compile_loop(_run_interpolated, data, index)


@cache
def run_averaged(data: str, index: str) -> Any:
    """The loop of plain dual averaging and of eq. 11 without interpolation, for the given element types."""
    return compile_loop(_run_averaged, data, index)


@intrinsic
def prefetch(context, array, index):  # type: ignore[no-untyped-def]
    """Ask for the cache line of a flat array's element; changes nothing but the time that a later look takes."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer_type, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        flat = target.make_array(signature.args[0])(target, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(flat.data, [arguments[1]]), pointer_type)
        kind = ir.FunctionType(ir.VoidType(), [pointer_type, whole, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, whole(0), whole(3), whole(1)])
        return target.get_dummy_value()

    return types.void(array, types.intp), generate


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
    tight = min(high_all.min(), -low_all.max())  # the bound that is met first
    for t in range(steps):
        i = first + t
        row = np.uint64(rows[t])
        if width == 0 and t + 8 < steps:  # rows are drawn at random: have them at hand in time
            following = np.uint64(rows[t + 8])
            prefetch(indptr, following)
            prefetch(row_scale, following * row_scale_step)
            following = np.uint64(rows[t + 4])
            for q in range(indptr[following], indptr[following + 1], 16):
                prefetch(data, q)
                prefetch(indices, q)
        if width > 0:  # dense rows share one array of column numbers
            shift, begin, end = row * width, 0, width
        else:
            shift, begin, end = 0, indptr[row], indptr[row + 1]
        P, R, T = prefix[i, 0], prefix[i, 1], threshold[i]
        dot = 0.0
        for q in range(begin, end):
            j = np.uint64(indices[q])  # unsigned: no wrap-around to look out for
            c, e = state[j, 2], state[j, 3]
            total = state[j, 1] + c * P + e * R
            if not abs(c) >= abs(e) * T:
                if np.isnan(e):
                    total = state[j, 1] + gap_general(
                        state[j, 0], np.int64(c), i, rho_all[j * rho_step], bias_all[j * bias_step],
                        low_all[j * box_step], high_all[j * box_step], 1.0, shape, threshold, divisor, prefix,
                    )  # fmt: skip
                else:  # for good, so that no later look pays for it again
                    total = overtaken(state[j, 1], c, e, i, threshold, prefix)
                    state[j, 1], state[j, 2], state[j, 3] = total, 0.0, 0.0
            buffer[q - begin] = total
            dot += data[shift + q] * total
        unit, unit_intercept = row_scale[row * row_scale_step], row_scale[row * row_scale_step + 1]
        z = unit * dot / sums[i] + offset[row * offset_step]
        if with_intercept:
            z += unit_intercept * intercept[2] / sums[i]
        s = slope(z, theta[row * theta_step])
        if track:
            averages[row, 0] += weight[i]
            averages[row, 1] += weight[i] * s
            averages[row, 2] += weight[i] * (z * s - value(z, theta[row * theta_step]))
        if s != 0.0:
            factor = weight[i] * scale * s * unit
            T, D = threshold[i + 1], divisor[i + 1]
            for q in range(begin, end):
                j = np.uint64(indices[q])
                sigma, total, rho = state[j, 0] + factor * data[shift + q], buffer[q - begin], rho_all[j * rho_step]
                excess = abs(sigma) - rho * T
                free = excess > 0.0
                c = -sigma if free else 0.0
                e = np.copysign(rho, sigma) if free else 0.0
                state[j, 0] = sigma
                state[j, 1] = total - c * P - e * R
                state[j, 2] = c
                state[j, 3] = e
                if general or excess > tight * D:
                    mark(
                        state[j], total, i, rho, low_all[j * box_step], high_all[j * box_step], 1.0, general,
                        threshold, divisor, prefix,
                    )  # fmt: skip
        if with_intercept:
            gradient = s * scale * unit_intercept
            step_intercept(intercept, gradient, i, 0, weight, sums, threshold, divisor, step_size, shape, delta, eta)


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
    mu = shape[3]
    tight = min(high_all.min(), -low_all.max())
    for t in range(steps):
        i = first + t
        row = np.uint64(rows[t])
        if width == 0 and t + 8 < steps:
            following = np.uint64(rows[t + 8])
            prefetch(indptr, following)
            prefetch(row_scale, following * row_scale_step)
            following = np.uint64(rows[t + 4])
            for q in range(indptr[following], indptr[following + 1], 16):
                prefetch(data, q)
                prefetch(indices, q)
        if width > 0:
            shift, begin, end = row * width, 0, width
        else:
            shift, begin, end = 0, indptr[row], indptr[row + 1]
        T, part = threshold[i], 1.0 / divisor[i]
        dot = 0.0
        for q in range(begin, end):
            j = np.uint64(indices[q])
            s_j = state[j, 0] + bias_all[j * bias_step] * T
            z_j = -np.copysign(max(abs(s_j) - rho_all[j * rho_step] * T, 0.0), s_j) * part
            z_j = min(max(z_j, low_all[j * box_step]), high_all[j * box_step])
            buffer[q - begin] = z_j
            dot += data[shift + q] * z_j
        unit, unit_intercept = row_scale[row * row_scale_step], row_scale[row * row_scale_step + 1]
        z = unit * dot + offset[row * offset_step]
        if with_intercept:
            z += unit_intercept * intercept[3]
        s = slope(z, theta[row * theta_step])
        if track:
            averages[row, 0] += weight[i]
            averages[row, 1] += weight[i] * s
            averages[row, 2] += weight[i] * (z * s - value(z, theta[row * theta_step]))
        if s != 0.0:
            P, R, following_T, D = prefix[i, 0], prefix[i, 1], threshold[i + 1], divisor[i + 1]
            factor = scale * s * unit
            for q in range(begin, end):
                j = np.uint64(indices[q])
                rho = rho_all[j * rho_step]
                gradient = factor * data[shift + q]
                total = 0.0
                if summed:
                    c, e = state[j, 2], state[j, 3]
                    total = state[j, 1] + c * P + e * R
                    if not abs(c) >= abs(e) * T:
                        total = total_at(
                            state[j], i, rho, bias_all[j * bias_step], low_all[j * box_step],
                            high_all[j * box_step], 1.0, shape, threshold, divisor, prefix,
                        )  # fmt: skip
                if family == 0:
                    sigma = state[j, 0] + weight[i] * gradient
                else:
                    v = buffer[q - begin] - step_size[i] * gradient
                    z_j = np.copysign(max(abs(v) - step_size[i] * rho, 0.0), v) / (1.0 + step_size[i] * mu)
                    z_j = min(max(z_j, low_all[j * box_step]), high_all[j * box_step])
                    sigma = 0.0 if z_j == 0.0 else -np.copysign(abs(z_j) * D + rho * following_T, z_j)
                state[j, 0] = sigma
                if summed:
                    excess = abs(sigma) - rho * following_T
                    free = excess > 0.0
                    c = -sigma if free else 0.0
                    e = np.copysign(rho, sigma) if free else 0.0
                    state[j, 1] = total - c * P - e * R
                    state[j, 2] = c
                    state[j, 3] = e
                    if general or excess > tight * D:
                        mark(
                            state[j], total, i, rho, low_all[j * box_step], high_all[j * box_step], 1.0, general,
                            threshold, divisor, prefix,
                        )  # fmt: skip
        if with_intercept:
            gradient = s * scale * unit_intercept
            step_intercept(
                intercept, gradient, i, family, weight, sums, threshold, divisor, step_size, shape, delta, eta
            )

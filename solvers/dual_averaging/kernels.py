"""The lazy step of every method: O(nonzeros of the samples), one compiled loop for all losses.

In: rows of a CSR or dense matrix, the block's tables, the coordinates' records, the loss's slope. Out: the records,
changed in place. A step predicts with the coordinates that its samples touch, brought up to date on the fly (`gaps`),
and writes only those whose gradient is not zero. This module imports numba: import it inside functions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types

from spdsl.solvers.dual_averaging.compiled import compiled, inner
from spdsl.solvers.dual_averaging.gaps import iterate, mark, total_at

__all__ = ["compile_loop", "fill_tables", "read", "run_any", "settle", "step_intercept"]


@cache
def run_any(data: str, index: str) -> Any:
    """The loop of all lazy methods for the given element types."""
    return compile_loop(_run_any, data, index)


def compile_loop(loop: Any, data: str, index: str, fused: bool = False) -> Any:
    """With the signature spelled out: the slope comes in by pointer, so that no loss recompiles the loop.

    `fused` lets a product and the sum it goes into be rounded once, together.
    """
    vector, matrix, whole, number = types.float64[::1], types.float64[:, ::1], types.int64, types.float64
    slope = types.FunctionType(number(number, types.float64[:]))

    def given(kind: Any, dimensions: int = 1) -> Any:  # a user's arrays may be read-only, mapped from a file
        return types.Array(kind, dimensions, "C", readonly=True)

    values, columns, factors = given(getattr(types, data)), given(getattr(types, index)), given(number)
    sample = (slope, slope, matrix, whole, given(types.int64), whole, number)
    design = (values, columns, given(types.int64), whole, factors, whole, factors, whole)
    memory = (matrix, vector, vector, types.int64[::1])
    method = (whole, types.boolean, types.boolean, types.boolean, number, number)
    where = (whole, whole)
    terms = (vector, whole, vector, whole, vector, vector, whole)
    tables = (vector, vector, vector, vector, vector, matrix, vector)
    signature = types.void(*sample, *design, *memory, *where, *method, *terms, *tables, vector, matrix)
    return compiled(signature, no_cfunc_wrapper=True, fastmath={"contract"} if fused else False)(loop)


def _run_any(  # type: ignore[no-untyped-def]
    slope, value, theta, theta_step, rows, batch, scale,
    data, indices, indptr, width, row_scale, row_scale_step, offset, offset_step,
    state, curvature, intercept, seen,
    first, steps,
    family, primal, summed, general, delta, eta,
    rho_all, rho_step, bias_all, bias_step, low_all, high_all, box_step,
    shape, weight, sums, threshold, divisor, prefix, step_size,
    buffer, averages,
):  # fmt: skip
    """Every family, gradients at w (`primal`) or at z, any batch; `seen` (d,) marks the columns of a batch."""
    with_intercept = intercept[0] > 0.0
    track = averages.shape[0] > 1
    mu = shape[3]
    own = theta[0].copy()  # the row's parameters
    columns = np.empty(buffer.size, np.int64)  # of this step, each once, with their gradients in `buffer`
    for t in range(steps):
        i = first + t
        count = 0
        intercept_gradient = 0.0
        for m in range(batch):
            row = rows[t * batch + m]
            if width > 0:
                shift, begin, end = row * width, 0, width
            else:
                shift, begin, end = 0, indptr[row], indptr[row + 1]
            dot = 0.0
            for q in range(begin, end):
                j = np.int64(indices[q])
                rho, bias = rho_all[j * rho_step], bias_all[j * bias_step]
                low, high = low_all[j * box_step], high_all[j * box_step]
                if primal:
                    inverse = _inverse(j, family, curvature, delta, eta, 0.0)
                    at = total_at(state, j, i, rho, bias, low, high, inverse, shape, threshold, divisor, prefix)
                else:
                    inverse = _inverse(j, family, curvature, delta, eta, mu * threshold[i])
                    at = iterate(state[j, 0], i, rho, bias, low, high, inverse, threshold, divisor)
                dot += data[shift + q] * at
            if primal:
                dot /= sums[i]
            unit, unit_intercept = row_scale[row * row_scale_step], row_scale[row * row_scale_step + 1]
            z = unit * dot + offset[row * offset_step]
            if with_intercept:
                z += unit_intercept * (intercept[2] / sums[i] if primal else intercept[3])
            if theta_step > 0:
                for q in range(own.size):
                    own[q] = theta[row, q]
            s = slope(z, own)
            if track:
                averages[row, 0] += weight[i]
                averages[row, 1] += weight[i] * s
                averages[row, 2] += weight[i] * (z * s - value(z, own))
            if s == 0.0:
                continue
            factor = s * scale * unit
            intercept_gradient += s * scale * unit_intercept
            for q in range(begin, end):
                j = np.int64(indices[q])
                place = count
                if batch > 1:
                    place = seen[j] - 1
                    if place < 0:
                        place = count
                        seen[j] = place + 1
                if place == count:
                    columns[count] = j
                    buffer[count] = 0.0
                    count += 1
                buffer[place] += factor * data[shift + q]
        for c in range(count):
            j, gradient = columns[c], buffer[c]
            if batch > 1:
                seen[j] = 0
            rho, bias = rho_all[j * rho_step], bias_all[j * bias_step]
            low, high = low_all[j * box_step], high_all[j * box_step]
            inverse = _inverse(j, family, curvature, delta, eta, 0.0)
            total = 0.0
            if summed:
                total = total_at(state, j, i, rho, bias, low, high, inverse, shape, threshold, divisor, prefix)
            if family == 0:
                state[j, 0] += weight[i] * gradient
            elif family == 1:
                z = iterate(state[j, 0], i, rho, 0.0, low, high, 1.0, threshold, divisor)
                z = _prox(z - step_size[i] * gradient, step_size[i], rho, mu, low, high)
                state[j, 0] = 0.0 if z == 0.0 else -np.copysign(abs(z) * divisor[i + 1] + rho * threshold[i + 1], z)
            else:
                squared = curvature[j] + gradient * gradient
                if family == 3:
                    inverse = _inverse(j, family, curvature, delta, eta, mu * threshold[i])
                    z = iterate(state[j, 0], i, rho, 0.0, low, high, inverse, threshold, divisor)
                    state[j, 0] -= (np.sqrt(squared) - np.sqrt(curvature[j])) / eta * z
                state[j, 0] += gradient
                curvature[j] = squared
                inverse = _inverse(j, family, curvature, delta, eta, 0.0)
            if summed:
                mark(state, j, total, i, rho, low, high, inverse, general, threshold, divisor, prefix)
        if with_intercept:
            step_intercept(
                intercept, intercept_gradient, i, family, weight, sums, threshold, divisor, step_size, shape, delta, eta
            )


@inner
def _inverse(j, family, curvature, delta, eta, ridge):  # type: ignore[no-untyped-def]
    """The coordinate's own factor 1 / H_j of AdaGrad and FTRL; 1 for the other families."""
    if family < 2:
        return 1.0
    return 1.0 / ((delta + np.sqrt(curvature[j])) / eta + ridge)


@inner
def _prox(v, q, rho, mu, low, high):  # type: ignore[no-untyped-def]
    """Minimizer of (z - v)^2 / 2 + q (rho |z| + mu z^2 / 2) over low <= z <= high."""
    excess = abs(v) - q * rho
    z = np.copysign(excess, v) / (1.0 + q * mu) if excess > 0.0 else 0.0
    return min(max(z, low), high)


@inner
def step_intercept(  # type: ignore[no-untyped-def]
    intercept, gradient, i, family, weight, sums, threshold, divisor, step_size, shape, delta, eta
):
    """The unpenalized scalar, eagerly. `intercept` = (on, s, total, z, low, high, bias, squares)."""
    low, high, bias = intercept[4], intercept[5], intercept[6]
    if family == 0:
        intercept[1] += weight[i] * gradient
        z = -(intercept[1] + bias * sums[i]) / (divisor[i + 1] - shape[3] * threshold[i + 1])
    elif family == 1:
        z = intercept[3] - step_size[i] * gradient
    else:
        squared = intercept[7] + gradient * gradient
        if family == 3:
            intercept[1] -= (np.sqrt(squared) - np.sqrt(intercept[7])) / eta * intercept[3]
        intercept[1] += gradient
        intercept[7] = squared
        z = -intercept[1] * eta / (delta + np.sqrt(squared)) if delta + squared > 0.0 else 0.0
    z = min(max(z, low), high)
    intercept[2] += weight[i + 1] * z
    intercept[3] = z


@compiled()
def read(  # type: ignore[no-untyped-def]
    i, dual, family, delta, eta, state, curvature,
    rho_all, rho_step, bias_all, bias_step, low_all, high_all, box_step,
    shape, threshold, divisor, prefix, out,
):  # fmt: skip
    """All coordinates at step i, into `out`: z_i (`dual`) or the sum of a z; the records stay as they are."""
    for j in range(out.size):
        rho, bias = rho_all[j * rho_step], bias_all[j * bias_step]
        low, high = low_all[j * box_step], high_all[j * box_step]
        if dual:
            inverse = _inverse(j, family, curvature, delta, eta, shape[3] * threshold[i])
            out[j] = iterate(state[j, 0], i, rho, bias, low, high, inverse, threshold, divisor)
        else:
            inverse = _inverse(j, family, curvature, delta, eta, 0.0)
            out[j] = total_at(state, j, i, rho, bias, low, high, inverse, shape, threshold, divisor, prefix)


@compiled()
def settle(  # type: ignore[no-untyped-def]
    i, family, summed, general, delta, eta, state, curvature,
    rho_all, rho_step, bias_all, bias_step, low_all, high_all, box_step,
    shape, threshold, divisor, prefix, next_threshold, next_divisor, next_prefix,
):  # fmt: skip
    """End a block at its last step i: bring every coordinate up to date and restart its gap in the next block."""
    for j in range(state.shape[0]):
        if state[j, 0] == 0.0 and not general:
            continue  # never touched, or shrunk to zero for good
        rho, bias = rho_all[j * rho_step], bias_all[j * bias_step]
        low, high = low_all[j * box_step], high_all[j * box_step]
        inverse = _inverse(j, family, curvature, delta, eta, 0.0)
        total = 0.0
        if summed:
            total = total_at(state, j, i, rho, bias, low, high, inverse, shape, threshold, divisor, prefix)
        if family == 1:
            state[j, 0] = -iterate(state[j, 0], i, rho, 0.0, low, high, 1.0, threshold, divisor)
        if summed:
            mark(state, j, total, 0, rho, low, high, inverse, general, next_threshold, next_divisor, next_prefix)


@compiled()
def fill_tables(code, kind, start, gamma, mu, tables, prefix):  # type: ignore[no-untyped-def]
    """A block's tables (`tables.make_block`), in place."""
    total, weight, threshold, divisor, step = tables[0], tables[1], tables[2], tables[3], tables[4]
    for i in range(total.size):
        k = start + i
        t = np.float64(k)
        if kind == 0:
            weight[i], total[i] = 1.0, t + 1.0
            before, scale = t, gamma * np.sqrt(t)
        else:
            weight[i], total[i] = t + 1.0, 0.5 * (t + 1.0) * (t + 2.0)
            before, scale = 0.5 * t * (t + 1.0), gamma * t * np.sqrt(t)
        step[i] = 0.0
        if code == 0:
            threshold[i] = before
            divisor[i] = scale + mu * before if k > 0 else 1.0
        elif code == 2:
            threshold[i] = before
            divisor[i] = 1.0
        else:
            step[i] = 1.0 / (gamma * np.sqrt(t + 1.0))
            if i == 0:
                threshold[i], divisor[i] = 0.0, 1.0
            else:
                threshold[i] = threshold[i - 1] + step[i - 1] * divisor[i - 1]
                divisor[i] = divisor[i - 1] * (1.0 + mu * step[i - 1])
        if i == 0:
            prefix[i, 0], prefix[i, 1], prefix[i, 2] = 0.0, 0.0, 0.0
        else:
            share = weight[i] / divisor[i]
            prefix[i, 0] = prefix[i - 1, 0] + share
            prefix[i, 1] = prefix[i - 1, 1] + share * threshold[i]
            prefix[i, 2] = prefix[i - 1, 2] + weight[i]

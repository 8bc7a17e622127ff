"""The spectrum after adding w u u': eigenvalues by the secular equation, eigenvectors by one matrix product.

In: orthonormal rows V (k, d) with eigenvalues theta, a level for all directions beyond them, one vector u and
its weight. Out: the same of the sum, up to one row longer. O(k^2 + d k^2 / BLAS speed) instead of a dense
eigendecomposition.

Eigenvalues of diag(d) + rho z z' interlace the d_i, so each is found in its own interval by rational interpolation
(Bunch, Nielsen & Sorensen 1978; each root is kept as its distance to the nearer pole). Eigenvectors come from
the z that these roots belong to exactly (Gu & Eisenstat 1994), so they are orthogonal however close two roots
lie.

Importing this module imports numba; the Python twin of a function is its ``py_func``.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["add_rank_one", "clip_step", "diagonal_plus_rank_one"]

_EPS = 2.220446049250313e-16


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})  # one order, vectorized
def _sums(squares, delta, x):  # type: ignore[no-untyped-def]
    """sum of squares / (delta - x), and of squares / (delta - x)^2."""
    total, slope = 0.0, 0.0
    for j in range(len(squares)):
        inverse = 1.0 / (delta[j] - x)
        term = squares[j] * inverse
        total += term
        slope += term * inverse
    return total, slope


@numba.njit(cache=True, error_model="numpy")
def _quadratic_step(constant, near, far, b, g):  # type: ignore[no-untyped-def]
    """The move s with constant + b / (near - s) + g / (far - s) = 0 between the poles near < s < far."""
    # constant (near - s)(far - s) + b (far - s) + g (near - s) = 0
    half = 0.5 * (constant * (near + far) + b + g)
    product = constant * near * far + b * far + g * near
    root = np.sqrt(max(half * half - constant * product, 0.0))
    if half > 0.0:
        return product / (half + root)
    if constant != 0.0:
        return (half - root) / constant
    return product / (2.0 * half) if half != 0.0 else 0.0


@numba.njit(cache=True, error_model="numpy")
def _secular(poles, weights, rho):  # type: ignore[no-untyped-def]
    """Roots of 1 + rho sum w_j^2 / (pole_j - x), one right of each pole, and gaps[i, j] = pole_j - root_i."""
    n = len(poles)
    roots = np.empty(n)
    gaps = np.empty((n, n))
    squares = np.empty(n)
    total = 0.0
    for j in range(n):
        squares[j] = rho * weights[j] * weights[j]
        total += squares[j]
    delta = np.empty(n)
    for i in range(n):
        last = i == n - 1
        origin = i
        low, high = 0.0, total
        if not last:
            half = 0.5 * (poles[i + 1] - poles[i])
            middle = poles[i] + half
            f = 1.0 + _sums(squares, poles, middle)[0]
            high = half
            if f < 0.0:
                origin, low, high = i + 1, -half, 0.0
        for j in range(n):
            delta[j] = poles[j] - poles[origin]
        x = 0.5 * (low + high)
        for _ in range(100):
            left, left_slope = _sums(squares[: i + 1], delta[: i + 1], x)
            right, right_slope = _sums(squares[i + 1 :], delta[i + 1 :], x)
            f = 1.0 + left + right
            if f < 0.0:
                low = x
            else:
                high = x
            if abs(f) <= _EPS * n * (1.0 - left + right) or high - low <= 2.0 * _EPS * abs(x):
                break
            near = delta[i] - x
            b = left_slope * near * near
            constant = 1.0 + left - left_slope * near
            if last:
                step = x + near + b / constant if constant > 0.0 else high
            else:
                far = delta[i + 1] - x
                g = right_slope * far * far
                constant += right - right_slope * far
                step = x + _quadratic_step(constant, near, far, b, g)
            x = step if low < step < high else 0.5 * (low + high)
        roots[i] = poles[origin] + x
        for j in range(n):
            gaps[i, j] = delta[j] - x
    return roots, gaps


@numba.njit(cache=True, error_model="numpy")
def _eigenvectors(poles, weights, gaps):  # type: ignore[no-untyped-def]
    """Rows: unit eigenvectors in coordinates; gaps[i, j] = pole_j - root_i."""
    n = len(poles)
    exact = np.empty(n)
    for j in range(n):
        exact[j] = -gaps[j, j]
    for i in range(n):
        for j in range(i):
            exact[j] *= gaps[i, j] / (poles[j] - poles[i])
        for j in range(i + 1, n):
            exact[j] *= gaps[i, j] / (poles[j] - poles[i])
    for j in range(n):
        exact[j] = np.sqrt(max(exact[j], 0.0))
        if weights[j] < 0.0:
            exact[j] = -exact[j]
    vectors = np.empty((n, n))
    for i in range(n):
        square = 0.0
        for j in range(n):
            entry = exact[j] / gaps[i, j]
            vectors[i, j] = entry
            square += entry * entry
        length = np.sqrt(square)
        for j in range(n):
            vectors[i, j] /= length
    return vectors


@numba.njit(cache=True, error_model="numpy")
def diagonal_plus_rank_one(values, z, weight, rows):  # type: ignore[no-untyped-def]
    """Eigenvalues of diag(values) + weight z z', and its eigenvectors times `rows` (changed in place), unordered."""
    n, width = rows.shape
    scale = np.sqrt(np.dot(z, z))
    rho = abs(weight) * scale * scale
    if n == 0 or rho == 0.0:
        return
    sign = 1.0 if weight > 0.0 else -1.0
    order = _ascending(values, sign)
    d, unit = np.empty(n), np.empty(n)
    largest = rho
    for i in range(n):
        d[i] = sign * values[order[i]]
        unit[i] = z[order[i]] / scale
        largest = max(largest, abs(d[i]))
    active, kept = _deflate(d, unit, order, rows, rho, 4.0 * _EPS * largest)
    poles, weights, chosen = np.empty(kept), np.empty(kept), np.empty((kept, width))
    for i in range(kept):
        poles[i], weights[i] = d[active[i]], unit[active[i]]
        for c in range(width):
            chosen[i, c] = rows[order[active[i]], c]
    roots, gaps = _secular(poles, weights, rho)
    turned = np.dot(_eigenvectors(poles, weights, gaps), chosen)
    for i in range(kept):
        d[active[i]] = roots[i]
        for c in range(width):
            rows[order[active[i]], c] = turned[i, c]
    for i in range(n):
        values[order[i]] = sign * d[i]


@numba.njit(cache=True, error_model="numpy")
def _ascending(values, sign):  # type: ignore[no-untyped-def]
    """Positions of sign * values in ascending order (insertion sort: spectra change little between steps)."""
    n = len(values)
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        position = i if sign > 0.0 else n - 1 - i
        key = sign * values[position]
        j = i - 1
        while j >= 0 and sign * values[order[j]] > key:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = position
    return order


@numba.njit(cache=True, error_model="numpy")
def _deflate(d, unit, order, rows, rho, tolerance):  # type: ignore[no-untyped-def]
    """Positions that the secular equation is about; equal eigenvalues are turned so that u has a part in one."""
    n = len(d)
    active = np.empty(n, dtype=np.int64)
    kept = 0
    for i in range(n):
        if rho * abs(unit[i]) <= tolerance:
            continue  # u has no part in it: stays as it is
        if kept > 0:
            j = active[kept - 1]
            length = np.sqrt(unit[i] * unit[i] + unit[j] * unit[j])
            cosine, sine = unit[i] / length, unit[j] / length
            if abs((d[i] - d[j]) * cosine * sine) <= tolerance:
                unit[i], unit[j] = length, 0.0
                a, b = order[i], order[j]
                for c in range(rows.shape[1]):
                    x, y = rows[a, c], rows[b, c]
                    rows[a, c] = cosine * x + sine * y
                    rows[b, c] = cosine * y - sine * x
                low, high = d[j], d[i]
                d[j] = low * cosine * cosine + high * sine * sine
                d[i] = low * sine * sine + high * cosine * cosine
                kept -= 1
        active[kept] = i
        kept += 1
    return active, kept


@numba.njit(cache=True, error_model="numpy")
def add_rank_one(V, theta, level, u, weight):  # type: ignore[no-untyped-def]
    """Eigenvalues and eigenvector rows of level I + V' diag(theta - level) V + weight u u' on the span of V and u."""
    k, d = V.shape
    coordinates = np.dot(V, u)
    rest = np.dot(coordinates, V)
    for c in range(d):
        rest[c] = u[c] - rest[c]
    more = np.dot(V, rest)  # Gram-Schmidt twice is enough
    again = np.dot(more, V)
    for c in range(d):
        rest[c] -= again[c]
    size = np.sqrt(np.dot(rest, rest))
    n = k + 1 if k < d and size > 1e-13 * np.sqrt(np.dot(u, u)) else k
    rows, values, z = np.empty((n, d)), np.empty(n), np.empty(n)
    for i in range(k):
        values[i] = theta[i]
        z[i] = coordinates[i] + more[i]
        for c in range(d):
            rows[i, c] = V[i, c]
    if n > k:
        values[k], z[k] = level, size
        for c in range(d):
            rows[k, c] = rest[c] / size
    diagonal_plus_rank_one(values, z, weight, rows)
    return values, rows


@numba.njit(cache=True, error_model="numpy")
def _kept(rows, values, shrink, level):  # type: ignore[no-untyped-def]
    """Values less the shrink, and the rows where that is positive; with level > 0 all rows, values clipped at 0."""
    n, width = rows.shape
    count = 0
    for i in range(n):
        if level > 0.0 or values[i] > shrink:
            count += 1
    left = np.empty(count)
    fewer = np.empty((count, width)) if count < n else rows
    count = 0
    for i in range(n):
        if level > 0.0 or values[i] > shrink:
            left[count] = max(values[i] - shrink, 0.0)
            if len(left) < n:
                for c in range(width):
                    fewer[count, c] = rows[i, c]
            count += 1
    return fewer, left


@numba.njit(cache=True, error_model="numpy")
def clip_step(V, theta, level, tau, u, weight, shrink):  # type: ignore[no-untyped-def]
    """One squared Frobenius step: clip at 0 what is due (tau), add weight u u', shrink; rows at 0 are dropped."""
    level = max(level - tau, 0.0)
    V, theta = _kept(V, theta, tau, level)
    values, rows = add_rank_one(V, theta, level, u, weight)
    level = max(level - shrink, 0.0) if len(values) < V.shape[1] else 0.0
    rows, values = _kept(rows, values, shrink, level)
    return rows, values, level

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


@numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz"})  # vector instructions; always the same order
def _sums(squares, delta, x):  # type: ignore[no-untyped-def]
    """sum of squares / (delta - x), and of squares / (delta - x)^2."""
    total, slope = 0.0, 0.0
    for j in range(len(squares)):
        inverse = 1.0 / (delta[j] - x)
        term = squares[j] * inverse
        total += term
        slope += term * inverse
    return total, slope


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def _secular(poles, weights, rho):  # type: ignore[no-untyped-def]
    """Roots of 1 + rho sum w_j^2 / (pole_j - x), one right of each pole, and gaps[i, j] = pole_j - root_i."""
    n = len(poles)
    roots = np.empty(n)
    gaps = np.empty((n, n))
    squares = rho * weights * weights
    total = squares.sum()
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


@numba.njit(cache=True)
def _eigenvectors(poles, weights, gaps, rho):  # type: ignore[no-untyped-def]
    """Rows: unit eigenvectors in coordinates; gaps[i, j] = pole_j - root_i."""
    n = len(poles)
    product = np.empty(n)
    for j in range(n):
        product[j] = -gaps[j, j]
    for i in range(n):
        for j in range(i):
            product[j] *= gaps[i, j] / (poles[j] - poles[i])
        for j in range(i + 1, n):
            product[j] *= gaps[i, j] / (poles[j] - poles[i])
    exact = np.sqrt(np.maximum(product, 0.0))
    for j in range(n):
        if weights[j] < 0.0:
            exact[j] = -exact[j]
    vectors = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            vectors[i, j] = exact[j] / gaps[i, j]
        vectors[i] /= np.sqrt(np.dot(vectors[i], vectors[i]))
    return vectors


@numba.njit(cache=True)
def diagonal_plus_rank_one(values, z, weight, rows):  # type: ignore[no-untyped-def]
    """Eigenvalues of diag(values) + weight z z', and its eigenvectors times `rows` (changed in place), unordered."""
    n = len(values)
    scale = np.sqrt(np.dot(z, z))
    rho = abs(weight) * scale * scale
    if n == 0 or rho == 0.0:
        return values, rows
    sign = 1.0 if weight > 0.0 else -1.0
    order = np.argsort(sign * values)
    d = sign * values[order]
    unit = z[order] / scale
    tolerance = 4.0 * _EPS * max(np.abs(d).max(), rho)
    active = np.empty(n, dtype=np.int64)  # positions in d that the secular equation is about
    kept = 0
    for i in range(n):
        if rho * abs(unit[i]) <= tolerance:
            continue  # u has no part in it: stays as it is
        if kept > 0:
            j = active[kept - 1]
            length = np.hypot(unit[i], unit[j])
            cosine, sine = unit[i] / length, unit[j] / length
            if abs((d[i] - d[j]) * cosine * sine) <= tolerance:
                # two equal eigenvalues: turn their eigenvectors so that u has a part in one of them only
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
    active = active[:kept]
    poles = d[active]
    weights = unit[active]
    roots, gaps = _secular(poles, weights, rho)
    vectors = _eigenvectors(poles, weights, gaps, rho)
    chosen = order[active]
    rows[chosen] = np.dot(vectors, rows[chosen])
    d[active] = roots
    values[order] = sign * d
    return values, rows


@numba.njit(cache=True)
def add_rank_one(V, theta, level, u, weight):  # type: ignore[no-untyped-def]
    """Eigenvalues and eigenvector rows of level I + V' diag(theta - level) V + weight u u' on the span of V and u."""
    k, d = V.shape
    square = np.dot(u, u)
    coordinates = np.dot(V, u)
    rest = u - np.dot(coordinates, V)
    more = np.dot(V, rest)  # Gram-Schmidt twice is enough
    rest = rest - np.dot(more, V)
    coordinates = coordinates + more
    size = np.sqrt(np.dot(rest, rest))
    n = k + 1 if k < d and size > 1e-13 * np.sqrt(square) else k
    rows = np.empty((n, d))
    values = np.empty(n)
    z = np.empty(n)
    rows[:k] = V
    values[:k] = theta
    z[:k] = coordinates
    if n > k:
        rows[k] = rest / size
        values[k] = level
        z[k] = size
    return diagonal_plus_rank_one(values, z, weight, rows)


@numba.njit(cache=True)
def _kept(rows, values, level):  # type: ignore[no-untyped-def]
    """The rows whose value is positive; with level > 0 all of them, values clipped at 0."""
    n = len(values)
    if level > 0.0:
        return rows, np.maximum(values, 0.0)
    count = 0
    for i in range(n):
        if values[i] > 0.0:
            count += 1
    if count == n:
        return rows, values
    fewer, left = np.empty((count, rows.shape[1])), np.empty(count)
    count = 0
    for i in range(n):
        if values[i] > 0.0:
            fewer[count], left[count] = rows[i], values[i]
            count += 1
    return fewer, left


@numba.njit(cache=True)
def clip_step(V, theta, level, tau, u, weight, shrink):  # type: ignore[no-untyped-def]
    """One squared Frobenius step: clip at 0 what is due (tau), add weight u u', shrink; rows at 0 are dropped."""
    level = max(level - tau, 0.0)
    V, theta = _kept(V, theta - tau, level)
    values, rows = add_rank_one(V, theta, level, u, weight)
    level = max(level - shrink, 0.0) if len(values) < V.shape[1] else 0.0
    rows, values = _kept(rows, values - shrink, level)
    return rows, values, level

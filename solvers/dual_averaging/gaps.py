"""A coordinate over a gap: the sum of its weighted dual iterates, in closed form, while no sample touches it.

In: a coordinate's record and the block's tables. Out: ``total``, the sum of a_m z_m up to step i, exact to rounding.

The record of a coordinate is four numbers, ``(sigma, base, c, e)``, half a cache line. Its total at step i is

    base + c P_i + e R_i        c = -sigma, e = rho sign(sigma) while it moves freely; c = e = 0 while it is thresholded

so that reading is two multiplications and no branch. It holds while ``|c| >= |e| T_i``; past that the threshold has
overtaken the coordinate, and its total stays at what it was then. ``e = nan`` says that anything may happen in the gap
(it leaves or meets a bound, a bias drives it through zero): c is then the step of the last touch, counted from the
block's start, base the total there, and the gap is cut where the regime changes. With a constant bias b on the
coordinate its subgradient sum is sigma + b T, which leaves both branches linear in T.
"""

from __future__ import annotations

import numpy as np

from spdsl.solvers.dual_averaging.compiled import inner

__all__ = ["catch_up", "gap_general", "iterate", "mark", "overtaken", "total_at"]


@inner
def iterate(sigma, i, rho, bias, low, high, inverse, threshold, divisor):  # type: ignore[no-untyped-def]
    """The dual iterate z_i: prox of the L1 norm, the ridge (inside the divisor) and the box, exactly."""
    s = sigma + bias * threshold[i]
    excess = abs(s) - rho * threshold[i]
    z = 0.0
    if excess > 0.0:
        z = -np.copysign(excess, s) * inverse / divisor[i]
    return min(max(z, low), high)


@inner
def linear(c0, c1, c2, i, threshold, divisor):  # type: ignore[no-untyped-def]
    return c0 + c1 * threshold[i] + c2 * divisor[i]


@inner
def turning_steps(c1, c2, kind, start, gamma, mu, cuts):  # type: ignore[no-untyped-def]
    """Where c1 T + c2 G stops being monotone, as real step numbers (T, G of dual averaging); how many there are."""
    slope = c1 + c2 * mu  # G = gamma_k + mu T
    if kind == 0:  # T = t^2, G = gamma t + mu t^2 with t = sqrt(k)
        if slope == 0.0 or -c2 * gamma / slope <= 0.0:
            return 0
        cuts[0] = (-0.5 * c2 * gamma / slope) ** 2 - start
        return 1
    # T = (t^4 + t^2)/2, G = gamma t^3 + mu T: the derivative is t (2 slope t^2 + 3 c2 gamma t + slope)
    a, b, c = 2.0 * slope, 3.0 * c2 * gamma, slope
    if a == 0.0:
        return 0
    inside = b * b - 4.0 * a * c
    if inside <= 0.0:
        return 0
    q = -0.5 * (b + np.copysign(np.sqrt(inside), b))
    first, second = q / a, c / q
    n = 0
    if first > 0.0:
        cuts[n] = first * first - start
        n += 1
    if second > 0.0:
        cuts[n] = second * second - start
        n += 1
    return n


@inner
def sign_changes(c0, c1, c2, begin, end, curved, path, n):  # type: ignore[no-untyped-def]
    """Steps in (begin, end] at which c0 + c1 T + c2 G changes sign, appended to the n in `out`; the new count."""
    kind, start, gamma, mu, threshold, divisor, out = path
    cuts = np.empty(4)
    pieces = 1
    edges = np.empty(4, np.int64)
    edges[0] = begin
    if curved:
        found = turning_steps(c1, c2, kind, start, gamma, mu, cuts)
        if found == 2 and cuts[0] > cuts[1]:
            cuts[0], cuts[1] = cuts[1], cuts[0]
        for m in range(found):
            if begin < cuts[m] < end:
                cut = np.int64(np.rint(cuts[m]))
                best, side = linear(c0, c1, c2, cut, threshold, divisor), 1.0
                if linear(c0, c1, c2, edges[pieces - 1], threshold, divisor) > best:
                    side = -1.0
                for other in (cut - 1, cut + 1):  # the true extremum among the neighbours
                    if begin < other < end and side * (linear(c0, c1, c2, other, threshold, divisor) - best) > 0.0:
                        best, cut = linear(c0, c1, c2, other, threshold, divisor), other
                if edges[pieces - 1] < cut < end:
                    edges[pieces] = cut
                    pieces += 1
    edges[pieces] = end
    for m in range(pieces):
        a, b = edges[m], edges[m + 1]
        above = linear(c0, c1, c2, a, threshold, divisor) > 0.0
        if above == (linear(c0, c1, c2, b, threshold, divisor) > 0.0):
            continue
        while b - a > 1:  # monotone here: bisect
            middle = (a + b) // 2
            if (linear(c0, c1, c2, middle, threshold, divisor) > 0.0) == above:
                a = middle
            else:
                b = middle
        out[n] = b
        n += 1
    return n


@inner
def sort_few(steps, n):  # type: ignore[no-untyped-def]
    """Sort the first n by insertion: NumPy's sort takes seconds to compile."""
    for m in range(1, n):
        step = steps[m]
        place = m
        while place > 0 and steps[place - 1] > step:
            steps[place] = steps[place - 1]
            place -= 1
        steps[place] = step


@inner
def gap_general(sigma, tau, i, rho, bias, low, high, inverse, shape, threshold, divisor, prefix):  # type: ignore[no-untyped-def]
    """Sum of a_m z_m for tau < m <= i, whatever happens in between."""
    if i <= tau:
        return 0.0
    kind, start, gamma, mu = np.int64(shape[0]), np.int64(shape[1]), shape[2], shape[3]
    curved = shape[4] > 0.0 and bias != 0.0
    begin, end = tau + 1, i
    first, last = sigma + bias * threshold[begin], sigma + bias * threshold[end]
    free, freed = abs(first) - rho * threshold[begin], abs(last) - rho * threshold[end]
    if free <= 0.0 and freed <= 0.0:  # convex in T: zero all along
        return min(max(0.0, low), high) * (prefix[end, 2] - prefix[tau, 2])
    if free > 0.0 and freed > 0.0 and (first > 0.0) == (last > 0.0) and low <= 0.0 <= high:
        bound = (-low if first > 0.0 else high) / inverse
        if bound == np.inf or (
            (kind == 0 or not curved) and free <= bound * divisor[begin] and freed <= bound * divisor[end]
        ):  # excess - bound G is convex in sqrt(k), or monotone: within the bound all along
            side = 1.0 if first > 0.0 else -1.0
            return -inverse * (
                sigma * (prefix[end, 0] - prefix[tau, 0]) + (bias - side * rho) * (prefix[end, 1] - prefix[tau, 1])
            )
    out = np.empty(16, np.int64)
    n, always = np.int64(0), kind >= 0  # as variables: a literal would have `sign_changes` compiled once more
    if end > begin:
        path = (kind, start, gamma, mu, threshold, divisor, out)
        n = sign_changes(-sigma, -(rho + bias), 0.0, begin, end, not always, path, n)
        n = sign_changes(sigma, bias - rho, 0.0, begin, end, not always, path, n)
        for level in (low, high):  # z positive or negative, against the bound that it may meet
            if np.isfinite(level):
                g = level / inverse
                n = sign_changes(-sigma, -(rho + bias), -g, begin, end, curved, path, n)
                n = sign_changes(-sigma, rho - bias, -g, begin, end, curved, path, n)
        sort_few(out, n)
    total = 0.0
    left = begin
    for m in range(n + 1):
        right = out[m] if m < n else end + 1
        if right <= left:
            continue
        middle = (left + right - 1) // 2
        s = sigma + bias * threshold[middle]
        excess = abs(s) - rho * threshold[middle]
        z = -np.copysign(excess, s) * inverse / divisor[middle] if excess > 0.0 else 0.0
        if z >= high or z <= low or excess <= 0.0:
            total += min(max(z, low), high) * (prefix[right - 1, 2] - prefix[left - 1, 2])
        else:
            side = np.copysign(1.0, s)
            total -= inverse * (
                sigma * (prefix[right - 1, 0] - prefix[left - 1, 0])
                + (bias - side * rho) * (prefix[right - 1, 1] - prefix[left - 1, 1])
            )
        left = right
    return total


@inner
def overtaken(base, c, e, i, threshold, prefix):  # type: ignore[no-untyped-def]
    """The total of a free coordinate whose threshold overtook it before step i."""
    a, b = 0, i  # the first step with |c| < |e| T is in (a, b]
    while b - a > 1:
        middle = (a + b) // 2
        if abs(c) < abs(e) * threshold[middle]:
            b = middle
        else:
            a = middle
    return base + c * prefix[a, 0] + e * prefix[a, 1]


@inner
def total_at(state, j, i, rho, bias, low, high, inverse, shape, threshold, divisor, prefix):  # type: ignore[no-untyped-def]
    """Coordinate j's total at step i."""
    base, c, e = state[j, 1], state[j, 2], state[j, 3]
    if abs(c) >= abs(e) * threshold[i]:
        return base + c * prefix[i, 0] + e * prefix[i, 1]
    if np.isnan(e):
        return base + gap_general(
            state[j, 0], np.int64(c), i, rho, bias, low, high, inverse, shape, threshold, divisor, prefix
        )
    return overtaken(base, c, e, i, threshold, prefix)


@inner
def catch_up(state, j, i, rho, bias, low, high, shape, threshold, divisor, prefix):  # type: ignore[no-untyped-def]
    """`total_at` for a record past its closed form; one overtaken is made so for good, and no later look pays again."""
    total = total_at(state, j, i, rho, bias, low, high, 1.0, shape, threshold, divisor, prefix)
    if not np.isnan(state[j, 3]):
        state[j, 1], state[j, 2], state[j, 3] = total, 0.0, 0.0
    return total


@inner
def mark(state, j, total, i, rho, low, high, inverse, general, threshold, divisor, prefix):  # type: ignore[no-untyped-def]
    """Complete the record of a coordinate whose sigma was set at step i (its next iterate is z_{i+1})."""
    sigma = state[j, 0]
    excess = abs(sigma) - rho * threshold[i + 1]
    bound = high if sigma < 0.0 else -low
    c, e = 0.0, 0.0
    if excess > 0.0 and bound > 0.0:
        c, e = -sigma * inverse, np.copysign(rho * inverse, sigma)
    if general or (excess * inverse > bound * divisor[i + 1] and bound > 0.0):
        state[j, 1], state[j, 2], state[j, 3] = total, np.float64(i), np.nan
    else:
        state[j, 1], state[j, 2], state[j, 3] = total - c * prefix[i, 0] - e * prefix[i, 1], c, e

"""The least norm of g + sum over blocks of G' t over all multipliers t in their sets.

In: a `Subdifferential`. Out: the smallest residual found. Every t that is tried lies exactly in its set, so a residual
near zero proves stationarity whoever proposed the t: bounded least squares, a cone program, projected gradient steps.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse

from spdsl.problem.functions import Array
from spdsl.reference.multipliers import Ball, Block, Box, Congruence, L1Cone, MultiplierSet, Simplex, Subdifferential

__all__ = ["least_residual"]

DENSE = 4_000_000  # entries up to which bounded least squares is solved densely
POLISH = 300  # accelerated projected gradient steps


def least_residual(parts: Subdifferential, good_enough: float) -> Array:
    """The residual vector of least norm that was found.

    `good_enough` is a size (in the largest entry) below which no further search is made.
    """
    if not parts.blocks:
        return parts.residual(parts.gradient)
    best = np.full_like(parts.gradient, np.inf)
    for propose in (_bounded_least_squares, _joint_least_squares, _from_zero, _conic):
        proposal = propose(parts)
        if proposal is None:
            continue
        for improve in (lambda _, t: t, _polished):
            found = parts.residual(parts.gradient + _push(parts, improve(parts, proposal)))
            if np.linalg.norm(found) < np.linalg.norm(best):
                best = found
            if np.max(np.abs(best), initial=0.0) <= good_enough:
                return best
    return best


def _from_zero(parts: Subdifferential) -> list[Array]:
    """The multipliers nearest to zero: a start for polishing."""
    return [block.set.project(np.zeros(block.rows.shape[0])) for block in parts.blocks]


def _push(parts: Subdifferential, multipliers: list[Array]) -> Array:
    total = np.zeros_like(parts.gradient)
    for block, t in zip(parts.blocks, multipliers):
        total += np.asarray(block.columns @ t).ravel()
    return total


def _counting(parts: Subdifferential) -> Any:
    """Coordinates that are free of an interval and not fixed."""
    free = (parts.lower == 0) & (parts.upper == 0)
    if parts.fixed is not None:
        free &= ~parts.fixed
    return free


def _all_boxes(parts: Subdifferential) -> bool:
    return all(isinstance(block.set, Box) for block in parts.blocks) and not parts.symmetric


def _stacked(parts: Subdifferential) -> tuple[Any, Array, Array]:
    rows = scipy.sparse.vstack([scipy.sparse.csr_array(block.rows) for block in parts.blocks], format="csr")
    boxes = [block.set for block in parts.blocks if isinstance(block.set, Box)]
    return rows, np.concatenate([box.lower for box in boxes]), np.concatenate([box.upper for box in boxes])


def _split(parts: Subdifferential, t: Array) -> list[Array]:
    ends = np.cumsum([block.rows.shape[0] for block in parts.blocks])
    return [block.set.project(piece) for block, piece in zip(parts.blocks, np.split(t, ends[:-1]))]


def _solve_bounded(matrix: Any, target: Array, lower: Array, upper: Array) -> Array | None:
    from scipy.optimize import lsq_linear

    open_ = upper > lower
    if not open_.any():
        return lower.copy()
    rest = target - matrix[:, ~open_] @ lower[~open_]
    method: Literal["bvls", "trf"] = "bvls" if open_.sum() <= 400 else "trf"
    found = lsq_linear(matrix[:, open_], rest, (lower[open_], upper[open_]), method=method, tol=1e-15, max_iter=2000)
    t = lower.copy()
    t[open_] = np.clip(found.x, lower[open_], upper[open_])
    return t


def _bounded_least_squares(parts: Subdifferential) -> list[Array] | None:
    """Multipliers from the coordinates without an interval alone: enough when they are determined by these."""
    free = _counting(parts)
    if not _all_boxes(parts) or not free.any():
        return None
    rows, lower, upper = _stacked(parts)
    if rows.shape[0] * int(free.sum()) > DENSE:
        return None
    t = _solve_bounded(rows[:, free].toarray().T, -parts.gradient[free], lower, upper)
    return None if t is None else _split(parts, t)


def _joint_least_squares(parts: Subdifferential) -> list[Array] | None:
    """Multipliers and the choices in the intervals together."""
    if not _all_boxes(parts):
        return None
    counts = np.ones(len(parts.gradient), dtype=bool) if parts.fixed is None else ~parts.fixed
    held = counts & ~((parts.lower == 0) & (parts.upper == 0))
    rows, lower, upper = _stacked(parts)
    m = rows.shape[0]
    if (m + int(held.sum())) * int(counts.sum()) > DENSE:
        return None
    unit = np.eye(len(parts.gradient))[held]
    matrix = np.vstack([rows.toarray(), unit])[:, counts].T
    t = _solve_bounded(
        matrix,
        -parts.gradient[counts],
        np.concatenate([lower, parts.lower[held]]),
        np.concatenate([upper, parts.upper[held]]),
    )
    return None if t is None else _split(parts, t[:m])


def _conic(parts: Subdifferential) -> list[Array] | None:
    """Any sets, as one cone program (cvxpy); what it gives is projected onto the sets."""
    import cvxpy as cp

    if sum(block.rows.shape[0] * block.rows.shape[1] for block in parts.blocks if not _is_written(block)) > DENSE:
        return None
    scale = max(float(np.max(np.abs(parts.gradient), initial=0.0)), 1e-300)
    unknowns = []
    constraints: list[Any] = []
    total: Any = parts.gradient / scale
    for block in parts.blocks:
        m = block.rows.shape[0]
        t = cp.Variable(m)
        unknowns.append(t)
        constraints += _membership(block.set, t, scale)
        total = total + _written(block).T @ t
    held = np.flatnonzero((parts.lower != 0) | (parts.upper != 0))
    if len(held):
        s = cp.Variable(len(held))
        low, high = parts.lower[held] / scale, parts.upper[held] / scale
        constraints += [s[np.isfinite(low)] >= low[np.isfinite(low)], s[np.isfinite(high)] <= high[np.isfinite(high)]]
        place = scipy.sparse.csr_array(
            (np.ones(len(held)), (held, np.arange(len(held)))), (len(parts.gradient), len(held))
        )
        total = total + place @ s
    for where, order in parts.symmetric:
        total = _symmetrized(len(parts.gradient), where, order) @ total
    if parts.fixed is not None:
        total = total[np.flatnonzero(~parts.fixed)]
    problem = cp.Problem(cp.Minimize(cp.norm(total, 2)), constraints)
    from spdsl.reference.solve import solve_tightly

    solve_tightly(problem)
    if any(t.value is None for t in unknowns):
        return None
    return [block.set.project(np.asarray(t.value) * scale) for block, t in zip(parts.blocks, unknowns)]


def _is_written(block: Block) -> bool:
    return not isinstance(block.rows, Congruence)


def _written(block: Block) -> Any:
    return block.rows.matrix() if isinstance(block.rows, Congruence) else scipy.sparse.csr_array(block.rows)


def _symmetrized(p: int, where: slice, order: int) -> Any:
    """The linear map that replaces the entries of a symmetric matrix by their symmetric part."""
    index = np.arange(order * order).reshape(order, order)
    rows = where.start + index.ravel()
    swapped = where.start + index.T.ravel()
    half = scipy.sparse.csr_array((np.full(order * order, 0.5), (rows, swapped)), (p, p))
    diagonal = np.ones(p)
    diagonal[rows] = 0.5
    return scipy.sparse.diags_array(diagonal).tocsr() + half


def _membership(which: MultiplierSet, t: Any, scale: float) -> list[Any]:
    import cvxpy as cp

    if isinstance(which, Box):
        low, high = np.isfinite(which.lower), np.isfinite(which.upper)
        found = [t[np.flatnonzero(low)] >= which.lower[low] / scale] if low.any() else []
        return found + ([t[np.flatnonzero(high)] <= which.upper[high] / scale] if high.any() else [])
    if isinstance(which, Ball):
        return [cp.norm(t, 2) <= which.radius / scale]
    if isinstance(which, Simplex):
        rows = cp.reshape(t, (which.n, which.size), order="C")
        return [t >= 0, cp.sum(rows, axis=1) == 1.0 / scale]
    if isinstance(which, L1Cone):
        s = cp.Variable(nonneg=True)
        fixed, free = np.flatnonzero(which.sign), np.flatnonzero(which.sign == 0)
        found = [t[fixed] == cp.multiply(which.sign[fixed], s)] if len(fixed) else []
        return found + ([cp.abs(t[free]) <= s] if len(free) else [])
    matrix = cp.reshape(t, (which.r, which.r), order="C")
    eye = np.eye(which.r)
    found = [matrix == matrix.T]
    if np.isfinite(which.lower):
        found.append(matrix - which.lower / scale * eye >> 0)
    if np.isfinite(which.upper):
        found.append(which.upper / scale * eye - matrix >> 0)
    return found


def _polished(parts: Subdifferential, start: list[Array]) -> list[Array]:
    """Accelerated projected gradient on half the squared residual, with restarts; keeps the best."""
    size = _largest_singular(parts)
    if size == 0.0:
        return start
    t = previous = best = start
    momentum, least = 1.0, np.inf
    for _ in range(POLISH):
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = [a + (momentum - 1.0) / following * (a - b) for a, b in zip(t, previous)]
        residual = parts.residual(parts.gradient + _push(parts, ahead))
        moved = [
            block.set.project(a - np.asarray(block.rows @ residual).ravel() / size)
            for block, a in zip(parts.blocks, ahead)
        ]
        norm = float(np.linalg.norm(parts.residual(parts.gradient + _push(parts, moved))))
        following = 1.0 if norm > least else following  # restart when the norm rises
        if norm < least:
            if norm >= least * (1 - 1e-12):
                return moved
            least, best = norm, moved
        previous, t, momentum = t, moved, following
    return best


def _largest_singular(parts: Subdifferential) -> float:
    """The largest eigenvalue of G G', by power iteration (slightly enlarged)."""
    rng = np.random.default_rng(0)
    vector = rng.standard_normal(len(parts.gradient))
    value = 0.0
    for _ in range(40):
        norm = float(np.linalg.norm(vector))
        if norm == 0.0:
            return 0.0
        vector = vector / norm
        vector = _push(parts, [np.asarray(block.rows @ vector).ravel() for block in parts.blocks])
        value = float(np.linalg.norm(vector))
    return 1.05 * value

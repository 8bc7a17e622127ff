"""Walls: affine constraints B x + d <= 0 and B x + d = 0 as row blocks whose slopes are infinite on the forbidden side.

In: bound affine constraints. Out: row blocks (equations stacked, consistent and independent), a feasible point next to a
given one, and the coordinates that must stay free for the equations to hold.

A wall's row is smooth with slope 0 inside the feasible set, or held at its kink with a multiplier of one sign; an equation's
row is always held. So walls need nothing of the engine but that a line search ends where it meets one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, SolverError
from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import BoxKernel
from spdsl.solvers.active_set.linear import independent_rows
from spdsl.solvers.active_set.rows import RowBlock
from spdsl.solvers.active_set.weighting import IntArray

__all__ = ["EquationKernel", "WallKernel", "Walls", "columns_to_free", "nearest_feasible"]

_FEASIBLE = 1e-9  # a violation, by rows of norm 1 and relative to their offsets, that is none


class WallKernel(BoxKernel):
    """The indicator of z >= 0, z the distance from the wall; inside, and to rounding, its slope is 0."""

    def piece(self, z: Array) -> Any:
        """Inside: a search never passes a wall, so what is beyond it is rounding."""
        return np.ones(np.shape(z), np.int8)


class EquationKernel(WallKernel):
    """The indicator of z = 0."""

    def slope(self, piece: Any, z: Array) -> Array:
        """-inf on the left, inf on the right."""
        return np.where(np.broadcast_to(piece, z.shape) == 0, -np.inf, np.inf)


@dataclass(frozen=True)
class _Rows:
    B: Array  # (k, p), rows of norm 1
    d: Array


class Walls:
    """Collects affine constraints row by row and makes row blocks of them."""

    def __init__(self, p: int) -> None:
        self.p = p
        self.unequal: list[_Rows] = []
        self.equal: list[_Rows] = []

    def add(self, B: Any, d: Array, relation: str, text: str) -> None:
        """The rows B x + d <= 0, or == 0.

        Raises
        ------
        SolverError
            When a row without variables does not hold.
        """
        B = np.asarray(B.toarray() if hasattr(B, "toarray") else B, float)
        norms = np.linalg.norm(B, axis=1)
        empty = norms == 0.0
        broken = empty & ((np.abs(d) if relation == "==" else d) > 0.0)
        if np.any(broken):
            row = int(np.argmax(broken))
            raise _contradiction(f"row {row} of the constraint `{text}` has no variable in it and does not hold")
        kept = ~empty
        rows = _Rows(B[kept] / norms[kept, None], d[kept] / norms[kept])
        if rows.d.size:
            (self.equal if relation == "==" else self.unequal).append(rows)

    def blocks(self) -> list[RowBlock]:
        """One block for each inequality (z = -(B x + d) >= 0), one for all equations.

        Raises
        ------
        SolverError
            When equations contradict each other.
        """
        blocks = [RowBlock(-rows.B, -rows.d, WallKernel(), ()) for rows in self.unequal]
        if self.equal:
            B = np.vstack([rows.B for rows in self.equal])
            d = np.concatenate([rows.d for rows in self.equal])
            kept = independent_rows(B)
            solution = np.linalg.lstsq(B[kept], -d[kept], rcond=None)[0]
            off = np.abs(B @ solution + d)
            if np.any(off > _FEASIBLE * (1.0 + np.abs(d))):
                raise _contradiction("the equations among the constraints contradict each other")
            blocks.append(RowBlock(B[kept], d[kept], EquationKernel(), ()))
        return blocks


def _contradiction(what: str) -> SolverError:
    return SolverError(Diagnostic("SPL506", f"{what}, so no point is feasible", help=("relax one of the constraints",)))


def columns_to_free(E: Array, free: IntArray, fixed: IntArray) -> IntArray:
    """Fixed columns to set free so that the equations' rows E (m, p) are independent over the free ones."""
    if E.shape[0] == 0:
        return np.zeros(0, np.int64)
    left, sizes, _ = np.linalg.svd(E[:, free], full_matrices=True)
    rank = int((sizes > 1e-11 * max(float(sizes.max(initial=0.0)), 1e-300)).sum()) if sizes.size else 0
    missing = left[:, rank:].T  # combinations of equations that the free columns can't move
    if missing.shape[0] == 0 or fixed.size == 0:
        return np.zeros(0, np.int64)
    return np.asarray(fixed[independent_rows((missing @ E[:, fixed]).T)], np.int64)


def nearest_feasible(x: Array, blocks: list[RowBlock], lower: Array, upper: Array) -> Array:
    """The point nearest to x (p,) within walls, equations and bounds: Lawson and Hanson's least-distance program.

    Raises
    ------
    SolverError
        When there is none.
    """
    from scipy.optimize import nnls

    E = [block for block in blocks if block.is_equation]
    base, span = x, np.eye(x.size)
    if E:
        A = np.vstack([block.A for block in E])
        off = np.concatenate([block.predict(x) for block in E])
        base = x - np.linalg.pinv(A) @ off
        span = np.linalg.svd(A, full_matrices=True)[2][A.shape[0] :].T
    G, h = _inequalities(blocks, lower, upper, x.size)
    if not np.any(G @ base < h - 1e-15):
        return np.asarray(base)
    reduced, rest = G @ span, h - G @ base
    norms = np.linalg.norm(reduced, axis=1)
    if np.any((norms <= 1e-12) & (rest > _FEASIBLE * (1.0 + np.abs(h)))):
        raise _contradiction("the constraints contradict each other")
    live = norms > 1e-12
    reduced, rest = reduced[live] / norms[live, None], rest[live] / norms[live]
    unit = max(float(np.abs(rest).max(initial=0.0)), 1e-300)  # in units of the largest violation
    target = np.zeros(span.shape[1] + 1)
    target[-1] = 1.0
    system = np.vstack([reduced.T, rest[None, :] / unit])
    u, distance = nnls(system, target)
    r = system @ u - target
    if distance <= 1e-9 or r[-1] >= 0.0:
        raise _contradiction("the constraints contradict each other")
    found = base + unit * (span @ (-r[:-1] / r[-1]))
    if np.any(G @ found < h - 1e-7 * (1.0 + np.abs(h))):
        raise _contradiction("the constraints contradict each other, to rounding")
    return np.asarray(found)


def _inequalities(blocks: list[RowBlock], lower: Array, upper: Array, p: int) -> tuple[Array, Array]:
    """All inequalities, bounds among them, as G x >= h."""
    walls = [block for block in blocks if block.is_wall and not block.is_equation]
    low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    identity = np.eye(p)
    G = np.vstack([*(block.A for block in walls), identity[low], -identity[high]])
    h = np.concatenate([*(-block.c for block in walls), lower[low], -upper[high]])
    return G, h

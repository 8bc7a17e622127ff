"""Compiles a `BoundProblem` into a `System`, and says in sentences what it can't take.

In: a problem (structure only, for refusals) or a bound problem. Out: reasons, or the system.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.problem import (
    AffineConstraint,
    BoundProblem,
    LinearTerm,
    Problem,
    ScalarFunction,
    Separable,
)
from spdsl.problem.expressions import text
from spdsl.problem.functions import Array
from spdsl.solvers.active_set.coordinates import BoxKernel, CoordinateBlock, Coordinates
from spdsl.solvers.active_set.rows import RowBlock
from spdsl.solvers.active_set.system import System, dense
from spdsl.solvers.active_set.walls import Walls
from spdsl.solvers.active_set.weighting import FixedWeights, IntArray, SelfPacedWeights

_MANY = 1000  # samples from which on compiled loops are worth their start

__all__ = ["build", "coefficient_refusals", "refusals"]


def refusals(problem: Problem) -> list[str]:
    """Why a problem's parts don't fit a `System`; empty when they do."""
    reasons = [
        f"`{variable.name}` is {variable.kind}, and only scalars, vectors and matrices are taken"
        for variable in problem.variables
        if variable.kind in ("rkhs", "symmetric")
    ]
    if problem.loss is None:
        reasons.append("the model has no loss")
    elif len(problem.loss.predictors) != 1 or problem.loss.function.kernel is None:
        reasons.append("the loss couples several predictors")
    for item in problem.regularizers:
        if isinstance(item, Separable):
            if item.function.kernel is None:
                reasons.append("a regularizer couples several predictors")
        elif not isinstance(item, LinearTerm):
            reasons.append(f"the regularizer {_name(item)} is not a sum over rows")
    reasons.extend(
        f"the constraint `{constraint.text or _name(constraint)}` is not affine"
        for constraint in problem.constraints
        if not isinstance(constraint, AffineConstraint)
    )
    return reasons


def coefficient_refusals(bound: BoundProblem) -> list[str]:
    """Why the data don't fit: negative coefficients make a regularizer concave; systems may be too large to hold."""
    reasons = []
    p = bound.layout.size
    if 8.0 * p * p > _MEMORY:
        reasons.append(f"its systems of {p:,} unknowns would take {8e-9 * p * p:.1f} GB")
    for item in bound.problem.regularizers:
        coefficient = bound.evaluate(item.coefficient)
        if np.ndim(coefficient) or not np.isfinite(coefficient):
            reasons.append(f"the coefficient `{text(item.coefficient)}` is not a finite number")
        elif coefficient < 0 and not isinstance(item, LinearTerm):
            reasons.append(f"the coefficient `{text(item.coefficient)}` of a regularizer is negative ({coefficient:g})")
    return reasons


_MEMORY = 3e9  # bytes, of one matrix of unknowns by unknowns

_WORDS = {
    "Norm": "`norm(...)`",
    "GroupNorm": "`group_norm(...)`",
    "TraceNorm": "`trace_norm(...)`",
    "KernelNorm": "`norm(f)^2`",
    "BallConstraint": "a ball",
    "SemidefiniteConstraint": "semidefinite",
    "SupportConstraint": "a set of supports",
}


def _name(item: object) -> str:
    return _WORDS.get(type(item).__name__, type(item).__name__)


def build(bound: BoundProblem, self_paced: bool = True, compiled: bool | None = None) -> System:
    """The system of a bound problem.

    Parameters
    ----------
    self_paced : bool
        Weigh the samples by v*; otherwise all by 1.
    compiled : bool or None
        Whether passes over the samples use compiled loops; None: when there are enough samples.
    """
    problem = bound.problem
    assert problem.loss is not None
    assert problem.loss.function.kernel is not None
    A, c = bound.design(problem.loss.predictors[0])
    p = bound.layout.size
    A, c = _tall(A, c, bound.n_samples)
    weighting = (
        SelfPacedWeights(bound)
        if self_paced and problem.self_paced is not None
        else FixedWeights(np.ones(bound.n_samples))
    )
    function = problem.loss.function
    loss = RowBlock(A, c, function.kernel, bound.parameters_of(function), 1.0, weighting)  # type: ignore[arg-type]
    if bound.n_samples >= _MANY if compiled is None else compiled:
        loss.compile_loops()
    parts = _Parts(p)
    for item in problem.regularizers:
        if isinstance(item, LinearTerm):
            B, d = bound.design(item.predictor)
            coefficient = float(bound.evaluate(item.coefficient))
            parts.q += coefficient * np.asarray(B.sum(axis=0)).ravel()
            parts.constant += coefficient * float(d.sum())
        else:
            assert isinstance(item, Separable)
            parts.add_separable(bound, item)
    for constraint in problem.constraints:
        assert isinstance(constraint, AffineConstraint)
        parts.add_constraint(bound, constraint)
    size = abs(A).max(axis=0)
    size = np.asarray(size.toarray() if hasattr(size, "toarray") else size, float).ravel()
    scale = loss.scale / np.where(size > 0.0, size, loss.scale)
    coordinates = Coordinates(p, parts.coordinate_blocks, scale)
    walls = parts.walls.blocks()
    blocks = [loss, *walls, *(block for block in map(parts.without_walled, parts.blocks) if block.m)]
    pinned = np.union1d(_dependent_columns(blocks, coordinates, parts.Q), _copies(blocks, coordinates, parts.Q))
    return System(blocks, coordinates, parts.Q, parts.q, pinned, parts.constant)


def _tall(A: Any, c: Array, n: int) -> tuple[Any, Array]:
    """A design of one row stands for all samples when the loss varies by its parameters only."""
    if A.shape[0] == n:
        return A, c
    return np.broadcast_to(dense(A), (n, A.shape[1])).copy(), np.broadcast_to(c, (n,)).copy()


class _Parts:
    """Collects regularizers and bounds: constant quadratics apart, single entries apart, the rest as row blocks."""

    def __init__(self, p: int) -> None:
        self.p = p
        self.blocks: list[RowBlock] = []
        self.coordinate_blocks: list[CoordinateBlock] = []
        self.Q: Array | None = None
        self.q = np.zeros(p)
        self.constant = 0.0
        self.walls = Walls(p)

    def add_separable(self, bound: BoundProblem, item: Separable) -> None:
        coefficient = float(bound.evaluate(item.coefficient))
        if coefficient == 0.0:
            return
        B, d = bound.design(item.predictor)
        theta = bound.parameters_of(item.function)
        assert item.function.kernel is not None
        if item.function.is_quadratic:
            self._add_quadratic(B, d, item.function, theta, coefficient)
            return
        entries = _single_entries(B)
        if entries is None:
            self.blocks.append(RowBlock(B, d, item.function.kernel, theta, coefficient))
            return
        rows, index, a = entries
        if rows.size:
            theta = tuple(t[rows] if np.ndim(t) else t for t in theta)
            factor = np.full(rows.size, coefficient)
            self.coordinate_blocks.append(CoordinateBlock(index, a, d[rows], item.function.kernel, theta, factor))

    def without_walled(self, block: RowBlock) -> RowBlock:
        """The block without rows whose kink lies in a wall: these never bend inside the feasible set, so they are linear there.

        Held twice, as a penalty and as a constraint, such a row would leave its multipliers undetermined.
        """
        if not block.kernel_is_affine or not self.walls.unequal:
            return block
        A = dense(block.A)
        norms = np.linalg.norm(A, axis=1)
        kept = np.ones(block.m, bool)
        for wall in self.walls.unequal:  # B x + d <= 0, rows of norm 1
            along = A @ wall.B.T
            for row, k in np.argwhere(np.abs(np.abs(along) - norms[:, None]) <= 1e-12 * norms[:, None]):
                at = block.c[row] - along[row, k] * wall.d[k]  # the row's value on the wall
                near = np.flatnonzero(np.abs(block.borders[:, row] - at) <= 1e-12 * block.scale)
                if kept[row] and near.size and np.isfinite(block.borders[:, row]).sum() == 1:
                    slopes = block.left if along[row, k] > 0.0 else block.right  # inside, B x falls
                    self.q += block.factor[row] * slopes[near[0], row] * A[row]
                    self.constant += block.factor[row] * slopes[near[0], row] * (block.c[row] - at)
                    kept[row] = False
        if kept.all():
            return block
        theta = tuple(t[kept] if np.ndim(t) else t for t in block.theta)
        return RowBlock(block.A[kept], block.c[kept], block.kernel, theta, block.factor[kept])

    def _add_quadratic(
        self, B: Any, d: Array, function: ScalarFunction, theta: tuple[Any, ...], coefficient: float
    ) -> None:
        kernel = function.kernel
        assert kernel is not None
        zero = np.zeros(d.shape[0])
        with np.errstate(all="ignore"):
            bend = coefficient * np.broadcast_to(kernel.curvature(0, zero, *theta), zero.shape)
            slope = coefficient * np.broadcast_to(kernel.slope(0, zero, *theta), zero.shape)
        if self.Q is None:
            self.Q = np.zeros((self.p, self.p))
        if hasattr(B, "tocsr"):
            import scipy.sparse

            self.Q += np.asarray((B.T @ (scipy.sparse.diags_array(bend) @ B)).toarray())
        else:
            self.Q += B.T @ (bend[:, None] * B)
        self.q += B.T @ (slope + bend * d)

    def add_constraint(self, bound: BoundProblem, constraint: AffineConstraint) -> None:
        """Bounds on single entries are coordinate functions, everything else is a wall."""
        B, d = bound.design(constraint.predictor)
        entries = _single_entries(B)
        if constraint.relation == "==" or entries is None or entries[0].size < d.size:
            self.walls.add(B, d, constraint.relation, constraint.text)
            return
        rows, index, a = entries  # -(a x_j + d) >= 0
        self.coordinate_blocks.append(CoordinateBlock(index, -a, -d[rows], BoxKernel(), (), np.ones(rows.size)))


def _single_entries(B: Any) -> tuple[IntArray, IntArray, Array] | None:
    """(rows, columns, values) when every row of B has at most one entry, else None."""
    import scipy.sparse

    sparse = scipy.sparse.csr_array(B)
    sparse.eliminate_zeros()
    counts = np.diff(sparse.indptr)
    if counts.max(initial=0) > 1:
        return None
    rows = np.flatnonzero(counts)
    return rows, np.asarray(sparse.indices, np.int64), np.asarray(sparse.data, float)


def _dependent_columns(blocks: list[RowBlock], coordinates: Coordinates, Q: Array | None) -> IntArray:
    """Columns that depend on others and that no coordinate function or quadratic bends: these can stay where they are."""
    candidates = np.flatnonzero(~coordinates.touched)
    if Q is not None:
        candidates = candidates[~np.any(Q[candidates] != 0.0, axis=1)]
    if candidates.size == 0:
        return candidates
    from scipy.linalg import qr

    stack = np.vstack([dense(block.A[:, candidates]) for block in blocks])
    norms = np.linalg.norm(stack, axis=0)
    R, pivots = qr(stack / np.where(norms > 0.0, norms, 1.0), mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > 1e-11).sum())
    return np.sort(candidates[pivots[rank:]])


def _copies(blocks: list[RowBlock], coordinates: Coordinates, Q: Array | None) -> IntArray:
    """Columns that repeat an earlier one, with the same convex function of their entry and no quadratic.

    All that counts is the sum of such entries, and the sum of their functions is least when one of them does it all (for
    functions that are linear between kinks at 0, such as alpha |w|); so the others stay at 0.
    """
    if coordinates.table is None or coordinates.position.shape[1] != 1:
        return np.zeros(0, np.int64)
    linear = np.flatnonzero((coordinates.count == 1) & (coordinates.position[:, 0] == 0.0))
    seen: set[bytes] = set()
    found = []
    for j in linear:
        if Q is not None and np.any(Q[j] != 0.0):
            continue
        parts = [dense(block.A[:, [j]]).tobytes() for block in blocks]
        key = b"".join([*parts, coordinates.low[j].tobytes(), coordinates.high[j].tobytes()])
        if key in seen:
            found.append(int(j))
        seen.add(key)
    return np.array(found, np.int64)

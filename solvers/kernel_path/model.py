"""A kernel model in its dual: z = Q mu + B b + c with mu = -(slopes of the weighted losses), and B'mu = 0 for the intercepts.

In: a bound problem of one rkhs variable under its squared norm, a piecewise affine loss and unregularized scalars or vectors
beside it. Out: Q by rows, computed when a sample first has a multiplier; the loss as a `RowBlock`; flat vectors and back.

With R = kappa |f|^2 and rows z_i = s_i f(x_i) + ..., the representer theorem gives alpha_i = s_i mu_i / (2 kappa), so
Q = diag(s) K diag(s) / (2 kappa). Samples that are equal in everything are one sample with a multiplicity: their losses are
equal at every age, and so are their weights.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from spdsl.problem import BoundProblem, KernelNorm, Problem
from spdsl.problem.functions import Array
from spdsl.problem.kernels import gram
from spdsl.solvers.active_set.rows import RowBlock
from spdsl.solvers.active_set.weighting import IntArray, SelfPacedWeights, Weighting

__all__ = ["DualModel", "refusals"]

_MANY = 500  # samples from which on compiled loops are worth their start


def refusals(problem: Problem) -> list[str]:
    """Why a problem has no dual of this kind; empty when it has."""
    reasons = []
    kernels = [item.name for item in problem.variables if item.kind == "rkhs"]
    if len(kernels) != 1:
        reasons.append(f"it takes models of one rkhs variable, and this one has {len(kernels) or 'none'}")
    loss = problem.loss
    if loss is None:
        return [*reasons, "the model has no loss"]
    if len(loss.predictors) != 1 or loss.function.kernel is None:
        reasons.append("the loss couples several predictors")
    elif any(piece.curvature.text != "0" for piece in loss.function.pieces) or loss.function.is_smooth:
        reasons.append("its losses are piecewise affine with kinks (hinge, quantile, epsilon_insensitive, abs)")
    if any((item.kernel or ("",))[0] == "linear" for item in problem.variables):
        reasons.append("a linear kernel has no more features than columns, which `path_following` takes outright")
    if problem.constraints:
        reasons.append("it takes no constraints")
    if not all(isinstance(item, KernelNorm) for item in problem.regularizers) or not problem.regularizers:
        reasons.append("its only regularizer is the squared norm of the rkhs variable")
    if not reasons:
        (name,) = kernels
        points = problem.variable(name).points
        terms = [term for term in loss.predictors[0].terms if term.variable == name]
        if len(terms) != 1 or terms[0].matrix != points:
            reasons.append(f"`{name}` must be evaluated once, at the points that it is expanded at")
    return reasons


class DualModel:
    """See the module's text. n is the number of distinct samples, q that of entries of the other variables.

    Attributes
    ----------
    s, c : arrays (n,)
    B : array (n, q)
    block : RowBlock
        The loss, with multiplicities as factors, weighed by v*.
    """

    def __init__(self, bound: BoundProblem) -> None:
        problem = bound.problem
        self.bound = bound
        assert problem.loss is not None
        assert problem.loss.function.kernel is not None
        (self.name,) = (item.name for item in problem.variables if item.kind == "rkhs")
        predictor = problem.loss.predictors[0]
        total = bound.n_samples
        (term,) = (item for item in predictor.terms if item.variable == self.name)
        scale = 1.0 if term.scale is None else bound.evaluate(term.scale)
        s = np.broadcast_to(np.asarray(scale, float).ravel(), (total,))
        offset = 0.0 if predictor.offset is None else bound.evaluate(predictor.offset)
        c = np.broadcast_to(np.asarray(offset, float).ravel(), (total,))
        self.double = 2.0 * float(sum(bound.evaluate(item.coefficient) for item in problem.regularizers))
        layout = bound.layout
        self.where = layout.slices[self.name]
        outside = np.ones(layout.size, bool)
        outside[self.where] = False
        self.others = np.flatnonzero(outside)
        B = np.zeros((total, layout.size))
        for other in predictor.terms:
            if other is not term:
                block = bound.block(other, total)
                B[:, layout.slices[other.variable]] += block.toarray() if hasattr(block, "toarray") else block
        B = B[:, self.others]
        self.kernel, self.options = bound.kernel_options(self.name)
        self.points = bound.kernel_points(self.name)
        theta = bound.parameters_of(problem.loss.function)
        self.first, self.group, self.count = self._distinct(s, c, B, theta)
        self.n, self.q = self.first.size, B.shape[1]
        self.s, self.c, self.B = s[self.first].copy(), c[self.first].copy(), B[self.first].copy()
        theta = tuple(t[self.first] if np.ndim(t) else t for t in theta)
        weighting: Weighting | None = SelfPacedWeights(bound) if problem.self_paced is not None else None
        self.block = RowBlock(None, self.c, problem.loss.function.kernel, theta, self.count, weighting)
        if self.n >= _MANY:
            self.block.compile_loops()
        self.slot = np.full(self.n, -1)
        self.cached = np.zeros(0, np.int64)
        self._rows = np.zeros((0, self.n))
        steepest = max(float(np.abs(part).max(initial=0.0)) for part in (self.block.left, self.block.right))
        self.force = float(self.count.max(initial=1.0)) * (steepest or 1.0)  # the size of a multiplier

    def _distinct(self, s: Array, c: Array, B: Array, theta: tuple[Any, ...]) -> tuple[IntArray, IntArray, Array]:
        """Of each group of equal samples the first, every sample's group, and the groups' sizes."""
        total = s.shape[0]
        points = self.options["K"] if self.kernel == "precomputed" else self.points
        points = points.toarray() if hasattr(points, "toarray") else np.asarray(points, float)
        columns = [s[:, None], c[:, None], B, *(np.reshape(t, (-1, 1)) for t in theta if np.ndim(t)), points]
        keys = np.ascontiguousarray(np.hstack(columns) + 0.0)
        seen: dict[bytes, int] = {}
        group = np.array([seen.setdefault(keys[i].tobytes(), len(seen)) for i in range(total)], np.int64)
        first = np.full(len(seen), total)
        np.minimum.at(first, group, np.arange(total))
        return first, group, np.bincount(group).astype(float)

    @cached_property
    def straight(self) -> bool:
        """Do forces at one age depend on z affinely, under every labels? (Affine losses, weights affine in the loss.)"""
        weighting = self.block.weighting
        if weighting is None:
            return True
        loss = self.block.scale * np.linspace(0.05, 3.0, 7)
        for age in (0.1 * self.block.scale, self.block.scale, 10.0 * self.block.scale):
            for band in range(weighting.n_bands):
                rate = weighting.evaluate(np.full(loss.size, band), loss, age)[1]
                if not np.all(rate == rate[0]):
                    return False
        return True

    def weighed(self, weighting: Weighting) -> RowBlock:
        """The loss with other weights."""
        other = object.__new__(RowBlock)
        other.__dict__.update(self.block.__dict__)
        other.weighting, other.loops = weighting, None
        return other

    # -- Q -------------------------------------------------------------------------------------------------------------

    def need(self, samples: IntArray) -> None:
        """Compute the kernel rows of samples that have none yet."""
        missing = samples[self.slot[samples] < 0]
        if missing.size == 0:
            return
        start = self.cached.size
        if start + missing.size > self._rows.shape[0]:
            room = min(max(2 * self._rows.shape[0], start + missing.size, 64), self.n)
            grown = np.empty((room, self.n))
            grown[:start] = self._rows[:start]
            self._rows = grown
        chosen = self.first[missing]
        if self.kernel == "precomputed":
            rows = np.asarray(self.options["K"], float)[np.ix_(chosen, self.first)]
        else:
            rows = gram(self.kernel, self.points[chosen], self.points[self.first], self.options)
            if self.kernel == "rbf":
                rows[np.arange(missing.size), missing] = 1.0
        self._rows[start : start + missing.size] = rows
        self.slot[missing] = np.arange(start, start + missing.size)
        self.cached = np.append(self.cached, missing)

    def apply(self, mu: Array) -> Array:
        """Q mu (n,)."""
        used = np.flatnonzero(mu)
        if used.size == 0:
            return np.zeros(self.n)
        self.need(used)
        if self.n >= _MANY:
            from spdsl.solvers.kernel_path.loops import combine

            out = np.empty(self.n)
            combine(self._rows, self.slot[used], self.s[used] * mu[used] / self.double, out)
            return np.asarray(out * self.s)
        m = self.cached.size
        if used.size < 0.25 * m:
            rows = self._rows[self.slot[used]]
            return np.asarray(self.s * ((self.s[used] * mu[used] / self.double) @ rows))
        weights = self.s[self.cached] * mu[self.cached] / self.double
        return np.asarray(self.s * (weights @ self._rows[:m]))

    def part(self, rows: IntArray, columns: IntArray) -> Array:
        """Q between some samples."""
        self.need(rows)
        block = self._rows[self.slot[rows][:, None], columns]
        return np.asarray(block * (self.s[rows][:, None] * self.s[columns] / self.double))

    def diagonal(self, rows: IntArray, slots: IntArray) -> Array:
        """Q_ii of rows whose kernel rows are at `slots`."""
        return np.asarray(self._rows[slots, rows] * self.s[rows] ** 2 / self.double)

    @property
    def memory(self) -> int:
        """Bytes of kernel rows."""
        return int(self._rows.nbytes)

    # -- flat vectors --------------------------------------------------------------------------------------------------

    def outward(self, mu: Array, b: Array) -> Array:
        """The flat vector (p,): expansion coefficients, and b where it lies."""
        x = np.zeros(self.bound.layout.size)
        x[self.where] = (self.s * mu / (self.double * self.count))[self.group]
        x[self.others] = b
        return x

    def inward(self, x: Array) -> tuple[Array, Array]:
        """(mu, b) of a flat vector."""
        alpha = np.bincount(self.group, weights=x[self.where], minlength=self.n)
        return np.asarray(alpha * self.double / self.s), x[self.others].copy()

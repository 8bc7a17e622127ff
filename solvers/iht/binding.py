"""A bound model as the engine takes it: an `Objective` and a `SupportSet`.

In: a `BoundProblem` that `structure` let through, options. Out: the loss's kernels by block, smooth regularizers, the
set. A self-paced model at a fixed age is its latent objective: slopes weighed by v*, values l v* + f(v*).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdsl.problem import BoundProblem, Separable
from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.objective import Objective
from spdsl.solvers.iht.structure import support_constraint
from spdsl.solvers.iht.support_sets import (
    ConnectedSet,
    GroupSet,
    PublishedConnectedSet,
    SparseSet,
    SupportSet,
    SupportUnion,
)

__all__ = ["SmoothRegularizer", "fixed_age", "graph_of", "objective_of", "support_set_of"]

Array = NDArray[np.float64]


def fixed_age(problem: BoundProblem) -> float | None:
    """The age of a self-paced model, None without one."""
    if problem.problem.self_paced is None or problem.problem.age is None:
        return None
    return float(problem.evaluate(problem.problem.age.lower))


def objective_of(problem: BoundProblem) -> Objective:
    """The smooth objective of the model."""
    loss = problem.problem.loss
    place = support_constraint(problem.problem)
    assert loss is not None
    assert loss.function.kernel is not None
    assert place is not None
    design, offset = problem.design(loss.predictors[0])
    design = design.tocsr() if hasattr(design, "tocsr") else np.ascontiguousarray(design, dtype=float)
    kernel = loss.function.kernel
    theta = problem.parameters_of(loss.function)
    age = fixed_age(problem)

    def of(rows: slice) -> tuple[Any, ...]:
        return tuple(value if np.ndim(value) == 0 else value[rows] for value in theta)

    def value(z: Array, rows: slice) -> Array:
        losses = kernel.value(kernel.piece(z, *of(rows)), z, *of(rows))
        if age is None:
            return np.asarray(losses)
        v = problem.weights(losses, age)
        paced = problem.problem.self_paced
        assert paced is not None
        assert paced.kernel is not None
        return np.asarray(v * losses + paced.kernel.regularizer(v, age, *problem.weight_parameters()))

    def weight(z: Array, rows: slice) -> Array | float:
        if age is None:
            return 1.0
        return problem.weights(kernel.value(kernel.piece(z, *of(rows)), z, *of(rows)), age)

    def slope(z: Array, rows: slice) -> Array:
        return np.asarray(weight(z, rows) * kernel.slope(kernel.piece(z, *of(rows)), z, *of(rows)))

    def curvature(z: Array, rows: slice) -> Array:
        return np.asarray(weight(z, rows) * kernel.curvature(kernel.piece(z, *of(rows)), z, *of(rows)))

    regularizers = tuple(
        SmoothRegularizer.of(problem, item) for item in problem.problem.regularizers if isinstance(item, Separable)
    )
    where = problem.layout.slices[place.variable]
    return Objective(design, offset, value, slope, curvature, where, regularizers)


@dataclass(frozen=True, eq=False)
class SmoothRegularizer:
    """coefficient * sum_k psi(B_k x + d_k) with a smooth psi."""

    coefficient: float
    B: Any
    d: Array
    kernel: Any
    theta: tuple[Any, ...]

    @classmethod
    def of(cls, problem: BoundProblem, item: Separable) -> SmoothRegularizer:
        """From the model's regularizer."""
        B, d = problem.design(item.predictor)
        coefficient = float(problem.evaluate(item.coefficient))
        return cls(coefficient, B, d, item.function.kernel, problem.parameters_of(item.function))

    def value(self, x: Array) -> float:
        """The regularizer at x."""
        u = self.B @ x + self.d
        return self.coefficient * float(np.sum(self.kernel.value(self.kernel.piece(u, *self.theta), u, *self.theta)))

    def gradient(self, x: Array) -> Array:
        """Its gradient (D,)."""
        u = self.B @ x + self.d
        return np.asarray(
            self.coefficient * (self.B.T @ self.kernel.slope(self.kernel.piece(u, *self.theta), u, *self.theta))
        )

    def curvature(self, x: Array) -> Array:
        """A diagonal that bounds its Hessian B' diag(psi'') B from above (equal to it where B is diagonal)."""
        u = self.B @ x + self.d
        second = self.coefficient * self.kernel.curvature(self.kernel.piece(u, *self.theta), u, *self.theta)
        size = abs(self.B)
        return np.asarray(size.T @ (second * np.asarray(size.sum(axis=1)).ravel()))


def graph_of(problem: BoundProblem) -> Graph | None:
    """The graph of a `connected` set."""
    place = support_constraint(problem.problem)
    if place is None or place.graph is None:
        return None
    data = problem.data[place.graph]
    origin = problem.origin.get(place.graph, place.graph)
    return Graph.from_edges(data.edges, int(data.n_nodes), data.costs, origin)


def support_set_of(problem: BoundProblem, effort: Any, published: bool) -> SupportSet:
    """The set of supports of the model; raises `UsageError` when it is empty."""
    place = support_constraint(problem.problem)
    assert place is not None
    where = problem.layout.slices[place.variable]
    p = where.stop - where.start
    options = {name: problem.evaluate(value) for name, value in place.options.items()}
    if place.kind == "sparse":
        return SparseSet(p, int(options["size"]))
    if place.kind == "groups":
        given = options["groups"]
        labels = np.asarray(given).ravel() if np.ndim(given) else np.arange(p) // int(given)
        size = options.get("size")
        return GroupSet(labels, int(options["count"]), None if size is None else int(size))
    if place.kind == "union_of":
        return SupportUnion(p, rows_as_supports(options["supports"]), int(options["count"]))
    graph = graph_of(problem)
    assert graph is not None
    size, components = int(options["size"]), int(options.get("components", 1))
    if published:
        return PublishedConnectedSet(graph, size, components)
    budget = options.get("budget")
    return ConnectedSet(graph, size, components, None if budget is None else float(budget), effort)


def rows_as_supports(matrix: Any) -> list[NDArray[np.int64]]:
    """For each row of a dense or CSR matrix the columns in which it is not zero."""
    if hasattr(matrix, "tocsr"):
        rows = matrix.tocsr(copy=True)
        rows.eliminate_zeros()
        return [np.sort(part).astype(np.int64) for part in np.split(rows.indices, rows.indptr[1:-1])]
    return [np.flatnonzero(row) for row in np.asarray(matrix)]

"""`BoundProblem`: a problem with its data; here every back end gets the same layout, design and objective.

In: a `Problem`, arrays (checked by `spdsl.data`), parameter values. Out: the flat vector's layout, the loss
predictor's design
matrix and offset, losses, sample weights, regularizers' values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from spdsl.problem.expressions import Expression, evaluate, scale_rows
from spdsl.problem.functions import Array, ScalarFunction
from spdsl.problem.kernels import gram
from spdsl.problem.predictors import Predictor, Term
from spdsl.problem.problem import Problem
from spdsl.problem.regularizers import (
    GroupNorm,
    KernelNorm,
    LinearTerm,
    Norm,
    Regularizer,
    Separable,
    TraceNorm,
)
from spdsl.problem.scaling import Scaling

__all__ = ["BoundProblem", "LabelMapping", "Layout", "Scaling"]


@dataclass(frozen=True)
class LabelMapping:
    """How two classes were mapped to -1 and +1."""

    negative: Any
    positive: Any


@dataclass(frozen=True)
class Layout:
    """Where each variable lies in the flat vector x: slices and shapes, in the order of declaration (matrices
    row-major)."""

    slices: dict[str, slice]
    shapes: dict[str, tuple[int, ...]]
    size: int

    def unpack(self, x: Array) -> dict[str, Any]:
        """The variables' values: floats for scalars, arrays otherwise."""
        values: dict[str, Any] = {}
        for name, where in self.slices.items():
            part = x[where]
            values[name] = float(part[0]) if self.shapes[name] == () else part.reshape(self.shapes[name])
        return values

    def pack(self, values: Mapping[str, Any]) -> Array:
        """The flat vector of the variables' values."""
        x = np.zeros(self.size)
        for name, where in self.slices.items():
            x[where] = np.asarray(values[name], float).ravel()
        return x


@dataclass(frozen=True)
class BoundProblem:
    """A problem with its data.

    Attributes
    ----------
    problem : Problem
    data : mapping of arrays
        float64 arrays (n,) and (n, d), SciPy CSR arrays, floats for scalars; labels are -1.0/+1.0; graphs as given by
        `spdsl.data` (an object with `n_nodes`, `edges` (E, 2) int, `costs` (E,)).
    parameters : mapping
        Every parameter's value (floats, or arrays where declared so).
    sizes : mapping
        Every size name's value.
    labels : mapping of LabelMapping
        For each data name of type labels.
    feature_names, origin : mapping
        Column names of matrices, and where each came from (for messages and plots).
    scaling : mapping of Scaling
        For each data name that was standardized: what was taken off and divided by.
    notes : tuple of str
        What the binding of data did that a user may want to know (columns left out, parallel edges merged).
    """

    problem: Problem
    data: Mapping[str, Any]
    parameters: Mapping[str, Any]
    sizes: Mapping[str, int]
    labels: Mapping[str, LabelMapping] = field(default_factory=dict)
    feature_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)
    scaling: Mapping[str, Scaling] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def values(self) -> dict[str, Any]:
        """Sizes, data and parameters together, for `evaluate`."""
        return {**self.sizes, **self.data, **self.parameters}

    def evaluate(self, expression: Expression) -> Any:
        """The value of an expression over data, parameters and sizes."""
        return evaluate(expression, self.values)

    def dimension(self, dim: str) -> int:
        """The value of a size name, of a literal size, or of a product of such (``d*k``: a matrix, flattened)."""
        if dim in self.sizes:
            return int(self.sizes[dim])
        first, star, rest = dim.partition("*")
        return self.dimension(first) * self.dimension(rest) if star else int(dim)

    @cached_property
    def layout(self) -> Layout:
        """Where each variable lies in the flat vector."""
        slices: dict[str, slice] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        position = 0
        for variable in self.problem.variables:
            dims = tuple(self.dimension(dim) for dim in variable.dims)
            shape: tuple[int, ...]
            if variable.kind == "scalar":
                shape = ()
            elif variable.kind == "symmetric":
                shape = (dims[0], dims[0])
            elif variable.kind == "rkhs":
                shape = (self.kernel_points(variable.name).shape[0],)
            else:
                shape = dims
            count = int(np.prod(shape)) if shape else 1
            slices[variable.name] = slice(position, position + count)
            shapes[variable.name] = shape
            position += count
        return Layout(slices, shapes, position)

    # -- kernels -----------------------------------------------------------------------------------------------------

    def kernel_points(self, variable: str) -> Any:
        """The points (n, d) at which an rkhs variable is expanded: f = sum_j alpha_j k(x_j, .)."""
        points = self.problem.variable(variable).points
        assert points is not None
        return self.evaluate(points)

    def kernel_options(self, variable: str) -> tuple[str, dict[str, Any]]:
        """The kernel's name and its evaluated arguments."""
        kernel = self.problem.variable(variable).kernel
        assert kernel is not None
        name, arguments = kernel
        return name, {key: self.evaluate(value) for key, value in arguments}

    def gram(self, variable: str, rows: Any = None) -> Array:
        """The kernel matrix of an rkhs variable: (n, n), or (m, n) between other `rows` and its points."""
        name, options = self.kernel_options(variable)
        points = self.kernel_points(variable)
        if rows is None or rows is points:
            cache: dict[str, Array] = self.__dict__.setdefault("_grams", {})
            if variable not in cache:
                cache[variable] = gram(name, points, points, options)
            return cache[variable]
        return gram(name, rows, points, options)

    # -- affine maps -------------------------------------------------------------------------------------------------

    def rows(self, predictor: Predictor) -> int:
        """The number of rows of a predictor."""
        return 1 if predictor.rows == "" else self.dimension(predictor.rows)

    def design(self, predictor: Predictor) -> tuple[Any, Array]:
        """The predictor as ``A @ x + c`` over the flat vector x.

        Returns
        -------
        A : array or CSR array (m, p)
            CSR when its only matrix is sparse, dense otherwise. Cached; don't write into it.
        c : array (m,)
        """
        cache: dict[int, tuple[Any, Array, Predictor]] = self.__dict__.setdefault("_designs", {})
        found = cache.get(id(predictor))
        if found is None:
            found = (*self._build_design(predictor), predictor)
            cache[id(predictor)] = found
        return found[0], found[1]

    def _build_design(self, predictor: Predictor) -> tuple[Any, Array]:
        m = self.rows(predictor)
        blocks: dict[str, Any] = {}
        for term in predictor.terms:
            block = self.block(term, m)
            blocks[term.variable] = block if term.variable not in blocks else blocks[term.variable] + block
        offset = np.zeros(m)
        if predictor.offset is not None:
            value = self.evaluate(predictor.offset)
            offset = (
                np.broadcast_to(np.asarray(value, float).reshape(-1), (m,)).copy()
                if np.size(value) in (1, m)
                else value
            )
        layout = self.layout
        sparse = any(hasattr(block, "tocsr") for block in blocks.values())
        if not sparse:
            if len(blocks) == 1 and layout.size == next(iter(blocks.values())).shape[1]:
                return next(iter(blocks.values())), offset
            A = np.zeros((m, layout.size))
            for name, block in blocks.items():
                A[:, layout.slices[name]] = block
            return A, offset
        import scipy.sparse

        parts = [
            scipy.sparse.csr_array(blocks[v.name])
            if v.name in blocks
            else scipy.sparse.csr_array((m, layout.slices[v.name].stop - layout.slices[v.name].start))
            for v in self.problem.variables
        ]
        return (parts[0] if len(parts) == 1 else scipy.sparse.hstack(parts, format="csr")), offset

    def block(self, term: Term, m: int) -> Any:
        """One term as a matrix (m, size of its variable)."""
        shape = self.layout.shapes[term.variable]
        size = int(np.prod(shape)) if shape else 1
        scale = None if term.scale is None else self.evaluate(term.scale)
        if term.kind == "identity":
            import scipy.sparse

            return scipy.sparse.diags_array(np.broadcast_to(1.0 if scale is None else np.ravel(scale), (size,))).tocsr()
        if term.kind == "ones":
            return np.broadcast_to(np.asarray(1.0 if scale is None else scale, float).reshape(-1, 1), (m, 1)).copy()
        if term.kind == "trace":
            matrix: Any = np.eye(shape[0]).reshape(1, -1)
        else:
            assert term.matrix is not None
            matrix = self.evaluate(term.matrix)
            if term.kind == "kernel":
                matrix = self.gram(term.variable, matrix)
            elif term.kind == "row":
                matrix = np.asarray(matrix, float).reshape(1, -1)
                matrix = matrix if m == 1 else np.broadcast_to(matrix, (m, matrix.shape[1]))
            elif term.kind == "quadratic_form":
                dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
                matrix = np.einsum("ti,tj->tij", dense, dense).reshape(dense.shape[0], -1)
        if scale is None:
            return matrix
        return scale_rows(matrix, np.asarray(scale, float) if np.ndim(scale) else float(scale))

    def predict(self, predictor: Predictor, x: Array) -> Array:
        """The predictor's rows at x (m,); a quadratic form is never expanded to (m, d^2)."""
        if all(term.kind != "quadratic_form" for term in predictor.terms):
            A, c = self.design(predictor)
            return np.asarray(A @ x) + c
        m = self.rows(predictor)
        total = np.zeros(m)
        if predictor.offset is not None:
            total = total + np.asarray(self.evaluate(predictor.offset), float)
        for term in predictor.terms:
            part = x[self.layout.slices[term.variable]]
            if term.kind == "quadratic_form":
                assert term.matrix is not None
                rows = self.evaluate(term.matrix)
                M = part.reshape(self.layout.shapes[term.variable])
                value = (
                    np.asarray((rows @ M) * rows).sum(axis=1)
                    if not hasattr(rows, "multiply")
                    else np.asarray(rows.multiply(rows @ M).sum(axis=1)).ravel()
                )
                scale = 1.0 if term.scale is None else self.evaluate(term.scale)
                total = total + scale * value
            else:
                total = total + np.asarray(self.block(term, m) @ part)
        return total

    # -- the loss ----------------------------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of samples: rows of the loss."""
        loss = self.problem.loss
        if loss is None:
            return 0
        return 1 if loss.rows == "" else self.dimension(loss.rows)

    def parameters_of(self, function: ScalarFunction) -> tuple[Any, ...]:
        """The values of a scalar function's parameters, in order: floats or arrays (n,)."""
        cache: dict[int, tuple[tuple[Any, ...], ScalarFunction]] = self.__dict__.setdefault("_thetas", {})
        found = cache.get(id(function))
        if found is None:
            theta = tuple(
                float(value) if np.ndim(value) == 0 else np.asarray(value, float)
                for value in (self.evaluate(expression) for expression in function.values)
            )
            found = (theta, function)
            cache[id(function)] = found
        return found[0]

    def margins(self, x: Array) -> tuple[Array, ...]:
        """The loss's predictors at x, each (n,)."""
        loss = self.problem.loss
        assert loss is not None
        return tuple(self.predict(predictor, x) for predictor in loss.predictors)

    def losses(self, x: Array) -> Array:
        """l_i(x), one per sample (n,)."""
        loss = self.problem.loss
        assert loss is not None
        return self.function_value(loss.function, self.margins(x))

    def function_value(self, function: ScalarFunction, arguments: tuple[Array, ...]) -> Array:
        """phi at given arguments."""
        theta = self.parameters_of(function)
        kernel = function.kernel
        if kernel is not None:
            z = arguments[0]
            return kernel.value(kernel.piece(z, *theta), z, *theta)
        values = {
            **self.values,
            **dict(zip(function.parameters, theta)),
            **dict(zip(function.arguments, arguments)),
        }
        return np.asarray(evaluate(function.body, values), float)

    # -- self-paced weights ------------------------------------------------------------------------------------------

    def weight_parameters(self) -> tuple[float, ...]:
        """The values of the SP-regularizer's own parameters."""
        self_paced = self.problem.self_paced
        assert self_paced is not None
        return tuple(float(self.evaluate(value)) for value in self_paced.values)

    def weights(self, losses: Array, age: float) -> Array:
        """v*(l, age), (n,)."""
        self_paced = self.problem.self_paced
        assert self_paced is not None
        assert self_paced.kernel is not None
        theta = self.weight_parameters()
        kernel = self_paced.kernel
        return kernel.weight(kernel.piece(losses, age, *theta), losses, age, *theta)

    # -- objectives --------------------------------------------------------------------------------------------------

    def regularization(self, x: Array) -> float:
        """The sum of all regularizers at x."""
        return float(sum(self.regularizer_value(item, x) for item in self.problem.regularizers))

    def group_labels(self, item: GroupNorm, m: int) -> Array:
        """The number of the group of each of the m rows (m,): given one by one, or as the length of consecutive groups."""
        numbers = np.asarray(self.evaluate(item.groups), float).ravel()
        return np.floor(np.arange(m) / int(numbers[0])) if numbers.size == 1 and m > 1 else numbers

    def regularizer_value(self, item: Regularizer, x: Array) -> float:
        """One regularizer, its coefficient included."""
        coefficient = float(self.evaluate(item.coefficient))
        if isinstance(item, Separable):
            return coefficient * float(np.sum(self.function_value(item.function, (self.predict(item.predictor, x),))))
        if isinstance(item, Norm):
            return coefficient * float(np.linalg.norm(self.predict(item.predictor, x)))
        if isinstance(item, GroupNorm):
            u = self.predict(item.predictor, x)
            _, group = np.unique(self.group_labels(item, u.size), return_inverse=True)
            return coefficient * float(np.sqrt(np.bincount(group, weights=u * u)).sum())
        if isinstance(item, TraceNorm):
            M = self.layout.unpack(x)[item.variable]
            return coefficient * float(np.abs(np.linalg.eigvalsh(M)).sum())
        if isinstance(item, KernelNorm):
            alpha = x[self.layout.slices[item.variable]]
            return coefficient * float(alpha @ (self.gram(item.variable) @ alpha))
        assert isinstance(item, LinearTerm)
        return coefficient * float(np.sum(self.predict(item.predictor, x)))

    def objective(self, x: Array, age: float | None = None) -> float:
        """The model's objective at x: with a self-paced term the latent objective, v = v*(l(x), age) put in.

        That is ``sum_j R_j + sum_i [v_i l_i + f(v_i, age)]`` (GAGA, eq. 2) or, without one, ``sum_j R_j + sum_i l_i``.
        """
        total = self.regularization(x)
        if self.problem.loss is None:
            return total
        losses = self.losses(x)
        if self.problem.self_paced is None or age is None:
            return total + float(losses.sum())
        kernel = self.problem.self_paced.kernel
        assert kernel is not None
        v = self.weights(losses, age)
        return total + float(v @ losses) + float(np.sum(kernel.regularizer(v, age, *self.weight_parameters())))

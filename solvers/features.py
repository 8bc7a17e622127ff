"""Kernel models as linear ones: K = L L' by pivoted Cholesky makes every function of an RKHS a vector of r features.

In: a problem with rkhs variables. Out: the same problem over explicit features, which any back end for affine predictors
takes, and the way back of its results. With f = sum_j alpha_j k(x_j, .) and u = L'alpha: f at the points is L u and
|f|^2 = u'u, so nothing is approximated: r is the numerical rank of K, and what the factorization leaves out is rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    BoundProblem,
    Call,
    DataDeclaration,
    KernelNorm,
    Name,
    Number,
    Piece,
    Predictor,
    Problem,
    Regularizer,
    ScalarFunction,
    Separable,
    Term,
    TraceNorm,
    VariableDeclaration,
)
from spdsl.problem.expressions import text
from spdsl.problem.functions import Array, Formula
from spdsl.solution import Branch, CriticalPoint, Path, Solution
from spdsl.solvers.protocol import BackEnd

__all__ = [
    "Features",
    "PivotedFactor",
    "features_of",
    "has_kernels",
    "in_features",
    "pivoted_factor",
    "reasons",
    "resume",
]

_RANK = 1e-14  # of the largest diagonal entry: what is left of the diagonal below this is rounding


def has_kernels(problem: Problem) -> bool:
    """Has the problem rkhs variables?"""
    return any(item.kind == "rkhs" for item in problem.variables)


def reasons(backend: BackEnd[Any], problem: Problem) -> list[str]:
    """Why a back end can't solve a problem, explicit features allowed where it takes them."""
    return backend.refuses(in_features(problem) if backend.explicit_features and has_kernels(problem) else problem)


def resume(backend: BackEnd[Any], path: Path) -> Branch | None:
    """The branch of a loaded path."""
    if not (backend.explicit_features and has_kernels(path.bound.problem)):
        return backend.resume(path.bound, path)
    features = features_of(path.bound)
    inner = replace(path, bound=features.bound, nodes=features.inward(path.nodes))
    branch = backend.resume(features.bound, inner)
    return None if branch is None else _FeatureBranch(features, branch)


# -- the problem -------------------------------------------------------------------------------------------------------


def in_features(problem: Problem) -> Problem:
    """The problem with every rkhs variable f as a vector of features: terms ``f(X)`` are matrix products.

    The matrices are data named after the variable and the rows; `features_of` computes them.
    """
    names = {item.name for item in problem.variables if item.kind == "rkhs"}
    matrices = _matrices(problem)
    change = _Change(names, {key: _matrix_name(*key) for key in matrices})
    loss = problem.loss
    return replace(
        problem,
        data=(
            *problem.data,
            *(
                DataDeclaration(_matrix_name(*key), "matrix", (predictor.rows or "1", _size_name(key[0])))
                for key, (_, predictor) in matrices.items()
            ),
        ),
        variables=tuple(
            VariableDeclaration(item.name, "vector", (_size_name(item.name),)) if item.kind == "rkhs" else item
            for item in problem.variables
        ),
        loss=None if loss is None else replace(loss, predictors=tuple(change.predictor(p) for p in loss.predictors)),
        regularizers=tuple(change.regularizer(item) for item in problem.regularizers),
        constraints=tuple(
            replace(item, predictor=change.predictor(item.predictor))
            if isinstance(item, AffineConstraint | BallConstraint)
            else item
            for item in problem.constraints
        ),
    )


def _size_name(variable: str) -> str:
    return f"features of {variable}"


def _matrix_name(variable: str, rows: str) -> str:
    return f"features of {variable} at {rows}"


def _matrices(problem: Problem) -> dict[tuple[str, str], tuple[Any, Predictor]]:
    """Where rkhs variables are evaluated: (variable, rows in words) -> (the rows' expression, a predictor with it)."""
    predictors = [] if problem.loss is None else list(problem.loss.predictors)
    predictors += [
        item.predictor for item in (*problem.regularizers, *problem.constraints) if hasattr(item, "predictor")
    ]
    found: dict[tuple[str, str], tuple[Any, Predictor]] = {}
    for predictor in predictors:
        for term in predictor.terms:
            if term.kind == "kernel":
                assert term.matrix is not None
                found.setdefault((term.variable, text(term.matrix)), (term.matrix, predictor))
    return found


@dataclass(frozen=True)
class _Change:
    names: set[str]
    matrices: dict[tuple[str, str], str]

    def predictor(self, predictor: Predictor) -> Predictor:
        return replace(predictor, terms=tuple(self.term(term) for term in predictor.terms))

    def term(self, term: Term) -> Term:
        if term.kind != "kernel":
            return term
        assert term.matrix is not None
        name = self.matrices[term.variable, text(term.matrix)]
        return Term(term.variable, "matrix", Name(name), term.scale)

    def regularizer(self, item: Regularizer) -> Regularizer:
        if isinstance(item, KernelNorm):
            entries = Predictor((Term(item.variable, "identity"),), None, _size_name(item.variable))
            return Separable(item.coefficient, _square(), entries)
        return item if isinstance(item, TraceNorm) else replace(item, predictor=self.predictor(item.predictor))


def _square() -> ScalarFunction:
    piece = Piece(None, None, Formula("u^2", "u^2"), Formula("2*u", "2 u"), Formula("2", "2"))
    body = Call("power", (Name("u"), Number(2.0)))
    return ScalarFunction(body, ("u",), (), (), (piece,), (), kernel=_Square())


class _Square:
    """u^2 as a `PieceKernel`."""

    n_pieces = 1
    kinked: tuple[bool, ...] = ()

    def breaks(self, *theta: Any) -> tuple[Any, ...]:
        return ()

    def piece(self, z: Array, *theta: Any) -> np.ndarray[Any, np.dtype[np.int8]]:
        return np.zeros(z.shape, np.int8)

    def value(self, piece: Any, z: Array, *theta: Any) -> Array:
        return z * z

    def slope(self, piece: Any, z: Array, *theta: Any) -> Array:
        return 2.0 * z

    def curvature(self, piece: Any, z: Array, *theta: Any) -> Array:
        return np.full(z.shape, 2.0)

    def compiled(self) -> Any:
        raise NotImplementedError("the square norm of features is a constant quadratic, and is never compiled")


# -- the data ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PivotedFactor:
    """K = L L' to rounding: L (n, r), and the r pivots, on whose rows L is lower triangular."""

    L: Array
    pivots: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def rank(self) -> int:
        """The numerical rank r."""
        return int(self.L.shape[1])

    def coefficients(self, u: Array) -> Array:
        """alpha (n,) with L'alpha = u that is 0 but at the pivots."""
        from scipy.linalg import solve_triangular

        alpha = np.zeros(self.L.shape[0])
        if self.rank:
            alpha[self.pivots] = solve_triangular(self.L[self.pivots], u, lower=True, trans="T")
        return alpha

    def rows(self, gram: Array) -> Array:
        """Features (m, r) of other points from their kernel values (m, n) with the n points."""
        from scipy.linalg import solve_triangular

        if not self.rank:
            return np.zeros((gram.shape[0], 0))
        return np.asarray(solve_triangular(self.L[self.pivots], gram[:, self.pivots].T, lower=True).T)


def pivoted_factor(K: Array) -> PivotedFactor:
    """Cholesky with complete pivoting of a positive semidefinite matrix, O(n r^2) (Higham 1990)."""
    from scipy.linalg import lapack

    n = K.shape[0]
    largest = float(np.max(np.diag(K), initial=0.0))
    if n == 0 or largest <= 0.0:
        return PivotedFactor(np.zeros((n, 0)), np.zeros(0, np.int64))
    factor, pivots, rank, _ = lapack.dpstrf(K, lower=1, tol=_RANK * largest)
    order = pivots.astype(np.int64) - 1
    L = np.zeros((n, rank))
    L[order] = np.tril(factor[:, :rank])
    return PivotedFactor(L, order[:rank])


@dataclass(frozen=True)
class Features:
    """A bound problem over features beside the one that it stands for."""

    outer: BoundProblem
    bound: BoundProblem
    factors: dict[str, PivotedFactor] = field(repr=False)

    def inward(self, x: Array) -> Array:
        """Flat vectors (..., p) of the kernel problem over the features."""
        parts = []
        for name, where in self.outer.layout.slices.items():
            part = x[..., where]
            parts.append(part @ self.factors[name].L if name in self.factors else part)
        return np.concatenate(parts, axis=-1)

    def outward(self, x: Array, age: float | None) -> Array:
        """The flat vector (p,) of the kernel problem: expansion coefficients in the place of features.

        They are those of the representer theorem, alpha = -(sum of the loss's slopes) / (2 coefficient), where the loss is
        smooth and f has no other part in the model than its norm; elsewhere those on the pivots alone.
        """
        parts = []
        for name, where in self.bound.layout.slices.items():
            part = x[where]
            if name in self.factors:
                coefficient, scale = self._representer.get(name, (0.0, np.zeros(0)))
                part = (
                    self._pull(x, age) * scale / (-2.0 * coefficient)
                    if coefficient > 0.0
                    else self.factors[name].coefficients(part)
                )
            parts.append(part)
        return np.concatenate(parts)

    def _pull(self, x: Array, age: float | None) -> Array:
        """v phi' of all samples (n,)."""
        loss = self.bound.problem.loss
        assert loss is not None
        assert loss.function.kernel is not None
        kernel, theta = loss.function.kernel, self.bound.parameters_of(loss.function)
        (z,) = self.bound.margins(x)
        piece = kernel.piece(z, *theta)
        slope = np.asarray(kernel.slope(piece, z, *theta), float)
        if age is None or self.bound.problem.self_paced is None:
            return slope
        return np.asarray(self.bound.weights(kernel.value(piece, z, *theta), age) * slope)

    @cached_property
    def _representer(self) -> dict[str, tuple[float, Array]]:
        """Variables with a representer: the coefficient of their norm and the scale of their rows in the loss."""
        problem, outer = self.outer.problem, self.outer
        loss = problem.loss
        if loss is None or loss.function.kernel is None or not loss.function.is_smooth or problem.constraints:
            return {}
        found = {}
        for name in self.factors:
            terms = [term for term in loss.predictors[0].terms if term.variable == name]
            norms = [item for item in problem.regularizers if isinstance(item, KernelNorm) and item.variable == name]
            others = [
                item for item in problem.regularizers if hasattr(item, "predictor") and name in item.predictor.variables
            ]
            if len(terms) != 1 or not norms or others or terms[0].matrix != problem.variable(name).points:
                continue
            scale = 1.0 if terms[0].scale is None else outer.evaluate(terms[0].scale)
            coefficient = float(sum(outer.evaluate(item.coefficient) for item in norms))
            found[name] = coefficient, np.broadcast_to(np.asarray(scale, float), (outer.n_samples,))
        return found

    # -- results -------------------------------------------------------------------------------------------------------

    def result(self, found: Solution | Path) -> Solution | Path:
        """A result of the problem over features as one of the kernel problem."""
        ranks = {f"rank_{name}": float(factor.rank) for name, factor in self.factors.items()}
        statistics = {**found.statistics, **ranks}
        if isinstance(found, Solution):
            return replace(found, bound=self.outer, x=self.outward(found.x, found.age), statistics=statistics)
        nodes = [self.outward(x, float(age)) for age, x in zip(found.ages, found.nodes)]
        branch = None if found.branch is None else _FeatureBranch(self, found.branch)
        return replace(found, bound=self.outer, nodes=np.array(nodes), branch=branch, statistics=statistics)


class _FeatureBranch:
    """The branch of a path over features, in expansion coefficients."""

    def __init__(self, features: Features, inner: Branch) -> None:
        self.features = features
        self.inner = inner

    def at(self, age: float) -> tuple[Array, float]:
        """The flat vector and its KKT residual."""
        x, residual = self.inner.at(age)
        return self.features.outward(x, age), residual

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """Those of the path over features."""
        return self.inner.critical_points()


def features_of(bound: BoundProblem) -> Features:
    """The bound problem over features."""
    factors = {
        item.name: pivoted_factor(bound.gram(item.name)) for item in bound.problem.variables if item.kind == "rkhs"
    }
    data = dict(bound.data)
    for (name, rows), (expression, _) in _matrices(bound.problem).items():
        if expression == bound.problem.variable(name).points:
            data[_matrix_name(name, rows)] = factors[name].L
        else:
            data[_matrix_name(name, rows)] = factors[name].rows(bound.gram(name, bound.evaluate(expression)))
    sizes = {**bound.sizes, **{_size_name(name): factor.rank for name, factor in factors.items()}}
    return Features(bound, replace(bound, problem=in_features(bound.problem), data=data, sizes=sizes), factors)

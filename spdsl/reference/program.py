"""`to_cvxpy`, `optimum`: the w-problem at fixed sample weights by cvxpy, every part translated, none approximated.

In: a `BoundProblem`, sample weights v. Out: a `cvxpy.Problem` and an expression for each variable. An rkhs variable is
solved for in an orthonormal basis of its span (K = B B'), which keeps nearly singular kernel matrices harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    BoundProblem,
    Constraint,
    GroupNorm,
    KernelNorm,
    LinearTerm,
    Norm,
    Predictor,
    Regularizer,
    SemidefiniteConstraint,
    Separable,
    SupportConstraint,
    Term,
    TraceNorm,
)
from spdsl.problem.functions import Array
from spdsl.reference.affine import term_matrix, term_scale
from spdsl.reference.atoms import TranslationError, translate
from spdsl.reference.solve import Outcome, solve_tightly

__all__ = ["optimum", "to_cvxpy"]

RANK = 1e-13  # eigenvalues of a kernel matrix below this share of the largest span nothing


def optimum(
    bound: BoundProblem, weights: Array | None = None, support: Any = None, solver: str | None = None
) -> tuple[Outcome, Array | None]:
    """cvxpy's optimum of the w-problem; arguments as of `to_cvxpy`, and the solver to use (see `solve_tightly`).

    Returns
    -------
    outcome : Outcome
    x : array (p,) or None
        In the flat vector's order; NaN where nothing says what a variable is, None when there is no optimum.

    Raises
    ------
    TranslationError
        As `to_cvxpy`.
    """
    problem, variables = to_cvxpy(bound, weights, support)
    outcome = solve_tightly(problem, solver)
    if not outcome.found:
        return outcome, None
    return outcome, bound.layout.pack({name: expression.value for name, expression in variables.items()})


def to_cvxpy(bound: BoundProblem, weights: Array | None = None, support: Any = None) -> tuple[Any, dict[str, Any]]:
    """The w-problem ``min sum_i v_i l_i(w) + sum_j R_j(w)`` subject to the constraints, for cvxpy.

    Parameters
    ----------
    bound : BoundProblem
    weights : array (n,), optional
        Sample weights v in [0, 1]; ones unless given.
    support : boolean array over the flat vector, optional
        Entries that may be non-zero: with a support constraint, the restricted problem on a given support.

    Returns
    -------
    problem : cvxpy.Problem
    variables : dict
        A cvxpy expression for each variable of the model; after solving, `.value` is in the model's own coordinates
        (for an rkhs variable its coefficients).

    Raises
    ------
    TranslationError
        For a part that cvxpy can't express, or a support constraint without a given support.
    """
    import cvxpy as cp

    work = _Work(bound)
    work.make_variables()
    total: Any = 0.0
    loss = bound.problem.loss
    if loss is not None:
        losses = translate(
            loss.function, [work.affine(item) for item in loss.predictors], bound.parameters_of(loss.function)
        )
        v = np.ones(bound.n_samples) if weights is None else np.asarray(weights, float)
        chosen = np.flatnonzero(v)  # samples that are out add nothing but work
        total = total + (cp.sum(cp.multiply(v[chosen], losses[chosen])) if len(chosen) else 0.0)
    for item in bound.problem.regularizers:
        total = total + work.regularizer(item)
    constraints = [row for item in bound.problem.constraints for row in work.constraint(item, support)]
    problem = cp.Problem(cp.Minimize(total), constraints)
    if not problem.is_dcp():
        raise TranslationError("cvxpy's rules (DCP) don't show that this problem is convex")
    return problem, work.variables


@dataclass
class _Work:
    """Translates with one set of cvxpy variables."""

    bound: BoundProblem
    variables: dict[str, Any] = field(default_factory=dict)
    bases: dict[str, tuple[Any, Array]] = field(default_factory=dict)  # rkhs: coordinates beta, V w^(-1/2)

    def make_variables(self) -> None:
        import cvxpy as cp

        for item in self.bound.problem.variables:
            shape = self.bound.layout.shapes[item.name]
            if item.kind == "symmetric":
                self.variables[item.name] = cp.Variable(shape, symmetric=True, name=item.name)
            elif item.kind == "rkhs":
                values, vectors = np.linalg.eigh(self.bound.gram(item.name))
                kept = values > RANK * max(float(values[-1]), 0.0)
                beta = cp.Variable(int(kept.sum()), name=item.name)
                spread = vectors[:, kept] / np.sqrt(values[kept])
                self.bases[item.name] = beta, spread
                self.variables[item.name] = spread @ beta
            else:
                self.variables[item.name] = cp.Variable(shape, name=item.name)

    # -- affine maps -------------------------------------------------------------------------------------------------

    def affine(self, predictor: Predictor) -> Any:
        """The predictor's rows (m,)."""
        import cvxpy as cp

        m = self.bound.rows(predictor)
        total: Any = cp.Constant(np.zeros(m))
        if predictor.offset is not None:
            offset = np.ravel(np.asarray(self.bound.evaluate(predictor.offset), float))
            total = cp.Constant(np.broadcast_to(offset, (m,)))
        for term in predictor.terms:
            total = total + cp.multiply(term_scale(self.bound, term, m), self.term(term, m))
        return total

    def term(self, term: Term, m: int) -> Any:
        import cvxpy as cp

        variable = self.variables[term.variable]
        if term.kind == "identity":
            return cp.vec(variable, order="C")
        if term.kind == "ones":
            return variable * np.ones(m)
        if term.kind == "trace":
            return cp.trace(variable) * np.ones(m)
        matrix = term_matrix(self.bound, term, m)
        if term.kind == "kernel":
            beta, spread = self.bases[term.variable]
            return (matrix @ spread) @ beta
        if term.kind == "quadratic_form":
            rows = matrix.toarray() if hasattr(matrix, "toarray") else matrix
            return cp.sum(cp.multiply(rows @ variable, rows), axis=1)
        return matrix @ variable

    # -- regularizers ------------------------------------------------------------------------------------------------

    def regularizer(self, item: Regularizer) -> Any:
        import cvxpy as cp

        coefficient = float(self.bound.evaluate(item.coefficient))
        if isinstance(item, Separable):
            theta = self.bound.parameters_of(item.function)
            return coefficient * cp.sum(translate(item.function, [self.affine(item.predictor)], theta))
        if isinstance(item, Norm):
            return coefficient * cp.norm(self.affine(item.predictor), 2)
        if isinstance(item, GroupNorm):
            u = self.affine(item.predictor)
            groups = self.bound.group_labels(item, int(u.size))
            return coefficient * sum(cp.norm(u[np.flatnonzero(groups == group)], 2) for group in np.unique(groups))
        if isinstance(item, TraceNorm):
            return coefficient * self.trace_norm(item.variable)
        if isinstance(item, KernelNorm):
            return coefficient * cp.sum_squares(self.bases[item.variable][0])
        assert isinstance(item, LinearTerm)
        return coefficient * cp.sum(self.affine(item.predictor))

    def trace_norm(self, name: str) -> Any:
        """The trace where the matrix is positive semidefinite, the nuclear norm elsewhere."""
        import cvxpy as cp

        cones = {item.variable for item in self.bound.problem.constraints if isinstance(item, SemidefiniteConstraint)}
        return cp.trace(self.variables[name]) if name in cones else cp.normNuc(self.variables[name])

    # -- constraints -------------------------------------------------------------------------------------------------

    def constraint(self, item: Constraint, support: Any) -> list[Any]:
        import cvxpy as cp

        if isinstance(item, AffineConstraint):
            u = self.affine(item.predictor)
            return [u <= 0] if item.relation == "<=" else [u == 0]
        if isinstance(item, BallConstraint):
            norm: Any = {"l1": 1, "l2": 2, "linf": "inf"}[item.norm]
            return [cp.norm(self.affine(item.predictor), norm) <= float(self.bound.evaluate(item.radius))]
        if isinstance(item, SemidefiniteConstraint):
            return [self.variables[item.variable] >> 0]
        assert isinstance(item, SupportConstraint)
        if support is None:
            raise TranslationError(
                f"the support of `{item.variable}` is constrained to a set that isn't convex; cvxpy can solve the "
                "problem on a given support only"
            )
        outside = np.flatnonzero(~np.asarray(support)[self.bound.layout.slices[item.variable]])
        return [self.variables[item.variable][outside] == 0] if len(outside) else []

"""What COMID needs of a model: one metric (or one vector), one loss of one affine predictor, known regularizers
and sets.

In: a `Problem`. Out: reasons, as sentences, why COMID can't take it; empty when it can.
"""

from __future__ import annotations

from collections.abc import Sequence

from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    LinearTerm,
    Norm,
    Predictor,
    Problem,
    Regularizer,
    SemidefiniteConstraint,
    Separable,
    TraceNorm,
)

__all__ = ["is_absolute", "is_metric", "metric_reasons", "vector_reasons"]


def is_metric(problem: Problem) -> bool:
    """Is a symmetric matrix among the variables?"""
    return any(variable.kind == "symmetric" for variable in problem.variables)


def metric_reasons(problem: Problem) -> list[str]:
    """Why it can't learn this model's metric."""
    reasons = _shared_reasons(problem)
    matrices = [variable.name for variable in problem.variables if variable.kind == "symmetric"]
    scalars = [variable.name for variable in problem.variables if variable.kind == "scalar"]
    others = [v.name for v in problem.variables if v.kind not in ("symmetric", "scalar")]
    if len(matrices) != 1 or others or len(scalars) > 1:
        named = ", ".join(f"`{variable.name}`" for variable in problem.variables)
        return [*reasons, f"it solves for one symmetric matrix and at most one scalar; this model has {named}"]
    M = matrices[0]
    if problem.loss is not None and len(problem.loss.predictors) == 1:
        kinds = sorted(term.kind for term in problem.loss.predictors[0].terms)
        if kinds not in (["quadratic_form"], ["ones", "quadratic_form"]):
            reasons.append(
                f"its loss must be of `mahalanobis({M}, ...)` and at most a scalar, as in mu - mahalanobis({M}, U - V)"
            )
    reasons += [
        f"its metric part takes trace_norm, norm1, sum_squares or norm of `{M}` as regularizers, nothing else"
        for item in problem.regularizers
        if not _is_metric_regularizer(item, M)
    ][:1]
    if not any(isinstance(item, SemidefiniteConstraint) and item.variable == M for item in problem.constraints):
        reasons.append(f"it keeps a metric positive semidefinite: add `{M} >> 0` under `subject to`")
    for constraint in problem.constraints:
        if isinstance(constraint, SemidefiniteConstraint):
            continue
        bound = isinstance(constraint, AffineConstraint) and _is_scalar_bound(constraint, tuple(scalars))
        if not bound:
            reasons.append(f"besides `{M} >> 0` it takes bounds on the scalar only, not `{_text(constraint)}`")
    return reasons


def vector_reasons(problem: Problem) -> list[str]:
    """Why it can't solve for this model's vector."""
    reasons = _shared_reasons(problem)
    vectors = [variable.name for variable in problem.variables if variable.kind == "vector"]
    others = [v.name for v in problem.variables if v.kind not in ("vector", "scalar")]
    if len(vectors) != 1 or others:
        named = ", ".join(f"`{variable.name}`" for variable in problem.variables)
        return [*reasons, f"it solves for one vector (and scalars) or one symmetric matrix; this model has {named}"]
    w = vectors[0]
    scalars = tuple(variable.name for variable in problem.variables if variable.kind == "scalar")
    reasons += [
        f"its vector part takes norm1 or sum_squares of `{w}` itself as regularizers, nothing else"
        for item in problem.regularizers
        if not (isinstance(item, Separable) and item.predictor.is_variable(w) and _is_plain(item))
    ][:1]
    shapes = [constraint for constraint in problem.constraints if not _is_about_scalars(constraint, scalars)]
    if not _is_known_set(shapes, w):
        texts = ", ".join(f"`{_text(constraint)}`" for constraint in shapes)
        reasons.append(
            f"it takes w >= 0, a box, a simplex (w >= 0 and sum(w) == r) or one ball as the set, not {texts}"
        )
    reasons += [
        f"it takes bounds on scalars only, not `{_text(constraint)}`"
        for constraint in problem.constraints
        if _is_about_scalars(constraint, scalars)
        and not (isinstance(constraint, AffineConstraint) and _is_scalar_bound(constraint, scalars))
    ]
    return reasons


def is_absolute(item: Separable) -> bool:
    """Is its scalar function a multiple of |u|?"""
    pieces, kinks = item.function.pieces, item.function.kinks
    return (
        len(pieces) == 2
        and all(piece.curvature.text == "0" for piece in pieces)
        and len(kinks) == 1
        and kinks[0].at.text in ("0", "0.0", "-0")
    )


def _shared_reasons(problem: Problem) -> list[str]:
    reasons: list[str] = []
    if problem.loss is None:
        return ["it needs a loss, one value a sample"]
    if problem.self_paced is not None and (problem.age is None or problem.age.kind != "fixed"):
        reasons.append(
            "it gives one solution, not a path: with `self_paced` the age must be fixed, as in `age lambda = 2`"
        )
    if len(problem.loss.predictors) != 1 or problem.loss.function.kernel is None:
        reasons.append("its loss must be of one affine predictor; this one is of several")
    return reasons


def _is_plain(item: Separable) -> bool:
    return len(item.function.arguments) == 1 and (is_absolute(item) or item.function.is_quadratic)


def _is_metric_regularizer(item: Regularizer, M: str) -> bool:
    if isinstance(item, TraceNorm):
        return item.variable == M
    if isinstance(item, Separable):
        return item.predictor.is_variable(M) and _is_plain(item)
    if isinstance(item, Norm):
        return item.predictor.is_variable(M)
    return isinstance(item, LinearTerm) and all(term.kind == "trace" for term in item.predictor.terms)


def _is_about_scalars(constraint: object, scalars: tuple[str, ...]) -> bool:
    predictor = getattr(constraint, "predictor", None)
    return isinstance(predictor, Predictor) and set(predictor.variables) <= set(scalars)


def _is_scalar_bound(constraint: AffineConstraint, scalars: tuple[str, ...]) -> bool:
    terms = constraint.predictor.terms
    return (
        constraint.relation == "<="
        and len(terms) == 1
        and terms[0].kind in ("ones", "identity")
        and terms[0].variable in scalars
    )


def _is_known_set(constraints: Sequence[object], w: str) -> bool:
    balls = [item for item in constraints if isinstance(item, BallConstraint) and item.predictor.is_variable(w)]
    affine = [item for item in constraints if isinstance(item, AffineConstraint) and item.predictor.variables == (w,)]
    if len(balls) + len(affine) != len(constraints) or any(len(item.predictor.terms) != 1 for item in affine):
        return False
    if balls:
        return len(balls) == 1 and not affine
    sums = [item for item in affine if item.relation == "=="]
    bounds = [item for item in affine if item.relation == "<=" and item.predictor.terms[0].kind == "identity"]
    if len(sums) + len(bounds) != len(affine):
        return False
    return not sums or (len(sums) == 1 and sums[0].predictor.terms[0].kind == "row" and len(bounds) == 1)


def _text(constraint: object) -> str:
    return str(getattr(constraint, "text", "") or type(constraint).__name__)

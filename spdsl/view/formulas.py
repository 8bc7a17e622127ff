"""The parts of a problem as formulas: predictors, regularizers, constraints, the objective.

In: a `Problem`. Out: `Formula`s in the language's spelling and in LaTeX.
"""

from __future__ import annotations

from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    Call,
    Constraint,
    GroupNorm,
    KernelNorm,
    LinearTerm,
    Norm,
    Number,
    Predictor,
    Problem,
    Regularizer,
    SemidefiniteConstraint,
    Separable,
    SupportConstraint,
    Term,
    TraceNorm,
)
from spdsl.problem.expressions import Expression, text
from spdsl.problem.functions import Formula, ScalarFunction
from spdsl.view.mathematics import expression_latex, name_latex

__all__ = ["age_formula", "constraint_formula", "expression", "function_at", "predictor", "regularizer"]

INDEXED = {"matrix": "x_i^{\\top}", "kernel": "x_i"}


def expression(node: Expression) -> Formula:
    """An expression over data, parameters and sizes."""
    return Formula(text(node), expression_latex(node))


def predictor(item: Predictor) -> Formula:
    """An affine map of the variables."""
    written, latex = "", ""
    for term in item.terms:
        part = _term(term)
        written, latex = _added(written, part.text), _added(latex, part.latex)
    if item.offset is not None:
        offset = expression(item.offset)
        written, latex = _added(written, offset.text), _added(latex, offset.latex)
    return Formula(written or "0", latex or "0")


def _added(sum_: str, part: str) -> str:
    if not sum_:
        return part
    bare = part.lstrip()
    return f"{sum_} - {bare[1:].lstrip()}" if bare.startswith("-") else f"{sum_} + {part}"


def _term(term: Term) -> Formula:
    variable = term.variable
    name = name_latex(variable)
    matrix = expression(term.matrix) if term.matrix is not None else Formula("", "")
    if term.kind in ("matrix", "row"):
        base = Formula(f"{_boxed(matrix.text)} @ {variable}", rf"{_boxed_latex(matrix)} \, {name}")
    elif term.kind == "kernel":
        base = Formula(f"{variable}({matrix.text})", rf"{name}\left({matrix.latex}\right)")
    elif term.kind == "quadratic_form":
        base = Formula(f"mahalanobis({variable}, {matrix.text})", rf"d_i^{{\top}} {name} \, d_i")
    elif term.kind == "trace":
        base = Formula(f"trace({variable})", rf"\operatorname{{tr}}\left({name}\right)")
    else:
        base = Formula(variable, name)
    if term.scale is None:
        return base
    if term.scale == Number(-1.0):
        return Formula(f"-{base.text}", f"- {base.latex}")
    scale = expression(term.scale)
    if isinstance(term.scale, Call) and term.scale.function == "negative":
        positive = expression(term.scale.arguments[0])
        product = rf"{_boxed_latex(positive)} \, {_boxed_latex(base)}"
        return Formula(f"-{_boxed(positive.text)}*{base.text}", f"- {product}")
    return Formula(f"{_boxed(scale.text)}*{_boxed(base.text)}", rf"{_boxed_latex(scale)} \, {_boxed_latex(base)}")


def _boxed(part: str) -> str:
    return f"({part})" if " + " in part or " - " in part or (part.startswith("-") and len(part) > 1) else part


def _boxed_latex(part: Formula) -> str:
    return rf"\left({part.latex}\right)" if _boxed(part.text) != part.text else part.latex


def function_at(function: ScalarFunction, name: str) -> Formula:
    """A scalar function as a formula in its arguments."""
    body = expression(function.body)
    arguments = ", ".join(function.arguments)
    return Formula(f"{name}({arguments}) = {body.text}", rf"{name_latex(name)}({arguments}) = {body.latex}")


def regularizer(item: Regularizer) -> Formula:
    """A regularizer with its coefficient."""
    coefficient = expression(item.coefficient)
    value = _regularizer_value(item)
    if item.coefficient == Number(1.0):
        return value
    return Formula(f"{_boxed(coefficient.text)}*{value.text}", rf"{_boxed_latex(coefficient)} \, {value.latex}")


def _regularizer_value(item: Regularizer) -> Formula:
    if isinstance(item, TraceNorm):
        return Formula(f"trace_norm({item.variable})", rf"\left\|{name_latex(item.variable)}\right\|_{{*}}")
    if isinstance(item, KernelNorm):
        name = name_latex(item.variable)
        return Formula(f"norm({item.variable})^2", rf"\left\|{name}\right\|_{{\mathcal{{H}}}}^{{2}}")
    inside = predictor(item.predictor)
    if isinstance(item, Norm):
        return Formula(f"norm2({inside.text})", rf"\left\|{inside.latex}\right\|_{{2}}")
    if isinstance(item, GroupNorm):
        groups = text(item.groups)
        return Formula(
            f"group_norm({inside.text}, {groups})",
            rf"\sum_{{g}} \left\|\left({inside.latex}\right)_{{g}}\right\|_{{2}}",
        )
    if isinstance(item, LinearTerm):
        return Formula(f"sum({inside.text})", rf"\mathbf{{1}}^{{\top}} \left({inside.latex}\right)")
    return _separable(item, inside)


def _separable(item: Separable, inside: Formula) -> Formula:
    body = expression(item.function.body)
    argument = item.function.arguments[0]
    plain = body.text.replace(" ", "")
    if plain == f"abs({argument})":
        return Formula(f"norm1({inside.text})", rf"\left\|{inside.latex}\right\|_{{1}}")
    if plain in (f"{argument}^2", f"square({argument})"):
        return Formula(f"sum_squares({inside.text})", rf"\left\|{inside.latex}\right\|_{{2}}^{{2}}")
    return Formula(
        f"sum({body.text}) over {argument} = {inside.text}",
        rf"\sum_{{k}} \psi\left(\left({inside.latex}\right)_{{k}}\right), \quad \psi({argument}) = {body.latex}",
    )


def constraint_formula(item: Constraint) -> Formula:
    """A constraint, as the model wrote it where that is known."""
    if isinstance(item, SemidefiniteConstraint):
        return Formula(item.text or f"{item.variable} >> 0", rf"{name_latex(item.variable)} \succeq 0")
    if isinstance(item, AffineConstraint):
        left = predictor(item.predictor)
        relation, sign = item.relation, r"\leq" if item.relation == "<=" else "="
        return Formula(item.text or f"{left.text} {relation} 0", rf"{left.latex} {sign} 0")
    if isinstance(item, BallConstraint):
        inside, radius = predictor(item.predictor), expression(item.radius)
        index = {"l1": "1", "l2": "2", "linf": r"\infty"}[item.norm]
        written = item.text or f"{item.norm} norm of {inside.text} <= {radius.text}"
        return Formula(written, rf"\left\|{inside.latex}\right\|_{{{index}}} \leq {radius.latex}")
    assert isinstance(item, SupportConstraint)
    options = ", ".join(f"{name} = {text(value)}" for name, value in item.options.items())
    inner = ", ".join(part for part in (item.graph or "", options) if part)
    written = item.text or f"support({item.variable}) in {item.kind}({inner})"
    return Formula(written, rf"\operatorname{{supp}}({name_latex(item.variable)}) \in \mathcal{{M}}")


def age_formula(problem: Problem) -> Formula:
    """The age statement."""
    age = problem.age
    assert age is not None
    name = name_latex(age.name)
    lower = expression(age.lower)
    if age.kind == "fixed" or age.upper is None:
        return Formula(f"{age.name} = {lower.text}", f"{name} = {lower.latex}")
    upper = expression(age.upper)
    if age.kind == "quantiles":
        written = f"{age.name} in quantiles({lower.text}, {upper.text})"
        return Formula(written, rf"{name} \in \operatorname{{quantiles}}\left({lower.latex}, {upper.latex}\right)")
    return Formula(
        f"{age.name} in [{lower.text}, {upper.text}]", rf"{name} \in \left[{lower.latex}, {upper.latex}\right]"
    )

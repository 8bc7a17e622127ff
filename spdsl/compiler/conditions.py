"""Derives the KKT blocks of a problem symbolically: who is in which set, what holds there, and the curvatures.

In: a `Problem` with derived pieces (their text is read back into sympy). Out: a `Derivation`. Source: GAGA's KKT
systems, written once for every loss and SP-regularizer: with c = v phi'' + v' phi'^2,

    [ H  B' ] [dw/dlambda]   [ -A_S' (dv*/dlambda phi') ]
    [ B  0  ] [dt/dlambda] = [            0             ],      H = sum_j alpha_j R_j'' + A_S' diag(c) A_S.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy.parsing.sympy_parser import convert_xor, parse_expr, standard_transformations

from spdsl.compiler.algebra import Symbolic, sigmoid, softplus
from spdsl.compiler.derivation import Condition, CurvatureRow, Derivation
from spdsl.compiler.simplify import shortest
from spdsl.compiler.spelling import formula
from spdsl.problem import KernelNorm, Norm, Problem, Separable, TraceNorm
from spdsl.problem.expressions import text
from spdsl.problem.functions import Formula, Piece, ScalarFunction
from spdsl.problem.self_paced import SelfPaced

__all__ = ["derive_conditions"]

NOTHING = Formula("", "")


def derive_conditions(problem: Problem) -> Derivation:
    """The KKT blocks."""
    paced = problem.self_paced
    loss = None if problem.loss is None else problem.loss.function
    one_argument = loss is not None and len(loss.arguments) == 1
    return Derivation(
        stationarity=_stationarity(problem),
        samples=tuple(_sample_conditions(loss, paced)) if loss is not None and one_argument else (),
        coordinates=tuple(item for term in problem.regularizers for item in _coordinate_conditions(term)),
        curvatures=tuple(_curvatures(loss, paced)) if loss is not None and one_argument else (),
        hessian=_hessian(problem) if one_argument else NOTHING,
        system=_system(problem) if one_argument and problem.age is not None else NOTHING,
        notes=tuple(_notes(problem)),
    )


# --- reading formulas back ------------------------------------------------------------------------------------------


def read(shown: Formula | None) -> Symbolic:
    """A formula's text as sympy; every name is a positive symbol (signs do not matter for differentiation)."""
    assert shown is not None
    known: dict[str, Any] = {
        "logistic": lambda m: softplus(-m),
        "sigmoid": sigmoid,
        "abs": sympy.Abs,
        "max": sympy.Max,
        "min": sympy.Min,
        "exp": sympy.exp,
        "log": sympy.log,
        "sqrt": sympy.sqrt,
        "Symbol": lambda name: sympy.Symbol(name, positive=True),
        "Integer": sympy.Integer,
        "Float": sympy.Float,
        "Rational": sympy.Rational,
    }
    spelled = _without_keyword(shown.text)
    rules = (*standard_transformations, convert_xor)
    return parse_expr(spelled, local_dict={}, transformations=rules, global_dict=known).xreplace(
        {sympy.Symbol("lambda_", positive=True): sympy.Symbol("lambda", positive=True)}
    )


def _without_keyword(shown: str) -> str:
    import re

    return re.sub(r"\blambda\b", "lambda_", shown)


# --- sets -----------------------------------------------------------------------------------------------------------


def _sample_conditions(loss: ScalarFunction, paced: SelfPaced | None) -> list[Condition]:
    (z,) = loss.arguments
    found = []
    weight_text, weight_latex = ("v_i * ", "v_i ") if paced is not None else ("", "")
    for number, piece in enumerate(loss.pieces, 1):
        found.append(
            Condition(
                f"piece {number}",
                _between(z, piece),
                Formula(f"phi'({z}) = {piece.slope.text}", rf"\varphi'({z}) = {piece.slope.latex}"),
                "samples inside a smooth piece of the loss",
            )
        )
    for number, kink in enumerate(loss.kinks, 1):
        if not kink.smooth:
            found.append(
                Condition(
                    f"kink {number}",
                    Formula(f"{z}_i = {kink.at.text}", f"{z}_i = {kink.at.latex}"),
                    Formula(
                        f"t_i in {weight_text}[{kink.left_slope.text}, {kink.right_slope.text}]",
                        rf"t_i \in {weight_latex}\left[{kink.left_slope.latex},\ {kink.right_slope.latex}\right]",
                    ),
                    "samples held at a kink of the loss: an equation of the bordered system, with the multiplier t_i",
                )
            )
    meaning = {
        "E": "samples that are in",
        "M": "samples weighed between in and out",
        "D": "samples left out: they take no part",
    }
    for weight in paced.pieces if paced is not None else ():
        shown = weight.weight or Formula("root of l + f'(v) = 0", r"\text{root of } l + f'(v) = 0")
        found.append(
            Condition(
                weight.name,
                _interval("l_i", weight.lower, weight.upper),
                Formula(f"v_i = {shown.text}", f"v_i = {shown.latex}"),
                meaning.get(weight.name, ""),
            )
        )
    return found


def _coordinate_conditions(term: Any) -> list[Condition]:
    if not isinstance(term, Separable):
        return []
    (u,) = term.function.arguments
    scale = text(term.coefficient)
    found = []
    for kink in term.function.kinks:
        if kink.smooth:
            continue
        found.append(
            Condition(
                f"{u} = {kink.at.text}",
                Formula(f"{u}_k = {kink.at.text}", f"{u}_k = {kink.at.latex}"),
                Formula(
                    f"s_k in {scale} * [{kink.left_slope.text}, {kink.right_slope.text}]",
                    rf"s_k \in {_latex_name(scale)} \left[{kink.left_slope.latex},\ {kink.right_slope.latex}\right]",
                ),
                "coordinates held at a kink of the regularizer, with the multiplier s_k",
            )
        )
    return found


def _between(z: str, piece: Piece) -> Formula:
    return _interval(f"{z}_i", piece.lower, piece.upper)


def _interval(name: str, lower: Formula | None, upper: Formula | None) -> Formula:
    if lower is None and upper is None:
        return Formula(f"every {name}", rf"\text{{every }} {name}")
    if lower is None:
        assert upper is not None
        return Formula(f"{name} < {upper.text}", f"{name} < {upper.latex}")
    if upper is None:
        return Formula(f"{name} >= {lower.text}", rf"{name} \geq {lower.latex}")
    return Formula(f"{lower.text} <= {name} < {upper.text}", rf"{lower.latex} \leq {name} < {upper.latex}")


# --- curvatures -----------------------------------------------------------------------------------------------------


def _curvatures(loss: ScalarFunction, paced: SelfPaced | None) -> list[CurvatureRow]:
    if paced is None:
        return [CurvatureRow(number, "E", piece.curvature, NOTHING) for number, piece in enumerate(loss.pieces, 1)]
    rows = []
    l = sympy.Symbol("l", positive=True)
    for number, piece in enumerate(loss.pieces, 1):
        slope, curvature = read(piece.slope), read(piece.curvature)
        square = _square_by_loss(read(piece.value), slope, l)
        for weight in paced.pieces:
            if weight.name == "D" or slope == 0:
                continue
            v, by_loss, by_age = (_weight_part(weight, what) for what in ("weight", "dloss", "dage"))
            c = shortest(v * curvature + by_loss * square)
            rows.append(CurvatureRow(number, weight.name, formula(c), formula(shortest(by_age * slope))))
    return rows


def _square_by_loss(value: Symbolic, slope: Symbolic, l: Symbolic) -> Symbolic:
    """phi'^2, as a multiple of l = phi where it is one (squares), so that c can be read against l."""
    if slope == 0 or value == 0:
        return slope**2
    ratio = sympy.cancel(slope**2 / value)
    moving = value.free_symbols & slope.free_symbols - ratio.free_symbols
    return ratio * l if moving else slope**2


def _weight_part(weight: Any, what: str) -> Symbolic:
    shown = getattr(weight, what)
    return sympy.Symbol("v") if shown is None else read(shown)


# --- the whole ------------------------------------------------------------------------------------------------------


def _stationarity(problem: Problem) -> Formula:
    parts, latex = [], []
    if problem.loss is not None:
        v = ("v_i * ", "v_i \\, ") if problem.self_paced is not None else ("", "")
        parts.append(f"sum_i {v[0]}a_i * phi'(z_i)")
        latex.append(rf"\sum_i {v[1]} a_i \, \partial\varphi(z_i)")
    for number in range(1, len(problem.regularizers) + 1):
        parts.append(f"grad R_{number}")
        latex.append(rf"\partial R_{{{number}}}")
    if problem.constraints:
        parts.append("normal cone of the constraints")
        latex.append(r"\mathcal{N}_C")
    return Formula(f"0 in {' + '.join(parts)}", rf"0 \in {' + '.join(latex)}")


def _hessian(problem: Problem) -> Formula:
    parts, latex = [], []
    for term in problem.regularizers:
        if isinstance(term, Separable):
            curved = [piece for piece in term.function.pieces if piece.curvature.text != "0"]
            if curved:
                alpha = text(term.coefficient)
                parts.append(f"{alpha} * diag({curved[0].curvature.text})")
                latex.append(rf"{_latex_name(alpha)} \operatorname{{diag}}({curved[0].curvature.latex})")
        elif isinstance(term, KernelNorm):
            alpha = text(term.coefficient)
            parts.append(f"2 * {alpha} * K")
            latex.append(rf"2 \, {_latex_name(alpha)} K")
        elif isinstance(term, Norm | TraceNorm):
            parts.append("R''")
            latex.append("R''")
    parts.append("A_S' diag(c) A_S")
    latex.append(r"A_S^{\top} \operatorname{diag}(c) A_S")
    return Formula(f"H = {' + '.join(parts)}", f"H = {' + '.join(latex)}")


def _system(problem: Problem) -> Formula:
    return Formula(
        "[H B'; B 0] [dw/dlambda; dt/dlambda] = [-A_S' (dv*/dlambda phi'); 0]",
        r"\begin{bmatrix} H & B^{\top} \\ B & 0 \end{bmatrix}"
        r"\begin{bmatrix} dw/d\lambda \\ dt/d\lambda \end{bmatrix} ="
        r"\begin{bmatrix} -A_S^{\top} (\partial v^{\ast}/\partial\lambda \; \varphi') \\ 0 \end{bmatrix}",
    )


def _notes(problem: Problem) -> list[str]:
    notes = []
    if problem.loss is not None and len(problem.loss.function.arguments) > 1:
        notes.append("the loss mixes several affine maps: its active pieces are found numerically")
    if problem.self_paced is not None:
        notes.append("a partial optimum satisfies these conditions at v = v*(l(w), lambda)")
        if problem.age is not None:
            notes.append(
                "a set boundary that is crossed is a turning point while the reduced H stays positive definite, and a "
                "jump when it does not"
            )
        if any(item.dloss is None or item.dloss.text != "0" for item in problem.self_paced.pieces):
            notes.append("negative c is normal: a weighed sample adds negative curvature near its exit")
    return notes


def _latex_name(shown: str) -> str:
    try:
        return formula(read(Formula(shown))).latex
    except (SyntaxError, TypeError, ValueError):
        return r"\mathrm{" + shown.replace("_", r"\_") + "}"

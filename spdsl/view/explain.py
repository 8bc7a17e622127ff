"""`explain`: what was derived from a model, in words and mathematics, and who solves it.

In: a `Problem`. Out: an `Explanation`, shown on a terminal, as LaTeX or as a page. Facts are the compiler's and the
back ends' own; this module only puts them into order.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from spdsl.compiler import describe
from spdsl.diagnostics import Diagnostic, SpdslError, UsageError
from spdsl.problem import GroupNorm, KernelNorm, LinearTerm, Norm, Problem, Separable, TraceNorm
from spdsl.problem.expressions import text
from spdsl.problem.functions import Formula, ScalarFunction
from spdsl.problem.self_paced import SelfPaced
from spdsl.view import formulas
from spdsl.view.conditions import conditions
from spdsl.view.document import Block, Cell, Display, Document, Items, Paragraph, Section, Table
from spdsl.view.mathematics import name_latex

__all__ = ["FORMATS", "Explanation", "document", "explain"]

FORMATS = ("text", "latex", "html")


@dataclass(frozen=True)
class Explanation:
    """A document about a model; `print` shows it in its format, a notebook shows it as a page."""

    document: Document
    format: str = "text"

    def __str__(self) -> str:
        if self.format == "latex":
            return self.latex()
        if self.format == "html":
            return self.html()
        return self.text()

    def text(self, width: int = 100) -> str:
        """Plain text with Unicode mathematics."""
        from spdsl.view.terminal import plain

        return plain(self.document, width)

    def latex(self) -> str:
        """A fragment for a LaTeX document (packages amsmath, amssymb, booktabs)."""
        from spdsl.view.latex import latex

        return latex(self.document)

    def html(self) -> str:
        """A self-contained page with MathML, light and dark."""
        from spdsl.view.html import page

        return page(self.document)

    def __rich__(self) -> Any:
        from spdsl.view.terminal import rich_document

        return rich_document(self.document)

    def _repr_html_(self) -> str:
        from spdsl.view.html import body

        return body(self.document)

    def _repr_latex_(self) -> None:
        return None


def explain(problem: Problem, format: str = "text") -> Explanation:
    """Explain a problem.

    Raises
    ------
    UsageError
        For an unknown format.
    """
    if format not in FORMATS:
        raise UsageError(
            Diagnostic("SPL708", f"there is no format {format!r}", help=(f"one of: {', '.join(FORMATS)}",))
        )
    return Explanation(document(problem), format)


def document(problem: Problem) -> Document:
    """Everything that is known of a problem before its data."""
    sections = [_statement(problem)]
    if problem.loss is not None:
        sections.append(_pieces("Selection functions of the loss", problem.loss.function, "\\varphi", "φ"))
    for count, item in enumerate(_kinked(problem)):
        title = "Selection functions of the regularizer" + (f" ({count + 1})" if count else "")
        sections.append(_pieces(title, item.function, "\\psi", "ψ"))
    if problem.self_paced is not None:
        sections += [_weights(problem.self_paced), _axioms(problem.self_paced)]
    if problem.loss is not None:
        sections.append(conditions(describe(problem)))
    sections.append(_back_ends(problem))
    return Document(os.path.basename(problem.name), tuple(sections))


# --- the problem ---------------------------------------------------------------------------------------------------


def _statement(problem: Problem) -> Section:
    blocks: list[Block] = [Display((_objective(problem), *_constraints(problem)))]
    points: list[tuple[Cell, ...]] = []
    loss = problem.loss
    if loss is not None:
        function = formulas.function_at(loss.function, "phi")
        rows = f", one of {loss.rows} samples" if loss.rows else ""
        points.append(("loss: l = ", function, rows, *_parameters(loss.function)))
        for name, item in zip(loss.function.arguments, loss.predictors, strict=True):
            shown = formulas.predictor(item)
            points.append(("predictor: ", Formula(f"{name} = {shown.text}", f"{name_latex(name)} = {shown.latex}")))
    points += [(f"regularizer ({_kind(item)}): ", formulas.regularizer(item)) for item in problem.regularizers]
    if problem.self_paced is not None:
        paced = problem.self_paced
        latex = paced.formula.latex or "f"
        named = Formula(f"f(v, lambda) = {paced.formula.text}", rf"f(v, \lambda) = {latex}")
        points.append((f"self-paced regularizer ({paced.name}): ", named, *_own_parameters(paced)))
    if problem.age is not None:
        points.append(("ages: ", formulas.age_formula(problem), *_age_words(problem)))
    blocks.append(Items(tuple(points)))
    blocks.append(_names(problem))
    if problem.assumptions:
        blocks.append(Paragraph((f"Assumed convex, as the model says: {'; '.join(problem.assumptions)}.",), "warning"))
    return Section("The problem", tuple(blocks))


def _objective(problem: Problem) -> Formula:
    variables = [variable.name for variable in problem.variables]
    paced = problem.self_paced is not None
    parts, latex = [], []
    if problem.loss is not None:
        parts.append("sum_i [v_i l_i + f(v_i, lambda)]" if paced else "sum_i l_i")
        latex.append(r"\sum_{i} \left[ v_i \, l_i + f(v_i, \lambda) \right]" if paced else r"\sum_{i} l_i")
    for item in problem.regularizers:
        shown = formulas.regularizer(item)
        parts.append(shown.text)
        latex.append(shown.latex)
    over = ", ".join([*variables, *(["v in [0, 1]^n"] if paced else [])])
    below = ", ".join([*map(name_latex, variables), *([r"v \in [0, 1]^{n}"] if paced else [])])
    return Formula(f"minimize over {over}:  {' + '.join(parts)}", rf"\min_{{{below}}} \quad {' + '.join(latex)}")


def _constraints(problem: Problem) -> list[Formula]:
    found = []
    for item in problem.constraints:
        shown = formulas.constraint_formula(item)
        found.append(Formula(f"subject to  {shown.text}", rf"\text{{subject to}} \quad {shown.latex}"))
    return found


def _kind(item: Any) -> str:
    names = {
        Norm: "norm",
        GroupNorm: "group norm",
        TraceNorm: "trace norm",
        KernelNorm: "norm in the RKHS",
        LinearTerm: "linear",
    }
    return names.get(type(item), "separable")


def _parameters(function: ScalarFunction) -> tuple[Cell, ...]:
    pairs = [
        (name, value) for name, value in zip(function.parameters, function.values, strict=True) if text(value) != name
    ]
    if not pairs:
        return ()
    return (", with ", *_listed([_equation(name, text(value)) for name, value in pairs]))


def _own_parameters(paced: SelfPaced) -> tuple[Cell, ...]:
    pairs = zip(paced.parameters, paced.values, strict=True)
    own = [_equation(name, text(value)) for name, value in pairs if text(value) != name]
    return (", with ", *_listed(own)) if own else ()


def _equation(name: str, value: str) -> Formula:
    return Formula(f"{name} = {value}", f"{name_latex(name)} = " + r"\mathrm{" + value.replace("_", r"\_") + "}")


def _listed(items: list[Formula]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for item in items:
        cells += [", ", item] if cells else [item]
    return tuple(cells)


def _age_words(problem: Problem) -> tuple[Cell, ...]:
    assert problem.age is not None
    if problem.age.kind == "quantiles":
        return (" (shares of the samples that are in, under the fit that starts the path)",)
    return (" (a whole path)",) if problem.age.kind == "interval" else (" (one partial optimum)",)


def _names(problem: Problem) -> Table:
    rows: list[tuple[Cell, ...]] = [("data", item.name, _type(item.kind, item.dims)) for item in problem.data]
    for parameter in problem.parameters:
        default = "to be given" if parameter.default is None else f"= {text(parameter.default)}"
        rows.append(("parameter", parameter.name, default))
    for variable in problem.variables:
        kind = _type(variable.kind, variable.dims)
        if variable.kernel is not None:
            options = ", ".join(f"{name} = {text(value)}" for name, value in variable.kernel[1])
            points = text(variable.points) if variable.points is not None else ""
            kind = f"rkhs({points}, {variable.kernel[0]}({options}))"
        rows.append(("variable", variable.name, kind))
    return Table(("", "name", "type or value"), tuple(rows))


def _type(kind: str, dims: tuple[str, ...]) -> str:
    dims = dims[:1] if kind == "symmetric" else dims
    return f"{kind}({', '.join(dims)})" if dims else kind


# --- derivations ---------------------------------------------------------------------------------------------------


def _kinked(problem: Problem) -> list[Separable]:
    """Regularizers with something to show: more than one smooth piece."""
    return [item for item in problem.regularizers if isinstance(item, Separable) and item.function.kinks]


def _pieces(title: str, function: ScalarFunction, letter: str, plain: str) -> Section:
    if len(function.arguments) > 1:
        names = ", ".join(function.arguments)
        words = f"A maximum of {len(function.arguments)} predictors ({names}): the largest one is active."
        return Section(title, (Paragraph((words,)),))
    z = function.arguments[0]
    symbol = name_latex(z)
    head: tuple[Cell, ...] = (
        "piece",
        Formula(f"for {z} in", rf"\text{{for }} {symbol} \in"),
        Formula(plain, letter),
        Formula(f"{plain}'", f"{letter}'"),
        Formula(f"{plain}''", f"{letter}''"),
    )
    rows = tuple(
        (str(count), _interval(piece.lower, piece.upper), piece.value, piece.slope, piece.curvature)
        for count, piece in enumerate(function.pieces, 1)
    )
    blocks: list[Block] = [Table(head, rows)]
    sharp = [kink for kink in function.kinks if not kink.smooth]
    if sharp:
        points: list[tuple[Cell, ...]] = [
            (
                "kink at ",
                Formula(f"{z} = {kink.at.text}", f"{symbol} = {kink.at.latex}"),
                ": the slope jumps from ",
                kink.left_slope,
                " to ",
                kink.right_slope,
            )
            for kink in sharp
        ]
        blocks.append(Items(tuple(points)))
    else:
        blocks.append(Paragraph(("No kinks: continuously differentiable.",), "quiet"))
    verdict = "Convex by proof." if function.convexity == "convex" else f"Convex: {function.convexity}."
    blocks.append(Paragraph((verdict,), "good" if function.convexity == "convex" else "warning"))
    return Section(title, tuple(blocks))


def _interval(lower: Formula | None, upper: Formula | None, closed_right: str = "]") -> Formula:
    if lower is None and upper is None:
        return Formula("(-inf, inf)", r"(-\infty, \infty)")
    left = ("(-inf", r"(-\infty") if lower is None else (f"[{lower.text}", f"[{lower.latex}")
    right = ("inf)", r"\infty)") if upper is None else (f"{upper.text}{closed_right}", f"{upper.latex}{closed_right}")
    return Formula(f"{left[0]}, {right[0]}", f"{left[1]}, {right[1]}")


def _weights(paced: SelfPaced) -> Section:
    head: tuple[Cell, ...] = (
        "set",
        Formula("for l in", r"\text{for } l \in"),
        Formula("v∗(l, λ)", r"v^{\ast}(l, \lambda)"),
        Formula("∂v∗/∂l", r"\partial v^{\ast} / \partial l"),
        Formula("∂v∗/∂λ", r"\partial v^{\ast} / \partial \lambda"),
    )
    rows = []
    for piece in paced.pieces:
        lower = piece.lower or Formula("0", "0")
        implicit = Formula("root of l + f'(v) = 0", r"\text{root of } l + f'(v) = 0")
        rows.append(
            (
                piece.name,
                _interval(lower, piece.upper, ")"),
                piece.weight or implicit,
                piece.dloss or implicit,
                piece.dage or implicit,
            )
        )
    words = "From l + f'(v) = 0, clipped to [0, 1]: E holds the samples that are in, M those weighed, D those left out."
    low, high = paced.age_range
    blocks: list[Block] = [Table(head, tuple(rows)), Paragraph((words,), "quiet")]
    if (low, high) != (0.0, float("inf")):
        blocks.append(Paragraph((f"For ages between {low:.6g} and {high:.6g}.",), "quiet"))
    return Section("Sample weights", tuple(blocks))


def _axioms(paced: SelfPaced) -> Section:
    rows = []
    for item in paced.axioms:
        point = item.counterexample or {}
        at = f" (at {', '.join(f'{name} = {value:.4g}' for name, value in point.items())})" if point else ""
        rows.append((item.axiom, item.verdict, f"{item.reason}{at}"))
    return Section("Axioms of a self-paced regularizer", (Table(("axiom", "verdict", "why"), tuple(rows)),))


# --- who solves it -------------------------------------------------------------------------------------------------


def _back_ends(problem: Problem) -> Section:
    from spdsl.solvers.dispatch import all_choices, pick

    choices = all_choices(problem)
    asked = problem.request.backend if problem.request else None
    blocks: list[Block] = []
    try:
        picked = pick(problem)
    except SpdslError as error:
        picked = None
        blocks += [Paragraph((f"{item.message}.",), "warning") for item in error.diagnostics]
    if picked is not None:
        why = "asked for by the model" if asked else "the first that can solve it"
        blocks.append(Paragraph((f"{picked.name}, {why}: {picked.summary}.",), "good"))
        options = problem.request.options if problem.request and asked == picked.name else {}
        if options:
            shown = ", ".join(f"{name} = {_option(value)}" for name, value in options.items())
            blocks.append(Paragraph((f"With {shown}.",)))
    rows = []
    for choice in choices:
        if picked is not None and choice.name == picked.name:
            continue
        reasons = "; ".join(choice.refusals) or "could solve it too: name it under `solve`"
        rows.append((choice.name, reasons))
    if rows:
        blocks.append(Table(("other back end", "why not"), tuple(rows)))
    return Section("Back end", tuple(blocks))


def _option(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and len(value) == 3:
        name, arguments, keywords = value
        inner = [*map(_option, arguments), *(f"{key} = {_option(item)}" for key, item in keywords.items())]
        return f"{name}({', '.join(inner)})"
    if isinstance(value, float | int | str):
        return str(value)
    return text(value)

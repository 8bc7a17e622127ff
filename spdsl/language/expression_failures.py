"""What is wrong inside an expression: operators, brackets, cases, options.

In: a `Failure`. Out: an `Answer`, or None when the rule doesn't know the failure.
"""

from __future__ import annotations

from spdsl.diagnostics import Span
from spdsl.language.failures import OPERANDS, OPERATORS, Answer, Failure
from spdsl.language.tables import END

__all__ = [
    "comparison_in_expression",
    "double_operator",
    "empty_brackets",
    "indexing",
    "logic",
    "missing_operator",
    "option_with_colon",
    "piece_without_condition",
    "pieces_outside",
]

_LOGIC = {
    "for": ("a comparison holds for every element", "delete it"),
    "forall": ("a comparison holds for every element", "delete it"),
    "and": ("each constraint has its own line", "start a new line, or write `;`"),
    "or": ("constraints can't be alternatives: that isn't convex", "choose one of them"),
    "where": ("nothing can follow a statement on its line", "name expressions in `define`"),
    "else": ("the last case of `piecewise` ends in `otherwise`", "write `piecewise(a if x <= 0, b otherwise)`"),
}


def comparison_in_expression(at: Failure) -> Answer | None:
    if at.kind != "COMPARE":
        return None
    if at.section == "minimize":
        helps = ("a constraint goes to `subject to`; a case distinction is `piecewise(a if x <= 0, b otherwise)`",)
        return Answer("SPL121", "a comparison can't stand in an expression", helps)
    if at.section == "subject to" and at.index == 0:
        return None
    helps = ("comparisons stand in `subject to`, and in `piecewise` after `if`",)
    return Answer("SPL121", "a comparison can't stand here", helps)


def indexing(at: Failure) -> Answer | None:
    if at.kind != "LSQB":
        return None
    before = at.before
    if before is not None and before.kind in ("NAME", "RPAR", "TRANSPOSE"):
        helps = ("expressions are about whole vectors and matrices; give a part its own name in `data` or `variable`",)
        return Answer("SPL122", "there is no indexing in a model", helps)
    if at.section == "subject to" and before is not None and before.kind == "IN":
        element = at.source.text[at.line.tokens[0].start : before.start].strip()
        low, _, high = at.source.text[at.token.end : at.line.tokens[-1].start].partition(",")
        helps = (f"write `{low.strip() or 'a'} <= {element} <= {high.strip() or 'b'}`",)
        return Answer("SPL122", "`in` takes a set here, not an interval", helps)
    helps = ("vectors and matrices come from `data`; brackets in an expression are round",)
    return Answer("SPL122", "there are no lists in a model", helps)


def pieces_outside(at: Failure) -> Answer | None:
    if at.kind not in ("IF", "OTHERWISE"):
        return None
    helps = ("a case distinction reads `piecewise(a if x <= 0, b otherwise)`",)
    return Answer("SPL123", f"`{at.token.text}` can only stand inside `piecewise(...)`", helps)


def piece_without_condition(at: Failure) -> Answer | None:
    if "IF" not in at.accepted or "OTHERWISE" not in at.accepted:
        return None
    if at.kind not in ("COMMA", "RPAR", END):
        return None
    return Answer(
        "SPL123",
        "a case of `piecewise` needs a condition",
        ("write `value if x <= 0`, and for the last case `value otherwise`",),
    )


def option_with_colon(at: Failure) -> Answer | None:
    if at.kind != "COLON" or at.before is None or at.before.kind != "NAME" or "EQUAL" not in at.accepted:
        return None
    if at.section in ("data", "variable", "parameter", "age", "define"):
        return None
    return Answer("SPL119", "an option takes `=`, not `:`", ("write `=`",))


def logic(at: Failure) -> Answer | None:
    """English and Python words between two parts of a statement."""
    if at.kind != "NAME" or "TIMES" not in at.accepted or at.token.text not in _LOGIC:
        return None
    message, help_ = _LOGIC[at.token.text]
    return Answer("SPL114", message, (help_,))


def missing_operator(at: Failure) -> Answer | None:
    before = at.before
    if before is None or at.kind not in OPERANDS or "TIMES" not in at.accepted:
        return None
    left, right = at.shown(before), at.shown(at.token)
    helps: tuple[str, ...]
    both = Span(at.source, before.start, at.token.end)
    if at.section in ("data", "variable") and "COMMA" in at.accepted:
        helps = (f"write `{left}, {right}`",)
        return Answer("SPL112", f"a comma is missing between `{left}` and `{right}`", helps, "", both)
    if at.on_new_line():
        helps = ("end the line above with the operator that is missing",)
        return Answer("SPL112", f"an operator is missing between `{left}` and `{right}`", helps)
    if at.kind == "STRING":
        return None
    if at.kind == "LPAR":
        helps = (f"write `{left} * (`, or `{left} @ (` for a matrix product",)
    else:
        helps = (f"write `{left} * {right}`, or `{left} @ {right}` for a matrix product",)
    if "COMMA" in at.accepted:
        helps = (*helps, f"or separate the arguments: `{left}, {right}`")
    return Answer("SPL112", f"an operator is missing between `{left}` and `{right}`", helps, "", both)


def empty_brackets(at: Failure) -> Answer | None:
    if at.kind == "RPAR" and at.before is not None and at.before.kind == "LPAR":
        helps = ("write something between them, or delete both",)
        return Answer("SPL114", "nothing stands between these brackets", helps)
    return None


def double_operator(at: Failure) -> Answer | None:
    before = at.before
    if before is None or at.kind not in (*OPERATORS, "COMMA", "RPAR", "RSQB", "TRANSPOSE", "EQUAL"):
        return None
    if not at.accepted & set(OPERANDS):
        return None
    left, right = at.shown(before), at.shown(at.token)
    if before.kind == "COMMA":
        span = Span(at.source, before.start, before.end)
        return Answer("SPL114", f"nothing stands between `,` and `{right}`", ("delete the `,`",), "", span)
    return Answer("SPL114", f"something is missing between `{left}` and `{right}`", (f"write a value after `{left}`",))

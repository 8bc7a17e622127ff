"""What is wrong with the form of a statement: its first word, its sign, its names, its end.

In: a `Failure`. Out: an `Answer`, or None when the rule doesn't know the failure.
"""

from __future__ import annotations

from spdsl.diagnostics import Span
from spdsl.language.failures import FORMS, OPERATORS, TYPES, Answer, Failure
from spdsl.language.layout import SECTION_KINDS, STATEMENT_KINDS, is_word
from spdsl.language.tables import END

__all__ = [
    "age_range",
    "anything_else",
    "ends_early",
    "equals_mixed_up",
    "missing_colon",
    "no_statement_word",
    "operator_starts_line",
    "reserved",
    "several_names",
    "word_taken_for_name",
    "wrong_section",
    "wrong_type_form",
]


def word_taken_for_name(at: Failure) -> Answer | None:
    """`data : vector(n)` or `age = 3`, where the word was read as the start of a section; or `data:` alone."""
    tokens = at.line.tokens
    if at.kind == "COLON" and (len(tokens) == 1 or tokens[0].kind in STATEMENT_KINDS) and at.index <= 1:
        word = at.shown(tokens[0]) if at.index else at.section
        return Answer("SPL114", f"no `:` follows `{word}`", ("delete the `:`",))
    if at.index > 0 or at.kind not in ("COLON", "EQUAL", "IN"):
        return None
    start = at.source.text.rfind(at.section.split()[0], 0, at.token.start)
    if at.source.text[start + len(at.section) : at.token.start].strip():
        return None  # not the first line of its section
    if at.section == "age" and at.kind == "IN":
        return Answer("SPL113", "the age has no name", ("write `age lambda in ...`",))
    if at.kind == "COLON" and not (len(tokens) > 1 and tokens[1].text in TYPES):
        return Answer("SPL114", f"no `:` follows `{at.section}`", ("delete the `:`",))
    span = Span(at.source, start, start + len(at.section))
    helps = [f"choose another name, such as `{at.section.split()[0]}_`"]
    if at.section == "age":
        helps.append("or name the age: `age lambda = ...`")
    message = f"`{at.section}` is a word of the language and can't be used as a name"
    return Answer("SPL115", message, tuple(helps), "", span)


def operator_starts_line(at: Failure) -> Answer | None:
    """`+ alpha * norm1(w)` on a line of its own, or a bare `- x` where a constraint should be."""
    first = at.line.tokens[0]
    if first.kind not in OPERATORS or [token.kind for token in at.line.tokens[1:2]] in (["COLON"], ["EQUAL"]):
        return None
    if at.index > 0 and not (at.section == "subject to" and at.kind == END):
        return None
    sign = at.shown(first)
    helps = [f"end the line above with `{sign}` to go on with its statement"]
    if at.section == "minimize" and first.kind == "SIGN":
        helps.append("or start the line with `loss` or `regularizer`: the statements of `minimize` are added up")
    span = Span(at.source, first.start, first.end)
    return Answer("SPL111", f"a line can't start with `{sign}` here", tuple(helps), "", span)


def wrong_section(at: Failure) -> Answer | None:
    if at.index != 0 or at.kind not in STATEMENT_KINDS or at.section == "minimize":
        return None
    word = at.token.text
    kinds = [token.kind for token in at.line.tokens]
    if kinds[1:2] in (["COLON"], ["EQUAL"]) or (at.section == "define" and "EQUAL" in kinds):
        return None  # meant as a name, see `reserved`
    return Answer("SPL118", f"`{word}` belongs in `minimize`, not in `{at.section}`", ("put `minimize` above it",))


def no_statement_word(at: Failure) -> Answer | None:
    """A bare expression, a declaration or a comparison in `minimize`."""
    if at.section != "minimize" or at.index != 0:
        return None
    kinds = [token.kind for token in at.line.tokens]
    whole = Span(at.source, at.line.tokens[0].start, at.line.tokens[-1].end)
    if "COMPARE" in kinds:
        helps = ("put `subject to` above it",)
        return Answer("SPL118", "a constraint belongs in `subject to`, not in `minimize`", helps, "", whole)
    if kinds[:2] == ["NAME", "EQUAL"]:
        helps = ("move it to `parameter` or, when it depends on variables, to `define`",)
        return Answer("SPL118", "a definition can't stand in `minimize`", helps, "", whole)
    if kinds[:2] == ["NAME", "COLON"]:
        return Answer("SPL118", "a declaration can't stand in `minimize`", ("move it to `variable`",), "", whole)
    if is_word(at.kind) and at.kind != "PIECEWISE":
        return None
    helps = ("start it with `loss`, `regularizer` or `self_paced`",)
    return Answer("SPL116", "this line of `minimize` doesn't say what it is", helps, "", whole)


def equals_mixed_up(at: Failure) -> Answer | None:
    kind, section, accepted = at.kind, at.section, at.accepted
    if section in ("data", "variable") and at.index == 1 and kind in ("EQUAL", "COMPARE", "IN"):
        return Answer("SPL119", f"a declaration takes `:`, not `{at.token.text}`", ("write `:`",))
    if section == "parameter" and at.index == 1 and kind in ("COLON", "COMPARE", "IN"):
        return Answer("SPL119", f"a parameter is set with `=`, not `{at.token.text}`", ("write `=`",))
    if section == "define" and "EQUAL" in accepted and kind in ("COLON", "COMPARE"):
        return Answer("SPL119", f"`define` takes `=`, not `{at.token.text}`", ("write `=`",))
    if section == "age" and at.index == 1 and kind in ("COLON", "COMPARE"):
        helps = ("write `=` for a fixed age, or `in [a, b]` for a path",)
        return Answer("SPL119", f"an age takes `=` or `in`, not `{at.token.text}`", helps)
    if section == "subject to" and kind == "EQUAL" and "COMPARE" in accepted:
        return Answer("SPL119", "a constraint compares with `==`; `=` gives a value", ("write `==`",))
    if section == "subject to" and kind == "COLON" and at.index == 1:
        helps = ("move it to `variable`",)
        return Answer("SPL118", "a declaration can't stand in `subject to`", helps)
    if kind == "EQUAL" and section == "minimize" and at.index == 1:
        word = at.shown(at.line.tokens[0])
        return Answer("SPL119", f"no `=` follows `{word}`", ("delete the `=`",))
    if kind == "EQUAL" and section == "minimize":
        helps = ("options take `=` inside the brackets of a call; a constraint goes to `subject to`",)
        return Answer("SPL119", "`=` can't stand in an expression", helps)
    return None


def wrong_type_form(at: Failure) -> Answer | None:
    """`matrix[n, d]`, `matrix(n x d)` and `R^n`."""
    before = at.before
    if at.section not in ("data", "variable") or before is None or at.index < 3:
        return None
    if at.kind == "LSQB" and before.text in TYPES:
        sizes = at.source.text[at.token.end : at.line.tokens[-1].start].strip()
        span = Span(at.source, at.token.start, at.line.tokens[-1].end)
        return Answer("SPL114", "sizes stand in round brackets", (f"write `({sizes})`",), "", span)
    if at.kind == "NAME" and at.token.text in ("x", "by", "times") and "COMMA" in at.accepted:
        return Answer("SPL114", "sizes are separated by a comma", ("write `,`",))
    if at.index == 3 and at.kind in ("CARET", "TIMES", "SIGN") and before.text not in TYPES:
        helps = (
            "the types are `scalar`, `vector(n)`, `matrix(n, d)`, `labels(n)`, `symmetric(d)`, `graph(p)`, `rkhs`",
        )
        span = Span(at.source, before.start, at.line.tokens[-1].end)
        return Answer("SPL114", f"`{span.text}` is no type", helps, "", span)
    return None


def reserved(at: Failure) -> Answer | None:
    if not is_word(at.kind):
        return None
    word = at.shown(at.token)
    if at.kind in STATEMENT_KINDS and at.section == "minimize" and at.index > 0:
        helps = ("start a new line before it; the statements of `minimize` are added up",)
        return Answer("SPL114", f"`{word}` starts a statement of its own", helps)
    if at.kind != "ASSUME_CONVEX" and "NAME" in at.accepted:
        text = f"`{word}` is a word of the language and can't be used as a name"
        return Answer("SPL115", text, (f"choose another name, such as `{word.split()[0]}_`",))
    if at.kind == "ASSUME_CONVEX":
        helps = ("it follows a loss, a regularizer or a constraint",)
        return Answer("SPL114", "`assume convex` can't stand here", helps)
    if at.kind in SECTION_KINDS or at.kind in STATEMENT_KINDS:
        helps = ("start a new line before it",)
        return Answer("SPL114", f"`{word}` can't stand inside a statement", helps)
    return None


def missing_colon(at: Failure) -> Answer | None:
    if at.section in ("data", "variable") and at.index == 1 and at.kind == "NAME":
        span = Span(at.source, at.token.start, at.line.tokens[-1].end)
        return Answer("SPL119", "a `:` is missing before the type", (f"write `: {span.text}`",), "", span)
    if at.section == "parameter" and at.index == 1 and at.kind == "NUMBER":
        return Answer("SPL119", "a `=` is missing before the value", (f"write `= {at.shown(at.token)}`",))
    return None


def age_range(at: Failure) -> Answer | None:
    """`age lambda in (0.1, 10)` and `in [0.1, 1, 10]`."""
    if at.section != "age" or at.kind != "COMMA":
        return None
    kinds = [token.kind for token in at.line.tokens]
    if "LSQB" in kinds:
        return Answer("SPL114", "an interval has two ends", ("write `[a, b]`",))
    if kinds[2:3] == ["LPAR"]:
        opening = at.line.tokens[2]
        span = Span(at.source, opening.start, at.line.tokens[-1].end)
        inner = at.source.text[opening.end : at.line.tokens[-1].start].strip()
        return Answer("SPL114", "an interval takes square brackets", (f"write `[{inner}]`",), "", span)
    return None


def several_names(at: Failure) -> Answer | None:
    if at.kind != "COMMA":
        return None
    before = at.before
    if at.section in ("data", "variable", "parameter") and at.index == 1:
        return Answer("SPL114", "a statement declares one name", ("give every name its own line",))
    after = at.line.tokens[at.index + 1] if at.index + 1 < len(at.line.tokens) else None
    if before is not None and before.kind == "NUMBER" and after is not None and after.kind == "NUMBER":
        number = f"{at.shown(before)}.{at.shown(after)}"
        span = Span(at.source, before.start, after.end)
        return Answer("SPL106", "a number takes a decimal point, not a comma", (f"write `{number}`",), "", span)
    if END in at.accepted:
        return Answer("SPL114", "a `,` can't separate statements", ("start a new line, or write `;`",))
    return None


def ends_early(at: Failure) -> Answer | None:
    if at.kind != END:
        return None
    last = at.line.tokens[-1]
    span = Span(at.source, last.start, last.end)
    shown = at.shown(last)
    tokens = at.line.tokens
    helps: tuple[str, ...]
    if len(tokens) == 1 and last.kind in STATEMENT_KINDS:
        return Answer("SPL113", f"`{shown}` has no expression", ("write it on this line or the next",), "", span)
    if at.section == "subject to" and "COMPARE" in at.accepted:
        whole = Span(at.source, tokens[0].start, last.end)
        helps = ("compare it with something: `<=`, `>=`, `==` or `>>`", "or write `support(w) in ...`")
        return Answer("SPL113", "a constraint compares two sides, and this has one", helps, "", whole)
    if at.section in ("data", "variable") and "COLON" in at.accepted:
        helps = (f"write `{shown} : scalar`, or `vector(n)`, `matrix(n, d)`, ...",)
        return Answer("SPL113", f"`{shown}` has no type", helps, "", span)
    if at.section == "parameter" and "EQUAL" in at.accepted:
        return Answer("SPL113", f"`{shown}` has no value", (f"write `{shown} = 1`",), "", span)
    if last.kind in ("SIGN", "TIMES", "CARET", "COMPARE", "EQUAL", "COLON", "COMMA", "IN"):
        helps = (f"write what follows `{shown}`, on this line or the next",)
        return Answer("SPL113", f"the statement ends in `{shown}`", helps, "", span)
    if at.section == "age":
        return Answer("SPL113", f"the age `{shown}` has no range", (FORMS[at.section],), "", span)
    return Answer("SPL113", "the statement ends too early", (FORMS[at.section],), "", span)


def anything_else(at: Failure) -> Answer | None:
    shown = at.shown(at.token)
    return Answer("SPL114", f"`{shown}` can't stand here", (FORMS[at.section],))

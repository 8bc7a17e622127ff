"""Says in a sentence why a statement can't be parsed, and how to mend it.

In: the tokens of the statement, where the tables refused to go on, and what they would have accepted there. Out: one
complaint for each statement. The table `_RULES` is tried in order; the last rule always answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spdsl.diagnostics import Source, Span, nearest_name
from spdsl.language.complaints import Complaints
from spdsl.language.layout import SECTION_KINDS, STATEMENT_KINDS, Line, is_word
from spdsl.language.lexer import Token
from spdsl.language.record import Record
from spdsl.language.spelling import KEYWORD_ALIASES
from spdsl.language.tables import END

__all__ = ["Failure", "Meant", "explain", "explain_stray", "misspelt_word"]

_TYPES = ("scalar", "vector", "matrix", "labels", "symmetric", "graph", "rkhs")
_OPERATORS = ("SIGN", "TIMES", "CARET", "COMPARE", "IN")
_OPERANDS = ("NAME", "NUMBER", "LPAR", "STRING", "TRUE", "FALSE", "PIECEWISE")

_FORMS = {
    "data": "a line of `data` reads `X : matrix(n, d)`",
    "parameter": "a line of `parameter` reads `alpha = 0.1`",
    "define": "a line of `define` reads `f(v, lambda) = lambda * (v^2/2 - v)`",
    "variable": "a line of `variable` reads `w : vector(d)`",
    "age": "an age reads `age lambda in [0.1, 10]`, `age lambda in quantiles(0.2, 1)` or `age lambda = 2`",
    "minimize": "a line of `minimize` starts with `loss`, `regularizer` or `self_paced`",
    "subject to": "a constraint reads `w >= 0` or `support(w) in sparse(10)`",
    "solve": "`solve` reads `solve path_following` or `solve comid(step = 0.1, passes = 5)`",
}


class Failure(Record):
    """Where parsing stopped: `index` counts in `line.tokens`, and is their number at the end of the statement."""

    source: Source
    section: str
    line: Line
    index: int
    accepted: frozenset[str]

    @property
    def token(self) -> Token:
        """The token that can't stand here, or the last one at the end of the statement."""
        return self.line.tokens[min(self.index, len(self.line.tokens) - 1)]

    @property
    def kind(self) -> str:
        """The kind of that token; `END` at the end of the statement."""
        return self.line.tokens[self.index].kind if self.index < len(self.line.tokens) else END

    @property
    def before(self) -> Token | None:
        """The token before it."""
        return self.line.tokens[self.index - 1] if self.index > 0 else None

    @property
    def span(self) -> Span:
        """The place of the token."""
        return Span(self.source, self.token.start, self.token.end)

    def shown(self, token: Token) -> str:
        """A token as it is written in the file."""
        return self.source.text[token.start : token.end] or token.text

    def on_new_line(self) -> bool:
        """Whether the token starts a line of the file."""
        before = self.source.text.rfind("\n", 0, self.token.start) + 1
        return not self.source.text[before : self.token.start].strip()


class Answer(NamedTuple):
    """What to complain about."""

    code: str
    message: str
    helps: tuple[str, ...] = ()
    label: str = ""
    span: Span | None = None


class Meant(NamedTuple):
    """The section that a misspelt word meant (None: no section), and the rest of its line."""

    section: str | None
    rest: Line


def explain(failure: Failure, complaints: Complaints) -> None:
    """Note the complaint of the first rule that knows the failure."""
    for rule in _RULES:
        answer = rule(failure)
        if answer is not None:
            complaints.error(answer.code, answer.message, answer.span or failure.span, answer.label, *answer.helps)
            return
    raise AssertionError("the last rule answers everything")


def explain_stray(source: Source, line: Line, complaints: Complaints) -> None:
    """Complain about a statement before the first section."""
    token = line.tokens[0]
    span = Span(source, token.start, line.tokens[-1].end)
    kinds = [item.kind for item in line.tokens]
    if token.kind in STATEMENT_KINDS:
        section = "minimize"
    elif "COLON" in kinds:
        text = source.text[token.start : line.tokens[-1].end]
        section = "variable" if "rkhs" in text else "data"
    elif "EQUAL" in kinds:
        section = "define" if kinds[:2] == ["NAME", "LPAR"] else "parameter"
    else:
        section = "subject to" if "COMPARE" in kinds else "minimize"
    complaints.error(
        "SPL117",
        "this statement stands before the first section",
        span,
        "",
        f"put a section's name above it, perhaps `{section}`",
    )


def misspelt_word(source: Source, line: Line, section: str | None, complaints: Complaints) -> Meant | None:
    """Whether a line starts with a misspelt or foreign word in the place of a section's or a statement's word.

    Only lines that no section could parse are looked at: a name alone, or a name followed by another one.
    """
    tokens = line.tokens
    first = tokens[0]
    if first.kind != "NAME":
        return None
    rest = Line()
    rest.tokens, rest.broken = tokens[1:], line.broken
    if [t.text for t in tokens[:3]] == ["self", "-", "paced"]:
        span = Span(source, first.start, tokens[2].end)
        complaints.error("SPL116", "`self-paced` is written `self_paced`", span, "", "write `self_paced`")
        rest.tokens, rest.broken = [], False
        return Meant(section, rest)
    if len(tokens) > 1 and tokens[1].kind not in ("NAME", "LSQB") and not is_word(tokens[1].kind):
        return None
    if len(tokens) > 1 and tokens[1].text in _TYPES:
        return None
    if len(tokens) == 1 and section == "solve":
        return None
    span = Span(source, first.start, first.end)
    word = first.text.lower()
    if word in ("maximize", "maximise", "max", "maximum"):
        help_ = "write `minimize`, and a minus before what was to be maximized"
        complaints.error("SPL116", f"`{first.text}` is no section: a model minimizes", span, "", help_)
        return Meant("minimize", rest) if len(tokens) > 1 else Meant("minimize", Line())
    sections = list(SECTION_KINDS.values())
    statements = list(STATEMENT_KINDS.values())
    meant = KEYWORD_ALIASES.get(word) or (word if word in [*sections, *statements] else None)
    if meant is None and len(word) >= 3:
        meant = nearest_name(word, [*sections, *statements])
    if meant is None:
        if len(tokens) == 1 and section is None:
            listed = ", ".join(f"`{item}`" for item in sections)
            complaints.error("SPL116", f"`{first.text}` starts no section", span, "", f"the sections are {listed}")
            return Meant(None, Line())
        return None
    role = "section" if meant in sections else "statement"
    help_ = f"did you mean `{meant}`?"
    if meant in sections:
        if meant == "subject to" and rest.tokens and rest.tokens[0].text in ("to", "that"):
            rest.tokens = rest.tokens[1:]
        complaints.error("SPL116", f"`{first.text}` starts no {role}", span, "", help_)
        return Meant(meant, rest)
    complaints.error("SPL116", f"`{first.text}` starts no {role}", span, "", help_)
    return Meant(section, Line())


# --- the rules, most special first ---------------------------------------------------------------------------


def _word_taken_for_name(at: Failure) -> Answer | None:
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
    if at.kind == "COLON" and [token.kind for token in tokens].count("COLON") > 1:
        return Answer("SPL114", f"no `:` follows `{at.section}`", ("delete the `:`",))
    span = Span(at.source, start, start + len(at.section))
    helps = [f"choose another name, such as `{at.section.split()[0]}_`"]
    if at.section == "age":
        helps.append("or name the age: `age lambda = ...`")
    message = f"`{at.section}` is a word of the language and can't be used as a name"
    return Answer("SPL115", message, tuple(helps), "", span)


def _operator_starts_line(at: Failure) -> Answer | None:
    """`+ alpha * norm1(w)` on a line of its own, or a bare `- x` where a constraint should be."""
    first = at.line.tokens[0]
    if first.kind not in _OPERATORS or [token.kind for token in at.line.tokens[1:2]] in (["COLON"], ["EQUAL"]):
        return None
    if at.index > 0 and not (at.section == "subject to" and at.kind == END):
        return None
    sign = at.shown(first)
    helps = [f"end the line above with `{sign}` to go on with its statement"]
    if at.section == "minimize" and first.kind == "SIGN":
        helps.append("or start the line with `loss` or `regularizer`: the statements of `minimize` are added up")
    span = Span(at.source, first.start, first.end)
    return Answer("SPL111", f"a line can't start with `{sign}` here", tuple(helps), "", span)


def _wrong_section(at: Failure) -> Answer | None:
    if at.index != 0 or at.kind not in STATEMENT_KINDS or at.section == "minimize":
        return None
    word = at.token.text
    kinds = [token.kind for token in at.line.tokens]
    if kinds[1:2] in (["COLON"], ["EQUAL"]) or (at.section == "define" and "EQUAL" in kinds):
        return None  # meant as a name, see `_reserved`
    return Answer("SPL118", f"`{word}` belongs in `minimize`, not in `{at.section}`", ("put `minimize` above it",))


def _no_statement_word(at: Failure) -> Answer | None:
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


def _equals_mixed_up(at: Failure) -> Answer | None:
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
    if kind == "EQUAL" and section == "minimize":
        helps = ("options take `=` inside the brackets of a call; a constraint goes to `subject to`",)
        return Answer("SPL119", "`=` can't stand in an expression", helps)
    return None


def _comparison_in_expression(at: Failure) -> Answer | None:
    if at.kind != "COMPARE":
        return None
    if at.section == "minimize":
        helps = ("a constraint goes to `subject to`; a case distinction is `piecewise(a if x <= 0, b otherwise)`",)
        return Answer("SPL121", "a comparison can't stand in an expression", helps)
    if at.section == "subject to" and at.index == 0:
        return None
    helps = ("comparisons stand in `subject to`, and in `piecewise` after `if`",)
    return Answer("SPL121", "a comparison can't stand here", helps)


def _indexing(at: Failure) -> Answer | None:
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


def _pieces_outside(at: Failure) -> Answer | None:
    if at.kind not in ("IF", "OTHERWISE"):
        return None
    helps = ("a case distinction reads `piecewise(a if x <= 0, b otherwise)`",)
    return Answer("SPL123", f"`{at.token.text}` can only stand inside `piecewise(...)`", helps)


def _piece_without_condition(at: Failure) -> Answer | None:
    if "IF" not in at.accepted or "OTHERWISE" not in at.accepted:
        return None
    if at.kind not in ("COMMA", "RPAR", END):
        return None
    return Answer(
        "SPL123",
        "a case of `piecewise` needs a condition",
        ("write `value if x <= 0`, and for the last case `value otherwise`",),
    )


def _reserved(at: Failure) -> Answer | None:
    if not is_word(at.kind):
        return None
    word = at.shown(at.token)
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


def _missing_colon(at: Failure) -> Answer | None:
    if at.section in ("data", "variable") and at.index == 1 and at.kind == "NAME":
        span = Span(at.source, at.token.start, at.line.tokens[-1].end)
        return Answer("SPL119", "a `:` is missing before the type", (f"write `: {span.text}`",), "", span)
    if at.section == "parameter" and at.index == 1 and at.kind == "NUMBER":
        return Answer("SPL119", "a `=` is missing before the value", (f"write `= {at.shown(at.token)}`",))
    return None


def _several_names(at: Failure) -> Answer | None:
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


def _missing_operator(at: Failure) -> Answer | None:
    before = at.before
    if before is None or at.kind not in _OPERANDS or "TIMES" not in at.accepted:
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


def _ends_early(at: Failure) -> Answer | None:
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
        return Answer("SPL113", f"the age `{shown}` has no range", (_FORMS[at.section],), "", span)
    return Answer("SPL113", "the statement ends too early", (_FORMS[at.section],), "", span)


def _empty_brackets(at: Failure) -> Answer | None:
    if at.kind == "RPAR" and at.before is not None and at.before.kind == "LPAR":
        helps = ("write something between them, or delete both",)
        return Answer("SPL114", "nothing stands between these brackets", helps)
    return None


def _double_operator(at: Failure) -> Answer | None:
    before = at.before
    if before is None or at.kind not in (*_OPERATORS, "COMMA", "RPAR", "RSQB", "TRANSPOSE", "EQUAL"):
        return None
    if not at.accepted & set(_OPERANDS):
        return None
    left, right = at.shown(before), at.shown(at.token)
    return Answer("SPL114", f"something is missing between `{left}` and `{right}`", (f"write a value after `{left}`",))


def _anything_else(at: Failure) -> Answer | None:
    shown = at.shown(at.token)
    return Answer("SPL114", f"`{shown}` can't stand here", (_FORMS[at.section],))


_RULES: tuple[Callable[[Failure], Answer | None], ...] = (
    _word_taken_for_name,
    _operator_starts_line,
    _wrong_section,
    _no_statement_word,
    _equals_mixed_up,
    _comparison_in_expression,
    _indexing,
    _pieces_outside,
    _piece_without_condition,
    _reserved,
    _missing_colon,
    _several_names,
    _missing_operator,
    _ends_early,
    _empty_brackets,
    _double_operator,
    _anything_else,
)

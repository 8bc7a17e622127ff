"""Words in the place of a section's or a statement's word that are none: misspelt, foreign, or missing.

In: the tokens of a line. Out: a complaint, and in which section to read on.
"""

from __future__ import annotations

from typing import NamedTuple

from spdsl.diagnostics import Source, Span, nearest_name
from spdsl.language.complaints import Complaints
from spdsl.language.failures import TYPES
from spdsl.language.layout import SECTION_KINDS, STATEMENT_KINDS, Line
from spdsl.language.spelling import KEYWORD_ALIASES

__all__ = ["Meant", "explain_stray", "misspelt_word"]


class Meant(NamedTuple):
    """The section that a misspelt word meant (None: no section), and the rest of its line."""

    section: str | None
    rest: Line


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
    if len(tokens) > 1 and tokens[1].kind not in ("NAME", "LSQB", *STATEMENT_KINDS, *SECTION_KINDS):
        return None
    if len(tokens) > 1 and tokens[1].text in TYPES:
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

"""Cuts a model's text into tokens, comments and line ends, and names every character that is no part of the language.

In: a `Source`. Out: `Lexed`. A foreign sign whose meaning is plain becomes the token it stands for, so that one
mistake makes one complaint; any other marks its place by a `BROKEN` token, and the statement is not parsed further.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from spdsl.diagnostics import Source, Span
from spdsl.language.complaints import Complaints
from spdsl.language.spelling import (
    FOREIGN_SIGNS,
    SIGN_SPELLINGS,
    canonical_name,
    describe_character,
    latin_twin,
)
from spdsl.language.tables import tables
from spdsl.language.tree import Comment

__all__ = ["BROKEN", "NEWLINE", "SEMICOLON", "Lexed", "Token", "lex"]

NEWLINE = "NEWLINE"
SEMICOLON = "SEMICOLON"
BROKEN = "BROKEN"


class Token(NamedTuple):
    """A word, sign, number or line end; `text` is the canonical spelling."""

    kind: str
    text: str
    start: int
    end: int


class Lexed(NamedTuple):
    """The tokens in order, and the comments apart from them."""

    tokens: list[Token]
    comments: list[Comment]


# What a number must not run into: a letter, a digit or a point.
_NUMBER_RUN = re.compile(r"([^\W¹²³⁰⁴-⁹ᵀ]|\.)+")
# Letters and digits of any script, without superscripts: those are signs.
_WORD = r"[^\W\d¹²³⁰⁴-⁹ᵀ][^\W¹²³⁰⁴-⁹ᵀ]*"


@lru_cache(maxsize=1)
def _scanner() -> re.Pattern[str]:
    """One pattern with a group for each kind of token; what is most frequent is tried first."""
    signs = sorted((sign for sign in FOREIGN_SIGNS if len(sign) > 1 and sign != "s.t."), key=len, reverse=True)
    patterns = dict(tables().patterns)
    # A name must not end inside a word that goes on with letters of another script.
    patterns["NAME"] = rf"(?:{patterns['NAME']})(?![^\W¹²³⁰⁴-⁹ᵀ])"
    first = {name: patterns.pop(name) for name in ("ASSUME_CONVEX", "SUBJECT_TO")}
    groups = {
        **first,
        "_ABBREVIATION": r"s\.[ \t]*t\.",
        "NAME": patterns.pop("NAME"),
        "_SPACE": r"[ \t\f\u00a0\u2000-\u200a\u202f\u3000]+",
        "NUMBER": patterns.pop("NUMBER"),
        NEWLINE: r"\n",
        "_COMMENT": r"#[^\n]*",
        SEMICOLON: ";",
        "_FOREIGN": "|".join(re.escape(sign) for sign in signs),
        **patterns,
        "_WORD": _WORD,
        "_OTHER": ".",
    }
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in groups.items()))


def lex(source: Source, complaints: Complaints) -> Lexed:
    """The tokens of a source; every foreign character is noted in `complaints`."""
    text = source.text
    words = tables().words
    tokens: list[Token] = []
    comments: list[Comment] = []
    skip_to = 0
    for match in _scanner().finditer(text):
        start, end = match.span()
        if start < skip_to:
            continue
        if complaints.enough:
            break
        kind = match.lastgroup
        if kind == "_SPACE":
            continue
        value = match.group()
        if kind == "NAME":
            tokens.append(Token(words.get(value, "NAME"), canonical_name(value), start, end))
        elif kind == "NUMBER":
            skip_to = _number(source, tokens, complaints, start, end)
        elif kind == "_COMMENT":
            comments.append(Comment(value.rstrip(), span=Span(source, start, end)))
        elif kind == "_WORD":
            tokens.append(_foreign_word(source, complaints, start, end))
        elif kind in ("_FOREIGN", "_OTHER", "_ABBREVIATION"):
            token, skip_to = _foreign_sign(source, complaints, start, end)
            tokens.append(token)
        else:
            assert kind is not None
            tokens.append(Token(kind, SIGN_SPELLINGS.get(value, value), start, end))
    return Lexed(tokens, comments)


def _number(source: Source, tokens: list[Token], complaints: Complaints, start: int, end: int) -> int:
    """Add a number; complain when a letter, a digit or a point follows it. Returns where to go on."""
    text = source.text
    run = _NUMBER_RUN.match(text, end)
    rest = run.group() if run else ""
    if not rest or rest == ".T" or rest.startswith(".T."):
        tokens.append(Token("NUMBER", text[start:end], start, end))
        return end
    stop = end + len(rest)
    span = Span(source, start, stop)
    written = span.text
    number = text[start:end]
    if rest in ("e", "E"):
        message = f"`{written}` is cut off: an exponent needs digits"
        complaints.error("SPL106", message, span, "", f"write `{number}e3`, say, or `{number} * {rest}`")
    elif re.fullmatch(r"[^\W\d_]\w*", rest) and not re.match(r"[eE]\d|[xX][0-9a-fA-F]+$", rest):
        message = f"a `*` is missing between `{number}` and `{rest}`"
        complaints.error("SPL112", message, span, "", f"write `{number} * {canonical_name(rest)}`")
        # Read on as if it stood there.
        tokens.append(Token("NUMBER", number, start, end))
        tokens.append(Token("TIMES", "*", end, end))
        return end
    elif re.fullmatch(r"[\d_]+", rest):
        complaints.error("SPL106", f"`{written}` is no number", span, "", f"write `{written.replace('_', '')}`")
    else:
        help_ = "numbers look like `3`, `0.5` or `1e-3`"
        if ".." in written:
            help_ = "an interval is written `[0.1, 10]`"
        complaints.error("SPL106", f"`{written}` is no number", span, "", help_)
    tokens.append(Token(BROKEN, written, start, stop))
    return stop


def _foreign_word(source: Source, complaints: Complaints, start: int, end: int) -> Token:
    """A word with letters that names can't have: complain, and read it as the word it looks like."""
    word = source.text[start:end]
    allowed = re.compile(dict(tables().patterns)["NAME"])
    bad = [(i, c) for i, c in enumerate(word) if not allowed.fullmatch(("a" if i else "") + c)]
    twins = {c: latin_twin(c) for _, c in bad}
    position, character = bad[0] if bad else (0, word[0])
    span = Span(source, start, end)
    described = describe_character(character)
    accented = unicodedata.normalize("NFD", character) != character
    if twins.get(character) is not None and not accented:
        message = f"letter {position + 1} of `{word}` looks like `{twins[character]}` but is {described}"
    else:
        message = f"`{word}` has a letter that names can't have: {described}"
    if all(twins.values()):
        meant = "".join(twins.get(c) or c for c in word)
        complaints.error("SPL105", message, span, "", f"write `{meant}`")
        return Token(tables().words.get(meant, "NAME"), canonical_name(meant), start, end)
    help_ = "names are made of the letters a-z and A-Z, Greek letters, digits and `_`"
    complaints.error("SPL105", message, span, "", help_)
    return Token("NAME", word, start, end)


def _foreign_sign(source: Source, complaints: Complaints, start: int, end: int) -> tuple[Token, int]:
    """A sign that the language doesn't have; returns its token and where to go on."""
    text = source.text
    sign = text[start:end]
    if sign == '"':
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        span = Span(source, start, stop)
        complaints.error("SPL108", 'the text has no closing `"`', span, "", 'end it with `"` on the same line')
        return Token(BROKEN, sign, start, stop), stop
    if sign in ("//", "/*"):
        # It opens a comment in other languages: don't complain about its words as well.
        stop = text.find("\n", start)
        end = len(text) if stop < 0 else stop
    known = FOREIGN_SIGNS.get(sign.replace(" ", "").replace("\t", ""))
    span = Span(source, start, start + len(sign))
    if sign in ("|", "||", "‖", "∥") and sign in text[text.rfind("\n", 0, start) + 1 : start]:
        return Token(BROKEN, sign, start, end), end  # the second one of a pair
    if known is not None:
        complaints.error("SPL107", f"`{sign}` is no sign of this language", span, "", known.help)
        kind, meant = known.token or (BROKEN, sign)
        return Token(kind, meant, start, end), end
    if sign == ".":
        help_ = "the transpose is `X.T`; nothing else follows a point"
        complaints.error("SPL107", "a point can't stand here", span, "", help_)
        return Token(BROKEN, sign, start, end), end
    twin = latin_twin(sign)
    described = describe_character(sign)
    if twin is not None:
        message = f"this character looks like `{twin}` but is {described}"
        complaints.error("SPL105", message, span, "", f"type it again: `{twin}`")
    else:
        complaints.error("SPL105", f"the character {described} has no meaning here", span, "", "delete it")
    return Token(BROKEN, sign, start, end), end

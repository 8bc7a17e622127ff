"""Groups tokens into statements and statements into sections, by the rules for where a statement ends.

In: the tokens of a file. Out: `Block`s. A statement ends with its line or with `;`, and goes on while a bracket is
open or the line ends in a sign or word that needs something after it. A bracket that is never closed ends where the
next statement plainly starts, so that it costs one complaint and not the rest of the file.
"""

from __future__ import annotations

from spdsl.diagnostics import Related, Source, Span
from spdsl.language.complaints import Complaints
from spdsl.language.lexer import BROKEN, NEWLINE, SEMICOLON, Token
from spdsl.language.spelling import KEYWORD_ALIASES
from spdsl.language.tables import tables

__all__ = ["SECTION_KINDS", "STATEMENT_KINDS", "Block", "Line", "blocks"]

SECTION_KINDS = {
    "DATA": "data",
    "PARAMETER": "parameter",
    "DEFINE": "define",
    "VARIABLE": "variable",
    "AGE": "age",
    "MINIMIZE": "minimize",
    "SUBJECT_TO": "subject to",
    "SOLVE": "solve",
}
"""Section keyword by token kind."""

STATEMENT_KINDS = {"LOSS": "loss", "REGULARIZER": "regularizer", "SELF_PACED": "self_paced"}
"""The words that start the statements of `minimize`, by token kind."""

_UNFINISHED = {"SIGN", "TIMES", "CARET", "COMPARE", "EQUAL", "COLON", "COMMA", "IN", *STATEMENT_KINDS}
"""After these a statement goes on in the next line."""

_OPENING = {"LPAR": ("RPAR", ")"), "LSQB": ("RSQB", "]")}
_CLOSING = {"RPAR", "RSQB"}


class Line:
    """The tokens of one statement; `broken` when a complaint about it has been made already."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.broken = False


class Block:
    """A section keyword (None before the first one) and the statements below it."""

    def __init__(self, keyword: str | None, token: Token | None) -> None:
        self.keyword = keyword
        self.token = token
        self.lines: list[Line] = []


def blocks(source: Source, tokens: list[Token], complaints: Complaints) -> list[Block]:
    """The sections of a file with their statements; the first block holds what precedes every section."""
    return _Layout(source, tokens, complaints).run()


class _Layout:
    def __init__(self, source: Source, tokens: list[Token], complaints: Complaints) -> None:
        self.source = source
        self.tokens = tokens
        self.complaints = complaints
        self.found = [Block(None, None)]
        self.line = Line()
        self.brackets: list[Token] = []
        self.positions: list[int] = []  # of the open brackets in the line

    def run(self) -> list[Block]:
        for index, token in enumerate(self.tokens):
            if self.complaints.enough:
                break
            kind = token.kind
            if kind == NEWLINE:
                if self._ends_at_newline(index):
                    self._end_line()
            elif kind == SEMICOLON:
                if self.brackets:
                    self._never_closed(token)
                self._end_line()
            elif kind in SECTION_KINDS and not self.line.tokens:
                self.found.append(Block(SECTION_KINDS[kind], token))
            else:
                self._add(token)
        if self.brackets:
            self._never_closed(None)
        self._end_line()
        return self.found

    def _add(self, token: Token) -> None:
        self.line.tokens.append(token)
        if token.kind in _OPENING:
            self.brackets.append(token)
            self.positions.append(len(self.line.tokens) - 1)
        elif token.kind in _CLOSING:
            self._close(token)
        elif token.kind == BROKEN:
            self.line.broken = True

    def _close(self, token: Token) -> None:
        if not self.brackets:
            if not self.line.broken:
                message = f"this `{token.text}` closes no bracket"
                self.complaints.error("SPL110", message, self._span(token), "", "delete it, or open a bracket before")
            self.line.broken = True
            return
        opening = self.brackets.pop()
        self.positions.pop()
        kind, text = _OPENING[opening.kind]
        if token.kind != kind:
            message = f"`{token.text}` closes a `{opening.text}`"
            related = (Related(self._span(opening), "opened here"),)
            if not self.line.broken:
                self.complaints.error("SPL110", message, self._span(token), "", f"write `{text}`", related=related)
            self.line.broken = True

    def _ends_at_newline(self, index: int) -> bool:
        """Whether the statement is over at this line end."""
        if not self.line.tokens:
            return False
        open_ended = self.brackets or self.line.tokens[-1].kind in _UNFINISHED
        if not open_ended:
            return True
        if index + 1 == len(self.tokens) or self.tokens[index + 1].kind == NEWLINE:
            return False
        following = self.tokens[index + 1]
        if self._starts_statement(following, index + 1):
            if self.brackets:
                self._never_closed(following)
            return True
        return False

    def _starts_statement(self, token: Token, index: int) -> bool:
        """Whether a token at the start of a line can't be inside an expression, so that a new statement starts."""
        if token.kind in SECTION_KINDS or token.kind in STATEMENT_KINDS:
            return True
        if token.kind != "NAME":
            return False
        if index + 1 == len(self.tokens):
            return False
        after = self.tokens[index + 1].kind
        if after == NEWLINE and KEYWORD_ALIASES.get(token.text) in SECTION_KINDS.values():
            return True  # a misspelt section word alone on its line
        # `name = ...` at the start of a line is an option only inside the brackets of a call.
        return after == "COLON" or (after == "EQUAL" and not self._in_call())

    def _in_call(self) -> bool:
        if not self.brackets:
            return False
        position = self.positions[-1]
        return position > 0 and self.line.tokens[position - 1].kind == "NAME"

    def _never_closed(self, following: Token | None) -> None:
        if not self.line.broken:
            opening = self.brackets[-1]
            related: tuple[Related, ...] = ()
            if following is not None:
                related = (Related(self._span(following), "the next statement starts here"),)
            closing = _OPENING[opening.kind][1]
            message = f"this `{opening.text}` is never closed"
            help_ = f"add a `{closing}`"
            self.complaints.error("SPL109", message, self._span(opening), "", help_, related=related)
        self.line.broken = True

    def _end_line(self) -> None:
        if self.line.tokens:
            self.found[-1].lines.append(self.line)
        self.line = Line()
        self.brackets = []
        self.positions = []

    def _span(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)


def is_word(kind: str) -> bool:
    """Whether a token kind is a reserved word of the language."""
    return kind in tables().words.values() or kind in ("SUBJECT_TO", "ASSUME_CONVEX")

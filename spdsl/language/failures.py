"""A place where a statement can't be parsed, and what to say about it: the values that the rules pass around.

In: the tokens of a statement and what the tables would have accepted. Out: `Failure` for the rules, `Answer` from them.
"""

from __future__ import annotations

from typing import NamedTuple

from spdsl.diagnostics import Source, Span
from spdsl.language.layout import Line
from spdsl.language.lexer import Token
from spdsl.language.record import Record
from spdsl.language.tables import END

__all__ = ["FORMS", "OPERANDS", "OPERATORS", "TYPES", "Answer", "Failure"]

TYPES = ("scalar", "vector", "matrix", "labels", "symmetric", "graph", "rkhs")
OPERATORS = ("SIGN", "TIMES", "CARET", "COMPARE", "IN")
OPERANDS = ("NAME", "NUMBER", "LPAR", "STRING", "TRUE", "FALSE", "PIECEWISE")

FORMS = {
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

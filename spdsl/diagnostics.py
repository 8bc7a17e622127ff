"""The one error type of spdsl: a list of diagnostics, each with a code, a place, a cause and a mend.

In: facts found by the parser, the checker, the data binder, the dispatcher or a back end. Out: values that
`spdsl.view.messages` (terminal) and `str(error)` (Python) render. Nothing here prints.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from spdsl.codes import CODES

__all__ = [
    "CODES",
    "DataError",
    "Diagnostic",
    "InternalError",
    "ModelError",
    "Related",
    "Severity",
    "SolverError",
    "Source",
    "Span",
    "SpdslError",
    "SpdslWarning",
    "UsageError",
    "nearest_name",
    "render",
]


class Severity(Enum):
    """How serious a diagnostic is; only errors stop a run."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Source:
    """A text with a name, and the offsets at which its lines start."""

    name: str
    text: str
    line_starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(i + 1 for i, character in enumerate(self.text) if character == "\n")
        object.__setattr__(self, "line_starts", tuple(starts))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) of a character offset."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect.bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its end."""
        if not 1 <= number <= len(self.line_starts):
            return ""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end]


class Span(NamedTuple):
    """Characters `start <= offset < end` of a source."""

    source: Source
    start: int
    end: int

    def __repr__(self) -> str:
        return f"Span({self.start}, {self.end})"

    def to(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        """The characters covered."""
        return self.source.text[self.start : self.end]


@dataclass(frozen=True)
class Related:
    """A second place that belongs to the same complaint, with a few words on its part in it."""

    span: Span | None
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One complaint.

    Attributes
    ----------
    code : str
        A key of `CODES`, such as ``"SPL203"``.
    message : str
        The cause, in one sentence without a full stop.
    span : Span or None
        The place in a model file.
    place : str
        A place elsewhere, such as ``"diabetes.csv:14, column 'bmi'"``; used when there is no span.
    label : str
        A few words after the carets.
    help : tuple of str
        The mends, each one line.
    related : tuple of Related
        Other places of the same complaint.
    """

    code: str
    message: str
    span: Span | None = None
    place: str = ""
    label: str = ""
    help: tuple[str, ...] = ()
    related: tuple[Related, ...] = ()
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"diagnostic code {self.code} is not in spdsl.diagnostics.CODES")


class SpdslError(Exception):
    """Everything that spdsl refuses to do, as a tuple of diagnostics; `str()` renders them."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        )
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n\n".join(render(item) for item in self.diagnostics)


class ModelError(SpdslError):
    """The model file is wrong (command line: exit code 1)."""


class DataError(SpdslError, ValueError):
    """The data do not fit the model (exit code 1)."""


class UsageError(SpdslError, ValueError):
    """A call or an option is wrong (exit code 2)."""


class SolverError(SpdslError, RuntimeError):
    """No back end can solve the problem, or one had to give up with nothing to show (exit code 1 or 3)."""


class SpdslWarning(UserWarning):
    """What `warnings.warn` is given for everything that spdsl does all the same, but that a user should know."""


class InternalError(SpdslError, RuntimeError):
    """A bug in spdsl (exit code 70)."""


def nearest_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a user most likely meant by a misspelt `name`, or None.

    A candidate counts when its edit distance is at most ``min(len(name) / 2, 5)`` (as stanc3 does), or when only the
    case of letters differs.
    """
    candidates = list(candidates)
    folded = [candidate for candidate in candidates if candidate != name and candidate.lower() == name.lower()]
    if folded:
        return folded[0]
    limit = min(len(name) // 2, 5)
    scored = [(edit_distance(name, candidate, limit), candidate) for candidate in candidates if candidate != name]
    near = [(distance, candidate) for distance, candidate in scored if distance <= limit]
    if not near:
        return None
    import difflib

    best = min(distance for distance, _ in near)
    tied = [candidate for distance, candidate in near if distance == best]
    return max(tied, key=lambda candidate: difflib.SequenceMatcher(None, name, candidate).ratio())


def edit_distance(left: str, right: str, limit: int) -> int:
    """Levenshtein distance with swaps of neighbours, or ``limit + 1`` when it is larger than `limit`."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before, previous = previous, row
    return min(previous[-1], limit + 1)


def render(diagnostic: Diagnostic) -> str:
    """The diagnostic as plain text in the layout of rustc: head, place, line with carets, helps."""
    head = f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"
    if diagnostic.span is not None:
        gutter = max(
            [len(str(diagnostic.span.source.position(diagnostic.span.start)[0]))]
            + [len(str(r.span.source.position(r.span.start)[0])) for r in diagnostic.related if r.span is not None]
        )
        lines = [head, *_excerpt(diagnostic.span, diagnostic.label, "^", "-->", gutter)]
        last = _row(diagnostic.span)
    else:
        gutter, last = 1, None
        lines = [head] + ([f"  --> {diagnostic.place}"] if diagnostic.place else [])
    for related in diagnostic.related:
        if related.span is None:
            lines.append(f"{' ' * gutter} = note: {related.text}")
            continue
        excerpt = _excerpt(related.span, related.text, "-", ":::", gutter)
        # On the line that is shown already only the marks are new.
        lines.extend(excerpt[-1:] if _row(related.span) == last else excerpt)
        last = _row(related.span)
    if diagnostic.span is not None and diagnostic.help:
        lines.append(f"{' ' * gutter} |")
    lines.extend(f"help: {text}" for text in diagnostic.help)
    return "\n".join(lines)


def _row(span: Span) -> tuple[str, int]:
    return span.source.name, span.source.position(span.start)[0]


def _excerpt(span: Span, label: str, mark: str, arrow: str, gutter: int) -> list[str]:
    line_number, column = span.source.position(span.start)
    text = span.source.line(line_number)
    width = max(1, min(span.end, span.start + len(text) - column + 1) - span.start)
    shown, column, width = _clip(text, column, width)
    pad = " " * gutter
    carets = f"{' ' * (column - 1)}{mark * width} {label}".rstrip()
    return [
        f"{pad}{arrow} {span.source.name}:{line_number}:{span.source.position(span.start)[1]}",
        f"{pad} |",
        f"{line_number:>{gutter}} | {shown}",
        f"{pad} | {carets}",
    ]


def _clip(text: str, column: int, width: int, limit: int = 110) -> tuple[str, int, int]:
    """Show at most `limit` characters of a line, around the column; tabs count as one space."""
    text = text.replace("\t", " ")
    if len(text) <= limit:
        return text, column, width
    left = max(0, min(column - 1 - limit // 3, len(text) - limit))
    shown = text[left : left + limit]
    shift = 0
    if left > 0:
        shown, shift = "..." + shown, 3
    if left + limit < len(text):
        shown += "..."
    column = column - left + shift
    return shown, column, max(1, min(width, limit + shift - column + 1))

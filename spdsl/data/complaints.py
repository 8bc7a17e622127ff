"""Complaints about data: collected, so that one run reports them all, and raised together.

In: codes, sentences and places found while reading and binding. Out: one `DataError` with up to 20 diagnostics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spdsl.diagnostics import DataError, Diagnostic, Related

__all__ = ["Complaints", "Spot", "counted", "listed"]

MOST = 20


@dataclass
class Complaints:
    """Diagnostics gathered so far; `notes` are remarks that are no errors (dropped self-loops, skipped columns)."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self, code: str, message: str, place: str = "", help: Sequence[str] = (), related: Sequence[str] = ()
    ) -> None:
        """One more complaint."""
        others = tuple(Related(None, text) for text in related)
        item = Diagnostic(code, message, place=place, help=tuple(help), related=others)
        if item not in self.diagnostics:
            self.diagnostics.append(item)

    def note(self, text: str) -> None:
        """One more remark."""
        if text not in self.notes:
            self.notes.append(text)

    def raise_if_any(self) -> None:
        """Raise what was gathered, the first 20 of it.

        Raises
        ------
        DataError
            When there is any complaint.
        """
        if not self.diagnostics:
            return
        shown = self.diagnostics[:MOST]
        hidden = len(self.diagnostics) - len(shown)
        if hidden:
            last = shown[-1]
            more = Related(None, f"{counted(hidden, 'more complaint')} not shown")
            shown[-1] = Diagnostic(
                last.code, last.message, place=last.place, help=last.help, related=(*last.related, more)
            )
        raise DataError(shown)


@dataclass(frozen=True)
class Spot:
    """What a value is bound to and where it comes from, for messages.

    `name` is the model's name, `declared` its type as declared ("vector(n)"), `source` a file or "".
    """

    name: str
    declared: str
    source: str = ""
    columns: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The place of the whole value."""
        return self.source or f"argument `{self.name}`"

    def cell(self, row: int, column: int | None = None) -> str:
        """The place of one entry (rows and columns of arrays count from 0, as in Python)."""
        text = f"{self.place}, row {row}"
        if column is not None:
            named = column < len(self.columns)
            text += f", column {self.columns[column]!r}" if named else f", column {column}"
        return text + " (counted from 0)"


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    plural = noun if number == 1 else noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number} {plural}"


def listed(names: Sequence[object], most: int = 12) -> str:
    """Names with commas, the first `most` of them."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")

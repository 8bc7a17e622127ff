"""Tables of named columns, the common form of CSV, Parquet and data frames; vectors and matrices made of their columns.

In: columns as a reader left them, with each flawed cell noted. Out: float64 arrays, or complaints about the cells of
the columns that are used (flaws in columns that nothing uses are nobody's trouble).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdsl.data.complaints import Complaints, Spot, counted, listed
from spdsl.problem.functions import Array

__all__ = ["Column", "Columns", "Fault", "Table", "columns_to_matrix", "columns_to_raw", "columns_to_vector"]

SHOWN = 5  # flawed cells kept for each kind


@dataclass(frozen=True)
class Fault:
    """One flawed cell: `kind` is ``missing``, ``infinite`` or ``text``."""

    kind: str
    row: int
    text: str


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    numbers : float64 array (n,) or None
        None for a column of text; NaN where a cell is flawed.
    raw : array (n,)
        The values as they stand (text, booleans, numbers): what labels are made of.
    faults : tuple of Fault
        The first few flawed cells of each kind.
    counts : dict
        How many there are of each kind.
    """

    name: str
    numbers: Array | None = field(repr=False)
    raw: Any = field(repr=False)
    faults: tuple[Fault, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_numeric(self) -> bool:
        """Numbers, possibly with flaws."""
        return self.numbers is not None


@dataclass(frozen=True)
class Table:
    """Columns of one length. `source` is a file's name or an argument's; `where(row)` the place of a row."""

    source: str
    columns: tuple[Column, ...]
    n_rows: int
    where: Callable[[int], str] = field(repr=False, compare=False)
    stem: str = ""
    has_header: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def part_names(self) -> tuple[str, ...]:
        """What `NAME=SOURCE` can refer to."""
        return self.names

    def index(self, name: str) -> int | None:
        """The position of a column."""
        return next((k for k, column in enumerate(self.columns) if column.name == name), None)


@dataclass(frozen=True)
class Columns:
    """Some columns of a table, in order: what a datum is bound to."""

    table: Table
    indices: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.table.columns[k].name for k in self.indices)

    @property
    def described(self) -> str:
        """In words: ``column 'target'``, ``columns 'age' .. 's6' (10)``."""
        names = self.names
        if len(names) == 1:
            return f"column {names[0]!r}"
        return f"columns {names[0]!r} .. {names[-1]!r} ({len(names)})"


def columns_to_matrix(columns: Columns, spot: Spot, complaints: Complaints) -> Array | None:
    """The columns side by side (n, d). None after a complaint."""
    chosen = [columns.table.columns[k] for k in columns.indices]
    if not chosen or columns.table.n_rows == 0:
        what = "columns" if not chosen else "rows"
        complaints.add("SPL427", f"`{spot.name}` has no {what}", columns.table.source)
        return None
    sound = [_is_sound(column, columns.table, spot, complaints) for column in chosen]
    if not all(sound):
        return None
    matrix = np.empty((columns.table.n_rows, len(chosen)))
    for k, column in enumerate(chosen):
        assert column.numbers is not None
        matrix[:, k] = column.numbers
    return matrix


def columns_to_vector(columns: Columns, spot: Spot, complaints: Complaints) -> Array | None:
    """The one column as a vector (n,). None after a complaint."""
    column = _only(columns, spot, complaints)
    if column is None or not _is_sound(column, columns.table, spot, complaints):
        return None
    assert column.numbers is not None
    return np.ascontiguousarray(column.numbers)


def columns_to_raw(columns: Columns, spot: Spot, complaints: Complaints) -> Any:
    """The one column's values as they stand (n,), for labels. None after a complaint."""
    column = _only(columns, spot, complaints)
    return None if column is None else column.raw


def _only(columns: Columns, spot: Spot, complaints: Complaints) -> Column | None:
    if columns.table.n_rows == 0:
        complaints.add("SPL427", f"`{spot.name}` has no entries", columns.table.source)
        return None
    if len(columns.indices) != 1:
        complaints.add(
            "SPL411",
            f"`{spot.name}` is declared {spot.declared}, which takes one column, but it is bound to "
            f"{len(columns.indices)}: {listed(columns.names)}",
            columns.table.source,
        )
        return None
    return columns.table.columns[columns.indices[0]]


def _is_sound(column: Column, table: Table, spot: Spot, complaints: Complaints) -> bool:
    """Complain about each kind of flaw in a column; True when there is none."""
    if column.numbers is None:
        helps = [f"bind `{spot.name}` to columns of numbers, as in `--bind {spot.name}=COLUMN`"]
        if len(spot.declared) and spot.declared.startswith("vector"):
            helps = [f"if it names two classes, declare `{spot.name} : labels(n)`"]
        example = _text_example(column)
        complaints.add(
            "SPL418",
            f"`{spot.name}` needs numbers, but column {column.name!r} holds text{example}",
            table.source,
            helps,
        )
        return False
    for kind, count in column.counts.items():
        faults = [fault for fault in column.faults if fault.kind == kind]
        code, message, helps = _worded(kind, count, faults[0], column)
        place = f"{table.where(faults[0].row)}, column {column.name!r}"
        others = [f"also at {table.where(fault.row)}" for fault in faults[1:]]
        if count > len(faults):
            others.append(f"and {count - len(faults)} more")
        complaints.add(code, message, place, helps, others)
    return not column.counts


def _text_example(column: Column) -> str:
    first = next((str(item) for item in column.raw[:100].tolist() if item not in (None, "")), "")
    return f", such as {first!r}" if first else ""


def _worded(kind: str, count: int, first: Fault, column: Column) -> tuple[str, str, list[str]]:
    if kind == "missing":
        shown = f" ({first.text!r})" if first.text.strip() else ""
        noun = "a missing value" if count == 1 else counted(count, "missing value")
        return (
            "SPL409",
            f"column {column.name!r} has {noun}{shown}",
            ["drop these rows or fill the gaps; spdsl doesn't guess values"],
        )
    if kind == "infinite":
        noun = "an infinite value" if count == 1 else counted(count, "infinite value")
        return (
            "SPL410",
            f"column {column.name!r} has {noun} ({first.text})",
            ["replace it by a finite number, or drop the row"],
        )
    noun = "text" if count == 1 else f"text in {counted(count, 'row')}"
    helps = ["leave the column out by naming the ones to use, as in `--bind X=a,b,c`"]
    if first.text.count(",") == 1 and first.text.replace(",", "").strip("-+ ").isdigit():
        helps = ["write numbers with a decimal point and without thousands separators"]
    return "SPL408", f"column {column.name!r} has {noun} where a number is needed: {first.text!r}", helps

"""Reads CSV, TSV and other delimited text as tables: fast when all is well, cell by cell when something isn't.

In: a path. Out: a `Table` in which every flawed cell is known by its line; or complaints.
Rows count as the file's lines. The first line is a header unless all of it are numbers; without one the columns are
called c1, c2, ... NumPy's C reader (pyarrow's for large files, where it is installed) takes finite numbers; anything
else goes through the csv module.
"""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spdsl.data.complaints import Complaints, counted
from spdsl.data.tables import SHOWN, Column, Fault, Table
from spdsl.data.text_files import HEAD, UnreadableError, head_of, open_binary, open_text, records

__all__ = ["MISSING", "detect_delimiter", "is_number", "read_csv"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "#n/a", "-nan", "<na>"})
CHUNK = 8192
SAMPLE = 25
LARGE = 1 << 24  # bytes


def read_csv(path: Path, complaints: Complaints, delimiter: str | None = "") -> Table | None:
    """A delimited text file as a table. None after a complaint.

    `delimiter` "" means: find out; None is any white space.
    """
    head = head_of(path, complaints)
    if head is None:
        return None
    try:
        with open_text(path, complaints) as text:
            if delimiter == "":
                delimiter = detect_delimiter(text.read(HEAD))
        with open_text(path, complaints) as text:
            first = list(itertools.islice(records(text, delimiter), SAMPLE))
        header = _header(first[:2], path.name, complaints)
        if header is None:
            return None
        names, skip = header
        wordy = _text_columns([cells for _, cells in first[skip:]], len(names))
        fast = _read_fast(path, names, skip, delimiter, wordy) if len(names) > 1 else None
        if fast is not None:
            return fast
        return _read_carefully(path, names, skip, delimiter, complaints)
    except UnreadableError:
        return None


def detect_delimiter(sample: str) -> str | None:
    """The one of ``, ; tab |`` that splits the first lines most evenly, or None for white space."""
    lines = sample.splitlines()
    if len(sample) == HEAD and len(lines) > 1:
        lines.pop()  # cut short
    text = "\n".join([line for line in lines if line.strip()][:SAMPLE])
    best, most = "", 1
    for candidate in (",", ";", "\t", "|"):
        lengths = [len(record) for _, record in records(io.StringIO(text), candidate)]
        even = len(set(lengths)) == 1
        if even and lengths[0] > most:
            best, most = candidate, lengths[0]
    if best:
        return best
    spaced = [len(line.split()) for line in text.splitlines()]
    if len(set(spaced)) == 1 and spaced and spaced[0] > 1 and not any(mark in text for mark in ',;\t|"'):
        return None
    counts = {mark: text.partition("\n")[0].count(mark) for mark in (",", ";", "\t", "|")}
    return max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else ","


def is_number(cell: str) -> bool:
    """Does the cell hold a number (infinities count, missing values don't)?"""
    if "_" in cell:
        return False
    try:
        value = float(cell)
    except ValueError:
        return False
    return value == value


# -- header ----------------------------------------------------------------------------------------------------------


def _header(first: list[tuple[int, list[str]]], source: str, complaints: Complaints) -> tuple[list[str], int] | None:
    """The columns' names, and how many records to skip. None after a complaint."""
    if not first:
        complaints.add("SPL403", "the file is empty", source)
        return None
    cells = [cell.strip() for cell in first[0][1]]
    numeric = [is_number(cell) for cell in cells]
    if all(good or cell.lower() in MISSING for good, cell in zip(numeric, cells)) and any(numeric):
        return [f"c{k}" for k in range(1, len(cells) + 1)], 0
    if len(first) < 2:
        complaints.add("SPL404", "the file has a header but no rows", source)
        return None
    following = [is_number(cell) for cell in first[1][1]]
    if any(numeric) and numeric == following:
        complaints.add(
            "SPL416",
            "it isn't clear whether the first line is a header: it mixes numbers and text just as the next one does",
            f"{source}:{first[0][0]}",
            ["put a line of column names above it (names that aren't numbers)"],
        )
        return None
    if cells and not cells[-1] and len(cells) > 1:
        cells[-1] = f"c{len(cells)}"
    names = [cell or f"c{k}" for k, cell in enumerate(cells, 1)]
    seen: dict[str, int] = {}
    for k, name in enumerate(names, 1):
        if name in seen:
            complaints.add(
                "SPL407",
                f"two columns are called {name!r}: columns {seen[name]} and {k}",
                f"{source}:{first[0][0]}",
                ["rename one of them"],
            )
        seen.setdefault(name, k)
    return None if len(seen) < len(names) else (names, 1)


# -- the fast way ----------------------------------------------------------------------------------------------------


def _text_columns(rows: list[list[str]], width: int) -> list[int]:
    """Columns that hold text, never a number, in the first rows."""
    rows = [row for row in rows if len(row) == width]
    return [
        k
        for k in range(width)
        if not any(is_number(row[k].strip()) for row in rows)
        and any(row[k].strip().lower() not in MISSING for row in rows)
    ]


def _read_fast(path: Path, names: list[str], skip: int, delimiter: str | None, wordy: list[int]) -> Table | None:
    """The table when every cell is a finite number, but for the columns of text; None to have it read carefully."""
    wanted = [k for k in range(len(names)) if k not in wordy]
    if not wanted:
        return None
    values = _by_pyarrow(path, names, skip, delimiter, wanted) if path.stat().st_size > LARGE else None
    if values is None:
        values = _by_numpy(path, skip, delimiter, wanted if wordy else None)
    if values is None:
        return None
    if values.shape[1] != len(wanted) or not values.shape[0] or not np.isfinite(values).all():
        return None
    numbers = {k: values[:, at] for at, k in enumerate(wanted)}
    texts = _read_texts(path, wordy, skip, delimiter, len(names))
    if texts is None or any(len(cells) != len(values) for cells in texts.values()):
        return None
    if any(is_number(cell) for cells in texts.values() for cell in set(cells.tolist())):
        return None
    columns = tuple(Column(name, numbers.get(k), texts.get(k, numbers.get(k))) for k, name in enumerate(names))
    return Table(
        path.name, columns, len(values), _lazy_lines(path, skip, delimiter), path.name.partition(".")[0], skip == 1
    )


def _by_numpy(path: Path, skip: int, delimiter: str | None, wanted: list[int] | None) -> Any:
    """The wanted columns (all when None) as one array, by NumPy's C reader; None when anything in them is no number."""
    try:
        with open_text(path, Complaints()) as text, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(skip):
                _skip_record(text)
            return np.loadtxt(text, delimiter=delimiter, comments=None, quotechar='"', ndmin=2, usecols=wanted)
    except (ValueError, UnreadableError, OverflowError):
        return None


def _by_pyarrow(path: Path, names: list[str], skip: int, delimiter: str | None, wanted: list[int]) -> Any:
    """The same for large files, several times as fast, where pyarrow is installed and the file is plain."""
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None
    if delimiter is None:
        return None
    chosen = [names[k] for k in wanted]
    try:
        with open_binary(path) as stream:
            table = pyarrow.csv.read_csv(
                stream,
                pyarrow.csv.ReadOptions(column_names=names, skip_rows=skip, use_threads=False),
                pyarrow.csv.ParseOptions(delimiter=delimiter),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(chosen, pyarrow.float64()), include_columns=chosen, null_values=[]
                ),
            )
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        return None
    values = np.empty((table.num_rows, len(chosen)))
    for at, column in enumerate(table.columns):
        values[:, at] = column.to_numpy()
    return values


def _skip_record(text: Any) -> None:
    """Read past the header; a header with line breaks inside quotes is left to the careful way."""
    line = text.readline()
    while line and not line.strip():
        line = text.readline()
    if line.count('"') % 2:
        raise ValueError("a quoted line break in the header")


def _lazy_lines(path: Path, skip: int, delimiter: str | None) -> Callable[[int], str]:
    """The place of a row, found by reading the file again when it is first asked for."""
    lines: list[int] = []

    def where(row: int) -> str:
        if not lines:
            with open_text(path, Complaints()) as text:
                lines.extend(line for line, _ in itertools.islice(records(text, delimiter), skip, None))
        return f"{path.name}:{lines[row]}"

    return where


# -- the careful way -------------------------------------------------------------------------------------------------


@dataclass
class _Growing:
    """A column while it is read."""

    parts: list[Any] = field(default_factory=list)
    n_numbers: int = 0
    faults: list[Fault] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def take(self, cells: tuple[str, ...], start: int) -> None:
        """Append the cells of one chunk, whose first row is `start`."""
        values: Any
        try:
            if "_" in "".join(cells):
                raise ValueError
            values = np.array(list(map(float, cells)))
        except ValueError:
            values = None
        if values is None or not np.isfinite(values).all():
            values = np.array([self._cell(cell, start + k) for k, cell in enumerate(cells)])
        else:
            self.n_numbers += len(cells)
        self.parts.append(values)

    def _cell(self, cell: str, row: int) -> float:
        text = cell.strip()
        if is_number(text):
            value = float(text)
            self.n_numbers += 1
            if np.isfinite(value):
                return value
            self._fault("infinite", row, text)
        else:
            self._fault("missing" if text.lower() in MISSING else "text", row, text)
        return float("nan")

    def _fault(self, kind: str, row: int, text: str) -> None:
        count = self.counts.get(kind, 0)
        if count < SHOWN:
            self.faults.append(Fault(kind, row, text))
        self.counts[kind] = count + 1

    @property
    def is_numeric(self) -> bool:
        """At least half of what is there are numbers, or nothing is there."""
        return self.n_numbers >= self.counts.get("text", 0)


def _read_carefully(
    path: Path, names: list[str], skip: int, delimiter: str | None, complaints: Complaints
) -> Table | None:
    growing = [_Growing() for _ in names]
    lines: list[int] = []
    ragged: list[tuple[int, int]] = []
    n_ragged = 0
    with open_text(path, complaints) as text:
        stream = itertools.islice(records(text, delimiter, len(names)), skip, None)
        while chunk := list(itertools.islice(stream, CHUNK)):
            sound = [(line, cells) for line, cells in chunk if len(cells) == len(names)]
            if len(sound) < len(chunk):
                wrong = [(line, len(cells)) for line, cells in chunk if len(cells) != len(names)]
                n_ragged += len(wrong)
                ragged.extend(wrong[: SHOWN - len(ragged)])
            if sound:
                start = len(lines)
                lines.extend(line for line, _ in sound)
                for column, cells in zip(growing, zip(*(cells for _, cells in sound), strict=True), strict=True):
                    column.take(cells, start)
    if ragged:
        _complain_of_ragged(path.name, len(names), skip == 1, ragged, n_ragged, complaints)
        return None
    if not lines:
        complaints.add("SPL404", "the file has a header but no rows", path.name)
        return None
    wordy = [k for k, column in enumerate(growing) if "text" in column.counts]
    texts = _read_texts(path, wordy, skip, delimiter, len(names)) or {}
    columns = [
        Column(
            name,
            (numbers := np.concatenate(column.parts)) if column.is_numeric else None,
            texts.get(k, numbers if column.is_numeric else None),
            tuple(column.faults),
            column.counts,
        )
        for k, (name, column) in enumerate(zip(names, growing))
    ]
    last = columns[-1]
    if len(columns) > 1 and last.name == f"c{len(columns)}" and last.counts.get("missing") == len(lines):
        columns.pop()  # every line ends in a delimiter
    where = np.array(lines)
    return Table(
        path.name,
        tuple(columns),
        len(lines),
        lambda row: f"{path.name}:{where[row]}",
        path.name.partition(".")[0],
        skip == 1,
    )


def _read_texts(path: Path, wanted: list[int], skip: int, delimiter: str | None, width: int) -> dict[int, Any] | None:
    """The cells of the columns that hold text, as object arrays; equal texts share one object. None if ragged."""
    if not wanted:
        return {}
    pool: dict[str, str] = {}
    cells: dict[int, list[str]] = {k: [] for k in wanted}
    with open_text(path, Complaints()) as text:
        for _, record in itertools.islice(records(text, delimiter, width), skip, None):
            if len(record) != width:
                return None
            for k in wanted:
                cell = record[k].strip()
                cells[k].append(pool.setdefault(cell, cell))
    return {k: np.array(texts, dtype=object) for k, texts in cells.items()}


def _complain_of_ragged(
    source: str, width: int, has_header: bool, ragged: list[tuple[int, int]], count: int, complaints: Complaints
) -> None:
    line, length = ragged[0]
    reference = "the header has" if has_header else "the first line has"
    complaints.add(
        "SPL405",
        f"this line has {counted(length, 'cell')}, but {reference} {width}"
        + (f" ({count} such lines in all)" if count > 1 else ""),
        f"{source}:{line}",
        ["a text that contains the delimiter must stand in double quotes"] if length > width else (),
        [f"also {source}:{at} ({counted(n, 'cell')})" for at, n in ragged[1:]],
    )

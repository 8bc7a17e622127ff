"""Data frames and Parquet files as tables, through narwhals (pandas, polars, pyarrow and whatever else it knows).

In: a frame, a series or a path. Out: a `Table`; a missing package is a complaint that says how to install it.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from spdsl.data.complaints import Complaints
from spdsl.data.tables import SHOWN, Column, Fault, Table

__all__ = ["frame_to_table", "is_frame", "read_parquet"]

LIBRARIES = {"pandas", "polars", "pyarrow", "modin", "cudf", "dask", "ibis", "duckdb", "pyspark", "narwhals"}


def is_frame(value: Any) -> bool:
    """Is it a data frame or a series of a library that narwhals knows?"""
    if type(value).__module__.partition(".")[0] not in LIBRARIES:
        return False
    return hasattr(value, "columns") or hasattr(value, "to_numpy") or hasattr(value, "column_names")


def frame_to_table(value: Any, source: str, complaints: Complaints) -> Table | None:
    """The frame's columns; a series becomes a table of one. None after a complaint."""
    import narwhals as nw

    try:
        frame = nw.from_native(value, allow_series=True)
    except TypeError as error:
        complaints.add("SPL418", f"this frame can't be read: {error}", source)
        return None
    except ValueError as error:
        complaints.add("SPL407", f"this frame can't be read: {error}", source, ["give every column a name of its own"])
        return None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    series = [frame] if isinstance(frame, nw.Series) else [frame[name] for name in frame.columns]
    columns = tuple(_column(item) for item in series)
    n_rows = len(series[0]) if series else 0
    return Table(source, columns, n_rows, lambda row: f"{source}, row {row} (counted from 0)")


def _column(series: Any) -> Column:
    import narwhals as nw

    name = str(series.name)
    dtype = series.dtype
    if dtype == nw.Boolean and not series.is_null().any():
        raw = np.asarray(series.to_numpy()).astype(bool)
        return Column(name, raw.astype(float), raw)
    if dtype.is_numeric():
        missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
        raw = np.asarray(series.to_numpy())
        numbers = (
            np.array([np.nan if gap else float(item) for gap, item in zip(missing, raw)])
            if (raw.dtype == object)
            else raw.astype(np.float64)
        )
        faults, counts = _faults(numbers, missing | np.isnan(numbers))
        return Column(name, numbers, numbers if counts or raw.dtype == object else raw, faults, counts)
    return _from_items(name, [_plain(item) for item in series.to_list()])


def _from_items(name: str, items: list[Any]) -> Column:
    """A column of Python objects: of numbers when at least half of what is there are numbers, of text otherwise."""
    raw = np.empty(len(items), dtype=object)
    raw[:] = items
    numeric = np.array([isinstance(item, (int, float, Decimal)) for item in items], dtype=bool)
    missing = np.array([item is None for item in items], dtype=bool)
    if not numeric.any() or 2 * numeric.sum() < (~missing).sum():
        return Column(name, None, raw)
    numbers = np.array([float(item) if good else np.nan for item, good in zip(items, numeric)])
    faults, counts = _faults(numbers, missing | (numeric & np.isnan(numbers)))
    strange = np.flatnonzero(~numeric & ~missing)
    if len(strange):
        faults += tuple(Fault("text", int(row), str(items[row])) for row in strange[:SHOWN])
        counts["text"] = len(strange)
    return Column(name, numbers, raw, faults, counts)


def _plain(item: Any) -> Any:
    gap = item is None or (isinstance(item, float) and item != item) or type(item).__name__ in ("NAType", "NaTType")
    return None if gap else item


def _faults(numbers: Any, missing: Any) -> tuple[tuple[Fault, ...], dict[str, int]]:
    faults: list[Fault] = []
    counts: dict[str, int] = {}
    for kind, mask in (("missing", missing), ("infinite", np.isinf(numbers))):
        rows = np.flatnonzero(mask)
        if len(rows):
            counts[kind] = len(rows)
            faults.extend(Fault(kind, int(row), str(numbers[row])) for row in rows[:SHOWN])
    return tuple(faults), counts


def read_parquet(path: Path, complaints: Complaints) -> Table | None:
    """A Parquet file as a table. None after a complaint."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        complaints.add(
            "SPL422",
            "reading Parquet needs the package pyarrow, which isn't installed",
            path.name,
            ["install it with `pip install 'spdsl[frames]'`, or save the table as CSV"],
        )
        return None
    try:
        content = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        first = str(error).splitlines()[0].rstrip(".")
        complaints.add("SPL424", f"the file is no readable Parquet file: {first}", path.name)
        return None
    names = content.column_names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        complaints.add("SPL407", f"column {repeated[0]!r} occurs twice", path.name, ["rename one of them"])
        return None
    if not names:
        complaints.add("SPL403", "the file has no columns", path.name)
        return None
    if content.num_rows == 0:
        complaints.add("SPL404", "the file has columns but no rows", path.name)
        return None
    table = frame_to_table(content, path.name, complaints)
    if table is None:
        return None
    return Table(table.source, table.columns, table.n_rows, table.where, stem=path.name.partition(".")[0])

"""Reads edge lists: ``u,v[,cost]`` a line, with or without a header, node ids from 0 or node names.

In: a path. Out: an `EdgeList`, or complaints that name the line.
"""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np

from spdsl.data.complaints import Complaints, counted
from spdsl.data.csv_files import detect_delimiter, is_number
from spdsl.data.graphs import EdgeList
from spdsl.data.text_files import HEAD, UnreadableError, head_of, open_text, records

__all__ = ["looks_like_edges", "read_edge_list"]

ENDS = (
    {"u", "v"},
    {"source", "target"},
    {"from", "to"},
    {"i", "j"},
    {"tail", "head"},
    {"src", "dst"},
    {"node1", "node2"},
)


def looks_like_edges(head: bytes) -> bool:
    """Is it ``u,v[,cost]``: named so by its header, or without a header and with two whole numbers or names first?"""
    sample = head.decode("utf-8", "replace").removeprefix("\ufeff")
    rows = [
        cells for _, cells in itertools.islice(records(io.StringIO(sample, newline=""), detect_delimiter(sample)), 25)
    ]
    if len(rows) > 2:
        rows = rows[: max(2, len(rows) - 1)]
    if not rows or any(len(cells) not in (2, 3) for cells in rows):
        return False
    if _is_header(rows):
        return {cell.strip().lower() for cell in rows[0][:2]} in ENDS
    return all(cell.strip().isdigit() for cells in rows for cell in cells[:2])


def read_edge_list(path: Path, complaints: Complaints, first_id: int = 0) -> EdgeList | None:
    """The edges of a file; `first_id` is what its node ids count from. None after a complaint."""
    if head_of(path, complaints) is None:
        return None
    try:
        with open_text(path, complaints) as text:
            sample = text.read(HEAD)
        delimiter = detect_delimiter(sample)
        with open_text(path, complaints) as text:
            rows = list(records(text, delimiter))
    except UnreadableError:
        return None
    if rows and _is_header([cells for _, cells in rows[:25]]):
        rows = rows[1:]
        if not rows:
            complaints.add("SPL404", "the edge list has a header but no edges", path.name)
            return None
    return _edges(rows, path.name, first_id, complaints)


def _is_header(rows: list[list[str]]) -> bool:
    """Known names of the ends, a cost that is no number, or text above whole numbers."""
    first = [cell.strip() for cell in rows[0]]
    if {cell.lower() for cell in first[:2]} in ENDS and not is_number(first[-1]):
        return True
    if len(first) == 3 and not is_number(first[2]):
        return True
    numbered = len(rows) > 1 and all(cell.strip().lstrip("-").isdigit() for cells in rows[1:] for cell in cells[:2])
    return numbered and not all(cell.lstrip("-").isdigit() for cell in first[:2])


def _edges(rows: list[tuple[int, list[str]]], source: str, first_id: int, complaints: Complaints) -> EdgeList | None:
    width, stem = len(rows[0][1]), source.partition(".")[0]
    if width not in (2, 3):
        complaints.add(
            "SPL420", f"an edge list has two or three cells a line, this one has {width}", f"{source}:{rows[0][0]}"
        )
        return None
    ragged = [(line, len(cells)) for line, cells in rows if len(cells) != width]
    if ragged:
        line, length = ragged[0]
        complaints.add(
            "SPL405",
            f"this line has {counted(length, 'cell')}, but the first edge has {width}"
            + (f" ({len(ragged)} such lines in all)" if len(ragged) > 1 else ""),
            f"{source}:{line}",
        )
        return None
    costs = None
    if width == 3:
        wrong = [(line, cells[2]) for line, cells in rows if not is_number(cells[2].strip())]
        for line, cell in wrong[:5]:
            complaints.add("SPL408", f"the cost of this edge is no number: {cell.strip()!r}", f"{source}:{line}")
        if wrong:
            return None
        costs = np.array([float(cells[2]) for _, cells in rows])
    lines = np.array([line for line, _ in rows])
    ends = [(cells[0].strip(), cells[1].strip()) for _, cells in rows]
    nameless = [line for line, pair in zip(lines.tolist(), ends) if not all(pair)]
    if nameless:
        complaints.add("SPL409", "an end of this edge is missing", f"{source}:{nameless[0]}")
        return None
    if all(end.lstrip("-").isdigit() for pair in ends for end in pair):
        try:
            ids = np.array([(int(u) - first_id, int(v) - first_id) for u, v in ends], dtype=np.int64)
        except OverflowError:
            complaints.add("SPL420", "a node id is too large", source, ["node ids count from 0, one a column"])
            return None
        return EdgeList(ids, None, costs, source, lines, stem=stem)
    return EdgeList(None, ends, costs, source, lines, stem=stem)

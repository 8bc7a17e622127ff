"""Reads LIBSVM/svmlight files: ``label index:value index:value ...`` a line, into CSR and labels.

In: a path. Out: `SparseSamples`, or complaints that name the line. Columns count from 1 in the file unless an index 0
occurs; ``qid:`` is skipped, ``#`` starts a comment. scikit-learn's reader does the work; a slower one of our own finds
what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spdsl.data.complaints import Complaints, counted
from spdsl.data.text_files import UnreadableError, head_of, open_text

__all__ = ["SparseSamples", "looks_like_svmlight", "read_svmlight"]

WIDEST = 2**31 - 1


@dataclass(frozen=True)
class SparseSamples:
    """Samples and their labels or targets, as a LIBSVM file gives them."""

    source: str
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    stem: str = ""

    @property
    def part_names(self) -> tuple[str, ...]:
        """What `NAME=SOURCE` can refer to."""
        return ("X", "y")


def looks_like_svmlight(head: bytes) -> bool:
    """Does the first line that isn't blank or a comment read ``label index:value``?"""
    for line in head.decode("utf-8", "replace").splitlines():
        tokens = line.partition("#")[0].split()
        if tokens:
            parts = [token.partition(":") for token in tokens[1:]]
            return bool(parts) and all(mark and (index.isdigit() or index == "qid") for index, mark, _ in parts)
    return False


def read_svmlight(path: Path, complaints: Complaints) -> SparseSamples | None:
    """The samples of a LIBSVM file. None after a complaint."""
    if head_of(path, complaints) is None:
        return None
    stem = path.name.partition(".")[0]
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path), dtype=np.float64)
    except (ValueError, OverflowError, OSError, EOFError):
        X = y = None
    if X is not None and len(y) and np.isfinite(X.data).all() and np.isfinite(y).all() and X.nnz:
        return SparseSamples(path.name, X, y, stem)
    try:
        found = _read_by_line(path, complaints)
    except UnreadableError:
        return None
    return None if found is None else SparseSamples(path.name, *found, stem)


@dataclass
class _Entries:
    """What the lines gave so far."""

    labels: list[float] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])


def _read_by_line(path: Path, complaints: Complaints) -> tuple[Any, Any] | None:
    """Every line checked; the first few flaws are complaints."""
    import scipy.sparse

    entries = _Entries()
    flaws: list[tuple[int, str, str]] = []
    with open_text(path, complaints) as text:
        for number, line in enumerate(text, 1):
            flaw = _take_line(line.partition("#")[0].split(), entries)
            if flaw is not None:
                flaws.append((number, *flaw))
    for number, code, message in flaws[:10]:
        complaints.add(code, message, f"{path.name}:{number}", ["a line reads `label index:value index:value ...`"])
    if len(flaws) > 10:
        complaints.note(f"{path.name} has {counted(len(flaws) - 10, 'more malformed line')}")
    if flaws:
        return None
    if not entries.labels:
        complaints.add("SPL403", "the file has no samples", path.name)
        return None
    if not entries.indices:
        complaints.add("SPL427", "the file has samples but no features", path.name)
        return None
    first = 0 if min(entries.indices) == 0 else 1
    columns = np.array(entries.indices) - first
    shape = (len(entries.labels), int(columns.max()) + 1)
    matrix = scipy.sparse.csr_array((np.array(entries.values), columns, np.array(entries.starts)), shape=shape)
    matrix.sort_indices()
    return matrix, np.array(entries.labels)


def _take_line(tokens: list[str], entries: _Entries) -> tuple[str, str] | None:
    """Append one sample; a code and a sentence when its line is wrong."""
    if not tokens:
        return None
    label = _number(tokens[0])
    if label is None:
        if ":" in tokens[0]:
            return "SPL423", f"the line has no label before {tokens[0]!r}"
        return "SPL423", f"the label {tokens[0]!r} is no number"
    if not np.isfinite(label):
        return ("SPL409" if label != label else "SPL410"), f"the label is {tokens[0]}"
    seen: set[int] = set()
    indices: list[int] = []
    values: list[float] = []
    for token in tokens[1:]:
        index, mark, value = token.partition(":")
        if index == "qid":
            continue
        number = _number(value)
        if not mark or number is None or not index.isdigit():
            return "SPL423", f"{token!r} isn't `index:value`" + (" (indices count from 0 or 1)" if mark else "")
        if not np.isfinite(number):
            return ("SPL409" if number != number else "SPL410"), f"feature {index} is {value}"
        if int(index) > WIDEST:
            return "SPL423", f"the index {index} is too large"
        if int(index) in seen:
            return "SPL423", f"the index {index} occurs twice"
        seen.add(int(index))
        indices.append(int(index))
        values.append(number)
    entries.labels.append(label)
    entries.indices.extend(indices)
    entries.values.extend(values)
    entries.starts.append(len(entries.indices))
    return None


def _number(text: str) -> float | None:
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None

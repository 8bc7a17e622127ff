"""Opens text files: plain or gzipped, UTF-8 or UTF-16 by its mark; what can't be read as text is a complaint.

In: a path. Out: a text stream and its records, each with the line that it starts on.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

from spdsl.data.complaints import Complaints
from spdsl.diagnostics import nearest_name

__all__ = ["HEAD", "UnreadableError", "complain_of_missing_file", "head_of", "open_binary", "open_text", "records"]

HEAD = 1 << 16
LONGEST_CELL = 1 << 24


class UnreadableError(Exception):
    """A file that can't be read as text; the complaint is already made."""


def complain_of_missing_file(path: Path, complaints: Complaints) -> bool:
    """True when the file can be opened; otherwise a complaint with the nearest name in its folder."""
    try:
        with open(path, "rb"):
            return True
    except FileNotFoundError:
        folder = path.parent
        beside = os.listdir(folder) if folder.is_dir() else []
        near = nearest_name(path.name, beside)
        helps = [f"did you mean `{folder / near}`?"] if near else []
        if not folder.is_dir():
            helps = [f"there is no folder `{folder}`"]
        complaints.add("SPL401", f"there is no file `{path}`", help=helps)
    except IsADirectoryError:
        complaints.add("SPL401", f"`{path}` is a folder, not a file", help=["name a file in it"])
    except OSError as error:
        complaints.add("SPL401", f"`{path}` can't be opened: {(error.strerror or str(error)).lower()}")
    return False


def open_binary(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked when gzipped (told by its first bytes, whatever its name)."""
    with open(path, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else open(path, "rb")  # type: ignore[return-value]


def head_of(path: Path, complaints: Complaints) -> bytes | None:
    """The first bytes of a text file; None after a complaint (empty, binary, damaged)."""
    try:
        with open_binary(path) as stream:
            head = stream.read(HEAD)
    except (OSError, EOFError) as error:
        complaints.add("SPL424", f"the file is damaged: {error}", path.name)
        return None
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        complaints.add("SPL403", "the file is empty", path.name)
        return None
    if b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        complaints.add("SPL406", "the file is binary, not text", path.name, ["its extension should say what it is"])
        return None
    return head


@contextmanager
def open_text(path: Path, complaints: Complaints) -> Iterator[TextIO]:
    """The file as text, line ends untouched.

    Raises
    ------
    UnreadableError
        After a complaint: not UTF-8, cut short, or with cells that no table has.
    """
    with open(path, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with open_binary(path) as stream:
        mark = stream.read(2)
    encoding = "utf-16" if mark in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    binary: Any = gzip.open(path, "rb") if packed else open(path, "rb")  # noqa: SIM115
    try:
        with io.TextIOWrapper(binary, encoding=encoding, newline="") as text:
            yield text
    except UnicodeDecodeError:
        _complain_of_encoding(path, encoding, complaints)
        raise UnreadableError from None
    except csv.Error as error:
        complaints.add("SPL405", f"the table can't be read: {error}", path.name, ["look for an unclosed quote"])
        raise UnreadableError from None
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        complaints.add("SPL424", f"the file is damaged: {error}", path.name)
        raise UnreadableError from None


def _complain_of_encoding(path: Path, encoding: str, complaints: Complaints) -> None:
    """Say on which line the first byte is that isn't UTF-8."""
    line = 0
    place = path.name
    with open_binary(path) as stream:
        for line, content in enumerate(stream, 1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                place = f"{path.name}:{line}, byte {error.start + 1}"
                break
    name = "UTF-16" if encoding == "utf-16" else "UTF-8"
    complaints.add(
        "SPL406",
        f"the file isn't {name} text",
        place,
        ["save it as UTF-8; for Latin-1: `iconv -f latin1 -t utf-8 OLD > NEW`"],
    )


def records(text: TextIO, delimiter: str | None, width: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Records, each with its first line (from 1); a delimiter of None is any white space.

    Blank lines are left out, but in a table of one column (`width` 1) a blank line above others is a missing value.
    """
    if delimiter is None:
        for line, content in enumerate(text, 1):
            cells = content.split()
            if cells:
                yield line, cells
        return
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(text, delimiter=delimiter, strict=False)
    before = 0
    blank: list[int] = []
    for record in reader:
        line, before = before + 1, reader.line_num
        if record and (len(record) > 1 or record[0].strip()):
            yield from ((at, [""]) for at in blank)
            blank.clear()
            yield line, record
        elif width == 1:
            blank.append(line)

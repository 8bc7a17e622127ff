"""From bytes to text: reads a model file and complains about what is no text of a model.

In: a path or bytes. Out: a `Source` whose lines end in `\n`, whatever the file's did.
"""

from __future__ import annotations

import os
from pathlib import Path

from spdsl.diagnostics import Diagnostic, ModelError, Source, nearest_name

__all__ = ["MAXIMUM_BYTES", "decode", "load_source", "normalize"]

MAXIMUM_BYTES = 4 * 1024 * 1024
"""A model is a page; what is larger is a data file given by mistake."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = "\ufeff"


def load_source(path: str | os.PathLike[str]) -> Source:
    """Read a model file.

    A byte order mark is dropped; CRLF and lone CR count as line ends.

    Raises
    ------
    ModelError
        The file cannot be read, is too large, binary, not UTF-8, or empty.
    """
    file = Path(path)
    name = os.fspath(path)
    try:
        if file.is_dir():
            raise _refusal("SPL100", f"`{name}` is a folder, not a model file", name, "give the path of a `.spl` file")
        size = file.stat().st_size
        if size > MAXIMUM_BYTES:
            raise _too_large(name, size)
        return decode(file.read_bytes(), name)
    except FileNotFoundError:
        raise _missing(file, name) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refusal("SPL100", f"`{name}` can't be read: {reason}", name) from None


def decode(content: bytes, name: str) -> Source:
    """The text of a model from the bytes of its file; raises as `load_source` does."""
    if len(content) > MAXIMUM_BYTES:
        raise _too_large(name, len(content))
    if content[:2] in _UTF16:
        message = "the file is UTF-16 text, and a model is UTF-8 text"
        raise _refusal("SPL102", message, name, 'save it as "UTF-8" in your editor')
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        message = "the file is binary: it holds a NUL byte, and a model is UTF-8 text"
        raise _refusal("SPL101", message, f"{name}:{line}", "data files go to `--data`, results to `spdsl plot`")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"the file is not UTF-8 text: byte {content[error.start]:#04x} can't be read"
        help_ = 'save it as "UTF-8" in your editor'
        raise _refusal("SPL102", message, f"{name}:{line}:{column}", help_) from None
    return normalize(text, name)


def normalize(text: str, name: str) -> Source:
    """A source from any text: no byte order mark, `\n` at the ends of lines."""
    text = text.removeprefix(_BOM)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    size = len(text)
    if size > MAXIMUM_BYTES:
        raise _too_large(name, size)
    return Source(name, text)


def _too_large(name: str, size: int) -> ModelError:
    message = f"the file has {size / 1e6:.1f} MB, and a model is at most {MAXIMUM_BYTES / 1e6:.1f} MB"
    return _refusal("SPL103", message, name, "data files go to `--data`; long sums are written with `@` and `sum`")


def _missing(file: Path, name: str) -> ModelError:
    helps: list[str] = []
    try:
        models = sorted(item.name for item in file.parent.iterdir() if item.suffix == ".spl")
    except OSError:
        models = []
    nearest = nearest_name(file.name, models) or nearest_name(file.name + ".spl", models)
    if file.name + ".spl" in models:
        nearest = file.name + ".spl"
    if nearest:
        helps.append(f"did you mean `{file.parent / nearest}`?")
    return _refusal("SPL100", f"there is no file `{name}`", name, *helps)


def _refusal(code: str, message: str, place: str, *helps: str) -> ModelError:
    return ModelError(Diagnostic(code, message, place=place, help=helps))

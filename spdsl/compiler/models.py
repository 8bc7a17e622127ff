"""The cache of whole models: a text that was compiled before is ready without parser, checker or sympy.

In: a model's bytes and name. Out: the pickled `Problem` of last time, or a fresh compilation. The key holds the text
and every source file of the rooms that take part, so that an update of spdsl never meets an old model. Like Python's
own `.pyc` files the cache is the user's: it is trusted as much as the program.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdsl import __version__
from spdsl.cache import read_entry, write_entry

if TYPE_CHECKING:
    from spdsl.problem import Problem

__all__ = ["fingerprint", "keep", "known"]

Facts = Mapping[str, float] | None

ROOMS = ("", "problem", "language", "compiler", "grammars")


@functools.cache
def fingerprint() -> tuple[Any, ...]:
    """Changes when spdsl's version or a source file of the rooms from text to problem does."""
    root = Path(__file__).parent.parent
    found: list[Any] = [__version__]
    for room in ROOMS:
        for entry in sorted(os.scandir(root / room), key=lambda item: item.name):
            if entry.name.endswith((".py", ".lark")):
                status = entry.stat()
                found.append((room, entry.name, status.st_size, status.st_mtime_ns))
    return tuple(found)


def known(text: str, name: str, parameters: Facts) -> Problem | None:
    """The problem that this text gave before (for these parameters), or None."""
    stored = read_entry(_entry(text, name, parameters))
    if stored is None:
        return None
    try:
        problem = pickle.loads(stored)
    except Exception:  # anything may come of bytes from a disk; the worst is to compile again
        return None
    from spdsl.problem import Problem

    return problem if isinstance(problem, Problem) else None


def keep(text: str, name: str, parameters: Facts, problem: Problem) -> None:
    """Remember a problem; a disk that can't be written is ignored."""
    write_entry(_entry(text, name, parameters), pickle.dumps(problem, protocol=5))


def _entry(text: str, name: str, parameters: Facts) -> str:
    given = sorted((parameters or {}).items())
    digest = hashlib.sha256(repr((fingerprint(), text, name, given)).encode()).hexdigest()
    return f"model_{digest[:24]}"

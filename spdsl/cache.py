"""The per-user folder for what spdsl derives once and reads often; losing it costs time, never correctness.

In: the environment. Out: a folder (which may not exist yet) and two functions that never raise on a bad disk.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from functools import cache
from pathlib import Path

__all__ = ["cache_folder", "read_entry", "write_entry"]


def cache_folder() -> Path:
    """`SPDSL_CACHE` if set; else the platform's cache folder for the user, with `spdsl` in it."""
    chosen = os.environ.get("SPDSL_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base or Path.home() / "AppData" / "Local") / "spdsl" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "spdsl"
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "spdsl"


def read_entry(name: str) -> bytes | None:
    """The bytes written under `name`, or None when there are none or they were damaged."""
    try:
        stored = (cache_folder() / name).read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None
    payload = stored[4:]
    if len(stored) < 4 or int.from_bytes(stored[:4], "little") != zlib.crc32(payload):
        return None
    return payload


def write_entry(name: str, payload: bytes) -> None:
    """Keep bytes under `name`: whole or not at all, also when several processes write; a full or read-only disk is
    ignored.
    """
    scratch = None
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        _forget_old(folder)
        scratch = folder / f".{name}.{os.getpid()}"
        scratch.write_bytes(zlib.crc32(payload).to_bytes(4, "little") + payload)
        scratch.replace(folder / name)
    except (OSError, RuntimeError):
        if scratch is not None:
            try:
                scratch.unlink(missing_ok=True)
            except OSError:
                return


_KINDS = ("model_", "conditions_", "grammar_")
_LIFE = 90 * 86_400.0  # seconds


@cache
def _forget_old(folder: Path) -> None:
    """Delete entries that were written long ago, once in a process: what is still used gets derived again."""
    now = time.time()
    for entry in os.scandir(folder):
        if entry.name.startswith(_KINDS) and now - entry.stat().st_mtime > _LIFE:
            Path(entry.path).unlink(missing_ok=True)

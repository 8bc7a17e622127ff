"""Compiling the loops and what they include, once for all runs: numba's cache, keyed by the sources of all of them.

In: a function, numba's options. Out: the compiled function, from the user's cache folder when it was compiled before.
numba looks at the file of a function alone, so an edit of an included function in another file would go unseen; here
each state of the sources has a folder of its own. This module imports numba: import it inside functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from numba import config, njit

from spdsl.cache import cache_folder

__all__ = ["SOURCES", "compiled", "digest_of", "inner"]

SOURCES = ("compiled.py", "fast.py", "gaps.py", "kernels.py", "unchecked.py")


def compiled(*signature: Any, **options: Any) -> Callable[[Any], Any]:
    """`numba.njit` with this cache.

    Where no folder can be written the function is compiled for this process alone.
    """

    def decorate(function: Any) -> Any:
        with _own_folder():
            try:
                return njit(*signature, cache=True, error_model="numpy", **options)(function)
            except RuntimeError as error:
                if "cannot cache" not in str(error):
                    raise
                return njit(*signature, error_model="numpy", **options)(function)

    return decorate


def inner(function: Any) -> Any:
    """For what only compiled code calls: the means to call it from Python would take longer to compile than itself."""
    return compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


@contextmanager
def _own_folder() -> Iterator[None]:
    """`NUMBA_CACHE_DIR`, or else the user's cache folder, with a folder inside it for this state of the sources."""
    before = config.CACHE_DIR
    try:
        base = Path(before) if before else cache_folder() / "numba"
        config.CACHE_DIR = str(base / f"dual_averaging_{digest_of(Path(__file__).parent)}")
    except RuntimeError:  # no home folder: numba knows other places
        pass
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def digest_of(folder: Path) -> str:
    """A name for this state of the sources in a folder."""
    parts = [(folder / name).read_bytes() for name in SOURCES]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]

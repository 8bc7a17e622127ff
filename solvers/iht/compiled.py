"""The one decorator through which every kernel of this folder is compiled, so that how is decided in one place.

In: a plain Python function over arrays and numbers. Out: the same function compiled by numba, with its machine code
kept on disk where the installation allows it. No fast-math: the programs on trees backtrack by comparing sums
exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

__all__ = ["compiled"]

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, compiled on its first call; it releases the interpreter's lock while it runs."""
    try:
        return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no place on disk that can keep the machine code: compile again in every process
        return cast("Callable[P, R]", numba.njit(nogil=True)(function))

"""One BLAS thread for small systems: more only wait for one another (measured: tenfold slower at 10 to 100 unknowns)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

__all__ = ["small_systems"]

_SMALL = 400  # unknowns


def small_systems(p: int) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread when the systems have few unknowns."""
    if p > _SMALL:
        return nullcontext()
    limits: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limits


@cache
def _libraries() -> Any:
    """The BLAS libraries of the process, found once: looking for them takes as long as several steps."""
    import scipy.linalg  # brings a BLAS of its own, which has to be there when the libraries are listed
    from threadpoolctl import ThreadpoolController

    assert scipy.linalg
    return ThreadpoolController()

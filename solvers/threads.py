"""One BLAS thread for small systems: more only wait for one another (measured: tenfold slower at 10 to 100 unknowns)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["small_systems"]

_SMALL = 400  # unknowns


def small_systems(p: int) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread when the systems have few unknowns."""
    if p > _SMALL:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1, user_api="blas")
    return limits

"""Alternate convex search and the unweighted baseline: the back ends `acs` and `original`."""

from __future__ import annotations

from typing import Any

__all__ = ["AlternateSearch", "Original"]


def __getattr__(name: str) -> Any:
    if name == "AlternateSearch":
        from spdsl.solvers.alternate_search.backend import AlternateSearch

        return AlternateSearch
    if name == "Original":
        from spdsl.solvers.alternate_search.original import Original

        return Original
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

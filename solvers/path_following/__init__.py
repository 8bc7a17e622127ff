"""Exact age-paths: the back end `path_following` (GAGA, sections 3 and 4)."""

from __future__ import annotations

from typing import Any

__all__ = ["PathFollowing"]


def __getattr__(name: str) -> Any:
    if name == "PathFollowing":
        from spdsl.solvers.path_following.backend import PathFollowing

        return PathFollowing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

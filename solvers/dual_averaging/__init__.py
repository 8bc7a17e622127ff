"""Dual averaging and its relatives on large sparse linear models: O(nonzeros) steps, streams, biased gradients."""

from __future__ import annotations

from typing import Any

__all__ = ["DualAveraging"]


def __getattr__(name: str) -> Any:
    if name == "DualAveraging":
        from spdsl.solvers.dual_averaging.backend import DualAveraging

        return DualAveraging
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Readers for files and frames, and the binding of a model's names to arrays.

In: a `Problem`, arguments, paths. Out: a `BoundProblem`, or a `DataError` with every complaint and its place.
"""

from __future__ import annotations

from spdsl.data.binding import bind, rebind
from spdsl.data.graphs import Graph, grid

__all__ = ["Graph", "bind", "grid", "rebind"]

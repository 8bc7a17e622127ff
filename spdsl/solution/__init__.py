"""What back ends return: `Solution`, `Path`, `CriticalPoint`, `History` and `Status`; saving and loading.

In: arrays from a back end. Out: values by variable name, exact values at any age, tables, files.
"""

from __future__ import annotations

from collections.abc import Callable

from spdsl.solution.path import Branch, Path
from spdsl.solution.solution import Solution
from spdsl.solution.status import CriticalPoint, History, Status

__all__ = ["Branch", "CriticalPoint", "History", "Path", "ProgressCallback", "Solution", "Status"]

ProgressCallback = Callable[[float, str], None]

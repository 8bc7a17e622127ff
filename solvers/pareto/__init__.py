"""Multi-objective self-paced learning: the back end `mospl` (Li, Gong, Meng, Miao, AAAI 2016), by pymoo."""

from __future__ import annotations

from typing import Any

__all__ = ["Mospl"]


def __getattr__(name: str) -> Any:
    if name == "Mospl":
        from spdsl.solvers.pareto.backend import Mospl

        return Mospl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

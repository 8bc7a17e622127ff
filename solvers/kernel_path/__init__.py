"""Age-paths of kernel models with piecewise affine losses (SVM, quantile, epsilon-insensitive): the back end `kernel_path`."""

from __future__ import annotations

from typing import Any

__all__ = ["KernelPath"]


def __getattr__(name: str) -> Any:
    if name == "KernelPath":
        from spdsl.solvers.kernel_path.backend import KernelPath

        return KernelPath
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

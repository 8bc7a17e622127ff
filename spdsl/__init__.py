"""spdsl: a declarative language for learning problems, from a short `.spl` file to a certified age-path.

The public names are loaded on first use, so that `import spdsl` and `spdsl --version` stay fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spdsl.diagnostics import DataError, ModelError, SolverError, SpdslError, SpdslWarning, UsageError
    from spdsl.model import Model, load, load_result, parse
    from spdsl.solution import CriticalPoint, Path, Solution, Status

_HOME = {
    "DataError": "spdsl.diagnostics",
    "ModelError": "spdsl.diagnostics",
    "SolverError": "spdsl.diagnostics",
    "SpdslError": "spdsl.diagnostics",
    "SpdslWarning": "spdsl.diagnostics",
    "UsageError": "spdsl.diagnostics",
    "Model": "spdsl.model",
    "load": "spdsl.model",
    "load_result": "spdsl.model",
    "parse": "spdsl.model",
    "CriticalPoint": "spdsl.solution",
    "Path": "spdsl.solution",
    "Solution": "spdsl.solution",
    "Status": "spdsl.solution",
}

__all__ = [  # noqa: RUF022
    "load",
    "parse",
    "load_result",
    "Model",
    "Solution",
    "Path",
    "CriticalPoint",
    "Status",
    "SpdslError",
    "SpdslWarning",
    "ModelError",
    "DataError",
    "SolverError",
    "UsageError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'spdsl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])

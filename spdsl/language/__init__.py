"""The language room: text of a model file -> tree -> checked model, and back to text.

In: the text of a `.spl` file. Out: `CheckedModel`, which the compiler lowers. Imports only diagnostics. The names are
loaded on first use: a model that was compiled before needs none of the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spdsl.language.checked import CheckedModel
    from spdsl.language.checker import check
    from spdsl.language.formatter import format_model
    from spdsl.language.parser import parse
    from spdsl.language.source import load_source
    from spdsl.language.tree import Model

_HOME = {
    "CheckedModel": "checked",
    "Model": "tree",
    "check": "checker",
    "format_model": "formatter",
    "load_source": "source",
    "parse": "parser",
}

__all__ = ["CheckedModel", "Model", "check", "format_model", "load_source", "parse"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

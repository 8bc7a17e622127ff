"""The language room: text of a model file -> tree -> checked model, and back to text.

In: the text of a `.spl` file. Out: `CheckedModel`, which the compiler lowers. Imports only diagnostics.
"""

from __future__ import annotations

from spdsl.language.check import check
from spdsl.language.checked import CheckedModel
from spdsl.language.formatter import format_model
from spdsl.language.parser import parse
from spdsl.language.source import load_source
from spdsl.language.tree import Model

__all__ = ["CheckedModel", "Model", "check", "format_model", "load_source", "parse"]

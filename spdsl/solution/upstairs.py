"""Calls from a result up into rooms that lie above it: drawing it, validating it on other data.

In: the name of a room's module and function. Out: the function, imported when it is first called. A result offers
`plot` and `select` for the user's ease; the rooms themselves import downwards only, and drawing code loads when used.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["upstairs"]


def upstairs(module: str, function: str) -> Any:
    """The function of that name in a module of a higher room."""
    return getattr(importlib.import_module(module), function)

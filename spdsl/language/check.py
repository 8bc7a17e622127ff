"""Checks a tree: names, types, shapes and convexity, all complaints in one run.

In: a `tree.Model`. Out: a `checked.CheckedModel`, or a `ModelError` with up to 20 diagnostics.
"""

from __future__ import annotations

from spdsl.language.checked import CheckedModel
from spdsl.language.tree import Model

__all__ = ["check"]


def check(tree: Model) -> CheckedModel:
    """Check a model.

    Raises
    ------
    ModelError
        With every complaint found, at most 20, in the order of the file.
    """
    raise NotImplementedError

"""Small problems to bind data to, and a way to see what was complained about."""

from __future__ import annotations

from typing import Any

import pytest

from spdsl.data import bind
from spdsl.diagnostics import DataError, Diagnostic
from spdsl.problem import DataDeclaration, ParameterDeclaration, Problem, VariableDeclaration


def declared(text: str) -> DataDeclaration:
    """``"X : matrix(n, d)"`` as a declaration."""
    name, _, kind = text.partition(":")
    head, _, dims = kind.strip().partition("(")
    sizes = tuple(dim.strip() for dim in dims.rstrip(")").split(",") if dim.strip())
    return DataDeclaration(name.strip(), head, sizes)  # type: ignore[arg-type]


def model(
    *data: str,
    parameters: tuple[ParameterDeclaration, ...] = (),
    variables: tuple[VariableDeclaration, ...] = (VariableDeclaration("w", "vector", ("d",)),),
) -> Problem:
    """A problem that declares these data and has no loss."""
    return Problem("model.spl", "", tuple(map(declared, data)), parameters, variables, None)


REGRESSION = model("X : matrix(n, d)", "y : vector(n)")
CLASSIFICATION = model("X : matrix(n, d)", "y : labels(n)")
GRAPH = model("X : matrix(n, p)", "y : vector(n)", "G : graph(p)", variables=())


def complaints(problem: Problem, *arguments: Any, **options: Any) -> list[Diagnostic]:
    """What `bind` complains about."""
    with pytest.raises(DataError) as caught:
        bind(problem, *arguments, **options)
    return list(caught.value.diagnostics)


def codes(problem: Problem, *arguments: Any, **options: Any) -> list[str]:
    """The codes of what `bind` complains about."""
    return [item.code for item in complaints(problem, *arguments, **options)]


def only(problem: Problem, *arguments: Any, **options: Any) -> Diagnostic:
    """The one complaint."""
    found = complaints(problem, *arguments, **options)
    assert len(found) == 1, [item.message for item in found]
    return found[0]

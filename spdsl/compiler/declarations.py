"""Carries declarations over to the canonical problem: data, parameters, variables, age, solve request.

In: a checked model. Out: the records of `spdsl.problem`.
"""

from __future__ import annotations

from typing import Any

from spdsl.compiler.values import Lowering
from spdsl.language import tree
from spdsl.language.checked import AgeForm, CheckedModel, OptionCall, OptionValue
from spdsl.problem import Age, DataDeclaration, ParameterDeclaration, SolveRequest, VariableDeclaration
from spdsl.problem.expressions import Name, evaluate, names

__all__ = ["age_of", "declared_data", "declared_parameters", "declared_variables", "request_of"]


def declared_data(model: CheckedModel) -> tuple[DataDeclaration, ...]:
    """The names under ``data``."""
    return tuple(
        DataDeclaration(entry.name, entry.kind.value, tuple(map(str, entry.shape)))  # type: ignore[arg-type]
        for entry in model.data.values()
    )


def declared_parameters(model: CheckedModel, lowering: Lowering) -> tuple[ParameterDeclaration, ...]:
    """The names under ``parameter``."""
    return tuple(
        ParameterDeclaration(entry.name, lowering.constant(entry.default)) for entry in model.parameters.values()
    )


def declared_variables(model: CheckedModel, lowering: Lowering) -> tuple[VariableDeclaration, ...]:
    """The names under ``variable``."""
    found = []
    for entry in model.variables.values():
        kernel = None
        if entry.kernel is not None:
            arguments = tuple((name, lowering.constant(value)) for name, value in entry.kernel.arguments.items())
            kernel = (entry.kernel.name, arguments)
        points = None if entry.points is None else Name(entry.points)
        dims = tuple(map(str, entry.shape))
        found.append(VariableDeclaration(entry.name, entry.kind.value, dims, kernel, points))  # type: ignore[arg-type]
    return tuple(found)


def age_of(model: CheckedModel, lowering: Lowering) -> Age | None:
    """The age statement."""
    if model.age is None:
        return None
    low = lowering.constant(model.age.low)
    if model.age.form is AgeForm.FIXED:
        return Age(model.age.name, "fixed", low)
    return Age(model.age.name, model.age.form.value, low, lowering.constant(model.age.high))


def request_of(model: CheckedModel, lowering: Lowering) -> SolveRequest | None:
    """The solve statement; option values that are constant expressions of numbers only are evaluated."""
    if model.solve is None:
        return None
    options = {item.name: _option(item.value, lowering) for item in model.solve.options}
    return SolveRequest(model.solve.name, options)


def _option(value: OptionValue, lowering: Lowering) -> Any:
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, OptionCall):
        arguments = tuple(_option(item, lowering) for item in value.arguments)
        return (value.name, arguments, {name: _option(item, lowering) for name, item in value.options.items()})
    if isinstance(value, tree.Boolean | tree.Text):
        return value.value
    if isinstance(value, tree.Number):
        return value.value
    expression = lowering.constant(value)
    return expression if names(expression) else evaluate(expression, {})

"""What is known of a model's data, parameters and sizes before they have values: signs and typical values.

In: a checked model. Out: a `Quantity` for every name. A parameter is taken to have the sign of its default (or of the
value that it will have).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spdsl.compiler.quantities import Quantity
from spdsl.compiler.values import Lowering
from spdsl.language.checked import CheckedModel
from spdsl.language.types import Kind
from spdsl.problem.expressions import Expression, evaluate, names

__all__ = ["known_facts", "typical_value"]

TYPICAL_SIZE = 20.0


def known_facts(model: CheckedModel, parameters: Mapping[str, float] | None = None) -> dict[str, Quantity]:
    """A `Quantity` by name for everything that a formula may mention beside variables.

    `parameters` gives values that come before the model's defaults, sizes, and typical values of data.
    """
    given = parameters or {}
    facts: dict[str, Quantity] = {name: Quantity(name, "count", given.get(name, TYPICAL_SIZE)) for name in model.sizes}
    for position, (name, entry) in enumerate(model.data.items()):
        if entry.kind is Kind.LABELS:
            facts[name] = Quantity(name, "labels", 1.0, varies=True)
        elif entry.kind is not Kind.GRAPH:  # apart from one another, so that kinks at two data do not coincide
            value = given.get(name, 0.7 + 0.37 * position)
            facts[name] = Quantity(name, "real", value, varies=entry.kind is not Kind.SCALAR)
    lowering = Lowering(model)
    for name, parameter in model.parameters.items():
        value = given.get(name, typical_value(lowering.constant(parameter.default), facts))
        sign = "positive" if value > 0 else "negative" if value < 0 else "nonnegative"
        facts[name] = Quantity(name, sign, value)  # type: ignore[arg-type]
    return facts


def typical_value(expression: Expression, facts: Mapping[str, Quantity]) -> float:
    """The value of a constant expression at the typical values; nan where it has none (matrices, divisions by zero)."""
    values = {name: facts[name].reference for name in names(expression) if name in facts}
    try:
        with np.errstate(all="ignore"):
            return float(evaluate(expression, values))
    except (ValueError, TypeError, KeyError, ZeroDivisionError, OverflowError, AttributeError):
        return float("nan")

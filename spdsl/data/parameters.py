"""Parameters: defaults, values given in their place, and every complaint about these.

In: the declarations, sizes, and given values (numbers, numeric text, arrays). Out: a value for each parameter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spdsl.data.arrays import to_matrix, to_scalar, to_vector
from spdsl.data.complaints import Complaints, Spot, listed
from spdsl.data.sizes import Sizes
from spdsl.data.tables import Columns, columns_to_matrix, columns_to_vector
from spdsl.diagnostics import nearest_name
from spdsl.problem import ParameterDeclaration, Problem, evaluate

__all__ = ["bind_parameters", "complain_of_unknown"]


def bind_parameters(problem: Problem, given: Mapping[str, Any], sizes: Sizes, complaints: Complaints) -> dict[str, Any]:
    """Every parameter's value: floats, and arrays where declared so."""
    values: dict[str, Any] = {}
    for declaration in problem.parameters:
        if declaration.name in given:
            value = _given(declaration, given[declaration.name], sizes, complaints)
        else:
            value = _default(declaration, values, sizes, complaints)
        if value is not None:
            values[declaration.name] = value
    return values


def complain_of_unknown(name: str, problem: Problem, complaints: Complaints, what: str = "a value") -> None:
    """A name that the model declares neither as data nor as a parameter."""
    known = [item.name for item in problem.data] + [item.name for item in problem.parameters]
    near = nearest_name(name, known)
    is_variable = any(item.name == name for item in problem.variables)
    helps = [f"did you mean `{near}`?"] if near else []
    if is_variable:
        helps = [f"`{name}` is a variable: it is what gets solved for"]
    elif known:
        helps.append(f"the model declares {listed(known)}")
    else:
        helps.append("the model declares no data and no parameters")
    complaints.add("SPL414", f"{what} is given for `{name}`, which the model doesn't declare", help=helps)


def _given(declaration: ParameterDeclaration, value: Any, sizes: Sizes, complaints: Complaints) -> Any:
    name = declaration.name
    spot = Spot(name, _declared(declaration))
    if isinstance(value, str):
        value = _from_text(value)
    if isinstance(value, Columns):
        make = columns_to_matrix if declaration.kind == "matrix" else columns_to_vector
        value = make(value, spot, complaints)
        if value is None:
            return None
    if isinstance(value, (str, bool, np.bool_)) or value is None:
        complaints.add(
            "SPL425",
            f"the parameter `{name}` can't be {value!r}: it is a {declaration.kind}",
            help=[f"give a number, as in `{name}=0.1`"] if declaration.kind == "scalar" else (),
        )
        return None
    if declaration.kind == "scalar":
        if isinstance(value, float) and not math.isfinite(value):
            complaints.add("SPL425", f"the parameter `{name}` can't be {value}: it is a finite number")
            return None
        return to_scalar(value, spot, complaints)
    convert = to_vector if declaration.kind == "vector" else to_matrix
    array = convert(value, spot, complaints)
    if array is not None:
        for axis, (dim, length) in enumerate(zip(declaration.dims, array.shape)):
            sizes.unify(dim, int(length), name, "", axis, complaints)
    return array


def _from_text(text: str) -> Any:
    """``0.1`` and ``1, 2, 3`` as numbers; anything else stays text."""
    try:
        numbers = [float(part) for part in text.replace("_", "?").strip("[] ").split(",")]
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else np.array(numbers)


def _default(
    declaration: ParameterDeclaration, earlier: Mapping[str, Any], sizes: Sizes, complaints: Complaints
) -> Any:
    name = declaration.name
    if declaration.default is None:
        mend = f"give it: `model.solve(..., {name}=...)` in Python, `--set {name}=...` on the command line"
        complaints.add("SPL425", f"the parameter `{name}` has no value and no default", help=[mend])
        return None
    try:
        with np.errstate(all="ignore"):
            value = evaluate(declaration.default, {**sizes.values, **earlier})
    except KeyError:
        return None  # an earlier parameter or a size is missing: that has its own complaint
    except ZeroDivisionError:
        value = math.inf
    if declaration.kind == "scalar":
        value = float(value)
    if not np.all(np.isfinite(value)):
        complaints.add("SPL425", f"the default of the parameter `{name}` comes out as {value}, not a finite number")
        return None
    return value


def _declared(declaration: ParameterDeclaration) -> str:
    return declaration.kind + (f"({', '.join(declaration.dims)})" if declaration.dims else "")

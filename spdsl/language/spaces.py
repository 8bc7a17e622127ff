"""Reads `rkhs(X, kernel)`: the points and the kernel of a function space.

In: the declaration of a variable. Out: the name of the data matrix and a `Kernel`, or None after a complaint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spdsl.diagnostics import nearest_name
from spdsl.language.arguments import match_arguments, values_by_name
from spdsl.language.checked import Kernel
from spdsl.language.printer import shown
from spdsl.language.signatures import KERNELS
from spdsl.language.tree import Call, Expression, Name, TypeExpression, VariableDeclaration
from spdsl.language.types import Kind, Type

if TYPE_CHECKING:
    from spdsl.language.declarations import Declarations

__all__ = ["read_space"]


def read_space(declarations: Declarations, statement: VariableDeclaration) -> tuple[str, Kernel] | None:
    """The points and the kernel of `rkhs(X, rbf(gamma))`; None after a complaint."""
    written: TypeExpression = statement.type
    if len(written.arguments) != 2:
        message = "`rkhs` takes a data matrix and a kernel"
        declarations.complaints.error(
            "SPL208", message, written.span, "", f"write `{statement.name} : rkhs(X, rbf(gamma))`"
        )
        return None
    points, call = written.arguments
    _, points_type = declarations.elaborator.expression(points)
    if points_type is None:
        return None
    if not isinstance(points, Name) or points.name not in declarations.data or points_type.kind is not Kind.MATRIX:
        matrices = [entry.name for entry in declarations.data.values() if entry.kind is Kind.MATRIX]
        helps = [f"write `{matrices[0]}`"] if matrices else ["declare a `matrix(n, d)` in `data`"]
        message = f"a function space is over the rows of a data matrix, and `{shown(points)}` is a {points_type}"
        declarations.complaints.error("SPL208", message, points.span, f"{points_type}", *helps)
        return None
    kernel = _kernel(declarations, call, points_type)
    return None if kernel is None else (points.name, kernel)


def _kernel(declarations: Declarations, call: Expression, points: Type) -> Kernel | None:
    listed = "the kernels are `rbf(gamma)`, `polynomial(degree)`, `linear()` and `precomputed(K)`"
    if isinstance(call, Name) and call.name in KERNELS:
        form = {"rbf": "rbf(1)", "polynomial": "polynomial(3)", "precomputed": "precomputed(K)"}.get(call.name)
        help_ = f"write `{form or 'linear()'}`"
        declarations.complaints.error("SPL229", f"the kernel `{call.name}` needs brackets", call.span, "", help_)
        return None
    if not isinstance(call, Call) or call.function not in KERNELS:
        name = call.function if isinstance(call, Call) else shown(call)
        span = call.name_span if isinstance(call, Call) else call.span
        aliases = {"gaussian": "rbf", "poly": "polynomial", "gram": "precomputed", "squared_exponential": "rbf"}
        near = aliases.get(name.lower()) or nearest_name(name, list(KERNELS))
        helps = [f"did you mean `{near}`?"] if near else []
        declarations.complaints.error("SPL229", f"there is no kernel `{name}`", span, "", *helps, listed)
        return None
    parameters = KERNELS[call.function].parameters
    matched = match_arguments(call, parameters, declarations.complaints, "the kernel")
    if matched is None:
        return None
    arguments: dict[str, Expression] = {}
    for parameter in parameters:
        argument = values_by_name(parameters, matched, call)[parameter.name]
        if parameter.name == "K":
            if not _precomputed(declarations, argument, points):
                return None
            arguments["K"] = argument
            continue
        made, type_ = declarations.elaborator.number(argument, f"`{parameter.name}` of `{call.function}`")
        if type_ is None:
            return None
        declarations.elaborator.check_range(parameter, made, argument, call.function)
        arguments[parameter.name] = made
    return Kernel(call.function, arguments, span=call.span)


def _precomputed(declarations: Declarations, argument: Expression, points: Type) -> bool:
    _, type_ = declarations.elaborator.expression(argument)
    if type_ is None:
        return False
    wanted = (points.shape[0], points.shape[0])
    if not isinstance(argument, Name) or argument.name not in declarations.data or type_.shape != wanted:
        message = f"a kernel matrix is a datum of shape {wanted[0]} x {wanted[0]}, and this is a {type_}"
        help_ = f"declare it in `data`: `K : symmetric({wanted[0]})`"
        declarations.complaints.error("SPL229", message, argument.span, f"{type_}", help_)
        return False
    return True

"""The types of calls: atoms, `define`s, and functions of an RKHS at the rows of a matrix.

In: a `Call` as parsed and a scope. Out: the expanded expression and its type, or complaints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spdsl.language.arguments import match_arguments, values_by_name
from spdsl.language.atoms import check_atom
from spdsl.language.printer import shown
from spdsl.language.scope import Binding, Scope
from spdsl.language.scope import Role as NameRole
from spdsl.language.signatures import ATOMS, Parameter
from spdsl.language.tree import Call, Evaluation, Expression, Name
from spdsl.language.types import Curvature, Kind, Sign, Type
from spdsl.language.unknown import unknown_function

if TYPE_CHECKING:
    from spdsl.language.elaborate import Elaborator, Typed

__all__ = ["call_type"]


def call_type(elaborator: Elaborator, node: Call, scope: Scope) -> Typed:
    binding = scope.find(node.function)
    if binding is not None:
        if binding.role is NameRole.DEFINE:
            return _call_define(elaborator, node, binding, scope)
        if binding.type is not None and binding.type.kind is Kind.RKHS:
            return _evaluate(elaborator, node, binding, scope)
        if binding.type is not None:
            helps = []
            if node.arguments:
                argument = shown(node.arguments[0])
                factor = argument if argument.isidentifier() else f"({argument})"
                sign = "@" if len(binding.type.shape) == 2 else "*"
                helps = [f"for a product write `{node.function} {sign} {factor}`"]
            message = f"`{node.function}` is a {binding.type}, not a function"
            elaborator.error("SPL214", message, node.name_span, "", *helps)
        return node, None
    atom = ATOMS.get(node.function)
    if atom is None:
        unknown_function(elaborator, node, scope)
        return node, None
    arguments = _atom_arguments(elaborator, node, scope)
    if arguments is None:
        return node, None
    made = Call(node.function, tuple(part for part, _ in arguments), name_span=node.name_span, span=node.span)
    types = [type_ for _, type_ in arguments if type_ is not None]
    if len(types) < len(arguments):
        return made, None
    return elaborator.keep(made, *check_atom(elaborator, atom, made, types))


def _atom_arguments(elaborator: Elaborator, node: Call, scope: Scope) -> list[Typed] | None:
    """The typed arguments of an atom, by position; None after a complaint about their number or names."""
    atom = ATOMS[node.function]
    if atom.variadic:
        if node.options or not node.arguments:
            place = node.options[0].span if node.options else node.span
            message = f"`{atom.name}` takes one or more expressions"
            elaborator.error("SPL211", message, place, "", f"its form is `{atom.name}(x, y, ...)`")
            return None
        return [elaborator.numeric(argument, scope) for argument in node.arguments]
    matched = match_arguments(node, atom.parameters, elaborator.complaints, "the function")
    if matched is None:
        return None
    filled = values_by_name(atom.parameters, matched, node)
    found: list[Typed] = []
    for parameter in atom.parameters:
        argument = filled[parameter.name]
        if parameter in atom.options:
            found.append(_option(elaborator, argument, parameter, atom.name, scope))
        elif atom.name == "norm":
            found.append(elaborator.expression(argument, scope))
        else:
            found.append(elaborator.numeric(argument, scope))
    return found


def _option(elaborator: Elaborator, argument: Expression, parameter: Parameter, atom: str, scope: Scope) -> Typed:
    made, type_ = elaborator.numeric(argument, scope)
    if type_ is not None and type_.shape and ATOMS[atom].sign is Sign.NONNEGATIVE:
        message = f"`{parameter.name}` of `{atom}` is a number, and `{shown(argument)}` is a {type_}"
        help_ = f"losses of numbers take the residual: `{atom}(... - {shown(argument)})`"
        elaborator.error("SPL213", message, argument.span, f"{type_}", help_)
        return made, None
    made, type_ = elaborator.number(argument, f"`{parameter.name}` of `{atom}`", scope)
    if type_ is not None:
        elaborator.check_range(parameter, made, argument, atom)
    return made, type_


def _call_define(elaborator: Elaborator, node: Call, binding: Binding, scope: Scope) -> Typed:
    define = binding.define
    if define is None:
        return node, None
    if not define.arguments:
        message = f"`{define.name}` takes no arguments"
        elaborator.error("SPL214", message, node.span, "", f"write `{define.name}` alone")
        return node, None
    parameters = [Parameter(name) for name in define.arguments]
    matched = match_arguments(node, parameters, elaborator.complaints, "the function")
    if matched is None:
        return node, None
    inner = Scope(elaborator.scope)
    right = True
    for name, span in zip(define.arguments, define.argument_spans):
        made, type_ = elaborator.expression(matched[name], scope)
        right = right and type_ is not None
        inner.add(Binding(name, NameRole.ARGUMENT, type_, made, span=span))
    if not right:
        return node, None
    return elaborator.expand(define.name, define.body, inner, node.span)


def _evaluate(elaborator: Elaborator, node: Call, binding: Binding, scope: Scope) -> Typed:
    """f(X) for an rkhs variable f."""
    points = elaborator.points.get(node.function, "X")
    form = f"`{node.function}({points})`"
    if len(node.arguments) != 1 or node.options:
        message = f"`{node.function}` is evaluated at the rows of one matrix"
        elaborator.error("SPL211", message, node.span, "", f"write {form}")
        return node, None
    made, type_ = elaborator.numeric(node.arguments[0], scope)
    if type_ is None:
        return node, None
    if len(type_.shape) != 2 or type_.variables or not isinstance(made, Name):
        message = f"`{node.function}` is evaluated at the rows of a data matrix"
        elaborator.error("SPL228", message, node.span, "", f"write {form}")
        return node, None
    columns = elaborator.scope.peek(points)
    expected = columns.type.shape[1] if columns is not None and columns.type is not None else None
    if expected is not None and type_.shape[1] != expected:
        message = (
            f"`{node.function}` is a function of rows with {expected} elements, "
            f"and the rows of `{shown(made)}` have {type_.shape[1]}"
        )
        elaborator.error("SPL205", message, node.arguments[0].span)
        return node, None
    evaluation = Evaluation(node.function, made, span=node.span)
    value = Type(
        Kind.VECTOR,
        (type_.shape[0],),
        Curvature.AFFINE,
        variables=frozenset({node.function}),
        data=type_.data | frozenset({points}),
    )
    return elaborator.keep(evaluation, value)

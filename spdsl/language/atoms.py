"""The types of calls of atoms: shapes of the arguments, and curvature by the composition rules.

In: an atom and the types of its arguments, by position. Out: the type of the call, or a complaint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spdsl.diagnostics import Related
from spdsl.language.constants import constant_value
from spdsl.language.operators import Judged, broadcast, join, kind_of
from spdsl.language.printer import shown
from spdsl.language.rules import compose, is_flat
from spdsl.language.signatures import Atom, Monotone, Role
from spdsl.language.tree import Call, Name
from spdsl.language.types import Curvature, Kind, Sign, Type

if TYPE_CHECKING:
    from spdsl.language.elaborate import Elaborator

__all__ = ["check_atom"]


def check_atom(elaborator: Elaborator, atom: Atom, made: Call, types: Sequence[Type]) -> Judged:
    """The type of a call of an atom."""
    if atom.name == "mahalanobis":
        return _mahalanobis(elaborator, made, types)
    if atom.name == "group_norm" and not _groups_fit(elaborator, made, types):
        return None, ""
    if atom.name == "support":
        return _support(elaborator, made, types[0])
    if types[0].kind is Kind.RKHS:
        return join(types, Kind.SCALAR, (), Curvature.CONVEX, Sign.NONNEGATIVE), ""
    if types[0].kind in (Kind.GRAPH, Kind.SUPPORT):
        elaborator.error("SPL215", f"`{atom.name}` takes numbers", made.arguments[0].span, types[0].kind.value)
        return None, ""
    if atom.variadic:
        return _extreme(elaborator, atom, made, types)
    argument = types[0]
    if len(argument.shape) not in atom.ranks:
        _wrong_rank(elaborator, atom, made, argument)
        return None, ""
    if atom.name in ("trace", "trace_norm") and argument.shape[0] != argument.shape[1]:
        message = f"`{atom.name}` takes a square matrix, and `{shown(made.arguments[0])}` is a {argument}"
        elaborator.error("SPL213", message, made.arguments[0].span, f"{argument}")
        return None, ""
    shape = argument.shape if atom.role is Role.ELEMENTWISE else ()
    curvature = compose(atom.curvature, atom.monotone, argument.curvature, argument.sign)
    sign = argument.sign if atom.name in ("sum", "trace") else atom.sign
    if atom.name == "pos" and argument.sign in (Sign.NONPOSITIVE, Sign.ZERO):
        sign = Sign.ZERO
    reason = ""
    if curvature is Curvature.UNKNOWN and argument.curvature is not Curvature.UNKNOWN:
        reason = _why_unknown(atom, made, argument)
    return join(types, kind_of((argument,), shape), shape, curvature, sign), reason


def _why_unknown(atom: Atom, made: Call, argument: Type) -> str:
    shape = f"`{atom.name}` is {atom.curvature.value}"
    if atom.monotone is Monotone.NEITHER:
        return f"{shape} and not monotone, so it needs an affine argument, and this one is {argument.curvature.value}"
    if atom.monotone is Monotone.LIKE_ABS and argument.sign is Sign.UNKNOWN:
        return f"{shape} but falls and rises, and its {argument.curvature.value} argument may change its sign"
    return f"{shape} and {atom.monotone.value}, and its argument is {argument.curvature.value}"


def _extreme(elaborator: Elaborator, atom: Atom, made: Call, types: Sequence[Type]) -> Judged:
    """`max` and `min`: of several arguments elementwise, of one argument its extreme element."""
    if len(types) == 1:
        if not types[0].shape:
            name = shown(made.arguments[0])
            message = f"`{name}` is a single number, so there is nothing to take the {atom.name} of"
            elaborator.error("SPL213", message, made.span, "", f"write `{atom.name}({name}, 0)`")
            return None, ""
        shape: tuple[str | int, ...] | None = ()
    else:
        shape = broadcast(elaborator, made.arguments, types, atom.name)
    if shape is None:
        return None, ""
    curvatures = {compose(atom.curvature, atom.monotone, t.curvature, t.sign) for t in types if t.variables}
    if not curvatures:
        curvature = Curvature.CONSTANT
    elif Curvature.UNKNOWN in curvatures:
        curvature = Curvature.UNKNOWN
    else:
        curvature = atom.curvature
    reason = ""
    if curvature is Curvature.UNKNOWN:
        opposite = Curvature.CONCAVE if atom.curvature is Curvature.CONVEX else Curvature.CONVEX
        if any(t.curvature is opposite for t in types):
            reason = f"`{atom.name}` is {atom.curvature.value}, and one of its arguments is {opposite.value}"
    return join(types, kind_of(types, shape), shape, curvature, _extreme_sign(atom, types)), reason


def _extreme_sign(atom: Atom, types: Sequence[Type]) -> Sign:
    signs = [t.sign for t in types]
    zero_counts_as = (Sign.ZERO, Sign.NONNEGATIVE), (Sign.ZERO, Sign.NONPOSITIVE)
    upper, lower = zero_counts_as if atom.name == "max" else zero_counts_as[::-1]
    if any(sign in upper for sign in signs):
        return upper[1]
    return lower[1] if all(sign in lower for sign in signs) else Sign.UNKNOWN


def _wrong_rank(elaborator: Elaborator, atom: Atom, made: Call, type_: Type) -> None:
    name = shown(made.arguments[0])
    wanted = {
        (1, 2): "a vector or a matrix",
        (1,): "a vector",
        (2,): "a square matrix",
    }[atom.ranks]
    helps = []
    if not type_.shape:
        scalar_form = {
            "sum": name,
            "norm1": f"abs({name})",
            "norm2": f"abs({name})",
            "norm": f"abs({name})",
            "sum_squares": f"({name})^2" if not name.isidentifier() else f"{name}^2",
        }.get(atom.name)
        helps = [f"write `{scalar_form}`"] if scalar_form else []
    elif atom.ranks == (2,):
        helps = [f"write `sum({name})`"] if atom.name == "trace" else [f"write `norm1({name})`"]
    elif atom.name == "norm2":
        helps = [f"the Frobenius norm is `norm({name})`"]
    message = f"`{atom.name}` takes {wanted}, and `{name}` is a {type_}"
    elaborator.error("SPL213", message, made.span, "", *helps)


def _support(elaborator: Elaborator, made: Call, argument: Type) -> Judged:
    if len(argument.shape) != 1:
        message = f"`support` takes a vector variable, and `{shown(made.arguments[0])}` is a {argument}"
        elaborator.error("SPL213", message, made.arguments[0].span, f"{argument}")
        return None, ""
    return join((argument,), Kind.SUPPORT, argument.shape, Curvature.UNKNOWN, Sign.UNKNOWN), ""


def _groups_fit(elaborator: Elaborator, made: Call, types: Sequence[Type]) -> bool:
    """The groups are a data vector with one number a coordinate, or the length of consecutive blocks."""
    vector, groups = types
    place = made.arguments[1]
    if groups.variables:
        message = "groups can't depend on variables"
    elif groups.shape and groups.shape != vector.shape:
        message = f"`{shown(place)}` is a {groups}, but `{shown(made.arguments[0])}` is a {vector}"
        related = (Related(made.arguments[0].span, f"{vector}"),)
        help_ = "give the number of its group for every element"
        elaborator.error("SPL205", message, place.span, f"{groups}", help_, related=related)
        return False
    else:
        length = None if groups.shape else constant_value(place)
        if length is None or (length >= 1 and length == int(length)):
            return True
        message = f"the length of the groups is a whole number from 1 on, and this is {length:g}"
        elaborator.error("SPL230", message, place.span)
        return False
    elaborator.error("SPL213", message, place.span, "", "declare a vector of group numbers in `data`")
    return False


def _mahalanobis(elaborator: Elaborator, made: Call, types: Sequence[Type]) -> Judged:
    metric, rows = types
    metric_node, rows_node = made.arguments
    if len(metric.shape) != 2 or metric.shape[0] != metric.shape[1]:
        message = f"the metric of `mahalanobis` is a square matrix, and `{shown(metric_node)}` is a {metric}"
        elaborator.error("SPL213", message, metric_node.span, f"{metric}", "its form is `mahalanobis(M, D)`")
        return None, ""
    if not rows.shape or rows.shape[-1] != metric.shape[0]:
        message = f"the rows of `{shown(rows_node)}` don't fit the metric `{shown(metric_node)}`"
        related = (Related(metric_node.span, f"{metric}"),)
        helps = []
        if isinstance(metric_node, Name) and rows.shape:
            helps = [f"declare `{metric_node.name} : symmetric({rows.shape[-1]})`"]
        elaborator.error("SPL205", message, rows_node.span, f"{rows}", *helps, related=related)
        return None, ""
    shape = rows.shape[:-1]
    kind = Kind.VECTOR if shape else Kind.SCALAR
    if rows.variables:
        reason = "`mahalanobis(M, D)` is convex in D only when M is known to be positive semidefinite"
        if metric.variables:
            reason = "`mahalanobis(M, D)` is affine in M only when D has no variables in it"
        return join(types, kind, shape, Curvature.UNKNOWN, Sign.UNKNOWN), reason
    curvature = metric.curvature if is_flat(metric.curvature) else Curvature.UNKNOWN
    reason = "" if curvature is metric.curvature else "`mahalanobis(M, D)` needs an affine M"
    return join(types, kind, shape, curvature, Sign.UNKNOWN), reason

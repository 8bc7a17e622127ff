"""The types of sums, products, powers, signs and case distinctions.

In: the types of the operands. Out: the type of the whole and, where its curvature can't be told, the reason; or a
complaint about shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spdsl.diagnostics import Related
from spdsl.language.constants import constant_value
from spdsl.language.printer import shown
from spdsl.language.rules import (
    add_curvatures,
    add_signs,
    compose,
    flip,
    is_flat,
    multiply_signs,
    negate,
    power_curvature,
    power_sign,
    scale,
    sign_of_number,
)
from spdsl.language.signatures import Monotone
from spdsl.language.tree import Chain, Expression, Piecewise, Power
from spdsl.language.types import Curvature, Dimension, Kind, Sign, Type

if TYPE_CHECKING:
    from spdsl.language.elaborate import Elaborator

__all__ = [
    "Judged",
    "broadcast",
    "join",
    "kind_of",
    "piecewise_type",
    "power_type",
    "product_type",
    "signed",
    "sum_type",
]

Judged = tuple[Type | None, str]
"""A type, and why its curvature is unknown (or ``""``)."""


def signed(operator: str, type_: Type) -> Type:
    """The type of ``-x`` or ``+x``."""
    kind = Kind.VECTOR if type_.kind is Kind.LABELS else type_.kind
    if operator == "+":
        return type_.replace(kind=kind)
    return type_.replace(kind=kind, curvature=negate(type_.curvature), sign=flip(type_.sign))


def _names(type_: Type) -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]:
    return type_.variables, type_.data, type_.parameters, type_.sizes


def join(types: Sequence[Type], kind: Kind, shape: tuple[Dimension, ...], curvature: Curvature, sign: Sign) -> Type:
    """A type that depends on all that its parts depend on."""
    if len(types) > 8:
        # One union for all: a sum of many thousand names would otherwise cost the square of their number.
        sets = [{id(part): part for part in column}.values() for column in zip(*map(_names, types))]
        return Type(kind, shape, curvature, sign, *[frozenset().union(*column) for column in sets])
    variables, data, parameters, sizes = _names(types[0])
    for type_ in types[1:]:
        # Most nodes bring nothing new: keep the sets that are there.
        if not type_.variables <= variables:
            variables |= type_.variables
        if not type_.data <= data:
            data |= type_.data
        if not type_.parameters <= parameters:
            parameters |= type_.parameters
        if not type_.sizes <= sizes:
            sizes |= type_.sizes
    return Type(kind, shape, curvature, sign, variables, data, parameters, sizes)


def kind_of(types: Sequence[Type], shape: tuple[Dimension, ...]) -> Kind:
    """The kind of an elementwise result: symmetric when every matrix in it is."""
    if len(shape) < 2:
        return (Kind.SCALAR, Kind.VECTOR)[len(shape)]
    return Kind.SYMMETRIC if all(t.kind in (Kind.SYMMETRIC, Kind.SCALAR) for t in types) else Kind.MATRIX


def broadcast(
    elaborator: Elaborator, nodes: Sequence[Expression], types: Sequence[Type], operator: str
) -> tuple[Dimension, ...] | None:
    """The common shape of elementwise operands (scalars go with everything); None after a complaint."""
    shape: tuple[Dimension, ...] = ()
    first = 0
    for index, type_ in enumerate(types):
        if not type_.shape or type_.shape == shape:
            continue
        if not shape:
            shape, first = type_.shape, index
            continue
        _clash(elaborator, nodes[first], types[first], nodes[index], type_, operator)
        return None
    return shape


def _clash(
    elaborator: Elaborator, left: Expression, left_type: Type, right: Expression, right_type: Type, operator: str
) -> None:
    """Two shapes that can't go together elementwise."""
    helps = []
    a, b = left_type.shape, right_type.shape
    if operator in ("*", "/") and len(a) + len(b) > 2 and a[-1] == b[0]:
        helps.append(f"for the matrix product write `{shown(left)} @ {shown(right)}`")
    elif operator in ("*", "/") and len(a) == 1 and len(b) == 2 and a[0] == b[1]:
        helps.append(f"for the matrix product write `{shown(right)} @ {shown(left)}`")
    elif len(a) == len(b):
        differing = next((x, y) for x, y in zip(a, b) if x != y)
        if all(isinstance(size, str) for size in differing):
            helps.append(f"if `{differing[0]}` and `{differing[1]}` are the same size, give it one name")
    else:
        helps.append("`+ - * /` and comparisons need equal shapes, or a scalar on one side")
    message = f"`{shown(left)}` is a {left_type}, but `{shown(right)}` is a {right_type}"
    related = (Related(left.span, f"{left_type}"),)
    elaborator.error("SPL205", message, right.span, f"{right_type}", *helps, related=related)


# --- sums ----------------------------------------------------------------------------------------------------


def sum_type(elaborator: Elaborator, made: Chain, written: Chain, types: Sequence[Type]) -> Judged:
    """The type of ``a + b - c``."""
    shape = broadcast(elaborator, written.operands, types, "+")
    if shape is None:
        return None, ""
    curvatures, sign = [types[0].curvature], types[0].sign
    for operator, type_ in zip(made.operators, types[1:]):
        minus = operator == "-"
        curvatures.append(negate(type_.curvature) if minus else type_.curvature)
        sign = add_signs(sign, flip(type_.sign) if minus else type_.sign)
    curvature = add_curvatures(curvatures)
    reason = ""
    if curvature is Curvature.UNKNOWN and Curvature.UNKNOWN not in curvatures:
        reason = "a convex and a concave part are added"
    total = join(types, kind_of(types, shape), shape, curvature, sign)
    if sign is Sign.UNKNOWN and (number := constant_value(made)) is not None:
        return total.replace(sign=sign_of_number(number)), reason  # `-1 - 2 + 1` has no sign by the rules, but a value
    if (
        sign is Sign.UNKNOWN
        and total.kind is Kind.SCALAR
        and total.parameters
        and not (total.variables or total.data or total.sizes)
    ):
        # `1 - rho` has no sign by the rules, but the parameters' defaults give it one.
        total = total.replace(sign=elaborator.sign_by_default(made))
    return total, reason


# --- products ------------------------------------------------------------------------------------------------


def product_type(elaborator: Elaborator, made: Chain, written: Chain, types: Sequence[Type]) -> Judged:
    """The type of ``a * b / c @ d``, from the left to the right."""
    total, reason = types[0], ""
    for index, operator in enumerate(made.operators):
        left = written.operands[0] if index == 0 else written
        right, type_ = written.operands[index + 1], types[index + 1]
        # Two equal factors make a square: only told for the first two, which is where people write it.
        same = index == 0 and bool(total.variables) and made.operands[0] == made.operands[1]
        if operator == "@":
            weight = _weight_of_square(made, types, index)
            judged, why = _matrix_product(elaborator, left, total, right, type_, same, weight)
        else:
            more = made.operators[index + 1 : index + 2] == ("@",)
            following = written.operands[index + 2] if more else None
            judged, why = _elementwise_product(elaborator, left, total, operator, right, type_, same, following)
        if judged is None:
            return None, ""
        reason = reason or why
        total = judged
    return total, reason


def _weight_of_square(made: Chain, types: Sequence[Type], index: int) -> Sign | None:
    """The sign of c in ``c * w @ w``, which groups as ``(c * w) @ w``; None where the product is no such square."""
    factors = types[:index]
    moving = bool(types[index].variables) and made.operands[index] == made.operands[index + 1]
    if index == 0 or not moving or any(item.variables or item.shape for item in factors):
        return None
    if any(operator != "*" for operator in made.operators[:index]):
        return None
    sign = factors[0].sign
    for item in factors[1:]:
        sign = multiply_signs(sign, item.sign)
    return sign


def _elementwise_product(
    elaborator: Elaborator,
    left: Expression,
    a: Type,
    operator: str,
    right: Expression,
    b: Type,
    same: bool,
    following: Expression | None,
) -> Judged:
    """a * b or a / b; `following` is what a matrix product multiplies next."""
    if a.shape and b.shape and a.shape != b.shape and following is not None:
        group = f"{shown(left)} {operator} ({shown(right)} @ {shown(following)})"
        message = f"`{shown(left)}` is a {a}, but `{shown(right)}` is a {b}"
        help_ = f"`* / @` group from the left; did you mean `{group}`?"
        elaborator.error("SPL205", message, right.span, f"{b}", help_, related=(Related(left.span, f"{a}"),))
        return None, ""
    shape = broadcast(elaborator, (left, right), (a, b), operator)
    if shape is None:
        return None, ""
    if operator == "/":
        if constant_value(right) == 0:
            elaborator.error("SPL230", "a division by zero", right.span)
            return None, ""
        curvature, sign, reason = _quotient(left, a, right, b)
    elif same:
        curvature, sign, reason = power_curvature(a.curvature, a.sign, 2.0), Sign.NONNEGATIVE, ""
    else:
        sign = multiply_signs(a.sign, b.sign)
        curvature, reason = _product_curvature(left, a, right, b)
    return join((a, b), kind_of((a, b), shape), shape, curvature, sign), reason


def _product_curvature(left: Expression, a: Type, right: Expression, b: Type) -> tuple[Curvature, str]:
    if a.variables and b.variables:
        return Curvature.UNKNOWN, "two expressions with variables in them are multiplied"
    constant, varying, factor = (a, b, left) if not a.variables else (b, a, right)
    if not varying.variables:
        return Curvature.CONSTANT, ""
    curvature = scale(varying.curvature, constant.sign)
    if curvature is Curvature.UNKNOWN and varying.curvature is not Curvature.UNKNOWN:
        return curvature, f"the sign of the factor `{shown(factor)}` is not known"
    return curvature, ""


def _quotient(left: Expression, a: Type, right: Expression, b: Type) -> tuple[Curvature, Sign, str]:
    sign = multiply_signs(a.sign, b.sign)
    if not b.variables:
        curvature = scale(a.curvature, b.sign) if a.variables else Curvature.CONSTANT
        if curvature is Curvature.UNKNOWN and a.curvature is not Curvature.UNKNOWN:
            return curvature, sign, f"the sign of the divisor `{shown(right)}` is not known"
        return curvature, sign, ""
    if a.variables:
        return Curvature.UNKNOWN, sign, "an expression with variables is divided by another one"
    inverse = power_curvature(b.curvature, b.sign, -1.0)
    curvature = scale(inverse, a.sign)
    if curvature is Curvature.UNKNOWN:
        return curvature, sign, "a division by variables is convex only where the divisor is concave and positive"
    return curvature, sign, ""


def _matrix_product(
    elaborator: Elaborator, left: Expression, a: Type, right: Expression, b: Type, same: bool, weight: Sign | None
) -> Judged:
    for node, type_ in ((left, a), (right, b)):
        if not type_.shape:
            message = f"`@` multiplies matrices and vectors, and `{shown(node)}` is a scalar"
            elaborator.error("SPL206", message, node.span, "scalar", "write `*`")
            return None, ""
    if a.shape[-1] != b.shape[0]:
        _inner_clash(elaborator, left, a, right, b)
        return None, ""
    shape = a.shape[:-1] + b.shape[1:]
    kind = (Kind.SCALAR, Kind.VECTOR, Kind.MATRIX)[len(shape)]
    sign = multiply_signs(a.sign, b.sign)
    if a.variables and b.variables:
        if same and not shape and is_flat(a.curvature):
            return join((a, b), kind, shape, Curvature.CONVEX, Sign.NONNEGATIVE), ""
        if weight is not None and not shape and is_flat(b.curvature):
            curvature = scale(Curvature.CONVEX, weight)
            reason = "the sign of the factor before it is not known" if curvature is Curvature.UNKNOWN else ""
            return join((a, b), kind, shape, curvature, weight), reason
        reason = "two expressions with variables in them are multiplied"
        return join((a, b), kind, shape, Curvature.UNKNOWN, sign), reason
    curvature, reason = _product_curvature(left, a, right, b)
    return join((a, b), kind, shape, curvature, sign), reason


def _inner_clash(elaborator: Elaborator, left: Expression, a: Type, right: Expression, b: Type) -> None:
    inner, outer = a.shape[-1], b.shape[0]
    counted = "columns" if len(a.shape) == 2 else "elements"
    other = "rows" if len(b.shape) == 2 else "elements"
    message = f"`{shown(left)}` has {inner} {counted}, but `{shown(right)}` has {outer} {other}"
    helps = []
    if len(a.shape) == 2 and a.shape[0] == outer:
        helps.append(f"the transpose fits: `{shown(left)}.T @ {shown(right)}`")
    elif len(a.shape) == 1 and len(b.shape) == 2 and b.shape[1] == inner:
        helps.append(f"the other order fits: `{shown(right)} @ {shown(left)}`")
    elif len(b.shape) == 2 and b.shape[1] == inner:
        helps.append(f"the transpose fits: `{shown(left)} @ {shown(right)}.T`")
    elif len(a.shape) == 1 and len(b.shape) == 1:
        helps.append("elementwise products are written with `*`")
    elif isinstance(inner, str) and isinstance(outer, str):
        helps.append(f"if `{inner}` and `{outer}` are the same size, give it one name")
    related = (Related(left.span, f"{a}"),)
    elaborator.error("SPL206", message, right.span, f"{b}", *helps, related=related)


# --- powers and case distinctions ----------------------------------------------------------------------------


def power_type(elaborator: Elaborator, made: Power, base: Type, exponent: Type) -> Judged:
    """The type of ``base ^ exponent``."""
    if exponent.shape:
        message = f"an exponent is a scalar, and `{shown(made.exponent)}` is a {exponent}"
        elaborator.error("SPL213", message, made.exponent.span, f"{exponent}")
        return None, ""
    both = (base, exponent)
    kind = kind_of((base,), base.shape)
    number = constant_value(made.exponent)
    sign = power_sign(base.sign, number)
    if exponent.variables:
        curvature, reason = _exponential(made, base, exponent)
    elif not base.variables:
        curvature, reason = Curvature.CONSTANT, ""
    elif number is None:
        curvature, reason = Curvature.UNKNOWN, "the exponent is no plain number"
    else:
        curvature, reason = power_curvature(base.curvature, base.sign, number), ""
        if curvature is Curvature.UNKNOWN and base.curvature is not Curvature.UNKNOWN:
            reason = _power_reason(made, base, number)
    return join(both, kind, base.shape, curvature, sign), reason


def _exponential(made: Power, base: Type, exponent: Type) -> tuple[Curvature, str]:
    """a^x for a positive number a."""
    number = constant_value(made.base)
    if base.variables or number is None or number <= 0:
        return Curvature.UNKNOWN, "a variable stands in an exponent"
    monotone = Monotone.INCREASING if number >= 1 else Monotone.DECREASING
    curvature = compose(Curvature.CONVEX, monotone, exponent.curvature, exponent.sign)
    return curvature, "" if curvature is not Curvature.UNKNOWN else "a variable stands in an exponent"


def _power_reason(made: Power, base: Type, number: float) -> str:
    whole = number == int(number)
    if whole and int(number) % 2 == 0 and number > 0:
        return f"the {base.curvature.value} base `{shown(made.base)}` may change its sign"
    if is_flat(base.curvature):
        return f"x^{number:g} is neither convex nor concave where x may be negative"
    return f"the base `{shown(made.base)}` is {base.curvature.value}"


def piecewise_type(
    elaborator: Elaborator, made: Piecewise, values: Sequence[Type], conditions: Sequence[Type]
) -> Judged:
    """The type of ``piecewise(a if c, ..., e otherwise)``."""
    nodes = [case.value for case in made.cases]
    nodes += [side for case in made.cases if case.condition for side in case.condition.operands]
    types = [*values, *conditions]
    shape = broadcast(elaborator, nodes, types, "piecewise")
    if shape is None:
        return None, ""
    signs = {value.sign for value in values} - {Sign.ZERO}
    sign = signs.pop() if len(signs) == 1 else Sign.UNKNOWN if signs else Sign.ZERO
    curvature, reason = Curvature.CONSTANT, ""
    if any(condition.variables for condition in conditions):
        curvature, reason = Curvature.UNKNOWN, "whether `piecewise` is convex depends on how its pieces meet"
    elif any(value.variables for value in values):
        curvature = add_curvatures(value.curvature for value in values)
        reason = "its pieces are not all convex" if curvature is Curvature.UNKNOWN else ""
    return join(types, kind_of(values, shape), shape, curvature, sign), reason

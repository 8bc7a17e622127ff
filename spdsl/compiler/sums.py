"""Takes a scalar expression apart into canonical parts: coefficient times a sum, a norm, a trace, an affine number.

In: a scalar node of a checked model. Out: `Part`s whose sum it is. ``alpha*norm1(w) + norm(w)^2/2`` has two,
``norm(X @ w - y)^2 / (2*n)`` one, a sum of squares over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from spdsl.compiler import affine, normal
from spdsl.compiler.affine import Affine, Constant
from spdsl.compiler.values import Elementwise, Lowering
from spdsl.language import tree
from spdsl.language.types import Kind
from spdsl.problem.expressions import Call, Expression, Name, Number, substituted

__all__ = ["Part", "gathered", "parts_of", "tidied"]

ONE = Number(1.0)


@dataclass(frozen=True)
class Part:
    """coefficient * (sum of the rows of `value`, or the norm that `kind` names of it).

    `kind`: ``sum`` (value Elementwise or Affine), ``norm`` (value Affine), ``group_norm`` (with `groups`),
    ``trace_norm`` and ``kernel`` (value the variable's name; kernel: squared), ``constant``.
    """

    kind: Literal["sum", "norm", "group_norm", "trace_norm", "kernel", "constant"]
    value: Elementwise | Affine | str | None
    coefficient: Expression
    node: tree.Expression
    groups: Expression | None = None

    def scaled(self, factor: Expression) -> Part:
        """Times a constant."""
        return replace(self, coefficient=affine.times(self.coefficient, factor))


def parts_of(node: tree.Expression, lowering: Lowering) -> list[Part]:
    """The parts of a scalar expression.

    Raises
    ------
    ModelError
        For what has no canonical form.
    """
    if not lowering.type_of(node).depends_on_variables:
        return [Part("constant", None, lowering.constant(node), node)]
    match node:
        case tree.Unary():
            sign = Number(-1.0 if node.operator == "-" else 1.0)
            return [part.scaled(sign) for part in parts_of(node.operand, lowering)]
        case tree.Chain() if node.operators[0] in "+-":
            found = parts_of(node.operands[0], lowering)
            for operator, operand in zip(node.operators, node.operands[1:]):
                sign = Number(-1.0 if operator == "-" else 1.0)
                found += [part.scaled(sign) for part in parts_of(operand, lowering)]
            return found
        case tree.Chain() if "@" not in node.operators:
            return _multiple(node, lowering)
        case tree.Chain() if (at := _square_at(node, lowering)) is not None:
            return _weighed(node, _squares(node.operands[at], node, lowering), (at, at + 1), lowering)
        case tree.Power():
            return _power(node, lowering)
        case tree.Call():
            return _call(node, lowering)
    return _plain(node, lowering)


def _multiple(node: tree.Chain, lowering: Lowering) -> list[Part]:
    """A product with constants: exactly one factor, not a divisor, may depend on variables."""
    moving = [i for i, operand in enumerate(node.operands) if lowering.type_of(operand).depends_on_variables]
    if len(moving) != 1 or (moving[0] > 0 and node.operators[moving[0] - 1] == "/"):
        return _plain(node, lowering)
    return _weighed(node, parts_of(node.operands[moving[0]], lowering), (moving[0],), lowering)


def _square_at(node: tree.Chain, lowering: Lowering) -> int | None:
    """Where u @ u stands in a product whose other factors are constant scalars: `alpha * w @ w / 2`."""
    if node.operators.count("@") != 1:
        return None
    at = node.operators.index("@")
    others = [operand for i, operand in enumerate(node.operands) if i not in (at, at + 1)]
    scalars = all(
        lowering.type_of(item).is_scalar and not lowering.type_of(item).depends_on_variables for item in others
    )
    vector = len(lowering.type_of(node.operands[at]).shape) == 1
    return at if scalars and vector and node.operands[at] == node.operands[at + 1] else None


def _weighed(node: tree.Chain, parts: list[Part], own: tuple[int, ...], lowering: Lowering) -> list[Part]:
    """Parts times the constant factors of a product, which are all operands but those at `own`."""
    for position, operand in enumerate(node.operands):
        if position in own:
            continue
        factor = lowering.constant(operand)
        if position > 0 and node.operators[position - 1] == "/":
            factor = Call("divide", (ONE, factor))
        parts = [part.scaled(factor) for part in parts]
    return [replace(part, coefficient=tidied(part.coefficient)) for part in parts]


def gathered(parts: list[Part]) -> list[Part]:
    """Parts of the same form joined, their coefficients added: ``alpha*norm1(w) + beta*norm1(w)`` is one."""
    groups: dict[object, list[Part]] = {}
    for part in parts:
        groups.setdefault(_form(part), []).append(part)
    return [same[0] if len(same) == 1 else _joined(same) for same in groups.values()]


def _form(part: Part) -> object:
    """What a part is apart from its coefficient; placeholders are numbered afresh."""
    if not isinstance(part.value, Elementwise):
        return part.kind, part.value, part.groups
    names = {old: Name(f"{{{number}}}") for number, old in enumerate(part.value.predictors)}
    predictors = tuple(part.value.predictors.values())
    return part.kind, substituted(part.value.body, names), predictors, part.value.shape


def _joined(parts: list[Part]) -> Part:
    total = Call("add", tuple(part.coefficient for part in parts))
    return replace(parts[0], coefficient=tidied(total))


def tidied(coefficient: Expression) -> Expression:
    """1/(2 n) rather than 1 * (1/2) * (1/n)."""
    return normal.expression(normal.normal(coefficient))


def _power(node: tree.Power, lowering: Lowering) -> list[Part]:
    """norm(u)^2 is a sum of squares; other powers of scalars are formulas of one row."""
    squared = isinstance(node.exponent, tree.Number) and node.exponent.value == 2
    inner = node.base
    while isinstance(inner, tree.Unary):
        inner = inner.operand
    if squared and isinstance(inner, tree.Call) and inner.function in ("norm", "norm2"):
        return _squares(inner.arguments[0], node, lowering)
    return _plain(node, lowering)


def _squares(argument: tree.Expression, node: tree.Expression, lowering: Lowering) -> list[Part]:
    if lowering.type_of(argument).kind is Kind.RKHS:
        assert isinstance(argument, tree.Name)
        return [Part("kernel", argument.name, ONE, node)]
    value = lowering.value(argument)
    return [Part("sum", lowering.formula("power", [value, Constant(Number(2.0), ())], value.shape), ONE, node)]


def _call(node: tree.Call, lowering: Lowering) -> list[Part]:
    argument = node.arguments[0] if node.arguments else node.options[0].value
    function = node.function
    if function == "square" and isinstance(argument, tree.Call) and argument.function in ("norm", "norm2"):
        return _squares(argument.arguments[0], node, lowering)
    if function == "sqrt":
        return _root(argument, node, lowering)
    if function == "sum":
        value = lowering.value(argument)
        return [Part("sum", value, ONE, node)] if not isinstance(value, Constant) else []
    if function == "sum_squares":
        return _squares(argument, node, lowering)
    if function == "norm1":
        value = lowering.value(argument)
        return [Part("sum", lowering.formula("abs", [value], value.shape), ONE, node)]
    if function in ("norm", "norm2"):
        return [_norm(argument, node, lowering)]
    if function == "group_norm":
        value = lowering.value(argument)
        groups = lowering.constant([*node.arguments, *(option.value for option in node.options)][1])
        if not isinstance(value, Affine):
            raise lowering.refusal(
                "SPL322", node, "`group_norm` needs an affine argument", "not affine in the variables"
            )
        return [Part("group_norm", value, ONE, node, groups)]
    if function == "trace_norm":
        if not isinstance(argument, tree.Name):
            raise lowering.refusal(
                "SPL323",
                node,
                "`trace_norm` is known only of a symmetric variable itself",
                "not a variable",
                "write `trace_norm(M)` with M : symmetric(d)",
            )
        return [Part("trace_norm", argument.name, ONE, node)]
    return _plain(node, lowering)


def _norm(argument: tree.Expression, node: tree.Expression, lowering: Lowering) -> Part:
    if lowering.type_of(argument).kind is Kind.RKHS:
        raise lowering.refusal(
            "SPL323",
            node,
            "the norm of a function enters only squared",
            "not squared",
            "write `norm(f)^2`",
        )
    value = lowering.value(argument)
    if not isinstance(value, Affine):
        raise lowering.refusal("SPL322", node, "`norm` needs an affine argument here", "not affine in the variables")
    return Part("norm", value, ONE, node)


def _root(argument: tree.Expression, node: tree.Call, lowering: Lowering) -> list[Part]:
    """sqrt(sum_squares(u)) is norm(u)."""
    inner = parts_of(argument, lowering) if lowering.type_of(argument).is_scalar else []
    if len(inner) == 1 and isinstance(inner[0].value, Elementwise) and inner[0].kind == "sum":
        value = inner[0].value
        is_square = (
            isinstance(value.body, Call)
            and value.body.function in ("power", "square")
            and isinstance(value.body.arguments[0], Name)
            and value.body.arguments[1:] in ((), (Number(2.0),))
            and len(value.predictors) == 1
        )
        if is_square and value.shape != ():
            root = ONE if inner[0].coefficient == ONE else Call("sqrt", (inner[0].coefficient,))
            return [Part("norm", next(iter(value.predictors.values())), root, node)]
    return _plain(node, lowering)


def _plain(node: tree.Expression, lowering: Lowering) -> list[Part]:
    """A scalar formula or an affine number: a sum of one row."""
    value = lowering.value(node)
    assert not isinstance(value, Constant)
    return [Part("sum", value, ONE, node)]

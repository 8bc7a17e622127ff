"""Lowers constraints: affine rows, balls of norms, semidefiniteness, supports.

In: constraints of a checked model. Out: the records of `spdsl.problem`; one of the model may become several
(``abs(w) <= 1`` is two affine ones).
"""

from __future__ import annotations

from typing import Literal

from spdsl.compiler.affine import Affine, Constant, add, divide, negative
from spdsl.compiler.sums import Part, parts_of, tidied
from spdsl.compiler.values import Elementwise, Lowering
from spdsl.diagnostics import ModelError
from spdsl.language import checked, tree
from spdsl.language.types import Curvature
from spdsl.problem import (
    AffineConstraint,
    BallConstraint,
    Constraint,
    SemidefiniteConstraint,
    SupportConstraint,
)
from spdsl.problem.expressions import Call, Expression, Number

__all__ = ["constraint_of"]

FORMS = (
    "an affine row: `A @ w <= b`, `w >= 0`, `sum(w) == 1`",
    "a ball: `norm(w) <= r`, `norm1(w) <= r`, `max(abs(w)) <= r`",
    "a cone or a set: `M >> 0`, `support(w) in sparse(size = 10)`",
)


def constraint_of(constraint: checked.Constraint, lowering: Lowering) -> list[Constraint]:
    """The canonical constraints that one of the model stands for.

    Raises
    ------
    ModelError
        SPL324 for what has no canonical form.
    """
    if isinstance(constraint, checked.SupportConstraint):
        return [_support(constraint, lowering)]
    if constraint.operator == ">>":
        return [_semidefinite(constraint, lowering)]
    left, right = constraint.left, constraint.right
    if constraint.operator == ">=":
        left, right = right, left
    return _Relation(constraint, lowering).lowered(left, right)


def _support(constraint: checked.SupportConstraint, lowering: Lowering) -> SupportConstraint:
    options: dict[str, Expression] = {}
    graph = None
    for name, value in constraint.arguments.items():
        if name == "graph":
            assert isinstance(value, tree.Name)
            graph = value.name
        else:
            options[name] = lowering.constant(value)
    text = constraint.span.text
    return SupportConstraint(constraint.variable, constraint.set, graph, options, text)  # type: ignore[arg-type]


def _semidefinite(constraint: checked.Inequality, lowering: Lowering) -> SemidefiniteConstraint:
    zero = isinstance(constraint.right, tree.Number) and constraint.right.value == 0
    if isinstance(constraint.left, tree.Name) and zero:
        return SemidefiniteConstraint(constraint.left.name, constraint.span.text)
    raise lowering.refusal(
        "SPL324",
        constraint,
        "only a symmetric variable itself can be required to be positive semidefinite",
        "not `variable >> 0`",
        "write `M >> 0` with M : symmetric(d)",
    )


class _Relation:
    """left <= right, or left == right."""

    def __init__(self, constraint: checked.Inequality, lowering: Lowering) -> None:
        self.constraint = constraint
        self.lowering = lowering
        self.relation: Literal["<=", "=="] = "==" if constraint.operator == "==" else "<="
        self.text = constraint.span.text

    def lowered(self, left: tree.Expression, right: tree.Expression) -> list[Constraint]:
        kind = self.lowering.type_of
        flat = (Curvature.CONSTANT, Curvature.AFFINE)
        if kind(left).curvature in flat and kind(right).curvature in flat:
            return [self.affine(left, right)]
        if self.relation == "==":
            raise self.refusal(left)
        if kind(right).curvature not in flat:  # r <= norm(w) written with a minus on both sides: -norm(w) >= -r
            return self.curved(self.flipped(right), self.flipped(left))
        return self.curved(left, right)

    def flipped(self, node: tree.Expression) -> tree.Expression:
        """-node, without its sign when it has one."""
        if isinstance(node, tree.Unary) and node.operator == "-":
            return node.operand
        if self.lowering.type_of(node).depends_on_variables:
            raise self.refusal(node)
        made = tree.Unary("-", node, span=node.span)
        self.lowering.learn(made, self.lowering.type_of(node))
        return made

    def affine(self, left: tree.Expression, right: tree.Expression) -> AffineConstraint:
        low, high = self.lowering.value(left), self.lowering.value(right)
        if not isinstance(low, (Affine, Constant)) or not isinstance(high, (Affine, Constant)):
            raise self.refusal(left)
        return self.row(low, high)

    def row(self, low: Affine | Constant, high: Affine | Constant) -> AffineConstraint:
        difference = add([low, negative(high)], low.shape or high.shape)
        if not isinstance(difference, Affine):
            difference = Affine((), difference.value, difference.shape)
        return AffineConstraint(difference.predictor(), self.relation, self.text)

    def curved(self, left: tree.Expression, right: tree.Expression) -> list[Constraint]:
        """A convex left side: elementwise max and abs split into rows, norms become balls."""
        if isinstance(left, tree.Call) and left.function == "max" and len(left.arguments) > 1:
            return [item for argument in left.arguments for item in self.lowered(argument, right)]
        if isinstance(left, tree.Call) and left.function == "pos":
            zero = Constant(Number(0.0), ())
            return [*self.lowered(left.arguments[0], right), self.row(zero, self.flat(right))]
        largest = self.largest_size(left)
        if largest is not None:
            return self.sizes(largest, right)
        if self.lowering.type_of(left).shape != ():
            raise self.refusal(left)
        return [self.ball(left, right)]

    def largest_size(self, left: tree.Expression) -> Affine | None:
        """u of abs(u), max(abs(u)) with u affine."""
        inner = left
        if isinstance(inner, tree.Call) and inner.function == "max" and len(inner.arguments) == 1:
            inner = inner.arguments[0]
        if isinstance(inner, tree.Call) and inner.function == "abs":
            value = self.lowering.value(inner.arguments[0])
            return value if isinstance(value, Affine) else None
        return None

    def sizes(self, u: Affine, right: tree.Expression) -> list[Constraint]:
        """|u_k| <= r_k: a ball for one radius, two rows a coordinate otherwise."""
        radius = self.flat(right)
        if isinstance(radius, Constant) and radius.shape == () and u.shape != ():
            return [BallConstraint(u.predictor(), "linf", radius.value, self.text)]
        return [self.row(u, radius), self.row(negative(u), radius)]

    def flat(self, node: tree.Expression) -> Affine | Constant:
        value = self.lowering.value(node)
        if not isinstance(value, (Affine, Constant)):
            raise self.refusal(node)
        return value

    def ball(self, left: tree.Expression, right: tree.Expression) -> BallConstraint:
        """c * norm(u) <= r, c * norm1(u) <= r, c * sum_squares(u) <= r, with constants moved to the right."""
        radius = self.flat(right)
        if not isinstance(radius, Constant) or radius.shape != ():
            raise self.refusal(right)
        parts = parts_of(left, self.lowering)
        moving = [part for part in parts if part.kind != "constant"]
        if len(moving) != 1:
            raise self.refusal(left)
        bound: Affine | Constant = radius
        for part in parts:
            if part.kind == "constant":
                bound = add([bound, negative(Constant(part.coefficient, ()))], ())
        (part,) = moving
        if part.coefficient != Number(1.0):
            bound = divide(bound, Constant(part.coefficient, ()), ())
        assert isinstance(bound, Constant)
        size = tidied(bound.value)
        if part.kind == "norm":
            assert isinstance(part.value, Affine)
            return BallConstraint(part.value.predictor(), "l2", size, self.text)
        name, u = self.summed(part)
        if name == "abs":
            return BallConstraint(u.predictor(), "l1", size, self.text)
        if name == "square":
            return BallConstraint(u.predictor(), "l2", Call("sqrt", (size,)), self.text)
        raise self.refusal(left)

    def summed(self, part: Part) -> tuple[str, Affine]:
        """("abs" | "square" | "", u) of a sum of |u_k| or u_k^2."""
        empty = Affine((), None, ())
        if part.kind != "sum" or not isinstance(part.value, Elementwise) or len(part.value.predictors) != 1:
            return "", empty
        body, (u,) = part.value.body, part.value.predictors.values()
        if not isinstance(body, Call) or next(iter(part.value.predictors)) != getattr(body.arguments[0], "name", None):
            return "", empty
        if body.function == "abs":
            return "abs", u
        if body.function == "square" or (body.function == "power" and body.arguments[1] == Number(2.0)):
            return "square", u
        return "", empty

    def refusal(self, node: tree.Expression) -> ModelError:
        return self.lowering.refusal("SPL324", node, "this constraint has no canonical form", "", *FORMS)

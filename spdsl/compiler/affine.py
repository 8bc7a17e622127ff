"""Affine expressions of the variables: terms with matrices and scales, and the arithmetic that keeps them affine.

In: terms made by `lower` from names, products and evaluations. Out: `Predictor`s. Folding happens here: ``y * (X @ w
+ b)`` becomes two terms with the scale y, ``A @ (X @ w)`` one term with the matrix A @ X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spdsl.compiler import normal
from spdsl.problem.expressions import Call, Expression, Name, Number
from spdsl.problem.predictors import Predictor, Term

__all__ = ["Affine", "Constant", "Shape", "add", "divide", "multiply", "negative", "over", "rows_of", "times"]

Shape = tuple[str, ...]  # sizes' names or literal numbers as text; () for a scalar


@dataclass(frozen=True)
class Constant:
    """An expression without variables."""

    value: Expression
    shape: Shape


@dataclass(frozen=True)
class Affine:
    """The sum of terms and an offset, all broadcast to `shape`."""

    terms: tuple[Term, ...]
    offset: Expression | None
    shape: Shape

    def predictor(self) -> Predictor:
        """The canonical record."""
        return Predictor(self.terms, self.offset, rows_of(self.shape))


def rows_of(shape: Shape) -> str:
    """The number of rows of a flattened shape: a size, a product such as ``d*k``, "" for a scalar."""
    return "*".join(shape)


def add(parts: list[Affine | Constant], shape: Shape) -> Affine | Constant:
    """The sum, terms with the same variable and matrix merged."""
    constants = [part.value for part in parts if isinstance(part, Constant)]
    offsets = [part.offset for part in parts if isinstance(part, Affine) and part.offset is not None]
    terms = [term for part in parts if isinstance(part, Affine) for term in part.terms]
    together = _sum([*offsets, *constants])
    if not terms:
        return Constant(Number(0.0) if together is None else together, shape)
    if together is not None and len(offsets) + len(constants) > 20:
        together = normal.expression(normal.normal(together))
    return Affine(_merged(terms), together, shape)


def _merged(terms: list[Term]) -> tuple[Term, ...]:
    groups: dict[tuple[str, str, Expression | None], list[Term]] = {}
    for term in terms:
        groups.setdefault((term.variable, term.kind, term.matrix), []).append(term)
    return tuple(same[0] if len(same) == 1 else _one_of(same) for same in groups.values())


def _one_of(terms: list[Term]) -> Term:
    total = Call("add", tuple(Number(1.0) if term.scale is None else term.scale for term in terms))
    return replace(terms[0], scale=normal.expression(normal.normal(total)))


def negative(part: Affine | Constant) -> Affine | Constant:
    """Minus the expression."""
    if isinstance(part, Constant):
        return Constant(minus(part.value), part.shape)
    terms = tuple(replace(term, scale=Number(-1.0) if term.scale is None else minus(term.scale)) for term in part.terms)
    return Affine(terms, None if part.offset is None else minus(part.offset), part.shape)


def multiply(part: Affine | Constant, factor: Constant, shape: Shape) -> Affine | Constant:
    """Elementwise product with a constant (a scalar, or one number a row)."""
    if isinstance(part, Constant):
        return Constant(times(part.value, factor.value), shape)
    terms = tuple(
        replace(term, scale=factor.value if term.scale is None else times(term.scale, factor.value))
        for term in part.terms
    )
    return Affine(terms, None if part.offset is None else times(part.offset, factor.value), shape)


def divide(part: Affine | Constant, divisor: Constant, shape: Shape) -> Affine | Constant:
    """Elementwise quotient by a constant."""
    if isinstance(part, Constant):
        return Constant(over(part.value, divisor.value), shape)
    one = Number(1.0)
    terms = tuple(
        replace(term, scale=over(one if term.scale is None else term.scale, divisor.value)) for term in part.terms
    )
    offset = None if part.offset is None else over(part.offset, divisor.value)
    return Affine(terms, offset, shape)


def minus(value: Expression) -> Expression:
    """The negative, without piling up signs."""
    if isinstance(value, Number):
        return Number(-value.value)
    if isinstance(value, Call) and value.function == "negative":
        return value.arguments[0]
    return Call("negative", (value,))


def times(left: Expression, right: Expression) -> Expression:
    """The product, without factors of one; signs are moved to the front."""
    if left == Number(1.0):
        return right
    if right == Number(1.0):
        return left
    if left == Number(-1.0):
        return minus(right)
    if right == Number(-1.0):
        return minus(left)
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value * right.value)
    return Call("multiply", (*_factors(left), right))


def over(left: Expression, right: Expression) -> Expression:
    """The quotient; a/b/c is a/(b c), so that long runs stay flat."""
    if isinstance(left, Call) and left.function == "divide":
        return Call("divide", (left.arguments[0], times(left.arguments[1], right)))
    return Call("divide", (left, right))


def _factors(value: Expression) -> tuple[Expression, ...]:
    return value.arguments if isinstance(value, Call) and value.function == "multiply" else (value,)


def _sum(values: list[Expression]) -> Expression | None:
    if not values:
        return None
    return values[0] if len(values) == 1 else Call("add", tuple(values))


def one_row(name: str) -> Expression:
    """A vector of ones as long as a size."""
    size: Expression = Number(float(name)) if name.isdigit() else Name(name)
    return Call("ones", (size,))

"""Lowers the tree's expressions to constants, affine maps, and elementwise functions of affine maps.

In: nodes of a checked model. Out: `Constant`, `Affine` or `Elementwise`. Every maximal affine sub-expression of an
elementwise formula becomes a predictor; what is around them stays as the scalar formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spdsl.compiler import affine
from spdsl.compiler.affine import Affine, Constant, Shape
from spdsl.compiler.atoms import PRIMITIVES, SCALAR_ATOMS
from spdsl.diagnostics import Diagnostic, ModelError
from spdsl.language import tree
from spdsl.language.checked import CheckedModel, Inequality
from spdsl.language.types import Kind, Type
from spdsl.problem.expressions import Call, Expression, Name, Number, names
from spdsl.problem.predictors import Term

__all__ = ["Elementwise", "Lowering", "Value"]

REDUCTIONS = frozenset({"sum", "norm1", "norm2", "norm", "sum_squares", "trace", "trace_norm", "group_norm"})
ELEMENTWISE = PRIMITIVES | SCALAR_ATOMS.keys()


@dataclass(frozen=True)
class Elementwise:
    """A formula of predictors, row by row: `body` over placeholders, each an affine map or a constant."""

    body: Expression
    predictors: dict[str, Affine]
    shape: Shape


Value = Constant | Affine | Elementwise


@dataclass
class Lowering:
    """Lowers the expressions of one model; placeholders are numbered through it."""

    model: CheckedModel
    count: int = field(default=0)
    learned: dict[int, tuple[Type, tree.Expression]] = field(default_factory=dict)

    def type_of(self, node: tree.Expression) -> Type:
        """The checker's type, or that of a node made by `learn`."""
        found = self.learned.get(id(node))
        return self.model.type_of(node) if found is None else found[0]

    def learn(self, node: tree.Expression, known: Type) -> None:
        """Give a type to a node that the compiler made; the node is kept alive."""
        self.learned[id(node)] = (known, node)

    def shape_of(self, node: tree.Expression) -> Shape:
        """The checker's shape, as text."""
        return tuple(str(dim) for dim in self.type_of(node).shape)

    def refusal(
        self, code: str, node: tree.Expression | Inequality, message: str, label: str, *help: str
    ) -> ModelError:
        """A complaint about a node, to be raised."""
        return ModelError(Diagnostic(code, message, span=node.span, label=label, help=help))

    # -- expressions without variables ---------------------------------------------------------------------------

    def constant(self, node: tree.Expression) -> Expression:
        """An expression without variables, as it stands."""
        match node:
            case tree.Number():
                return Number(float(node.value))
            case tree.Name():
                return Name(node.name)
            case tree.Unary():
                value = self.constant(node.operand)
                return affine.minus(value) if node.operator == "-" else value
            case tree.Chain():
                return self._constant_chain(node)
            case tree.Power():
                return Call("power", (self.constant(node.base), self.constant(node.exponent)))
            case tree.Transpose():
                return Call("transpose", (self.constant(node.operand),))
            case tree.Piecewise():
                return self._piecewise(node, self.constant)
            case tree.Call():
                given = [*node.arguments, *(option.value for option in node.options)]
                return Call(node.function, tuple(self.constant(item) for item in given))
        raise AssertionError(f"no constant: {node}")

    def _constant_chain(self, node: tree.Chain) -> Expression:
        operands = [self.constant(operand) for operand in node.operands]
        if node.operators[0] in "+-":
            signed = [b if op == "+" else affine.minus(b) for op, b in zip(node.operators, operands[1:])]
            return Call("add", (operands[0], *signed))
        result = operands[0]
        for operator, right in zip(node.operators, operands[1:]):
            if operator == "*":
                result = affine.times(result, right)
            else:
                result = affine.over(result, right) if operator == "/" else Call("matmul", (result, right))
        return result

    def _piecewise(self, node: tree.Piecewise, lower: Callable[[tree.Expression], Expression]) -> Expression:
        parts: list[Expression] = []
        for case in node.cases:
            parts.append(lower(case.value))
            if case.condition is not None:
                parts.append(self._condition(case.condition, lower))
        return Call("piecewise", tuple(parts))

    def _condition(self, node: tree.Comparison, lower: Callable[[tree.Expression], Expression]) -> Expression:
        named = {"<=": "less_equal", "<": "less", ">=": "greater_equal", ">": "greater", "==": "equal"}
        sides = [lower(operand) for operand in node.operands]
        pairs = [Call(named[op], (a, b)) for op, a, b in zip(node.operators, sides, sides[1:])]
        return pairs[0] if len(pairs) == 1 else Call("and", tuple(pairs))

    # -- expressions with variables ------------------------------------------------------------------------------

    def value(self, node: tree.Expression) -> Value:
        """Lower an expression whose parts act elementwise or as affine maps.

        Raises
        ------
        ModelError
            For what has no canonical form (a product of variables, a norm inside a formula, ...).
        """
        if not self.type_of(node).depends_on_variables:
            return Constant(self.constant(node), self.shape_of(node))
        match node:
            case tree.Name():
                return self._variable(node)
            case tree.Unary():
                inner = self.value(node.operand)
                return inner if node.operator == "+" else self._negative(inner)
            case tree.Chain() if node.operators[0] in "+-":
                return self._sum(node)
            case tree.Chain():
                return self._product(node)
            case tree.Power():
                return self._elementwise("power", node, (node.base, node.exponent))
            case tree.Transpose():
                return self._transpose(node)
            case tree.Piecewise():
                return self._cases(node)
            case tree.Evaluation():
                points = Constant(self.constant(node.points), self.shape_of(node.points))
                return Affine((Term(node.variable, "kernel", points.value),), None, self.shape_of(node))
            case tree.Call():
                return self._call(node)
        raise AssertionError(f"no value: {node}")

    def _variable(self, node: tree.Name) -> Affine:
        entry = self.model.variables[node.name]
        if entry.kind is Kind.SCALAR:
            return Affine((Term(node.name, "ones"),), None, ())
        if entry.kind is Kind.RKHS:
            raise self.refusal(
                "SPL320",
                node,
                f"`{node.name}` is a function and has no canonical form here",
                "a function",
                f"evaluate it, `{node.name}(X)`, or take `norm({node.name})^2`",
            )
        return Affine((Term(node.name, "identity"),), None, self.shape_of(node))

    def _negative(self, value: Value) -> Value:
        if isinstance(value, Elementwise):
            return Elementwise(affine.minus(value.body), value.predictors, value.shape)
        return affine.negative(value)

    def _sum(self, node: tree.Chain) -> Value:
        shape = self.shape_of(node)
        values = [self.value(operand) for operand in node.operands]
        signed = [values[0]] + [
            value if operator == "+" else self._negative(value) for operator, value in zip(node.operators, values[1:])
        ]
        plain = [value for value in signed if not isinstance(value, Elementwise)]
        if len(plain) == len(signed):
            return affine.add(plain, shape)
        bodies: list[Expression] = []
        predictors: dict[str, Affine] = {}
        if plain:
            body, found = self._body(affine.add(plain, shape))
            bodies.append(body)
            predictors |= found
        for value in signed:
            if isinstance(value, Elementwise):
                bodies.append(value.body)
                predictors |= value.predictors
        return Elementwise(Call("add", tuple(bodies)), predictors, shape)

    def _product(self, node: tree.Chain) -> Value:
        result = self.value(node.operands[0])
        for position, operator in enumerate(node.operators):
            operand = node.operands[position + 1]
            right = self.value(operand)
            if operator == "@":
                result = self._matrix_product(node, result, right)
            elif operator == "*":
                result = self._times(result, right)
            else:
                result = self._over(result, right)
        return result

    def _times(self, left: Value, right: Value) -> Value:
        shape = left.shape or right.shape
        if isinstance(left, Constant) and not isinstance(right, Elementwise):
            return affine.multiply(right, left, shape)
        if isinstance(right, Constant) and not isinstance(left, Elementwise):
            return affine.multiply(left, right, shape)
        return self.formula("multiply", [left, right], shape)

    def _over(self, left: Value, right: Value) -> Value:
        shape = left.shape or right.shape
        if isinstance(right, Constant) and not isinstance(left, Elementwise):
            return affine.divide(left, right, shape)
        return self.formula("divide", [left, right], shape)

    def _matrix_product(self, node: tree.Chain, left: Value, right: Value) -> Value:
        if isinstance(left, Constant) and isinstance(right, Affine) and len(right.shape) == 1:
            return self._matrix_times(node, left, right)
        if isinstance(left, Affine) and isinstance(right, Constant) and len(left.shape) == 1:
            matrix = right if len(right.shape) == 1 else Constant(_transposed(right.value), right.shape[::-1])
            return self._matrix_times(node, matrix, left)
        if isinstance(left, Constant) and isinstance(right, Constant):
            shape = left.shape[:-1] + right.shape[1:]
            return Constant(Call("matmul", (left.value, right.value)), shape)
        if isinstance(left, Affine) and isinstance(right, Affine):
            raise self.refusal(
                "SPL321",
                node,
                "a product of variables has no canonical form",
                "both sides depend on variables",
                "write a quadratic form as `sum_squares(R @ w)`, with R' R its matrix",
            )
        raise self.refusal(
            "SPL320",
            node,
            "this matrix product of variables has no canonical form",
            "",
            "only a vector variable, or what is affine in one, can be multiplied by a matrix of data",
        )

    def _matrix_times(self, node: tree.Chain, left: Constant, right: Affine) -> Affine:
        """A constant matrix (or row) times an affine vector."""
        shape = left.shape[:-1]
        terms = tuple(self._premultiplied(node, left, term, right.shape) for term in right.terms)
        offset = None if right.offset is None else self._offset_product(left, right)
        return Affine(terms, offset, shape)

    def _offset_product(self, left: Constant, right: Affine) -> Expression:
        assert right.offset is not None
        scalar = not self._is_vector(right.offset)
        offset = Call("multiply", (right.offset, affine.one_row(right.shape[0]))) if scalar else right.offset
        return Call("matmul", (left.value, offset))

    def _is_vector(self, value: Expression) -> bool:
        """Does a constant differ from row to row?"""
        vectors = {name for name, entry in self.model.data.items() if entry.shape}
        return bool(names(value) & vectors)

    def _premultiplied(self, node: tree.Chain, left: Constant, term: Term, rows: Shape) -> Term:
        kind = "matrix" if len(left.shape) == 2 else "row"
        if term.kind == "identity":
            if term.scale is None:
                return Term(term.variable, kind, left.value)  # type: ignore[arg-type]
            if not self._is_vector(term.scale):
                return Term(term.variable, kind, left.value, term.scale)  # type: ignore[arg-type]
            columns = _transposed(Call("multiply", (_transposed(left.value), term.scale))) if kind == "matrix" else None
            matrix = Call("multiply", (left.value, term.scale)) if columns is None else columns
            return Term(term.variable, kind, matrix)  # type: ignore[arg-type]
        if term.kind == "matrix":
            assert term.matrix is not None
            inner = term.matrix
            if term.scale is not None and self._is_vector(term.scale):
                return Term(term.variable, kind, Call("matmul", (left.value, affine.times(term.scale, inner))))  # type: ignore[arg-type]
            return Term(term.variable, kind, Call("matmul", (left.value, inner)), term.scale)  # type: ignore[arg-type]
        if term.kind == "ones":
            rows_scale = (
                term.scale if term.scale is not None and self._is_vector(term.scale) else affine.one_row(rows[0])
            )
            scale: Expression = Call("matmul", (left.value, rows_scale))
            if term.scale is not None and not self._is_vector(term.scale):
                scale = Call("multiply", (term.scale, scale))
            return Term(term.variable, "ones", None, scale)
        raise self.refusal(
            "SPL320",
            node,
            "a matrix product of this expression has no canonical form",
            f"{term.kind.replace('_', ' ')} of `{term.variable}`",
        )

    def _transpose(self, node: tree.Transpose) -> Value:
        inner = self.value(node.operand)
        if len(inner.shape) < 2 or self.type_of(node.operand).kind is Kind.SYMMETRIC:
            return inner
        raise self.refusal(
            "SPL320", node, "the transpose of a matrix variable has no canonical form", "matrix variable"
        )

    # -- atoms ---------------------------------------------------------------------------------------------------

    def _call(self, node: tree.Call) -> Value:
        if node.function == "mahalanobis":
            return self._mahalanobis(node)
        if node.function == "trace":
            inner = self.value(node.arguments[0])
            if isinstance(inner, Affine) and all(term.kind == "identity" for term in inner.terms):
                terms = tuple(Term(term.variable, "trace", None, term.scale) for term in inner.terms)
                offset = None if inner.offset is None else Call("trace", (inner.offset,))
                return Affine(terms, offset, ())
        if node.function == "sum" and len(node.arguments) == 1:
            inner = self.value(node.arguments[0])
            if isinstance(inner, Affine) and len(inner.shape) == 1:
                ones = Constant(affine.one_row(inner.shape[0]), inner.shape)
                chain = tree.Chain((node.arguments[0],), (), span=node.span)
                return self._matrix_times(chain, ones, inner)
        single = len(node.arguments) == 1
        if node.function in REDUCTIONS or (node.function in ("max", "min") and single):
            raise self.refusal(
                "SPL322",
                node,
                f"`{node.function}` couples rows and can't stand inside a larger formula",
                "one number for all rows",
                f"what is one number for all rows belongs into `regularizer`: `regularizer {node.span.text}`",
            )
        given = (*node.arguments, *(option.value for option in node.options))
        if node.function not in ELEMENTWISE:
            raise self.refusal("SPL320", node, f"`{node.function}` of variables has no canonical form here", "")
        return self._elementwise(node.function, node, given)

    def _mahalanobis(self, node: tree.Call) -> Affine:
        matrix, differences = node.arguments
        if not isinstance(matrix, tree.Name) or self.type_of(differences).depends_on_variables:
            raise self.refusal(
                "SPL320",
                node,
                "`mahalanobis` needs a symmetric variable and differences without variables",
                "",
                "write `mahalanobis(M, U - V)` with M a variable of type symmetric(d)",
            )
        return Affine((Term(matrix.name, "quadratic_form", self.constant(differences)),), None, self.shape_of(node))

    def _elementwise(self, function: str, node: tree.Expression, given: tuple[tree.Expression, ...]) -> Value:
        return self.formula(function, [self.value(item) for item in given], self.shape_of(node))

    def _cases(self, node: tree.Piecewise) -> Value:
        predictors: dict[str, Affine] = {}

        def lower(item: tree.Expression) -> Expression:
            body, found = self._body(self.value(item))
            predictors.update(found)
            return body

        body = self._piecewise(node, lower)
        return Elementwise(body, predictors, self.shape_of(node))

    def formula(self, function: str, values: list[Value], shape: Shape) -> Elementwise:
        """An elementwise function of lowered values."""
        bodies: list[Expression] = []
        predictors: dict[str, Affine] = {}
        for value in values:
            body, found = self._body(value)
            bodies.append(body)
            predictors |= found
        if function in ("multiply", "divide"):  # long runs stay flat
            join = affine.times if function == "multiply" else affine.over
            return Elementwise(join(bodies[0], bodies[1]), predictors, shape)
        return Elementwise(Call(function, tuple(bodies)), predictors, shape)

    def _body(self, value: Value) -> tuple[Expression, dict[str, Affine]]:
        """A value as a formula over placeholders."""
        if isinstance(value, Constant):
            return value.value, {}
        if isinstance(value, Elementwise):
            return value.body, value.predictors
        self.count += 1
        name = f"{{{self.count}}}"  # no name of the language has a brace
        return Name(name), {name: value}


def _transposed(value: Expression) -> Expression:
    if isinstance(value, Call) and value.function == "transpose":
        return value.arguments[0]
    return Call("transpose", (value,))

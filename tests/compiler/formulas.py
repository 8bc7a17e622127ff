"""Writes expressions as Python formulas, so that tests read like the mathematics: ``formula("max(0, 1 - z)")``."""

from __future__ import annotations

import ast

from spdsl.problem.expressions import Call, Expression, Name, Number

OPERATORS = {
    ast.Add: "add",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
    ast.MatMult: "matmul",
}
COMPARISONS = {ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal"}


def formula(text: str) -> Expression:
    """The expression of a Python formula; `lam` stands for lambda."""
    return _lowered(ast.parse(text, mode="eval").body)


def _lowered(node: ast.expr) -> Expression:
    match node:
        case ast.Constant():
            return Number(float(node.value))
        case ast.Name():
            return Name("lambda" if node.id == "lam" else node.id)
        case ast.UnaryOp():
            return Call("negative", (_lowered(node.operand),))
        case ast.BinOp() if isinstance(node.op, ast.Sub):
            return Call("add", (_lowered(node.left), Call("negative", (_lowered(node.right),))))
        case ast.BinOp():
            return Call(OPERATORS[type(node.op)], (_lowered(node.left), _lowered(node.right)))
        case ast.Compare():
            (comparator,) = node.comparators
            return Call(COMPARISONS[type(node.ops[0])], (_lowered(node.left), _lowered(comparator)))
        case ast.Call():
            return Call(node.func.id, tuple(_lowered(argument) for argument in node.args))
    raise TypeError(ast.dump(node))

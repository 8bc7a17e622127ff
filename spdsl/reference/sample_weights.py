"""Sample weights by search: the least of v l + f(v, age) over v in [0, 1], for f as written, nothing derived from it.

In: f as text, losses, an age. Out: the least values and where they are taken. f is convex in v (axiom (i)), so a
golden-section search finds its minimum; both ends are compared as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array

__all__ = ["UnreadableFormulaError", "formula_function", "least_weighted_loss", "penalty"]

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
STEPS = 90
SMALLEST = 1e-300  # stands for v = 0 in log v
FINE = 1e-10


class UnreadableFormulaError(ValueError):
    """A formula that this reader doesn't know."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "max": lambda *items: np.maximum.reduce(np.broadcast_arrays(*items)),
    "min": lambda *items: np.minimum.reduce(np.broadcast_arrays(*items)),
    "pos": lambda item: np.maximum(item, 0.0),
    "square": np.square,
}


def formula_function(text: str) -> Callable[[dict[str, Any]], Any]:
    """A formula in the language's spelling as a function of values by name.

    Raises
    ------
    UnreadableFormulaError
        For a formula with more than arithmetic and elementary functions.
    """
    python = re.sub(r"\blambda\b", "lambda_", text.replace("^", "**"))
    try:
        tree = ast.parse(python, mode="eval").body
    except SyntaxError as error:
        raise UnreadableFormulaError(f"`{text}` can't be read: {error.msg}") from error

    def evaluate(node: ast.expr, values: dict[str, Any]) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node, ast.Name):
            return values["lambda" if node.id == "lambda_" else node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = evaluate(node.operand, values)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](evaluate(node.left, values), evaluate(node.right, values))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return FUNCTIONS[node.func.id](*(evaluate(argument, values) for argument in node.args))
        raise UnreadableFormulaError(f"`{text}` holds a part that only the compiler knows: `{ast.unparse(node)}`")

    evaluate(tree, _Ones())
    return lambda values: evaluate(tree, values)


class _Ones(dict[str, Any]):
    """Stands for any values while a formula is tried."""

    def __missing__(self, key: str) -> float:
        return 0.5


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: np.power(np.asarray(a, float), b),
}


def penalty(bound: BoundProblem, age: float) -> Callable[[Array], Array]:
    """f(., age) of the model's SP-regularizer, read from its formula; v = 0 means the limit.

    Raises
    ------
    UnreadableFormulaError
    """
    paced = bound.problem.self_paced
    assert paced is not None
    text = paced.formula.text
    argument, age_name = _argument_names(bound, text)
    function = formula_function(text)
    values = {name: float(bound.evaluate(value)) for name, value in zip(paced.parameters, paced.values)}

    def f(v: Array) -> Array:
        with np.errstate(all="ignore"):
            found = function({**values, argument: np.maximum(v, SMALLEST), age_name: float(age)})
        found = np.where(np.abs(found) < SMALLEST / FINE, 0.0, found)  # what stood for v = 0
        return np.broadcast_to(np.asarray(found, float), np.shape(v))

    return f


def _argument_names(bound: BoundProblem, text: str) -> tuple[str, str]:
    """What f calls v and the age: the names in it that are no parameters.

    A user's own f may call them anything. Where the names don't tell, f itself does: a wrong assignment can't agree
    with the f that the compiler kept, whose arguments have fixed places.
    """
    paced = bound.problem.self_paced
    assert paced is not None
    free = [name for name in _names(text) if name not in paced.parameters]
    argument = "v" if "v" in free or not free else free[0]
    rest = [name for name in free if name != argument]
    age_name = "lambda" if "lambda" in rest or not rest else rest[0]
    if {argument, age_name} == {"v", "lambda"} or len(free) < 2 or paced.kernel is None:
        return argument, age_name
    theta = bound.weight_parameters()
    values = dict(zip(paced.parameters, theta))
    function = formula_function(text)
    v = np.array([0.3, 0.8])
    expected = np.asarray(paced.kernel.regularizer(v, 0.55, *theta), float)
    for first, second in ((argument, age_name), (age_name, argument)):
        with np.errstate(all="ignore"):
            found = np.asarray(function({**values, first: v, second: 0.55}), float)
        if np.allclose(found, expected, rtol=1e-9):
            return first, second
    raise UnreadableFormulaError(f"`{text}` doesn't tell which of its names is the weight and which the age")


def _names(text: str) -> list[str]:
    """The names in a formula that aren't functions, in order."""
    found = re.findall(r"[A-Za-z_]\w*(?!\w*\s*\()", text)
    return list(dict.fromkeys(name for name in found if name not in FUNCTIONS))


def least_weighted_loss(f: Callable[[Array], Array], losses: Array) -> tuple[Array, Array]:
    """For each loss l the least value of v l + f(v) over [0, 1], and a v that takes it (n,)."""

    def total(v: Array) -> Array:
        value = v * losses + f(v)
        return np.where(np.isnan(value), np.inf, value)

    low, high = np.zeros_like(losses), np.ones_like(losses)
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = total(a), total(b)
    for _ in range(STEPS):
        left = at_a <= at_b
        low, high = np.where(left, low, a), np.where(left, b, high)
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_a, at_b = total(a), total(b)
    v, best = a, at_a
    for end in (np.zeros_like(losses), np.ones_like(losses)):
        value = total(end)
        v, best = np.where(value < best, end, v), np.minimum(value, best)
    return best, v

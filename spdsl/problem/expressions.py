"""Expressions over data, parameters and sizes: what stays of a model's formulas once the variables are split off.

In: nodes made by the compiler. Out: NumPy values (`evaluate`), names used (`names`), and text (`str`).
A node is a number, a name or a call; the operators are calls named ``add multiply divide negative power matmul
transpose``
(``add`` and ``multiply`` take any number of arguments), the atoms keep their names of the language. ``piecewise`` takes
value, condition, ..., value otherwise; conditions are ``less less_equal greater greater_equal equal`` and ``and``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

__all__ = ["OPERATIONS", "Call", "Expression", "Name", "Number", "evaluate", "names", "substituted", "text"]


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: float


@dataclass(frozen=True)
class Name:
    """Data, a parameter, a size, a variable or the argument of a scalar function."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator or an atom applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Number | Name | Call


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """The value of an expression: a float, an array or a SciPy sparse array.

    Parameters
    ----------
    expression : Expression
    values : mapping
        A value for every name in the expression.

    Raises
    ------
    KeyError
        For a name without a value.
    """
    results: list[Any] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:  # not recursive: a sum may be thousands of terms deep
        node, ready = stack.pop()
        if isinstance(node, Number):
            results.append(node.value)
        elif isinstance(node, Name):
            results.append(values[node.name])
        elif ready:
            count = len(node.arguments)
            arguments = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(OPERATIONS[node.function](*arguments))
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    return results[0]


def names(expression: Expression) -> frozenset[str]:
    """Every name that the expression uses."""
    found: set[str] = set()
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            found.add(node.name)
        elif isinstance(node, Call):
            stack.extend(node.arguments)
    return frozenset(found)


_BINDING = {"add": 1, "multiply": 2, "divide": 2, "matmul": 2, "negative": 3, "power": 4, "transpose": 5}
_COMPARISON = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "=="}
_SIGN = {"add": " + ", "multiply": "*", "divide": "/", "matmul": " @ ", "power": "^"}


def substituted(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Names replaced (not recursive: sums may be thousands of terms deep)."""
    results: list[Expression] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Name):
            results.append(values.get(node.name, node))
        elif not isinstance(node, Call):
            results.append(node)
        elif ready:
            count = len(node.arguments)
            arguments = tuple(results[len(results) - count :])
            del results[len(results) - count :]
            results.append(Call(node.function, arguments))
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    return results[0]


def text(expression: Expression) -> str:
    """The expression in the language's own spelling."""
    results: list[tuple[str, int]] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Number):
            results.append((f"{node.value:.12g}", 6 if node.value >= 0 else 3))
        elif isinstance(node, Name):
            results.append((node.name, 6))
        elif not ready:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
        else:
            count = len(node.arguments)
            parts = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(_join(node.function, parts))
    return results[0][0]


def _join(function: str, parts: list[tuple[str, int]]) -> tuple[str, int]:
    binding = _BINDING.get(function)
    if function in _COMPARISON:
        return f"{parts[0][0]} {_COMPARISON[function]} {parts[1][0]}", 0
    if function == "and":
        return _chained([part for part, _ in parts]), 0
    if function == "piecewise":
        cases = [f"{value} if {condition}" for (value, _), (condition, _) in zip(parts[:-1:2], parts[1:-1:2])]
        return f"piecewise({', '.join([*cases, f'{parts[-1][0]} otherwise'])})", 6
    if binding is None:
        return f"{function}({', '.join(part for part, _ in parts)})", 6
    if function == "negative":
        inner = _bracket(parts[0], 2)
        return f"-{inner}", min(3, max(2, parts[0][1]))
    if function == "transpose":
        return f"{_bracket(parts[0], 5)}.T", 5
    if function == "add":
        joined = parts[0][0]
        for part, rank in parts[1:]:
            joined += f" - {part[1:]}" if rank > 1 and part.startswith("-") else f" + {part}"
        return joined, 1
    first, *rest = parts
    left = _bracket(first, binding + 1 if function == "power" else binding)
    return left + "".join(_SIGN[function] + _bracket(part, binding + 1) for part in rest), binding


def _chained(comparisons: list[str]) -> str:
    """a <= b and b <= c as a <= b <= c, the only conjunction that the language has."""
    joined = comparisons[0]
    for item in comparisons[1:]:
        sign = next(f" {sign} " for sign in ("<=", ">=", "==", "<", ">") if f" {sign} " in item)
        joined += sign + item.partition(sign)[2]
    return joined


def _bracket(part: tuple[str, int], least: int) -> str:
    return part[0] if part[1] >= least else f"({part[0]})"


def _add(*arguments: Any) -> Any:
    total = arguments[0]
    for argument in arguments[1:]:
        total = total + argument
    return total


def _multiply(*arguments: Any) -> Any:
    product = arguments[0]
    for argument in arguments[1:]:
        product = scale_rows(product, argument)
    return product


def scale_rows(left: Any, right: Any) -> Any:
    """Elementwise product that keeps SciPy sparse arrays sparse; a vector times a matrix scales its rows."""
    if _is_sparse(left) or _is_sparse(right):
        matrix, factor = (left, right) if _is_sparse(left) else (right, left)
        if np.ndim(factor) == 1:
            import scipy.sparse

            return (scipy.sparse.diags_array(np.asarray(factor, float)) @ matrix).tocsr()
        return matrix.multiply(factor).tocsr() if np.ndim(factor) == 2 else matrix * factor
    if np.ndim(left) == 2 and np.ndim(right) == 1:
        return left * np.asarray(right)[:, None]
    if np.ndim(left) == 1 and np.ndim(right) == 2:
        return np.asarray(left)[:, None] * right
    return left * right


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "tocsr")


def _divide(left: Any, right: Any) -> Any:
    if _is_sparse(left):
        return scale_rows(left, 1.0 / np.asarray(right, float) if np.ndim(right) else 1.0 / float(right))
    if np.ndim(left) == 2 and np.ndim(right) == 1:
        return left / np.asarray(right)[:, None]
    return left / right


def _norm(value: Any) -> Any:
    return np.sqrt(np.sum(np.square(value)))


def _huber(value: Any, delta: Any = 1.0) -> Any:
    size = np.abs(value)
    return np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))


def _piecewise(*arguments: Any) -> Any:
    """value, condition, value, condition, ..., otherwise: the first condition that holds decides."""
    result = arguments[-1]
    for value, condition in zip(arguments[-3::-2], arguments[-2::-2]):
        result = np.where(condition, value, result)
    return result


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "multiply": _multiply,
    "divide": _divide,
    "negative": lambda value: -value,
    "power": lambda base, exponent: np.power(base, exponent) if not _is_sparse(base) else base.power(exponent),
    "matmul": lambda left, right: left @ right,
    "transpose": lambda value: value.T,
    "abs": abs,
    "max": lambda *arguments: (
        np.max(arguments[0]) if len(arguments) == 1 else np.maximum.reduce(np.broadcast_arrays(*arguments))
    ),
    "min": lambda *arguments: (
        np.min(arguments[0]) if len(arguments) == 1 else np.minimum.reduce(np.broadcast_arrays(*arguments))
    ),
    "pos": lambda value: np.maximum(value, 0.0),
    "square": np.square,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sum": lambda value: value.sum() if hasattr(value, "sum") else np.sum(value),
    "norm1": lambda value: np.sum(np.abs(value)),
    "norm2": _norm,
    "norm": _norm,
    "sum_squares": lambda value: np.sum(np.square(value)),
    "trace": np.trace,
    "logistic": lambda margin: np.logaddexp(0.0, -margin),
    "hinge": lambda margin: np.maximum(0.0, 1.0 - margin),
    "squared_hinge": lambda margin: np.square(np.maximum(0.0, 1.0 - margin)),
    "softplus": lambda value: np.logaddexp(0.0, value),
    "huber": _huber,
    "quantile": lambda value, tau=0.5: np.maximum(tau * value, (tau - 1.0) * value),
    "epsilon_insensitive": lambda value, epsilon=0.1: np.maximum(0.0, np.abs(value) - epsilon),
    "piecewise": _piecewise,
    "less": lambda left, right: np.less(left, right),
    "less_equal": lambda left, right: np.less_equal(left, right),
    "greater": lambda left, right: np.greater(left, right),
    "greater_equal": lambda left, right: np.greater_equal(left, right),
    "equal": lambda left, right: np.equal(left, right),
    "and": lambda *arguments: np.logical_and.reduce(np.broadcast_arrays(*arguments)),
    "ones": lambda size: np.ones(int(size)),
    "ravel": lambda value: np.ravel(value.toarray() if _is_sparse(value) else value),
}

"""Scalar formulas as cvxpy expressions, atom by atom, so that cvxpy's own rules see that they are convex.

In: the body of a `ScalarFunction`, cvxpy expressions for its arguments, numbers for its parameters. Out: a cvxpy
expression. What cvxpy's rules can't express is refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spdsl.problem import ScalarFunction
from spdsl.problem.expressions import Call, Expression, Name, Number, text
from spdsl.reference.pieces import TranslationError, translate_piecewise

__all__ = ["TranslationError", "translate"]


def translate(function: ScalarFunction, arguments: Sequence[Any], theta: Sequence[Any]) -> Any:
    """phi of cvxpy expressions (n,), elementwise.

    Raises
    ------
    TranslationError
        For what has no form that cvxpy accepts as convex.
    """
    n = arguments[0].shape
    known: dict[str, Any] = dict(zip(function.arguments, arguments))
    known |= {name: np.broadcast_to(np.asarray(number, float), n) for name, number in zip(function.parameters, theta)}

    def piecewise(node: Call) -> Any:
        """A branch may be asked for at another argument, so it is translated anew there."""
        name, argument = function.arguments[0], arguments[0]
        return translate_piecewise(
            function, node, argument, theta, lambda branch, at: _evaluate(branch, {**known, name: at}, piecewise)
        )

    return _evaluate(function.body, known, piecewise)


def _is_constant(value: Any) -> bool:
    return not hasattr(value, "is_convex")


def _evaluate(body: Expression, known: Mapping[str, Any], piecewise: Callable[[Call], Any]) -> Any:
    results: list[Any] = []
    stack: list[tuple[Expression, bool]] = [(body, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Number):
            results.append(np.float64(node.value))
        elif isinstance(node, Name):
            results.append(known[node.name])
        elif node.function == "piecewise":
            results.append(piecewise(node))
        elif ready:
            count = len(node.arguments)
            arguments = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(_apply(node, arguments))
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    return results[0]


def _apply(node: Call, arguments: list[Any]) -> Any:
    rule = RULES.get(node.function)
    if rule is None:
        raise TranslationError(f"cvxpy has no form for `{node.function}` inside a formula: `{text(node)}`")
    return rule(node, arguments)


# -- rules -------------------------------------------------------------------------------------------------------------


def _add(node: Call, arguments: list[Any]) -> Any:
    total = arguments[0]
    for argument in arguments[1:]:
        total = total + argument
    return total


def _multiply(node: Call, arguments: list[Any]) -> Any:
    import cvxpy as cp

    factor: Any = np.float64(1.0)
    moving: list[tuple[Any, Expression]] = []
    for argument, child in zip(arguments, node.arguments):
        if _is_constant(argument):
            factor = factor * argument
        else:
            moving.append((argument, child))
    if not moving:
        return factor
    if len(moving) == 1:
        return cp.multiply(factor, moving[0][0])
    if len(moving) == 2 and moving[0][1] == moving[1][1]:
        return cp.multiply(factor, cp.square(moving[0][0]))
    raise TranslationError(f"cvxpy has no form for a product of two parts that vary: `{text(node)}`")


def _divide(node: Call, arguments: list[Any]) -> Any:
    import cvxpy as cp

    above, below = arguments
    if _is_constant(below):
        return above / below if _is_constant(above) else cp.multiply(1.0 / np.asarray(below), above)
    if _is_constant(above):
        return cp.multiply(above, cp.inv_pos(below))
    raise TranslationError(f"cvxpy has no form for a quotient of two parts that vary: `{text(node)}`")


def _power(node: Call, arguments: list[Any]) -> Any:
    import cvxpy as cp

    base, exponent = arguments
    if _is_constant(base) and _is_constant(exponent):
        return np.power(base, exponent)
    if not _is_constant(exponent):
        if _is_constant(base) and np.all(np.asarray(base) > 0):
            return cp.exp(cp.multiply(np.log(base), exponent))
        raise TranslationError(f"cvxpy has no form for a power with a varying exponent: `{text(node)}`")
    values = np.unique(np.asarray(exponent, float))
    if len(values) != 1:
        raise TranslationError(f"cvxpy needs one exponent for all samples: `{text(node)}`")
    p = float(values[0])
    if p == 1.0:
        return base
    if p == 2.0:
        return cp.square(base)
    if p > 1.0 and not base.is_nonneg():
        if p % 2 == 0:
            return cp.power(cp.abs(base), p) if base.is_affine() else cp.power(base, p)
        raise TranslationError(f"cvxpy needs to know that the base is at least 0: `{text(node)}`")
    return cp.power(base, p)


def _call(name: str) -> Callable[[Call, list[Any]], Any]:
    """A rule for an atom that is the same function in NumPy (constants) and in cvxpy."""

    def rule(node: Call, arguments: list[Any]) -> Any:
        import cvxpy as cp

        if all(_is_constant(argument) for argument in arguments):
            return getattr(np, name)(*arguments)
        return getattr(cp, name)(*arguments)

    return rule


def _extreme(numeric: Any, symbolic: str) -> Callable[[Call, list[Any]], Any]:
    def rule(node: Call, arguments: list[Any]) -> Any:
        import cvxpy as cp

        if all(_is_constant(argument) for argument in arguments):
            return numeric.reduce(np.broadcast_arrays(*arguments))
        shape = next(argument.shape for argument in arguments if not _is_constant(argument))
        filled = [np.broadcast_to(item, shape) if _is_constant(item) else item for item in arguments]
        return getattr(cp, symbolic)(*filled)

    return rule


def _pos(u: Any) -> Any:
    import cvxpy as cp

    return np.maximum(u, 0.0) if _is_constant(u) else cp.pos(u)


def _softplus(u: Any) -> Any:
    import cvxpy as cp

    return np.logaddexp(0.0, u) if _is_constant(u) else cp.logistic(u)


def _square(u: Any) -> Any:
    import cvxpy as cp

    return np.square(u) if _is_constant(u) else cp.square(u)


def _huber(node: Call, arguments: list[Any]) -> Any:
    """delta |r - s| + s^2/2, minimized over s: the same for one delta or one a sample."""
    import cvxpy as cp

    r = arguments[0]
    delta = arguments[1] if len(arguments) > 1 else np.float64(1.0)
    if _is_constant(r):
        inner = np.clip(r, -delta, delta)
        return inner * (r - 0.5 * inner)
    if not r.is_affine():
        raise TranslationError(f"cvxpy needs an affine argument: `{text(node)}`")
    if len(np.unique(delta)) == 1:
        return 0.5 * cp.huber(r, float(np.ravel(delta)[0]))
    s = cp.Variable(r.shape)
    return 0.5 * cp.square(s) + cp.multiply(delta, cp.abs(r - s))


def _quantile(node: Call, arguments: list[Any]) -> Any:
    import cvxpy as cp

    r = arguments[0]
    tau = arguments[1] if len(arguments) > 1 else np.float64(0.5)
    if _is_constant(r):
        return np.maximum(tau * r, (tau - 1.0) * r)
    return cp.maximum(cp.multiply(tau, r), cp.multiply(tau - 1.0, r))


def _insensitive(node: Call, arguments: list[Any]) -> Any:
    import cvxpy as cp

    r, epsilon = arguments
    return _pos((np.abs(r) if _is_constant(r) else cp.abs(r)) - epsilon)


RULES: dict[str, Callable[[Call, list[Any]], Any]] = {
    "add": _add,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "negative": lambda node, u: -u[0],
    "max": _extreme(np.maximum, "maximum"),
    "min": _extreme(np.minimum, "minimum"),
    "abs": _call("abs"),
    "exp": _call("exp"),
    "log": _call("log"),
    "sqrt": _call("sqrt"),
    "square": lambda node, u: _square(u[0]),
    "pos": lambda node, u: _pos(u[0]),
    "softplus": lambda node, u: _softplus(u[0]),
    "logistic": lambda node, u: _softplus(-u[0]),
    "hinge": lambda node, u: _pos(1.0 - u[0]),
    "squared_hinge": lambda node, u: _square(_pos(1.0 - u[0])),
    "huber": _huber,
    "quantile": _quantile,
    "epsilon_insensitive": _insensitive,
}

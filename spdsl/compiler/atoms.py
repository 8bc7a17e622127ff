"""The scalar atoms of the language, spelled out in `max`, `abs`, `piecewise` and smooth functions.

In: an expression over the arguments and parameters of a scalar function. Out: the same function in the few primitives
that the derivation knows, so that `hinge` or `huber` are derived exactly as a user's own formula is.
"""

from __future__ import annotations

from collections.abc import Callable

from spdsl.problem.expressions import Call, Expression, Name, Number

__all__ = ["COMPARISONS", "PRIMITIVES", "SCALAR_ATOMS", "expand_atoms", "mentions"]

COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal")

PRIMITIVES = frozenset(
    {"add", "multiply", "divide", "negative", "power", "exp", "log", "sqrt", "softplus", "abs", "max", "min"}
    | {"piecewise", "and", *COMPARISONS}
)
"""What the derivation understands without expansion."""

ONE, TWO, HALF, ZERO = Number(1.0), Number(2.0), Number(0.5), Number(0.0)


def _minus(left: Expression, right: Expression) -> Expression:
    return Call("add", (left, Call("negative", (right,))))


def _positive_part(u: Expression) -> Expression:
    return Call("max", (u, ZERO))


def _huber(r: Expression, delta: Expression = ONE) -> Expression:
    """r^2/2 up to delta, delta (|r| - delta/2) beyond (Huber 1964)."""
    size = Call("abs", (r,))
    inner = Call("multiply", (HALF, Call("power", (r, TWO))))
    outer = Call("multiply", (delta, _minus(size, Call("multiply", (HALF, delta)))))
    return Call("piecewise", (inner, Call("less_equal", (size, delta)), outer))


def _quantile(r: Expression, tau: Expression = HALF) -> Expression:
    """The pinball loss: tau r for r >= 0, (tau - 1) r below (Koenker & Bassett 1978)."""
    return Call("max", (Call("multiply", (tau, r)), Call("multiply", (_minus(tau, ONE), r))))


def _epsilon_insensitive(r: Expression, epsilon: Expression) -> Expression:
    return _positive_part(_minus(Call("abs", (r,)), epsilon))


SCALAR_ATOMS: dict[str, Callable[..., Expression]] = {
    "pos": _positive_part,
    "square": lambda u: Call("power", (u, TWO)),
    "hinge": lambda m: _positive_part(_minus(ONE, m)),
    "squared_hinge": lambda m: Call("power", (_positive_part(_minus(ONE, m)), TWO)),
    "logistic": lambda m: Call("softplus", (Call("negative", (m,)),)),
    "huber": _huber,
    "quantile": _quantile,
    "epsilon_insensitive": _epsilon_insensitive,
}
"""Atom -> its definition; to add an elementwise loss atom, add a line here and its signature in the language room."""


def expand_atoms(expression: Expression) -> Expression:
    """The expression with every scalar atom replaced by its definition (not recursive: sums may be thousands deep)."""
    results: list[Expression] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if not isinstance(node, Call):
            results.append(node)
        elif ready:
            count = len(node.arguments)
            arguments = tuple(results[len(results) - count :])
            del results[len(results) - count :]
            atom = SCALAR_ATOMS.get(node.function)
            results.append(Call(node.function, arguments) if atom is None else atom(*arguments))
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    return results[0]


def mentions(expression: Expression, name: str) -> bool:
    """Does a name occur in the expression?"""
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            if node.name == name:
                return True
        elif isinstance(node, Call):
            stack.extend(node.arguments)
    return False

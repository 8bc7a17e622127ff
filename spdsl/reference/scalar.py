"""Values and one-sided derivatives of scalar formulas, straight from their atoms: the certificate's own arithmetic.

In: the body of a `ScalarFunction`, its arguments and parameters. Out: phi, and the gradients of the pieces that meet
at each point. Nothing here uses what the compiler derived (pieces, kinks, kernels), so the two can be compared.

Each atom is evaluated with its derivative along a direction h. Where two arguments of a `max` are equal (within a
`Touch`) the direction decides, so what comes out is the exact one-sided derivative,
and the gradient of the piece that lies on that side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem import ScalarFunction
from spdsl.problem.expressions import Expression, Name, Number
from spdsl.problem.functions import Array

__all__ = ["FLOOR", "Jet", "Touch", "UnknownAtomError", "corner_gradients", "jet", "value"]

FLOOR = 1e-6  # the smallest size that arguments of a `max` are compared by
DIRECTIONS = 48  # drawn to find the pieces that meet at a corner of several arguments


@dataclass(frozen=True)
class Touch:
    """Two arguments of a `max` count as equal within `relative` times the larger of their size and `size`."""

    relative: float
    size: float = FLOOR


class UnknownAtomError(ValueError):
    """An atom that this arithmetic doesn't know."""


@dataclass(frozen=True)
class Jet:
    """phi, its derivative along h, and the gradient of the piece on that side (one array (n,) an argument)."""

    value: Any
    along: Any
    gradient: tuple[Any, ...]


def value(function: ScalarFunction, arguments: Sequence[Array], theta: Sequence[Any]) -> Array:
    """phi at the arguments (n,)."""
    found = jet(function, arguments, theta, [1.0] * len(arguments), Touch(0.0))
    return np.broadcast_to(np.asarray(found.value, float), np.shape(arguments[0])).copy()


def jet(
    function: ScalarFunction, arguments: Sequence[Array], theta: Sequence[Any], h: Sequence[float], touch: Touch
) -> Jet:
    """phi with its one-sided derivative along `h` (one number an argument)."""
    k = len(arguments)
    known: dict[str, Jet] = {}
    for i, (name, argument) in enumerate(zip(function.arguments, arguments)):
        unit = tuple(np.full(np.shape(argument), float(i == j)) for j in range(k))
        known[name] = Jet(np.asarray(argument, float), np.full(np.shape(argument), float(h[i])), unit)
    for name, number in zip(function.parameters, theta):
        known[name] = _constant(number, k)
    with np.errstate(all="ignore"):
        return _evaluate(function.body, known, k, touch)


def corner_gradients(
    function: ScalarFunction, arguments: Sequence[Array], theta: Sequence[Any], touch: Touch
) -> list[tuple[Array, ...]]:
    """Gradients of the pieces that meet at each point: their convex hull is the subdifferential of phi there.

    Returns
    -------
    list of tuples of arrays (n,)
        Two entries for one argument (derivative from the left and from the right), more for several. Points away from
        every kink have the same gradient in each.
    """
    n = np.shape(arguments[0])
    if len(arguments) == 1:
        directions: list[list[float]] = [[-1.0], [1.0]]
    else:
        rng = np.random.default_rng(0)
        drawn = rng.standard_normal((DIRECTIONS, len(arguments)))
        directions = drawn.tolist()
    found = [
        tuple(
            np.broadcast_to(np.asarray(part, float), n).copy()
            for part in jet(function, arguments, theta, h, touch).gradient
        )
        for h in directions
    ]
    return found


# -- the interpreter ---------------------------------------------------------------------------------------------------


def _constant(number: Any, k: int) -> Jet:
    array = np.asarray(number, float)
    return Jet(array, np.zeros(()), tuple(np.zeros(()) for _ in range(k)))


def _evaluate(body: Expression, known: Mapping[str, Jet], k: int, touch: Touch) -> Jet:
    """Not recursive: a sum may be thousands of terms deep. Conditions evaluate to boolean arrays."""
    results: list[Any] = []
    stack: list[tuple[Expression, bool]] = [(body, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Number):
            results.append(_constant(node.value, k))
        elif isinstance(node, Name):
            results.append(known[node.name])
        elif ready:
            count = len(node.arguments)
            arguments = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(_apply(node.function, arguments, touch))
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    found: Jet = results[0]
    return found


def _apply(function: str, arguments: list[Any], touch: Touch) -> Any:
    if function in COMPARISONS:
        return _compare(function, arguments[0], arguments[1], touch)
    if function == "and":
        return np.logical_and.reduce(np.broadcast_arrays(*arguments))
    if function == "piecewise":
        return _piecewise(arguments)
    rule = RULES.get(function)
    if rule is None:
        raise UnknownAtomError(f"the atom `{function}` is unknown to the certificate")
    return rule(arguments, touch)


def _chain(u: Jet, outer: Any, slope: Any) -> Jet:
    """g(u) from g and g' at u; a zero inner derivative stays zero where g' is infinite."""

    def times(inner: Any) -> Any:
        return np.where(inner == 0, 0.0, slope * inner)

    return Jet(outer, times(u.along), tuple(times(part) for part in u.gradient))


def _plus(terms: list[Jet], touch: Touch) -> Jet:
    total = terms[0]
    for term in terms[1:]:
        total = Jet(
            total.value + term.value,
            total.along + term.along,
            tuple(a + b for a, b in zip(total.gradient, term.gradient)),
        )
    return total


def _times(factors: list[Jet], touch: Touch) -> Jet:
    product = factors[0]
    for factor in factors[1:]:
        left, right = product.value, factor.value
        product = Jet(
            left * right,
            product.along * right + left * factor.along,
            tuple(a * right + left * b for a, b in zip(product.gradient, factor.gradient)),
        )
    return product


def _over(arguments: list[Jet], touch: Touch) -> Jet:
    above, below = arguments
    return _times([above, _chain(below, 1.0 / below.value, -1.0 / below.value**2)], touch)


def _power(arguments: list[Jet], touch: Touch) -> Jet:
    base, exponent = arguments
    if np.any(exponent.along != 0) or any(np.any(part != 0) for part in exponent.gradient):
        log = _chain(base, np.log(base.value), 1.0 / base.value)
        product = _times([exponent, log], touch)
        return _chain(product, np.exp(product.value), np.exp(product.value))
    p = exponent.value
    slope = np.where(p == 0, 0.0, p * np.power(base.value, np.where(p == 0, 1.0, p - 1.0)))
    return _chain(base, np.power(base.value, p), slope)


def _select(left: Jet, right: Jet, take_left: Any) -> Jet:
    return Jet(
        np.where(take_left, left.value, right.value),
        np.where(take_left, left.along, right.along),
        tuple(np.where(take_left, a, b) for a, b in zip(left.gradient, right.gradient)),
    )


def _tied(left: Jet, right: Jet, touch: Touch) -> Any:
    size = max(_largest(left.value), _largest(right.value), touch.size)
    return np.abs(left.value - right.value) <= touch.relative * size


def _largest(values: Any) -> float:
    finite = np.abs(values)[np.isfinite(values)] if np.ndim(values) else np.abs(values)
    return float(np.max(finite, initial=0.0))


def _maximum(arguments: list[Jet], touch: Touch) -> Jet:
    best = arguments[0]
    for other in arguments[1:]:
        tied = _tied(best, other, touch)
        take = np.where(tied, best.along >= other.along, best.value > other.value)
        best = _select(best, other, take)
    return best


def _negative(arguments: list[Jet], touch: Touch) -> Jet:
    return _chain(arguments[0], -arguments[0].value, -1.0)


def _minimum(arguments: list[Jet], touch: Touch) -> Jet:
    return _negative([_maximum([_negative([u], touch) for u in arguments], touch)], touch)


def _absolute(arguments: list[Jet], touch: Touch) -> Jet:
    return _maximum([arguments[0], _negative(arguments, touch)], touch)


def _zero(u: Jet) -> Jet:
    return _constant(0.0, len(u.gradient))


def _positive(arguments: list[Jet], touch: Touch) -> Jet:
    return _maximum([arguments[0], _zero(arguments[0])], touch)


def _shifted(u: Jet, sign: float, shift: float) -> Jet:
    return _chain(u, sign * u.value + shift, sign)


def _squared(arguments: list[Jet], touch: Touch) -> Jet:
    u = arguments[0]
    return _chain(u, u.value**2, 2.0 * u.value)


def _hinge(arguments: list[Jet], touch: Touch) -> Jet:
    return _positive([_shifted(arguments[0], -1.0, 1.0)], touch)


def _softplus(arguments: list[Jet], touch: Touch) -> Jet:
    u = arguments[0]
    return _chain(u, np.logaddexp(0.0, u.value), 0.5 * (1.0 + np.tanh(0.5 * u.value)))


def _huber(arguments: list[Jet], touch: Touch) -> Jet:
    r = arguments[0]
    delta = arguments[1].value if len(arguments) > 1 else 1.0
    inner = np.clip(r.value, -delta, delta)
    return _chain(r, inner * (r.value - 0.5 * inner), inner)


def _quantile(arguments: list[Jet], touch: Touch) -> Jet:
    r = arguments[0]
    tau = arguments[1].value if len(arguments) > 1 else 0.5
    return _maximum([_chain(r, tau * r.value, tau), _chain(r, (tau - 1.0) * r.value, tau - 1.0)], touch)


def _insensitive(arguments: list[Jet], touch: Touch) -> Jet:
    size = _absolute(arguments[:1], touch)
    return _positive([_plus([size, _negative(arguments[1:], touch)], touch)], touch)


RULES: dict[str, Callable[[list[Jet], Touch], Jet]] = {
    "add": _plus,
    "multiply": _times,
    "divide": _over,
    "power": _power,
    "negative": _negative,
    "max": _maximum,
    "min": _minimum,
    "abs": _absolute,
    "pos": _positive,
    "square": _squared,
    "sqrt": lambda u, touch: _chain(u[0], np.sqrt(u[0].value), 0.5 / np.sqrt(u[0].value)),
    "exp": lambda u, touch: _chain(u[0], np.exp(u[0].value), np.exp(u[0].value)),
    "log": lambda u, touch: _chain(u[0], np.log(u[0].value), 1.0 / u[0].value),
    "softplus": _softplus,
    "logistic": lambda u, touch: _softplus([_shifted(u[0], -1.0, 0.0)], touch),
    "hinge": _hinge,
    "squared_hinge": lambda u, touch: _squared([_hinge(u, touch)], touch),
    "huber": _huber,
    "quantile": _quantile,
    "epsilon_insensitive": _insensitive,
}

COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal")


def _compare(relation: str, left: Jet, right: Jet, touch: Touch) -> Any:
    """Does the relation hold just beside the point, on the side of the direction?"""
    if relation in ("greater", "greater_equal"):
        left, right = right, left
    tied = _tied(left, right, touch)
    level = left.along == right.along
    if relation == "equal":
        return tied & level
    closed = relation in ("less_equal", "greater_equal")
    beside = np.where(level, closed, left.along < right.along)
    return np.where(tied, beside, left.value < right.value)


def _piecewise(arguments: list[Any]) -> Jet:
    """``piecewise(value, condition, ..., value)``: the first whose condition holds, the last otherwise."""
    found: Jet = arguments[-1]
    for position in range(len(arguments) - 3, -1, -2):
        found = _select(arguments[position], found, arguments[position + 1])
    return found

"""The SP-regularizers that have a name in the language: their f(v, lambda) as formulas, and nothing else.

In: a name. Out: f as an expression over ``v``, ``lambda`` and its parameters; `weights.derive_weights` finds v* as it
does for a user's own f. Sources: hard, linear, mixture, log: GAGA (section 2); polynomial, logarithmic, welsch,
cauchy, huber: the tables of the self-paced literature as collected in GAGA's references.
"""

from __future__ import annotations

from spdsl.problem.expressions import Call, Expression, Name, Number

__all__ = ["PARAMETERS", "REGULARIZERS"]

v, lam = Name("v"), Name("lambda")
gamma, a, t = Name("gamma"), Name("a"), Name("t")
one, two = Number(1.0), Number(2.0)


def _add(*terms: Expression) -> Expression:
    return Call("add", terms)


def _times(*factors: Expression) -> Expression:
    return Call("multiply", factors)


def _minus(term: Expression) -> Expression:
    return Call("negative", (term,))


def _over(above: Expression, below: Expression) -> Expression:
    return Call("divide", (above, below))


def _power(base: Expression, exponent: Expression) -> Expression:
    return Call("power", (base, exponent))


def _log(argument: Expression) -> Expression:
    return Call("log", (argument,))


def _kl(p: Expression, q: Expression) -> Expression:
    """KL(p, q) = p log(p/q) - p + q."""
    return _add(_times(p, _log(_over(p, q))), _minus(p), q)


_zeta = _add(one, _minus(lam))

REGULARIZERS: dict[str, Expression] = {
    "hard": _minus(_times(lam, v)),
    "linear": _times(lam, _add(_over(_power(v, two), two), _minus(v))),
    "mixture": _over(_power(gamma, two), _add(v, _over(gamma, lam))),
    "log": _over(_kl(_add(one, _times(a, lam)), v), a),
    "polynomial": _times(lam, _add(_over(_power(v, t), t), _minus(v))),
    "logarithmic": _add(_times(_zeta, v), _minus(_over(_power(_zeta, v), _log(_zeta)))),
    "welsch": _times(lam, _add(one, _minus(v), _times(v, _log(v)))),
    "cauchy": _times(lam, _add(v, _minus(one), _minus(_log(v)))),
    "huber": _over(lam, v),
}
"""Name -> f(v, lambda)."""

PARAMETERS: dict[str, tuple[str, ...]] = {"mixture": ("gamma",), "log": ("a",), "polynomial": ("t",)}
"""Name -> the parameters of its f beside v and lambda."""

"""Between expressions and sympy: conversion with stable functions, and printing as text, LaTeX, NumPy and numba
source.

In: an `Expression` over named quantities. Out: a sympy expression and its spellings. This is the only module that
says how a symbol or a function is spelled. It imports sympy, so nothing that a cached model needs may import it.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from spdsl.compiler.quantities import Quantity
from spdsl.problem.expressions import Expression, Name, Number
from spdsl.problem.functions import Formula

__all__ = ["Symbolic", "code", "derivative", "formula", "python_name", "sigmoid", "softplus", "symbol", "to_sympy"]

Symbolic: TypeAlias = Any  # a sympy expression: sympy is untyped


def symbol(quantity: Quantity) -> Symbolic:
    """The sympy symbol of a quantity, with what is known of its sign as assumption."""
    known = {
        "positive": {"positive": True},
        "nonnegative": {"nonnegative": True},
        "negative": {"negative": True},
        "nonpositive": {"nonpositive": True},
        "count": {"positive": True, "integer": True},
        "real": {"real": True},
        "labels": {"real": True, "nonzero": True},
    }[quantity.sign]
    return sympy.Symbol(quantity.name, **known)


class softplus(sympy.Function):  # type: ignore[misc] # noqa: N801 (spelled as in formulas)
    """log(1 + e^u)."""

    nargs = 1
    is_real = True
    is_positive = True

    def fdiff(self, argindex: int = 1) -> Symbolic:
        """The derivative, a sigmoid."""
        return sigmoid(self.args[0])


class sigmoid(sympy.Function):  # type: ignore[misc] # noqa: N801
    """1 / (1 + e^-u)."""

    nargs = 1
    is_real = True
    is_positive = True

    def fdiff(self, argindex: int = 1) -> Symbolic:
        """The derivative as a product without cancellation."""
        return sigmoid(self.args[0]) * sigmoid(-self.args[0])


# --- expression -> sympy --------------------------------------------------------------------------------------------


def number(value: float) -> Symbolic:
    """A literal as an exact decimal: 5e-3 is 1/200, so that formulas stay readable and cancellations exact."""
    if value != value or value in (float("inf"), float("-inf")):
        return sympy.Float(value)
    if value == int(value) and abs(value) < 1e15:
        return sympy.Integer(int(value))
    return sympy.Rational(repr(float(value)))


def to_sympy(expression: Expression, symbols: Mapping[str, Symbolic]) -> Symbolic:
    """An expression in primitives (see `atoms.expand_atoms`) as sympy, with stable functions recognized."""
    results: list[Symbolic] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, Number):
            results.append(number(node.value))
        elif isinstance(node, Name):
            results.append(symbols[node.name])
        elif ready:
            count = len(node.arguments)
            arguments = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(apply(node.function, arguments))
        else:
            stack.append((node, True))
            stack.extend((argument, False) for argument in reversed(node.arguments))
    return results[0]


def apply(function: str, arguments: list[Symbolic]) -> Symbolic:
    """A primitive applied to sympy arguments."""
    match function:
        case "add":
            return sympy.Add(*arguments)
        case "multiply":
            return sympy.Mul(*arguments)
        case "divide":
            return _quotient(arguments[0], arguments[1])
        case "negative":
            return -arguments[0]
        case "power":
            return arguments[0] ** arguments[1]
        case "sqrt":
            return sympy.sqrt(arguments[0])
        case "exp":
            return sympy.exp(arguments[0])
        case "log":
            return _logarithm(arguments[0])
        case "softplus":
            return softplus(arguments[0])
        case "abs":
            return sympy.Abs(arguments[0])
        case "max":
            return sympy.Max(*arguments)
        case "min":
            return sympy.Min(*arguments)
        case "piecewise":
            pairs = list(zip(arguments[0:-1:2], arguments[1:-1:2]))
            return sympy.Piecewise(*pairs, (arguments[-1], True))
        case "less":
            return arguments[0] < arguments[1]
        case "less_equal":
            return arguments[0] <= arguments[1]
        case "greater":
            return arguments[0] > arguments[1]
        case "greater_equal":
            return arguments[0] >= arguments[1]
        case "equal":
            return sympy.Eq(arguments[0], arguments[1])
        case "and":
            return sympy.And(*arguments)
    raise KeyError(function)


def _log_sum(total: Symbolic) -> Symbolic | None:
    """log of a sum of two positive terms of which one at least is c e^u, as a stable softplus; None otherwise."""
    if not isinstance(total, sympy.Add) or len(total.args) != 2 or not total.has(sympy.exp):
        return None
    first, second = (_log_of_exponential(term) for term in total.args)
    if first is None or second is None:
        return None
    if first.is_number or (not second.is_number and sympy.default_sort_key(first) < sympy.default_sort_key(second)):
        return first + softplus(second - first)
    return second + softplus(first - second)


def _log_of_exponential(term: Symbolic) -> Symbolic | None:
    """u + log(c) of c e^u with a positive c, None for other terms."""
    coefficient, factors = term.as_independent(sympy.exp)
    if not coefficient.is_positive:
        return None
    exponent = sympy.Integer(0)
    for factor in sympy.Mul.make_args(factors):
        if factor == 1:
            continue
        if not isinstance(factor, sympy.exp):
            return None
        exponent += factor.args[0]
    return exponent + sympy.log(coefficient)


def _logarithm(argument: Symbolic) -> Symbolic:
    stable = _log_sum(argument)
    return sympy.log(argument) if stable is None else stable


def _quotient(above: Symbolic, below: Symbolic) -> Symbolic:
    """above / below; e^a / (e^a + e^b) in any spelling becomes a sigmoid."""
    stable = _log_sum(below)
    if stable is None:
        return above / below
    log_above = _log_of_exponential(above)
    parts = [_log_of_exponential(term) for term in below.args]
    if log_above is not None:
        for own, other in (parts, parts[::-1]):
            assert own is not None
            difference = sympy.expand(log_above - own)
            if difference.is_number:
                return sympy.exp(difference) * sigmoid(sympy.expand(own - other))
    return above / below


# --- differentiation ------------------------------------------------------------------------------------------------


def derivative(e: Symbolic, x: Symbolic) -> Symbolic:
    """The derivative; as `sympy.diff`, whose first call loads tensors and group theory, and which takes thousands of
    terms slowly."""
    if e == x:
        return sympy.Integer(1)
    if not e.has(x):
        return sympy.Integer(0)
    if e.is_Add:
        return sympy.Add(*(derivative(term, x) for term in e.args if term.has(x)))
    if e.is_Mul:
        moving = [factor for factor in e.args if factor.has(x)]
        rest = sympy.Mul(*(factor for factor in e.args if not factor.has(x)))
        parts = []
        for position, factor in enumerate(moving):
            parts.append(sympy.Mul(rest, *moving[:position], derivative(factor, x), *moving[position + 1 :]))
        return sympy.Add(*parts)
    if e.is_Pow:
        base, exponent = e.args
        if not exponent.has(x):
            return exponent * base ** (exponent - 1) * derivative(base, x)
        inner = derivative(exponent, x) * sympy.log(base)
        return e * (inner + exponent * derivative(base, x) / base if base.has(x) else inner)
    if len(e.args) == 1 and isinstance(e, (sympy.exp, sympy.log, softplus, sigmoid)):
        return e.fdiff(1) * derivative(e.args[0], x)
    return sympy.diff(e, x)


# --- sympy -> text and LaTeX ----------------------------------------------------------------------------------------


def _readable_order(expression: Symbolic) -> list[Symbolic]:
    """The terms of a sum, those with a minus sign last: 1 - l/lambda."""
    # sorting thousands of terms takes seconds
    terms = expression.as_ordered_terms() if len(expression.args) < 50 else list(expression.args)
    return sorted(terms, key=lambda term: bool(term.could_extract_minus_sign()))


class _Text(StrPrinter):  # type: ignore[misc]
    """The language's own spelling."""

    def _as_ordered_terms(self, expr: Symbolic, order: Any = None) -> list[Symbolic]:
        return _readable_order(expr)

    def _print_Pow(self, expr: Symbolic, rational: bool = False) -> str:
        return str(super()._print_Pow(expr, rational=rational)).replace("**", "^")

    def _print_softplus(self, expr: Symbolic) -> str:
        (u,) = expr.args
        return f"logistic({self._print(-u)})" if u.could_extract_minus_sign() else f"log(1 + exp({self._print(u)}))"

    def _print_sigmoid(self, expr: Symbolic) -> str:
        return f"1/(1 + exp({self._print(-expr.args[0])}))"

    def _print_Abs(self, expr: Symbolic) -> str:
        return f"abs({self._print(expr.args[0])})"

    def _print_Max(self, expr: Symbolic) -> str:
        return f"max({', '.join(map(self._print, expr.args))})"

    def _print_Min(self, expr: Symbolic) -> str:
        return f"min({', '.join(map(self._print, expr.args))})"


class _Latex(LatexPrinter):  # type: ignore[misc]
    def _as_ordered_terms(self, expr: Symbolic, order: Any = None) -> list[Symbolic]:
        return _readable_order(expr)

    def _print_softplus(self, expr: Symbolic, exp: Any = None) -> str:
        return rf"\log\left(1 + e^{{{self._print(expr.args[0])}}}\right)" + (f"^{{{exp}}}" if exp else "")

    def _print_sigmoid(self, expr: Symbolic, exp: Any = None) -> str:
        return rf"\sigma{f'^{{{exp}}}' if exp else ''}\left({self._print(expr.args[0])}\right)"


_text_printer = _Text()
_latex_printer = _Latex({"ln_notation": False, "fold_short_frac": False})


def formula(expression: Symbolic) -> Formula:
    """Text and LaTeX of a sympy expression."""
    return Formula(_text_printer.doprint(expression), _latex_printer.doprint(expression))


# --- sympy -> Python source -----------------------------------------------------------------------------------------

RESERVED = frozenset({"np", "math", "njit", "z", "v", "theta", "piece", "loss", "age", "weight", "nan", "inf"})

Dialect = Literal["numpy", "numba"]

_CALLS = {
    "numpy": {"log": "np.log", "Abs": "np.abs", "Max": "np.maximum", "Min": "np.minimum", "sign": "np.sign"},
    "numba": {"log": "math.log", "Abs": "abs", "Max": "max", "Min": "min", "sign": "np.sign"},
}
_SQRT = {"numpy": "np.sqrt", "numba": "math.sqrt"}


def python_name(name: str) -> str:
    """An identifier for a quantity in generated source: its own name unless that means something to Python or to us."""
    clean = (
        name
        if name.isidentifier() and name.isascii()
        else "q_"
        + "".join(
            character if character.isascii() and character.isalnum() else f"_{ord(character)}_" for character in name
        )
    )
    return f"{clean}_" if keyword.iskeyword(clean) or clean in RESERVED or clean.startswith("_") else clean


def code(expression: Symbolic, names: Mapping[str, str], dialect: Dialect) -> str:
    """Python source of a sympy expression.

    Parameters
    ----------
    names : mapping
        The identifier of each symbol, by the symbol's name; `python_name` for those missing.
    """
    return _strip(_Source(names, dialect).show(expression))


def _strip(source: str) -> str:
    """Without a bracket around the whole."""
    if not (source.startswith("(") and source.endswith(")")):
        return source
    depth = 0
    for position, character in enumerate(source):
        depth += (character == "(") - (character == ")")
        if depth == 0 and position < len(source) - 1:
            return source
    return source[1:-1]


class _Source:
    """Prints brackets around every sum, so that precedence is never in doubt."""

    def __init__(self, names: Mapping[str, str], dialect: Dialect) -> None:
        self.names = names
        self.dialect = dialect

    def show(self, e: Symbolic) -> str:
        if e.is_Symbol:
            return self.names.get(e.name) or python_name(e.name)
        if e.is_Number or e.is_NumberSymbol:
            return self.constant(e)
        if e.is_Add:
            return self.sum(e)
        if e.is_Mul:
            return self.product(e)
        if e.is_Pow:
            return self.power(e)
        name = type(e).__name__
        if name in ("exp", "softplus", "sigmoid"):
            return f"_{name}({self.show(e.args[0])})"
        if name == "log" and e.args[0].is_Add and sympy.Integer(1) in e.args[0].args:  # precise for log(1 - small)
            module = "np" if self.dialect == "numpy" else "math"
            return f"{module}.log1p({_strip(self.show(e.args[0] - 1))})"
        if name in ("Max", "Min") and len(e.args) > 2:
            first, *rest = e.args
            return f"{_CALLS[self.dialect][name]}({self.show(first)}, {self.show(type(e)(*rest, evaluate=False))})"
        if name in _CALLS[self.dialect]:
            return f"{_CALLS[self.dialect][name]}({', '.join(self.show(argument) for argument in e.args)})"
        raise NotImplementedError(f"no source for {name} in {e}")

    def sum(self, e: Symbolic) -> str:
        return self.joined(_readable_order(e))

    def joined(self, terms: list[Symbolic]) -> str:
        """The sum in brackets; a long one in halves, as Python's compiler descends into every nested sum."""
        if len(terms) > 50:
            half = len(terms) // 2
            return f"({self.joined(terms[:half])} + {self.joined(terms[half:])})"
        source = _strip(self.show(terms[0]))
        for term in terms[1:]:
            shown = self.show(term) if term.is_Add else _strip(self.show(term))
            source += f" - {shown[1:]}" if shown.startswith("-") else f" + {shown}"
        return f"({source})"

    def constant(self, e: Symbolic) -> str:
        value = float(e)
        if e.is_Integer and abs(value) < 1e15:
            return f"{int(e)}.0" if e >= 0 else f"-{-int(e)}.0"
        if e.is_Rational and not e.is_Integer and abs(e.p) < 1000 and abs(e.q) < 1000 and float(repr(value)) != e:
            return f"({e.p}.0/{e.q}.0)"
        return repr(value) if value == value and abs(value) != float("inf") else f'float("{value}")'

    def product(self, e: Symbolic) -> str:
        sign, above, below = "", [], []
        for factor in sympy.Mul.make_args(e):
            if factor.is_Rational:
                if factor < 0:
                    sign, factor = "-", -factor
                if factor.p != 1:
                    above.append(self.constant(sympy.Integer(factor.p)))
                if factor.q != 1:
                    below.append(self.constant(sympy.Integer(factor.q)))
            elif factor.is_Pow and factor.exp.could_extract_minus_sign():
                below.append(self.show(1 / factor))
            else:
                above.append(self.show(factor))
        source = "*".join(above) or "1.0"
        if below:
            source += "/" + (below[0] if len(below) == 1 else f"({'*'.join(below)})")
        return f"({sign}{source})" if sign or below else source

    def power(self, e: Symbolic) -> str:
        base, exponent = e.as_base_exp()
        if exponent.could_extract_minus_sign():
            return f"(1.0/{self.show(base**-exponent)})"
        if exponent == sympy.Rational(1, 2):
            return f"{_SQRT[self.dialect]}({self.show(base)})"
        shown = self.show(base)
        if exponent.is_Integer:
            return f"{shown}**{int(exponent)}" if shown[0] == "(" or shown.isidentifier() else f"({shown})**{exponent}"
        if exponent.is_Rational and exponent.q == 2:
            whole = (exponent - sympy.Rational(1, 2)).p
            root = f"{_SQRT[self.dialect]}({shown})"
            return f"({self.show(base**whole)}*{root})"
        return f"({shown})**({_strip(self.show(exponent))})"

"""How sympy expressions are spelled: as text of the language, as LaTeX, as NumPy and as numba source.

In: a sympy expression. Out: texts. This is the only module that says how a symbol or a function is spelled.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, Literal

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from spdsl.compiler.algebra import Symbolic
from spdsl.problem.functions import Formula

__all__ = ["Dialect", "code", "formula", "python_name"]

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

"""What people type or paste instead of the language's own signs and letters, and what they meant.

In: a character or a word. Out: the canonical spelling of names, the intended sign, the Latin letter behind a
look-alike.
"""

from __future__ import annotations

import unicodedata

from spdsl.language.record import Record

__all__ = [
    "FOREIGN_SIGNS",
    "KEYWORD_ALIASES",
    "SIGN_SPELLINGS",
    "ForeignSign",
    "canonical_name",
    "describe_character",
    "latin_twin",
]

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ϵ": "epsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "µ": "mu", "ν": "nu",
    "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "ς": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi",
    "ϕ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta",
    "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_GREEK_TABLE = str.maketrans(_GREEK)

SIGN_SPELLINGS = {"≤": "<=", "≥": ">=", "⪰": ">>"}
"""Accepted spellings of comparisons."""


def canonical_name(text: str) -> str:
    """The ASCII spelling of a name: `λ_max` is `lambda_max`."""
    return text if text.isascii() else text.translate(_GREEK_TABLE)


class ForeignSign(Record):
    """A sign of another language: what to write, and the token that it stands for (`None`: no single one)."""

    help: str
    token: tuple[str, str] | None = None


def _sign(kind: str, text: str) -> ForeignSign:
    return ForeignSign(f"write `{text}`", (kind, text))


FOREIGN_SIGNS: dict[str, ForeignSign] = {
    "**": ForeignSign("powers are written with `^`", ("CARET", "^")),
    "//": ForeignSign("a comment starts with `#`; division is `/`"),
    "/*": ForeignSign("a comment starts with `#` and lasts to the end of its line"),
    "*/": ForeignSign("a comment starts with `#` and lasts to the end of its line"),
    "%": ForeignSign("a comment starts with `#`; the matrix product is `@`"),
    "=>": _sign("COMPARE", ">="),
    "=<": _sign("COMPARE", "<="),
    "<<": ForeignSign("turn it round: `A << B` is written `B >> A`"),
    "!=": ForeignSign("an optimum can't keep off a single value: use `<=`, `>=` or `==`"),
    "<>": ForeignSign("an optimum can't keep off a single value: use `<=`, `>=` or `==`"),
    "≠": ForeignSign("an optimum can't keep off a single value: use `<=`, `>=` or `==`"),
    ":=": _sign("EQUAL", "="),
    "+=": ForeignSign("write `=`; nothing is updated in a model"),
    "-=": ForeignSign("write `=`; nothing is updated in a model"),
    "*=": ForeignSign("write `=`; nothing is updated in a model"),
    "/=": ForeignSign("write `=`; nothing is updated in a model"),
    ">>=": ForeignSign("positive semidefinite is `>>`", ("COMPARE", ">>")),
    "&&": ForeignSign("write one constraint a line: all of them have to hold"),
    "&": ForeignSign("write one constraint a line: all of them have to hold"),
    "||": ForeignSign("a norm is `norm2(x)`, an absolute value `abs(x)`"),
    "|": ForeignSign("an absolute value is `abs(x)`, a norm `norm1(x)` or `norm2(x)`"),
    "‖": ForeignSign("a norm is `norm1(x)`, `norm2(x)` or `norm(x)`"),
    "∥": ForeignSign("a norm is `norm1(x)`, `norm2(x)` or `norm(x)`"),
    ".*": ForeignSign("`*` is elementwise already: write `*`", ("TIMES", "*")),
    "./": ForeignSign("`/` is elementwise already: write `/`", ("TIMES", "/")),
    ".^": ForeignSign("`^` is elementwise already: write `^`", ("CARET", "^")),
    "~": ForeignSign("a model states what is minimized, not a distribution: write its negative log-likelihood"),
    "{": ForeignSign("use round brackets: `(`", ("LPAR", "(")),
    "}": ForeignSign("use round brackets: `)`", ("RPAR", ")")),
    "'": ForeignSign('the transpose is `.T`; a text is written in double quotes: `"..."`'),
    "’": ForeignSign("the transpose is `.T`"),
    "′": ForeignSign("the transpose is `.T`"),
    "ᵀ": ForeignSign("the transpose is `.T`", ("TRANSPOSE", ".T")),
    "⊤": ForeignSign("the transpose is `.T`"),
    "“": ForeignSign('use straight double quotes: `"`'),
    "”": ForeignSign('use straight double quotes: `"`'),
    "−": _sign("SIGN", "-"),
    "–": _sign("SIGN", "-"),
    "—": _sign("SIGN", "-"),
    "·": ForeignSign("write `*` (elementwise or by a number) or `@` (matrix product)", ("TIMES", "*")),
    "⋅": ForeignSign("write `*` (elementwise or by a number) or `@` (matrix product)", ("TIMES", "*")),
    "×": ForeignSign("write `*` (elementwise or by a number) or `@` (matrix product)", ("TIMES", "*")),
    "÷": _sign("TIMES", "/"),
    "∈": _sign("IN", "in"),
    "≽": _sign("COMPARE", ">>"),
    "≻": _sign("COMPARE", ">>"),
    "⩾": _sign("COMPARE", ">="),
    "⩽": _sign("COMPARE", "<="),
    "∞": ForeignSign("leave the bound out: what isn't bounded needs no constraint"),
    "√": ForeignSign("write `sqrt(x)`"),
    "∑": ForeignSign("write `sum(x)`; the samples of a loss are summed for you"),
    "¹": ForeignSign("write `^1`"),
    "²": ForeignSign("write `^2`"),
    "³": ForeignSign("write `^3`"),
    "s.t.": ForeignSign("write `subject to`", ("SUBJECT_TO", "subject to")),
    "$": ForeignSign("a model is plain text, not LaTeX"),
    "\\": ForeignSign("a model is plain text, not LaTeX; a line goes on when it ends in an operator"),
    "?": ForeignSign("case distinctions are written `piecewise(a if x <= 0, b otherwise)`"),
    "!": ForeignSign("delete it"),
}
"""Signs of other languages, of LaTeX and of word processors."""

KEYWORD_ALIASES: dict[str, str] = {
    "parameters": "parameter", "params": "parameter", "param": "parameter", "constants": "parameter",
    "constant": "parameter", "hyperparameter": "parameter", "hyperparameters": "parameter",
    "inputs": "data", "input": "data", "dataset": "data", "given": "data",
    "variables": "variable", "var": "variable", "vars": "variable", "unknown": "variable",
    "unknowns": "variable", "find": "variable",
    "let": "define", "def": "define", "function": "define", "functions": "define", "where": "define",
    "ages": "age", "pace": "age",
    "minimise": "minimize", "minimum": "minimize", "min": "minimize", "objective": "minimize",
    "subject": "subject to", "constraints": "subject to", "constraint": "subject to", "st": "subject to",
    "such": "subject to", "subjectto": "subject to", "subject_to": "subject to",
    "solver": "solve", "using": "solve", "method": "solve", "options": "solve",
    "regulariser": "regularizer", "regularization": "regularizer", "regularisation": "regularizer",
    "penalty": "regularizer", "reg": "regularizer", "regularize": "regularizer",
    "losses": "loss", "cost": "loss", "error": "loss",
    "selfpaced": "self_paced", "self": "self_paced", "sp": "self_paced", "sp_regularizer": "self_paced",
}  # fmt: skip
"""Words that people use for the words of the language."""

_CYRILLIC = dict(zip("асеорхуіјѕԁһԛԝАВЕКМНОРСТХУЅІЈ", "aceopxyijsdhqwABEKMHOPCTXYSIJ", strict=True))
_GREEK_CAPITALS = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo", strict=True))
_TWINS = {**_CYRILLIC, **_GREEK_CAPITALS, "ı": "i", "ɑ": "a", "ℓ": "l", "ⅼ": "l"}


def latin_twin(character: str) -> str | None:
    """The ASCII letter, digit or sign that a character looks like, or None."""
    if character in _TWINS:
        return _TWINS[character]
    plain = unicodedata.normalize("NFKD", character)
    stripped = "".join(c for c in plain if not unicodedata.combining(c))
    return stripped if stripped and stripped.isascii() and stripped.isprintable() and stripped.strip() else None


def describe_character(character: str) -> str:
    """`U+0430 CYRILLIC SMALL LETTER A`"""
    name = unicodedata.name(character, "a control character")
    return f"U+{ord(character):04X} {name}"

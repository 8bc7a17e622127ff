"""Formulas in Unicode for terminals and as MathML for pages, from what the compiler derived.

In: text in the language's spelling (`lambda*(v^2/2 - v)`), or the subset of LaTeX that sympy writes. Out: text, MathML.
"""

from __future__ import annotations

import re
from html import escape

from spdsl.problem.expressions import Call, Expression, Name, Number

__all__ = ["expression_latex", "mathml", "name_latex", "unicode_math"]

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "upsilon": "υ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "ell": "ℓ",
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
SUPERSCRIPT = str.maketrans("0123456789-+n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ")


# --- for terminals -------------------------------------------------------------------------------------------------


def unicode_math(text: str) -> str:
    """The language's spelling with Greek letters, superscripts, ≤ and thin products."""
    text = re.sub(r"\b(" + "|".join(GREEK) + r")\b", lambda m: GREEK[m[1]], text)
    text = text.replace("dv*/", "dv∗/").replace("dlambda", "dλ")
    text = re.sub(r"\bin\b", "∈", text)
    text = re.sub(r"\bsum_(?=\w)", "Σ_", text)
    text = re.sub(r"\bgrad\b", "∇", text)
    text = text.replace("<=", "≤").replace(">=", "≥").replace(">>", "⪰").replace("**", "^")
    text = re.sub(r"\^(-?\d+)(?![\d.])", lambda m: m[1].translate(SUPERSCRIPT), text)
    text = re.sub(r"\^\((-?\d+)\)", lambda m: m[1].translate(SUPERSCRIPT), text)
    text = re.sub(r"\bsqrt\(", "√(", text)
    text = re.sub(r"\binf\b", "∞", text)
    text = re.sub(r"\s*\*\s*", "·", text)
    text = re.sub(r"(?<=[\w)])·(?=\()", "·", text)
    return text.replace(" - ", " − ").replace(" @ ", " ")


# --- expressions as LaTeX ------------------------------------------------------------------------------------------


def name_latex(name: str) -> str:
    """A name as LaTeX: Greek letters, single letters in italics, words upright."""
    if name in GREEK and name != "ell":
        return rf"\{name}"
    stem, _, index = name.partition("_")
    if len(name) == 1:
        return name
    if index and (len(stem) == 1 or stem in GREEK):
        return f"{name_latex(stem)}_{{{_upright(index)}}}"
    return _upright(name)


def _upright(word: str) -> str:
    return r"\mathrm{" + word.replace("_", r"\_") + "}"


BINDING = {"add": 1, "multiply": 2, "divide": 4, "matmul": 2, "negative": 2, "power": 4, "transpose": 4}


def expression_latex(expression: Expression) -> str:
    """An expression over data, parameters and variables as LaTeX."""
    return _latex(expression)[0]


def _latex(node: Expression) -> tuple[str, int]:
    if isinstance(node, Number):
        return _number(node.value), 5 if node.value >= 0 else 1
    if isinstance(node, Name):
        return name_latex(node.name), 5
    assert isinstance(node, Call)
    parts = [_latex(argument) for argument in node.arguments]
    function = node.function
    if function == "add":
        text = parts[0][0]
        for part, _ in parts[1:]:
            text += f" - {part[2:]}" if part.startswith("- ") else f" + {part}"
        return text, 1
    if function == "multiply":
        return r" \, ".join(_bracketed(part, 2) for part in parts), 2
    if function == "matmul":
        return r" \, ".join(_bracketed(part, 3) for part in parts), 2
    if function == "divide":
        return rf"\frac{{{parts[0][0]}}}{{{parts[1][0]}}}", 4
    if function == "negative":
        return f"- {_bracketed(parts[0], 2)}", 1
    if function == "power":
        return f"{_bracketed(parts[0], 5)}^{{{parts[1][0]}}}", 4
    if function == "transpose":
        return rf"{_bracketed(parts[0], 5)}^{{\top}}", 4
    arguments = ", ".join(part for part, _ in parts)
    if function == "sqrt":
        return rf"\sqrt{{{arguments}}}", 5
    if function == "abs":
        return rf"\left|{arguments}\right|", 5
    if function == "square":
        return f"{_bracketed(parts[0], 5)}^{{2}}", 4
    if function == "pos":
        return rf"\left({arguments}\right)_{{+}}", 5
    known = function in ("max", "min", "exp", "log")
    return (rf"\{function}" if known else rf"\operatorname{{{function}}}".replace("_", r"\_")) + (
        rf"\left({arguments}\right)"
    ), 5


def _number(value: float) -> str:
    text = f"{value:.6g}"
    if "e" not in text:
        return text
    mantissa, _, power = text.partition("e")
    head = "" if mantissa == "1" else rf"{mantissa} \cdot "
    return rf"{head}10^{{{int(power)}}}"


def _bracketed(part: tuple[str, int], least: int) -> str:
    return part[0] if part[1] >= least else rf"\left({part[0]}\right)"


# --- LaTeX as MathML -----------------------------------------------------------------------------------------------

TOKEN = re.compile(r"\\[A-Za-z]+|\\[^A-Za-z]|[A-Za-z]|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
OPERATORS = {
    "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠", "cdot": "·", "times": "×", "infty": "∞", "in": "∈",
    "partial": "∂", "nabla": "∇", "sum": "∑", "top": "⊤", "succeq": "⪰", "to": "→", "wedge": "∧", "vee": "∨",
    "pm": "±", "mid": "|", "ldots": "…", "dots": "…", "quad": "\u2003", "qquad": "\u2003\u2003", "ast": "∗",
    "star": "⋆", "subset": "⊂", "cup": "∪", "cap": "∩", "forall": "∀", "colon": ":", "iff": "⇔", "Rightarrow": "⇒",
    "langle": "⟨", "rangle": "⟩", "lVert": "‖", "rVert": "‖", "Vert": "‖", "|": "‖", "lvert": "|", "rvert": "|",
    "{": "{", "}": "}", "_": "_", "%": "%", "#": "#", "&": "&", "$": "$", "lfloor": "⌊", "rfloor": "⌋",
}  # fmt: skip
FUNCTIONS = ("log", "exp", "max", "min", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arg", "sup", "inf", "det", "lim")
SPACES = {",": "0.17em", ";": "0.28em", ":": "0.22em", "!": "0", " ": "0.33em", "quad": "1em", "qquad": "2em"}
DECORATED = {"hat": "^", "bar": "¯", "tilde": "~", "vec": "→"}


def mathml(latex: str, display: bool = False) -> str:
    """A LaTeX formula as a `<math>` element; what is unknown is shown as it is written."""
    content = _Reader(latex).row()
    kind = "block" if display else "inline"
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="{kind}">{content}</math>'


class _Reader:
    """Reads tokens of LaTeX and writes MathML."""

    def __init__(self, latex: str) -> None:
        self.tokens: list[str] = [token for token in TOKEN.findall(latex) if not token.isspace()]
        self.at = 0

    def row(self, until: tuple[str, ...] = ()) -> str:
        """Everything up to one of the tokens `until` (which is taken too)."""
        items = self.items(until)
        return f"<mrow>{''.join(items)}</mrow>"

    def items(self, until: tuple[str, ...]) -> list[str]:
        found: list[str] = []
        while self.at < len(self.tokens):
            if self.tokens[self.at] in until:
                self.at += 1
                break
            found.append(self.scripted())
        return found

    def scripted(self) -> str:
        """An atom with its sub- and superscripts."""
        base = self.atom()
        below = above = ""
        while self.at < len(self.tokens) and self.tokens[self.at] in "_^'":
            sign = self.take()
            if sign == "_":
                below = self.atom()
            elif sign == "^":
                above = self.atom()
            else:
                above = f"<mrow>{above}<mo>′</mo></mrow>"
        tall = base == "<mo>∑</mo>"
        if below and above:
            kind = "munderover" if tall else "msubsup"
            return f"<{kind}>{base}{below}{above}</{kind}>"
        if below:
            kind = "munder" if tall else "msub"
            return f"<{kind}>{base}{below}</{kind}>"
        return f"<msup>{base}{above}</msup>" if above else base

    def take(self) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        self.at += 1
        return token

    def atom(self) -> str:
        token = self.take()
        if token == "{":
            return self.row(("}",))
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[:1].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        sign = "−" if token == "-" else token
        fence = ' stretchy="false"' if token in ("(", ")", "[", "]", "|") else ""
        return f"<mo{fence}>{escape(sign)}</mo>"

    def command(self, name: str) -> str:
        if name == "frac" or name == "tfrac" or name == "dfrac":
            return f"<mfrac>{self.atom()}{self.atom()}</mfrac>"
        if name == "sqrt":
            if self.at < len(self.tokens) and self.tokens[self.at] == "[":
                self.take()
                index = self.row(("]",))
                return f"<mroot>{self.atom()}{index}</mroot>"
            return f"<msqrt>{self.atom()}</msqrt>"
        if name == "left":
            return self.fenced()
        if name == "begin":
            return self.environment(self.word())
        if name in ("mathrm", "operatorname", "text", "textrm", "mathbf", "mathcal", "mathbb", "mathit"):
            return self.named(name)
        if name in DECORATED:
            return f"<mover>{self.atom()}<mo>{DECORATED[name]}</mo></mover>"
        if name in FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in GREEK:
            return f"<mi>{GREEK[name]}</mi>"
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"/>'
        if name in OPERATORS:
            return f"<mo>{escape(OPERATORS[name])}</mo>"
        return f"<mtext>\\{escape(name)}</mtext>"

    def named(self, name: str) -> str:
        word = self.word()
        if name == "text" or name == "textrm":
            return f"<mtext>{escape(word)}</mtext>"
        variant = ' mathvariant="normal"' if name in ("mathrm", "operatorname") else ""
        return f"<mi{variant}>{escape(word)}</mi>"

    def word(self) -> str:
        """The bare text of a group, blanks kept out."""
        if self.take() != "{":
            return self.tokens[self.at - 1]
        word = ""
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            word += self.take().lstrip("\\")
        self.take()
        return word

    def fenced(self) -> str:
        opening = self.delimiter()
        items = []
        while self.at < len(self.tokens) and self.tokens[self.at] != "\\right":
            items.append(self.scripted())
        self.take()
        return f"<mrow>{opening}{''.join(items)}{self.delimiter()}</mrow>"

    def delimiter(self) -> str:
        token = self.take().lstrip("\\")
        token = str(OPERATORS.get(token, token))
        return "" if token == "." else f'<mo stretchy="true">{escape(token)}</mo>'

    def environment(self, name: str) -> str:
        """Rows and columns of `cases`, `aligned`, `matrix`, `pmatrix`, `bmatrix`."""
        rows: list[list[list[str]]] = [[[]]]
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token == "\\end":
                self.take()
                self.word()
                break
            if token == "&":
                self.take()
                rows[-1].append([])
            elif token == "\\\\":
                self.take()
                rows.append([[]])
            else:
                rows[-1][-1].append(self.scripted())
        body = "".join(
            "<mtr>" + "".join(f"<mtd><mrow>{''.join(cell)}</mrow></mtd>" for cell in row) + "</mtr>"
            for row in rows
            if any(row)
        )
        align = {"cases": ' columnalign="left"', "aligned": ' columnalign="right left"'}.get(name, "")
        table = f"<mtable{align}>{body}</mtable>"
        if name == "cases":
            return f'<mrow><mo stretchy="true">{{</mo>{table}</mrow>'
        fences = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||"}.get(name, "")
        if fences:
            return f'<mrow><mo stretchy="true">{fences[0]}</mo>{table}<mo stretchy="true">{fences[1]}</mo></mrow>'
        return table

"""Documents as LaTeX: a fragment that compiles in any document with amsmath, amssymb and booktabs.

In: a `Document`. Out: LaTeX.
"""

from __future__ import annotations

import re

from spdsl.problem.functions import Formula
from spdsl.view.document import Block, Cell, Display, Document, Items, Paragraph, Sentence

__all__ = ["escaped", "latex"]

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
SIGNS = {
    "λ": r"$\lambda$", "φ": r"$\varphi$", "ψ": r"$\psi$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "−": "$-$",
    "∞": r"$\infty$", "·": r"$\cdot$", "∈": r"$\in$", "∂": r"$\partial$", "⪰": r"$\succeq$", "…": r"\dots{}",
    "→": r"$\to$", "<": "$<$", ">": "$>$", "|": "$|$", "°": r"\textdegree{}", "α": r"$\alpha$", "γ": r"$\gamma$",
    "μ": r"$\mu$", "ρ": r"$\rho$", "²": "$^2$", "′": "$'$", "“": "``", "”": "''",
}  # fmt: skip


def latex(document: Document) -> str:
    """The document as a LaTeX fragment."""
    lines = [
        f"% {document.title}: derived by spdsl. Needs \\usepackage{{amsmath,amssymb,booktabs}}.".replace("\n", " "),
        rf"\section*{{{escaped(document.title)}}}",
    ]
    for section in document.sections:
        lines += ["", rf"\subsection*{{{escaped(section.title)}}}"]
        for block in section.blocks:
            lines += _block(block)
    return "\n".join(lines) + "\n"


def _block(block: Block) -> list[str]:
    if isinstance(block, Paragraph):
        return [_sentence(block.content), ""]
    if isinstance(block, Display):
        rows = " \\\\\n".join(f"  & {line.latex or _words(line)}" for line in block.lines)
        return [r"\begin{align*}", rows, r"\end{align*}"]
    if isinstance(block, Items):
        points = [rf"  \item {_sentence(point)}" for point in block.points]
        return [r"\begin{itemize}", *points, r"\end{itemize}"] if points else []
    columns = "".join("l" if _is_narrow(block.rows, k) else "p{0.42\\linewidth}" for k in range(len(block.head)))
    return [
        r"\begin{center}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(_cell, block.head)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_cell, row)) + r" \\" for row in block.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{center}",
        "",
    ]


def _is_narrow(rows: tuple[tuple[Cell, ...], ...], column: int) -> bool:
    return all(not isinstance(row[column], str) or len(str(row[column])) <= 40 for row in rows)


def _sentence(content: Sentence) -> str:
    return "".join(map(_cell, content))


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escaped(cell)
    return f"${cell.latex}$" if cell.latex else rf"\texttt{{{escaped(cell.text)}}}"


def _words(line: Formula) -> str:
    return rf"\text{{{escaped(line.text)}}}"


def escaped(text: str) -> str:
    """Words with every sign that LaTeX reads as a command made harmless; `code` becomes typewriter."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        rf"\texttt{{{_plain(part[1:-1])}}}" if part.startswith("`") and len(part) > 1 else _plain(part)
        for part in parts
    )


def _plain(text: str) -> str:
    return "".join(SPECIAL.get(character, SIGNS.get(character, character)) for character in text)

"""Documents as HTML: a body for notebooks, and a self-contained page with MathML, light and dark, without network.

In: a `Document`. Out: HTML.
"""

from __future__ import annotations

import re
from html import escape

from spdsl.view.document import Block, Cell, Display, Document, Items, Paragraph, Sentence
from spdsl.view.mathematics import mathml, unicode_math

__all__ = ["STYLE", "body", "page", "wrapped"]

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1d2330; --muted: #5b6475; --rule: #e3e6ec; --good: #00694e;
  --warn: #9a4a00; --accent: #0072b2; --soft: #f4f5f8; }
@media (prefers-color-scheme: dark) { :root { --page: #14171d; --ink: #e8eaf0; --muted: #a2a9b8; --rule: #2a2f3a;
  --good: #2fc49a; --warn: #f0a850; --accent: #56b4e9; --soft: #1b1f27; } }
.spdsl { color: var(--ink, inherit); font: 15px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; }
.spdsl h1 { font-size: 1.45rem; margin: 0 0 .4rem; } .spdsl h2 { font-size: 1.05rem; margin: 1.9rem 0 .5rem;
  color: var(--accent, #0072b2); }
.spdsl table { border-collapse: collapse; margin: .5rem 0; display: block; overflow-x: auto; }
.spdsl th, .spdsl td { text-align: left; padding: .28rem 1.1rem .28rem 0; vertical-align: baseline; }
.spdsl th { font-weight: 600; border-bottom: 1px solid var(--muted, #888); }
.spdsl td { border-bottom: 1px solid var(--rule, #ddd); }
.spdsl .good { color: var(--good, #00694e); } .spdsl .warning { color: var(--warn, #9a4a00); }
.spdsl .quiet { color: var(--muted, #667); font-size: .93em; }
.spdsl .display { margin: .6rem 0 .9rem; overflow-x: auto; font-size: 1.1em; }
.spdsl ul { padding-left: 1.2rem; margin: .4rem 0; } .spdsl code { font-size: .92em; background: var(--soft, #f4f5f8);
  padding: 0 .25em; border-radius: .2em; }
"""
PAGE_STYLE = "body { background: var(--page); margin: 0; padding: 2rem 1.25rem 4rem; }"


def page(document: Document) -> str:
    """A whole page."""
    return wrapped(document.title, body(document, styled=False))


def wrapped(title: str, content: str, extra_style: str = "") -> str:
    """A page around a body that brings no style of its own."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{PAGE_STYLE}{extra_style}</style>\n</head>\n"
        f"<body>\n{content}\n</body>\n</html>\n"
    )


def body(document: Document, styled: bool = True) -> str:
    """The document as one `<div>`; with its style, for a notebook."""
    style = f"<style>{STYLE.replace(':root', '.spdsl')}</style>\n" if styled else ""
    parts = [f"<h1>{escape(document.title)}</h1>"]
    for section in document.sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [_block(block) for block in section.blocks]
    return f'{style}<div class="spdsl">\n' + "\n".join(parts) + "\n</div>"


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        tone = f' class="{block.tone}"' if block.tone else ""
        return f"<p{tone}>{_sentence(block.content)}</p>"
    if isinstance(block, Display):
        lines = "".join(f"<div>{_cell(line, display=True)}</div>" for line in block.lines)
        return f'<div class="display">{lines}</div>'
    if isinstance(block, Items):
        return "<ul>" + "".join(f"<li>{_sentence(point)}</li>" for point in block.points) + "</ul>"
    head = "".join(f"<th>{_cell(cell)}</th>" for cell in block.head)
    rows = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _sentence(content: Sentence) -> str:
    return "".join(_cell(cell) for cell in content)


def _cell(cell: Cell, display: bool = False) -> str:
    if isinstance(cell, str):
        return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(cell, quote=False))
    if cell.latex:
        return mathml(cell.latex, display)
    return f"<code>{escape(unicode_math(cell.text))}</code>"

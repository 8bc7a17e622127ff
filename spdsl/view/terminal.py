"""Documents on a terminal: rich text with Unicode mathematics, and the same without colours.

In: a `Document`. Out: a rich renderable, or plain text of a given width.
"""

from __future__ import annotations

from typing import Any

from spdsl.view.document import Block, Cell, Display, Document, Items, Paragraph, Sentence, Table
from spdsl.view.mathematics import unicode_math

__all__ = ["plain", "rich_document"]

TONES = {"good": "green", "warning": "yellow", "quiet": "dim"}


def plain(document: Document, width: int = 100) -> str:
    """The document as text of at most `width` columns (long formulas keep their length)."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None, force_terminal=False, highlight=False).print(
        rich_document(document)
    )
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines())


def rich_document(document: Document) -> Any:
    """The document as one rich renderable."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[Any] = [Text(document.title, "bold")]
    for section in document.sections:
        parts += [Text(""), Text(section.title, "bold cyan")]
        parts += [Padding(_block(block), (0, 0, 0, 2)) for block in section.blocks]
    return Group(*parts)


def _block(block: Block) -> Any:
    from rich.console import Group
    from rich.table import Table as Grid
    from rich.text import Text

    if isinstance(block, Paragraph):
        text = _sentence(block.content)
        text.stylize(TONES.get(block.tone, ""))
        return text
    if isinstance(block, Display):
        return Group(*(_sentence((line,)) for line in block.lines), Text(""))
    if isinstance(block, Items):
        grid = Grid.grid(padding=(0, 1))
        for point in block.points:
            grid.add_row(Text("•", "dim"), _sentence(point))
        return grid
    return _table(block)


def _table(block: Table) -> Any:
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=True)
    last = len(block.head) - 1
    for column, cell in enumerate(block.head):
        grid.add_column(_cell(cell), overflow="fold", no_wrap=column == 0 and last > 0)
    for row in block.rows:
        grid.add_row(*map(_cell, row))
    return grid


def _sentence(content: Sentence) -> Any:
    from rich.text import Text

    text = Text()
    for cell in content:
        text.append_text(_cell(cell))
    return text


def _cell(cell: Cell) -> Any:
    from rich.text import Text

    return Text(_prose(cell) if isinstance(cell, str) else unicode_math(cell.text))


def _prose(words: str) -> str:
    """Words with the few signs of mathematics in them as terminals show them."""
    return words.replace(">=", "≥").replace("<=", "≤").replace("->", "→").replace("v*", "v∗").replace("lambda", "λ")

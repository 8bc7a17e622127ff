"""A small document: headings, sentences, formulas, tables and lists, apart from how they are shown.

In: what `explain` has to say. Out: values that `terminal`, `latex` and `html` each turn into their own text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from spdsl.problem.functions import Formula

__all__ = ["Block", "Cell", "Display", "Document", "Items", "Paragraph", "Section", "Table"]

Cell: TypeAlias = str | Formula
"""Words, or a formula."""

Sentence: TypeAlias = tuple[Cell, ...]
"""Words and formulas in a row."""


@dataclass(frozen=True)
class Paragraph:
    """A sentence or several."""

    content: Sentence
    tone: str = ""  # "", "good", "warning", "quiet"


@dataclass(frozen=True)
class Display:
    """Formulas on lines of their own."""

    lines: tuple[Formula, ...]


@dataclass(frozen=True)
class Items:
    """A list of points."""

    points: tuple[Sentence, ...]


@dataclass(frozen=True)
class Table:
    """Rows under a head; an empty cell stays empty."""

    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: Sentence = ()


Block: TypeAlias = Paragraph | Display | Items | Table


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """The whole."""

    title: str
    sections: tuple[Section, ...] = field(default=())

"""Tables of numbers that leave whole columns out on a narrow terminal rather than cut numbers.

In: columns, each with how much it is needed. Out: a rich renderable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Column", "FittingTable"]


@dataclass(frozen=True)
class Column:
    """A head and its cells; of the columns that don't fit, those of the largest `rank` go first."""

    title: str
    cells: Sequence[str]
    rank: int = 0


@dataclass(frozen=True)
class FittingTable:
    """Columns under a title; `styles` gives a row's style where it has one."""

    title: str
    columns: Sequence[Column]
    styles: Sequence[str | None] = field(default=())

    def __rich_console__(self, console: Any, options: Any) -> Any:
        from rich.measure import Measurement

        columns = list(self.columns)
        while True:
            grid = self._grid(columns)
            fits = Measurement.get(console, options.update(width=10_000, max_width=10_000), grid).maximum
            if fits <= options.max_width or len(columns) <= 2:
                yield grid
                return
            worst = max(columns, key=lambda column: column.rank)
            columns.remove(worst)

    def _grid(self, columns: Sequence[Column]) -> Any:
        from rich.text import Text

        from spdsl.view.tables import table

        grid = table(self.title)
        for column in columns:
            grid.add_column(column.title, justify="right", no_wrap=True)
        for k in range(len(columns[0].cells)):
            style = self.styles[k] if k < len(self.styles) else None
            grid.add_row(*(Text(column.cells[k]) for column in columns), style=style)
        return grid

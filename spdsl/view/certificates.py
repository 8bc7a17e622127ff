"""Certificates on a terminal: the table of an independent check, its verdict, and the table of the demo.

In: a `Certificate`, and the path that it is about. Out: rich renderables.
"""

from __future__ import annotations

from typing import Any

from spdsl.reference import Certificate
from spdsl.solution import Path
from spdsl.view.tables import count_titles, nonzeros, small, table

__all__ = ["certificate_report", "certificate_verdict", "demo_table"]

SHORT = {"KKT residual": "KKT", "weights off": "v off", "gap to CVX": "gap to CVX", "infeasible": "infeasible"}


def certificate_report(certificate: Certificate) -> Any:
    """The table and what it comes to; columns that are empty throughout are left out."""
    from rich.console import Group
    from rich.text import Text

    rows = certificate.table()
    grid = table(f"{certificate.model}, held against CVX" if certificate.model else "held against CVX")
    shown = [k for k in range(len(certificate.columns)) if any(row[k] for row in rows)]
    for k in shown:
        title = certificate.columns[k]
        grid.add_column(SHORT.get(title, title), justify="right", no_wrap=title in ("age", "verdict"), overflow="fold")
    for row, found in zip(rows, certificate.rows, strict=True):
        grid.add_row(*(Text(row[k]) for k in shown), style=None if found.ok else "bold red")
    return Group(grid, certificate_verdict(certificate))


def certificate_verdict(certificate: Certificate) -> Any:
    """The verdict in one line, then what fails, then what a reader should know."""
    from rich.text import Text

    text = Text(certificate.summary, "bold green" if certificate.ok else "bold red")
    for failure in certificate.failures if not certificate.ok else ():
        text.append(f"\n  fails {failure}", "red")
    for note in certificate.notes:
        text.append(f"\n  note: {note}", "dim")
    return text


def demo_table(path: Path, certificate: Certificate) -> Any:
    """Per checked age: what the path is there, and how it stands against CVX."""
    grid = table("")
    counted = list(nonzeros(path.bound, path.nodes[0]))
    for title in ("age", "in", "mean v", *count_titles(path.bound, counted), "objective", "KKT", "gap to CVX"):
        grid.add_column(title, justify="right", no_wrap=True)
    for row in certificate.rows:
        assert row.age is not None
        solution = path(row.age)
        counts = nonzeros(path.bound, solution.x)
        grid.add_row(
            f"{row.age:.5g}",
            f"{solution.in_share:.0%}",
            f"{solution.weights.mean():.2f}",
            *(str(counts[name]) for name in counted),
            f"{row.objective:.6g}",
            small(row.kkt_residual),
            small(row.gap),
            style=None if row.ok else "bold red",
        )
    return grid

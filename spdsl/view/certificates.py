"""Certificates on a terminal: the table of an independent check, its verdict, and the table of the demo.

In: a `Certificate`, and the path that it is about. Out: rich renderables.
"""

from __future__ import annotations

import os
from typing import Any

from spdsl.reference import Certificate
from spdsl.solution import Path
from spdsl.view.fitting import Column, FittingTable
from spdsl.view.tables import count_titles, nonzeros, small

__all__ = ["certificate_report", "certificate_verdict", "demo_table"]

SHORT = {"KKT residual": "KKT", "weights off": "v off"}
RANKS = {"age": 0, "gap to CVX": 0, "verdict": 0, "KKT residual": 1, "objective": 5, "distance": 3, "off by": 4}


def certificate_report(certificate: Certificate) -> Any:
    """The table and what it comes to; columns that are empty throughout are left out."""
    from rich.console import Group

    rows = certificate.table()
    columns = [
        Column(SHORT.get(title, title), [row[k] for row in rows], RANKS.get(title, 2))
        for k, title in enumerate(certificate.columns)
        if any(row[k] for row in rows)
    ]
    name = os.path.basename(certificate.model)
    title = f"{name}, held against CVX" if name else "held against CVX"
    grid = FittingTable(title, columns, [None if row.ok else "bold red" for row in certificate.rows])
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
    rows = certificate.rows
    solutions = [path(row.age) for row in rows if row.age is not None]
    counts = [nonzeros(path.bound, solution.x) for solution in solutions]
    columns = [
        Column("age", [f"{solution.age:.5g}" for solution in solutions]),
        Column("in", [f"{solution.in_share:.0%}" for solution in solutions], 1),
        Column("mean v", [f"{solution.weights.mean():.2f}" for solution in solutions], 4),
    ]
    for title, name in zip(count_titles(path.bound, list(counts[0])), counts[0], strict=True):
        columns.append(Column(title, [str(count[name]) for count in counts], 2))
    columns += [
        Column("objective", [f"{row.objective:.6g}" for row in rows], 3),
        Column("KKT", [small(row.kkt_residual) for row in rows]),
        Column("gap to CVX", [small(row.gap) for row in rows]),
    ]
    return FittingTable("", columns, [None if row.ok else "bold red" for row in rows])

"""Results as tables for a terminal and as plain values for JSON.

In: results and certificates. Out: rich renderables, dictionaries.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solution import Path, Solution
from spdsl.solution.frame import entry_names
from spdsl.view.curves import age_scale
from spdsl.view.fitting import Column, FittingTable

__all__ = [
    "count_titles",
    "critical_table",
    "nonzeros",
    "path_lines",
    "path_rows",
    "result_line",
    "result_report",
    "small",
    "summary",
    "table",
    "values_table",
]

ROWS = 9
LONG = 60  # entries above which the zeros of a sparse vector aren't listed
NOTHING = 1e-10  # relative to the largest entry: below this an entry counts as zero


def result_report(result: Path | Solution, ages: Sequence[float] = ()) -> Any:
    """The table of a result and the lines below it."""
    from rich.console import Group

    if isinstance(result, Path):
        return Group(_path_table(result, ages), *path_lines(result))
    return Group(_solution_table(result), *_binding_lines(result.bound), result_line(result))


def result_line(result: Path | Solution) -> Any:
    """How the run ended: the back end, the seconds, the status."""
    from rich.text import Text

    seconds = result.statistics.get("seconds")
    took = f" in {_seconds(seconds)}" if seconds is not None else ""
    text = Text(f"{result.backend}{took}: ")
    text.append(result.status.value, "green" if result.status.ok else "bold yellow")
    if result.message:
        text.append(f"\n{result.message}")
    return text


def summary(result: Path | Solution, ages: Sequence[float] = ()) -> dict[str, Any]:
    """The same as plain values."""
    common = {
        "model": result.bound.problem.name,
        "backend": result.backend,
        "status": result.status.name.lower(),
        "solved": result.status.ok,
        "explanation": result.status.value,
        "message": result.message,
        "statistics": dict(result.statistics),
        "labels": {name: [m.negative, m.positive] for name, m in result.bound.labels.items()},
    }
    if isinstance(result, Path):
        return {
            "kind": "path",
            **common,
            "ages": list(result.age_range),
            "nodes": len(result.ages),
            "worst_kkt_residual": result.worst_kkt_residual,
            "turning_points": len(result.turning_points),
            "jumps": [{"age": p.age, "cause": p.cause, "change": p.change} for p in result.jumps],
            "rows": path_rows(result, ages),
        }
    return {
        "kind": "solution",
        **common,
        "age": result.age,
        "objective": result.objective,
        "kkt_residual": result.kkt_residual,
        "in_share": result.in_share if result.bound.data else None,
        "nonzeros": nonzeros(result.bound, result.x),
        "values": {name: np.asarray(value).tolist() for name, value in result.values.items()},
    }


# --- paths ---------------------------------------------------------------------------------------------------------


def path_rows(path: Path, ages: Sequence[float] = ()) -> list[dict[str, Any]]:
    """What the table shows, one dictionary an age: at the ages asked for, else at some over the whole range."""
    if path.branch is None:
        wanted = np.linspace(0, len(path.ages) - 1, min(ROWS, len(path.ages))).round().astype(int)
        return [
            {
                "age": float(path.ages[k]),
                "kkt_residual": float(path.kkt_residuals[k]),
                "nonzeros": nonzeros(path.bound, path.nodes[k]),
            }
            for k in np.unique(wanted)
        ]
    rows = []
    for age in ages or _even_ages(path):
        solution = path(float(age))
        weights = solution.weights
        rows.append(
            {
                "age": float(age),
                "in_share": solution.in_share,
                "mean_weight": float(np.mean(weights)),
                "nonzeros": nonzeros(path.bound, solution.x),
                "objective": solution.objective,
                "kkt_residual": solution.kkt_residual,
            }
        )
    return rows


def _even_ages(path: Path) -> list[float]:
    low, high = path.age_range
    if high <= low:
        return [low]
    even = np.geomspace(low, high, ROWS) if age_scale(path) else np.linspace(low, high, ROWS)
    return [low, *map(float, even[1:-1]), high]


def nonzeros(bound: BoundProblem, x: Array) -> dict[str, int]:
    """How many entries of each variable with several entries are not zero (a symmetric matrix: its rank)."""
    found = {}
    for name, value in bound.layout.unpack(x).items():
        if np.ndim(value) == 0:
            continue
        if bound.problem.variable(name).kind == "symmetric":
            value = np.linalg.eigvalsh(value)
        largest = float(np.max(np.abs(value), initial=0.0))
        found[name] = int(np.sum(np.abs(value) > NOTHING * largest))
    return found


def _path_table(path: Path, ages: Sequence[float]) -> Any:
    rows = path_rows(path, ages)
    columns = [Column("age", [f"{row['age']:.5g}" for row in rows])]
    full = "in_share" in rows[0]
    if full:
        columns.append(Column("in", [f"{row['in_share']:.0%}" for row in rows], 1))
        columns.append(Column("mean v", [f"{row['mean_weight']:.2f}" for row in rows], 4))
    counted = list(rows[0]["nonzeros"])
    for title, name in zip(count_titles(path.bound, counted), counted, strict=True):
        columns.append(Column(title, [str(row["nonzeros"][name]) for row in rows], 2))
    if full:
        columns.append(Column("objective", [f"{row['objective']:.6g}" for row in rows], 3))
    columns.append(Column("KKT residual", [small(row["kkt_residual"]) for row in rows]))
    return FittingTable(os.path.basename(path.bound.problem.name), columns)


def count_titles(bound: BoundProblem, names: Sequence[str]) -> list[str]:
    """The heads of the columns of `nonzeros`."""
    kinds = {variable.name: variable.kind for variable in bound.problem.variables}
    return [f"rank {name}" if kinds[name] == "symmetric" else f"{name} ≠ 0" for name in names]


def path_lines(path: Path) -> list[Any]:
    """Critical points by kind, the worst KKT residual, how data were bound, how the run ended."""
    from rich.text import Text

    turning, jumps = len(path.turning_points), path.jumps
    text = f"{turning} turning point{'s' * (turning != 1)}, {len(jumps)} jump{'s' * (len(jumps) != 1)}"
    if jumps:
        shown = ", ".join(f"{point.age:.5g}" for point in jumps[:8])
        text += f" (at {'age' if len(jumps) == 1 else 'ages'} {shown}{', ...' if len(jumps) > 8 else ''})"
    lines = [Text(text)]
    lines.append(Text(f"worst KKT residual {path.worst_kkt_residual:.1e} over {len(path.ages)} nodes"))
    return [*lines, *_binding_lines(path.bound), result_line(path)]


def critical_table(path: Path) -> Any:
    """Every critical point with its cause."""
    from rich.text import Text

    grid = table("critical points")
    grid.add_column("age", justify="right", no_wrap=True)
    grid.add_column("kind", no_wrap=True)
    grid.add_column("change", justify="right", no_wrap=True)
    grid.add_column("cause")
    for point in path.critical_points:
        jump = point.kind == "jump"
        grid.add_row(
            f"{point.age:.8g}",
            point.kind,
            f"{point.change:.2g}" if jump else "",
            Text(point.cause),
            style="red" if jump else None,
        )
    return grid


# --- solutions -----------------------------------------------------------------------------------------------------


def _solution_table(solution: Solution) -> Any:
    grid = table(os.path.basename(solution.bound.problem.name))
    grid.show_header = False
    grid.add_column("what", no_wrap=True)
    grid.add_column("value", justify="right", no_wrap=True)
    if solution.age is not None:
        grid.add_row("age", f"{solution.age:.6g}")
    grid.add_row("objective", f"{solution.objective:.8g}")
    if solution.bound.problem.self_paced is not None and solution.bound.data:
        grid.add_row("samples in", f"{solution.in_share:.0%}")
    if solution.kkt_residual is not None:
        grid.add_row("KKT residual", f"{solution.kkt_residual:.1e}")
    counts = nonzeros(solution.bound, solution.x)
    for title, (name, count) in zip(count_titles(solution.bound, list(counts)), counts.items(), strict=True):
        shape = solution.bound.layout.shapes[name]
        grid.add_row(title, f"{count} of {shape[0] if len(shape) == 2 and 'rank' in title else int(np.prod(shape))}")
    if "subgraph_edges" in solution.extra:
        pieces, inner = solution.extra["components"], len(solution.extra["subgraph_edges"])
        grid.add_row("pieces of the support", f"{pieces:.0f}, {inner} edges inside")
        grid.add_row("cost of its forest", f"{solution.extra['forest_cost']:.6g}")
    for name, value in solution.values.items():
        if np.ndim(value) == 0:
            grid.add_row(name, f"{value:.6g}")
    return grid


def values_table(solution: Solution) -> Any:
    """Every entry of every variable; of a long vector with many zeros the others, and how many zeros there are."""
    from rich.text import Text

    at = "" if solution.age is None else f" at age {solution.age:.6g}"
    grid = table(f"values{at}")
    grid.add_column("entry")
    grid.add_column("value", justify="right", no_wrap=True)
    names = entry_names(solution.bound)
    for variable, where in solution.bound.layout.slices.items():
        part = range(where.start, where.stop)
        shown = [k for k in part if solution.x[k] != 0.0]
        if len(part) <= LONG or 2 * len(shown) > len(part):
            shown = list(part)
        for k in shown:
            grid.add_row(Text(names[k]), f"{solution.x[k]:.8g}")
        if len(shown) < len(part):
            grid.add_row(Text(f"the other {len(part) - len(shown)} of {variable}"), "0", style="dim")
    return grid


# --- both ----------------------------------------------------------------------------------------------------------


def table(title: str) -> Any:
    """An empty table in the one style of all."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    return Table(
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )


def _binding_lines(bound: BoundProblem) -> list[Any]:
    from rich.text import Text

    lines = []
    for name, mapping in bound.labels.items():
        if (mapping.negative, mapping.positive) != (-1, 1):
            lines.append(Text(f"labels {name}: {mapping.negative!r} is -1, {mapping.positive!r} is +1"))
    if bound.scaling:
        lines.append(Text(f"standardized: {', '.join(bound.scaling)}"))
    if bound.problem.assumptions:
        lines.append(Text(f"assumed convex, as the model says: {'; '.join(bound.problem.assumptions)}", "yellow"))
    return lines


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def small(value: float | None) -> str:
    """An error or a residual: one digit is enough to judge it."""
    return "" if value is None else "0" if value == 0 else f"{value:.0e}"

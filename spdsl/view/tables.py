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

__all__ = [
    "certificate_report",
    "critical_table",
    "nonzeros",
    "path_rows",
    "result_line",
    "result_report",
    "summary",
    "values_table",
]

ROWS = 9
NOTHING = 1e-10  # relative to the largest entry: below this an entry counts as zero


def result_report(result: Path | Solution, ages: Sequence[float] = ()) -> Any:
    """The table of a result and the lines below it."""
    from rich.console import Group

    if isinstance(result, Path):
        return Group(_path_table(result, ages), *_path_lines(result))
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
                "in_share": float(np.mean(weights > 0)),
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
    table = _table(os.path.basename(path.bound.problem.name))
    rows = path_rows(path, ages)
    counted = list(rows[0]["nonzeros"]) if rows else []
    full = "in_share" in rows[0] if rows else False
    for title in ("age", *(("in", "mean v") if full else ()), *_count_titles(path.bound, counted)):
        table.add_column(title, justify="right", no_wrap=True)
    if full:
        table.add_column("objective", justify="right", no_wrap=True)
    table.add_column("KKT residual", justify="right", no_wrap=True)
    for row in rows:
        cells = [f"{row['age']:.5g}"]
        if full:
            cells += [f"{row['in_share']:.0%}", f"{row['mean_weight']:.2f}"]
        cells += [str(row["nonzeros"][name]) for name in counted]
        if full:
            cells.append(f"{row['objective']:.6g}")
        table.add_row(*cells, f"{row['kkt_residual']:.0e}")
    return table


def _count_titles(bound: BoundProblem, names: Sequence[str]) -> list[str]:
    kinds = {variable.name: variable.kind for variable in bound.problem.variables}
    return [f"rank {name}" if kinds[name] == "symmetric" else f"{name} ≠ 0" for name in names]


def _path_lines(path: Path) -> list[Any]:
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
    table = _table("critical points")
    table.add_column("age", justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    table.add_column("cause")
    for point in path.critical_points:
        jump = point.kind == "jump"
        table.add_row(
            f"{point.age:.8g}",
            point.kind,
            f"{point.change:.2g}" if jump else "",
            point.cause,
            style="red" if jump else None,
        )
    return table


# --- solutions -----------------------------------------------------------------------------------------------------


def _solution_table(solution: Solution) -> Any:
    table = _table(os.path.basename(solution.bound.problem.name))
    table.show_header = False
    table.add_column("what", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    if solution.age is not None:
        table.add_row("age", f"{solution.age:.6g}")
    table.add_row("objective", f"{solution.objective:.8g}")
    if solution.bound.problem.self_paced is not None and solution.bound.data:
        table.add_row("samples in", f"{solution.in_share:.0%}")
    if solution.kkt_residual is not None:
        table.add_row("KKT residual", f"{solution.kkt_residual:.1e}")
    counts = nonzeros(solution.bound, solution.x)
    for title, (name, count) in zip(_count_titles(solution.bound, list(counts)), counts.items(), strict=True):
        shape = solution.bound.layout.shapes[name]
        table.add_row(title, f"{count} of {shape[0] if len(shape) == 2 and 'rank' in title else int(np.prod(shape))}")
    for name, value in solution.values.items():
        if np.ndim(value) == 0:
            table.add_row(name, f"{value:.6g}")
    return table


def values_table(solution: Solution) -> Any:
    """Every entry of every variable."""
    at = "" if solution.age is None else f" at age {solution.age:.6g}"
    table = _table(f"values{at}")
    table.add_column("entry")
    table.add_column("value", justify="right", no_wrap=True)
    for name, value in zip(entry_names(solution.bound), solution.x, strict=True):
        table.add_row(name, f"{value:.8g}")
    return table


# --- both ----------------------------------------------------------------------------------------------------------


def _table(title: str) -> Any:
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


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

"""A result as one self-contained HTML page: summary, picture (light and dark), critical points; no network.

In: a `Path` or a `Solution`. Out: an HTML file. A few lines of script show what is under the pointer; without script
the page is whole, only still.
"""

from __future__ import annotations

import base64
import io
import json
import os
from html import escape
from os import PathLike
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.solution import Path, Solution
from spdsl.view.curves import sample
from spdsl.view.html import wrapped
from spdsl.view.tables import summary
from spdsl.view.theme import reproducible

__all__ = ["page", "write_page"]

MOST_LISTED = 400
HOVER_POINTS = 240

STYLE = """
.figure { position: relative; margin: 1rem 0; } .figure img { width: 100%; display: block; }
.figure .line { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--accent); display: none;
  pointer-events: none; }
.figure output { position: absolute; display: none; pointer-events: none; background: var(--page); color: var(--ink);
  border: 1px solid var(--rule); border-radius: 6px; padding: .35rem .6rem; font-size: .85rem; white-space: pre;
  box-shadow: 0 2px 10px rgb(0 0 0 / .12); }
.facts { display: flex; flex-wrap: wrap; gap: .4rem 2rem; padding: 0; list-style: none; }
.facts b { font-weight: 600; } details summary { cursor: pointer; margin: 1rem 0 .3rem; color: var(--accent); }
tr.jump td { color: var(--warn); }
"""
SCRIPT = """
(() => { const box = document.querySelector('.figure'), data = JSON.parse(document.getElementById('hover').textContent);
  if (!box || !data.rows.length) return; const line = box.querySelector('.line'), out = box.querySelector('output');
  const scale = v => data.log ? Math.log(v) : v, low = scale(data.low), high = scale(data.high);
  const hide = () => { line.style.display = out.style.display = 'none'; };
  box.addEventListener('pointermove', e => { const r = box.getBoundingClientRect(), u = (e.clientX - r.left) / r.width;
    const t = (u - data.left) / (data.right - data.left); if (t < 0 || t > 1) return hide();
    const want = low + t * (high - low); let best = 0, gap = Infinity;
    data.rows.forEach((row, i) => { const g = Math.abs(scale(row[0]) - want); if (g < gap) { gap = g; best = i; } });
    const at = data.left + (scale(data.rows[best][0]) - low) / (high - low) * (data.right - data.left);
    line.style.left = out.style.left = (100 * at) + '%'; out.textContent = data.rows[best][1];
    out.style.top = (e.clientY - r.top + 12) + 'px';
    out.style.transform = at > .6 ? 'translateX(-105%)' : 'translateX(8px)';
    line.style.display = out.style.display = 'block'; }); box.addEventListener('pointerleave', hide); })();
"""


def write_page(result: Path | Solution, file: str | PathLike[str], scale: str = "auto") -> Any:
    """Write the page; returns the figure in it (the light one).

    Raises
    ------
    UsageError
        When the file can't be written.
    """
    text, figure = _page(result, scale)
    try:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(Diagnostic("SPL705", f"can't write {os.fspath(file)}: {error.strerror or error}")) from error
    return figure


def page(result: Path | Solution, scale: str = "auto") -> str:
    """The page as text."""
    return _page(result, scale)[0]


def _page(result: Path | Solution, scale: str) -> tuple[str, Any]:
    name = os.path.basename(result.bound.problem.name)
    options = {"scale": scale, "curves": sample(result, scale)} if isinstance(result, Path) else {}
    light, hover, figure = _picture(result, "light", options)
    dark, _, _ = _picture(result, "dark", options)
    parts = [
        f'<div class="spdsl"><h1>{escape(name)}</h1>',
        _facts(result),
        '<div class="figure"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="{escape(_alternative(result))}" src="{light}"></picture>'
        '<div class="line"></div><output></output></div>',
    ]
    if isinstance(result, Path):
        parts.append(_critical_points(result))
    parts.append(
        f"<details><summary>the model</summary><pre>{escape(result.bound.problem.source)}</pre></details></div>"
    )
    if hover:
        content = json.dumps(hover).replace("<", "\\u003c")
        parts.append(f'<script type="application/json" id="hover">{content}</script><script>{SCRIPT}</script>')
    return wrapped(name, "\n".join(parts), STYLE), figure


def _picture(result: Path | Solution, theme: str, options: dict[str, Any]) -> tuple[str, dict[str, Any] | None, Any]:
    """An SVG as a data address, and where its axis of ages lies for the pointer."""
    figure = result.plot(theme=theme, **options)
    stream = io.BytesIO()
    with reproducible():
        figure.savefig(stream, format="svg", dpi=140, metadata={"Date": None})
    address = "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
    if not isinstance(result, Path) or result.branch is None:
        return address, None, figure
    axis = figure.axes[0]
    where = axis.get_position()
    low, high = axis.get_xlim()
    log = axis.get_xscale() == "log"
    hover = {
        "left": where.x0,
        "right": where.x1,
        "low": low,
        "high": high,
        "log": log,
        "rows": _hover_rows(result, low, high, log) if high > low else [],
    }
    return address, hover, figure


def _hover_rows(path: Path, low: float, high: float, log: bool) -> list[list[Any]]:
    ages = np.geomspace(low, high, HOVER_POINTS) if log else np.linspace(low, high, HOVER_POINTS)
    rows: list[list[Any]] = []
    for age in np.clip(ages, *path.age_range):
        solution = path(float(age))
        lines = [f"age {age:.5g}", f"{solution.in_share:.0%} of the samples in"]
        lines += _largest(solution)
        rows.append([float(age), "\n".join(lines)])
    return rows


def _largest(solution: Solution, count: int = 6) -> list[str]:
    from spdsl.solution.frame import entry_names

    names = entry_names(solution.bound)
    order = [k for k in np.argsort(-np.abs(solution.x), kind="stable")[:count] if solution.x[k] != 0]
    return [f"{names[k]} = {solution.x[k]:.4g}" for k in order]


def _facts(result: Path | Solution) -> str:
    facts = summary(result)
    pairs: list[tuple[str, str]] = [("back end", result.backend)]
    if isinstance(result, Path):
        low, high = result.age_range
        pairs += [
            ("ages", f"{low:.5g} to {high:.5g}"),
            ("turning points", str(facts["turning_points"])),
            ("jumps", str(len(facts["jumps"]))),
            ("worst KKT residual", f"{result.worst_kkt_residual:.1e}"),
        ]
    else:
        pairs += [("objective", f"{result.objective:.8g}")]
        pairs += [("age", f"{result.age:.6g}")] if result.age is not None else []
        pairs += [("KKT residual", f"{result.kkt_residual:.1e}")] if result.kkt_residual is not None else []
    items = "".join(f"<li>{escape(name)} <b>{escape(value)}</b></li>" for name, value in pairs)
    tone = "good" if result.status.ok else "warning"
    message = f": {escape(result.message)}" if result.message else ""
    return f'<ul class="facts">{items}</ul><p class="{tone}">{escape(result.status.value)}{message}</p>'


def _alternative(result: Path | Solution) -> str:
    if not isinstance(result, Path):
        return f"the solution of {os.path.basename(result.bound.problem.name)}"
    low, high = result.age_range
    name = os.path.basename(result.bound.problem.name)
    return (
        f"coefficients and sample weights of {name} over ages {low:.4g} to {high:.4g}, with "
        f"{len(result.turning_points)} turning points and {len(result.jumps)} jumps"
    )


def _critical_points(path: Path) -> str:
    points = path.critical_points
    if not points:
        return "<p>No critical points.</p>"
    shown = points if len(points) <= MOST_LISTED else path.jumps[:MOST_LISTED]
    rows = "".join(
        f'<tr class="{point.kind}"><td>{point.age:.8g}</td><td>{point.kind}</td><td>{escape(point.cause)}</td></tr>'
        for point in shown
    )
    note = "" if shown is points else f" (the jumps among {len(points)}; `path.critical_points` has all)"
    return (
        f"<details><summary>critical points: {len(shown)}{escape(note)}</summary><table><thead><tr><th>age</th>"
        f"<th>kind</th><th>what happened</th></tr></thead><tbody>{rows}</tbody></table></details>"
    )

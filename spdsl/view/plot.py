"""Pictures of results: `plot_path`, `plot_solution`, `plot_selection`, and saving them.

In: a result. Out: a matplotlib figure that belongs to no window, and a file when one is named.
"""

from __future__ import annotations

import os
from os import PathLike
from typing import TYPE_CHECKING, Any

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.solution import Path, Solution
from spdsl.solution.select import Selection
from spdsl.view.curves import Curves, sample
from spdsl.view.theme import DARK, LIGHT, Theme, reproducible, themed

if TYPE_CHECKING:
    from spdsl.solvers.cross_validation import CrossValidation

__all__ = ["plot_path", "plot_result", "plot_selection", "plot_solution", "save_figure"]

FORMATS = ("png", "pdf", "svg", "html", "jpg", "jpeg", "webp", "eps", "tif", "tiff")
THEMES = {"light": LIGHT, "dark": DARK}


def plot_result(result: Path | Solution, file: str | PathLike[str] | None = None, **options: Any) -> Any:
    """Draw a path or a solution, and save it when a file is named (its ending picks the format, html among them)."""
    if file is not None and os.fspath(file).lower().endswith((".html", ".htm")):
        from spdsl.view.page import write_page

        return write_page(result, file, str(options.get("scale", "auto")))
    figure = plot_path(result, **options) if isinstance(result, Path) else plot_solution(result, **options)
    if file is not None:
        save_figure(figure, file)
    return figure


def plot_path(
    path: Path,
    *,
    scale: str = "auto",
    theme: str = "light",
    width: float = 8.6,
    height: float | None = None,
    curves: Curves | None = None,
) -> Any:
    """Coefficients, sample weights, shares and KKT residuals over the ages, with every critical point.

    Parameters
    ----------
    scale : {"auto", "log", "linear"}
        Axis of the ages; ``auto`` takes the one over which events are spread more evenly.
    theme : {"light", "dark"}
    width, height : float
        Inches.
    curves : Curves, optional
        The path sampled already, for several pictures of one path.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from spdsl.view.path_figure import path_figure

    chosen = _theme(theme)
    if scale not in ("auto", "log", "linear"):
        raise UsageError(Diagnostic("SPL708", f"scale can't be {scale!r}", help=("one of: auto, log, linear",)))
    with themed(chosen):
        return path_figure(path, curves or sample(path, scale), chosen, width, height)


def plot_solution(solution: Solution, *, theme: str = "light", width: float = 8.6, height: float | None = None) -> Any:
    """Coefficients, sample weights over losses, and the history of a run where there is one."""
    from spdsl.view.solution_figure import solution_figure

    chosen = _theme(theme)
    with themed(chosen):
        return solution_figure(solution, chosen, width, height)


def plot_selection(
    selection: Selection | CrossValidation,
    file: str | PathLike[str] | None = None,
    *,
    theme: str = "light",
    width: float = 7.0,
) -> Any:
    """The validation metric over the ages, with its minima."""
    from spdsl.view.solution_figure import selection_figure

    chosen = _theme(theme)
    with themed(chosen):
        figure = selection_figure(selection, chosen, width)
    if file is not None:
        save_figure(figure, file)
    return figure


def save_figure(figure: Any, file: str | PathLike[str], dpi: float = 160) -> None:
    """Write a figure.

    Raises
    ------
    UsageError
        For an unknown ending, or a file that can't be written.
    """
    name = os.fspath(file)
    ending = os.path.splitext(name)[1].lstrip(".").lower()
    if ending not in FORMATS:
        what = f"the ending .{ending}" if ending else "a name without an ending"
        raise UsageError(
            Diagnostic("SPL708", f"{name}: {what} names no picture format", help=(f"one of: {', '.join(FORMATS)}",))
        )
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
    try:
        with reproducible():
            figure.savefig(name, dpi=dpi, metadata=metadata)
    except OSError as error:
        raise UsageError(Diagnostic("SPL705", f"can't write {name}: {error.strerror or error}")) from error


def _theme(name: str) -> Theme:
    if name not in THEMES:
        raise UsageError(Diagnostic("SPL708", f"there is no theme {name!r}", help=("one of: light, dark",)))
    return THEMES[name]

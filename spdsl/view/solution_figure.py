"""Pictures of one solution and of a choice of the age.

In: a `Solution` or a `Selection`. Out: a matplotlib figure.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from spdsl.solution import Solution
from spdsl.solution.frame import entry_names, matrix_columns
from spdsl.solution.select import Selection
from spdsl.view.graph_figure import draw_support, graph_variable
from spdsl.view.labels import shortened
from spdsl.view.theme import Theme

if TYPE_CHECKING:
    from spdsl.solvers.cross_validation import CrossValidation

__all__ = ["selection_figure", "solution_figure"]

FEW = 30  # entries that get a bar and a name each
COLUMNS = ("objective", "loss", "error", "value", "gap")


def solution_figure(solution: Solution, theme: Theme, width: float, height: float | None) -> Any:
    """Draw a solution; see `spdsl.view.plot.plot_solution`."""
    from matplotlib.figure import Figure

    layout = solution.bound.layout
    variables = [name for name, shape in layout.shapes.items() if shape != ()] or list(layout.shapes)
    history = _history_column(solution)
    weighted = solution.bound.problem.self_paced is not None and bool(solution.bound.data)
    count = len(variables) + weighted + (history is not None)
    on_graph = graph_variable(solution)
    tall = 1.0 * (on_graph is not None)
    figure = Figure(figsize=(width, height or 0.8 + 2.6 * count + tall), layout="constrained")
    heights = [1.4 if name == on_graph else 1.0 for name in variables] + [1.0] * (count - len(variables))
    grid = figure.add_gridspec(count, 2, width_ratios=(1, 1.25), height_ratios=heights)
    for k, name in enumerate(variables):
        if len(layout.shapes[name]) == 2:
            _draw_matrix(figure.add_subplot(grid[k, 0]), solution, name)
            _draw_eigenvalues(figure.add_subplot(grid[k, 1]), solution, name, theme)
        elif name == on_graph:
            draw_support(figure.add_subplot(grid[k, 0]), solution, name, theme)
            _draw_vector(figure.add_subplot(grid[k, 1]), solution, name, theme)
        else:
            _draw_vector(figure.add_subplot(grid[k, :]), solution, name, theme)
    axes = [figure.add_subplot(grid[k, :]) for k in range(len(variables), count)]
    if weighted:
        _draw_weights(axes.pop(0), solution, theme)
    if history is not None:
        _draw_history(axes.pop(0), solution, history, theme)
    age = "" if solution.age is None else f" at age {solution.age:.6g}"
    name = os.path.basename(solution.bound.problem.name)
    figure.suptitle(f"{name}{age}", x=0.012, ha="left", fontsize=12, fontweight="bold", color=theme.ink)
    return figure


def _draw_vector(axis: Any, solution: Solution, name: str, theme: Theme) -> None:
    value = np.asarray(solution[name], float).ravel()
    kind = solution.bound.problem.variable(name).kind
    zeros = int(np.sum(value == 0))
    if len(value) > FEW:
        at = np.arange(len(value))
        kept = value != 0
        axis.vlines(at[kept], 0, value[kept], color=theme.series[0], linewidth=max(0.4, 200 / len(value)))
        axis.set_xlim(-0.02 * len(value) - 1, 1.02 * len(value))
        axis.set_xlabel("entry")
    else:
        labels = [shortened(label) for label in entry_names(solution.bound)[solution.bound.layout.slices[name]]]
        axis.bar(np.arange(len(value)), value, color=theme.series[0], width=0.7)
        axis.set_xticks(
            np.arange(len(value)),
            labels,
            rotation=30 if len(value) > 6 else 0,
            ha="right" if len(value) > 6 else "center",
        )
        axis.tick_params(axis="x", length=0)
    axis.axhline(0, color=theme.faint, linewidth=0.8)
    what = "expansion coefficients of " if kind == "rkhs" else ""
    axis.set_title(f"{what}{name}: {len(value) - zeros} of {len(value)} not zero", pad=4)


def _draw_matrix(axis: Any, solution: Solution, name: str) -> None:
    """A matrix as coloured squares, blue below zero and red above."""
    value = np.asarray(solution[name], float)
    size = float(np.max(np.abs(value))) or 1.0
    picture = axis.imshow(value, cmap="RdBu_r", vmin=-size, vmax=size, aspect="equal", interpolation="nearest")
    axis.figure.colorbar(picture, ax=axis, pad=0.012, fraction=0.03).outline.set_visible(False)
    rows, columns = value.shape
    known = matrix_columns(solution.bound, name)
    for axis_of, count in ((axis.xaxis, columns), (axis.yaxis, rows)):
        if count <= FEW:
            labels = [shortened(label) for label in known] if len(known) == count else list(map(str, range(count)))
            axis_of.set_ticks(range(count), labels)
    axis.tick_params(length=0)
    if known and columns > 4:
        axis.tick_params(axis="x", rotation=30)
    for spine in axis.spines.values():
        spine.set_visible(False)
    axis.set_title(f"{name}, {rows} x {columns}", pad=4)


def _draw_eigenvalues(axis: Any, solution: Solution, name: str, theme: Theme) -> None:
    """Eigenvalues of a symmetric matrix, singular values of any other, the largest first."""
    value = np.asarray(solution[name], float)
    symmetric = solution.bound.problem.variable(name).kind == "symmetric"
    spectrum = np.linalg.eigvalsh(value)[::-1] if symmetric else np.linalg.svd(value, compute_uv=False)
    kept = int(np.sum(np.abs(spectrum) > 1e-10 * np.max(np.abs(spectrum), initial=0.0)))
    axis.bar(np.arange(1, len(spectrum) + 1), spectrum, color=theme.series[0], width=0.7)
    axis.axhline(0, color=theme.faint, linewidth=0.8)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_title(f"{'eigenvalues' if symmetric else 'singular values'}: rank {kept} of {len(spectrum)}", pad=4)


def _draw_weights(axis: Any, solution: Solution, theme: Theme) -> None:
    losses, weights = solution.losses, solution.weights
    axis.plot(
        losses, weights, ".", color=theme.series[1], markersize=4, alpha=float(np.clip(300 / len(losses), 0.15, 0.9))
    )
    if losses.min() > 0 and losses.max() / losses.min() > 1e3:
        axis.set_xscale("log")
    axis.set_ylim(-0.04, 1.04)
    axis.set_xlabel("loss of a sample")
    axis.set_title(f"sample weight v over loss: {solution.in_share:.0%} of {len(losses)} samples in", pad=4)


def _history_column(solution: Solution) -> str | None:
    return next((name for name in COLUMNS if name in solution.history and len(solution.history) > 1), None)


def _draw_history(axis: Any, solution: Solution, column: str, theme: Theme) -> None:
    over = next((n for n in ("iteration", "step", "epoch", "pass", "samples") if n in solution.history), None)
    values = np.asarray(solution.history[column], float)
    x = np.arange(len(values)) if over is None else solution.history[over]
    axis.plot(x, values, color=theme.series[2])
    if np.all(values > 0) and values.max() / values.min() > 100:
        axis.set_yscale("log")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel(over or "record")
    axis.set_title(column, pad=4)


def selection_figure(selection: Selection | CrossValidation, theme: Theme, width: float) -> Any:
    """Draw a choice of the age; see `spdsl.view.plot.plot_selection`."""
    from matplotlib.figure import Figure

    from spdsl.solvers.cross_validation import CrossValidation

    figure = Figure(figsize=(width, 3.4), layout="constrained")
    axis = figure.subplots()
    breaks = [
        i
        for i in range(1, len(selection.ages))
        if any(selection.ages[i - 1] <= point.age <= selection.ages[i] for point in selection.path.jumps)
    ]
    axis.plot(
        np.insert(selection.ages, breaks, np.nan), np.insert(selection.values, breaks, np.nan), color=theme.series[0]
    )
    if isinstance(selection, CrossValidation):
        band = selection.values - selection.errors, selection.values + selection.errors
        axis.fill_between(selection.ages, *band, color=theme.series[0], alpha=0.18, linewidth=0)
        axis.axvline(selection.age_within_one_standard_error, color=theme.muted, linewidth=0.9)
    for point in selection.path.jumps:
        axis.axvline(point.age, color=theme.jump, linewidth=0.9, linestyle=(0, (2, 2)), alpha=0.85)
    axis.plot(selection.minima[1:, 0], selection.minima[1:, 1], "o", color=theme.muted, markersize=4)
    axis.plot([selection.age], [selection.value], "o", color=theme.series[1], markersize=7)
    low, high = selection.path.age_range
    if low > 0 and high / low > 20:
        axis.set_xscale("log")
    axis.set_xlabel("age λ")
    name = "validation loss (mean)" if selection.metric == "mean" else f"validation {selection.metric}"
    axis.set_ylabel(name)
    share = f"{selection.in_share:.0%} of the training samples in"
    axis.set_title(f"best age {selection.age:.6g}: {selection.value:.6g}, with {share}", pad=6)
    return figure

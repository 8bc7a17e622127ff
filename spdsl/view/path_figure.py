"""The picture of an age-path: coefficients, sample weights, shares and KKT residuals over one axis of ages.

In: a `Path` and its `Curves`. Out: a matplotlib figure. Jumps break every curve and are marked over all panels; turning
points are ticks below the coefficients.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solution import Path
from spdsl.solution.frame import entry_names
from spdsl.view.curves import Curves
from spdsl.view.labels import spread_labels
from spdsl.view.theme import Theme

__all__ = ["path_figure"]

NAMED = 8  # how many curves get a colour and a name where there are many
ALL_NAMED = 12  # up to so many, all do
HEAT_ROWS = 420
HEAT_COLUMNS = 700


@dataclass(frozen=True)
class Family:
    """Curves that share a panel: the entries of one variable, or the eigenvalues of a symmetric one."""

    title: str
    names: tuple[str, ...]
    values: Array  # (k, m)


def path_figure(path: Path, curves: Curves, theme: Theme, width: float, height: float | None) -> Any:
    """Draw a path; see `spdsl.view.plot.plot_path`."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    families = _families(path, curves)
    heights = [3.2] * len(families)
    if curves.weights is not None:
        heights += [2.1, 1.0]
    heights.append(0.8)
    total = height or 1.15 + 1.02 * sum(heights)
    figure = Figure(figsize=(width, total), layout=ConstrainedLayoutEngine(h_pad=0.05, w_pad=0.06))
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    for axis, family in zip(axes, families, strict=False):
        _draw_family(axis, curves, family, theme)
    _draw_turning_points(axes[len(families) - 1], path, theme)
    rest = list(axes[len(families) :])
    if curves.weights is not None:
        _draw_weights(figure, rest.pop(0), curves, theme)
        _draw_shares(rest.pop(0), curves, theme)
    _draw_residuals(rest.pop(0), curves, theme)
    for axis in axes:
        _mark_jumps(axis, path, theme)
    _finish_age_axis(axes[-1], path, curves, theme)
    _head(figure, path, theme)
    return figure


# --- coefficients --------------------------------------------------------------------------------------------------


def _families(path: Path, curves: Curves) -> list[Family]:
    """One panel a variable with several entries; scalars join the first."""
    layout = path.bound.layout
    names = entry_names(path.bound)
    scalars: list[tuple[str, Array]] = []
    families: list[Family] = []
    several = sum(shape != () for shape in layout.shapes.values()) > 1
    kinds = {variable.name: variable.kind for variable in path.bound.problem.variables}
    for variable, where in layout.slices.items():
        block = curves.x[:, where]
        shape = layout.shapes[variable]
        if shape == ():
            scalars.append((variable, block[:, 0]))
        elif kinds.get(variable) == "symmetric":
            eigenvalues = np.asarray(np.linalg.eigvalsh(block.reshape(-1, *shape))[:, ::-1], float)
            labels = tuple(f"no. {i + 1}" for i in range(shape[0]))
            families.append(Family(f"eigenvalues of {variable}", labels, eigenvalues))
        else:
            prefix = f"{variable}["
            labels = tuple(
                name if several or not name.startswith(prefix) else _bare(name, prefix) for name in names[where]
            )
            families.append(Family(_title(variable, kinds.get(variable, "")), labels, block))
    if not families:
        values = np.stack([values for _, values in scalars], axis=1)
        return [Family("variables", tuple(name for name, _ in scalars), values)]
    if scalars:
        first = families[0]
        extra = np.stack([values for _, values in scalars], axis=1)
        labels = (*first.names, *(name for name, _ in scalars))
        families[0] = Family(first.title, labels, np.hstack([first.values, extra]))
    return families


def _bare(name: str, prefix: str) -> str:
    inner = name[len(prefix) : -1]
    return name if inner.isdigit() else inner


def _title(variable: str, kind: str) -> str:
    return f"expansion coefficients of {variable}" if kind == "rkhs" else f"coefficients {variable}"


def _draw_family(axis: Any, curves: Curves, family: Family, theme: Theme) -> None:
    from matplotlib.collections import LineCollection

    x, y = _broken(curves.ages, family.values, curves.breaks)
    size = np.mean(np.abs(family.values), axis=0)
    order = np.argsort(-size, kind="stable")
    named = order if len(order) <= ALL_NAMED else order[:NAMED]
    others = order[len(named) :]
    if len(others):
        alpha = float(np.clip(12.0 / np.sqrt(len(others)) / 2, 0.25, 0.9))
        lines = [np.column_stack([x, y[:, j]]) for j in others]
        axis.add_collection(
            LineCollection(
                lines, colors=theme.faint, linewidths=0.8, alpha=alpha, zorder=1, rasterized=len(others) > 200
            )
        )
    for rank, j in reversed(list(enumerate(named))):
        second = rank >= len(theme.series)
        color = theme.series[rank % len(theme.series)]
        axis.plot(x, y[:, j], color=color, zorder=3 - rank / 100, linestyle=(0, (5, 1.5)) if second else "-")
    axis.axhline(0, color=theme.rule, linewidth=0.8, zorder=0)
    low, high = float(np.nanmin(family.values)), float(np.nanmax(family.values))
    pad = 0.06 * (high - low or 1.0)
    axis.set_ylim(low - pad, high + pad)
    axis.set_title(_counted_title(family, len(others)), pad=4)
    shown = []
    for rank, j in enumerate(named):
        name = family.names[j] if rank < len(theme.series) else f"- - {family.names[j]}"
        shown.append((float(family.values[-1, j]), name, theme.series[rank % len(theme.series)]))
    spread_labels(axis, shown)


def _counted_title(family: Family, others: int) -> str:
    if not others:
        return family.title
    return f"{family.title}: the {len(family.names) - others} largest of {len(family.names)} named, the others grey"


def _broken(ages: Array, values: Array, breaks: tuple[int, ...]) -> tuple[Array, Array]:
    """The curves with a gap (NaN) at every jump."""
    return np.insert(ages, breaks, np.nan), np.insert(values, breaks, np.nan, axis=0)


# --- samples -------------------------------------------------------------------------------------------------------


def _draw_weights(figure: Any, axis: Any, curves: Curves, theme: Theme) -> None:
    """A heat map: one row a sample (or a few neighbours), sorted by how much weight it gets along the path."""
    from matplotlib.colors import LinearSegmentedColormap

    assert curves.weights is not None
    weights = curves.weights
    spacing = np.gradient(np.log(curves.ages) if curves.log else curves.ages) if len(curves.ages) > 1 else np.ones(1)
    order = np.argsort(-(weights @ np.maximum(spacing, 0)), kind="stable")
    rows = _grouped_rows(weights[order], HEAT_ROWS)
    columns = np.unique(np.linspace(0, len(curves.ages) - 1, HEAT_COLUMNS).round().astype(int))
    palette = LinearSegmentedColormap.from_list("weights", theme.weights)
    edges = _edges(curves.ages[columns])
    mesh = axis.pcolormesh(
        edges,
        np.linspace(0, 1, len(rows) + 1),
        rows[:, columns],
        cmap=palette,
        vmin=0.0,
        vmax=1.0,
        rasterized=True,
        shading="flat",
    )
    axis.set_ylim(1, 0)
    axis.set_yticks([0, 0.5, 1], ["first", "", "last"])
    axis.set_title(f"sample weights v, one row a sample ({len(weights)}), sorted by when they are let in", pad=4)
    beside = axis.inset_axes((1.012, 0.0, 0.013, 1.0))
    bar = figure.colorbar(mesh, cax=beside, ticks=[0, 0.5, 1])
    bar.outline.set_visible(False)
    beside.tick_params(length=0, labelsize=8)


def _grouped_rows(weights: Array, most: int) -> Array:
    if len(weights) <= most:
        return weights
    starts = np.linspace(0, len(weights), most + 1).astype(int)[:-1]
    sizes = np.diff([*starts, len(weights)])
    return np.asarray(np.add.reduceat(weights, starts, axis=0) / sizes[:, None])


def _edges(ages: Array) -> Array:
    if len(ages) == 1:
        return np.array([ages[0] * 0.99 - 1e-9, ages[0] * 1.01 + 1e-9])
    middle = (ages[1:] + ages[:-1]) / 2
    return np.concatenate([ages[:1], middle, ages[-1:]])


def _draw_shares(axis: Any, curves: Curves, theme: Theme) -> None:
    assert curves.in_share is not None
    assert curves.mean_weight is not None
    pairs = (
        (curves.in_share, theme.series[0], "in"),
        (curves.mean_weight, theme.series[1], "mean weight"),
    )
    for values, color, label in pairs:
        x, y = _broken(curves.ages, values[:, None], curves.breaks)
        axis.plot(x, y[:, 0], color=color, label=label, linewidth=1.4)
    axis.set_ylim(0, 1.04)
    axis.set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
    axis.set_title("share of the samples", pad=4)
    spread_labels(axis, [(float(values[-1]), label.split(" (")[0], color) for values, color, label in pairs])


# --- certificate and critical points -------------------------------------------------------------------------------


def _draw_residuals(axis: Any, curves: Curves, theme: Theme) -> None:
    floor = 1e-17
    values = np.maximum(curves.residuals, floor)
    axis.plot(curves.ages, values, ".", color=theme.muted, markersize=2.2, rasterized=len(values) > 2000)
    axis.set_yscale("log")
    top = max(float(np.max(values)) * 10, 1e-7)
    axis.set_ylim(min(1e-16, float(np.min(values))), top)
    axis.axhline(1e-8, color=theme.series[2], linewidth=0.9, linestyle=(0, (4, 3)))
    axis.set_title("KKT residual (scaled); dashed: 1e-8", pad=4)
    axis.minorticks_off()
    axis.set_yticks([1e-16, 1e-12, 1e-8])


def _draw_turning_points(axis: Any, path: Path, theme: Theme) -> None:
    ages = [point.age for point in path.turning_points]
    if ages:
        alpha = float(np.clip(60 / len(ages), 0.25, 0.9))
        transform = axis.get_xaxis_transform()
        axis.vlines(ages, 0.0, 0.025, color=theme.muted, linewidth=0.7, alpha=alpha, transform=transform, zorder=2)


def _mark_jumps(axis: Any, path: Path, theme: Theme) -> None:
    for point in path.jumps:
        axis.axvline(point.age, color=theme.jump, linewidth=0.9, linestyle=(0, (2, 2)), alpha=0.85, zorder=2.5)


def _finish_age_axis(axis: Any, path: Path, curves: Curves, theme: Theme) -> None:
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator

    low, high = path.age_range
    if curves.log:
        axis.set_xscale("log")
        if high / low < 1000:
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.xaxis.set_major_formatter(_short)
            axis.xaxis.set_minor_formatter("")
        else:
            axis.xaxis.set_major_formatter(LogFormatterSciNotation())
    if high > low:
        axis.set_xlim(low, high)
    name = path.bound.problem.age.name if path.bound.problem.age else "lambda"
    axis.set_xlabel(f"age {'λ' if name == 'lambda' else name}" + (" (log scale)" if curves.log else ""))


def _short(value: float, _: Any = None) -> str:
    return f"{value:.6g}"


def _head(figure: Any, path: Path, theme: Theme) -> None:
    points, jumps = len(path.turning_points), len(path.jumps)
    name = os.path.basename(path.bound.problem.name)
    figure.suptitle(name, x=0.012, ha="left", fontsize=12, fontweight="bold", color=theme.ink)
    turning = f"{points} turning point{'s' * (points != 1)}" + (" (ticks)" if points else "")
    jump = f"{jumps} jump{'s' * (jumps != 1)}" + (" (dashed red)" if jumps else "")
    at = 1 - 0.13 / figure.get_figheight()
    figure.text(0.988, at, f"{turning}, {jump}", ha="right", va="top", fontsize=9, color=theme.muted)

"""Figures 1, 2, 4, 5 and 6 of the GAGA paper, one file each; the numbers behind them are printed.

    python examples/gaga/figures.py 1 2 4 5 6 --out out/gaga
    python examples/gaga/figures.py 5 --sets delta_elevators --runs 3 --sizes 250 500 1000

1: the learning curve of self-paced linear regression over the age, on music. 2: an age-path with its critical points, Lasso with
alpha = 0.01 on a random 60% of diabetes' features. 4: learning curves under 20, 40 and 80% of noise. 5: CPU seconds against the
number of samples, for a grid of 50 and one of 100 ages. 6: turning points and jumps on six sets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from experiment import REGRESSION, draw, measure, model, score
from sklearn.datasets import load_diabetes

import spdsl


def solve(problem: spdsl.Model, **given) -> spdsl.Path:
    """A path; what the model has to remark is known here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        return problem.solve(**given)


def curve(path: spdsl.Path, part: tuple, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Test error at many ages of a path."""
    ages = np.geomspace(*path.age_range, count)
    return ages, np.array([score(path(min(age, path.age_range[1])), part) for age in ages])


def figure_1(asked) -> plt.Figure:
    """Test error of self-paced linear regression over the age."""
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    split = draw("music", 0.3, asked.samples, 0)
    X, y = split.train
    path = solve(model("music", "linear"), X=X, y=y, alpha=1e-4)
    ages, errors = curve(path, split.test)
    best = int(np.argmin(errors))
    print(
        f"figure 1: music, least test error {errors[best]:.3f} at age {ages[best]:.3g}, {errors[-1]:.3f} at the last age"
    )
    axis.semilogx(ages, errors)
    axis.plot(ages[best], errors[best], "o")
    axis.set(xlabel="age λ", ylabel="test error", title=f"music: best {errors[best]:.3f}, in the end {errors[-1]:.3f}")
    return figure


def figure_2(asked) -> plt.Figure:
    """An age-path with its critical points."""
    X, y = load_diabetes(return_X_y=True)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    X = X[:, np.sort(np.random.default_rng(0).permutation(10)[:6])]
    path = solve(model("music", "linear"), X=X, y=y, alpha=0.01)
    print(f"figure 2: diabetes, {len(path.turning_points)} turning points, {len(path.jumps)} jumps")
    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for j in range(X.shape[1]):
        axis.semilogx(path.ages, path.nodes[:, j], linewidth=1.6)
    for point in path.turning_points:
        axis.axvline(point.age, color="0.85", linewidth=0.4, zorder=0)
    for point in path.jumps:
        axis.axvline(point.age, color="crimson", linewidth=1.0, linestyle="--", zorder=1)
    title = (
        f"diabetes, 6 of 10 features: {len(path.turning_points)} turning points (grey), jumps (red): {len(path.jumps)}"
    )
    axis.set(xlabel="age λ", ylabel="coefficients")
    axis.set_title(title, fontsize=10)
    return figure


def figure_4(asked) -> plt.Figure:
    """Learning curves under noise: the grid of ACS and the path."""
    name = (asked.sets or ["music"])[0]
    figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
    print(f"figure 4: {name}; test error: best on the path, at the last age, and chosen on the samples kept for that")
    for color, noise in zip(("tab:blue", "tab:orange", "tab:green"), (0.2, 0.4, 0.8)):
        split = draw(name, noise, asked.samples, 0)
        X, y = split.train
        problem = model(name, "linear")
        path = solve(problem, X=X, y=y)
        grid = solve(problem, X=X, y=y, backend="acs", ages=25)
        ages, errors = curve(path, split.test)
        dots = [score(grid(age), split.test) for age in grid.ages]
        Xc, yc = split.choose
        picked = path.select(X=Xc, y=yc)
        chosen = score(picked.solution, split.test)
        print(
            f"  {noise:.0%}: {errors.min():.3f} {errors[-1]:.3f} {chosen:.3f} (age {picked.age:.3g}, in {picked.in_share:.0%})"
        )
        axis.semilogx(ages, errors, color=color, label=f"path, {noise:.0%} noise")
        axis.semilogx(grid.ages, dots, "o", color=color, markersize=3.5, label=f"ACS, {noise:.0%} noise")
        axis.plot(picked.age, chosen, "*", color=color, markersize=12)
    axis.set(xlabel="age λ", ylabel="test error", title=f"{name}: stars are the ages chosen")
    axis.legend(fontsize=8, ncols=3)
    return figure


def figure_5(asked) -> plt.Figure:
    """CPU seconds against samples; the grid's number of ages varies."""
    name = (asked.sets or ["delta_elevators"])[0]
    columns = [("ACS, 50 ages", "acs", 50), ("ACS, 100 ages", "acs", 100), ("MOSPL", "mospl", 0), ("path", "path", 0)]
    print(f"figure 5: {name}; CPU seconds, medians of {asked.runs} runs")
    print(f"  {'samples':>8}" + "".join(f"{label:>15}" for label, _, _ in columns))
    times = {label: [] for label, _, _ in columns}
    for size in asked.sizes:
        for label, method, ages in columns:
            runs = []
            for run in range(asked.runs):
                split = draw(name, 0.3, int(size / 0.6), run)
                runs.append(measure(method, split, model(name, "linear"), {"alpha": 5e-3}, ages or 50, run).seconds)
            times[label].append(float(np.median(runs)))
        print(f"  {size:>8}" + "".join(f"{times[label][-1]:>15.2f}" for label, _, _ in columns), flush=True)
    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for label, _, _ in columns:
        axis.loglog(asked.sizes, times[label], "o-", label=label)
    axis.set(xlabel="training samples", ylabel="CPU seconds", title=f"{name}, linear SP-regularizer")
    axis.legend(fontsize=9)
    return figure


def figure_6(asked) -> plt.Figure:
    """How many critical points of which kind."""
    names = [name for name in (asked.sets or ("cadata", "house_8L", "ailerons", "music", "delta_elevators", "elevators"))
             if name in REGRESSION]  # fmt: skip
    counts = []
    print(f"figure 6: {asked.samples or 'all'} samples a set; turning points, jumps (the paper plots no numbers)")
    for name in names:
        split = draw(name, 0.3, asked.samples, 0)
        X, y = split.train
        began = time.process_time()
        path = solve(model(name, "linear"), X=X, y=y)
        counts.append((len(path.turning_points), len(path.jumps)))
        print(
            f"  {name:>16}: {counts[-1][0]:>6} {counts[-1][1]:>5}   ({time.process_time() - began:.1f} s)", flush=True
        )
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    place = np.arange(len(names))
    for k, label in enumerate(("turning points", "jumps")):
        bars = axis.bar(place + 0.4 * k - 0.2, [max(c[k], 0.5) for c in counts], 0.38, label=label)
        axis.bar_label(bars, [str(c[k]) for c in counts], fontsize=8)
    axis.set_yscale("log")
    axis.set_xticks(place, [name[:3] + "." for name in names])
    axis.set(ylabel="number")
    axis.legend(fontsize=9, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


FIGURES = {1: figure_1, 2: figure_2, 4: figure_4, 5: figure_5, 6: figure_6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=int, nargs="*", choices=list(FIGURES), default=list(FIGURES))
    parser.add_argument("--sets", nargs="*", choices=REGRESSION)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1000, help="of a set; 0: all")
    parser.add_argument("--sizes", type=int, nargs="*", default=[250, 500, 1000, 2000])
    parser.add_argument("--out", type=Path, default=Path("out/gaga"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for number in asked.figures or FIGURES:
        figure = FIGURES[number](asked)
        file = asked.out / f"figure_{number}.png"
        figure.savefig(file, dpi=150)
        print(f"  written to {file}", flush=True)


if __name__ == "__main__":
    main()

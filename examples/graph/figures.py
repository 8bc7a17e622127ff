"""The recovery figures of GraphStoIHT, run with spdsl's default configuration and drawn over the published curves.

    python examples/graph/figures.py fig4 fig5 fig6 fig7 [--trials 20] [--every 1 [--early 4]] [--draw] [--methods iht,...]

In: images and published curves (SPDSL_DATA). Out: counts in out/, kept after every point, figures in figures/,
and all counts in figures/recovery.csv.
By default a few telling points of each published transition are run; with `--every k` every k-th point from before the
curve leaves 0 to where it reaches 1. Each is held against the published share by an exact test (verdict.py), and the
exit code is 1 when one is below it. `--draw` draws and tests what is in the store.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from problems import IMAGES, image, needed, random_walk
from recovery import METHODS, Setup, recovery_curve
from threadpoolctl import threadpool_limits
from verdict import LEVEL, Comparison, combined, compare

from spdsl.solvers.iht.graph import grid

HERE = Path(__file__).resolve().parent
FOUR = ("iht", "sto-iht", "graph-iht", "graph-sto-iht")
COLORS = dict(zip(METHODS, ("C0", "C1", "C2", "C3", "C4", "C5", "C6")))


@dataclass(frozen=True)
class Panel:
    """One panel: its signals, the numbers of measurements and the published shares by method."""

    figure: str
    title: str
    setup: Setup
    sizes: np.ndarray
    axis: np.ndarray
    label: str
    published: dict[str, np.ndarray]
    early: int = 4  # points before the published transition at which graph methods are run too

    @property
    def key(self) -> str:
        """The panel's name in the store."""
        return f"{self.figure}/{self.title}"

    def transition(self, method: str) -> np.ndarray:
        """Indices of a few telling points: about .5, about .9 and 1 of the published curve, and one where it is 0.

        Graph methods do better here: theirs begins at a fourteenth fewer measurements (and a seventh, without blocks).
        """
        share = self.published[method]
        full = int(np.argmax(share >= 0.99)) if (share >= 0.99).any() else share.size - 1
        wanted = [full]
        wanted += [int(np.argmax(share >= level)) for level in (0.5, 0.9) if (share >= level).any()]
        if method.startswith("graph-"):
            first = int(np.argmax(share > 0)) if (share > 0).any() else share.size - 1
            wanted += [
                int(np.abs(self.sizes - part * self.sizes[first]).argmin())
                for part in ((0.93,) if "sto" in method else (0.86, 0.93))
            ]
        return np.unique(wanted)

    def window(self, method: str, early: int | None = None) -> np.ndarray:
        """Indices around the published transition, from `early` points (by default the panel's own) before it."""
        share = self.published[method]
        first = int(np.argmax(share > 0)) if (share > 0).any() else share.size - 1
        full = int(np.argmax(share >= 0.99)) if (share >= 0.99).any() else share.size - 1
        before = self.early if method.startswith("graph-") else self.early // 3
        before = before if early is None else early
        return np.arange(max(0, first - before), full + 1)


def store_of(figure: str) -> Path:
    """The file that keeps a figure's counts."""
    return HERE / "out" / f"{figure}.npz"


def stored_counts(figure: str) -> dict[str, np.ndarray]:
    """What has been run so far."""
    return dict(np.load(store_of(figure))) if store_of(figure).exists() else {}


def panels(figure: str) -> Iterator[Panel]:
    """The panels of a figure."""
    curves = needed("published_curves.npz")
    if figure == "fig4":
        graph = grid(16, 16)
        for k, s in enumerate(curves["fig4_s"]):
            published = {method: curves["fig4_prob"][j, k] for j, method in enumerate(FOUR)}
            setup = Setup(graph, 1, lambda rng, s=int(s): walk_signal(graph, s, rng))
            yield Panel(figure, f"s = {s}", setup, curves["fig4_n"], curves["fig4_n"], "measurements", published, 9)
    elif figure == "fig5":
        for k, name in enumerate(IMAGES):
            picture = image(name)
            published = {str(m): curves["fig5_prob"][k, j] for j, m in enumerate(curves["fig5_methods"])}
            sizes = np.rint(curves["fig5_ratio"] * picture.s).astype(int)
            setup = Setup(grid(50, 50), picture.components, lambda rng, w=picture.w: w)
            yield Panel(figure, name, setup, sizes, curves["fig5_ratio"], "measurements a non-zero", published)
    elif figure == "fig6":
        for k in (1, 2, 3, 4):
            support = needed("images.npz")[f"anomaly33_fig{k}_support"]
            published = {method: curves[f"fig6_{k}_prob"][j] for j, method in enumerate(FOUR)}
            sizes = curves[f"fig6_{k}_n"]
            setup = Setup(grid(33, 33), 1, lambda rng, v=support: on_support(33 * 33, v, rng))
            yield Panel(figure, f"support {k}", setup, sizes, sizes, "measurements", published)
    elif figure == "fig7":
        support = needed("images.npz")["square30_support"]
        published = {str(m): curves["fig7_prob"][j] for j, m in enumerate(curves["fig5_methods"])}
        setup = Setup(grid(30, 30), 1, lambda rng: on_support(900, support, rng))
        yield Panel(figure, "5 x 5 square", setup, curves["fig7_n"], curves["fig7_n"], "measurements", published)


def on_support(p: int, support: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """N(0, 1) on a support."""
    w = np.zeros(p)
    w[support] = rng.standard_normal(support.size)
    return w


def walk_signal(graph: object, s: int, rng: np.random.Generator) -> np.ndarray:
    """N(0, 1) on a random walk from the middle of the 16 x 16 grid."""
    return on_support(256, random_walk(grid(16, 16), s, rng, start=8 * 16 + 8), rng)


def draw(figure: str) -> Path:
    """The figure: published curves as lines, ours as points with 90% intervals."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = list(panels(figure))
    stored = stored_counts(figure)
    figure_, axes = plt.subplots(1, len(parts), figsize=(4.2 * len(parts) + 1.5, 3.6), sharey=True, squeeze=False)
    for ax, panel in zip(axes[0], parts):
        for method, share in panel.published.items():
            color = COLORS[method]
            ax.plot(panel.axis, share, color=color, lw=1, alpha=0.6)
            found = [
                (a, *stored[name])
                for a, n in zip(panel.axis, panel.sizes)
                if (name := f"{panel.key}/{method}/{n}") in stored
            ]
            if found:
                at, hits, runs = np.array(found, dtype=float).T
                low, high = interval(hits, runs)
                ax.errorbar(
                    at,
                    hits / runs,
                    [hits / runs - low, high - hits / runs],
                    fmt="o",
                    ms=4,
                    color=color,
                    lw=0.8,
                    capsize=2,
                    label=method,
                )
        ax.set_title(panel.title)
        ax.set_xlabel(panel.label)
        ax.grid(alpha=0.2)
    axes[0][0].set_ylabel("share recovered")
    handles = [plt.Line2D([], [], color=COLORS[m], marker="o", ms=4, lw=1, label=m) for m in parts[0].published]
    axes[0][-1].legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure_.suptitle("lines: published (50 trials); points: spdsl's defaults, 90% intervals", fontsize=9)
    figure_.tight_layout()
    path = HERE / "figures" / f"{figure}.png"
    path.parent.mkdir(exist_ok=True)
    figure_.savefig(path, dpi=110)
    return path


def interval(hits: np.ndarray, runs: np.ndarray, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson intervals of the success probabilities."""
    from scipy.stats import beta

    tail = (1 - level) / 2
    low = np.where(hits > 0, beta.ppf(tail, np.maximum(hits, 1), runs - hits + 1), 0.0)
    high = np.where(hits < runs, beta.ppf(1 - tail, hits + 1, np.maximum(runs - hits, 1)), 1.0)
    return low, high


def comparisons(figure: str) -> Iterator[tuple[str, str, list[Comparison]]]:
    """Panel, method and its points that have been run."""
    stored = stored_counts(figure)
    for panel in panels(figure):
        for method, share in panel.published.items():
            names = [f"{panel.key}/{method}/{n}" for n in panel.sizes]
            run = [k for k, name in enumerate(names) if name in stored]
            if run:
                counts = np.array([stored[names[k]] for k in run])
                yield panel.title, method, compare(panel.axis[run], counts, share[run])


def write_counts(figures: Sequence[str]) -> Path:
    """Our counts as a table; figures that aren't asked for keep their lines."""
    path = HERE / "figures" / "recovery.csv"
    head = "figure,panel,method,at,recovered,trials"
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    lines = [line for line in lines if line.split(",", 1)[0] not in figures]
    for figure in figures:
        for title, method, points in comparisons(figure):
            lines += [f"{figure},{title},{method},{point.at:g},{point.hits},{point.runs}" for point in points]
    path.write_text("\n".join([head, *sorted(lines)]) + "\n")
    return path


def verdict(figures: Sequence[str]) -> int:
    """Print each method's points, where ours is below or above at 1%, and the test over all; returns how many are below."""
    every: dict[str, list[Comparison]] = {}
    below = 0
    for figure in figures:
        for title, method, points in comparisons(figure):
            every.setdefault(method, []).extend(points)
            print(f"{figure} {title:<12} {method:<14} " + "; ".join(map(str, points)))
            for point in points:
                if point.lower < LEVEL:
                    below += 1
                    print(f"    BELOW at {point} (p = {point.lower:.1g})")
                if point.higher < LEVEL:
                    print(f"    above at {point} (p = {point.higher:.1g})")
    print(f"{'method':<16}{'points':>7}{'trials':>8}{'below':>7}{'above':>7}{'z, at least':>13}  over all points")
    for method, points in every.items():
        z = min(combined(points), combined(points, against_us=False))
        lower = sum(point.lower < LEVEL for point in points)
        higher = sum(point.higher < LEVEL for point in points)
        said = "LOWER than published" if z < -2.33 else "higher than published" if z > 2.33 else "as published"
        runs = sum(point.runs for point in points)
        print(f"{method:<16}{len(points):>7}{runs:>8}{lower:>7}{higher:>7}{z:>13.1f}  {said}")
    return below


def main() -> int:
    """Run and draw; 1 when a point is below the published share beyond Monte-Carlo error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", nargs="+", choices=("fig4", "fig5", "fig6", "fig7"))
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument(
        "--every", type=int, default=0, help="run every so many-th point of a window, not the few telling"
    )
    parser.add_argument("--early", type=int, help="points to run before each published transition (with --every)")
    parser.add_argument("--draw", action="store_true", help="draw what is in the store, run nothing")
    options = parser.parse_args()
    for figure in options.figures:
        if not options.draw:
            with threadpool_limits(1):
                for method in options.methods.split(","):
                    for panel in panels(figure):
                        if method in panel.published:
                            if options.every:
                                chosen = panel.window(method, options.early)[:: options.every]
                            else:
                                chosen = panel.transition(method)
                            sizes = [int(n) for n in panel.sizes[chosen]]
                            recovery_curve(panel.setup, method, sizes, options.trials, store_of(figure), panel.key)
        print(f"written to {draw(figure)}")
    print(f"written to {write_counts(options.figures)}")
    return 1 if verdict(options.figures) else 0


if __name__ == "__main__":
    sys.exit(main())

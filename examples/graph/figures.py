"""The recovery figures of GraphStoIHT, run with spdsl's default configuration and drawn over the published curves.

    python examples/graph/figures.py fig4 fig5 fig6 fig7 [--trials 10] [--every 1] [--early 4] [--draw] [--methods iht,...]

In: images and published curves (SPDSL_DATA). Out: counts in out/, kept after every point, and figures in figures/.
Only the points around each published transition are run: from a few points before the published curve leaves 0
(earlier for graph methods, which do better here) to where it reaches 1. `--draw` draws what is in the store.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from problems import IMAGES, image, needed, random_walk
from recovery import METHODS, Setup, recovery_curve
from threadpoolctl import threadpool_limits

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


def verdict(figure: str) -> None:
    """Print where ours is below and above the published share beyond both Monte-Carlo errors."""
    stored = stored_counts(figure)
    for panel in panels(figure):
        for method, share in panel.published.items():
            points = [
                (a, q, *stored[name])
                for a, n, q in zip(panel.axis, panel.sizes, share)
                if (name := f"{panel.key}/{method}/{n}") in stored
            ]
            if not points:
                continue
            at, published, hits, runs = np.array(points, dtype=float).T
            low, high = interval(hits, runs)
            plow, phigh = interval(np.rint(44 * published), np.full(published.size, 44.0))
            below, above = at[high < plow], at[low > phigh]
            print(
                f"{figure} {panel.title:<12} {method:<14} {len(points):>2} points; mean share {np.mean(hits / runs):.2f} "
                f"(published {published.mean():.2f}); higher at {fmt(above)}; lower at {fmt(below)}"
            )


def fmt(values: np.ndarray) -> str:
    """Numbers in a row, or none."""
    return ", ".join(f"{value:g}" for value in values) or "none"


def main() -> None:
    """Run and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", nargs="+", choices=("fig4", "fig5", "fig6", "fig7"))
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--every", type=int, default=1, help="run every so many-th point only")
    parser.add_argument("--early", type=int, help="points to run before each published transition")
    parser.add_argument("--draw", action="store_true", help="draw what is in the store, run nothing")
    options = parser.parse_args()
    for figure in options.figures:
        if not options.draw:
            with threadpool_limits(1):
                for method in options.methods.split(","):
                    for panel in panels(figure):
                        if method in panel.published:
                            sizes = [int(n) for n in panel.sizes[panel.window(method, options.early)[:: options.every]]]
                            recovery_curve(panel.setup, method, sizes, options.trials, store_of(figure), panel.key)
        print(f"written to {draw(figure)}")
        verdict(figure)


if __name__ == "__main__":
    main()

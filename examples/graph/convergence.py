"""Convergence of GraphStoIHT against the size of its blocks and its step: the experiment of the paper's Figure 2.

    python examples/graph/convergence.py [--trials 10]

In: nothing. Out: figures/fig2.png, and a table: epochs until the error |w - w*| is 1e-6. The setting is the published
one: a 16 x 16 grid, w* of N(0, 1) on a random walk of 8 nodes, 180 samples of N(0, 1) / sqrt(180), no noise. The arrays
of the published figure aren't available, so these are our own curves only: medians over trials, every block drawn with
replacement, no stop and no polishing at fixed points, so that what is seen is the iteration itself. Steps are in units of
2 / L, L the smoothness of a block's loss on the current support: 1 is the limit up to which a full gradient is stable.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from problems import random_walk
from threadpoolctl import threadpool_limits

from spdsl.solvers.iht.engine import Settings, begin, epoch
from spdsl.solvers.iht.graph import grid
from spdsl.solvers.iht.objective import least_squares
from spdsl.solvers.iht.support_sets import ConnectedSet

HERE = Path(__file__).resolve().parent
SIDE, S, N = 16, 8, 180
BLOCKS = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 180)
STEPS = tuple(round(0.1 * k, 1) for k in range(1, 17))
EPOCHS = {"blocks": 25, "steps": 60}
FLOOR = 1e-12


def errors(batch: int, step: float, epochs: int, trial: int) -> np.ndarray:
    """|w - w*| after 0, 1, ... epochs (epochs + 1,)."""
    rng = np.random.default_rng([trial, 2])
    graph = grid(SIDE, SIDE)
    w = np.zeros(SIDE * SIDE)
    w[random_walk(graph, S, rng, start=SIDE * (SIDE // 2) + SIDE // 2)] = rng.standard_normal(S)
    X = rng.standard_normal((N, w.size)) / np.sqrt(N)
    objective, supports = least_squares(X, X @ w), ConnectedSet(graph, S)
    settings = Settings("sto_iht", 2.0 * step, batch=batch, fixed_point=0, patience=0, pursuit=0, limit=1e6, seed=trial)
    at, found = begin(objective), [float(np.linalg.norm(w))]
    for _ in range(epochs):
        if not at.diverged:
            at = epoch(objective, supports, settings, at)
        found.append(np.inf if at.diverged else float(np.linalg.norm(at.x - w)))
    return np.array(found)


def curves(kind: str, trials: int) -> dict[float, np.ndarray]:
    """The median error by epoch for each size of the blocks, or for each step (blocks of 36)."""
    cases = {b: (b, 0.5) for b in BLOCKS} if kind == "blocks" else {step: (N // 5, step) for step in STEPS}
    return {
        case: np.median([errors(*setting, EPOCHS[kind], trial) for trial in range(trials)], axis=0)
        for case, setting in cases.items()
    }


def draw(found: dict[str, dict[float, np.ndarray]], trials: int) -> Path:
    """Both panels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8))
    titles = {"blocks": "blocks of b samples, step 0.5", "steps": f"steps, blocks of {N // 5} samples"}
    for ax, (kind, by_case) in zip(axes, found.items()):
        shades = plt.get_cmap("viridis")(np.linspace(0, 0.95, len(by_case)))
        for shade, (case, values) in zip(shades, by_case.items()):
            shown = np.where(np.isfinite(values), np.maximum(values, FLOOR), np.nan)
            ax.semilogy(shown, color=shade, lw=1.1, label=f"b = {case}" if kind == "blocks" else f"{case:g}")
        ax.set_title(titles[kind], fontsize=10)
        ax.set_xlabel("epochs")
        ax.set_ylim(FLOOR / 2, 1e2)
        ax.grid(alpha=0.2)
        ax.legend(fontsize=6.5, ncols=2, frameon=False)
    axes[0].set_ylabel("|w - w*|")
    figure.suptitle(
        f"GraphStoIHT, 16 x 16 grid, {S} non-zeros, {N} measurements; medians of {trials} trials", fontsize=9
    )
    figure.tight_layout()
    path = HERE / "figures" / "fig2.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def main() -> None:
    """Run, draw, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    with threadpool_limits(1):
        found = {kind: curves(kind, options.trials) for kind in ("blocks", "steps")}
    for kind, by_case in found.items():
        print(f"{kind}: epochs until |w - w*| <= 1e-6")
        for case, values in by_case.items():
            reached = np.flatnonzero(values <= 1e-6)
            print(f"  {case:>5g}  {reached[0] if reached.size else 'not in ' + str(EPOCHS[kind])}")
    print(f"written to {draw(found, options.trials)}")


if __name__ == "__main__":
    main()

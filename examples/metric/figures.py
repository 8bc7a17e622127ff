"""Three pictures of MDML: the spectrum of M as rho grows, the learned map in two dimensions, the regret of the
online run.

    python examples/metric/figures.py [--out examples/metric/out]

In: scikit-learn's digits and wine. Out: spectrum.png, map.png, regret.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import spdsl
from spdsl.sklearn import MDMLSupervised
from spdsl.sklearn.constraints import neighbor_pairs
from spdsl.solvers.comid.divergences import Penalty, divergence_named
from spdsl.solvers.comid.engine import Settings, advance, begin, pairs_of
from spdsl.solvers.comid.losses import LOSSES


def spectrum(path: Path) -> None:
    """Eigenvalues of M on the digits for several rho: the trace norm empties the spectrum from the right."""
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for rho in (0.001, 0.01, 0.03, 0.1):
        metric = MDMLSupervised(rho=rho, step=1.0, random_state=0).fit(X, y)
        values = np.sum(metric.components_**2, axis=1) * metric.scale_**2
        axes.semilogy(
            np.arange(1, metric.rank_ + 1), values[: metric.rank_], ".-", label=f"rho = {rho:g}: rank {metric.rank_}"
        )
    axes.set(
        xlabel="eigenvalue of M, from the largest", ylabel="value", title="Digits: the trace norm selects features"
    )
    axes.legend(loc="upper right")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def learned_map(path: Path) -> None:
    """Wine in two dimensions: standardized and projected on the two widest directions, and under the learned metric."""
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    plain = X @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2].T
    learned = MDMLSupervised(n_components=2, step=1.0, rho=0.01, random_state=0).fit(X, y).transform(X)
    for ax, points, title in zip(
        axes, (plain, learned), ("two principal components", "two components of the learned metric")
    ):
        for value in np.unique(y):
            ax.scatter(*points[y == value].T, s=14, label=f"class {value}")
        ax.set(title=f"Wine: {title}", xticks=[], yticks=[])
        ax.set_aspect("equal", adjustable="datalim")  # distances are what a metric is about
    axes[1].legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def regret(path: Path) -> None:
    """Mean of the losses met online minus the best fixed (M, mu) in hindsight (polished), for three divergences."""
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :6]
    index, labels = neighbor_pairs(X, y, 3)
    U = X[index[:, 0]] - X[index[:, 1]]
    U /= np.median(np.linalg.norm(U, axis=1))
    rho, T, passes = 0.05, len(labels), 30
    model = spdsl.load(Path(__file__).parent.parent / "metric.spl")
    polished = {"divergence": "squared_frobenius", "step": 0.3, "polish": True, "tolerance": 1e-6}
    fixed = model.solve(U=U, V=np.zeros_like(U), y=labels, rho=rho, options=polished)
    best = fixed.objective
    print(f"best metric in hindsight: {best:.6f} ({fixed.status.name.lower()})")
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(T) for _ in range(passes)])
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    steps = np.arange(1, len(order) + 1)
    for name, step in (("squared_frobenius", 0.3), ("von_neumann", 0.3), ("burg", 0.1)):
        settings = Settings(divergence_named(name), Penalty(trace=rho), step=step)
        _, trace = advance(begin(6, settings), settings, pairs_of(U, labels, LOSSES["hinge"]), order, want_traces=True)
        met = np.maximum(1 - trace.margins, 0) + rho * trace.traces
        axes.loglog(steps[20:], (np.cumsum(met) / steps - best)[20:], label=f"{name}, step {step:g}")
    axes.loglog(steps[20:], 2.0 / np.sqrt(steps[20:]), "k:", label="2 / sqrt(t)")
    axes.set(xlabel="t", ylabel="regret / t", title="Online loss above the best metric in hindsight")
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Draw all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for draw, name in ((spectrum, "spectrum"), (learned_map, "map"), (regret, "regret")):
        draw(out / f"{name}.png")
        print(out / f"{name}.png")


if __name__ == "__main__":
    main()

"""Recovery experiments: the share of trials in which a planted signal is found, by method and number of measurements.

In: a signal (or a rule that draws one), a graph, methods, numbers of measurements, trials. Out: counts, kept in an NPZ
file after every point, so that an interrupted run goes on where it was. Success is |w - w*| <= 1e-6, as published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spdsl.solvers.iht.engine import Settings, best_point, run
from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.objective import least_squares
from spdsl.solvers.iht.support_sets import ConnectedSet, PublishedConnectedSet, SparseSet, SupportSet

__all__ = ["METHODS", "Setup", "recovery_curve", "solve", "trial_signal"]

# The back ends' defaults (steps in units of 1 / L here, of 2 / L in a model).
METHODS: dict[str, Settings] = {
    "niht": Settings("niht", patience=200),
    "iht": Settings("iht", step=1.4, patience=200),
    "sto-iht": Settings("sto_iht", step=2.0, starts=20),
    "cosamp": Settings("cosamp", patience=30),
    "graph-iht": Settings("iht", step=1.4, patience=200),
    "graph-cosamp": Settings("cosamp", patience=30),
    "graph-sto-iht": Settings("sto_iht", step=2.0, starts=20),
}
EPOCHS = 2000


@dataclass(frozen=True)
class Setup:
    """A graph and a way to draw the signal of a trial."""

    graph: Graph
    components: int
    draw: Callable[[np.random.Generator], np.ndarray]


def trial_signal(setup: Setup, n: int, trial: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X of N(0, 1) / sqrt(n), y = X w and w of a trial; the same for every method."""
    rng = np.random.default_rng([n, trial])
    w = setup.draw(rng)
    X = rng.standard_normal((n, w.size)) / np.sqrt(n)
    return X, X @ w, w


def solve(
    method: str, setup: Setup, X: np.ndarray, y: np.ndarray, s: int, trial: int, settings: Settings | None = None
) -> np.ndarray:
    """The answer of a method with the default configuration (or with other settings)."""
    chosen = settings or METHODS[method]
    supports: SupportSet
    if not method.startswith("graph-"):
        supports = SparseSet(X.shape[1], s)
    elif chosen.head > 0.0:
        supports = PublishedConnectedSet(setup.graph, s, setup.components)
    else:
        supports = ConnectedSet(setup.graph, s, setup.components)
    seeded = Settings(**{**vars(chosen), "seed": trial})
    return best_point(run(least_squares(X, y), supports, seeded, EPOCHS))[0]


def recovery_curve(
    setup: Setup,
    method: str,
    sizes: Sequence[int],
    trials: int,
    store: Path,
    key: str,
) -> np.ndarray:
    """Successes and trials for each number of measurements (k, 2), from the store or computed.

    A point whose first half of the trials all agree is left at that: the interval of its probability is short enough.
    """
    kept = dict(np.load(store)) if store.exists() else {}
    for n in sizes:
        name = f"{key}/{method}/{n}"
        if name in kept and kept[name][1] >= (trials + 1) // 2:
            continue
        found = np.zeros(2, dtype=np.int64)
        for trial in range(trials):
            X, y, w = trial_signal(setup, n, trial)
            answer = solve(method, setup, X, y, int(np.count_nonzero(w)), trial)
            found += (int(np.linalg.norm(answer - w) <= 1e-6), 1)
            if found[1] >= (trials + 1) // 2 and found[0] in (0, found[1]):
                break
        kept[name] = found
        store.parent.mkdir(exist_ok=True)
        np.savez(store, **kept)
        print(f"{key} {method} n = {n}: {found[0]} of {found[1]}", flush=True)
    return np.array([kept[f"{key}/{method}/{n}"] for n in sizes])

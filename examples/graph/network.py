"""Genes in a protein network: signals planted on real pathways, found by graph-sparse and by plain sparse regression.

    python examples/graph/network.py [--repeats 10] [--jobs 2] [--expression FILE.npz]

In: the network of 3,243 genes and its 637 pathways (SPDSL_DATA). The breast-cancer expression matrix of the paper can't be
had, so signals are planted: the support is a connected piece of a pathway, features are correlated along the network,
labels follow a logistic model with about a quarter of positives, 295 samples as in the paper. Every method chooses its size
by 5-fold balanced error. Out: AUC on fresh samples, share of the pathway's genes found, share of the found ones that are
right, non-zeros. With `--expression` (arrays `X` (samples, genes), `y`, `entrez`) the real matrix is used in their place.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from problems import needed
from threadpoolctl import threadpool_limits

from spdsl.solvers.iht.engine import Settings, best_point, run
from spdsl.solvers.iht.graph import Graph
from spdsl.solvers.iht.objective import logistic
from spdsl.solvers.iht.restricted import restricted_optimum
from spdsl.solvers.iht.support_sets import ConnectedSet, SparseSet, SupportSet

SIZES = (10, 20, 30, 45)
RIDGE = 1e-2
SAMPLES, FRESH = 295, 2000


@dataclass(frozen=True)
class Task:
    """Training and test samples; `genes` is the planted support, None for real data."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    genes: np.ndarray | None


Fit = Callable[[Task, Sequence[int]], list[np.ndarray]]  # weights, the intercept last, at each size


def network() -> tuple[Graph, np.ndarray, np.ndarray]:
    """The graph, the genes' Entrez ids, and (pathway, Entrez id) pairs."""
    stored = needed("breast_cancer_graph.npz")
    graph = Graph.from_edges(stored["edges"], len(stored["gene_entrez"]), stored["costs"])
    return graph, stored["gene_entrez"], stored["pathways"]


def pathway_supports(graph: Graph, entrez: np.ndarray, pathways: np.ndarray, low: int, high: int) -> list[np.ndarray]:
    """The largest connected piece of each pathway, where it has `low` to `high` genes."""
    place = {int(gene): i for i, gene in enumerate(entrez)}
    supports = []
    for pathway in np.unique(pathways[:, 0]):
        genes = [place[int(g)] for g in pathways[pathways[:, 0] == pathway, 1] if int(g) in place]
        pieces = graph.components_of(np.array(genes, dtype=np.int64))
        if pieces and low <= pieces[0].size <= high:
            supports.append(pieces[0])
    return supports


def planted(graph: Graph, support: np.ndarray, rng: np.random.Generator) -> Task:
    """Samples whose features have a third of their variance from a mean over themselves and their neighbours; labels."""
    from scipy import sparse

    n = SAMPLES + FRESH
    ones = np.ones(graph.neighbours.size)
    around = sparse.csr_array((ones, graph.neighbours, graph.indptr), shape=(graph.p, graph.p)) + sparse.eye_array(
        graph.p
    )
    shared = (around @ rng.standard_normal((graph.p, n))).T / np.sqrt(np.diff(graph.indptr) + 1.0)
    X = rng.standard_normal((n, graph.p)) + 0.7 * shared
    X = (X - X[:SAMPLES].mean(axis=0)) / X[:SAMPLES].std(axis=0)
    w = np.zeros(graph.p)
    w[support] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.0, support.size)
    score = X @ w
    score *= 3.0 / score.std()
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-(score - np.quantile(score, 0.74)))), 1.0, -1.0)
    return Task(X[:SAMPLES], y[:SAMPLES], X[SAMPLES:], y[SAMPLES:], support)


def expression(path: Path, entrez: np.ndarray, rng: np.random.Generator) -> Task:
    """The real matrix, columns put in the network's order, standardized, a fifth of the samples held out."""
    stored = np.load(path)
    place = {int(gene): i for i, gene in enumerate(stored["entrez"])}
    missing = [int(gene) for gene in entrez if int(gene) not in place]
    if missing:
        raise SystemExit(f"{path} lacks {len(missing)} genes of the network, among them Entrez {missing[:5]}")
    X = stored["X"][:, [place[int(gene)] for gene in entrez]].astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.where(stored["y"] > 0, 1.0, -1.0)
    order = rng.permutation(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    return Task(X[train], y[train], X[test], y[test], None)


def hard_threshold(method: str, sets: Callable[[int], SupportSet]) -> Fit:
    """A method of this package as a function of samples and sizes, with the intercept last."""
    settings = Settings("sto_iht", step=2.0, patience=10) if method == "sto_iht" else Settings("iht", 1.4, patience=50)

    def fit(task: Task, sizes: Sequence[int]) -> list[np.ndarray]:
        objective = logistic(task.X, task.y, weights="balanced", l2=RIDGE)
        points = (best_point(run(objective, sets(size), settings, 60)) for size in sizes)
        return [restricted_optimum(objective, x, objective.active(support)) for x, support in points]

    return fit


def lasso(task: Task, sizes: Sequence[int]) -> list[np.ndarray]:
    """L1-logistic regression: for each size the strongest penalty that leaves at least so many non-zeros."""
    from sklearn.linear_model import LogisticRegression

    best = np.zeros(task.X.shape[1] + 1)
    found: list[np.ndarray] = []
    for strength in np.geomspace(0.003, 1.0, 25):
        model = LogisticRegression(
            C=strength, l1_ratio=1.0, solver="liblinear", class_weight="balanced", intercept_scaling=10.0, tol=1e-3
        )
        model.fit(task.X, task.y)
        best = np.append(model.coef_[0], model.intercept_)
        while len(found) < len(sizes) and np.count_nonzero(best[:-1]) >= sizes[len(found)]:
            found.append(best)
        if len(found) == len(sizes):
            break
    return found + [best] * (len(sizes) - len(found))


def abess(task: Task, sizes: Sequence[int]) -> list[np.ndarray]:
    """Best-subset selection by abess."""
    from abess import LogisticRegression

    weights = np.where(task.y > 0, 0.5 / (task.y > 0).mean(), 0.5 / (task.y < 0).mean())
    found = []
    for size in sizes:
        model = LogisticRegression(support_size=size, alpha=RIDGE)
        model.fit(task.X, (task.y > 0).astype(int), sample_weight=weights)
        found.append(np.append(model.coef_, model.intercept_))
    return found


def methods(graph: Graph) -> dict[str, Fit]:
    """All methods; abess where it is installed."""
    found: dict[str, Fit] = {
        "graph_sto_iht": hard_threshold("sto_iht", lambda s: ConnectedSet(graph, s)),
        "graph_iht": hard_threshold("iht", lambda s: ConnectedSet(graph, s)),
        "sto_iht": hard_threshold("sto_iht", lambda s: SparseSet(graph.p, s)),
        "iht": hard_threshold("iht", lambda s: SparseSet(graph.p, s)),
        "l1": lasso,
    }
    try:
        import abess as _  # noqa: F401

        found["abess"] = abess
    except ImportError:
        pass
    return found


def balanced_error(y: np.ndarray, score: np.ndarray) -> float:
    """The mean of the two classes' error rates."""
    return float(np.mean([np.mean(score[y > 0] <= 0), np.mean(score[y < 0] > 0)]))


def auc(y: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, score))


def chosen_size(fit: Fit, task: Task, rng: np.random.Generator) -> int:
    """The size with the least balanced error over five folds."""
    fold = rng.permutation(np.arange(task.y.size) % 5)
    errors = np.zeros(len(SIZES))
    for k in range(5):
        train, held = fold != k, fold == k
        part = Task(task.X[train], task.y[train], task.X[held], task.y[held], None)
        for j, w in enumerate(fit(part, SIZES)):
            errors[j] += balanced_error(part.y_test, part.X_test @ w[:-1] + w[-1])
    return SIZES[int(np.argmin(errors))]


def figures(fit: Fit, task: Task, repeat: int) -> tuple[float, ...]:
    """A method's line for one repeat."""
    (w,) = fit(task, [chosen_size(fit, task, np.random.default_rng(repeat))])
    found = np.flatnonzero(w[:-1])
    right = np.nan if task.genes is None else float(np.isin(found, task.genes).sum())
    planted_size = np.nan if task.genes is None else task.genes.size
    score = task.X_test @ w[:-1] + w[-1]
    return (
        auc(task.y_test, score),
        balanced_error(task.y_test, score),
        right / planted_size,
        right / max(found.size, 1),
        found.size,
    )


def repeated(repeat: int, matrix: Path | None) -> dict[str, tuple[float, ...]]:
    """One repeat of all methods; made to run in a process of its own."""
    graph, entrez, pathways = network()
    rng = np.random.default_rng(repeat)
    if matrix:
        task = expression(matrix, entrez, rng)
    else:
        supports = pathway_supports(graph, entrez, pathways, 15, 40)
        task = planted(graph, supports[rng.integers(len(supports))], rng)
    with threadpool_limits(1):
        return {name: figures(fit, task, repeat) for name, fit in methods(graph).items()}


def main() -> None:
    """Run and print the table."""
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--expression", type=Path)
    options = parser.parse_args()
    graph, entrez, pathways = network()
    supports = pathway_supports(graph, entrez, pathways, 15, 40)
    print(
        f"{graph.p} genes, {len(graph.edges)} edges, {len(supports)} pathways with a connected piece of 15 to 40 genes"
    )
    if "abess" not in methods(graph):
        print("abess is not installed (pip install 'spdsl[peers]'): left out")
    results: dict[str, list[tuple[float, ...]]] = {}
    work = (delayed(repeated)(repeat, options.expression) for repeat in range(options.repeats))
    for repeat, lines in enumerate(Parallel(n_jobs=options.jobs, return_as="generator")(work)):
        for name, line in lines.items():
            results.setdefault(name, []).append(line)
        print(f"repeat {repeat + 1}: " + ", ".join(f"{name} {line[0]:.3f}" for name, line in lines.items()), flush=True)
    print(
        f"\n{'method':<15}{'AUC':>14}{'balanced error':>16}{'genes found':>13}{'of those right':>16}{'non-zeros':>11}"
    )
    for name, rows in results.items():
        mean = np.mean(rows, axis=0)
        spread = np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.full(5, np.nan)
        print(
            f"{name:<15}{mean[0]:>8.3f}±{spread[0]:.3f}{mean[1]:>16.3f}{mean[2]:>13.2f}{mean[3]:>16.2f}{mean[4]:>11.1f}"
        )


if __name__ == "__main__":
    main()

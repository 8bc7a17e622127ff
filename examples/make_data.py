"""Makes the data of the examples that are too large to ship: `python make_data.py` writes them to the folder `out`.

graph.npz, edges.csv   160 samples of 400 features on a 20 x 20 grid; the true coefficients are a connected piece of 40
online.svm             2,000 sparse samples of 5,000 features in LIBSVM's format, 30 of which matter
pairs.npz              1,200 pairs of irises: alike when of one species
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_iris

from spdsl.data import grid

OUT = Path(__file__).resolve().parent / "out"


def graph_samples(rng: np.random.Generator, side: int = 20, size: int = 40, m: int = 160) -> None:
    """y = X w with w on a connected piece of a grid, grown by a random walk."""
    graph = grid(side, side)
    neighbours: list[list[int]] = [[] for _ in range(side * side)]
    for u, v in graph.edges:
        neighbours[u].append(int(v))
        neighbours[v].append(int(u))
    piece = {side * side // 2 + side // 2}
    while len(piece) < size:
        border = sorted({n for node in piece for n in neighbours[node]} - piece)
        piece.add(border[rng.integers(len(border))])
    w = np.zeros(side * side)
    w[sorted(piece)] = rng.normal(size=size)
    X = rng.normal(size=(m, side * side))
    np.savez_compressed(OUT / "graph.npz", X=X, y=X @ w, w_true=w)
    rows = "\n".join(f"{u},{v},{cost:g}" for (u, v), cost in zip(graph.edges, graph.costs, strict=True))
    (OUT / "edges.csv").write_text(f"u,v,cost\n{rows}\n")


def online_samples(rng: np.random.Generator, n: int = 2_000, d: int = 5_000, relevant: int = 30) -> None:
    """Sparse rows of unit length; the label is the sign of a sparse linear score with 5% of noise."""
    X = scipy.sparse.random_array((n, d), density=0.004, rng=rng, data_sampler=rng.standard_normal).tocsr()
    marked = rng.choice(d, relevant, replace=False)
    hits = scipy.sparse.random_array((n, relevant), density=0.2, rng=rng, data_sampler=rng.standard_normal).tolil()
    X = X.tolil()
    X[:, marked] = hits
    X = X.tocsr()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = scipy.sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ X
    w = np.zeros(d)
    w[marked] = 3 * rng.normal(size=relevant)
    y = np.where(X @ w > 0, 1, -1)
    y[rng.random(n) < 0.05] *= -1
    dump_svmlight_file(X, y, str(OUT / "online.svm"), zero_based=False)


def iris_pairs(rng: np.random.Generator, count: int = 1_200) -> None:
    """Random pairs of irises, standardized, half of them of one species."""
    iris = load_iris()
    X = (iris.data - iris.data.mean(axis=0)) / iris.data.std(axis=0)
    same, other = [], []
    while len(same) < count // 2 or len(other) < count // 2:
        i, j = rng.choice(len(X), 2, replace=False)
        (same if iris.target[i] == iris.target[j] else other).append((i, j))
    pairs = np.array(same[: count // 2] + other[: count // 2])
    y = np.repeat([1.0, -1.0], count // 2)
    order = rng.permutation(count)
    np.savez_compressed(OUT / "pairs.npz", U=X[pairs[order, 0]], V=X[pairs[order, 1]], y=y[order])


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    graph_samples(rng)
    online_samples(rng)
    iris_pairs(rng)
    print(f"written to {OUT}: {', '.join(sorted(item.name for item in OUT.iterdir()))}")

"""Pairs from labeled points: near neighbours of the same and of other classes, or random pairs.

In: points (n, d) and classes (n,). Out: index pairs (T, 2) and labels (T,) of +1 (same class) and -1.
"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from spdsl.problem.functions import Array

__all__ = ["neighbor_pairs", "random_pairs"]


def neighbor_pairs(X: Array, classes: np.ndarray, k: int) -> tuple[np.ndarray, Array]:
    """Each point with its k nearest of the same class and of the other classes (fewer where there are fewer)."""
    indices: list[np.ndarray] = []
    labels: list[Array] = []
    for value in np.unique(classes):
        inside, outside = np.flatnonzero(classes == value), np.flatnonzero(classes != value)
        same = min(k, len(inside) - 1)
        if same > 0:
            near = NearestNeighbors(n_neighbors=same).fit(X[inside]).kneighbors(return_distance=False)
            indices.append(np.column_stack([np.repeat(inside, same), inside[near].ravel()]))
            labels.append(np.ones(len(indices[-1])))
        other = min(k, len(outside))
        if other > 0:
            near = NearestNeighbors(n_neighbors=other).fit(X[outside]).kneighbors(X[inside], return_distance=False)
            indices.append(np.column_stack([np.repeat(inside, other), outside[near].ravel()]))
            labels.append(-np.ones(len(indices[-1])))
    pairs, y = np.concatenate(indices), np.concatenate(labels)
    order = np.argsort(pairs[:, 0], kind="stable")  # by point, so that unshuffled passes mix the classes' pairs
    return pairs[order], y[order]


def random_pairs(classes: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, Array]:
    """`count` random pairs of one class and `count` of two, drawn with replacement."""
    n = len(classes)
    indices: list[np.ndarray] = []
    for same in (True, False):
        found = np.empty((0, 2), dtype=np.int64)
        for _ in range(1000):
            drawn = rng.integers(0, n, size=(2 * count, 2))
            fit = (classes[drawn[:, 0]] == classes[drawn[:, 1]]) == same
            fit &= drawn[:, 0] != drawn[:, 1]
            found = np.concatenate([found, drawn[fit]])
            if len(found) >= count:
                break
        indices.append(found[:count])
    y = np.concatenate([np.ones(len(indices[0])), -np.ones(len(indices[1]))])
    order = rng.permutation(len(y))
    return np.concatenate(indices)[order], y[order]

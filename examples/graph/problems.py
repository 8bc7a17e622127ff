"""The graphs, signals and vectors of the GraphStoIHT experiments, from the data folder or made up where it is missing.

In: the folder `graph` of the data (environment variable SPDSL_DATA). Out: graphs, planted signals, gradients and
noisy iterates for the bench, measurements for the figures.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spdsl.solvers.iht.graph import Graph, grid

IMAGES = {"background": 1, "angio": 1, "text": 4}  # name: number of components, as published
OWN = "spiral"  # an image that needs no data folder


def data_file(name: str) -> Path | None:
    """A file of the data folder's `graph`, None where it is missing."""
    folder = os.environ.get("SPDSL_DATA")
    path = Path(folder) / "graph" / name if folder else None
    return path if path is not None and path.exists() else None


def needed(name: str) -> Any:
    """The arrays of a file that an experiment can't do without."""
    path = data_file(name)
    if path is None:
        sys.exit(
            f"this experiment needs {name}: set SPDSL_DATA to the folder that holds graph/{name} "
            "(images, network and published curves of the repository baojianzhou/graph-sto-iht; see README.md here)"
        )
    return np.load(path, allow_pickle=False)


@dataclass(frozen=True)
class Image:
    """A 50 x 50 image as a signal."""

    name: str
    w: np.ndarray
    components: int

    @property
    def s(self) -> int:
        """Number of non-zeros."""
        return int(np.count_nonzero(self.w))


def image(name: str) -> Image:
    """One of the three images, or our own."""
    if name == OWN:
        return Image(name, spiral().ravel(), 1)
    return Image(name, np.asarray(needed("images.npz")[f"{name}_50"]).ravel(), IMAGES[name])


def spiral(side: int = 50) -> np.ndarray:
    """A stroke along a spiral (side, side), brighter towards its end."""
    row, column = np.mgrid[:side, :side] - (side - 1) / 2
    picture = np.zeros((side, side))
    for t in np.linspace(0.0, 1.0, 600):
        angle, radius = 2.0 + 8.5 * t, side * (0.04 + 0.3 * t)
        near = (row - radius * np.sin(angle)) ** 2 + (column - radius * np.cos(angle)) ** 2 < 1.2**2
        picture[near] = 0.3 + 0.7 * t
    return picture


def measurements(w: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X of N(0, 1) / sqrt(n) and y = X w, as published."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, w.size)) / np.sqrt(n)
    return X, X @ w


def random_walk(graph: Graph, s: int, rng: np.random.Generator, start: int | None = None) -> np.ndarray:
    """A connected support of s nodes: those that a random walk meets."""
    node = int(rng.integers(graph.p)) if start is None else start
    chosen = {node}
    while len(chosen) < s:
        node = int(rng.choice(graph.neighbours[graph.indptr[node] : graph.indptr[node + 1]]))
        chosen.add(node)
    return np.array(sorted(chosen))


def network() -> Graph:
    """The protein network (3,243 genes), or a random graph of its size and kind of degrees where the data are missing."""
    if data_file("breast_cancer_graph.npz") is not None:
        stored = needed("breast_cancer_graph.npz")
        return Graph.from_edges(stored["edges"], len(stored["gene_entrez"]), stored["costs"])
    rng = np.random.default_rng(0)
    weight = (1.0 + np.arange(3243)) ** -0.6
    ends = rng.choice(3243, size=(19_938, 2), p=weight / weight.sum())
    path = np.stack([np.arange(3242), np.arange(1, 3243)], axis=1)
    return Graph.from_edges(np.concatenate([ends, path]), 3243)


def planted(graph: Graph, s: int, rng: np.random.Generator) -> np.ndarray:
    """A signal of N(0, 1) on a random walk."""
    w = np.zeros(graph.p)
    w[random_walk(graph, s, rng)] = rng.standard_normal(s)
    return w


def bench_vectors(w: np.ndarray, s: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """What an inner loop projects: the first gradient of 2 s measurements, and an iterate with noise.

    Gaussian measurements give X'X w = w + |w| / sqrt(m) times noise of N(0, 1), entry by entry, to first order.
    """
    noise = rng.standard_normal(w.size)
    level = float(np.linalg.norm(w)) / np.sqrt(2 * s)
    return {"gradient": w + level * noise, "iterate": w + 0.3 * level * rng.standard_normal(w.size)}


def bench_signal(name: str) -> tuple[Graph, np.ndarray, int]:
    """Graph, signal and size of a line of the bench."""
    rng = np.random.default_rng(1)
    if name == "50x50":
        graph = grid(50, 50)
        stored = data_file("images.npz") is not None
        w = image("background").w if stored else planted(graph, 236, rng)
        return graph, w, int(np.count_nonzero(w))
    if name == "network":
        graph = network()
        return graph, planted(graph, 100, rng), 100
    side, s = {"100x100": (100, 100), "300x300": (300, 500), "16x16": (16, 8)}[name]
    graph = grid(side, side)
    return graph, planted(graph, s, rng), s

"""Time per projection, captured energy and its bound, cold and warm, against size-targeted bisection on pcst-fast2.

    python examples/graph/bench_graph.py [--quick] [--trials 5]

In: an image's and the network's gradients and noisy iterates (SPDSL_DATA; made up where it is missing), grids of 50 x 50
to 300 x 300. Out: a table in CPU milliseconds on one thread, the best of a few runs each: the project's three efforts
from scratch, near the last support, and the peer, whose energy is at its own size (s to 1.1 s nodes, or what it missed
that by). Then whole GraphStoIHT trials on Background at 2.0 measurements a non-zero. Exit code 1 when a support is not
admissible, when medium captures less than the peer at the same size, or when a trial takes over a second.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from problems import bench_signal, bench_vectors, image, measurements
from threadpoolctl import threadpool_limits

from spdsl.solvers.iht.engine import Settings, best_point, run
from spdsl.solvers.iht.graph import Graph, grid
from spdsl.solvers.iht.objective import least_squares
from spdsl.solvers.iht.projector import GraphProjector, project
from spdsl.solvers.iht.support_sets import ConnectedSet

EFFORTS = ("fast", "medium", "strong")
LINES = {
    "50x50": ("50x50", 1),
    "50x50 head": ("50x50", 2),
    "100x100": ("100x100", 1),
    "network": ("network", 1),
    "300x300": ("300x300", 1),
}


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out 300x300")
    parser.add_argument("--only", choices=tuple(LINES), help="one graph only")
    parser.add_argument("--trials", type=int, default=5, help="GraphStoIHT trials")
    options = parser.parse_args()
    if find_spec("pcst_fast") is None:
        raise SystemExit("the peer is not installed: pip install 'spdsl[peers]' (`make bench-graph` does)")
    with threadpool_limits(1):
        compile_all()
        wrong = projections(
            [options.only] if options.only else [n for n in LINES if not (options.quick and n == "300x300")]
        )
        wrong += trials(options.trials)
    for complaint in wrong:
        print(f"FAILED: {complaint}")
    return 1 if wrong else 0


def compile_all() -> None:
    """Compile the kernels, so that no time below holds it."""
    started = time.perf_counter()
    x = np.random.default_rng(0).standard_normal(400)
    for effort in EFFORTS:
        answer = project(x, grid(20, 20), 20, effort=effort)  # type: ignore[arg-type]
        GraphProjector(grid(20, 20), 20, effort=effort).near(x, answer.support)  # type: ignore[arg-type]
    _ = answer.bound
    print(f"kernels compiled or loaded in {time.perf_counter() - started:.1f} s\n")


def projections(names: list[str]) -> list[str]:
    """The table of projections; returns complaints."""
    wrong: list[str] = []
    print(
        "CPU ms a projection; energy relative to the peer's (=: at the peer's own size); bound relative to strong's energy"
    )
    head = f"{'graph':<11}{'vector':<10}{'s':>4}"
    for effort in EFFORTS:
        head += f"{effort:>8}{'energy':>8}{'=':>7}"
    print(f"{head}{'warm':>7}{'energy':>8}{'bound':>7}{'ms':>6}  peer: ms, nodes, forests")
    for name in names:
        source, factor = LINES[name]
        graph, w, s = bench_signal(source)
        size = factor * s
        rng = np.random.default_rng(2)
        for kind, x in bench_vectors(w, s, rng).items():
            wrong += line(name, kind, graph, x, size, rng)
    return wrong


def line(name: str, kind: str, graph: Graph, x: np.ndarray, s: int, rng: np.random.Generator) -> list[str]:
    """One line of the table."""
    wrong: list[str] = []
    prizes = (x / np.abs(x).max()) ** 2
    repeats = 3 if graph.p > 20_000 else 7
    peer_time, (peer, forests) = timed(lambda: peer_support(graph, prizes, s), 1)
    peer_energy = float(prizes[peer].sum())
    text = f"{name:<11}{kind:<10}{s:>4}"
    equal = 0.0
    for effort in EFFORTS:
        projector = GraphProjector(graph, s, effort=effort)  # type: ignore[arg-type]
        seconds, answer = timed(lambda p=projector: p(x), repeats)
        at_size = min(max(peer.size, 1), s + s // 5)
        equal = project(x, graph, at_size, effort=effort).scaled_energy / peer_energy  # type: ignore[arg-type]
        text += f"{seconds * 1e3:>8.2f}{answer.scaled_energy / peer_energy:>8.3f}{equal:>7.3f}"
        if answer.support.size != s or len(graph.components_of(answer.support)) != 1:
            wrong.append(f"{name} {kind} {effort}: the support is not {s} connected nodes")
        if effort == "medium" and equal < 0.995:
            wrong.append(f"{name} {kind}: medium captures {equal:.3f} of the peer's energy at the peer's size")
    moved = x + 0.02 * float(np.abs(x).max()) * rng.standard_normal(x.size)
    near = GraphProjector(graph, s, effort="fast")
    warm_time, warm = timed(lambda: near.near(moved, answer.support), repeats)
    cold = near(moved)
    warm_share = float(cold.prizes[warm].sum()) / cold.scaled_energy
    bound_time, bound = timed(lambda: near.bound(prizes), 1)
    text += f"{warm_time * 1e3:>7.2f}{warm_share:>8.3f}{bound / answer.scaled_energy:>7.3f}{bound_time * 1e3:>6.0f}"
    print(f"{text}  {peer_time * 1e3:.1f}, {peer.size}, {forests}", flush=True)
    if bound < answer.scaled_energy * (1 - 1e-9):
        wrong.append(f"{name} {kind}: the bound is below an energy that was reached")
    return wrong


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least CPU seconds of this thread over some runs after the first (over one, when it takes long), and a result."""
    started = time.thread_time()
    result = call()
    best = time.thread_time() - started
    if best > 2.0:
        return best, result
    best = np.inf
    for _ in range(repeats):
        started = time.thread_time()
        result = call()
        best = min(best, time.thread_time() - started)
    return best, result


def peer_support(graph: Graph, prizes: np.ndarray, s: int) -> tuple[np.ndarray, int]:
    """The published bisection for s to 1.1 s nodes, every forest grown by pcst-fast2 with strong pruning."""
    from pcst_fast import pcst_fast

    edges = graph.edges.astype(np.int64)
    most = int(1.1 * s)
    forests = 0

    def forest(scale: float) -> np.ndarray:
        nonlocal forests
        forests += 1
        return np.asarray(pcst_fast(edges, prizes, scale * graph.costs, -1, 1, "strong", 0)[0])

    low, high = 0.0, 2.0 * float(np.sort(prizes)[-most])
    sparse = forest(high)
    while sparse.size > most and forests < 50:
        low, high = high, 2.0 * high
        sparse = forest(high)
    if s <= sparse.size <= most:
        return sparse, forests
    while forests < 50:
        middle = 0.5 * (low + high)
        nodes = forest(middle)
        if s <= nodes.size <= most:
            return nodes, forests
        if nodes.size > most:
            low = middle
        else:
            high, sparse = middle, nodes
    return sparse, forests


def trials(count: int) -> list[str]:
    """Whole GraphStoIHT trials on Background 50 x 50 at m / s = 2.0 with the default configuration."""
    from problems import data_file

    if data_file("images.npz") is None:
        print("\nno whole trials: SPDSL_DATA has no graph/images.npz")
        return []
    picture = image("background")
    graph = grid(50, 50)
    seconds, recovered = [], 0
    for seed in range(count):
        X, y = measurements(picture.w, 2 * picture.s, seed)
        started = time.thread_time()
        objective = least_squares(X, y)
        answer = run(
            objective, ConnectedSet(graph, picture.s), Settings("sto_iht", step=2.0, starts=20, seed=seed), 2000
        )
        x, _ = best_point(answer)
        seconds.append(time.thread_time() - started)
        recovered += bool(np.linalg.norm(x - picture.w) <= 1e-6)
    middle = float(np.median(seconds))
    print(
        f"\nGraphStoIHT on Background at m/s = 2.0: {recovered} of {count} recovered, CPU s a trial: median {middle:.2f}, "
        f"{min(seconds):.2f} to {max(seconds):.2f}"
    )
    return [f"a trial takes {middle:.2f} s"] if middle > 1.0 else []


if __name__ == "__main__":
    sys.exit(main())

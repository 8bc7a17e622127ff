"""Time per COMID step against a full eigendecomposition, and the same M: d = 50, 200, 784 and rho = .1, .005 in
one run.

    python examples/metric/bench_metric.py [--step 1.0] [--quick] [--crossing]

In: synthetic pairs (ten Gaussian classes that differ in a tenth of the features, differences of median norm 1),
hinge loss. Out: a table in CPU milliseconds on one thread; exit code 1 when M differs by more than 1e-10 or a
ratio falls short. Each line times the reference over a window at the start and over one at the end of the run,
from the same M, and compares M after both. ``--crossing`` adds the hardest stretch, where hundreds of
eigenvalues reach 0 one after the other.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from spdsl.solvers.comid.divergences import Penalty, SquaredFrobenius
from spdsl.solvers.comid.engine import MetricState, PairSet, Settings, advance, begin, pairs_of
from spdsl.solvers.comid.losses import LOSSES
from spdsl.solvers.comid.naive import Full

WANTED = {(50, 0.1): 3.0, (200, 0.1): 20.0, (784, 0.1): 300.0}
STEPS = {50: 6000, 200: 6000, 784: 3000}
WINDOW = {50: 400, 200: 100, 784: 20}


@dataclass(frozen=True)
class Line:
    """One line of the table; times in seconds a step."""

    d: int
    rho: float
    fast: float
    naive: float
    difference: float
    rank: int
    gradients: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.naive / self.fast


def synthetic_pairs(d: int, T: int, seed: int = 0) -> PairSet:
    """Pairs of points from ten Gaussian classes whose centers differ in d/10 features; half of them of one class."""
    rng = np.random.default_rng(seed)
    informative = max(2, d // 10)
    centers = np.zeros((10, d))
    centers[:, :informative] = 2.0 * rng.normal(size=(10, informative))
    classes = rng.integers(0, 10, size=(T, 2))
    same = rng.random(T) < 0.5
    classes[same, 1] = classes[same, 0]
    U = centers[classes[:, 0]] - centers[classes[:, 1]] + np.sqrt(2.0) * rng.normal(size=(T, d))
    U /= np.median(np.linalg.norm(U, axis=1))
    return pairs_of(U, np.where(classes[:, 0] == classes[:, 1], 1.0, -1.0), LOSSES["hinge"])


def measure(d: int, rho: float, step: float, T: int, window: int) -> Line:
    """Run T steps fast; run the reference over the first and the last `window` of them from the same M."""
    pairs = synthetic_pairs(d, T)
    settings = Settings(SquaredFrobenius(), Penalty(trace=rho), step=step)
    advance(begin(d, settings), settings, pairs, np.arange(min(50, T)))  # compiles once
    early, fast_seconds = _timed(begin(d, settings), settings, pairs, np.arange(window))
    middle, more = _timed(early, settings, pairs, np.arange(window, T - window))
    late, last = _timed(middle, settings, pairs, np.arange(T - window, T))
    reference = replace(settings, reference=True)
    naive_early, naive_seconds = _timed(begin(d, reference), reference, pairs, np.arange(window))
    M = middle.representation.matrix()
    naive_late, naive_more = _timed(
        replace(middle, representation=Full(settings.divergence, M, M)), reference, pairs, np.arange(T - window, T)
    )
    difference = max(
        float(np.abs(one.representation.matrix() - two.representation.matrix()).max())
        for one, two in ((early, naive_early), (late, naive_late))
    )
    return Line(
        d=d,
        rho=rho,
        fast=(fast_seconds + more + last) / T,
        naive=(naive_seconds + naive_more) / (2 * window),
        difference=difference,
        rank=int(np.linalg.matrix_rank(late.representation.matrix(), hermitian=True)),
        gradients=late.gradients / T,
    )


def _timed(state: MetricState, settings: Settings, pairs: PairSet, order: np.ndarray) -> tuple[MetricState, float]:
    started = time.process_time()
    after, _ = advance(state, settings, pairs, order)
    return after, time.process_time() - started


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 0 when all holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=float, default=1.0, help="step length at t = 1")
    parser.add_argument("--quick", action="store_true", help="d = 50 and 200 only")
    parser.add_argument("--crossing", action="store_true", help="add d = 200 and 784 at step 0.1, through the collapse")
    options = parser.parse_args(arguments)
    print(f"COMID, squared Frobenius, hinge, trace norm; step {options.step:g}/sqrt(t); CPU ms a step, one thread")
    head = ("d", "rho", "steps", "fast", "full eigh", "ratio", "max |dM|", "rank", "grad")
    print(" ".join(f"{word:>{width}}" for word, width in zip(head, (5, 6, 6, 9, 10, 7, 9, 5, 5))))
    good = True
    with threadpool_limits(limits=1):
        for d in (50, 200) if options.quick else (50, 200, 784):
            for rho in (0.1, 0.005):
                line = measure(d, rho, options.step, STEPS[d], WINDOW[d])
                good &= _report(line, STEPS[d], WANTED.get((d, rho), 1.0))
        if options.crossing:
            for d in (200,) if options.quick else (200, 784):
                good &= _report(measure(d, 0.1, 0.1, 5000, WINDOW[d]), 5000, 1.0)
    return 0 if good else 1


def _report(line: Line, steps: int, wanted: float) -> bool:
    good = line.difference <= 1e-10 and line.ratio >= wanted
    print(
        f"{line.d:>5} {line.rho:>6g} {steps:>6} {1e3 * line.fast:>9.4f} {1e3 * line.naive:>10.3f} {line.ratio:>6.1f}x "
        f"{line.difference:>9.1e} {line.rank:>5} {line.gradients:>5.2f}"
        + ("" if good else f"   wanted {wanted:g}x, 1e-10"),
        flush=True,
    )
    return good


if __name__ == "__main__":
    sys.exit(main())

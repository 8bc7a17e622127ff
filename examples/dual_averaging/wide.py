"""Cost by the number of features, beside SGDClassifier's: 10^4 to 10^7 of them, and a run on 18 million.

In: nothing (``python wide.py``; ``--rows`` changes the size). Out: a table, and the peak memory of a whole
`Model.solve` on 18 million features with 13 nonzeros a row, data included.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from datasets import sparse_synthetic

import spdsl
from spdsl.data import bind
from spdsl.solvers.dual_averaging.linear import linear_model
from spdsl.solvers.dual_averaging.options import Options
from spdsl.solvers.dual_averaging.sampling import Sampler
from spdsl.solvers.dual_averaging.setting import make_setting

MODEL = spdsl.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "l1_hinge.spl"))
WIDTHS = (10_000, 100_000, 1_000_000, 10_000_000)


def whole_run(rows: int) -> None:
    """One pass by `Model.solve` over 18 million features, and what memory the process needed at most."""
    X, y = sparse_synthetic(rows, 18_000_000, 13)
    started = time.process_time()
    solution = MODEL.solve(X=X, y=y, rho=1e-5, options={"passes": 1, "gamma": 0.1, "looks": 2, "interpolate": None})
    spent = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux gives kilobytes
    print(
        f"18,000,000 features, {rows:,} rows of 13: objective {solution.objective:.6f}, stepping "
        f"{solution.statistics['stepping_seconds']:.2f} s of {spent:.1f} CPU s, peak memory {peak:.2f} GB"
    )


def cost_by_width(rows: int, repeats: int) -> dict[int, float]:
    """Nanoseconds a nonzero, the least of some passes, for rows of 72 nonzeros of Zipf-like and of uniform columns."""
    found = {}
    print(f"cost of a step ({rows:,} rows of 72 nonzeros):")
    for d in WIDTHS:
        X, y = sparse_synthetic(rows, d)
        found[d] = cost(X, y, repeats)
        rate = 1e3 * rows / (found[d] * X.nnz)
        peer = peer_cost(X, y, repeats)
        print(
            f"  {d:>10,} features: {found[d]:5.2f} ns a nonzero, {rate:.2f} M steps/s; SGDClassifier {peer:5.2f} ns, "
            f"ratio {peer / found[d]:.2f}",
            flush=True,
        )
    return found


def cost(X: Any, y: Any, repeats: int) -> float:
    """The least CPU time of a pass, by nonzero, in nanoseconds."""
    bound = bind(MODEL.problem, arrays={"X": X, "y": y}, parameters={"rho": 1e-5})
    engine = make_setting(linear_model(bound), Options()).engine(0.1)
    sampler = Sampler(len(y), "shuffle", 1)
    best = float("inf")
    for repeat in range(repeats + 1):
        drawn = sampler.rows(repeat * len(y), len(y))
        started = time.process_time()
        engine.advance(drawn)
        if repeat:  # the first pass touches memory for the first time
            best = min(best, (time.process_time() - started) / X.nnz * 1e9)
    return best


def peer_cost(X: Any, y: Any, repeats: int) -> float:
    """The same of scikit-learn's SGDClassifier, by `partial_fit`."""
    from sklearn.linear_model import SGDClassifier

    learner = SGDClassifier(loss="hinge", penalty="l1", alpha=1e-5, fit_intercept=False, random_state=1)
    best = float("inf")
    for repeat in range(repeats + 1):
        started = time.process_time()
        learner.partial_fit(X, y, classes=[-1.0, 1.0])
        if repeat:
            best = min(best, (time.process_time() - started) / X.nnz * 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of the set with 18 million features")
    parser.add_argument("--width-rows", type=int, default=30_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    whole_run(given.rows)  # first: its peak is the process's
    cost_by_width(given.width_rows, given.repeats)


if __name__ == "__main__":
    main()

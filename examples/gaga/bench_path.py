"""The exact age-path against alternate convex search over scikit-learn, on the sets of GAGA's Table 1.

One run, interleaved, medians of CPU time; kernels are compiled before the clock starts. Both sides solve to a KKT residual of
1e-6, relative to the largest sum of absolute values of the gradient's terms in one coordinate (the path is exact to 1e-10).

- path: from its start (alternate search at the lowest age) to its end, and 100 ages of it read off.
- ACS: at the same 100 ages, equally spaced, each from the one before; its first age starts at the path's own start. The
  w-problem by scikit-learn's Lasso (plain, and with `precompute`), LogisticRegression or SVC, with sample weights, warm
  started where it can be.

    make bench-path                                      # the regression sets, linear SP
    python examples/gaga/bench_path.py music cadata --sp linear mixture --repeats 3
    python examples/gaga/bench_path.py breast_cancer --loss logistic hinge

Sets are read from `$SPDSL_DATA/gaga` (see examples/gaga in the README); diabetes and breast_cancer come with scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np
from acs_sklearn import Search
from sklearn.datasets import load_breast_cancer, load_diabetes

import spdsl
from spdsl.compiler import suited
from spdsl.data import bind
from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions

REGRESSION = ("music", "cadata", "delta_elevators", "house_8L", "ailerons", "elevators")
SELF_PACED = {"linear": "linear(lambda)", "mixture": "mixture(lambda, 0.5)"}
LOSSES = {
    "squared": ("(X @ w - y)^2 / (2*n)", "alpha * norm1(w)"),
    "logistic": ("logistic(y * (X @ w)) / n", "alpha * sum_squares(w) / 2"),
    "hinge": ("hinge(y * (X @ w + b)) / n", "alpha * sum_squares(w) / 2"),
}
MODEL = """data
  X : matrix(n, d)
  y : {kind}(n)
parameter
  alpha = 0.01
variable
  w : vector(d)
{intercept}
age lambda in quantiles(0.2, 1)
minimize
  loss {loss}
  regularizer {regularizer}
  self_paced {self_paced}
"""


def data(name):
    """X standardized, y standardized or in {-1, 1}."""
    if name in ("diabetes", "breast_cancer"):
        X, y = (load_diabetes if name == "diabetes" else load_breast_cancer)(return_X_y=True)
    else:
        folder = os.environ.get("SPDSL_DATA")
        if not folder:
            raise SystemExit(f"SPDSL_DATA is not set: {name} is read from $SPDSL_DATA/gaga/{name}.npz")
        archive = np.load(Path(folder) / "gaga" / f"{name}.npz")
        X, y = archive["X"].astype(float), archive["y"].astype(float)
    spread = X.std(0)
    X = ((X - X.mean(0)) / np.where(spread > 0.0, spread, 1.0))[:, spread > 0.0]
    classes = np.unique(y)
    y = np.where(y == classes[1], 1.0, -1.0) if classes.size == 2 else (y - y.mean()) / y.std()
    return np.ascontiguousarray(X), y


def bound_model(loss, self_paced, X, y, alpha):
    formula, regularizer = LOSSES[loss]
    text = MODEL.format(
        kind="vector" if loss == "squared" else "labels",
        intercept="  b : scalar" if loss == "hinge" else "",
        loss=formula,
        regularizer=regularizer,
        self_paced=SELF_PACED.get(self_paced, self_paced),
    )
    return suited(bind(spdsl.parse(text).problem, arrays={"X": X, "y": y}, parameters={"alpha": alpha}))


def clocked(work):
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def compare(name, loss, self_paced, options):
    """One line of the table: medians over interleaved repeats."""
    X, y = data(name)
    bound = bound_model(loss, self_paced, X, y, options.alpha)
    compiling, path = clocked(lambda: run(PathFollowing(), bound, PathOptions(compiled="always")))
    ages = np.linspace(*path.age_range, options.ages)
    rivals = ["", "precompute"] if loss == "squared" else [""]
    ours, queries, theirs = [], [], {rival: [] for rival in rivals}
    for _ in range(options.repeats):
        seconds, path = clocked(lambda: run(PathFollowing(), bound, PathOptions(compiled="always")))
        ours.append(seconds)
        queries.append(clocked(lambda path=path: [path(age) for age in ages])[0])
        for rival in rivals:
            search = Search(X, y, loss, self_paced, options.alpha, rival == "precompute", options.budget)
            seconds, _ = clocked(lambda search=search, path=path: search.run(ages, path.nodes[0]))
            theirs[rival].append((seconds, search))
    facts = path.statistics
    mine, asked = median(ours), median(queries)
    print(
        f"{name} ({X.shape[0]} x {X.shape[1]}), {loss}, {self_paced}: {path.status.name}, with compiling {compiling:.2f} s"
    )
    print(
        f"  path {mine:8.3f} s   {options.ages} queries {asked:7.3f} s   nodes {facts['nodes']:.0f}, leaps {facts['leaps']:.0f}, "
        f"Newton {facts['newton_steps']:.0f}, rejections {facts['rejected_strides']:.0f}, events stopped at "
        f"{facts['turning_points'] + facts['jumps']:.0f}, jumps {facts['jumps']:.0f}, worst KKT {path.kkt_residuals.max():.0e}"
    )
    for rival, found in theirs.items():
        seconds = median(item[0] for item in found)
        last = found[-1][1]
        more = "" if last.done == options.ages else f" (stopped at {options.budget:g} s after {last.done} ages)"
        print(
            f"  ACS{' ' + rival if rival else '':<11} {seconds:8.3f} s   {last.rounds} rounds, KKT {last.worst:.0e}, "
            f"{last.stalled} ages stalled{more}, "
            f"ratio {seconds / mine:.2f} to the path, {seconds / (mine + asked):.2f} to the path with its queries",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(REGRESSION))
    parser.add_argument("--sp", nargs="+", choices=list(SELF_PACED), default=["linear"])
    parser.add_argument("--loss", nargs="+", choices=list(LOSSES), default=["squared"])
    parser.add_argument("--ages", type=int, default=100)
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=120.0, help="CPU seconds after which ACS is stopped")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        for loss in options.loss:
            for self_paced in options.sp:
                compare(name, loss, self_paced, options)


if __name__ == "__main__":
    main()

"""The exact age-path of a kernel SVM against alternate convex search over scikit-learn's SVC, at the same ages.

One run, interleaved, medians of CPU time. The path goes from its start (alternate search at the lowest age) to its end, and the
ages are read off it; alternate search solves them one after the other, from the path's own start, its w-problem by SVC on the
same precomputed kernel, until no weight moves by more than 1e-6 or 20 rounds bring no tenth of progress.

    python examples/gaga/bench_svm.py breast_cancer --samples 300
    python examples/gaga/bench_svm.py pendigits mfeat_pixel --sp linear mixture --noise 0.3
"""

from __future__ import annotations

import argparse
import time
import warnings
from statistics import median

import numpy as np
from acs_sklearn import weights
from bench_path import SELF_PACED, clocked
from experiment import load
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC

import spdsl
from spdsl.data import bind
from spdsl.solvers.driver import run
from spdsl.solvers.kernel_path import KernelPath
from spdsl.solvers.kernel_path.backend import KernelPathOptions

MODEL = """data
  X : matrix(n, d)
  y : labels(n)
parameter
  gamma = 0.5
variable
  f : rkhs(X, rbf(gamma))
  b : scalar
age lambda in quantiles(0.4, 1)
minimize
  loss hinge(y * (f(X) + b))
  regularizer norm(f)^2 / 2
  self_paced {self_paced}
"""


def data(name, samples, noise, seed=0):
    """Standardized samples, a share of their labels flipped."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        y = 2.0 * y - 1.0
    else:
        X, y = load(name)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(y))[: samples or None]
    X, y = X[chosen], np.where(y[chosen] > 0, 1.0, -1.0)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
    flipped = rng.permutation(len(y))[: round(noise * len(y))]
    y[flipped] *= -1.0
    return X, y


def refit(K, y, v, used):
    """All samples' losses after a fit by SVC; of one class alone, which SVC refuses, f = 0 and b = +-1 are the optimum."""
    if np.unique(y[used]).size < 2:
        return np.where(used.any() & (y == y[used][:1].sum()), 0.0, 2.0)
    model = SVC(kernel="precomputed", C=1.0, tol=1e-6, cache_size=1000)
    model.fit(K[np.ix_(used, used)], y[used], sample_weight=v[used])
    return np.maximum(1.0 - y * model.decision_function(K[:, used]), 0.0)


def search(K, y, ages, losses, self_paced, budget):
    """ACS over SVC: how many ages it finished, its rounds, and the largest last move of a weight."""
    began, rounds, worst, done = time.process_time(), 0, 0.0, 0
    for age in ages:
        v, best, idle = weights(losses, age, self_paced), np.inf, 0
        while True:
            if time.process_time() - began > budget:
                return done, rounds, worst
            used = v > 1e-12
            losses = refit(K, y, v, used)
            fresh = weights(losses, age, self_paced)
            move = float(np.abs(fresh - v).max())
            v, rounds = fresh, rounds + 1
            best, idle = (move, 0) if move < 0.9 * best else (best, idle + 1)
            if move <= 1e-6 or idle == 20:
                break
        worst, done = max(worst, move), done + 1
    return done, rounds, worst


def compare(name, self_paced, options):
    """One line of the table."""
    X, y = data(name, options.samples, options.noise)
    gamma = 0.5 / X.shape[1]
    text = MODEL.format(self_paced=SELF_PACED[self_paced])
    bound = bind(spdsl.parse(text).problem, arrays={"X": X, "y": y}, parameters={"gamma": gamma})
    K = bound.gram("f")
    ours, asked, theirs = [], [], []
    for _ in range(options.repeats + 1):  # the first compiles and imports
        seconds, path = clocked(lambda: run(KernelPath(), bound, KernelPathOptions(time_limit=options.limit)))
        ours.append(seconds)
        ages = np.linspace(*path.age_range, options.ages)
        asked.append(clocked(lambda path=path, ages=ages: [path(float(age)) for age in ages])[0])
        start = path(float(ages[0])).losses
        seconds, (done, rounds, worst) = clocked(
            lambda ages=ages, start=start: search(K, y, ages, start, self_paced, options.budget)
        )
        theirs.append(seconds)
    mine, queries, rival = median(ours[1:]), median(asked[1:]), median(theirs[1:])
    facts = path.statistics
    print(
        f"{name} ({X.shape[0]} x {X.shape[1]}), rbf, {self_paced}: {path.status.name}, path {mine:.2f} s, {options.ages} queries "
        f"{queries:.2f} s, turning points {facts['turning_points']:.0f}, jumps {facts['jumps']:.0f}, "
        f"worst KKT {path.worst_kkt_residual:.0e}\n"
        f"  ACS over SVC {rival:.2f} s, {done} of {options.ages} ages, {rounds} rounds, weights to {worst:.0e}: "
        f"ratio {rival / mine:.2f} to the path, {rival / (mine + queries):.2f} to the path with its queries",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["breast_cancer"])
    parser.add_argument("--sp", nargs="+", choices=list(SELF_PACED), default=["linear"])
    parser.add_argument("--samples", type=int, default=0, help="of a set; 0: all")
    parser.add_argument("--noise", type=float, default=0.2, help="share of labels flipped")
    parser.add_argument("--ages", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=300.0, help="CPU seconds after which ACS is stopped")
    parser.add_argument("--limit", type=float, default=600.0, help="wall-clock seconds after which the path is stopped")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        for self_paced in options.sp:
            compare(name, self_paced, options)


if __name__ == "__main__":
    main()

"""The path of hard weights, jump by jump, against alternate convex search over scikit-learn at the same jumps.

One run, interleaved, medians of CPU time; kernels are compiled before the clock starts. With hard weights every event is a jump
(or a sample that comes in without moving a coefficient) and the path is constant in between, so both sides are asked for the
partial optimum just beyond each event's age, each from the one before. ACS is given these ages, which it has no way to find
itself, and is stopped after `--budget` seconds; times are compared event by event. The w-problem of ACS is solved by
scikit-learn's Lasso (plain, and with `precompute`), LogisticRegression or SVC, warm started where it can be, to a KKT
residual of 1e-6; the path's is 1e-12.

    python examples/gaga/bench_hard.py                                       # the regression sets, Lasso
    python examples/gaga/bench_hard.py breast_cancer --loss logistic hinge

Sets are read from `$SPDSL_DATA/gaga` (see examples/gaga in the README); diabetes and breast_cancer come with scikit-learn.
"""

from __future__ import annotations

import argparse
import warnings
from statistics import median

import numpy as np
from acs_sklearn import Search
from bench_path import LOSSES, REGRESSION, SELF_PACED, bound_model, clocked, data

from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions

SELF_PACED = SELF_PACED | {"hard": "hard(lambda)"}


def compare(name, loss, options):
    """One line of the table: medians over interleaved repeats."""
    X, y = data(name)
    bound = bound_model(loss, SELF_PACED["hard"], X, y, options.alpha)
    run(PathFollowing(), bound, PathOptions(max_nodes=50))
    rivals = ["", "precompute"] if loss == "squared" else [""]
    ours, theirs = [], {rival: [] for rival in rivals}
    for _ in range(options.repeats):
        seconds, path = clocked(lambda: run(PathFollowing(), bound, PathOptions(max_nodes=options.jumps)))
        ages = np.array([point.age for point in path.critical_points]) * (1.0 + 1e-10)
        ours.append(seconds)
        for rival in rivals:
            search = Search(X, y, loss, "hard", options.alpha, rival == "precompute", options.budget)
            spent, fits = clocked(lambda search=search, path=path, ages=ages: search.run(ages, path.nodes[0]))
            theirs[rival].append((spent / max(search.done, 1), search, fits))
    facts, jumps = path.statistics, len(path.critical_points)
    each = median(ours) / max(jumps, 1)
    print(
        f"{name} ({X.shape[0]} x {X.shape[1]}), {loss}, hard: {path.status.name}, {jumps} events in {median(ours):.3f} s, "
        f"{1e3 * each:.3f} ms an event; {facts['pushes']:.0f} pushes, {facts['newton_steps']:.0f} chord steps, "
        f"{facts['solved_anew']:.0f} solved anew, worst KKT {path.kkt_residuals.max():.0e}"
    )
    for rival, found in theirs.items():
        spent = median(item[0] for item in found)
        search, fits = found[-1][1:]
        nodes = [path(float(age)).x for age in ages[: len(fits)]]
        same = sum(bool(np.abs(a - b).max() <= 1e-4 * max(np.abs(a).max(), 1e-300)) for a, b in zip(nodes, fits))
        print(
            f"  ACS{' ' + rival if rival else '':<11} {1e3 * spent:9.3f} ms an event, {search.rounds} rounds at "
            f"{search.done} events, {same} of them at the path's point: ratio {spent / each:.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(REGRESSION))
    parser.add_argument("--loss", nargs="+", choices=list(LOSSES), default=["squared"])
    parser.add_argument("--jumps", type=int, default=1_000_000, help="jumps after which the path is stopped")
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=20.0, help="CPU seconds after which ACS is stopped")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        for loss in options.loss:
            compare(name, loss, options)


if __name__ == "__main__":
    main()

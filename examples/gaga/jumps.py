"""The jumps of the self-paced Lasso's path, held against a brute-force reference of 4,000 small steps, set by set.

The reference shares no code with spdsl: alternate convex search to 1e-10 at 4,001 equally spaced ages, each from the one
before, the weighted Lasso by coordinate descent on the Gram matrix. A step of it counts as a jump when it is more than ten
times as long as both of its neighbours.

    python examples/gaga/jumps.py                                          # diabetes, from scikit-learn
    python examples/gaga/jumps.py diabetes music delta_elevators cadata house_8L elevators
    python examples/gaga/jumps.py diabetes --sp mixture
    python examples/gaga/jumps.py diabetes --steps 400                     # coarser, ten times sooner

The sets of GAGA's Table 1 are read from `$SPDSL_DATA/gaga`.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from pathlib import Path

import numba
import numpy as np
from bench_path import data

import spdsl

ALPHA, GAMMA = 0.01, 0.5


@numba.njit
def weighted_lasso(G, q, alpha, w):
    """min w'Gw/2 - q'w + alpha |w|_1 from w, by coordinate descent to rounding."""
    for _ in range(100_000):
        largest = 0.0
        for j in range(w.size):
            if G[j, j] <= 0.0:
                continue
            pull = q[j] - G[j] @ w + G[j, j] * w[j]
            new = np.sign(pull) * max(abs(pull) - alpha, 0.0) / G[j, j]
            largest = max(largest, abs(new - w[j]))
            w[j] = new
        if largest < 1e-14:
            break
    return w


def linear_weights(losses, age):
    """v* of v^2/2 - v, times the age."""
    return np.maximum(1.0 - losses / age, 0.0)


def mixture_weights(losses, age):
    """v* of the mixture SP-regularizer with gamma = 1/2."""
    middle = GAMMA * (1.0 / np.sqrt(np.maximum(losses, 1e-300)) - 1.0 / age)
    return np.where(losses <= (age * GAMMA / (age + GAMMA)) ** 2, 1.0, np.maximum(middle, 0.0))


WEIGHTS = {"linear": ("linear(lambda)", linear_weights), "mixture": (f"mixture(lambda, {GAMMA})", mixture_weights)}


def search(X, y, w, age, weights):
    """Alternate convex search from w."""
    n = len(y)
    for _ in range(200_000):
        v = weights((X @ w - y) ** 2 / (2 * n), age)
        new = weighted_lasso((X * v[:, None]).T @ X / n, X.T @ (v * y) / n, ALPHA, w.copy())
        moved = np.abs(new - w).max()
        w = new
        if moved < 1e-10:
            break
    return w


def compare(name: str, self_paced: str, steps: int) -> None:
    X, y = data(name)
    formula, weights = WEIGHTS[self_paced]
    text = (Path(__file__).resolve().parent.parent / "lasso.spl").read_text().replace("linear(lambda)", formula)
    path = spdsl.parse(text).solve(X=X, y=y, alpha=ALPHA)
    kinds = Counter(point.kind for point in path.critical_points)
    jumps = [point for point in path.critical_points if point.kind == "jump"]
    worst = path.kkt_residuals.max()
    print(f"{name}, {self_paced}: {kinds['turning']} turning points, {kinds['jump']} jumps, worst KKT {worst:.1e}")

    ages = np.linspace(*path.age_range, steps + 1)
    fits = [search(X, y, path(ages[0])["w"], ages[0], weights)]
    for age in ages[1:]:
        fits.append(search(X, y, fits[-1], age, weights))
    lengths = np.abs(np.diff(fits, axis=0)).max(axis=1)
    neighbours = np.maximum(np.r_[0.0, lengths[:-1]], np.r_[lengths[1:], 0.0])
    found = np.flatnonzero(lengths > 10 * neighbours + 1e-9)
    print(f"reference: {found.size} jumps in {steps} steps")
    print(f"{'reference between':>32}  {'length':>8}  {'path at':>12}  {'length':>8}  cause")
    for step in found:
        near = [jump for jump in jumps if ages[step] - 1e-12 <= jump.age <= ages[step + 1] + 1e-12]
        ours = f"{near[0].age:12.8f}  {near[0].change:8.5f}  {near[0].cause}" if near else "   none"
        print(f"{ages[step]:15.8f} {ages[step + 1]:16.8f}  {lengths[step]:8.5f}  {ours}")
    apart = [np.abs(path(age)["w"] - w).max() for age, w in zip(ages[::10], fits[::10])]
    print(f"path and reference apart over {len(apart)} ages: {max(apart):.1e} at most, median {np.median(apart):.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["diabetes"])
    parser.add_argument("--sp", choices=list(WEIGHTS), default="linear")
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        compare(name, options.sp, options.steps)


if __name__ == "__main__":
    main()

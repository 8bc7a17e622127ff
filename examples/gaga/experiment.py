"""What the GAGA experiments share: the sets of Table 1, poisoning and splits, the models, and the four methods.

In: the folder `$SPDSL_DATA/gaga` (its README says where the sets come from and how they differ from the paper's). Out: errors on
clean test samples and CPU seconds. Where the paper leaves a choice open, this is what is done:

- each run draws samples of a set (all of them, or `--samples`), 60% for training, 20% to choose the age, 20% for the test;
- columns and a regression's target are standardized by the training part; the error is the mean squared error in that unit;
- poison falls on the training part only: a regression's target is drawn anew from a normal distribution with the training
  targets' own mean and deviation, three deviations wide; a label is flipped;
- digits are even against odd, hiva_agnostic has two classes of its own;
- what the paper calls restarts are the jumps of the path.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import spdsl

REGRESSION = ("elevators", "ailerons", "music", "delta_elevators", "house_8L", "cadata")
CLASSIFICATION = ("mfeat_pixel", "pendigits", "hiva_agnostic_train")
METHODS = ("original", "acs", "mospl", "path")

LASSO = """
data
  X : matrix(n, d)
  y : vector(n)
parameter
  alpha = 5e-3
  kappa = 1
variable
  w : vector(d)
age lambda in quantiles(0.3, 1)
minimize
  loss         (X @ w - y)^2 / (2*n)
  regularizer  alpha * norm1(w)
  self_paced   {self_paced}
"""
SVM = """
data
  X : matrix(n, d)
  y : labels(n)
parameter
  C = 1
  gamma = 0.5
  kappa = 1
variable
  f : rkhs(X, rbf(gamma))
  b : scalar
age lambda in quantiles(0.4, 1)
minimize
  loss         C * hinge(y * (f(X) + b))
  regularizer  norm(f)^2 / 2
  self_paced   {self_paced}
"""
SELF_PACED = {"linear": "linear(lambda)", "mixture": "mixture(lambda, kappa)"}


@dataclass(frozen=True)
class Split:
    """One run's samples, standardized, the training part poisoned."""

    train: tuple[np.ndarray, np.ndarray]
    choose: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A set's features and targets; classes become -1 and 1."""
    folder = os.environ.get("SPDSL_DATA")
    file = Path(folder or ".") / "gaga" / f"{name}.npz"
    if folder is None or not file.exists():
        raise SystemExit(f"{file} is not there: set SPDSL_DATA to the folder that holds gaga/*.npz")
    stored = np.load(file)
    X, y = stored["X"].astype(float), stored["y"]
    if name in ("mfeat_pixel", "pendigits"):
        y = np.where(y.astype(int) % 2 == 0, 1.0, -1.0)
    return X, y.astype(float)


def draw(name: str, noise: float, samples: int, seed: int) -> Split:
    """One run's split."""
    X, y = load(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))[:samples] if samples else rng.permutation(len(y))
    cuts = int(0.6 * len(order)), int(0.8 * len(order))
    parts = np.split(order, cuts)
    train = parts[0]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    alive = np.flatnonzero(spread > 1e-12)
    _, first = np.unique(np.round((X[train] - mean)[:, alive] / spread[alive], 9), axis=1, return_index=True)
    columns = alive[np.sort(first)]  # copies of columns say nothing
    X = (X[:, columns] - mean[columns]) / spread[columns]
    poisoned = rng.permutation(len(train))[: round(noise * len(train))]
    target = y[train].copy()
    if name in REGRESSION:
        centre, unit = target.mean(), target.std()
        y, target = (y - centre) / unit, (target - centre) / unit
        target[poisoned] = 3.0 * rng.standard_normal(len(poisoned))
    else:
        target[poisoned] *= -1.0
    return Split((X[train], target), (X[parts[1]], y[parts[1]]), (X[parts[2]], y[parts[2]]))


def model(name: str, self_paced: str) -> spdsl.Model:
    """The Lasso for regression, the kernel SVM for classes."""
    return spdsl.parse((LASSO if name in REGRESSION else SVM).format(self_paced=SELF_PACED[self_paced]), name)


@dataclass(frozen=True)
class Outcome:
    """A method's error on the test samples (accuracy for classes), CPU seconds, jumps."""

    score: float
    seconds: float
    jumps: int = 0


def measure(
    method: str, split: Split, problem: spdsl.Model, parameters: dict, ages: int = 50, seed: int = 0
) -> Outcome:
    """Fit one method, choose its age on the samples kept for that, score it on the test samples."""
    X, y = split.train
    options = {"acs": {"ages": ages}, "mospl": {"population": 30, "generations": 20, "seed": seed}}.get(method, {})
    backend = None if method == "path" else method
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spdsl.SpdslWarning)
        began = time.process_time()
        result = problem.solve(X=X, y=y, backend=backend, options=options, parameters=parameters)
        if isinstance(result, spdsl.Path):
            jumps = len(result.jumps)
            result = best_node(result, split) if method in ("acs", "mospl") else chosen(result, split)
        else:
            jumps = 0
        seconds = time.process_time() - began
    return Outcome(score(result, split.test), seconds, jumps)


def chosen(path: spdsl.Path, split: Split) -> spdsl.Solution:
    """The solution at the age that does best on the samples kept for choosing, over the continuum."""
    X, y = split.choose
    return path.select(X=X, y=y, metric=metric(path)).solution


def best_node(path: spdsl.Path, split: Split) -> spdsl.Solution:
    """The best of the ages that were solved."""
    candidates = [path(age) for age in np.unique(path.ages)]
    sign = -1.0 if is_classifier(candidates[0]) else 1.0
    return min(candidates, key=lambda solution: sign * score(solution, split.choose))


def metric(path: spdsl.Path) -> str | None:
    """Wrong signs for classes, the mean loss otherwise."""
    return "error" if any(item.kind == "labels" for item in path.bound.problem.data) else None


def is_classifier(solution: spdsl.Solution) -> bool:
    """Does the model separate classes?"""
    return any(item.kind == "labels" for item in solution.bound.problem.data)


def score(solution: spdsl.Solution, part: tuple[np.ndarray, np.ndarray]) -> float:
    """Accuracy for classes, mean squared error otherwise."""
    X, y = part
    if not is_classifier(solution):
        return float(np.mean((X @ solution["w"] - y) ** 2))
    bound = solution.bound
    K = bound.gram("f", X)
    return float(np.mean(np.sign(K @ solution["f"] + solution["b"]) == y))

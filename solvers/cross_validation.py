"""Cross-validation of the age: one path a fold, the mean validation metric over the continuum of ages, the best of them.

In: a bound model with an interval of ages, a back end with its options, the number of folds. Out: `CrossValidation`: the best
age of the whole data's path, the curve with its standard errors, every minimum. Folds go through joblib, so that a
user's backend (processes, dask, ray) spreads them.

A loss such as (...)^2 / (2*n) grows when samples are left out, and the age with it. So an age of the whole data's path
stands, in a fold, for the age at which the same sample with the same fit would come in; and validation losses are told in
the whole data's units.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.problem import BoundProblem, Number
from spdsl.problem.functions import Array
from spdsl.solution import Path, Solution
from spdsl.solution.select import Metric, brackets, golden, named_metric, refuse_unknown, validate
from spdsl.solution.upstairs import upstairs
from spdsl.solvers.ages import entry_age, last_border
from spdsl.solvers.driver import run
from spdsl.solvers.features import resume
from spdsl.solvers.protocol import BackEnd
from spdsl.solvers.samples import on_samples

__all__ = ["CrossValidation", "cross_validate", "split"]

COARSE = 100
REFINED = 3  # minima of the coarse curve that are looked at more closely, the lowest first
IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The age that does best over the folds.

    Attributes
    ----------
    path : Path
        The path of the whole data.
    age, value : float
        Best age, and the mean of the metric over the folds there; lower is better.
    standard_error : float
        Of that mean, over the folds.
    age_within_one_standard_error : float
        The smallest age at which the mean is within one standard error of the best: the model that trusts the fewest
        samples and is, for all that the folds tell, as good.
    minima : array (m, 2)
        Age and mean of the minima, best first.
    ages, values, errors : arrays (k,)
        The curve: mean and standard error at every age looked at, ascending.
    fold_values : array (k, folds)
        The metric in every fold.
    in_share : float
        The share of all samples that are in at the best age.
    metric : str
        Its name.
    solution : Solution
        The whole data's solution at the best age.
    """

    path: Path = field(repr=False)
    age: float
    value: float
    standard_error: float
    age_within_one_standard_error: float
    minima: Array = field(repr=False)
    ages: Array = field(repr=False)
    fold_values: Array = field(repr=False)
    in_share: float
    metric: str
    solution: Solution = field(repr=False)

    @property
    def values(self) -> Array:
        """The mean over the folds at every age looked at."""
        return np.asarray(self.fold_values.mean(axis=1))

    @property
    def errors(self) -> Array:
        """The standard errors of these means."""
        return _standard_error(self.fold_values)

    def __getitem__(self, name: str) -> Any:
        return self.solution[name]

    def plot(self, file: str | PathLike[str] | None = None, **options: Any) -> Any:
        """Draw the curve with its minima; returns the matplotlib figure."""
        return upstairs("spdsl.view.plot", "plot_selection")(self, file, **options)


@dataclass(frozen=True)
class _Fold:
    """A fold: its path, its validation data, and what its losses are multiplied by against the whole data's."""

    path: Path
    validation: BoundProblem
    training_factor: float
    validation_factor: float


def cross_validate(
    bound: BoundProblem,
    backend: BackEnd[Any],
    options: Any,
    folds: int = 5,
    metric: Any = None,
    jobs: int = 1,
) -> CrossValidation:
    """Choose the age by k-fold cross-validation.

    Parameters
    ----------
    options
        The back end's checked options; folds are drawn by ``options.seed``, with the classes' shares kept where the
        model has labels.
    folds : int
        From 2 to the number of samples.
    metric : None, "median", "error" or callable
        As for `Path.select`.
    jobs : int
        As joblib's `n_jobs`: 1 stays in this process, -1 takes all cores.

    Raises
    ------
    UsageError
        For a model without a path, one that says nothing on other samples than its own, or a number of folds that does
        not fit.
    """
    from joblib import Parallel, delayed

    name, measure = named_metric(metric, bound)
    n = bound.n_samples
    if not 2 <= folds <= n:
        raise _refusal(f"folds are at least 2 and at most the number of samples ({n}), not {folds}")
    path = run(backend, bound, options)
    if not isinstance(path, Path):
        raise _refusal("it chooses an age, and this model has none to choose: write `age lambda in [a, b]`")
    refuse_unknown(path)
    parts = split(bound, folds, options.seed)
    made = Parallel(n_jobs=jobs)(delayed(_solved)(path, part, backend, options) for part in parts)
    done = [_Fold(replace(p, branch=resume(backend, p)), *rest) for p, *rest in made]
    return _chosen(path, done, name, measure)


def split(bound: BoundProblem, folds: int, seed: int) -> list[IntArray]:
    """Samples by fold, ascending: random, with each class spread evenly where the model has labels."""
    n = bound.n_samples
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    assert bound.problem.loss is not None
    for item in bound.problem.data:
        if item.kind == "labels" and item.dims == (bound.problem.loss.rows,):
            order = order[np.argsort(bound.data[item.name][order], kind="stable")]
    return [np.sort(order[k::folds]) for k in range(folds)]


def _solved(path: Path, part: IntArray, backend: BackEnd[Any], options: Any) -> tuple[Path, BoundProblem, float, float]:
    """A fold's path without its branch, so that it can come back from another process."""
    bound = path.bound
    rest = np.setdiff1d(np.arange(bound.n_samples), part)
    training, validation = on_samples(bound, rest), on_samples(bound, part)
    x = path.nodes[-1]
    inside = _factor(bound, training, rest, x)
    age = bound.problem.age
    assert age is not None
    low, high = (_age_in_fold(bound, value, inside) for value in path.age_range)
    problem = replace(bound.problem, age=replace(age, kind="interval", lower=Number(low), upper=Number(high)))
    import warnings

    from spdsl.diagnostics import SpdslWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpdslWarning)  # where a fold's interval lies among its losses is no news
        found = run(backend, replace(training, problem=problem), options)
    assert isinstance(found, Path)
    plain = replace(found, branch=None, stored_critical_points=found.critical_points)
    return plain, validation, inside, _factor(bound, validation, part, x)


def _factor(whole: BoundProblem, part: BoundProblem, rows: IntArray, x: Array) -> float:
    """What a part's losses are multiplied by against those of the same samples in the whole."""
    if part.layout.size != x.size:  # a function of an RKHS has one coefficient a training sample: take its zero
        x, here = np.zeros(x.size), np.zeros(part.layout.size)
    else:
        here = x
    before, after = whole.losses(x)[rows], part.losses(here)
    counted = before > 1e-12 * before.max(initial=0.0)
    return float(np.median(after[counted] / before[counted])) if counted.any() else 1.0


def _age_in_fold(bound: BoundProblem, age: float, factor: float) -> float:
    """The age at which a sample that comes in at `age` would, were all losses `factor` times as large."""
    if abs(factor - 1.0) <= 1e-12:
        return age
    border = last_border(bound, age)
    moved = age * factor if border is None else entry_age(bound, border * factor)
    return moved if 0.0 < moved < np.inf else age


# --- the curve -----------------------------------------------------------------------------------------------------


def _chosen(path: Path, folds: list[_Fold], name: str, measure: Metric) -> CrossValidation:
    def at(age: float) -> list[float]:
        return [_in_fold(path.bound, fold, measure, age) for fold in folds]

    found: dict[float, list[float]] = {age: at(age) for age in _coarse(path)}

    def mean(age: float) -> float:
        if age not in found:
            found[age] = at(age)
        return float(np.mean(found[age]))

    ages = np.array(sorted(found))
    values = np.array([mean(float(age)) for age in ages])
    wells = sorted(brackets(ages, values), key=lambda well: float(values[well[1]]))
    minima: list[tuple[float, float]] = []
    for count, (low, middle, high) in enumerate(wells):
        best = float(ages[middle]), float(values[middle])
        for a, b in ((low, middle), (middle, high)) if count < REFINED else ():
            if ages[b] > ages[a]:
                best = min(best, golden(mean, float(ages[a]), float(ages[b]), [], 1e-3), key=lambda pair: pair[1])
        minima.append(best)
    minima.sort(key=lambda pair: pair[1])
    age, value = minima[0]
    ages = np.array(sorted(found))
    table = np.array([found[float(item)] for item in ages])
    error = float(_standard_error(np.array([found[age]]))[0])
    within = float(ages[np.flatnonzero(table.mean(axis=1) <= value + error)[0]])
    solution = path(age)
    return CrossValidation(
        path, age, value, error, within, np.array(minima), ages, table, solution.in_share, name, solution
    )


def _coarse(path: Path) -> list[float]:
    """Ages spread evenly and over the whole data's nodes: these are dense where much happens."""
    low, high = path.age_range
    spread = np.geomspace(low, high, COARSE // 2) if low > 0 else np.linspace(low, high, COARSE // 2)
    nodes = path.ages[np.unique(np.linspace(0, len(path.ages) - 1, COARSE // 2).astype(int))]
    ages = {float(age) for age in np.concatenate([spread, nodes]) if low <= age <= high}
    return sorted(ages | {low, high})


def _in_fold(whole: BoundProblem, fold: _Fold, measure: Metric, age: float) -> float:
    low, high = fold.path.age_range
    here = min(max(_age_in_fold(whole, age, fold.training_factor), low), high)
    assert fold.path.branch is not None
    x, _ = fold.path.branch.at(here)
    return validate(measure, fold.path.bound, fold.validation, x, 1.0 / fold.validation_factor)


def _standard_error(values: Array) -> Array:
    """Of the mean over the last axis."""
    return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1]))


def _refusal(why: str) -> UsageError:
    return UsageError(Diagnostic("SPL707", f"cross-validation can't take this model: {why}"))

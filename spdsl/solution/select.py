"""Choosing the age by validation data, over the whole continuum of ages rather than a grid.

In: a `Path` and validation data bound to the same model. Out: a `Selection`: best age, all local minima, the curve.
Between two nodes the path is smooth, so a golden-section search finds the minimum next to each node that is lower than
its neighbours, and those between two nodes where the slope at the lower one tells of one; both sides of a jump are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from spdsl.diagnostics import DataError, Diagnostic, UsageError, nearest_name
from spdsl.problem import BoundProblem, Predictor
from spdsl.problem.functions import Array
from spdsl.solution.path import Path
from spdsl.solution.solution import Solution
from spdsl.solution.upstairs import upstairs

__all__ = [
    "METRICS",
    "Metric",
    "Selection",
    "Validation",
    "brackets",
    "golden",
    "named_metric",
    "refuse_unknown",
    "select_age",
    "validate",
]

GOLDEN = (5.0**0.5 - 1.0) / 2.0
FEWEST_POINTS = 64
MOST_PROBES = 400


@dataclass(frozen=True, eq=False)
class Validation:
    """The validation data under one solution: what a metric looks at.

    Attributes
    ----------
    losses : array (m,)
        l_i, one a validation sample.
    margins : tuple of arrays (m,)
        The loss's predictors z.
    data : BoundProblem
        The validation data.
    x : array (p,)
        The flat vector of variables.
    """

    losses: Array
    margins: tuple[Array, ...]
    data: BoundProblem
    x: Array


Metric = Callable[[Validation], float]

METRICS: dict[str, Metric] = {
    "mean": lambda found: float(np.mean(found.losses)),
    "median": lambda found: float(np.median(found.losses)),
    "error": lambda found: float(np.mean(found.margins[0] <= 0)),
}


@dataclass(frozen=True, eq=False)
class Selection:
    """The age that does best on validation data.

    Attributes
    ----------
    age : float
        Best age.
    value : float
        The metric there; lower is better.
    minima : array (k, 2)
        Age and value of every local minimum, best first.
    ages, values : arrays (m,)
        The curve: the metric at every age looked at, ascending by age.
    in_share : float
        Share of the training samples with a weight above zero at the best age.
    metric : str
        Its name.
    solution : Solution
        The training solution at the best age.
    """

    path: Path = field(repr=False)
    age: float
    value: float
    minima: Array = field(repr=False)
    ages: Array = field(repr=False)
    values: Array = field(repr=False)
    in_share: float
    metric: str
    solution: Solution = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.solution[name]

    def plot(self, file: str | PathLike[str] | None = None, **options: Any) -> Any:
        """Draw the curve with its minima; returns the matplotlib figure."""
        return upstairs("spdsl.view.plot", "plot_selection")(self, file, **options)


def select_age(path: Path, validation: BoundProblem, metric: Any = None) -> Selection:
    """See `Path.select`.

    Raises
    ------
    UsageError
        For an unknown metric, or a model that says nothing on samples that it was not fitted to.
    """
    refuse_unknown(path)
    name, measure = named_metric(metric, path.bound)

    def curve(age: float) -> float:
        return validate(measure, path.bound, validation, path(age).x)

    ages, values = _coarse_curve(path, validation, measure, curve)
    seen: list[tuple[float, float]] = list(zip(ages.tolist(), values.tolist()))
    minima: list[tuple[float, float]] = []
    for low, middle, high in brackets(ages, values):
        best = _reached(curve, ages, values, low, middle)
        for a, b in ((low, middle), (middle, high)):
            if ages[b] > ages[a]:
                found = golden(curve, float(ages[a]), float(ages[b]), seen)
                best = min(best, found, key=lambda pair: pair[1])
        minima.append(best)
    minima += [golden(curve, first, last, seen) for first, last in _hidden(curve, ages, values)]
    minima.sort(key=lambda pair: pair[1])
    seen.sort()
    age, value = minima[0]
    solution = path(age)
    return Selection(
        path=path,
        age=age,
        value=value,
        minima=np.array(minima, float),
        ages=np.array([pair[0] for pair in seen]),
        values=np.array([pair[1] for pair in seen]),
        in_share=solution.in_share,
        metric=name,
        solution=solution,
    )


def _coarse_curve(
    path: Path, validation: BoundProblem, measure: Metric, curve: Callable[[float], float]
) -> tuple[Array, Array]:
    """The metric at every node, every critical point and at least `FEWEST_POINTS` ages; jumps appear on both sides."""
    known = [
        (float(age), validate(measure, path.bound, validation, x)) for age, x in zip(path.ages, path.nodes, strict=True)
    ]
    at_nodes = {age for age, _ in known}
    low, high = path.age_range
    more = {point.age for point in path.critical_points} | set(_spread(low, high).tolist())
    known += [(age, curve(age)) for age in sorted(more - at_nodes) if low <= age <= high]
    known.sort(key=lambda pair: pair[0])  # stable: before a jump stays before after it
    return np.array([age for age, _ in known]), np.array([value for _, value in known])


def _hidden(curve: Callable[[float], float], ages: Array, values: Array) -> list[tuple[float, float]]:
    """Stretches between neighbours of the coarse curve that hold a minimum although the next one is lower still.

    The metric is smooth between two nodes; where it falls from one to the other, and yet rises just before the lower one,
    there is a minimum in between. Those beside a coarse minimum are found with it. Of more than `MOST_PROBES` stretches the
    longest, relative to their ages, are looked at.
    """
    found = []
    at_minimum = {k for low, middle, high in brackets(ages, values) for k in range(low, high + 1)}
    shares = np.diff(ages) / np.maximum(np.abs(ages[1:]), 1e-300)
    longest = np.sort(np.argsort(-shares, kind="stable")[:MOST_PROBES])
    for k in longest.tolist():
        width = float(ages[k + 1] - ages[k])
        if shares[k] <= 1e-9 or values[k] == values[k + 1] or {k, k + 1} <= at_minimum:
            continue
        lower = k + 1 if values[k + 1] < values[k] else k
        probe = float(ages[lower]) + (-1e-3 if lower == k + 1 else 1e-3) * width
        if curve(probe) < values[lower] - 1e-13 * abs(values[lower]):
            found.append((float(ages[k]), float(ages[k + 1])))
    return found


def _spread(low: float, high: float) -> Array:
    inner = np.geomspace(low, high, FEWEST_POINTS) if low > 0 else np.linspace(low, high, FEWEST_POINTS)
    return inner[1:-1]


def brackets(ages: Array, values: Array) -> list[tuple[int, int, int]]:
    """Each local minimum of the coarse curve with its neighbours; a plateau counts once."""
    found: list[tuple[int, int, int]] = []
    i, count = 0, len(values)
    while i < count:
        j = i
        while j + 1 < count and values[j + 1] == values[i]:
            j += 1
        falls = i == 0 or values[i - 1] > values[i]
        rises = j == count - 1 or values[j + 1] > values[j]
        if falls and rises:
            found.append((max(i - 1, 0), i, min(j + 1, count - 1)))
        i = j + 1
    return found


def _reached(curve: Callable[[float], float], ages: Array, values: Array, low: int, middle: int) -> tuple[float, float]:
    """Age and value of a coarse minimum; the last point before a jump is reached from below only, so just before it."""
    age, value = float(ages[middle]), float(values[middle])
    breaks = middle + 1 < len(ages) and ages[middle + 1] == ages[middle] and ages[low] < age
    if not breaks or values[middle + 1] <= value:
        return age, value
    before = age - 1e-9 * (age - float(ages[low]))
    return before, curve(before)


def golden(
    curve: Callable[[float], float], a: float, b: float, seen: list[tuple[float, float]], relative: float = 1e-6
) -> tuple[float, float]:
    """The lowest point seen by a golden-section search in the open interval (a, b)."""
    c, d = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    at_c, at_d = curve(c), curve(d)
    points = [(c, at_c), (d, at_d)]
    width = (b - a) * 1e-3 + relative * max(abs(a), abs(b))
    while b - a > width:
        if at_c <= at_d:
            b, d, at_d = d, c, at_c
            c = b - GOLDEN * (b - a)
            at_c = curve(c)
            points.append((c, at_c))
        else:
            a, c, at_c = c, d, at_d
            d = a + GOLDEN * (b - a)
            at_d = curve(d)
            points.append((d, at_d))
    seen += points
    return min(points, key=lambda pair: pair[1])


def validate(measure: Metric, trained: BoundProblem, validation: BoundProblem, x: Array, factor: float = 1.0) -> float:
    """The metric of a solution x of `trained` on validation data, its losses multiplied by a factor."""
    loss = trained.problem.loss
    assert loss is not None
    margins = tuple(_predict(trained, validation, predictor, x) for predictor in loss.predictors)
    losses = factor * validation.function_value(loss.function, margins)
    return float(measure(Validation(losses, margins, validation, x)))


def _predict(trained: BoundProblem, validation: BoundProblem, predictor: Predictor, x: Array) -> Array:
    """A predictor's rows for validation data; a function of an RKHS stays expanded at the training points."""
    m = validation.rows(predictor)
    total = np.zeros(m)
    if predictor.offset is not None:
        total = total + np.asarray(validation.evaluate(predictor.offset), float)
    for term in predictor.terms:
        part = x[trained.layout.slices[term.variable]]
        if term.kind == "kernel":
            assert term.matrix is not None
            scale = 1.0 if term.scale is None else np.asarray(validation.evaluate(term.scale), float)
            total = total + scale * (trained.gram(term.variable, validation.evaluate(term.matrix)) @ part)
        else:
            total = total + np.asarray(validation.block(term, m) @ part)
    return total


def named_metric(metric: Any, bound: BoundProblem) -> tuple[str, Metric]:
    """The metric's name and function.

    Raises
    ------
    UsageError
        For an unknown name, and for "error" where there are no labels.
    """
    if metric is None:
        return "mean", METRICS["mean"]
    if callable(metric):
        return getattr(metric, "__name__", "metric"), metric
    if metric not in METRICS:
        near = nearest_name(str(metric), METRICS)
        raise UsageError(
            Diagnostic(
                "SPL707",
                f"there is no metric called {metric!r}",
                help=((f"did you mean {near!r}?",) if near else ())
                + (f"the metrics are: {', '.join(METRICS)}, or a function of a Validation",),
            )
        )
    if metric == "error" and not any(item.kind == "labels" for item in bound.problem.data):
        raise UsageError(
            Diagnostic(
                "SPL707",
                "the metric 'error' counts wrong signs, and this model has no data of type labels",
                help=("use the validation loss: leave `metric` out",),
            )
        )
    return str(metric), METRICS[metric]


def refuse_unknown(path: Path) -> None:
    """Refuse a path that says nothing on samples that it was not fitted to.

    Raises
    ------
    UsageError
        When a variable has one entry a sample, when there is no loss, or when the data were not kept.
    """
    loss = path.bound.problem.loss
    if loss is None:
        raise UsageError(Diagnostic("SPL707", "this model has no loss, so validation data say nothing on its ages"))
    if not path.bound.data:
        raise UsageError(
            Diagnostic(
                "SPL702",
                "this path was loaded without its data, so its ages can't be compared",
                help=("save it again with `include_data=True`",),
            )
        )
    for variable in path.bound.problem.variables:
        if variable.kind != "rkhs" and loss.rows in variable.dims and not loss.rows.isdigit():
            raise UsageError(
                Diagnostic(
                    "SPL707",
                    f"variable `{variable.name}` has one entry a sample ({loss.rows} of them), so it says nothing on "
                    "samples that it was not fitted to",
                )
            )
    kernels = [term for predictor in loss.predictors for term in predictor.terms if term.kind == "kernel"]
    for term in kernels:
        name, _ = path.bound.kernel_options(term.variable)
        if name == "precomputed":
            raise DataError(
                Diagnostic(
                    "SPL707",
                    f"`{term.variable}` has a precomputed kernel, which is known at the training samples only",
                    help=("use a kernel that can be computed, such as rbf(gamma)",),
                )
            )

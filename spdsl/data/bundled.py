"""Small data sets that come with scikit-learn, as examples and demos use them; nothing is downloaded.

In: a name. Out: a `Sample` with arrays and column names, raw or standardized, that can be written as CSV.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError, nearest_name
from spdsl.problem.functions import Array

__all__ = ["BUNDLED", "Sample", "load_breast_cancer", "load_bundled", "load_diabetes", "load_diabetes_standardized"]


@dataclass(frozen=True)
class Sample:
    """A data set: X (n, d), y (n,), the columns' names and where it comes from."""

    name: str
    X: Array = field(repr=False)
    y: Any = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    target_name: str
    source: str

    def standardized(self, target: bool = True) -> Sample:
        """X (and a numeric y) at mean 0 and standard deviation 1 (divisor n) by column; a constant column is 0."""
        y = _standardized(self.y) if target and self.y.dtype.kind == "f" else self.y
        return replace(self, X=_standardized(self.X), y=y)

    def write_csv(self, path: str | Path) -> Path:
        """Write it as a CSV with a header, the target last; every float survives the round trip."""
        path = Path(path)
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow([*self.feature_names, self.target_name])
            writer.writerows([*row, target] for row, target in zip(self.X.tolist(), self.y.tolist()))
        return path


def _standardized(values: Array) -> Array:
    centred = values - values.mean(axis=0)
    deviation = np.sqrt(np.mean(np.square(centred), axis=0))
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def load_diabetes() -> Sample:
    """442 patients, 10 measurements in their own units, disease progression after a year (Efron et al. 2004)."""
    from sklearn import datasets

    found = datasets.load_diabetes(scaled=False)
    names = tuple(str(name) for name in found.feature_names)
    X, y = np.asarray(found.data, float), np.asarray(found.target, float)
    return Sample("diabetes", X, y, names, "target", "scikit-learn: diabetes (Efron et al. 2004)")


def load_diabetes_standardized() -> Sample:
    """`load_diabetes` with X and y at mean 0 and standard deviation 1: what the demo's age-path is about."""
    return load_diabetes().standardized()


def load_breast_cancer() -> Sample:
    """569 tumours, 30 measurements, the classes ``benign`` and ``malignant`` (UCI, Wolberg et al. 1993)."""
    from sklearn import datasets

    found = datasets.load_breast_cancer()
    names = tuple(str(name).replace(" ", "_") for name in found.feature_names)
    y = np.where(np.asarray(found.target) == 1, "benign", "malignant")
    return Sample(
        "breast_cancer", np.asarray(found.data, float), y, names, "diagnosis", "scikit-learn: breast cancer Wisconsin"
    )


BUNDLED = {"diabetes": load_diabetes, "breast_cancer": load_breast_cancer}


def load_bundled(name: str) -> Sample:
    """The data set of that name, raw.

    Raises
    ------
    UsageError
        For a name that isn't in `BUNDLED`.
    """
    if name not in BUNDLED:
        near = nearest_name(name, BUNDLED)
        helps = ((f"did you mean `{near}`?",) if near else ()) + (f"there are: {', '.join(BUNDLED)}",)
        raise UsageError(Diagnostic("SPL417", f"no data set called `{name}` comes with spdsl", help=helps))
    return BUNDLED[name]()

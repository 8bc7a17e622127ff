"""What a metric learner accepts: points, pairs of points, or indices of points that a preprocessor turns into points.

In: anything array-like. Out: float64 arrays (n, d) or (T, 2, d) and labels of -1.0 and +1.0, or a ValueError that says
what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from spdsl.problem.functions import Array

__all__ = ["check_labels", "check_pairs", "check_points", "preprocessor_of"]

Preprocessor = Callable[[Any], Any]


class Indexer:
    """A preprocessor that looks points up by their index in an array; picklable."""

    def __init__(self, X: Any) -> None:
        self.X = check_array(
            X, accept_sparse="csr", dtype=None, ensure_2d=False, allow_nd=True, ensure_all_finite=False
        )

    def __call__(self, indices: Any) -> Any:
        return self.X[indices]


def preprocessor_of(preprocessor: Any) -> Preprocessor | None:
    """The function from indices to points that the parameter `preprocessor` stands for.

    Raises
    ------
    ValueError
        When it is neither None, nor callable, nor array-like.
    """
    if preprocessor is None or callable(preprocessor):
        return preprocessor  # type: ignore[no-any-return]
    if hasattr(preprocessor, "__len__") or hasattr(preprocessor, "shape") or hasattr(preprocessor, "__array__"):
        return Indexer(preprocessor)
    raise ValueError(
        f"`preprocessor` is a {type(preprocessor).__name__}; give None, an array of points to index, or a "
        "function from indices to points"
    )


def check_points(X: Any, preprocessor: Preprocessor | None, who: str) -> Array:
    """Points as float64 (n, d); a 1-D array holds indices for the preprocessor.

    Raises
    ------
    ValueError
        For another shape, for missing or infinite values.
    """
    array = _loose(X)
    if array.ndim == 1 and preprocessor is not None:
        array = _apply(preprocessor, array)
    if array.ndim != 2:
        hint = "" if preprocessor is not None else ", or indices with a `preprocessor`"
        raise ValueError(f"{who} needs points as a 2D array (n, d){hint}; found a {array.ndim}D array")
    return np.ascontiguousarray(check_array(array, dtype=np.float64, estimator=who))


def check_pairs(pairs: Any, preprocessor: Preprocessor | None, who: str) -> Array:
    """Pairs as float64 (T, 2, d); a 2-D array (T, 2) holds indices for the preprocessor.

    Raises
    ------
    ValueError
        For another shape, for missing or infinite values.
    """
    array = _loose(pairs)
    if array.ndim == 2 and preprocessor is not None:
        left, right = _apply(preprocessor, array[:, 0]), _apply(preprocessor, array[:, 1])
        array = np.stack([np.asarray(left), np.asarray(right)], axis=1)
    if array.ndim != 3:
        hint = "" if preprocessor is not None else ", or indices (T, 2) with a `preprocessor`"
        raise ValueError(f"{who} needs pairs as a 3D array (T, 2, d){hint}; found a {array.ndim}D array")
    if array.shape[1] != 2:
        raise ValueError(f"{who} needs pairs of 2 points each; found tuples of {array.shape[1]} (shape {array.shape})")
    if array.shape[0] == 0 or array.shape[2] == 0:
        raise ValueError(f"{who} got pairs of shape {array.shape}: at least one pair and one feature are needed")
    return np.asarray(check_array(array, dtype=np.float64, allow_nd=True, ensure_2d=False, estimator=who))


def check_labels(y: Any, count: int, who: str) -> Array:
    """Labels of pairs as float64 (T,), each -1 (dissimilar) or +1 (similar).

    Raises
    ------
    ValueError
        For another length or value.
    """
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=False)
    if len(labels) != count:
        raise ValueError(f"{who} got {count} pairs but {len(labels)} labels")
    labels = np.asarray(labels, dtype=object if labels.dtype.kind not in "biuf" else np.float64)
    wrong = [
        value
        for value in np.unique(labels.astype(str) if labels.dtype == object else labels)
        if value not in (-1.0, 1.0)
    ]
    if wrong or labels.dtype == object:
        raise ValueError(f"{who} needs labels of pairs in {{-1, +1}} (dissimilar, similar); found {wrong[:5]}")
    return labels


def _loose(X: Any) -> Any:
    return check_array(
        X,
        accept_sparse=False,
        dtype=None,
        ensure_2d=False,
        allow_nd=True,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
    )


def _apply(preprocessor: Preprocessor, indices: Any) -> Any:
    try:
        points = preprocessor(indices)
    except Exception as error:
        raise ValueError(
            f"the preprocessor failed on indices such as {np.asarray(indices).ravel()[:3]}: {error}"
        ) from error
    return points.toarray() if hasattr(points, "toarray") else np.asarray(points)

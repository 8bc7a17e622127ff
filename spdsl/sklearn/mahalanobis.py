"""What every fitted Mahalanobis metric can do: map points, measure pairs, hand out M, and tell similar from dissimilar.

In: `components_` L (k, d) with M = L'L, set by `fit`. Out: the methods of metric-learn's metric learners, so that these
estimators can take their place (Mahalanobis learners, and pairs classifiers with a threshold).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_auc_score, roc_curve
from sklearn.utils.validation import check_is_fitted

from spdsl.problem.functions import Array
from spdsl.sklearn.inputs import Preprocessor, check_labels, check_pairs, check_points

__all__ = ["MahalanobisMixin", "PairsClassifierMixin", "components_from"]

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def components_from(V: Array, values: Array, n_components: int | str | None, d: int) -> Array:
    """L with rows sqrt(value_i) v_i, by falling eigenvalue.

    Parameters
    ----------
    V : array (k, d)
        Orthonormal eigenvectors as rows.
    values : array (k,)
        Their eigenvalues, >= 0; those not given are 0.
    n_components : int, "rank" or None
        So many rows; only those with a positive eigenvalue; or d rows (the last of them 0).
    """
    order = np.argsort(-values, kind="stable")
    V, values = V[order], np.maximum(values[order], 0.0)
    # a sign for each vector that does not depend on LAPACK's whim
    largest = np.take_along_axis(V, np.abs(V).argmax(axis=1)[:, None], axis=1) if V.size else np.ones((len(V), 1))
    rows = np.sqrt(values)[:, None] * V * np.where(largest < 0.0, -1.0, 1.0)
    rank = int(np.count_nonzero(values > 1e-12 * values.max(initial=0.0)))
    if n_components == "rank":
        return np.ascontiguousarray(rows[:rank])
    wanted = d if n_components is None else int(n_components)
    L = np.zeros((wanted, d))
    kept = min(wanted, len(rows))
    L[:kept] = rows[:kept]
    return L


class MahalanobisMixin:
    """Methods over ``components_`` (k, d) and ``preprocessor_``."""

    components_: Array
    preprocessor_: Preprocessor | None
    n_features_in_: int

    def transform(self, X: Any) -> Array:
        """Map points by L: the metric is the Euclidean distance of the images.

        Parameters
        ----------
        X : array-like (n, d), or (n,) indices with a preprocessor

        Returns
        -------
        array (n, k)

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; for a wrong shape, missing or infinite values.
        """
        check_is_fitted(self, "components_")
        return np.asarray(self._points(X, reset=False) @ self.components_.T)

    def pair_distance(self, pairs: Any) -> Array:
        """The learned distance of each pair, shape (T,); `pairs` is array-like (T, 2, d), or indices (T, 2)."""
        check_is_fitted(self, "components_")
        checked = self._pairs(pairs, reset=False)
        images = (checked[:, 1, :] - checked[:, 0, :]) @ self.components_.T
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", images, images)))

    def pair_score(self, pairs: Any) -> Array:
        """Minus the learned distance of each pair, shape (T,): the larger the more similar."""
        return -1.0 * self.pair_distance(pairs)

    def score_pairs(self, pairs: Any) -> Array:
        """`pair_distance` under the name that it had before metric-learn 0.7; warns."""
        check_is_fitted(self, "components_")
        warnings.warn("`score_pairs` is an old name; call `pair_distance`", FutureWarning, stacklevel=2)
        return self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """The distance as a function of two points, for scikit-learn's ``metric=``; later fits don't change it."""
        check_is_fitted(self, "components_")
        return _Metric(np.atleast_2d(np.array(self.components_, dtype=float)))

    def get_mahalanobis_matrix(self) -> Array:
        """M = L'L, a new array (d, d)."""
        check_is_fitted(self, "components_")
        return np.asarray(self.components_.T @ self.components_)

    def _points(self, X: Any, reset: bool) -> Array:
        checked = check_points(X, self.preprocessor_, type(self).__name__)
        return self._same_width(checked, checked.shape[1], reset)

    def _pairs(self, pairs: Any, reset: bool) -> Array:
        checked = check_pairs(pairs, self.preprocessor_, type(self).__name__)
        return self._same_width(checked, checked.shape[2], reset)

    def _same_width(self, checked: Array, width: int, reset: bool) -> Array:
        if reset:
            self.n_features_in_ = width
        elif width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input"
            )
        return checked


class _Metric:
    """A picklable distance function."""

    def __init__(self, components: Array) -> None:
        self.components = components

    def __call__(self, u: Any, v: Any, squared: bool = False) -> float:
        """The distance (or its square) of two points, each (d,)."""
        left, right = _vector(u), _vector(v)
        if {len(left), len(right)} != {self.components.shape[1]}:
            raise ValueError(
                f"this metric was learned on {self.components.shape[1]} features; the points have {len(left)} and "
                f"{len(right)}"
            )
        image = self.components @ (left - right)
        square = float(image @ image)
        return square if squared else float(np.sqrt(square))


def _vector(u: Any) -> Array:
    vector = np.atleast_1d(np.asarray(u, float).squeeze())
    if vector.ndim > 1:
        raise ValueError(f"a point is a 1D array; found shape {np.shape(u)}")
    return vector


class PairsClassifierMixin(MahalanobisMixin):
    """Tell similar pairs (+1) from dissimilar ones (-1) by a threshold on the distance."""

    threshold_: float

    def decision_function(self, pairs: Any) -> Array:
        """Minus the learned distance (T,): high for similar pairs."""
        return self.pair_score(pairs)

    def predict(self, pairs: Any) -> Array:
        """+1 for pairs within the threshold, else -1, shape (T,) of int."""
        check_is_fitted(self, "components_")
        if "threshold_" not in vars(self):
            raise AttributeError("no threshold is set; call `set_threshold` or `calibrate_threshold`")
        return np.where(-self.decision_function(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: Any) -> float:
        """Area under the ROC curve of `decision_function` for labels y (T,) of -1 and +1."""
        return float(roc_auc_score(y, self.decision_function(pairs)))

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs up to this distance similar.

        Raises
        ------
        ValueError
            When it isn't a number.
        """
        check_is_fitted(self, "components_")
        try:
            self.threshold_ = float(threshold)
        except (TypeError, ValueError):
            raise ValueError(f"the threshold must be a real number; got a {type(threshold)}") from None
        return self

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: Any,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose the threshold on held-out pairs.

        Parameters
        ----------
        pairs_valid, y_valid : array-like (T, 2, d) and (T,)
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
            What to maximize; ``max_tpr`` keeps the true negative rate at least `min_rate`, ``max_tnr`` the true
            positive rate.
        min_rate : float in [0, 1]
        beta : float
            Of the F score.

        Raises
        ------
        ValueError
            For an unknown strategy, or a rate or beta out of range.
        """
        check_is_fitted(self, "components_")
        self._validate_calibration_params(strategy, min_rate, beta)
        pairs = self._pairs(pairs_valid, reset=False)
        y = check_labels(y_valid, len(pairs), type(self).__name__)
        distance = -self._scores(pairs)
        self.threshold_ = best_threshold(distance, y, strategy, min_rate, beta)
        return self

    @staticmethod
    def _validate_calibration_params(
        strategy: str = "accuracy", min_rate: float | None = None, beta: float = 1.0
    ) -> None:
        """Raise ValueError for parameters that `calibrate_threshold` can't take; metric-learn's name for it."""
        check_calibration(strategy, min_rate, beta)

    def _scores(self, checked: Array) -> Array:
        images = (checked[:, 1, :] - checked[:, 0, :]) @ self.components_.T
        return -np.asarray(np.sqrt(np.einsum("ij,ij->i", images, images)))


def check_calibration(strategy: str, min_rate: float | None, beta: float) -> None:
    """Raise ValueError for parameters that `calibrate_threshold` can't take."""
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy {strategy!r} is unknown; it can be {', '.join(STRATEGIES)}")
    rated = strategy in ("max_tpr", "max_tnr")
    if rated and not (isinstance(min_rate, int | float) and not isinstance(min_rate, bool) and 0 <= min_rate <= 1):
        raise ValueError(f"min_rate must be a number in [0, 1] for strategy {strategy!r}; got {min_rate!r}")
    if strategy == "f_beta" and not isinstance(beta, int | float):
        raise ValueError(f"beta must be a real number; got a {type(beta)}")


def best_threshold(distance: Array, y: Array, strategy: str, min_rate: float | None, beta: float) -> float:
    """The distance up to which pairs are called similar; just below the smallest distance when none should be."""
    score = -distance
    reject_all = float(distance.min()) - 1.0
    if strategy == "f_beta":
        precision, recall, cuts = precision_recall_curve(y, score, pos_label=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
        value = np.nan_to_num(value, nan=0.0)[: len(cuts)]
        return float(-cuts[int(np.argmax(value))])
    if strategy == "accuracy":
        order = np.argsort(distance, kind="stable")
        cuts, similar = distance[order], y[order] == 1
        # accepting the k nearest is right on the similar among them and on the dissimilar beyond
        right = np.concatenate([[0], np.cumsum(similar)]) + np.concatenate([[0], np.cumsum(~similar)])[-1]
        right = right - np.concatenate([[0], np.cumsum(~similar)])
        possible = np.concatenate([[True], np.append(np.diff(cuts) > 0, True)])  # not between equal distances
        best = int(np.argmax(np.where(possible, right, -1)))
        return reject_all if best == 0 else float(cuts[best - 1])
    false_positive, true_positive, cuts = roc_curve(y, score, pos_label=1, drop_intermediate=False)
    assert min_rate is not None
    if strategy == "max_tpr":
        allowed = np.flatnonzero(1 - false_positive >= min_rate)
        best = int(allowed[np.argmax(true_positive[allowed])])
    else:
        allowed = np.flatnonzero(true_positive >= min_rate)
        best = int(allowed[np.argmax(1 - false_positive[allowed])])
    return reject_all if not np.isfinite(cuts[best]) else float(-cuts[best])

"""Kernel MDML as estimators: the points' kernel PCA coordinates, and MDML on them.

In: pairs or labeled points. Out: the same methods as the linear estimators, for points never seen before too.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from spdsl.diagnostics import DataError
from spdsl.problem.functions import Array
from spdsl.sklearn.bases import MapEstimator, PairEstimator
from spdsl.sklearn.inputs import check_labels, check_pairs
from spdsl.sklearn.mahalanobis import PairsClassifierMixin
from spdsl.sklearn.mdml import MDML, MDMLSupervised
from spdsl.solvers.comid.kernel_metric import KernelMap

__all__ = ["KernelMDML", "KernelMDMLSupervised"]


class _Kernelized:
    """Points go through the kernel map before the linear metric sees them."""

    kernel: str
    gamma: float | None
    degree: int
    coef0: float
    metric: Any
    random_state: Any
    map_: KernelMap
    components_: Array
    n_features_in_: int

    def _fit_map(self, points: Array) -> Array:
        d = points.shape[1]
        gamma = 1.0 / d if self.gamma is None else float(self.gamma)
        options = {
            "rbf": {"gamma": gamma},
            "polynomial": {"degree": self.degree, "coef0": self.coef0, "gamma": gamma},
            "linear": {},
        }
        if self.kernel not in options:
            raise ValueError(f"kernel {self.kernel!r} is unknown; it can be {', '.join(map(repr, options))}")
        try:
            self.map_ = KernelMap.fit(points, self.kernel, options[self.kernel])
        except DataError as error:
            raise ValueError(str(error)) from None
        return self.map_.coordinates()

    def _metric(self, kind: type[Any]) -> Any:
        metric = kind() if self.metric is None else clone(self.metric)
        if self.random_state is not None:
            metric.set_params(random_state=self.random_state)
        return metric

    def _publish_from(self, metric: Any) -> None:
        self.metric_ = metric
        self.components_ = metric.components_
        for name in ("threshold_", "mu_", "rank_", "scale_", "n_iter_", "loss_curve_", "classes_"):
            setattr(self, name, getattr(metric, name))

    @property
    def dual_coef_(self) -> Array:
        """A (n, n) over the points fitted on: d^2(x, z) = (k_x - k_z)' A (k_x - k_z)."""
        check_is_fitted(self, "components_")
        return self.map_.representer(self.components_.T @ self.components_)

    def transform(self, X: Any) -> Array:
        """Map points (m, d), seen or not, to (m, k) where the metric is Euclidean."""
        check_is_fitted(self, "components_")
        checked = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.map_.transform(checked) @ self.components_.T)

    def pair_distance(self, pairs: Any) -> Array:
        """The learned distance of each pair, shape (T,); `pairs` is array-like (T, 2, d)."""
        check_is_fitted(self, "components_")
        checked = check_pairs(pairs, None, type(self).__name__)
        images = self.transform(checked[:, 0]) - self.transform(checked[:, 1])
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", images, images)))

    def pair_score(self, pairs: Any) -> Array:
        """Minus the learned distance of each pair, shape (T,)."""
        return -1.0 * self.pair_distance(pairs)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


class KernelMDMLSupervised(_Kernelized, MapEstimator):
    """`MDMLSupervised` in the feature space of a kernel.

    Parameters
    ----------
    kernel : {"rbf", "polynomial", "linear"}
    gamma : float, optional
        Of rbf, exp(-gamma |x - z|^2), and polynomial; 1/d by default.
    degree, coef0 : int, float
        Of polynomial, (gamma x'z + coef0)^degree.
    metric : MDMLSupervised, optional
        Parameters of the linear metric learned on the coordinates; its neighbours are those of the feature space.
    random_state : int, RandomState or None
        Replaces that of `metric` unless None.

    Attributes
    ----------
    dual_coef_ : array (n, n)
    components_, threshold_, mu_, rank_, n_iter_
        As for `MDMLSupervised`, in the coordinates of `map_`.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from spdsl.sklearn import KernelMDMLSupervised, MDMLSupervised
    >>> X, y = make_circles(80, factor=0.4, noise=0.05, random_state=0)
    >>> KernelMDMLSupervised(metric=MDMLSupervised(n_components=2, random_state=0)).fit_transform(X, y).shape
    (80, 2)
    """

    def __init__(
        self,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        metric: MDMLSupervised | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.metric = metric
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points (n, d) and classes (n,); O(n^3) for the kernel matrix's eigenvectors."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        points, classes = validate_data(self, X, y, dtype=np.float64)
        Z = self._fit_map(points)
        self._publish_from(self._metric(MDMLSupervised).fit(Z, classes))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class KernelMDML(_Kernelized, PairsClassifierMixin, PairEstimator):
    """`MDML` in the feature space of a kernel.

    Parameters
    ----------
    kernel, gamma, degree, coef0
        As for `KernelMDMLSupervised`.
    metric : MDML, optional
        Parameters of the linear metric learned on the coordinates.
    random_state : int, RandomState or None
        Replaces that of `metric` unless None.
    """

    def __init__(
        self,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        metric: MDML | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.metric = metric
        self.random_state = random_state

    def fit(self, pairs: Any, y: Any) -> Self:
        """Learn from pairs (T, 2, d) and labels (T,) of -1 and +1; the map spans the distinct points of the pairs."""
        name = type(self).__name__
        checked = check_pairs(pairs, None, name)
        labels = check_labels(y, len(checked), name)
        self.n_features_in_ = checked.shape[2]
        points, index = np.unique(checked.reshape(-1, checked.shape[2]), axis=0, return_inverse=True)
        Z = self._fit_map(points)
        self.preprocessor_ = None
        self._publish_from(self._metric(MDML).fit(Z[index.reshape(-1, 2)], labels))
        return self

    def _scores(self, checked: Array) -> Array:
        return -self.pair_distance(checked)

    def get_metric(self) -> Any:
        """The distance as a function of two points."""
        check_is_fitted(self, "components_")
        return _KernelMetric(self.map_, self.components_.copy())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags


class _KernelMetric:
    """A picklable distance function."""

    def __init__(self, kernel_map: KernelMap, components: Array) -> None:
        self.kernel_map, self.components = kernel_map, components

    def __call__(self, u: Any, v: Any, squared: bool = False) -> float:
        """The distance (or its square) of two points, each (d,)."""
        Z = self.kernel_map.transform(np.stack([np.asarray(u, float).ravel(), np.asarray(v, float).ravel()]))
        image = self.components @ (Z[0] - Z[1])
        square = float(image @ image)
        return square if squared else float(np.sqrt(square))

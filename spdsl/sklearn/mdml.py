"""MDML, mirror descent for metric learning, as scikit-learn estimators: from labeled pairs, or from labeled points.

In: pairs (T, 2, d) with labels -1/+1, or points (n, d) with classes. Out: a Mahalanobis metric of low rank, learned
online by composite objective mirror descent (Kunapuli & Shavlik 2012), and a threshold on its distance.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from spdsl.problem.functions import Array
from spdsl.sklearn.bases import MapEstimator, PairEstimator
from spdsl.sklearn.constraints import neighbor_pairs, random_pairs
from spdsl.sklearn.inputs import check_labels, preprocessor_of
from spdsl.sklearn.learner import MetricRun
from spdsl.sklearn.mahalanobis import MahalanobisMixin, PairsClassifierMixin
from spdsl.solvers.comid.losses import MarginLoss

__all__ = ["MDML", "MDMLSupervised"]


class MDML(PairsClassifierMixin, MetricRun, PairEstimator):
    """A Mahalanobis metric from pairs labeled similar (+1) or dissimilar (-1).

    Minimizes ``mean_t loss(y_t (mu - u_t'M u_t)) + rho * penalty(M)`` over M >> 0, mu >= 1 (eq. 4), u_t the
    difference of pair t, by one exact step of composite objective mirror descent a pair (eqs. 7 and 8).

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "logistic", "exponential"} or MarginLoss
        Of the margin; a loss of one's own is `spdsl.solvers.comid.losses.MarginLoss`.
    divergence : {"squared_frobenius", "von_neumann", "burg", "schatten"}
        The mirror map. The first and the last give low rank.
    p : float > 1
        Of the Schatten norm.
    rho : float >= 0
        The penalty's coefficient.
    penalty : {"trace", "squared_frobenius", "frobenius", "l1", "none"}
        ``squared_frobenius`` is half the squared norm. ``l1`` costs full eigendecompositions.
    step, schedule : float > 0, {"sqrt", "constant", "inverse"}
        Step lengths step/sqrt(t), step, or step/t.
    passes : int
        Passes of `fit` over the pairs.
    batch_size : int
        Pairs a step.
    average : {"none", "uniform", "linear"}
        The last iterate, or the mean of all, with equal weights or weights t.
    scale : {"median", "none"} or float > 0
        What differences are divided by before learning; the metric is given back in the data's own units.
    n_components : int, "rank" or None
        Rows of `components_`: so many, as many as the rank, or d.
    shuffle : bool
        A new random order each pass.
    random_state : int, RandomState or None
    preprocessor : array-like or callable, optional
        Turns indices into points, so that pairs can be given as (T, 2) indices.
    verbose : int
        Print the mean loss met in each pass.

    Attributes
    ----------
    components_ : array (k, d)
        L with M = L'L, rows by falling eigenvalue.
    threshold_, mu_ : float
        Pairs at a distance <= threshold_ = sqrt(mu_) are called similar.
    rank_ : int
        Of M.
    scale_ : float
        What differences were divided by.
    n_iter_, n_features_in_ : int
        Steps made; d.
    loss_curve_ : list of float
        The mean loss met in each pass, each pair under the iterate before it.

    Examples
    --------
    >>> import numpy as np
    >>> from spdsl.sklearn import MDML
    >>> pairs = np.array([[[0.0, 1.0], [0.1, 9.0]], [[0.0, 1.0], [2.0, 1.0]]] * 20)
    >>> y = np.array([1, -1] * 20)  # the first feature tells, the second misleads
    >>> metric = MDML(rho=0.01, step=1.0, passes=5, random_state=0).fit(pairs, y)
    >>> metric.predict(pairs[:2])
    array([ 1, -1])
    """

    def __init__(
        self,
        loss: str | MarginLoss = "hinge",
        divergence: str = "squared_frobenius",
        p: float = 1.5,
        rho: float = 0.01,
        penalty: str = "trace",
        step: float = 0.3,
        schedule: str = "sqrt",
        passes: int = 5,
        batch_size: int = 1,
        average: str = "none",
        scale: str | float = "median",
        n_components: int | str | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        preprocessor: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.divergence = divergence
        self.p = p
        self.rho = rho
        self.penalty = penalty
        self.step = step
        self.schedule = schedule
        self.passes = passes
        self.batch_size = batch_size
        self.average = average
        self.scale = scale
        self.n_components = n_components
        self.shuffle = shuffle
        self.random_state = random_state
        self.preprocessor = preprocessor
        self.verbose = verbose

    def fit(self, pairs: Any, y: Any, calibration_params: dict[str, Any] | None = None) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        pairs : array-like (T, 2, d), or indices (T, 2) with a preprocessor
        y : array-like (T,) of -1 and +1
        calibration_params : dict, optional
            Arguments of `calibrate_threshold`, which then sets the threshold on these same pairs.

        Raises
        ------
        ValueError
            For malformed pairs or labels, labels of one class only, or a parameter out of range.
        SolverError
            When a step is unbounded (Burg) or the run diverges.
        """
        if calibration_params is not None:
            _check_names(calibration_params)
            self._validate_calibration_params(**calibration_params)
        U, labels = self._differences(pairs, y, reset=True)
        if len(np.unique(labels)) < 2:
            raise ValueError(
                f"{type(self).__name__} got pairs of 1 class only ({int(labels[0]):+d}); it needs similar (+1) and "
                "dissimilar (-1) pairs: with one class the optimum is M = 0 or unbounded"
            )
        self._begin(U)
        self._passes(U, labels)
        self._publish()
        if calibration_params is not None:
            self.calibrate_threshold(pairs, y, **calibration_params)
        return self

    def partial_fit(self, pairs: Any, y: Any) -> Self:
        """Go on with one pass over these pairs, in the order given.

        In chunks (each but the last a multiple of `batch_size` long) this equals one call on the pairs together, and
        one ``fit`` with ``passes=1, shuffle=False``, bit for bit; with ``scale="median"`` the first chunk sets the
        scale.

        Parameters
        ----------
        pairs, y : as for `fit`

        Raises
        ------
        ValueError, SolverError
            As `fit`; one class only is fine here.
        """
        first = not hasattr(self, "_state")
        U, labels = self._differences(pairs, y, reset=first)
        if first:
            self._begin(U)
        self._pass(U, labels, np.arange(len(labels)))
        self._publish()
        return self

    def _differences(self, pairs: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        if reset:
            self.preprocessor_ = preprocessor_of(self.preprocessor)
        checked = self._pairs(pairs, reset=reset)
        labels = check_labels(y, len(checked), type(self).__name__)
        self.classes_ = np.array([-1, 1])
        return np.ascontiguousarray(checked[:, 0] - checked[:, 1]), labels

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True
        return tags


class MDMLSupervised(MahalanobisMixin, MetricRun, MapEstimator):
    """A Mahalanobis metric from points with classes: `MDML` on pairs drawn from them.

    Parameters
    ----------
    n_neighbors : int
        Each point is paired with so many nearest points of its own class and of the other classes.
    n_constraints : int, optional
        Instead, so many random pairs of one class and of two classes.
    loss, divergence, p, rho, penalty, step, schedule, passes, batch_size, average, scale, n_components, shuffle,
    random_state, preprocessor, verbose
        As for `MDML`.

    Attributes
    ----------
    As of `MDML`, and `n_pairs_`, the number of pairs of the last call.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spdsl.sklearn import MDMLSupervised
    >>> X, y = load_iris(return_X_y=True)
    >>> MDMLSupervised(n_components=2, random_state=0).fit(X, y).transform(X).shape
    (150, 2)
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        n_constraints: int | None = None,
        loss: str | MarginLoss = "hinge",
        divergence: str = "squared_frobenius",
        p: float = 1.5,
        rho: float = 0.01,
        penalty: str = "trace",
        step: float = 0.3,
        schedule: str = "sqrt",
        passes: int = 5,
        batch_size: int = 1,
        average: str = "none",
        scale: str | float = "median",
        n_components: int | str | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        preprocessor: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_constraints = n_constraints
        self.loss = loss
        self.divergence = divergence
        self.p = p
        self.rho = rho
        self.penalty = penalty
        self.step = step
        self.schedule = schedule
        self.passes = passes
        self.batch_size = batch_size
        self.average = average
        self.scale = scale
        self.n_components = n_components
        self.shuffle = shuffle
        self.random_state = random_state
        self.preprocessor = preprocessor
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : array-like (n, d), or indices (n,) with a preprocessor
        y : array-like (n,)
            Classes, at least two.

        Raises
        ------
        ValueError
            For malformed data, one class only, or a parameter out of range.
        SolverError
            When a step is unbounded (Burg) or the run diverges.
        """
        U, labels = self._differences(X, y, reset=True)
        self._begin(U)
        self._passes(U, labels)
        self._publish()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on with one pass over the pairs of these points; pairs are drawn within the chunk.

        Parameters
        ----------
        X, y : as for `fit`
        classes : ignored
            Only there because scikit-learn's classifiers take it.
        """
        first = not hasattr(self, "_state")
        U, labels = self._differences(X, y, reset=first)
        if first:
            self._begin(U)
        self._pass(U, labels, np.arange(len(labels)))
        self._publish()
        return self

    def transform(self, X: Any) -> Array:
        """Map points by L (see `MahalanobisMixin.transform`), shape (n, k)."""
        check_is_fitted(self, "components_")
        return np.asarray(self._rows(X, reset=False) @ self.components_.T)

    def _rows(self, X: Any, reset: bool) -> Array:
        if self.preprocessor_ is not None:
            return self._points(X, reset)
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64, order="C"))

    def _differences(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        name = type(self).__name__
        if reset:
            self.preprocessor_ = preprocessor_of(self.preprocessor)
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        if self.preprocessor_ is None:
            points, classes = validate_data(self, X, y, reset=reset, dtype=np.float64, order="C")
        else:
            points, classes = self._rows(X, reset), np.asarray(y)
            if classes.shape != (len(points),):
                raise ValueError(f"{name} got {len(points)} points but labels of shape {classes.shape}")
        check_classification_targets(classes)
        values = np.unique(classes)
        if len(values) < 2:
            raise ValueError(
                f"{name} got points of 1 class only ({values[0]!r}); it needs at least two classes to tell apart"
            )
        pairs, labels = self._draw(points, classes)
        self.classes_, self.n_pairs_ = values, len(labels)
        return np.ascontiguousarray(points[pairs[:, 0]] - points[pairs[:, 1]]), labels

    def _draw(self, points: Array, classes: np.ndarray) -> tuple[np.ndarray, Array]:
        if self.n_constraints is None:
            if int(self.n_neighbors) != self.n_neighbors or self.n_neighbors < 1:
                raise ValueError(f"n_neighbors is {self.n_neighbors!r}; it must be a whole number >= 1")
            return neighbor_pairs(points, classes, int(self.n_neighbors))
        if int(self.n_constraints) != self.n_constraints or self.n_constraints < 1:
            raise ValueError(f"n_constraints is {self.n_constraints!r}; it must be a whole number >= 1")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return random_pairs(classes, int(self.n_constraints), np.random.default_rng(seed))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _check_names(params: dict[str, Any]) -> None:
    unknown = set(params) - {"strategy", "min_rate", "beta"}
    if unknown:
        raise ValueError(f"calibration_params has unknown names {sorted(unknown)}; it takes strategy, min_rate, beta")

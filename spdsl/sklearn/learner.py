"""The run behind every MDML estimator: from parameters to settings, from differences of pairs to a state, to
components.

In: an estimator's parameters, differences U (T, d) and labels y (T,). Out: the fitted attributes. It knows nothing of
how pairs came about; `spdsl.sklearn.mdml` does.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from sklearn.utils import check_random_state

from spdsl.diagnostics import UsageError
from spdsl.problem.functions import Array
from spdsl.sklearn.mahalanobis import components_from
from spdsl.solvers.comid.divergences import Penalty, divergence_named
from spdsl.solvers.comid.engine import MetricState, Settings, advance, begin, pairs_of
from spdsl.solvers.comid.losses import MarginLoss, loss_named

__all__ = ["MetricRun", "scale_of"]

_BLOCK = 4096  # pairs copied at a time


class MetricRun:
    """Parameters and the online part of MDML; a mixin of the estimators."""

    loss: str | MarginLoss
    divergence: str
    p: float
    rho: float
    penalty: str
    step: float
    schedule: str
    passes: int
    batch_size: int
    average: str
    scale: str | float | None
    n_components: int | str | None
    shuffle: bool
    random_state: Any
    verbose: int

    components_: Array
    threshold_: float
    mu_: float
    rank_: int
    n_iter_: int
    scale_: float
    loss_curve_: list[float]
    _state: MetricState

    def _settings(self) -> Settings:
        """The engine's settings.

        Raises
        ------
        ValueError
            For a parameter out of range.
        """
        if self.penalty not in _PENALTIES:
            raise ValueError(f"penalty {self.penalty!r} is unknown; it can be {', '.join(map(repr, _PENALTIES))}")
        if not (isinstance(self.passes, int | np.integer) and self.passes >= 1):
            raise ValueError(f"passes is {self.passes!r}; it must be a whole number >= 1")
        try:
            coefficients = {_PENALTIES[self.penalty]: float(self.rho)} if self.penalty != "none" else {}
            return Settings(
                divergence=divergence_named(self.divergence, self.p),
                penalty=Penalty(**coefficients),
                step=float(self.step),
                schedule=cast(Literal["sqrt", "constant", "inverse"], self.schedule),
                batch=int(self.batch_size),
                average=cast(Literal["none", "uniform", "linear"], self.average),
            )
        except UsageError as error:
            raise ValueError(str(error)) from None

    def _begin(self, U: Array) -> None:
        self.scale_ = scale_of(U, self.scale)
        self.n_iter_ = 0
        self.loss_curve_ = []
        self._state = begin(U.shape[1], self._settings())

    def _pass(self, U: Array, y: Array, order: np.ndarray) -> None:
        """One pass over pairs in the given order."""
        settings = self._settings()
        loss = loss_named(self.loss)
        block = max(_BLOCK // settings.batch, 1) * settings.batch
        total = 0.0
        for start in range(0, len(order), block):
            chosen = order[start : start + block]
            pairs = pairs_of(U[chosen] / self.scale_, y[chosen], loss)
            self._state, trace = advance(self._state, settings, pairs, np.arange(len(chosen)))
            total += float(np.sum(loss.value(trace.margins)))
        self.n_iter_ = self._state.steps
        self.loss_curve_.append(total / len(order))
        if self.verbose:
            print(f"[{type(self).__name__}] pass {len(self.loss_curve_)}: mean loss met {self.loss_curve_[-1]:.6g}")

    def _passes(self, U: Array, y: Array) -> None:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        for _ in range(int(self.passes)):
            self._pass(U, y, rng.permutation(len(y)) if self.shuffle else np.arange(len(y)))

    def _publish(self) -> None:
        """Set the fitted attributes from the state."""
        settings = self._settings()
        V, coefficients, level = self._state.representation.factor()
        d = V.shape[1]
        mu = self._state.mu
        if settings.average != "none" or level != 0.0 or not _orthonormal(V):
            M, mu = self._state.metric(settings)
            coefficients, W = np.linalg.eigh(M)
            V = np.ascontiguousarray(W.T)
        values = np.maximum(coefficients, 0.0) / self.scale_**2
        self.mu_ = float(mu)
        self.threshold_ = float(np.sqrt(mu))
        self.rank_ = int(np.count_nonzero(values > 1e-12 * values.max(initial=0.0)))
        self.components_ = components_from(V, values, self._wanted(d), d)

    def _wanted(self, d: int) -> int | str | None:
        n = self.n_components
        if n is None or n == "rank":
            return n
        if isinstance(n, str) or int(n) != n or not 1 <= n <= d:
            raise ValueError(f'n_components is {n!r}; it must be in [1, {d}], "rank", or None')
        return int(n)


_PENALTIES = {"trace": "trace", "squared_frobenius": "ridge", "frobenius": "norm", "l1": "l1", "none": ""}


def scale_of(U: Array, scale: str | float | None) -> float:
    """What differences are divided by: their median norm (zeros left out), a given number, or 1.

    Raises
    ------
    ValueError
        For an unknown name or a number that isn't positive.
    """
    if scale is None or scale == "none":
        return 1.0
    if scale == "median":
        norms = np.sqrt(np.einsum("ij,ij->i", U, U))
        norms = norms[norms > 0.0]
        return float(np.median(norms)) if len(norms) else 1.0
    if isinstance(scale, str) or not (np.isfinite(scale) and scale > 0):
        raise ValueError(f'scale is {scale!r}; it can be "median", "none" or a positive number')
    return float(scale)


def _orthonormal(V: Array) -> bool:
    return bool(np.abs(V @ V.T - np.eye(len(V))).max(initial=0.0) < 1e-8)

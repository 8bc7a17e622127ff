"""Alternate convex search as it is done today: weights by v*, the w-problem by scikit-learn, until the KKT residual is small.

In: data, a loss, an SP-regularizer, ages. Out: partial optima at those ages, with rounds and the worst KKT residual. It
shares no code with spdsl.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.svm import SVC

GAMMA = 0.5
_IDLE = 20  # rounds without a tenth of progress, after which an age is given up


def weights(loss, age, self_paced):
    """v* of the hard, the linear and the mixture SP-regularizer (gamma = 0.5)."""
    if self_paced == "hard":
        return (loss < age).astype(float)
    if self_paced == "linear":
        return np.maximum(1.0 - loss / age, 0.0)
    with np.errstate(divide="ignore"):
        between = GAMMA * (1.0 / np.sqrt(loss) - 1.0 / age)
    return np.where(loss <= (age * GAMMA / (age + GAMMA)) ** 2, 1.0, np.where(loss >= age * age, 0.0, between))


class Search:
    """One search over ages; `tolerance` is that of the KKT residual, relative to the gradient's terms."""

    def __init__(self, X, y, loss, self_paced, alpha, precompute=False, budget=np.inf, tolerance=1e-6):
        self.X, self.y, self.loss, self.self_paced, self.alpha = X, y, loss, self_paced, alpha
        self.n, self.d = X.shape
        self.budget, self.tolerance = budget, tolerance
        self.rounds, self.done, self.stalled, self.worst = 0, 0, 0, 0.0
        if loss == "squared":
            self.model = Lasso(
                fit_intercept=False, precompute=precompute, warm_start=True, tol=1e-10, max_iter=10_000, copy_X=True
            )
        elif loss == "logistic":
            self.model = LogisticRegression(
                C=1.0 / (self.n * alpha), fit_intercept=False, warm_start=True, tol=1e-8, max_iter=1000
            )
        else:
            self.model = SVC(kernel="linear", C=1.0 / (self.n * alpha), tol=1e-6, cache_size=1000)

    def run(self, ages, x):
        """Partial optima at the ages, each from the one before."""
        began = time.process_time()
        self._start(x)
        fits = []
        for age in ages:
            x = self._at(age, x, began)
            if x is None:
                break
            fits.append(x)
            self.done += 1
        return fits

    def _start(self, x):
        if self.loss != "hinge":
            self.model.coef_ = x[: self.d].copy() if self.loss == "squared" else x[None, : self.d].copy()
            self.model.intercept_ = np.zeros(1)
            self.model.classes_ = np.array([-1.0, 1.0])

    def _at(self, age, x, began):
        v = weights(self._losses(x), age, self.self_paced)
        best, idle = np.inf, 0
        for _ in range(1000):
            if time.process_time() - began > self.budget:
                return None
            x = self._fit(x, v)
            self.rounds += 1
            fresh = weights(self._losses(x), age, self.self_paced)
            error = self._residual(x, fresh) if self.loss != "hinge" else np.abs(fresh - v).max()
            v = fresh
            best, idle = (error, 0) if error < 0.9 * best else (best, idle + 1)
            if error <= self.tolerance or idle == _IDLE:  # or the inner solver gets no closer
                break
        self.stalled += error > self.tolerance
        self.worst = max(self.worst, float(error))
        return x

    def _fit(self, x, v):
        total = v.sum()
        if total <= 0.0:
            return np.zeros_like(x)
        if self.loss == "squared":
            # scikit-learn weighs by v / mean(v): the same problem with alpha divided by mean(v)
            self.model.alpha = self.alpha * self.n / total
            self.model.fit(self.X, self.y, sample_weight=v)
            return self.model.coef_.copy()
        used = v > 0.0
        if np.unique(self.y[used]).size < 2:
            return x
        self.model.fit(self.X[used], self.y[used], sample_weight=v[used])
        w = np.asarray(self.model.coef_).ravel().copy()
        return w if self.loss == "logistic" else np.r_[w, self.model.intercept_]

    def _losses(self, x):
        if self.loss == "squared":
            return (self.X @ x - self.y) ** 2 / (2 * self.n)
        if self.loss == "logistic":
            return np.logaddexp(0.0, -self.y * (self.X @ x)) / self.n
        return np.maximum(1.0 - self.y * (self.X @ x[:-1] + x[-1]), 0.0) / self.n

    def _residual(self, x, v):
        """Scaled as spdsl scales it: by the largest sum of absolute values of the terms of one coordinate's gradient."""
        if self.loss == "squared":
            pull = v * (self.X @ x - self.y) / self.n
            slope = self.X.T @ pull
            off = np.where(
                x == 0.0, np.maximum(np.abs(slope) - self.alpha, 0.0), np.abs(slope + self.alpha * np.sign(x))
            )
            size = np.abs(self.X).T @ np.abs(pull) + self.alpha
        else:
            margin = self.y * (self.X @ x)
            pull = -v * self.y * np.exp(-np.logaddexp(0.0, margin)) / self.n
            off = np.abs(self.X.T @ pull + self.alpha * x)
            size = np.abs(self.X).T @ np.abs(pull) + self.alpha * np.abs(x)
        return float(off.max() / max(size.max(), 1e-300))

"""A start for `fit` by libsvm: scikit-learn's SVC gives an SVM's multipliers to a few digits, whatever the start.

In: a dual model and weights (n,). Out: a labelled point near the optimum, or None where the model is no SVM of n samples and one
intercept, the samples are few, or one class has no weight. `fit` makes it exact.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import RowLabels
from spdsl.solvers.kernel_path.fit import Fitted
from spdsl.solvers.kernel_path.model import DualModel

__all__ = ["near"]

_MANY = 400  # samples from which on libsvm beats an active-set method that starts from nothing
_TOLERANCE = 1e-6
_AT_BOUND = 1e-9  # of the bound


def near(model: DualModel, weights: Array) -> Fitted | None:
    """A point near the optimum at fixed weights."""
    if model.n < _MANY or not _is_svm(model):
        return None
    from sklearn.svm import SVC

    block = model.block
    bounds = -weights * block.factor * block.left[0]
    used = np.flatnonzero(bounds > 1e-12 * model.force)
    if used.size == 0 or np.unique(model.s[used]).size < 2:
        return None
    model.need(used)
    K = model.part(used, used) * np.outer(model.s[used], model.s[used])
    svc = SVC(kernel="precomputed", C=1.0, tol=_TOLERANCE, cache_size=500, shrinking=True)
    svc.fit(K, model.s[used], sample_weight=bounds[used])
    mu = np.zeros(model.n)
    mu[used[svc.support_]] = np.abs(svc.dual_coef_[0])
    b = np.array([float(svc.intercept_[0])])
    z = model.apply(mu) + model.B @ b + model.c
    held = (mu > _AT_BOUND * bounds) & (mu < (1.0 - _AT_BOUND) * bounds)
    piece = np.where(mu > 0.5 * bounds, 0, 1)
    piece[bounds <= 0.0] = np.where(z[bounds <= 0.0] < block.borders[0, bounds <= 0.0], 0, 1)
    mu = np.where(held, mu, np.where(piece == 0, bounds, 0.0))
    piece[held] = 0
    labels = RowLabels(piece.astype(np.int64), np.where(held, 0, -1), np.zeros(model.n, np.int64))
    return Fitted(mu, b, model.apply(mu) + model.B @ b + model.c, labels)


def _is_svm(model: DualModel) -> bool:
    """Is the loss a multiple of hinge(y (f + b)), y in {-1, 1}?"""
    block = model.block
    return bool(
        model.q == 1
        and block.borders.shape[0] == 1
        and np.all(np.abs(model.s) == 1.0)
        and np.array_equal(model.B[:, 0], model.s)
        and not np.any(model.c)
        and np.all(block.borders[0] == 1.0)
        and np.all(block.right[0] == 0.0)
        and np.all(block.left[0] < 0.0)
    )

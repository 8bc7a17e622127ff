"""Kernel matrices for rkhs variables: rbf, polynomial, linear and precomputed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spdsl.problem.functions import Array

__all__ = ["KERNELS", "gram"]

KERNELS = {
    "rbf": ("gamma",),
    "polynomial": ("degree", "coef0", "gamma"),
    "linear": (),
    "precomputed": ("K",),
}


def gram(name: str, rows: Any, points: Any, options: Mapping[str, Any]) -> Array:
    """The matrix k(rows_i, points_j), shape (m, n), float64.

    ``rbf(gamma)``: exp(-gamma |x - z|^2); ``polynomial(degree, coef0 = 1, gamma = 1)``: (gamma x'z + coef0)^degree;
    ``linear()``: x'z; ``precomputed(K)``: K itself, for the training points only.
    """
    if name == "precomputed":
        return np.asarray(options["K"], float)
    inner = rows @ points.T
    inner = np.asarray(inner.toarray() if hasattr(inner, "toarray") else inner, float)
    if name == "linear":
        return inner
    if name == "polynomial":
        base = float(options.get("gamma", 1.0)) * inner + float(options.get("coef0", 1.0))
        return np.asarray(base ** float(options["degree"]))
    if name == "rbf":
        distances = _squares(rows)[:, None] - 2.0 * inner + _squares(points)[None, :]
        if rows is points:
            np.fill_diagonal(distances, 0.0)
        return np.asarray(np.exp(-float(options["gamma"]) * np.maximum(distances, 0.0)))
    raise KeyError(name)


def _squares(matrix: Any) -> Array:
    if hasattr(matrix, "multiply"):
        return np.asarray(matrix.multiply(matrix).sum(axis=1), float).ravel()
    return np.asarray(np.einsum("ij,ij->i", matrix, matrix))

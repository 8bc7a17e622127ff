"""Data of the dual averaging experiments: the sets from `$SPDSL_DATA/libsvm`, and synthetic ones made on the spot.

In: names. Out: (X, y) with X CSR float32 or dense and y in {-1, +1}; and the known optima of mean hinge + rho |w|_1.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

# name -> (rho, optimum): no intercept, float32 data as stored. All but `synthetic` by HiGHS interior point with
# crossover on the whole program, `synthetic` by `optimum.py` (its dual, features added until none is violated).
OPTIMA: dict[str, tuple[float, float]] = {
    "a9a": (1e-3, 0.368338791550),
    "reuters21578_earnacq": (1e-4, 0.183817297460),
    "rcv1_vw_sample": (1e-3, 0.567395355233),
    "synthetic": (2e-4, 0.681674844867),
}


def load(name: str) -> tuple[Any, Any]:
    """A set by name; of those with a training part only that part.

    Raises
    ------
    SystemExit
        When `SPDSL_DATA` is not set or the file is missing: with where it is from.
    """
    if name == "synthetic":
        return sparse_synthetic()
    path = os.path.join(os.environ.get("SPDSL_DATA", ""), "libsvm", f"{name}.npz")
    if not os.path.exists(path):
        raise SystemExit(
            f"{path} is missing: set SPDSL_DATA to a folder with libsvm/{name}.npz (arrays data, indices, indptr, "
            "shape and y of the LIBSVM set), or leave this set out"
        )
    with np.load(path) as file:
        X = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        y = file["y"].astype(float)
        rows = int(file["n_train"]) if name.startswith("reuters") else X.shape[0]
    return X[:rows], y[:rows]


def sparse_synthetic(n: int = 100_000, d: int = 50_000, row: int = 72, seed: int = 0) -> tuple[Any, Any]:
    """Rows of `row` distinct features of Zipf-like frequency and unit length; labels by a sparse w, 5% flipped."""
    rng = np.random.default_rng(seed)
    columns = np.minimum((d * rng.random((n, row)) ** 3).astype(np.int32), d - 1)
    columns.sort(axis=1)
    values = rng.exponential(size=(n, row)).astype(np.float32)
    X = sp.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, n * row + 1, row)), shape=(n, d))
    X.sum_duplicates()
    X = sp.diags(1.0 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X
    w = rng.normal(size=d) * (np.arange(d) < 2_000)
    y = np.where(X @ w > 0.0, 1.0, -1.0) * np.where(rng.random(n) < 0.05, -1.0, 1.0)
    return X.tocsr().astype(np.float32), y


def dense_synthetic(n: int = 10_000, d: int = 10_000, seed: int = 0) -> tuple[Any, Any]:
    """[DA] section 4.1: w and X standard normal with a tenth of w, and of every column of X, set to 0; y = sign(Xw)."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    w[rng.choice(d, d // 10, replace=False)] = 0.0
    X = rng.standard_normal((n, d), dtype=np.float32)
    for column in X.T:
        column[rng.choice(n, n // 10, replace=False)] = 0.0
    return X, np.where(X @ w.astype(np.float32) > 0.0, 1.0, -1.0)

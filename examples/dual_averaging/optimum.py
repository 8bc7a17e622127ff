"""The exact optimum of mean hinge + rho |w|_1 on large sparse data: the dual program, features added as needed.

max sum u  over 0 <= u <= 1/n,  |X'(y u)| <= rho.  Only the features that are violated get a constraint, so the program
stays a thousand rows high. When none is violated its value is the optimum. Run: python optimum.py synthetic 2e-4
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from datasets import load


def optimum(X: Any, y: Any, rho: float, tolerance: float = 1e-9, talk: bool = False) -> tuple[float, Any]:
    """The optimal value and w."""
    n, d = X.shape
    A = sp.csc_matrix(sp.diags(y) @ X.astype(float))
    chosen = np.argsort(-np.abs(np.ravel(A.sum(axis=0))))[:300]
    while True:
        part = A[:, chosen].T.tocsr()
        found = linprog(
            -np.ones(n),
            A_ub=sp.vstack([part, -part], format="csr"),
            b_ub=np.full(2 * len(chosen), rho),
            bounds=(0.0, 1.0 / n),
            method="highs-ipm",
        )
        if found.status != 0:
            raise RuntimeError(found.message)
        excess = np.abs(A.T @ found.x) - rho
        excess[chosen] = -np.inf
        violated = np.flatnonzero(excess > tolerance * rho)
        if talk:
            print(f"{len(chosen)} features, value {-found.fun:.12f}, {len(violated)} violated", flush=True)
        if len(violated) == 0:
            marginals = found.ineqlin.marginals
            w = np.zeros(d)
            w[chosen] = -marginals[: len(chosen)] + marginals[len(chosen) :]
            return -float(found.fun), w
        chosen = np.concatenate([chosen, violated[np.argsort(-excess[violated])][:400]])


if __name__ == "__main__":
    X, y = load(sys.argv[1])
    started = time.time()
    value, w = optimum(X, y, float(sys.argv[2]), talk=True)
    at_w = np.maximum(0.0, 1.0 - y * (X @ w)).mean() + float(sys.argv[2]) * np.abs(w).sum()
    print(f"{value:.12f} (at w: {at_w:.12f}), {np.count_nonzero(w)} nonzeros, {time.time() - started:.0f} s")

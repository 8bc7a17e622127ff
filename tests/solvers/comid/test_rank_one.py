"""Rank-one changes of a spectrum equal dense eigendecompositions, however close or far apart the eigenvalues are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.solvers.comid.rank_one import add_rank_one, clip_step

SPECTRA = {
    "spread": lambda k, rng: rng.normal(size=k),
    "equal": lambda k, rng: np.ones(k),
    "two_values": lambda k, rng: np.repeat([1.0, 2.0], [k // 2, k - k // 2]),
    "one_ulp_apart": lambda k, rng: 1 + 1e-15 * rng.normal(size=k),
    "twelve_decades": lambda k, rng: 10.0 ** rng.uniform(-8, 4, size=k),
    "nearly_equal": lambda k, rng: 1 + 1e-9 * np.arange(k),
    "zeros": lambda k, rng: np.zeros(k),
}


def _vectors(V: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    k, d = V.shape
    return {
        "any": rng.normal(size=d),
        "inside": V.T @ rng.normal(size=k) if k else rng.normal(size=d),
        "an_eigenvector": V[0].copy() if k else np.ones(d),
        "tiny": 1e-9 * rng.normal(size=d),
        "nearly_inside": (V.T @ rng.normal(size=k) if k else np.zeros(d)) + 1e-8 * rng.normal(size=d),
        "zero": np.zeros(d),
    }


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("compiled", [True, False])
def test_it_equals_the_dense_sum_and_keeps_the_rows_orthonormal(spectrum: str, compiled: bool) -> None:
    function = add_rank_one if compiled else add_rank_one.py_func
    rng = np.random.default_rng(0)
    for d in (1, 2, 5, 9):
        for k in range(d + 1):
            V = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(d, d)))[0][:k])
            theta = SPECTRA[spectrum](k, rng)
            for level in (0.0, 1.0, -2.0):
                for u in _vectors(V, rng).values():
                    for weight in (1.0, -1.0, 1e-6, -50.0):
                        M = level * np.eye(d) + (V.T * (theta - level)) @ V + weight * np.outer(u, u)
                        values, rows = function(V.copy(), theta.copy(), level, u, weight)
                        again = level * np.eye(d) + (rows.T * (values - level)) @ rows
                        assert np.abs(M - again).max() <= 1e-13 * max(1.0, np.abs(M).max())
                        assert np.abs(rows @ rows.T - np.eye(len(rows))).max(initial=0.0) <= 1e-13


@given(st.integers(0, 100_000), st.integers(1, 40), st.sampled_from(list(SPECTRA)), st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_eigenvalues_equal_lapacks(seed: int, d: int, spectrum: str, weight: float) -> None:
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(d, d)))[0]
    theta = SPECTRA[spectrum](d, rng)
    u = rng.normal(size=d) * rng.choice([1.0, 1e-7], size=d)
    M = (V.T * theta) @ V + weight * np.outer(u, u)
    values, _ = add_rank_one(V, theta, 0.0, u, weight)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(M), atol=1e-13 * max(1.0, np.abs(M).max()) * d)


@given(st.integers(0, 100_000), st.integers(1, 8), st.booleans(), st.floats(0, 1.5), st.floats(-3, 3))
@settings(max_examples=80, deadline=None)
def test_a_clipped_step_equals_the_eigendecomposition(
    seed: int, d: int, full: bool, shrink: float, weight: float
) -> None:
    rng = np.random.default_rng(seed)
    k = d if full else int(rng.integers(0, d + 1))
    V = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(d, d)))[0][:k])
    theta, level, tau = rng.uniform(0, 2, size=k), float(rng.choice([0.0, 1.0])), float(rng.uniform(0, 1))
    if k == d:
        level = 0.0
    u = rng.normal(size=d)
    before = np.maximum(level - tau, 0) * np.eye(d)
    before += (V.T * (np.maximum(theta - tau, 0) - np.maximum(level - tau, 0))) @ V
    w, Q = np.linalg.eigh(before + weight * np.outer(u, u))
    expected = (Q * np.maximum(w - shrink, 0)) @ Q.T
    rows, values, level = clip_step(V, theta, level, tau, u, weight, shrink)
    again = level * np.eye(d) + (rows.T * (values - level)) @ rows
    np.testing.assert_allclose(again, expected, atol=1e-12)
    assert (values >= 0).all()

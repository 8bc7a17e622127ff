"""Projections onto sets of multipliers, and the least residual over them, against cvxpy and closed forms."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.reference.least_residual import least_residual
from spdsl.reference.multipliers import (
    Ball,
    Block,
    Box,
    Congruence,
    L1Cone,
    Simplex,
    Spectrum,
    Subdifferential,
)

SETS = {
    "box": Box(np.array([0.0, -1.0, -np.inf, 0.0]), np.array([1.0, 2.0, 0.5, np.inf])),
    "ball": Ball(0.7),
    "simplex": Simplex(1, 4),
    "simplices": Simplex(2, 2),
    "l1 cone": L1Cone(np.array([1.0, 0.0, -1.0, 0.0])),
    "l1 cone at zero": L1Cone(np.zeros(4)),
    "spectrum": Spectrum(2, -0.5, 0.3),
    "negative semidefinite": Spectrum(2, -np.inf, 0.0),
}


def members(which, t):
    """cvxpy's constraints that t lies in the set, written anew."""
    if isinstance(which, Box):
        low, high = np.isfinite(which.lower), np.isfinite(which.upper)
        return [t[low] >= which.lower[low], t[high] <= which.upper[high]]
    if isinstance(which, Ball):
        return [cp.norm(t) <= which.radius]
    if isinstance(which, Simplex):
        rows = [t[k * which.size : (k + 1) * which.size] for k in range(which.n)]
        return [t >= 0, *(cp.sum(row) == 1 for row in rows)]
    if isinstance(which, L1Cone):
        s = cp.Variable()
        signed = [t[k] == which.sign[k] * s for k in range(4) if which.sign[k]]
        return [s >= 0, *signed, *(cp.abs(t[k]) <= s for k in range(4) if not which.sign[k])]
    matrix = cp.reshape(t, (2, 2), order="C")
    found = [matrix == matrix.T, which.upper * np.eye(2) - matrix >> 0]
    return found + ([matrix - which.lower * np.eye(2) >> 0] if np.isfinite(which.lower) else [])


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=12)
@given(seed=st.integers(0, 10_000))
def test_projections_agree_with_cvxpy(name, seed):
    which = SETS[name]
    point = np.random.default_rng(seed).normal(size=4) * 2
    t = cp.Variable(4)
    cp.Problem(cp.Minimize(cp.sum_squares(t - point)), members(which, t)).solve("CLARABEL")
    np.testing.assert_allclose(which.project(point), t.value, atol=2e-5)
    np.testing.assert_allclose(which.project(which.project(point)), which.project(point), atol=1e-12)


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_the_least_residual_agrees_with_cvxpy(name, seed):
    rng = np.random.default_rng(seed)
    which, p = SETS[name], 6
    rows, g = rng.normal(size=(4, p)), rng.normal(size=p)
    lower, upper = np.where(rng.random(p) < 0.4, -0.3, 0.0), np.where(rng.random(p) < 0.4, 0.3, 0.0)
    parts = Subdifferential(g, lower, upper, [Block(sp.csr_array(rows), which)])
    found = np.linalg.norm(least_residual(parts, 1e-12))
    t, s = cp.Variable(4), cp.Variable(p)
    problem = cp.Problem(cp.Minimize(cp.norm(g + rows.T @ t + s)), [*members(which, t), s >= lower, s <= upper])
    problem.solve("CLARABEL")
    assert found == pytest.approx(problem.value, abs=1e-6)


def test_several_blocks_and_a_fixed_coordinate():
    rng = np.random.default_rng(1)
    g, rows, more = rng.normal(size=5), rng.normal(size=(2, 5)), rng.normal(size=(3, 5))
    fixed = np.array([False, False, False, False, True])
    parts = Subdifferential(
        g,
        np.zeros(5),
        np.zeros(5),
        [Block(sp.csr_array(rows), Box(np.zeros(2), np.ones(2))), Block(sp.csr_array(more), Ball(0.5))],
        fixed=fixed,
    )
    found = least_residual(parts, 1e-12)
    t, s = cp.Variable(2), cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.norm((g + rows.T @ t + more.T @ s)[:4])), [t >= 0, t <= 1, cp.norm(s) <= 0.5])
    problem.solve("CLARABEL")
    assert np.linalg.norm(found) == pytest.approx(problem.value, abs=1e-6)
    assert found[4] == 0


def test_boxes_alone_are_solved_to_machine_precision():
    rng = np.random.default_rng(2)
    rows, t = rng.normal(size=(7, 9)), rng.random(7)
    parts = Subdifferential(
        -rows.T @ t, np.zeros(9), np.zeros(9), [Block(sp.csr_array(rows), Box(np.zeros(7), np.ones(7)))]
    )
    assert np.abs(least_residual(parts, 0.0)).max() < 1e-13


def test_without_blocks_the_intervals_act_by_themselves():
    parts = Subdifferential(np.array([0.5, -2.0, 0.1]), np.array([-1.0, -1, 0]), np.array([1.0, 1, 0]))
    np.testing.assert_allclose(least_residual(parts, 0.0), [0, -1, 0.1])


def test_generators_of_a_null_space_written_out_and_not_agree():
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    kept = Congruence(basis, slice(1, 10), 11)
    full = kept.matrix()
    t, residual = rng.normal(size=4), rng.normal(size=11)
    np.testing.assert_allclose(kept.T @ t, full.T @ t)
    np.testing.assert_allclose(kept @ residual, full @ residual)

"""Anderson's method: exact on affine maps, and never in the way of polishing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spdsl.solvers.comid.anderson import Memory
from spdsl.solvers.comid.divergences import Penalty
from spdsl.solvers.comid.engine import pairs_of
from spdsl.solvers.comid.losses import LOSSES
from spdsl.solvers.comid.polish import Polisher


def test_an_affine_map_is_solved_after_as_many_pairs_as_it_has_dimensions() -> None:
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    A, b = 0.95 * Q, rng.normal(size=5)  # a slow spiral
    fixed = np.linalg.solve(np.eye(5) - A, b)
    memory, t = Memory(), np.zeros(5)
    assert memory.guess() is None
    for _ in range(6):
        memory, t = memory.with_pair(A @ t + b, A @ t + b - t), A @ t + b
    assert np.linalg.norm(t - fixed) > 0.5 * np.linalg.norm(fixed)
    guess = memory.guess()
    assert guess is not None
    np.testing.assert_allclose(guess, fixed, atol=1e-6)
    assert memory.cleared().guess() is None


def test_the_memory_is_as_deep_as_it_says() -> None:
    memory = Memory(depth=3)
    for k in range(9):
        memory = memory.with_pair(np.full(2, float(k)), np.full(2, 1.0 / (k + 1)))
    assert len(memory.images) == len(memory.residuals) == 3


@pytest.mark.parametrize("seed", [0, 1])
def test_polishing_reaches_the_plain_methods_optimum_in_fewer_iterations(seed: int) -> None:
    """The plain method is the same with a memory that keeps nothing. The start knows no multipliers."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(60, 4))
    y = np.where(np.abs(U[:, 0]) < 1.0, 1.0, -1.0)
    pairs = pairs_of(U, y, LOSSES["hinge"])

    def prox(v: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        weight = 1.0 / (60.0 * sigma)  # of the mean of hinges
        return np.where(v >= 1.0, v, np.minimum(v + weight, 1.0))

    polisher = Polisher(pairs, prox, Penalty(trace=0.05), 1.0, np.inf)
    start = polisher.start(np.eye(4), 1.0, np.zeros(60))
    fast = polisher.advance(start, 20_000, 1e-8)
    plain = polisher.advance(replace(start, memory=Memory(depth=0)), 20_000, 1e-8)
    assert fast.residual <= 1e-8
    assert plain.residual <= 1e-8
    assert fast.iterations < plain.iterations
    (M, mu), (N, nu) = polisher.answer(fast), polisher.answer(plain)
    np.testing.assert_allclose([*M.ravel(), mu], [*N.ravel(), nu], atol=1e-5)

"""One COMID step is the minimizer of its definition (eqs. 7 and 8), held against cvxpy for every divergence and
penalty.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from spdsl.diagnostics import SolverError
from spdsl.solvers.comid.divergences import Burg, Divergence, Penalty, Schatten, SquaredFrobenius, VonNeumann
from spdsl.solvers.comid.losses import LOSSES
from spdsl.solvers.comid.naive import dual_matrix, metric_step

cp = pytest.importorskip("cvxpy")

DIVERGENCES = [SquaredFrobenius(), VonNeumann(), Burg(), Schatten(2.0), Schatten(1.3), Schatten(3.0)]
PENALTIES = {
    "none": Penalty(),
    "trace": Penalty(trace=0.4),
    "ridge": Penalty(ridge=0.7),
    "trace_and_ridge": Penalty(trace=0.2, ridge=0.5),
    "frobenius": Penalty(norm=0.5),
    "l1": Penalty(l1=0.15),
    "l1_and_trace": Penalty(trace=0.1, l1=0.1),
}


def _name(divergence: Divergence) -> str:
    return divergence.name + (str(divergence.p) if isinstance(divergence, Schatten) else "")


def _reference(
    divergence: Divergence, M_t: np.ndarray, G: np.ndarray, eta: float, penalty: Penalty
) -> tuple[np.ndarray, float]:
    """cvxpy's minimizer and minimum of psi(M) - <grad psi(M_t) - eta G, M> + eta r(M)."""
    d = len(M_t)
    M = cp.Variable((d, d), PSD=True)
    if isinstance(divergence, VonNeumann):
        psi = -cp.von_neumann_entr(M) - cp.trace(M)
    elif isinstance(divergence, Burg):
        psi = -cp.log_det(M)
    elif isinstance(divergence, SquaredFrobenius):
        psi = cp.sum_squares(M) / 2
    else:
        raise AssertionError
    target = dual_matrix(divergence, M_t) - eta * G
    objective = psi - cp.trace(target @ M) + eta * _penalty(penalty, M)
    problem = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return M.value, float(problem.value)


def _penalty(penalty: Penalty, M: cp.Variable) -> cp.Expression:
    return (
        penalty.trace * cp.trace(M)
        + penalty.ridge / 2 * cp.sum_squares(M)
        + penalty.norm * cp.norm(M, "fro")
        + penalty.l1 * cp.sum(cp.abs(M))
    )


def _problem(seed: int, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    u, v = rng.normal(size=(2, d))
    return A @ A.T / d + 0.3 * np.eye(d), 0.5 * np.outer(u, u) - 0.6 * np.outer(v, v)


def _value(
    divergence: Divergence, M: np.ndarray, M_t: np.ndarray, G: np.ndarray, eta: float, penalty: Penalty
) -> float:
    m = np.linalg.eigvalsh(M)
    if divergence.clips:
        m = np.maximum(m, 0.0)
    target = dual_matrix(divergence, M_t) - eta * G
    return divergence.potential(m, np.ones(len(m))) - float(np.sum(target * M)) + eta * penalty.value(M)


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())
@pytest.mark.parametrize("divergence", DIVERGENCES[:3], ids=_name)
def test_metric_step_equals_cvxpy(divergence: Divergence, penalty: Penalty) -> None:
    eta = 0.3
    M_t, G = _problem(1)
    _, M = metric_step(divergence, dual_matrix(divergence, M_t), G, eta, penalty)
    reference, optimum = _reference(divergence, M_t, G, eta, penalty)
    mine = _value(divergence, M, M_t, G, eta, penalty)
    assert mine <= optimum + 2e-7 * (1 + abs(optimum))
    np.testing.assert_allclose(M, reference, atol=2e-4)


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())
@pytest.mark.parametrize("divergence", DIVERGENCES, ids=_name)
def test_no_feasible_neighbour_is_better_and_theta_is_the_gradient(divergence: Divergence, penalty: Penalty) -> None:
    """Covers Schatten too, which cvxpy cannot state for a general p; a convex local minimum is global."""
    eta = 0.3
    M_t, G = _problem(2)
    theta, M = metric_step(divergence, dual_matrix(divergence, M_t), G, eta, penalty)
    best = _value(divergence, M, M_t, G, eta, penalty)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(60):
            A = rng.normal(size=M.shape)
            other = M + size * (A + A.T)
            w, V = np.linalg.eigh(other)
            other = (V * np.maximum(w, 1e-9)) @ V.T
            assert _value(divergence, other, M_t, G, eta, penalty) >= best - 1e-9
    np.testing.assert_allclose(dual_matrix(divergence, M), theta, atol=1e-6)


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0, 4.0])
def test_schatten_step_on_a_diagonal_problem_equals_cvxpy(p: float) -> None:
    """With everything diagonal the step is a vector problem that cvxpy can state."""
    rng = np.random.default_rng(3)
    m_t, g, eta, penalty = rng.uniform(0.2, 2, 5), rng.normal(size=5) * 3, 0.4, Penalty(trace=0.3, ridge=0.2)
    divergence = Schatten(p)
    _, M = metric_step(divergence, dual_matrix(divergence, np.diag(m_t)), np.diag(g), eta, penalty)
    m = cp.Variable(5, nonneg=True)
    target = divergence.dual(m_t, np.ones(5)) - eta * g
    objective = cp.square(cp.pnorm(m, p)) / 2 - target @ m + eta * (0.3 * cp.sum(m) + 0.1 * cp.sum_squares(m))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    np.testing.assert_allclose(np.diag(M), m.value, atol=2e-4)
    np.testing.assert_allclose(M, np.diag(np.diag(M)), atol=1e-12)


def test_schatten_two_is_squared_frobenius() -> None:
    M_t, G = _problem(4)
    for penalty in (Penalty(trace=0.3), Penalty(ridge=0.4), Penalty(norm=0.4, ridge=0.1)):
        one = metric_step(Schatten(2.0), M_t, G, 0.5, penalty)[1]
        two = metric_step(SquaredFrobenius(), M_t, G, 0.5, penalty)[1]
        np.testing.assert_allclose(one, two, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("divergence", DIVERGENCES[:3], ids=_name)
def test_mu_step_equals_cvxpy(divergence: Divergence, label: float, name: str) -> None:
    """Proposition 2 (eq. 13): the scalar step, then the clip at 1."""
    mu_t, eta = 1.4, 0.3
    g = eta * float(LOSSES[name].derivative(np.array(label * (mu_t - 1.1)))) * label
    mu = cp.Variable()
    if isinstance(divergence, VonNeumann):
        psi, slope = -cp.entr(mu) - mu, np.log(mu_t)
    elif isinstance(divergence, Burg):
        psi, slope = -cp.log(mu), -1 / mu_t
    else:
        psi, slope = cp.square(mu) / 2, mu_t
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1e-12 is asked for, "inaccurate" means 1e-10 was reached
        cp.Problem(cp.Minimize(psi - slope * mu + g * mu), [mu >= 1]).solve(
            solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
    assert max(divergence.scalar_step(mu_t, g), 1.0) == pytest.approx(float(mu.value), abs=2e-5)


def test_unbounded_burg_step_says_so() -> None:
    with pytest.raises(SolverError, match="unbounded"):
        metric_step(Burg(), -np.eye(3), -5.0 * np.eye(3), 1.0, Penalty(trace=0.1))
    with pytest.raises(SolverError, match="unbounded"):
        Burg().scalar_step(1.0, -2.0)


def test_a_burg_step_that_a_ridge_bounds_is_made() -> None:
    theta, M = metric_step(Burg(), -np.eye(3), -5.0 * np.eye(3), 1.0, Penalty(ridge=1.0))
    np.testing.assert_allclose(np.linalg.inv(M), -theta, atol=1e-12)
    np.testing.assert_allclose(-np.linalg.inv(M) - 4.0 * np.eye(3) + M, 0.0, atol=1e-10)


def test_papers_proposition_1_is_not_the_minimizer_for_von_neumann() -> None:
    """Thresholding grad psi(M) at eta rho (eq. 12) gives a larger value of (10) than the exact step."""
    divergence, penalty = VonNeumann(), Penalty(trace=0.5)
    M_t, G = _problem(6)
    theta = dual_matrix(divergence, M_t) - 0.3 * G
    w, V = np.linalg.eigh(theta)
    printed = (V * np.exp(np.sign(w) * np.maximum(np.abs(w) - 0.15, 0.0))) @ V.T
    _, exact = metric_step(divergence, dual_matrix(divergence, M_t), G, 0.3, penalty)
    assert _value(divergence, exact, M_t, G, 0.3, penalty) < _value(divergence, printed, M_t, G, 0.3, penalty) - 1e-4

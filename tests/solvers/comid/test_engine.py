"""The fast representations give the M of a full eigendecomposition, in every regime, and runs can be cut
anywhere.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.diagnostics import SolverError, UsageError
from spdsl.solvers.comid import loops, spectrum
from spdsl.solvers.comid.divergences import Penalty, Schatten, SquaredFrobenius, divergence_named
from spdsl.solvers.comid.engine import MetricState, PairSet, Settings, Trace, advance, begin, pairs_of
from spdsl.solvers.comid.losses import LOSSES, MarginLoss, loss_named
from spdsl.solvers.comid.representations import Dense, Factors, Spectrum

TRACE = Penalty(trace=0.1)


def _pairs(d: int, T: int, loss: str = "hinge", seed: int = 0, informative: int | None = None) -> PairSet:
    rng = np.random.default_rng(seed)
    centers = np.zeros((5, d))
    centers[:, : informative or max(2, d // 5)] = 2 * rng.normal(size=(5, informative or max(2, d // 5)))
    labels = rng.integers(0, 5, size=(T, 2))
    same = rng.random(T) < 0.5
    labels[same, 1] = labels[same, 0]
    U = centers[labels[:, 0]] - centers[labels[:, 1]] + np.sqrt(2) * rng.normal(size=(T, d))
    U /= np.median(np.linalg.norm(U, axis=1))
    return pairs_of(U, np.where(labels[:, 0] == labels[:, 1], 1.0, -1.0), LOSSES[loss])


def _run(pairs: PairSet, options: Settings, order: np.ndarray | None = None) -> tuple[MetricState, Trace]:
    order = np.arange(len(pairs)) if order is None else order
    return advance(begin(pairs.U.shape[1], options), options, pairs, order, want_traces=True)


def _assert_same(fast: tuple[MetricState, Trace], exact: tuple[MetricState, Trace], tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(fast[0].representation.matrix(), exact[0].representation.matrix(), atol=tolerance)
    assert fast[0].mu == pytest.approx(exact[0].mu, abs=tolerance)
    np.testing.assert_allclose(fast[1].margins, exact[1].margins, atol=10 * tolerance)
    np.testing.assert_allclose(
        fast[1].traces, exact[1].traces, atol=10 * tolerance * fast[0].representation.matrix().shape[0]
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["squared_frobenius", "von_neumann", "burg", "schatten"])
def test_fast_equals_full_eigendecomposition_for_every_divergence_and_loss(name: str, loss: str) -> None:
    options = Settings(divergence_named(name), TRACE, step=0.2)
    pairs = _pairs(12, 400, loss)
    _assert_same(_run(pairs, options), _run(pairs, replace(options, reference=True)))


@pytest.mark.parametrize(
    "penalty",
    [Penalty(), Penalty(ridge=0.2), Penalty(trace=0.05, ridge=0.1), Penalty(norm=0.1), Penalty(trace=0.05, norm=0.05)],
    ids=["none", "ridge", "trace_ridge", "frobenius", "trace_frobenius"],
)
@pytest.mark.parametrize("name", ["squared_frobenius", "von_neumann", "burg", "schatten"])
def test_fast_equals_full_eigendecomposition_for_every_penalty(name: str, penalty: Penalty) -> None:
    options = Settings(divergence_named(name), penalty, step=0.2)
    pairs = _pairs(8, 30 if penalty.norm else 150)
    _assert_same(_run(pairs, options), _run(pairs, replace(options, reference=True)))


@pytest.mark.parametrize("step", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("rho", [0.0, 0.005, 0.1, 1.0])
def test_every_regime_of_rank_is_exact(rho: float, step: float) -> None:
    """From a full rank that never clips to rank 0."""
    options = Settings(SquaredFrobenius(), Penalty(trace=rho), step=step)
    pairs = _pairs(30, 900)
    _assert_same(_run(pairs, options), _run(pairs, replace(options, reference=True)))


def test_each_representation_is_used_somewhere() -> None:
    kinds = set()
    for rho, step, d in ((0.005, 0.02, 30), (0.1, 0.02, 90), (0.3, 1.0, 30)):
        options = Settings(SquaredFrobenius(), Penalty(trace=rho), step=step)
        pairs = _pairs(d, 300)
        for stop in (20, 300):
            kinds.add(type(_run(pairs, options, np.arange(stop))[0].representation))
    assert kinds == {Factors, Dense, Spectrum}


@pytest.mark.parametrize("name", ["von_neumann", "burg"])
def test_full_rank_duals_by_quadrature_are_exact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectrum, "_dual_limit", lambda d: d // 6)  # for speed it starts at 100 rows
    options = Settings(divergence_named(name), TRACE, step=0.3)
    pairs = _pairs(40, 250)
    fast = _run(pairs, options)
    assert type(fast[0].representation).__name__ == "DenseDual"
    _assert_same(fast, _run(pairs, replace(options, reference=True)))


@pytest.mark.parametrize("name", ["squared_frobenius", "von_neumann", "burg", "schatten"])
@pytest.mark.parametrize("batch", [2, 7])
def test_batches_are_exact(name: str, batch: int) -> None:
    options = Settings(divergence_named(name), TRACE, step=0.4, batch=batch)
    for d in (6, 32):
        pairs = _pairs(d, 100)
        _assert_same(_run(pairs, options), _run(pairs, replace(options, reference=True)))


@pytest.mark.parametrize("average", ["none", "uniform", "linear"])
@pytest.mark.parametrize("name", ["squared_frobenius", "von_neumann", "burg", "schatten"])
def test_runs_cut_anywhere_are_equal_bit_for_bit(name: str, average: str) -> None:
    options = Settings(divergence_named(name), TRACE, step=0.3, average=average)
    pairs = _pairs(27, 420)
    whole, _ = _run(pairs, options)
    state = begin(27, options)
    for piece in np.split(np.arange(420), [1, 2, 50, 51, 300, 411]):
        state, _ = advance(state, options, pairs, piece)
    assert state.mu == whole.mu
    assert np.array_equal(state.representation.matrix(), whole.representation.matrix())
    one, two = state.metric(options), whole.metric(options)
    assert one[1] == two[1]
    assert np.array_equal(one[0], two[0])


@pytest.mark.parametrize("average", ["uniform", "linear"])
@pytest.mark.parametrize("name", ["squared_frobenius", "von_neumann", "schatten"])
@pytest.mark.parametrize("batch", [1, 3])
def test_average_is_the_mean_of_the_iterates(name: str, average: str, batch: int) -> None:
    options = Settings(divergence_named(name), TRACE, step=0.5, average=average, batch=batch)
    pairs = _pairs(26, 150)
    final, _ = _run(pairs, options)
    state, total, mu, weight = begin(26, options), np.zeros((26, 26)), 0.0, 0.0
    for t in range(150 // batch):
        w = t + 1.0 if average == "linear" else 1.0
        total, mu, weight = total + w * state.representation.matrix(), mu + w * state.mu, weight + w
        state, _ = advance(state, options, pairs, np.arange(batch * t, batch * (t + 1)))
    M, mean_mu = final.metric(options)
    np.testing.assert_allclose(M, total / weight, atol=1e-11)
    assert mean_mu == pytest.approx(mu / weight, abs=1e-11)


def test_a_state_is_not_changed_by_going_on_from_it() -> None:
    options = Settings(SquaredFrobenius(), TRACE, step=0.1)
    for d in (5, 30):
        pairs = _pairs(d, 200)
        early, _ = _run(pairs, options, np.arange(100))
        before = early.representation.matrix()
        one, _ = advance(early, options, pairs, np.arange(100, 200))
        two, _ = advance(early, options, pairs, np.arange(100, 200))
        assert np.array_equal(before, early.representation.matrix())
        assert np.array_equal(one.representation.matrix(), two.representation.matrix())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["squared_frobenius", "von_neumann", "burg"])
def test_one_full_step_equals_cvxpy_from_the_definition(name: str, loss: str) -> None:
    """The loss's gradient by finite differences of the loss itself, then (7) and (8) stated as they are."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(5)
    d, eta, rho = 3, 0.2, 0.3
    u = rng.normal(size=d)
    options = Settings(divergence_named(name), Penalty(trace=rho), step=eta)
    for label in (-1.0, 1.0):
        pairs = pairs_of(u[None], np.array([label]), LOSSES[loss])
        state, _ = _run(pairs, options)

        def value(M: np.ndarray, mu: float, label: float = label) -> float:
            return float(LOSSES[loss].value(np.array(label * (mu - u @ M @ u))))

        h = 1e-6
        G = np.zeros((d, d))
        for i in range(d):
            for j in range(d):
                E = np.zeros((d, d))
                E[i, j] = h
                G[i, j] = (value(np.eye(d) + E, 1.0) - value(np.eye(d) - E, 1.0)) / (2 * h)
        g = (value(np.eye(d), 1.0 + h) - value(np.eye(d), 1.0 - h)) / (2 * h)
        M, mu = cp.Variable((d, d), PSD=True), cp.Variable()
        if name == "von_neumann":
            psi, slope = -cp.von_neumann_entr(M) - cp.trace(M), np.zeros((d, d))
            psi_mu, slope_mu = -cp.entr(mu) - mu, 0.0
        elif name == "burg":
            psi, slope, psi_mu, slope_mu = -cp.log_det(M), -np.eye(d), -cp.log(mu), -1.0
        else:
            psi, slope, psi_mu, slope_mu = cp.sum_squares(M) / 2, np.eye(d), cp.square(mu) / 2, 1.0
        exact = {"solver": "CLARABEL", "tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "inaccurate" here means short of 1e-11
            cp.Problem(cp.Minimize(psi - cp.trace(slope @ M) + eta * cp.trace(G @ M) + eta * rho * cp.trace(M))).solve(
                **exact
            )
            cp.Problem(cp.Minimize(psi_mu - slope_mu * mu + eta * g * mu), [mu >= 1]).solve(**exact)
        np.testing.assert_allclose(state.representation.matrix(), M.value, atol=1e-4)
        assert state.mu == pytest.approx(float(mu.value), abs=1e-4)


def test_long_runs_reach_the_sdp_optimum() -> None:
    """Averaged COMID on objective (4) against cvxpy's optimum; the gap falls as passes are added."""
    cp = pytest.importorskip("cvxpy")
    pairs = _pairs(4, 120, seed=3)
    rho = 0.1
    M, mu = cp.Variable((4, 4), PSD=True), cp.Variable()
    z = cp.multiply(pairs.sign, mu - cp.sum(cp.multiply(pairs.U @ M, pairs.U), axis=1))
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - z)) / 120 + rho * cp.trace(M)), [mu >= 1])
    problem.solve(solver="CLARABEL")
    options = Settings(SquaredFrobenius(), Penalty(trace=rho), step=0.5, average="linear")
    gaps = []
    for passes in (1, 10, 100):
        rng = np.random.default_rng(0)
        state, _ = _run(pairs, options, np.concatenate([rng.permutation(120) for _ in range(passes)]))
        M_hat, mu_hat = state.metric(options)
        z_hat = pairs.sign * (mu_hat - np.einsum("ij,ij->i", pairs.U @ M_hat, pairs.U))
        gaps.append(float(np.maximum(1 - z_hat, 0).mean() + rho * np.trace(M_hat) - problem.value))
    assert min(gaps) > -1e-7
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 2e-3 * problem.value


@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0, 2), st.floats(0.01, 3))
@settings(max_examples=30, deadline=None)
def test_m_stays_psd_and_mu_at_least_one(seed: int, d: int, rho: float, step: float) -> None:
    for divergence in (SquaredFrobenius(), Schatten(1.5)):
        options = Settings(divergence, Penalty(trace=rho), step=step)
        state, trace = _run(_pairs(d, 60, seed=seed, informative=1), options)
        eigenvalues = np.linalg.eigvalsh(state.representation.matrix())
        assert eigenvalues[0] >= -1e-10 * max(1.0, eigenvalues[-1])
        assert state.mu >= 1.0
        assert (trace.traces >= -1e-10 * np.abs(trace.traces).max()).all()


@given(st.integers(0, 10_000), st.floats(0, 3), st.floats(0, 3))
@settings(max_examples=40, deadline=None)
def test_shrinking_twice_is_shrinking_by_the_sum(seed: int, a: float, b: float) -> None:
    theta = np.random.default_rng(seed).normal(size=6) * 2
    ones = np.ones(6)
    for divergence in (SquaredFrobenius(), Schatten(1.4), divergence_named("von_neumann")):
        once, _ = divergence.shrink(theta, ones, Penalty(trace=a + b))
        twice, _ = divergence.shrink(divergence.shrink(theta, ones, Penalty(trace=a))[0], ones, Penalty(trace=b))
        np.testing.assert_allclose(once, twice, atol=1e-12)


@given(st.integers(0, 10_000), st.sampled_from(["squared_frobenius", "von_neumann", "burg", "schatten"]))
@settings(max_examples=60, deadline=None)
def test_proximal_steps_meet_their_stationarity_condition(seed: int, name: str) -> None:
    """grad psi(m) + c m + k m/||m|| = theta where m > 0, and <= where m = 0."""
    rng = np.random.default_rng(seed)
    divergence = divergence_named(name, rng.uniform(1.1, 4))
    theta, counts = rng.normal(size=5) * 2 - (4 if name == "burg" else 0), np.ones(5)
    penalty = Penalty(trace=rng.uniform(0, 1), ridge=rng.uniform(0, 1), norm=rng.uniform(0, 1))
    dual, m = divergence.shrink(theta, counts, penalty)
    size = np.linalg.norm(m)
    if size == 0:
        assert np.linalg.norm(np.maximum(theta - penalty.trace, 0)) <= penalty.norm + 1e-12
        return
    residual = divergence.dual(m, counts) + penalty.trace + penalty.ridge * m + penalty.norm * m / size - theta
    scale = 1 + np.abs(theta).max()
    assert np.abs(residual[m > 0]).max() <= 1e-8 * scale
    assert (residual[m == 0] >= -1e-8 * scale).all()
    np.testing.assert_allclose(dual, divergence.dual(m, counts), atol=1e-8 * scale)


def test_compiled_scans_equal_their_python_twins() -> None:
    pairs = _pairs(9, 60)
    for name in ("squared_frobenius", "von_neumann", "burg"):
        state, _ = _run(pairs, Settings(divergence_named(name), TRACE, step=0.2), np.arange(5))
        M = state.representation
        if isinstance(M, Factors):
            M = M.spectrum()
        eta = np.full(60, 0.01)
        for flat in (0.9, -50.0):
            results = []
            for function in (loops.scan_spectrum.py_func, loops.scan_spectrum):
                margins, traces = np.zeros(60), np.zeros(60)
                stop, tau = function(
                    pairs.U, pairs.sign, pairs.slope, pairs.offset, np.full(60, flat), pairs.high, eta, 0, M.V,
                    M.theta, M.level, M.tau, 1.2, M.kind, np.inf, margins, traces,
                )  # fmt: skip
                results.append((stop, tau, margins, traces))
            assert results[0][0] == results[1][0]
            assert results[0][1] == pytest.approx(results[1][1], rel=1e-14)
            np.testing.assert_allclose(results[0][2], results[1][2], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(results[0][3], results[1][3], rtol=1e-12, atol=1e-12)


def test_identical_pairs_change_mu_only_and_rank_zero_goes_on() -> None:
    options = Settings(SquaredFrobenius(), Penalty(trace=5.0), step=1.0)
    pairs = pairs_of(np.zeros((20, 3)), np.array([1.0, -1.0] * 10), LOSSES["hinge"])
    state, _ = _run(pairs, options)
    assert np.array_equal(state.representation.matrix(), np.zeros((3, 3)))
    assert state.mu >= 1.0
    again = pairs_of(np.eye(3), -np.ones(3), LOSSES["hinge"])
    grown, _ = advance(state, replace(options, penalty=Penalty(trace=0.01)), again, np.arange(3))
    assert np.linalg.matrix_rank(grown.representation.matrix()) == 3


def test_unbounded_burg_and_overflow_are_errors_that_name_the_mend() -> None:
    for d in (3, 60):
        U = _pairs(d, 60).U * 0.02
        U[-1] *= 0.8 / np.linalg.norm(U[-1])
        options = Settings(divergence_named("burg"), Penalty(), step=3.0, schedule="constant")
        pairs = pairs_of(U, -np.ones(60), LOSSES["hinge"])
        _run(pairs, options, np.arange(59))
        with pytest.raises(SolverError, match="unbounded"):
            _run(pairs, options)
    with pytest.raises(SolverError, match="lower `step`"):
        _run(
            pairs_of(np.full((50, 3), 1e4), np.ones(50), LOSSES["exponential"]),
            Settings(SquaredFrobenius(), TRACE, step=1.0),
        )


def test_a_users_own_loss_runs_on_the_same_engine() -> None:
    """A loss written as two functions; with no flat part it still equals the reference."""
    loss = MarginLoss(
        "mine", lambda z: np.sqrt(1 + (1 - z) ** 2) - z, lambda z: (z - 1) / np.sqrt(1 + (1 - z) ** 2) - 1
    )
    pairs = _pairs(7, 100)
    mine = pairs_of(pairs.U, pairs.sign, loss)
    options = Settings(SquaredFrobenius(), TRACE, step=0.3)
    _assert_same(_run(mine, options), _run(mine, replace(options, reference=True)))


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean `logistic`"):
        loss_named("logistc")
    with pytest.raises(UsageError, match="p > 1"):
        Schatten(1.0)
    with pytest.raises(UsageError, match="`batch`"):
        Settings(SquaredFrobenius(), TRACE, batch=0)
    with pytest.raises(UsageError, match="`schedule`"):
        Settings(SquaredFrobenius(), TRACE, schedule="cubic")  # type: ignore[arg-type]


@given(
    st.integers(0, 10_000), st.floats(0.02, 0.5), st.floats(0, 0.3), st.sampled_from(["squared_frobenius", "schatten"])
)
@settings(max_examples=15, deadline=None)
def test_regret_obeys_the_bound_of_comid(seed: int, eta: float, rho: float, name: str) -> None:
    """sum [loss_t(w_t) + r(w_{t+1})] - sum [loss_t(w) + r(w)] <= B(w, w_1)/eta + eta/2 sum |g_t|^2 for every w.

    From the proof of Duchi et al. (2010); |.| is the dual norm, and psi (p - 1)-strongly convex for p <= 2.
    """
    d, T = 3, 120
    divergence = divergence_named(name, 1.5)
    strong = 1.0 if name == "squared_frobenius" else 0.5
    pairs = _pairs(d, T, "smoothed_hinge", seed=seed)
    loss = LOSSES["smoothed_hinge"]
    options = Settings(divergence, Penalty(trace=rho), step=eta, schedule="constant")
    state, trace = _run(pairs, options)
    met = float(loss.value(trace.margins).sum()) + rho * (
        trace.traces[1:].sum() + np.trace(state.representation.matrix())
    )
    sizes = np.linalg.norm(pairs.U, axis=1) ** 2  # every Schatten norm of u u'
    slopes = loss.derivative(trace.margins)
    gradients = float(np.sum(slopes**2 * (sizes**2 / strong + 1.0)))
    rng = np.random.default_rng(seed)
    for _ in range(5):
        A = rng.normal(size=(d, d)) * rng.uniform(0, 1.5)
        M, mu = A @ A.T + 1e-9 * np.eye(d), 1.0 + rng.exponential()
        z = pairs.sign * (mu - np.einsum("ti,ij,tj->t", pairs.U, M, pairs.U))
        fixed = float(loss.value(z).sum()) + T * rho * np.trace(M)
        distance = divergence.divergence(M, np.eye(d)) + 0.5 * (mu - 1.0) ** 2
        assert met - fixed <= distance / eta + 0.5 * eta * gradients + 1e-8

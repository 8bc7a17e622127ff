"""One vector COMID step is the minimizer of its definition, held against cvxpy for every mirror map and set."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.diagnostics import UsageError
from spdsl.solvers.comid.vector import Domain, VectorMirror, project_simplex, refusal

cp = pytest.importorskip("cvxpy")
D = 5
BOX = Domain("box", np.array([-1.0, -0.5, -2.0, 0.2, -3.0]), np.array([1.0, 0.8, -0.3, 1.5, 0.4]))
DOMAINS = {
    "free": Domain(),
    "orthant": Domain("orthant"),
    "box": BOX,
    "simplex": Domain("simplex", radius=1.5),
    "l2_ball": Domain("l2_ball", radius=0.9),
    "l1_ball": Domain("l1_ball", radius=1.2),
}
CASES = [
    (mirror, name, l1, ridge)
    for mirror in ("euclidean", "p_norm", "entropic")
    for name, domain in DOMAINS.items()
    for l1 in (0.0, 0.6)
    for ridge in (0.0, 0.5)
    if refusal(mirror, domain, ridge > 0) is None
]


def _constraints(domain: Domain, w: cp.Variable) -> list[cp.Constraint]:
    return {
        "free": [],
        "orthant": [w >= 0],
        "box": [w >= domain.lower, w <= domain.upper] if domain.kind == "box" else [],
        "simplex": [w >= 0, cp.sum(w) == domain.radius],
        "l2_ball": [cp.norm(w, 2) <= domain.radius],
        "l1_ball": [cp.norm1(w) <= domain.radius],
    }[domain.kind]


def _solve(objective: cp.Expression, constraints: list[cp.Constraint]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1e-11 is asked for, "inaccurate" means a little less was reached
        cp.Problem(cp.Minimize(objective), constraints).solve(
            solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
        )


@pytest.mark.parametrize(("mirror", "name", "l1", "ridge"), CASES)
def test_step_equals_cvxpy(mirror: str, name: str, l1: float, ridge: float) -> None:
    domain, eta, rng = DOMAINS[name], 0.4, np.random.default_rng(7)
    p = 1.4
    map_ = VectorMirror(mirror, domain, l1, ridge, p)
    state = map_.start(D)
    for _ in range(3):
        g = 2.0 * rng.normal(size=D)
        after = map_.step(state, g, eta)
        w_t, w = map_.value(state), cp.Variable(D)
        penalty = eta * (l1 * cp.norm1(w) + ridge / 2 * cp.sum_squares(w))
        if mirror == "euclidean":
            _solve(cp.sum_squares(w - w_t) / 2 + eta * (g @ w) + penalty, _constraints(domain, w))
        elif mirror == "p_norm":
            size = np.linalg.norm(w_t, p)
            slope = np.sign(w_t) * np.abs(w_t) ** (p - 1) * size ** (2 - p) if size > 0 else np.zeros(D)
            _solve(cp.square(cp.pnorm(w, p)) / 2 - slope @ w + eta * (g @ w) + penalty, _constraints(domain, w))
        elif domain.kind == "box":
            a, b = domain.lower, domain.upper
            slope = np.log(w_t - a) - np.log(b - w_t)
            psi = -cp.sum(cp.entr(w - a)) - cp.sum(cp.entr(b - w))
            _solve(psi - slope @ w + eta * (g @ w) + penalty, [])
        elif domain.kind == "l1_ball":
            v = cp.Variable(2 * D)
            psi = -cp.sum(cp.entr(v)) - cp.sum(v) - np.log(state) @ v
            both = np.concatenate([g, -g])
            _solve(psi + eta * (both @ v) + eta * l1 * cp.sum(v), [cp.sum(v) <= domain.radius])
            w = v[:D] - v[D:]
        else:
            psi = -cp.sum(cp.entr(w)) - cp.sum(w) - np.log(w_t) @ w
            _solve(psi + eta * (g @ w) + penalty, _constraints(domain, w))
        np.testing.assert_allclose(map_.value(after), w.value, atol=2e-4)
        state = after


def test_refused_combinations_say_why() -> None:
    with pytest.raises(UsageError, match="no exact step on a box"):
        VectorMirror("p_norm", BOX)
    with pytest.raises(UsageError, match="needs w >= 0"):
        VectorMirror("entropic", Domain())
    with pytest.raises(UsageError, match="bounded on both sides"):
        VectorMirror("entropic", Domain("box", np.zeros(2), np.full(2, np.inf)))
    with pytest.raises(UsageError, match="p > 1"):
        VectorMirror("p_norm", Domain(), p=1.0)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_simplex_projection_is_feasible_and_idempotent_and_obeys_the_obtuse_angle(
    v: list[float], radius: float
) -> None:
    x = np.array(v)
    w = project_simplex(x, radius)
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(radius, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(project_simplex(w, radius), w, atol=1e-9 * (1 + radius))
    for vertex in radius * np.eye(len(x)):  # <x - w, z - w> <= 0 for every z of the simplex
        assert (x - w) @ (vertex - w) <= 1e-6 * (1 + np.abs(x).max()) * (1 + radius)


@given(st.integers(0, 10_000), st.sampled_from([(m, n) for m, n, l1, r in CASES if l1 == 0 and r == 0]))
@settings(max_examples=40, deadline=None)
def test_iterates_stay_in_the_set(seed: int, case: tuple[str, str]) -> None:
    rng = np.random.default_rng(seed)
    domain = DOMAINS[case[1]]
    map_ = VectorMirror(case[0], domain, l1=0.1)
    state = map_.start(D)
    for _ in range(5):
        state = map_.step(state, rng.normal(size=D) * 5, 0.7)
        w = map_.value(state)
        if domain.kind in ("orthant", "simplex"):
            assert (w >= 0).all()
        if domain.kind == "simplex":
            assert w.sum() == pytest.approx(domain.radius)
        if domain.kind == "box":
            assert (w >= domain.lower).all()
            assert (w <= domain.upper).all()
        if domain.kind == "l2_ball":
            assert np.linalg.norm(w) <= domain.radius * (1 + 1e-12)
        if domain.kind == "l1_ball":
            assert np.abs(w).sum() <= domain.radius * (1 + 1e-12)

"""Models solved by `comid` from their text: near cvxpy's optimum, refusals in sentences, runs that can be repeated."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import spdsl
from spdsl.diagnostics import SolverError, UsageError
from spdsl.solution import Solution, Status
from spdsl.solvers.comid import Comid

METRIC = """
data
  U : matrix(T, d)
  V : matrix(T, d)
  y : labels(T)
parameter
  rho = 0.05
variable
  M  : symmetric(d)
  mu : scalar
minimize
  loss         {loss}
  regularizer  {regularizer}
subject to
  M >> 0
  mu >= 1
solve
  comid({options})
"""
MARGIN = "y * (mu - mahalanobis(M, U - V))"
VECTOR = """
data
  X : matrix(n, d)
  y : labels(n)
parameter
  rho = 0.05
variable
  w : vector(d)
  {b}
minimize
  loss  {loss}
  {regularizer}
subject to
  {constraints}
solve
  comid({options})
"""


def _model(
    loss: str = f"hinge({MARGIN}) / T", regularizer: str = "rho * trace_norm(M)", options: str = "seed = 1"
) -> spdsl.Model:
    return spdsl.parse(METRIC.format(loss=loss, regularizer=regularizer, options=options))


def _pairs(T: int = 60, d: int = 3, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(2, T, d))
    y = np.where(np.abs(U - V)[:, 0] < 1.0, 1.0, -1.0)
    return {"U": U, "V": V, "y": y}


def _solve(model: spdsl.Model, data: dict[str, Any], **options: Any) -> Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.solve(**data, options=options)
    assert isinstance(result, Solution)
    return result


LOSSES = {
    "hinge": (f"hinge({MARGIN}) / T", lambda cp, z: cp.pos(1 - z)),
    "squared_hinge": (f"squared_hinge({MARGIN}) / T", lambda cp, z: cp.square(cp.pos(1 - z))),
    "logistic": (f"logistic({MARGIN}) / T", lambda cp, z: cp.logistic(-z)),
    "exponential": (f"exp(-{MARGIN}) / T", lambda cp, z: cp.exp(-z)),
    "written": (f"max(0, 1 - {MARGIN}, 2 - 3 * {MARGIN}) / T", lambda cp, z: cp.maximum(0, 1 - z, 2 - 3 * z)),
}
REGULARIZERS = {
    "rho * trace_norm(M)": lambda cp, M: 0.05 * cp.trace(M),
    "rho * sum_squares(M)": lambda cp, M: 0.05 * cp.sum_squares(M),
    "rho * norm(M)": lambda cp, M: 0.05 * cp.norm(M, "fro"),
    "rho * norm1(M)": lambda cp, M: 0.05 * cp.sum(cp.abs(M)),
    "rho * trace(M)": lambda cp, M: 0.05 * cp.trace(M),
}


def _optimum(data: dict[str, Any], loss: Any, regularizer: Any) -> float:
    cp = pytest.importorskip("cvxpy")
    D, y = data["U"] - data["V"], data["y"]
    M, mu = cp.Variable((D.shape[1],) * 2, PSD=True), cp.Variable()
    z = cp.multiply(y, mu - cp.sum(cp.multiply(D @ M, D), axis=1))
    problem = cp.Problem(cp.Minimize(cp.sum(loss(cp, z)) / len(y) + regularizer(cp, M)), [mu >= 1])
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_comes_near_cvxpys_optimum(name: str) -> None:
    text, loss = LOSSES[name]
    data = _pairs()
    if name == "exponential":  # else its first slopes are e^40
        data["U"], data["V"] = 0.4 * data["U"], 0.4 * data["V"]
    step = {"logistic": 1.0, "exponential": 0.3, "squared_hinge": 0.1}.get(name, 0.2)
    short = _solve(_model(text), data, step=step, passes=5, average="linear")
    result = _solve(_model(text), data, step=step, passes=80, average="linear")
    optimum = _optimum(data, loss, REGULARIZERS["rho * trace_norm(M)"])
    assert result.status is Status.FINISHED
    assert -1e-6 <= result.objective - optimum <= 0.06 * abs(optimum)
    assert result.objective - optimum < 0.5 * (short.objective - optimum)  # and goes on towards it


@pytest.mark.parametrize("text", REGULARIZERS)
def test_every_regularizer_comes_near_cvxpys_optimum(text: str) -> None:
    data = _pairs(T=20)
    batch = 5 if "norm1" in text else 1  # its steps are dear
    start = _solve(_model(regularizer=text), data, step=1e-9, passes=1)
    result = _solve(_model(regularizer=text), data, step=0.3, passes=100, average="linear", batch=batch)
    optimum = _optimum(data, LOSSES["hinge"][1], REGULARIZERS[text])
    assert -1e-6 <= result.objective - optimum <= 0.05 * (start.objective - optimum)


@pytest.mark.parametrize("divergence", ["von_neumann", "burg", ("schatten", (1.5,), {})])
def test_every_divergence_heads_for_the_same_optimum(divergence: Any) -> None:
    data = _pairs()
    optimum = _optimum(data, LOSSES["hinge"][1], REGULARIZERS["rho * trace_norm(M)"])
    start = _solve(_model(), data, divergence=divergence, step=1e-9, passes=1)
    last = _solve(_model(), data, divergence=divergence, step=0.1, passes=80, average="linear")
    assert -1e-6 <= last.objective - optimum <= 0.05 * (start.objective - optimum)


def test_the_objective_is_the_models_own_and_the_answer_is_feasible() -> None:
    data = _pairs()
    result = _solve(_model(), data, passes=3)
    M, mu = result["M"], result["mu"]
    D = data["U"] - data["V"]
    z = data["y"] * (mu - np.einsum("ti,ij,tj->t", D, M, D))
    by_hand = np.maximum(1 - z, 0).mean() + 0.05 * np.trace(M)
    assert result.objective == pytest.approx(by_hand, rel=1e-12)
    assert result.objective == pytest.approx(result.history["objective"][-1], rel=1e-12)
    assert np.linalg.eigvalsh(M)[0] >= -1e-12
    assert mu >= 1.0
    np.testing.assert_allclose(np.sort(result["spectrum"]), np.linalg.eigvalsh(M), atol=1e-12)
    assert len(result.history) == 3
    assert np.isfinite(result.history["online_objective"]).all()


def test_one_pass_equals_the_loop_written_out() -> None:
    """Hinge, squared Frobenius, one sample a step: eqs. 7 and 8 by eigh, in the back end's own order of samples."""
    data = _pairs(T=25)
    result = _solve(_model(), data, step=0.4, passes=1, shuffle=False)
    M, mu = np.eye(3), 1.0
    for t, (u, y) in enumerate(zip(data["U"] - data["V"], data["y"])):
        eta = 0.4 / np.sqrt(t + 1)
        a = 1.0 if y * (mu - u @ M @ u) < 1 else 0.0
        w, Q = np.linalg.eigh(M - eta * a * y * np.outer(u, u))
        M, mu = (Q * np.maximum(w - eta * 0.05, 0)) @ Q.T, max(mu + eta * y * a, 1.0)
    np.testing.assert_allclose(result["M"], M, atol=1e-12)
    assert result["mu"] == pytest.approx(mu, abs=1e-12)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not() -> None:
    data = _pairs()
    one, two, three = (_solve(_model(), data, seed=seed, passes=2) for seed in (4, 4, 5))
    assert np.array_equal(one.x, two.x)
    assert not np.array_equal(one.x, three.x)


def test_the_sum_of_losses_is_the_mean_with_a_longer_step() -> None:
    data = _pairs()
    total = _solve(_model(f"hinge({MARGIN})", "60 * rho * trace_norm(M)"), data, step=0.1 / 60, passes=2)
    mean = _solve(_model(), data, step=0.1, passes=2)
    np.testing.assert_allclose(total.x, mean.x, atol=1e-10)


def test_median_scale_is_the_same_model_in_other_units() -> None:
    data = _pairs()
    D = data["U"] - data["V"]
    s = float(np.median(np.linalg.norm(D, axis=1)))
    scaled = _solve(_model(), data, scale="median", passes=2)
    by_hand = _solve(_model(), {**data, "U": D / s, "V": np.zeros_like(D)}, passes=2)
    np.testing.assert_allclose(scaled["M"] * s**2, by_hand["M"], rtol=1e-10)
    assert scaled["mu"] == by_hand["mu"]


def test_a_metric_without_threshold_keeps_its_offset() -> None:
    text = METRIC.replace("  mu : scalar\n", "").replace("  mu >= 1\n", "")
    text = text.format(
        loss="hinge(y * (2 - mahalanobis(M, U - V))) / T", regularizer="rho * trace_norm(M)", options="seed = 1"
    )
    result = _solve(spdsl.parse(text), _pairs(), passes=3)
    assert result.keys() == ("M",)
    assert result.objective < result.bound.objective(np.eye(3).ravel())


def test_an_upper_bound_on_mu_is_kept() -> None:
    text = METRIC.replace("  mu >= 1\n", "  mu >= 1\n  mu <= 1.2\n")
    text = text.format(loss=f"hinge({MARGIN}) / T", regularizer="rho * trace_norm(M)", options="seed = 1")
    data = _pairs()
    data["y"][:55] = 1.0  # similar pairs drive mu up
    result = _solve(spdsl.parse(text), data, passes=3, step=1.0)
    assert 1.19 < result["mu"] <= 1.2


def test_a_self_paced_metric_lets_hard_pairs_out() -> None:
    text = METRIC.replace("minimize\n", "age lambda = 1.5\nminimize\n").replace(
        "subject to", "  self_paced hard(lambda)\nsubject to"
    )
    text = text.format(loss=f"hinge({MARGIN})", regularizer="60 * rho * trace_norm(M)", options="seed = 1")
    data = _pairs()
    data["U"][:4], data["V"][:4], data["y"][:4] = 30.0, -30.0, 1.0  # labels that no metric of use can fit
    model = spdsl.parse(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.solve(**data, options={"step": 0.002, "passes": 20})
    assert isinstance(result, Solution)
    assert result.age == 1.5
    assert result.weights[:4].sum() == 0.0
    assert result.weights[4:].mean() > 0.7


def test_a_diverging_run_says_so_and_keeps_what_it_reached() -> None:
    result = _solve(_model(f"exp(-{MARGIN}) / T"), _pairs(), step=1e4, passes=3)
    assert result.status is Status.DIVERGED
    assert np.isfinite(result.x).all()
    assert "lower" in result.status.value or "lower" in result.message


def test_unbounded_burg_steps_end_the_run_with_a_sentence() -> None:
    data = _pairs()
    data["U"], data["V"] = 0.1 * data["U"], 0.1 * data["V"]
    data["y"] = np.where(np.arange(60) % 2, 1.0, -1.0)
    result = _solve(_model(regularizer="0 * trace_norm(M)"), data, divergence="burg", step=500.0, schedule="constant")
    assert result.status is Status.DIVERGED
    assert "unbounded" in result.message


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("  M >> 0\n", ""), "add `M >> 0`"),
        (("trace_norm(M)", "(mu^2)"), "takes trace_norm, norm1, sum_squares or norm of `M`"),
        (("M >> 0\n", "M >> 0\n  trace(M) <= 3\n"), "not `trace(M) <= 3`"),
        (("  mu : scalar\n", "  mu : scalar\n  nu : scalar\n"), "at most one scalar"),
    ],
)
def test_models_it_cannot_solve_are_refused_with_the_reason(change: tuple[str, str], reason: str) -> None:
    text = METRIC.format(loss=f"hinge({MARGIN}) / T", regularizer="rho * trace_norm(M)", options="seed = 1")
    assert change[0] in text
    reasons = Comid().refuses(spdsl.parse(text.replace(*change)).problem)
    assert any(reason in item for item in reasons), reasons


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"divergence": "bregman"}, "can't be 'bregman'"),
        ({"divergence": ("schatten", (0.5,), {})}, "p > 1"),
        ({"divergence": ("burg", (2,), {})}, "takes no arguments"),
        ({"step": -1.0}, "must be positive"),
        ({"passes": 0}, "at least 1"),
        ({"average": "mean"}, "can't be 'mean'"),
        ({"steps": 1.0}, "did you mean `step`"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        _solve(_model(), _pairs(), **options)
    assert reason in str(caught.value)


def test_every_option_has_a_help_text() -> None:
    assert all(item.help for item in Comid.option_help())


VECTORS = [
    ("w >= -5", "regularizer rho * norm1(w)", "euclidean"),
    ("w >= -0.4; w <= 0.6", "regularizer rho * norm1(w)", "euclidean"),
    ("w >= -0.4; w <= 0.6", "regularizer rho * norm1(w)", "entropic"),
    ("w >= 0; sum(w) == 1", "", "entropic"),
    ("w >= 0; sum(w) == 1", "regularizer rho * sum_squares(w)", "euclidean"),
    ("norm(w) <= 0.5", "regularizer rho * norm1(w)", "euclidean"),
    ("norm1(w) <= 0.7", "", "entropic"),
    ("w >= 0", "regularizer rho * norm1(w)", ("p_norm", (1.5,), {})),
]


@pytest.mark.parametrize(("constraints", "regularizer", "divergence"), VECTORS)
def test_vectors_come_near_cvxpys_optimum(constraints: str, regularizer: str, divergence: Any) -> None:
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    y = np.where(X @ np.array([1.0, -0.5, 0.3, 0.0]) + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
    text = VECTOR.format(
        b="b : scalar", loss="hinge(y * (X @ w + b)) / n", regularizer=regularizer,
        constraints=constraints.replace(";", "\n "), options="seed = 1",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = spdsl.parse(text).solve(
            X=X, y=y, options={"divergence": divergence, "step": 0.5, "passes": 60, "average": "linear"}
        )
    w, b = cp.Variable(4), cp.Variable()
    rules = {
        "w >= -5": [w >= -5],
        "w >= -0.4; w <= 0.6": [w >= -0.4, w <= 0.6],
        "w >= 0; sum(w) == 1": [w >= 0, cp.sum(w) == 1],
        "norm(w) <= 0.5": [cp.norm(w) <= 0.5],
        "norm1(w) <= 0.7": [cp.norm1(w) <= 0.7],
        "w >= 0": [w >= 0],
    }[constraints]
    penalty = 0.05 * (cp.norm1(w) if "norm1" in regularizer else cp.sum_squares(w) if regularizer else 0)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b))) / 60 + penalty), rules)
    problem.solve(solver="CLARABEL")
    assert isinstance(result, Solution)
    assert -1e-6 <= result.objective - problem.value <= 0.03 * problem.value


def test_vector_refusals_name_the_parts() -> None:
    text = VECTOR.format(
        b="b : scalar", loss="hinge(y * (X @ w + b)) / n", regularizer="regularizer rho * norm1(w)",
        constraints="sum(w) <= 1", options="seed = 1",
    )  # fmt: skip
    (reason,) = Comid().refuses(spdsl.parse(text).problem)
    assert "a simplex" in reason
    assert "sum(w) <= 1" in reason
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(9, 4)), "y": np.array([1.0, -1.0] * 4 + [1.0])}
    free = VECTOR.format(
        b="b : scalar", loss="hinge(y * (X @ w + b)) / n", regularizer="", constraints="b >= 0",
        options="divergence = entropic",
    )  # fmt: skip
    free = free.replace("parameter\n  rho = 0.05\n", "")
    with pytest.raises(SolverError, match="entropic map needs"):
        spdsl.parse(free).solve(**data)


# --- polishing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_polished_answers_are_certified_optima_for_every_loss(name: str) -> None:
    text, loss = LOSSES[name]
    data = _pairs(T=40)
    if name == "exponential":
        data["U"], data["V"] = 0.4 * data["U"], 0.4 * data["V"]
    model = _model(text)
    result = _solve(model, data, step=0.1, passes=3, polish=True, tolerance=1e-7)
    assert result.status is Status.SOLVED
    assert result.objective == pytest.approx(_optimum(data, loss, REGULARIZERS["rho * trace_norm(M)"]), abs=2e-7)
    certificate = model.check(result)
    assert certificate.ok, str(certificate)


@pytest.mark.parametrize(
    ("text", "divergence"),
    [
        ("rho * trace_norm(M)", "squared_frobenius"),
        ("rho * sum_squares(M)", "squared_frobenius"),
        ("rho * norm(M)", "von_neumann"),
    ],
)
def test_polished_answers_are_optima_for_every_spectral_regularizer(text: str, divergence: str) -> None:
    data = _pairs(T=40)
    result = _solve(_model(regularizer=text), data, divergence=divergence, step=0.02, polish=True, tolerance=1e-7)
    assert result.status is Status.SOLVED
    assert result.objective == pytest.approx(_optimum(data, LOSSES["hinge"][1], REGULARIZERS[text]), abs=2e-7)
    assert np.linalg.eigvalsh(result["M"])[0] >= -1e-12
    assert result["mu"] >= 1.0


def test_polishing_that_is_cut_short_says_so() -> None:
    result = _solve(_model(), _pairs(T=40), passes=1, polish=True, polish_limit=3)
    assert result.status is Status.ITERATION_LIMIT
    assert np.isfinite(result.objective)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: _model(regularizer="rho * norm1(M)"), "norm1 of a matrix"),
        (
            lambda: spdsl.parse(
                METRIC.replace("minimize\n", "age lambda = 1.5\nminimize\n")
                .replace("subject to", "  self_paced hard(lambda)\nsubject to")
                .format(loss=f"hinge({MARGIN})", regularizer="rho * trace_norm(M)", options="seed = 1")
            ),
            "self-paced",
        ),
    ],
)
def test_polishing_what_it_cannot_is_refused(make: Any, reason: str) -> None:
    with pytest.raises(SolverError, match=reason):
        _solve(make(), _pairs(T=20), polish=True)


def test_polishing_fewer_pairs_than_unknowns_reaches_the_optimum_too() -> None:
    data = _pairs(T=12, d=6)
    result = _solve(_model(f"squared_hinge({MARGIN}) / T"), data, step=0.02, passes=2, polish=True)
    optimum = _optimum(data, LOSSES["squared_hinge"][1], REGULARIZERS["rho * trace_norm(M)"])
    assert result.status is Status.SOLVED
    assert result.objective == pytest.approx(optimum, abs=1e-7)


def test_polishing_too_large_a_model_is_refused_before_it_starts() -> None:
    with pytest.raises(SolverError, match=r"takes 2\.\d GB .*: leave out `polish`"):
        _solve(_model(), _pairs(T=700, d=500), polish=True)


# --- data of a scale that the steps don't suit ------------------------------------------------------------------------


def test_a_run_that_ends_above_the_empty_metric_says_so_and_the_median_scale_mends_it() -> None:
    data = _pairs()
    data["U"], data["V"] = data["U"] * 1e3, data["V"] * 1e3
    wild = _solve(_model(), data)
    assert wild.objective > 1e3
    assert "M = 0 has a lower objective" in wild.message
    mended = _solve(_model(), data, scale="median", step=1.0, passes=20)
    assert mended.objective < 1.0 + 1e-6
    assert mended.message == ""

"""The lazy O(nonzeros) engine against dense twins that take every step over full vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.solvers.dual_averaging.design import make_design
from spdsl.solvers.dual_averaging.engine import Engine, Setup
from spdsl.solvers.dual_averaging.sampling import Sampler
from spdsl.solvers.dual_averaging.tables import LINEAR, UNIFORM
from tests.solvers.dual_averaging.losses import SLOPES, compiled_loss
from tests.solvers.dual_averaging.twin import Twin

FAMILIES = {"dual_averaging": 0, "subgradient": 1, "adagrad": 2, "ftrl": 3}


def sparse_data(seed: int, n: int, d: int, density: float) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]  # else long steps on smooth losses amplify rounding
    return X, rng.choice([-1.0, 1.0], n), 0.1 * rng.normal(size=n)


def engine_for(X: Any, factor: Any, offset: Any, loss: str, setup: Setup) -> Engine:
    design = make_design(X, factor, 1.0 * factor if setup.intercept else 0.0, offset)
    return Engine(design, compiled_loss(loss), np.zeros((1, 1)), setup)


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12 * max(1.0, np.abs(theirs).max(initial=0.0)))


def compare(X: Any, factor: Any, offset: Any, loss: str, rows: Any, twin: Twin, block: int) -> Engine:
    d = X.shape[1]

    def as_array(value: Any) -> Any:
        return np.atleast_1d(np.asarray(value, float))

    low, high = np.broadcast_arrays(as_array(twin.low), as_array(twin.high))
    setup = Setup(
        family=FAMILIES[twin.family], kind=LINEAR if twin.linear else UNIFORM, primal=twin.primal,
        gamma=twin.gamma, delta=twin.delta, eta=twin.eta, rho=as_array(twin.rho), mu=twin.mu,
        bias=as_array(twin.bias), low=low.copy(), high=high.copy(), intercept=twin.intercept,
        batch=twin.batch, scale=twin.scale, block=block,
    )  # fmt: skip
    assert d == X.shape[1]
    engine = engine_for(sp.csr_array(X), factor, offset, loss, setup)
    engine.advance(rows)
    twin.run(X, factor, offset, SLOPES[loss], rows)
    w, b = engine.mean()
    z, zb = engine.dual()
    close(w, twin.w)
    close(z, twin.z)
    if twin.intercept:
        close(np.array([b, zb]), np.array([twin.b, twin.zb]))
    return engine


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    family=st.sampled_from(list(FAMILIES)),
    linear=st.booleans(),
    primal=st.booleans(),
    rho=st.sampled_from([0.0, 1e-3, 0.02, 0.2]),
    box=st.sampled_from([np.inf, 3.0, 0.3, 0.02]),
    mu=st.sampled_from([0.0, 0.0, 0.05, 1.0]),
    gamma=st.sampled_from([0.5, 1.0, 7.0]),
    batch=st.sampled_from([1, 1, 3]),
    intercept=st.booleans(),
    loss=st.sampled_from(list(SLOPES)),
    block=st.sampled_from([16, 64, 1 << 14]),
)
def test_every_lazy_method_equals_its_dense_twin(
    seed, family, linear, primal, rho, box, mu, gamma, batch, intercept, loss, block
):
    diagonal = family in ("adagrad", "ftrl")
    linear = linear and not diagonal
    mu = 0.0 if diagonal else mu
    if family == "ftrl":
        primal = False
    X, factor, offset = sparse_data(seed, 30, 25, 0.1)
    rows = Sampler(30, "uniform", seed).rows(0, 240 * batch)
    twin = Twin(
        family, linear=linear, primal=primal, gamma=gamma, delta=0.5, eta=1.0 / gamma, rho=rho, mu=mu,
        low=-box, high=box, intercept=intercept, batch=batch,
    )  # fmt: skip
    compare(X, factor, offset, loss, rows, twin, block)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    linear=st.booleans(),
    primal=st.booleans(),
    rho=st.sampled_from([0.0, 0.02, 0.2]),
    bias=st.sampled_from([1e-3, 0.1, 0.5, -0.3, "each"]),
    box=st.sampled_from([np.inf, 5.0, 0.5, 0.05]),
    mu=st.sampled_from([0.0, 0.2]),
    gamma=st.sampled_from([0.1, 1.0, 7.0]),
    block=st.sampled_from([16, 64, 1 << 14]),
)
def test_a_constant_bias_stays_lazy_and_exact(seed, linear, primal, rho, bias, box, mu, gamma, block):
    X, factor, offset = sparse_data(seed, 30, 25, 0.1)
    rng = np.random.default_rng(seed)
    shift = rng.normal(size=25) * 0.2 if bias == "each" else bias
    rows = Sampler(30, "uniform", seed).rows(0, 300)
    twin = Twin(
        "dual_averaging", linear=linear, primal=primal, gamma=gamma, rho=rho, mu=mu, bias=shift,
        low=-box, high=box,
    )  # fmt: skip
    compare(X, factor, offset, "hinge", rows, twin, block)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("bounds", [(0.0, np.inf), (0.0, 0.05), (-np.inf, 0.0), (0.1, 0.4), (-0.4, -0.1)])
@pytest.mark.parametrize("bias", [0.0, -0.2, 0.2])
def test_one_sided_boxes_and_boxes_without_zero_are_exact(linear, bounds, bias):
    X, factor, offset = sparse_data(3, 30, 25, 0.1)
    rows = Sampler(30, "uniform", 0).rows(0, 400)
    low, high = bounds
    twin = Twin("dual_averaging", linear=linear, gamma=0.5, rho=0.03, bias=bias, low=low, high=high)
    compare(X, factor, offset, "hinge", rows, twin, 64)


def test_coordinates_may_have_their_own_penalties_and_bounds():
    X, factor, offset = sparse_data(5, 40, 20, 0.15)
    rng = np.random.default_rng(0)
    rows = Sampler(40, "shuffle", 0).rows(0, 500)
    twin = Twin(
        "dual_averaging",
        gamma=0.5,
        rho=0.1 * rng.random(20),
        low=-rng.random(20),
        high=rng.random(20),
    )
    compare(X, factor, offset, "logistic", rows, twin, 128)


@pytest.mark.parametrize("data_type", [np.float32, np.float64])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("family", FAMILIES)
def test_csr_of_any_type_and_dense_rows_give_the_same_w(data_type, index_type, family):
    X, factor, offset = sparse_data(7, 50, 30, 0.2)
    X = X.astype(data_type)
    rows = Sampler(50, "uniform", 1).rows(0, 600)
    setup = Setup(family=FAMILIES[family], primal=family != "ftrl", rho=np.array([0.01]), block=128)
    matrix = sp.csr_array(X)
    matrix.indices = matrix.indices.astype(index_type)
    results = []
    for part in (matrix, X):
        engine = engine_for(part, factor, offset, "hinge", setup)
        engine.advance(rows)
        results.append(engine.mean()[0])
    assert engine.design.data.dtype == data_type
    close(results[0], results[1])


@settings(max_examples=20, deadline=None)
@given(
    family=st.sampled_from(list(FAMILIES)),
    order=st.sampled_from(["uniform", "shuffle", "sequential"]),
    cuts=st.lists(st.integers(1, 399), max_size=4, unique=True),
    batch=st.sampled_from([1, 2]),
    bias=st.booleans(),
)
def test_stopping_saving_and_going_on_gives_the_same_bits(family, order, cuts, batch, bias):
    X, factor, offset = sparse_data(11, 37, 30, 0.15)
    setup = Setup(
        family=FAMILIES[family], primal=family != "ftrl", rho=np.array([0.02]), batch=batch, block=64,
        bias=np.array([0.01 if bias and family == "dual_averaging" else 0.0]), intercept=True,
    )  # fmt: skip
    whole = engine_for(sp.csr_array(X), factor, offset, "hinge", setup)
    whole.advance(Sampler(37, order, 5).rows(0, 400 * batch))
    engine = engine_for(sp.csr_array(X), factor, offset, "hinge", setup)
    done = 0
    for cut in [*sorted(cuts), 400]:
        engine.advance(Sampler(37, order, 5).rows(done * batch, (cut - done) * batch))
        engine.mean()  # reading must not disturb the run
        kept = engine.snapshot()
        engine = engine_for(sp.csr_array(X), factor, offset, "hinge", setup)
        engine.restore(kept)
        done = cut
    assert np.array_equal(engine.mean()[0], whole.mean()[0])
    assert np.array_equal(engine.dual()[0], whole.dual()[0])
    assert engine.mean()[1] == whole.mean()[1]


def test_at_rho_max_the_answer_is_exactly_zero():
    X, factor, _ = sparse_data(2, 60, 20, 0.3)
    per_sample = np.abs(factor[:, None] * X).max()  # no sum of subgradients can outgrow rho A_k beyond this
    setup = Setup(rho=np.array([per_sample]), scale=1.0)
    engine = engine_for(sp.csr_array(X), factor, np.zeros(60), "hinge", setup)
    engine.advance(Sampler(60, "uniform", 0).rows(0, 5000))
    assert np.all(engine.mean()[0] == 0.0)
    assert np.all(engine.dual()[0] == 0.0)


def test_memory_does_not_grow_with_the_number_of_steps():
    X, factor, offset = sparse_data(2, 60, 20, 0.3)
    engine = engine_for(sp.csr_array(X), factor, offset, "hinge", Setup(block=256))

    def size() -> int:
        block = engine.block()
        parts = [engine.state, engine.seen, engine.averages, engine.buffer, block.prefix, block.threshold]
        return sum(part.nbytes for part in parts)

    engine.advance(Sampler(60, "uniform", 0).rows(0, 300))
    before = size()
    engine.advance(Sampler(60, "uniform", 0).rows(300, 20_000))
    assert size() == before


def test_a_duplicated_entry_in_csr_counts_as_its_sum():
    matrix = sp.csr_array((np.array([1.0, 2.0, -1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    design = make_design(matrix)
    assert design.data.tolist() == [3.0, -1.0]
    assert matrix.nnz == 3  # the user's matrix is left alone

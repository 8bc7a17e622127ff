"""The event engine for piecewise affine pulls: its cells against the kernels, its paths against the engine that has none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spdsl
from spdsl.compiler import suited
from spdsl.data import bind
from spdsl.reference import certify
from spdsl.solvers.active_set.build import build
from spdsl.solvers.active_set.sweeps import CompiledSweeps, PlainSweeps
from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions
from spdsl.solvers.path_following.cells import cells_of
from spdsl.solvers.path_following.descent import descend
from spdsl.solvers.path_following.event_engine import EventEngine

MODEL = """data
  X : matrix(n, d)
  y : vector(n)
parameter
  alpha = {alpha}
variable
  w : vector(d)
  b : scalar
age lambda in quantiles(0.2, 1)
minimize
  loss {loss}
  regularizer {regularizer}
  self_paced {weights}
{constraint}"""
SQUARED = "(X @ w + b - y)^2 / 2"


def model(
    X, y, loss=SQUARED, regularizer="alpha * norm1(w)", weights="mixture(lambda, 0.5)", alpha=0.05, constraint=""
):
    text = MODEL.format(loss=loss, regularizer=regularizer, weights=weights, alpha=alpha, constraint=constraint)
    return suited(bind(spdsl.parse(text).problem, arrays={"X": X, "y": y}))


def sample(seed, n=60, p=4, round_to=None, repeat=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ (rng.normal(size=p) * (rng.random(p) < 0.7)) + 0.5 * rng.normal(size=n)
    y[: n // 4] += 4.0 * rng.normal(size=n // 4)
    if round_to:
        X, y = np.round(X / round_to) * round_to, np.round(y / round_to) * round_to
    if repeat:
        X, y = np.vstack([X, X[:repeat]]), np.concatenate([y, y[:repeat]])
    return X, y


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.5, 2.0]), st.sampled_from([SQUARED, "(X @ w + b - y)^2 / (2*n)"])
)
@settings(max_examples=15, deadline=None)
def test_cells_pull_like_the_kernels(seed, gamma, loss):
    X, y = sample(seed % 7)
    block = build(model(X, y, loss=loss, weights=f"mixture(lambda, {gamma})"), compiled=False).blocks[0]
    cells = cells_of(block, 0.05, 20.0)
    rng = np.random.default_rng(seed)
    age = float(rng.uniform(0.05, 20.0))
    u = rng.normal(size=block.m) * rng.choice([0.01, 1.0, 30.0])
    labels = block.labels(u, age)
    wanted = block.evaluate(labels, u, age)
    slopes, offsets = cells.slope @ [1.0, 1.0 / age], cells.offset @ [1.0, 1.0 / age]
    borders = -np.diff(offsets) / np.diff(slopes)
    cell = (u[:, None] >= borders).sum(axis=1)
    scale = np.abs(wanted.gradient).max() + 1e-300
    np.testing.assert_allclose(block.factor * (slopes[cell] * u + offsets[cell]), wanted.gradient, atol=1e-10 * scale)
    np.testing.assert_array_equal(cells.band[cell], labels.band)
    np.testing.assert_allclose(cells.bend[cell, 0] * u + cells.bend[cell, 1], wanted.slope, atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "weights"),
    [
        (SQUARED, "linear(lambda)"),  # cubic pulls
        (SQUARED, "hard(lambda)"),  # pulls that jump
        ("huber(X @ w + b - y, 1)", "mixture(lambda, 0.5)"),  # the root of a root beyond the bend
        ("abs(X @ w + b - y)", "linear(lambda)"),  # a kink
    ],
)
def test_pulls_that_are_not_piecewise_affine_have_no_cells(loss, weights):
    block = build(model(*sample(0), loss=loss, weights=weights), compiled=False).blocks[0]
    assert cells_of(block, 0.1, 10.0) is None


def both(bound, monkeypatch):
    """The path by the event engine, how often that was asked, and the path without it."""
    asked, ahead = [], EventEngine.ahead
    monkeypatch.setattr(EventEngine, "ahead", lambda self, start: asked.append(found := ahead(self, start)) or found)
    first = run(PathFollowing(), bound, PathOptions(compiled="always"))
    monkeypatch.setattr(EventEngine, "of", staticmethod(lambda *_: None))
    return first, asked, run(PathFollowing(), bound, PathOptions(compiled="always"))


@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ({}, {}),
        ({"n": 90, "p": 7}, {"weights": "mixture(lambda, 2)"}),
        ({}, {"regularizer": "alpha * sum_squares(w) / 2", "weights": "mixture(lambda, 0.1)"}),
        ({}, {"regularizer": "alpha * norm1(w) + 0.02 * sum_squares(w)", "constraint": "subject to\n  w >= 0\n"}),
        ({"repeat": 20}, {"weights": "mixture(lambda, 2)", "regularizer": "alpha * sum_squares(w) / 2"}),
        ({"round_to": 0.5, "repeat": 10}, {"weights": "mixture(lambda, 2)"}),
        ({"n": 25, "p": 12}, {"alpha": 0.2}),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_paths_of_the_event_engine_are_those_of_the_tracker(facts, options, seed, monkeypatch):
    bound = model(*sample(seed, **facts), **options)
    quick, asked, slow = both(bound, monkeypatch)
    assert any(found is not None for found in asked)
    assert quick.status.name == slow.status.name == "EXACT"
    np.testing.assert_allclose([c.age for c in quick.jumps], [c.age for c in slow.jumps], rtol=1e-9)
    size = np.abs(slow.nodes).max()
    for age in np.linspace(*slow.age_range, 23):
        found = quick(age)
        np.testing.assert_allclose(found.x, slow(age).x, atol=1e-8 * size)
        assert found.kkt_residual <= 1e-10


def test_answers_hold_against_cvxpy_on_both_sides_of_every_jump():
    path = run(PathFollowing(), model(*sample(3, n=80), weights="mixture(lambda, 2)"), PathOptions(compiled="always"))
    assert len(path.jumps) >= 2
    ages = [jump.age * share for jump in path.jumps[:3] for share in (1.0 - 1e-6, 1.0 + 1e-6)]
    assert certify(path, ages=ages)


def test_compiled_landings_are_those_of_the_flow_in_numpy(monkeypatch):
    landings, land = [], EventEngine.land

    def watched(self, place, direction):
        found = land(self, place, direction)
        landings.append((found, descend(self.leaper, place, direction)))
        return found

    monkeypatch.setattr(EventEngine, "land", watched)
    for seed in (4, 5):
        run(PathFollowing(), model(*sample(seed, n=80), weights="mixture(lambda, 2)"), PathOptions(compiled="always"))
    both_found = [(a, b) for a, b in landings if a is not None and b is not None]
    assert len(both_found) >= 5
    for found, wanted in both_found:
        np.testing.assert_allclose(found.x, wanted.x, atol=1e-9)


def test_paths_of_numpy_and_of_compiled_passes_land_alike():
    X, y = sample(6, n=80, p=6)
    bound = model(X, y, weights="mixture(lambda, 2)")
    first, second = (run(PathFollowing(), bound, PathOptions(compiled=choice)) for choice in ("always", "never"))
    np.testing.assert_allclose([c.age for c in first.jumps], [c.age for c in second.jumps], rtol=1e-9)
    np.testing.assert_allclose([c.change for c in first.jumps], [c.change for c in second.jumps], rtol=1e-6)


def test_convex_hessians_come_in_the_order_that_is_asked_for():
    X, y = sample(7)
    system = build(model(X, y), compiled=True)
    age, x = 1.0, np.linspace(-0.5, 0.5, system.p)
    order = np.array([3, 0, 4, 1, 2])  # all coordinates, but not ascending
    plain, quick = PlainSweeps(system.blocks[0]), CompiledSweeps(system.blocks[0])
    ascending = plain.convex(plain.newton(x, age, np.arange(system.p)), np.arange(system.p))
    for sweeps in (plain, quick):
        found = sweeps.convex(sweeps.newton(x, age, np.arange(system.p)), order)
        np.testing.assert_allclose(found, ascending[np.ix_(order, order)], atol=1e-12)

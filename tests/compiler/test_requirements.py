"""Values that break what a derivation took for granted are found when data are bound; compiling for them mends it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spdsl.compiler import compile_for, compile_text
from spdsl.problem import BoundProblem, unmet

MODEL = """
data
  X : matrix(n, d)
  y : vector(n)
  c : vector(n)
parameter
  low = 0.5
  high = 2
  kappa = 0.3
  t = 1.5
variable
  w : vector(d)
age lambda in [0.1, 2]
define own(v, lambda) = lambda*(v^t/t - v)
minimize
  loss {loss}
  self_paced {paced}
"""
DEFAULTS = {"low": 0.5, "high": 2.0, "kappa": 0.3, "t": 1.5}


def bound(loss: str, paced: str = "linear(lambda)", values: dict | None = None, parameters: dict | None = None, c=1.0):
    problem = compile_text(MODEL.format(loss=loss, paced=paced), "m", parameters)
    rng = np.random.default_rng(0)
    data = {"X": rng.normal(size=(6, 2)), "y": rng.normal(size=6), "c": c * np.linspace(0.5, 2, 6)}
    return BoundProblem(problem, data, {**DEFAULTS, **(values or {})}, {"n": 6, "d": 2})


TWO_KINKS = "max(0, X @ w - low, 3*(X @ w) - 3*high)"


def test_default_values_meet_everything():
    assert unmet(bound(TWO_KINKS)) == []
    assert unmet(bound("c * (X @ w - y)^2", "mixture(lambda, kappa)")) == []


def test_kinks_in_another_order_are_found_and_compiling_for_the_values_mends_it():
    values = {"low": 9.0}
    broken = bound(TWO_KINKS, values=values)
    (sentence,) = unmet(broken)
    assert "low = 9" in sentence
    mended = bound(TWO_KINKS, values=values, parameters=values)
    assert unmet(mended) == []
    x = np.array([4.0, -3.0])
    z = mended.data["X"] @ x
    np.testing.assert_allclose(mended.losses(x), np.maximum.reduce([0 * z, z - 9, 3 * z - 6]))


CENSORED = """
data
  X : matrix(n, d)
  low : vector(n)
  high : vector(n)
variable
  w : vector(d)
minimize
  loss max(0, low - X @ w, X @ w - high)
"""


def interval_data(low, high):
    rng = np.random.default_rng(1)
    data = {"X": rng.normal(size=(5, 2)), "low": np.full(5, low), "high": np.full(5, high)}
    return BoundProblem(compile_text(CENSORED), data, {}, {"n": 5, "d": 2})


def test_interval_censored_targets_are_met_in_their_natural_order():
    problem = interval_data(-1.0, 2.0)
    assert unmet(problem) == []
    x = np.array([3.0, -1.0])
    z = problem.data["X"] @ x
    np.testing.assert_allclose(problem.losses(x), np.maximum.reduce([0 * z, -1 - z, z - 2]))


def test_data_that_turn_the_order_of_kinks_are_found_and_compiled_for():
    broken = interval_data(2.0, -1.0)
    (sentence,) = unmet(broken)
    assert "low = 2, high = -1" in sentence
    mended = replace(broken, problem=compile_for(broken))
    assert unmet(mended) == []
    x = np.array([3.0, -1.0])
    z = mended.data["X"] @ x
    np.testing.assert_allclose(mended.losses(x), np.maximum.reduce([0 * z, 2 - z, z + 1]))


def test_data_of_the_wrong_sign_are_found():
    sentences = unmet(bound("c * (X @ w - y)^2", c=-1.0))
    assert any("`c` has to be nonnegative" in sentence for sentence in sentences)


def test_a_parameter_that_flips_convexity_is_found():
    sentences = unmet(bound("kappa * abs(X @ w - y)", values={"kappa": -1.0}))
    assert any("kappa" in sentence for sentence in sentences)


@pytest.mark.parametrize(("t", "fine"), [(1.2, True), (3.0, True), (0.5, False)])
def test_an_f_that_stops_being_self_paced_is_found(t, fine):
    sentences = unmet(bound("(X @ w - y)^2", "own(lambda)", values={"t": t}))
    assert (sentences == []) is fine


@pytest.mark.parametrize(
    "loss", ["quantile(X @ w - y, low)", "quantile(X @ w - y, low/1)", "quantile(y - X @ w, 1 - low)"]
)
@pytest.mark.parametrize(("low", "inside"), [(0.0, True), (0.3, True), (1.0, True), (-0.2, False), (1.2, False)])
def test_an_argument_that_a_value_brings_out_of_range_is_found(loss: str, low: float, inside: bool):
    found = unmet(bound(loss, values={"low": low}))
    assert found == [] if inside else "`tau` of `quantile` must lie between 0 and 1, and it is" in found[0]


def test_an_open_end_of_a_range_is_out_of_it():
    assert unmet(bound("huber(X @ w - y, low)", values={"low": 0.1})) == []
    (sentence,) = unmet(bound("huber(X @ w - y, low)", values={"low": 0.0}))
    assert "must be above 0, and it is 0" in sentence


def test_the_parameter_of_a_regularizer_has_its_range_too():
    (sentence,) = unmet(bound("(X @ w - y)^2", "polynomial(lambda, t)", values={"t": 0.5}))
    assert "`t` of `polynomial` must be above 1, and it is 0.5" in sentence

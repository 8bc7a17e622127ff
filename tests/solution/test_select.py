"""Choosing the age: the best age of the whole continuum is found, on either side of a jump, whatever the metric."""

from __future__ import annotations

from dataclasses import replace

import hand_built
import numpy as np
import pytest

from spdsl.diagnostics import UsageError
from spdsl.problem import DataDeclaration, VariableDeclaration


@pytest.fixture
def path():
    return hand_built.path()


def fitted(value: float, m: int = 7):
    """Validation data that the path fits best where every coordinate is `value`: y = (X w + b) there."""
    X = np.random.default_rng(1).normal(size=(m, 2))
    return {"X": X, "y": X @ np.full(2, value) + value}


@pytest.mark.parametrize("best", [1.13, 1.77, 2.5, 3.3])
def test_the_best_age_inside_a_segment_is_found_between_the_nodes(path, best):
    value = best**2 + (10 if best >= 2 else 0)
    chosen = path.select(**fitted(value))
    assert chosen.age == pytest.approx(best, rel=1e-3)
    assert chosen.value == pytest.approx(0, abs=1e-3)
    np.testing.assert_allclose(chosen["w"], value, rtol=1e-2)


def test_a_minimum_just_before_a_jump_is_reached_from_below(path):
    chosen = path.select(**fitted(4.1))
    assert 2 - 1e-3 < chosen.age < 2
    assert chosen.value == pytest.approx(np.mean(_losses(path, chosen.age, 4.1)))


def test_a_minimum_at_the_start_and_at_the_end_of_the_path_is_found(path):
    assert path.select(**fitted(-3.0)).age == 1.0
    assert path.select(**fitted(99.0)).age == 4.0


def test_every_local_minimum_is_told_best_first(path):
    def two_wells(found):  # at b = 2.25 (age 1.5) and, deeper, at b = 19 (age 3)
        return float(min((found.x[2] - 2.25) ** 2, (found.x[2] - 19.0) ** 2 - 1.0))

    chosen = path.select(metric=two_wells, **fitted(7.0))
    np.testing.assert_allclose(chosen.minima, [[3.0, -1.0], [1.5, 0.0]], atol=1e-6)
    assert chosen.metric == "two_wells"


def _losses(path, age, value):
    data = fitted(value)
    solution = path(age)
    return (data["X"] @ solution["w"] + solution["b"] - data["y"]) ** 2 / 2


def test_the_curve_holds_the_metric_at_ascending_ages_and_none_is_below_the_best(path):
    chosen = path.select(**fitted(3.0))
    assert np.all(np.diff(chosen.ages) >= 0)
    assert len(chosen.ages) > 60
    assert chosen.value == chosen.values.min()
    k = len(chosen.ages) // 3
    assert chosen.values[k] == pytest.approx(np.mean(_losses(path, chosen.ages[k], 3.0)))


def test_the_share_of_training_samples_in_is_that_at_the_best_age(path):
    chosen = path.select(**fitted(3.0))
    assert chosen.in_share == path(chosen.age).in_share


def test_a_metric_may_be_the_median_or_any_function(path):
    median = path.select(metric="median", **fitted(3.0))
    assert median.value == pytest.approx(np.median(_losses(path, median.age, 3.0)), abs=1e-6)
    own = path.select(metric=lambda found: float((found.x[2] - 1.44) ** 2), **fitted(3.0))
    assert own.age == pytest.approx(1.2, rel=1e-3)


def test_an_unknown_metric_gets_the_nearest_name(path):
    with pytest.raises(UsageError, match="did you mean 'median'"):
        path.select(metric="medain", **fitted(3.0))
    with pytest.raises(UsageError, match="no data of type labels"):
        path.select(metric="error", **fitted(3.0))


def test_validation_data_are_scaled_as_the_training_data_were():
    from spdsl.problem import standardize

    bound = standardize(hand_built.bound(), ["X"])
    path = hand_built.path(bound)
    raw = bound.scaling["X"].undo(fitted(2.0)["X"])
    chosen = path.select(X=raw, y=fitted(2.0)["y"])
    assert chosen.age == pytest.approx(np.sqrt(2.0), rel=1e-3)


def test_validation_data_of_other_columns_are_refused(path):
    with pytest.raises(ValueError, match=r"SPL4\d\d"):
        path.select(X=np.ones((5, 3)), y=np.ones(5))


def test_a_variable_with_one_entry_a_sample_says_nothing_on_new_samples():
    bound = hand_built.bound()
    problem = replace(
        bound.problem,
        variables=(*bound.problem.variables, VariableDeclaration("s", "vector", ("n",))),
        data=(*bound.problem.data, DataDeclaration("q", "vector", ("n",))),
    )
    path = hand_built.path(replace(bound, problem=problem))
    with pytest.raises(UsageError, match="`s` has one entry a sample"):
        path.select(**fitted(2.0))


def test_a_minimum_between_two_ages_is_found_although_the_metric_falls_from_one_to_the_other(path):
    coarse = np.geomspace(*path.age_range, 64)
    low, high = coarse[50], coarse[51]

    def dip(found):
        age = np.sqrt(found.x[2] if found.x[2] < 10 else found.x[2] - 10)  # b = age^2, and 10 more after the jump
        t = (age - low) / (high - low)
        return float(-age - 4.0 * (high - low) * t * (1.0 - t) if 0.0 < t < 1.0 else -age)

    chosen = path.select(metric=dip, **fitted(3.0))
    assert np.abs(chosen.minima[:, 0] - (low + 0.625 * (high - low))).min() < 1e-3 * (high - low) + 1e-5

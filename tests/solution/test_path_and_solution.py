"""Paths and solutions: what they say of themselves, by name, by age, as a table."""

from __future__ import annotations

import builtins

import hand_built
import numpy as np
import pytest

from spdsl.diagnostics import UsageError
from spdsl.solution import Status


@pytest.fixture
def path():
    return hand_built.path()


def test_a_solution_gives_its_variables_by_name_with_their_shapes(path):
    solution = path(3.0)
    assert solution["w"].shape == (2,)
    assert isinstance(solution["b"], float)
    assert list(solution) == list(solution.values) == ["w", "b"]
    assert "w" in solution
    assert "q" not in solution
    assert solution.keys() == ("w", "b")


def test_an_unknown_name_lists_the_known_ones_and_the_nearest(path):
    with pytest.raises(KeyError, match=r"'bb' is not a variable.*it has: w, b; did you mean 'b'"):
        path(3.0)["bb"]


def test_the_value_at_the_age_of_a_jump_is_that_after_it(path):
    assert path(2.0)["b"] == 14.0
    assert path(2.0 - 1e-9)["b"] == pytest.approx(4.0)


@pytest.mark.parametrize("age", [0.5, 4.1, float("nan")])
def test_an_age_outside_the_path_is_refused_with_the_ages_that_it_covers(path, age):
    with pytest.raises(UsageError, match=r"covers \[1, 4\]"):
        path(age)


def test_the_ends_of_the_path_may_be_asked_for_up_to_rounding(path):
    assert path(np.nextafter(1.0, 0)).age == 1.0
    assert path(np.nextafter(4.0, 5)).age == 4.0


def test_weights_and_in_share_follow_from_the_losses_at_the_age(path):
    solution = path(1.0)
    X, y = solution.bound.data["X"], solution.bound.data["y"]
    loss = (X @ solution["w"] + solution["b"] - y) ** 2 / 2
    expected = np.maximum(1 - loss / 1.0, 0)
    np.testing.assert_allclose(solution.weights, expected)
    np.testing.assert_allclose(path.weights(1.0), expected)
    assert solution.in_share == np.mean(expected > 0)


def test_the_objective_of_a_solution_is_the_latent_one(path):
    solution = path(3.0)
    v, loss = solution.weights, solution.losses
    by_hand = np.sum(v * loss + 3.0 * (v**2 / 2 - v))
    assert solution.objective == pytest.approx(by_hand)


def test_critical_points_are_split_by_kind(path):
    assert [point.age for point in path.critical_points] == [1.5, 2.0, 3.0]
    assert [point.age for point in path.jumps] == [2.0]
    assert len(path.turning_points) == 2


def test_the_text_of_a_path_says_what_covers_it_and_how_it_ended(path):
    text = repr(path)
    assert "[1, 4]" in text
    assert "3.0e-11" in text
    assert Status.SOLVED.value in text


def test_the_text_of_a_solution_says_its_age_its_objective_and_how_it_ended(path):
    text = repr(path(3.0))
    assert "at age 3: objective" in text
    assert "KKT residual 1.0e-12" in text
    assert Status.EXACT.value in text


def test_only_answers_count_as_ended_as_asked():
    assert {status for status in Status if status.ok} == {Status.SOLVED, Status.EXACT, Status.FINISHED}


def test_a_path_as_a_frame_has_a_row_a_node_and_a_column_an_entry(path):
    frame = path.to_frame()
    assert list(frame.columns) == [
        "age",
        "in_share",
        "objective",
        "kkt_residual",
        "w[column0]",
        "w[column1]",
        "b",
    ]
    np.testing.assert_array_equal(frame["age"], path.ages)
    np.testing.assert_array_equal(frame["w[column1]"], path.nodes[:, 1])


def test_a_path_as_a_frame_at_chosen_ages_holds_exact_values_there(path):
    frame = path.to_frame([1.25, 3.5])
    np.testing.assert_allclose(frame["b"], [1.25**2, 3.5**2 + 10])
    assert frame["in_share"][0] == path(1.25).in_share


def test_a_solution_as_a_frame_has_a_row_an_entry(path):
    frame = path(3.0).to_frame()
    assert list(frame["variable"]) == ["w", "w", "b"]
    assert list(frame["entry"]) == [0, 1, 0]
    np.testing.assert_array_equal(frame["value"], path(3.0).x)


@pytest.mark.parametrize(("missing", "kind"), [((), "pandas"), (("pandas",), "polars"), (("pandas", "polars"), "dict")])
def test_a_table_is_of_whichever_library_is_installed(path, monkeypatch, missing, kind):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name in missing:
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    frame = path.to_frame()
    monkeypatch.undo()
    assert type(frame).__module__.split(".")[0] in (kind, "builtins")
    np.testing.assert_array_equal(np.asarray(frame["age"]), path.ages)


def test_two_paths_are_compared_by_identity_and_never_fail_on_arrays(path):
    assert path == path
    assert path != hand_built.path()

"""`Model`: names find their place, options have their order, results come back from files, warnings are raised."""

from __future__ import annotations

import warnings

import hand_built
import numpy as np
import pytest

import spdsl
from spdsl.solution import Status
from spdsl.solvers import dispatch

LASSO = hand_built.SOURCE
X = hand_built.bound().data["X"]
y = hand_built.bound().data["y"]


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    table = {"fakepath": "hand_built:FakePath", "fake": "hand_built:Fake"}
    monkeypatch.setattr(dispatch, "BACKENDS", {**table, "slow": "hand_built:Slow"})


@pytest.fixture(scope="module")
def model():
    return spdsl.parse(LASSO, "lasso.spl")


def test_a_model_says_what_it_is_made_of(model):
    assert repr(model) == "<spdsl.Model lasso.spl: loss, 1 regularizer, self-paced linear>"
    assert model.text == LASSO
    assert model.name == "lasso.spl"


def test_a_file_is_loaded_with_its_path_as_its_name(tmp_path):
    (tmp_path / "m.spl").write_text(LASSO)
    assert spdsl.load(tmp_path / "m.spl").name == str(tmp_path / "m.spl")
    with pytest.raises(spdsl.ModelError, match="did you mean"):
        spdsl.load(tmp_path / "n.spl")


def test_a_model_is_printed_in_the_canonical_layout_and_means_the_same(model):
    crowded = LASSO.replace("  alpha = 0.1", "     alpha=0.1   ")
    assert spdsl.parse(crowded, "x").format() == model.format() == LASSO


# --- keywords ------------------------------------------------------------------------------------------------------


def test_data_parameters_and_options_are_told_apart_by_name(model):
    path = model.solve(X=X, y=y, alpha=0.3, steps=7)
    assert path.bound.parameters["alpha"] == 0.3
    assert path.options["steps"] == 7
    np.testing.assert_array_equal(path.bound.data["X"], X)


def test_the_same_may_be_said_with_mappings(model):
    path = model.solve({"X": X, "y": y}, parameters={"alpha": 0.3}, options={"steps": 7})
    assert (path.bound.parameters["alpha"], path.options["steps"]) == (0.3, 7)


def test_an_option_of_the_call_comes_before_the_models_and_that_before_the_default():
    text = LASSO + "\nsolve\n  fake(steps = 3, mode = fancy)\n"
    asked = spdsl.parse(text, "m.spl")
    assert asked.solve(X=X, y=y).options["steps"] == 3
    assert asked.solve(X=X, y=y, steps=4).options["steps"] == 4
    assert asked.solve(X=X, y=y, steps=4).options["mode"] == "fancy"
    assert asked.solve(X=X, y=y).backend == "fake"
    other = asked.solve(X=X, y=y, backend="fakepath")
    assert other.options["steps"] == 5, "options of the model's own back end are not another one's"


def test_expressions_in_the_solve_statement_become_numbers():
    asked = spdsl.parse(LASSO + "\nsolve\n  fake(steps = n/4, time_limit = 100*alpha)\n", "m.spl")
    options = asked.solve(X=X, y=y).options
    assert options["steps"] == 3
    assert options["time_limit"] == pytest.approx(10.0)


def test_seed_and_time_limit_reach_the_back_end(model):
    solution = model.solve(X=X, y=y, backend="fake", seed=11, time_limit=30)
    assert (solution.options["seed"], solution.options["time_limit"]) == (11, 30.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"alhpa": 1}, "did you mean `alpha`"),
        ({"stepz": 1}, "did you mean `steps`"),
        ({"time_limt": 1}, "did you mean `time_limit`"),
        ({"w": 1}, "`w` is a variable: it is what gets solved for"),
        ({"steps": 1, "options": {"steps": 2}}, "option `steps` is given twice"),
        ({"alpha": 1, "parameters": {"alpha": 2}}, "parameter `alpha` is given twice"),
        ({"backend": "fakepth"}, "did you mean `fakepath`"),
        ({"standardize": "z"}, "SPL430"),
    ],
)
def test_a_wrong_keyword_is_refused_with_its_mend(model, call, words):
    with pytest.raises(spdsl.UsageError, match=words):
        model.solve(X=X, y=y, **call)


def test_all_wrong_keywords_are_told_in_one_run(model):
    with pytest.raises(spdsl.UsageError) as caught:
        model.solve(X=X, y=y, aa=1, bb=2)
    assert len(caught.value.diagnostics) == 2


def test_a_name_that_means_two_things_asks_which_one():
    clash = spdsl.parse(LASSO.replace("alpha", "steps"), "m.spl")
    with pytest.raises(spdsl.UsageError, match=r"say which is meant: parameters=.*or options="):
        clash.solve(X=X, y=y, steps=3)
    path = clash.solve(X=X, y=y, parameters={"steps": 0.2}, options={"steps": 3})
    assert (path.bound.parameters["steps"], path.options["steps"]) == (0.2, 3)


def test_complaints_about_data_come_from_the_data_room(model):
    with pytest.raises(spdsl.DataError, match="`y`"):
        model.solve(X=X)
    with pytest.raises(spdsl.DataError):
        model.solve(X=X, y=y[:-1])


def test_standardizing_is_remembered(model):
    path = model.solve(X=X, y=y, standardize=["X", "y"])
    np.testing.assert_allclose(path.bound.data["X"].std(axis=0), 1)
    np.testing.assert_allclose(path.bound.scaling["y"].mean, y.mean())
    assert model.solve(X=X, y=y, standardize="X").bound.scaling.keys() == {"X"}


# --- runs ----------------------------------------------------------------------------------------------------------


def test_progress_and_callbacks_are_passed_on(model):
    told, seen = [], []
    model.solve(X=X, y=y, progress=lambda share, text: told.append(share), callback=seen.append)
    assert told == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert len(seen) == 5


def test_a_run_that_was_cut_short_warns_with_the_status_and_keeps_what_it_has(model):
    with pytest.warns(spdsl.SpdslWarning, match="the time limit was reached"):
        path = model.solve(X=X, y=y, backend="slow", time_limit=0.1)
    assert path.status is Status.TIME_LIMIT


def test_a_run_that_the_user_stopped_does_not_warn(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = model.solve(X=X, y=y, callback=lambda state: state.count == 2)
    assert path.status is Status.INTERRUPTED


def test_warnings_of_the_language_and_of_the_derivation_are_raised_at_the_callers_line():
    text = LASSO.replace("linear(lambda)", "log(lambda, 0.5)")
    model = spdsl.parse(text, "m.spl")
    with pytest.warns(spdsl.SpdslWarning, match=r"\(iii\)") as caught:
        model.solve(X=X, y=y)
    assert caught[0].filename == __file__


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_loaded_path_answers_exactly_at_every_age(model, tmp_path):
    path = model.solve(X=X, y=y, alpha=0.3)
    path.save(tmp_path / "p.npz")
    again = spdsl.load_result(tmp_path / "p.npz")
    for age in (1.0, 1.7, 2.0, 3.9):
        np.testing.assert_array_equal(again(age).x, path(age).x)
        assert again(age).objective == path(age).objective
    assert again.critical_points == path.critical_points
    np.testing.assert_array_equal(again.select(X=X, y=y).age, path.select(X=X, y=y).age)


def test_a_loaded_path_without_data_knows_its_nodes_only(model, tmp_path):
    path = model.solve(X=X, y=y)
    path.save(tmp_path / "p.npz", include_data=False)
    again = spdsl.load_result(tmp_path / "p.npz")
    np.testing.assert_array_equal(again.nodes, path.nodes)
    with pytest.raises(spdsl.UsageError, match="without its data"):
        again(2.0)


def test_a_loaded_solution_has_its_values_losses_and_weights(model, tmp_path):
    solution = model.solve(X=X, y=y, backend="fake")
    solution.save(tmp_path / "s.npz")
    again = spdsl.load_result(tmp_path / "s.npz")
    np.testing.assert_array_equal(again["w"], solution["w"])
    np.testing.assert_array_equal(again.losses, solution.losses)
    assert again.backend == "fake"


def test_a_path_whose_back_end_is_not_there_loads_its_nodes_and_warns(model, tmp_path, monkeypatch):
    path = model.solve(X=X, y=y)
    path.save(tmp_path / "p.npz")
    monkeypatch.setattr(dispatch, "BACKENDS", {"acs": "hand_built:Fake"})
    with pytest.warns(spdsl.SpdslWarning, match="no back end called `fakepath`: only the nodes"):
        again = spdsl.load_result(tmp_path / "p.npz")
    np.testing.assert_array_equal(again.nodes, path.nodes)
    with pytest.raises(spdsl.UsageError, match="knows its paths at their nodes only"):
        again(2.0)


def test_the_public_names_are_all_there_and_load_lazily():
    import subprocess
    import sys

    for name in spdsl.__all__:
        assert getattr(spdsl, name) is not None
    code = (
        "import sys, spdsl; heavy = {'numpy', 'sympy', 'numba', 'cvxpy', 'matplotlib', 'scipy', 'sklearn', 'pandas',"
        " 'rich', 'click'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

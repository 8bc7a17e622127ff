"""The dispatch table: the first able back end is picked, every reason is told, and options are checked all together."""

from __future__ import annotations

import sys

import hand_built
import numpy as np
import pytest

from spdsl.diagnostics import SolverError, UsageError
from spdsl.problem import SolveRequest
from spdsl.solvers import dispatch
from spdsl.solvers.protocol import BackEnd


class Able(hand_built.Fake):
    name = "able"


class Unable(hand_built.Fake):
    name = "unable"

    def __init__(self) -> None:
        super().__init__(refusals=("it needs a smooth loss", "it knows no ages"))


@pytest.fixture
def table(monkeypatch):
    def put(*names: str) -> None:
        monkeypatch.setattr(dispatch, "BACKENDS", {name: f"test_dispatch:{name.capitalize()}" for name in names})

    put("unable", "able")
    return put


def test_every_back_end_of_the_table_can_be_loaded_and_is_called_what_the_table_calls_it():
    for name in dispatch.BACKENDS:
        backend = dispatch.get(name)
        assert isinstance(backend, BackEnd)
        assert backend.name == name
        assert backend.summary


def test_every_option_of_every_back_end_is_described_and_its_default_passes_its_own_check():
    for name in dispatch.BACKENDS:
        backend = dispatch.get(name)
        defaults = {item.name: item.default for item in backend.option_help()}
        assert all(item.help for item in backend.option_help()), name
        assert dispatch.check_options(backend, defaults) == backend.options()


def test_the_first_back_end_that_refuses_nothing_is_picked(table):
    assert dispatch.pick(hand_built.problem()).name == "able"


def test_an_impossible_mix_prints_every_reason_of_every_back_end(table):
    table("unable")
    with pytest.raises(SolverError) as caught:
        dispatch.pick(hand_built.problem())
    assert "it needs a smooth loss" in str(caught.value)
    assert "it knows no ages" in str(caught.value)
    assert caught.value.diagnostics[0].code == "SPL503"


def test_the_models_own_request_is_heard_and_the_calls_comes_before_it(table):
    from dataclasses import replace

    problem = replace(hand_built.problem(), request=SolveRequest("unable", {}))
    with pytest.raises(SolverError, match="smooth loss") as caught:
        dispatch.pick(problem)
    assert "able to solve it: able" in str(caught.value)
    assert dispatch.pick(problem, "able").name == "able"


def test_an_unknown_back_end_gets_the_nearest_name(table):
    with pytest.raises(UsageError, match="did you mean `able`"):
        dispatch.get("abel")


def test_a_back_end_whose_package_is_missing_is_a_reason_and_not_a_crash(table, monkeypatch, tmp_path):
    (tmp_path / "needs_pymoo.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(dispatch.BACKENDS, "mospl", "needs_pymoo:Mospl")
    choices = {choice.name: choice.refusals for choice in dispatch.all_choices(hand_built.problem())}
    assert "a_package_that_is_not_there" in choices["mospl"][0]
    with pytest.raises(UsageError, match="pip install"):
        dispatch.get("mospl")
    sys.modules.pop("needs_pymoo", None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stepz": 3}, "did you mean `steps`"),
        ({"steps": 0}, "must be positive"),
        ({"steps": 2.5}, "a whole number"),
        ({"steps": True}, "a whole number"),
        ({"steps": "many"}, "a whole number"),
        ({"mode": "fanci"}, "one of: plain, fancy"),
        ({"mode": 3}, "one of: plain, fancy"),
        ({"time_limit": 0}, "must be positive"),
        ({"time_limit": float("nan")}, "a number"),
        ({"seed": -1}, "negative"),
    ],
)
def test_a_wrong_option_is_refused_with_its_mend(given, words):
    with pytest.raises(UsageError, match=words):
        dispatch.check_options(hand_built.Fake(), given)


def test_all_wrong_options_are_told_in_one_run():
    with pytest.raises(UsageError) as caught:
        dispatch.check_options(hand_built.Fake(), {"a": 1, "steps": -1, "mode": "x"})
    assert len(caught.value.diagnostics) == 3


def test_none_as_a_word_unsets_an_option_that_may_be_unset_and_no_other():
    backend = dispatch.get("dual_averaging")
    options = dispatch.check_options(backend, {"interpolate": "none", "gamma": "none", "gradient_noise": "none"})
    assert (options.interpolate, options.gamma) == (None, None)
    with pytest.raises(UsageError, match="passes"):
        dispatch.check_options(backend, {"passes": "none"})


def test_right_options_arrive_with_their_kinds():
    options = dispatch.check_options(
        hand_built.Fake(), {"steps": 3.0, "time_limit": 2, "seed": np.int64(7), "mode": "fancy"}
    )
    assert options == hand_built.FakeOptions(steps=3, time_limit=2.0, seed=7, mode="fancy")
    assert isinstance(options.steps, int)
    assert isinstance(options.time_limit, float)


MIX = """
data
  X : matrix(n, d)
  y : labels(n)
  G : graph(d)
variable
  w : vector(d)
age lambda in [0.1, 2]
minimize
  loss         logistic(y * (X @ w))
  regularizer  0.1 * sum_squares(w)
  self_paced   linear(lambda)
subject to
  support(w) in connected(G, size = 3)
"""


def test_a_mix_that_does_not_go_together_is_named_with_what_would():
    import spdsl

    with pytest.raises(SolverError) as caught:
        dispatch.pick(spdsl.parse(MIX).problem)
    (found,) = caught.value.diagnostics
    assert found.code == "SPL503"
    assert found.message == "no back end takes a path over ages and `support(w) in connected(G, size = 3)` together"
    assert "write one age, `age lambda = ...`: `graph_sto_iht` solves the rest" in found.help
    assert "leave out `support(w) in connected(G, size = 3)`: `path_following` solves the rest" in found.help
    for mended in (MIX.replace("in [0.1, 2]", "= 2"), MIX[: MIX.index("subject to")]):
        assert dispatch.pick(spdsl.parse(mended).problem).name in ("graph_sto_iht", "path_following")


def test_two_parts_that_are_one_too_many_each_are_both_named():
    import spdsl
    from spdsl.solvers.mixes import conflict

    problem = spdsl.parse(MIX).problem
    assert conflict(problem, lambda changed: []) is None
    found = conflict(problem, lambda changed: [] if changed.regularizers or changed.constraints else ["one"])
    assert found is not None
    assert "`0.1 * " not in found.sentence
    assert "`w^2` or `support(w) in connected(G, size = 3)` with the rest" in found.sentence
    assert found.mends == (
        "leave out `w^2` and leave out `support(w) in connected(G, size = 3)`: `one` solves the rest",
    )

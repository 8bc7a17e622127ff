"""`mospl`: its front holds what a front must, comes near the exact path, and is missed in words when pymoo is."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from problems import make, regression

from spdsl.diagnostics import UsageError
from spdsl.solvers.driver import run
from spdsl.solvers.pareto import Mospl
from spdsl.solvers.pareto.backend import MosplOptions
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions

SMALL = {"population": 12, "generations": 8}


def bound(age=("quantiles", 0.4, 1.0), **parts):
    X, y = regression(50, 3, 0)
    return make(X, y, l1=0.02, age=age, **parts)


def front(problem, **options):
    pytest.importorskip("pymoo", reason="the search is pymoo's: pip install 'spdsl[mospl]'")
    return run(Mospl(), problem, MosplOptions(**{**SMALL, **options}))


@pytest.fixture(scope="module")
def small():
    return front(bound())


def test_no_member_of_the_front_is_better_than_another_in_both_objectives(small):
    fit, left_out = small.history["weighted_loss"], small.history["left_out"]
    better = (fit[:, None] <= fit) & (left_out[:, None] <= left_out) & ~np.eye(len(fit), dtype=bool)
    strictly = (fit[:, None] < fit) | (left_out[:, None] < left_out)
    assert not np.any(better & strictly)


def test_the_objectives_are_those_of_the_members_at_their_ages(small):
    problem = small.bound
    for age, x, fit, left_out in zip(
        small.ages, small.nodes, small.history["weighted_loss"], small.history["left_out"], strict=True
    ):
        losses = (problem.data["X"] @ x - problem.data["y"]) ** 2 / 100
        v = np.maximum(1 - losses / age, 0)
        assert fit == pytest.approx(v @ losses + 0.02 * np.abs(x).sum())
        assert left_out == pytest.approx((1 - v).sum())


def test_members_come_near_the_exact_path_and_nearer_than_without_improvement(small):
    path = run(PathFollowing(), small.bound, PathOptions())
    plain = front(small.bound, improve=False)

    def distance(found):
        inside = (found.ages >= path.ages[0]) & (found.ages <= path.ages[-1])
        pairs = zip(found.ages[inside], found.nodes[inside], strict=True)
        return float(np.median([np.abs(path(age)["w"] - x).max() for age, x in pairs]))

    assert distance(small) < 0.02
    assert distance(small) < distance(plain)


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_front(small):
    again, other = front(bound()), front(bound(), seed=1)
    assert np.array_equal(again.nodes, small.nodes)
    assert not np.array_equal(other.nodes, small.nodes)


def test_an_age_is_answered_by_the_nearest_member_with_its_residual(small):
    k = len(small.ages) // 2
    age = 0.4 * small.ages[k] + 0.6 * small.ages[k + 1]
    assert np.array_equal(small(age).x, small.nodes[k + 1])
    assert small(age).kkt_residual > 1e-8  # no partial optimum, and it says so
    assert small(age).status.name == "FINISHED"


def test_a_single_age_is_refused():
    assert any("interval" in reason for reason in Mospl().refuses(bound(age=0.1).problem))


def test_without_pymoo_the_pip_line_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymoo", None)
    with pytest.raises(UsageError, match=r"needs the package `pymoo`") as caught:
        run(Mospl(), bound(), MosplOptions(**SMALL))
    assert "pip install 'spdsl[mospl]'" in caught.value.diagnostics[0].help[0]

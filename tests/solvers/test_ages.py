"""The age statement in numbers: quantiles are where samples come in, intervals that miss the losses are told."""

from __future__ import annotations

import numpy as np
import pytest
from problems import GAMMA, make, regression

from spdsl.diagnostics import SolverError
from spdsl.solvers.ages import entry_age, in_share, resolve_ages

X, Y = regression(40, 3, 0)
LOSSES = np.sort(np.random.default_rng(0).exponential(size=40))


def bound(self_paced="linear", age=("quantiles", 0.25, 1.0)):
    return make(X, Y, l1=0.1, self_paced=self_paced, age=age)


@pytest.mark.parametrize("self_paced", ["linear", "mixture", "log", "hard", "welsch", "numeric"])
@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_quantile_is_the_age_from_which_that_share_is_in(self_paced, share):
    model = bound(self_paced, ("quantiles", share, 1.0))
    age = resolve_ages(model, LOSSES).lower
    assert in_share(model, LOSSES, age * (1 + 1e-9)) == pytest.approx(share)
    assert in_share(model, LOSSES, age * (1 - 1e-9)) < share


def test_entry_ages_in_closed_form():
    assert entry_age(bound("linear"), 0.3) == 0.3
    assert entry_age(bound("mixture"), 0.09) == pytest.approx(0.3, rel=1e-14)
    assert entry_age(bound("welsch"), 1.0) == pytest.approx(1 / np.log(2), rel=1e-12)
    assert GAMMA > 0


def test_losses_of_zero_do_not_make_an_age_of_zero():
    losses = np.where(np.median(LOSSES) > LOSSES, 0.0, LOSSES)
    assert resolve_ages(bound(), losses).lower == losses[losses > 0].min()


def test_no_loss_at_all_is_refused():
    with pytest.raises(SolverError, match="no ages take in"):
        resolve_ages(bound(), np.zeros(40))


def test_equal_losses_still_make_an_interval():
    ages = resolve_ages(bound(), np.full(40, 0.5))
    assert ages.lower == 0.5 < ages.upper


def test_an_interval_that_misses_the_losses_is_told_with_their_range():
    below = resolve_ages(bound(age=(1e-9, 1e-8)), LOSSES).message
    above = resolve_ages(bound(age=(50.0, 60.0)), LOSSES).message
    assert "below every loss" in below
    assert "above every loss" in above
    assert f"{LOSSES[0]:.6g} to {LOSSES[-1]:.6g}" in below
    assert resolve_ages(bound(age=(0.1, 1.0)), LOSSES).message == ""


@pytest.mark.parametrize("age", [(2.0, 1.0), (-1.0, 1.0), (0.0, 1.0), ("quantiles", 0.5, 0.2), ("quantiles", 0.1, 1.2)])
def test_intervals_that_are_none_are_refused(age):
    with pytest.raises(SolverError):
        resolve_ages(bound(age=age), LOSSES)

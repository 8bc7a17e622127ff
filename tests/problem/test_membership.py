"""One reading of *in*: by exit thresholds, by the last border, or by half of the weight; and by quantiles of ages."""

from __future__ import annotations

import numpy as np
import pytest
from problems import make, regression

from spdsl.problem.membership import in_share, samples_in
from spdsl.solvers.ages import entry_age, resolve_ages

LOSSES = np.array([0.1, 0.4, 0.9, 1.7, 4.0])


def bound(self_paced, age=("quantiles", 0.2, 1.0)):
    return make(*regression(24, 3, 0), self_paced=self_paced, age=age)


@pytest.mark.parametrize(
    ("self_paced", "age", "expected"),
    [
        ("linear", 1.0, LOSSES < 1.0),
        ("hard", 1.0, LOSSES < 1.0),
        ("mixture", 1.5, LOSSES < 2.25),  # v* is 0 from age^2 on
        ("log", 1.0, LOSSES < 1.0),  # v* never reaches 0: in while it is 1
        ("welsch", 1.0, np.exp(-LOSSES) >= 0.5),
    ],
)
def test_a_sample_is_in_by_the_exit_threshold_the_last_border_or_half_a_weight(self_paced, age, expected):
    assert np.array_equal(samples_in(bound(self_paced), LOSSES, age), expected)
    assert in_share(bound(self_paced), LOSSES, age) == expected.mean()


@pytest.mark.parametrize("self_paced", ["linear", "mixture", "log", "welsch"])
def test_a_sample_stands_on_the_border_at_its_entry_age_and_is_in_beyond_it(self_paced):
    problem = bound(self_paced)
    for loss in LOSSES:
        age = entry_age(problem, float(loss))
        assert not samples_in(problem, np.array([loss]), age * (1 - 1e-9))[0]
        assert samples_in(problem, np.array([loss]), age * (1 + 1e-9))[0]


def test_the_upper_quantile_1_ends_where_the_last_sample_still_has_no_weight():
    problem = bound("linear")
    ages = resolve_ages(problem, LOSSES)
    assert ages.upper == LOSSES.max()
    assert problem.weights(LOSSES, ages.upper)[-1] == 0.0
    assert in_share(problem, LOSSES, ages.upper) == 0.8


@pytest.mark.parametrize("self_paced", ["linear", "mixture"])
def test_losses_of_0_do_not_start_a_path_at_an_age_of_0(self_paced):
    """Hinge losses: most samples of a fit have none, or rounding."""
    losses = np.r_[np.zeros(10), 1e-17, 3e-16, 0.2, 0.5, 1.3]
    ages = resolve_ages(bound(self_paced, ("quantiles", 0.5, 1.0)), losses)
    assert ages.lower >= 0.1

"""Age-paths agree, at every age of a grid, with many small steps of alternate search that share no code with them."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import small_steps
from problems import make, regression

from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions

N, D = 40, 3
# (SP-regularizer, factor of the loss times n, seed): chosen for their jumps and turning points
CASES = [
    ("linear", 1.0, 0, {"l1": 0.02}),
    ("linear", 1.0, 3, {"l1": 0.02, "l2": 0.02}),
    ("mixture", 4.0, 0, {"l1": 0.02}),
    ("mixture", 4.0, 2, {"l1": 0.02}),
    ("log", 1.0, 0, {"l1": 0.02}),
    ("welsch", 1.0, 1, {"l1": 0.02}),
    ("hard", 1.0, 1, {"l1": 0.02}),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{'-'.join(case[3])}")
def both(request):
    """The path, a grid of ages, and the brute-force solutions there."""
    self_paced, factor, seed, regularizers = request.param
    X, y = regression(N, D, seed)
    bound = make(X, y, self_paced=self_paced, factor=factor / N, age=("quantiles", 0.4, 1.0), **regularizers)
    path = run(PathFollowing(), bound, PathOptions())
    ages = np.geomspace(*path.age_range, 160)[1:-1]
    return path, ages, small_steps(X, y, path.nodes[0], ages, self_paced, factor / N, **regularizers)


def test_the_path_is_the_brute_force_path_at_every_age(both):
    path, ages, brute = both
    ours = np.array([path(age)["w"] for age in ages])
    assert np.abs(ours - brute).max() < 1e-6


def test_every_leap_of_the_brute_force_path_is_one_of_the_jumps(both):
    path, ages, brute = both
    leaps = np.flatnonzero(np.abs(np.diff(brute, axis=0)).max(axis=1) > 0.02)
    jumps = np.array([point.age for point in path.jumps])
    for k in leaps:
        within = jumps[(jumps >= ages[k]) & (jumps <= ages[k + 1])]
        slope = np.abs(path(ages[k + 1])["w"] - path(ages[k])["w"]).max()
        assert within.size or slope < 0.2  # a steep stretch is no leap


def test_jumps_are_leaps_of_the_brute_force_path(both):
    path, ages, brute = both
    for jump in path.jumps:
        k = int(np.searchsorted(ages, jump.age))
        if 0 < k < len(ages) and jump.change > 1e-3:
            before, after = path.nodes[np.searchsorted(path.ages, jump.age)], path(jump.age)["w"]
            assert np.abs(after - before).max() == pytest.approx(jump.change, rel=1e-6)
            assert np.abs(brute[k] - brute[k - 1]).max() > 0.0


def test_nothing_is_left_to_rounding(both):
    path, _, _ = both
    assert path.status.name == "EXACT"
    assert path.kkt_residuals.max() < 1e-12

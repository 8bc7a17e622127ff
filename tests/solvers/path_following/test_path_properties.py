"""What must hold of every age-path, whatever the loss, regularizer and SP-regularizer: held against cvxpy and definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mixtures import REGULARIZERS, bound_problem, convex_optimum, convex_value
from problems import LOSSES, SELF_PACED

from spdsl.solvers.driver import run
from spdsl.solvers.path_following import PathFollowing
from spdsl.solvers.path_following.backend import PathOptions


def solve(bound, **options):
    return run(PathFollowing(), bound, PathOptions(**options))


@settings(max_examples=12, derandomize=True)  # the same mixes every time, so that main stays green
@given(
    loss=st.sampled_from(sorted(LOSSES)),
    regularizer=st.sampled_from(sorted(REGULARIZERS)),
    self_paced=st.sampled_from(sorted(SELF_PACED)),
    seed=st.integers(0, 50),
    rounded=st.booleans(),
)
@example("logistic", "elastic net", "numeric", 32, True)  # two coordinates that leave zero together, round after round
@example("logistic", "elastic net", "welsch", 0, False)
@example("squared", "fused", "welsch", 36, False)  # an event whose guess leaves the ages
@pytest.mark.filterwarnings("ignore::spdsl.diagnostics.SpdslWarning")
def test_any_path_is_optimal_for_its_own_weights_by_cvxpy(loss, regularizer, self_paced, seed, rounded):
    bound = bound_problem(loss, regularizer, self_paced, seed, rounded=rounded)
    path = solve(bound)
    assert path.status.name == "EXACT", path.message
    rng = np.random.default_rng(seed)
    for age in rng.uniform(*path.age_range, 20):
        solution = path(age)
        assert solution.kkt_residual <= 1e-10
        v = solution.weights
        best = convex_optimum(bound, v)
        assert convex_value(bound, solution.x, v) <= best + 1e-7 * max(1.0, abs(best))


MODELS = [
    ("squared", "lasso", "linear"),
    ("squared", "fused", "mixture"),
    ("huber", "elastic net", "linear"),
    ("quantile", "ridge", "linear"),
    ("quantile", "lasso", "mixture"),
    ("logistic", "ridge and intercept", "linear"),
    ("hinge", "ridge and intercept", "linear"),
    ("hinge", "lasso", "log"),
    ("squared", "non-negative lasso", "numeric"),
    ("epsilon", "ridge", "welsch"),
    ("squared", "lasso", "hard"),
]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: " ".join(model))
def solved(request):
    bound = bound_problem(*request.param, seed=3, n=30)
    return bound, solve(bound)


def test_between_critical_points_the_path_is_continuous_and_its_jumps_are_where_it_says(solved):
    bound, path = solved
    jumps = [point.age for point in path.jumps]
    for low, high, left, right in zip(path.ages, path.ages[1:], path.nodes, path.nodes[1:]):
        if high > low:
            near = low + (high - low) * 1e-6
            scale = np.abs(path.nodes).max()
            assert np.abs(path(near)["w"] - bound.layout.unpack(left)["w"]).max() < 1e-2 * scale
        else:
            assert low in jumps
            assert np.abs(left - right).max() > 0.0


def test_the_latent_objective_falls_at_every_jump(solved):
    bound, path = solved
    for k in np.flatnonzero(np.diff(path.ages) == 0.0):
        age = path.ages[k]
        assert bound.objective(path.nodes[k + 1], age) <= bound.objective(path.nodes[k], age) + 1e-14


def test_every_sample_that_changes_its_band_is_named_at_an_age_where_its_loss_is_on_the_border(solved):
    bound, path = solved
    kernel, names = bound.problem.self_paced.kernel, bound.problem.self_paced.kernel.names
    checked = 0
    for point in path.turning_points:
        borders = kernel.breaks(point.age)
        losses = bound.losses(path(point.age).x)
        for phrase in point.cause.split("; "):
            if " -> " not in phrase:
                continue
            rows = [int(text) for text in phrase.split(":")[0].replace("samples", "").replace("sample", "").split(",")]
            first, second = phrase.split(": ")[1].split(" -> ")
            border = borders[min(names.index(first), names.index(second))]
            assert np.abs(losses[rows] - border).max() <= 1e-9 * point.age
            checked += 1
    assert checked or bound.problem.self_paced.name in ("welsch", "hard") or not path.turning_points


def test_no_change_of_a_sets_membership_goes_unnamed(solved):
    """On a fine grid, every sample that changes its band and every entry that becomes or leaves zero is in some event."""
    bound, path = solved
    kernel = bound.problem.self_paced.kernel
    ages = np.linspace(*path.age_range, 160)
    states = []
    for age in ages:
        solution = path(age)
        states.append((kernel.piece(bound.losses(solution.x), age), solution["w"] == 0.0))
    for k in range(len(ages) - 1):
        events = [point for point in path.critical_points if ages[k] <= point.age <= ages[k + 1]]
        if any(point.kind == "jump" for point in events):
            continue  # a landing changes many sets at once
        named_samples = {i for point in events for i in point.samples}
        named_entries = {j for point in events for j in point.coordinates}
        assert set(np.flatnonzero(states[k][0] != states[k + 1][0])) <= named_samples
        if not bound.parameters["l1"]:
            continue
        zeros = np.flatnonzero(states[k][1] != states[k + 1][1]) + bound.layout.slices["w"].start
        assert set(zeros) <= named_entries


def test_the_same_run_twice_gives_the_same_bits(solved):
    bound, path = solved
    again = solve(bound)
    assert np.array_equal(path.ages, again.ages)
    assert np.array_equal(path.nodes, again.nodes)


def test_a_branch_rebuilt_from_its_nodes_answers_the_same(solved):
    bound, path = solved
    branch = PathFollowing().resume(bound, path)
    for age in np.random.default_rng(0).uniform(*path.age_range, 4):
        assert np.array_equal(branch.at(age)[0], path(age).x)

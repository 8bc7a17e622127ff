"""Pictures: every entry is drawn, jumps break the curves, many or few entries, paths and solutions of every kind."""

from __future__ import annotations

from dataclasses import replace

import hand_built
import numpy as np
import pytest
from PIL import Image

from spdsl.diagnostics import UsageError
from spdsl.problem import BoundProblem, VariableDeclaration
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.view.curves import age_scale, sample
from spdsl.view.labels import moved_apart, shortened


@pytest.fixture
def path():
    return hand_built.path()


def drawn(figure):
    """All curves of the first panel as (x, y), whether drawn alone or in a collection."""
    axis = figure.axes[0]
    lines = [line.get_xydata() for line in axis.lines if len(line.get_xydata()) > 10]
    return lines + [segment for c in axis.collections for segment in c.get_segments() if len(segment) > 10]


def test_every_coefficient_has_a_curve_and_its_columns_name(path):
    figure = path.plot()
    assert len(drawn(figure)) == 3
    written = {text.get_text() for text in figure.axes[0].texts}
    assert {"column0", "column1", "b"} <= written


def test_curves_pass_through_exact_points_between_the_nodes(path):
    curves = sample(path)
    np.testing.assert_allclose(curves.x[:, 0], curves.ages**2 + 10 * (np.arange(len(curves.ages)) >= curves.breaks[0]))


def test_a_jump_breaks_every_curve_and_is_marked_in_every_panel(path):
    curves = sample(path)
    assert [curves.ages[i] for i in curves.breaks] == [2.0]
    for line in drawn(path.plot()):
        assert np.isnan(line).any()
        inside = np.diff(line[:, 1])
        assert np.nanmax(np.abs(inside)) < 2, "no line may cross the jump of 10"


def test_a_jump_between_the_nodes_is_drawn_on_both_sides():
    path = hand_built.path()
    keep = [0, 1, 4, 5]
    path = replace(path, ages=path.ages[keep], nodes=path.nodes[keep], kkt_residuals=path.kkt_residuals[keep])
    curves = sample(path)
    (at,) = curves.breaks
    assert curves.ages[at - 1] == pytest.approx(2.0, abs=1e-5)
    assert curves.x[at - 1, 0] == pytest.approx(4.0, abs=1e-5)
    assert curves.x[at, 0] == pytest.approx(14.0, abs=1e-5)


def test_the_weights_are_those_of_the_solutions_and_shares_count_them(path):
    curves = sample(path)
    k = len(curves.ages) // 2
    weights = path(curves.ages[k]).weights
    np.testing.assert_allclose(curves.weights[:, k], weights)
    assert curves.in_share[k] == np.mean(weights > 0)
    assert curves.mean_weight[k] == pytest.approx(weights.mean())


def test_many_samples_are_thinned_in_the_picture_and_not_in_the_shares():
    bound = hand_built.bound(n=60_000)
    path = hand_built.path(bound)
    curves = sample(path, points=80)
    assert curves.weights.size <= 4_100_000
    assert curves.in_share[0] == np.mean(path(1.0).weights > 0)


@pytest.mark.parametrize(("d", "theme"), [(1, "light"), (9, "dark"), (500, "light")])
def test_few_and_many_coefficients_draw_without_a_warning_in_both_themes(d, theme, tmp_path):
    path = hand_built.path(hand_built.bound(d=d))
    file = tmp_path / f"{theme}.png"
    figure = path.plot(file, theme=theme)
    assert len(drawn(figure)) == d + 1
    with Image.open(file) as picture:
        pixels = np.asarray(picture.convert("RGB"), float)
    assert pixels.std() > 5, "the picture is not empty"
    assert (pixels[0, 0].mean() > 200) == (theme == "light")


def test_the_axis_of_ages_is_logarithmic_where_that_spreads_the_events():
    def with_events(ages):
        base = hand_built.path()
        points = tuple(CriticalPoint(float(age), "turning", "") for age in ages)
        return replace(base, ages=np.linspace(0.01, 10, 6), stored_critical_points=points, branch=None)

    assert age_scale(with_events(np.geomspace(0.011, 9.9, 40)))
    assert not age_scale(with_events(np.linspace(0.011, 9.9, 40)))


def test_the_scale_can_be_chosen_and_an_unknown_one_is_refused(path):
    assert path.plot(scale="log").axes[-1].get_xscale() == "log"
    assert path.plot(scale="linear").axes[-1].get_xscale() == "linear"
    with pytest.raises(UsageError, match="one of: auto, log, linear"):
        path.plot(scale="cubic")
    with pytest.raises(UsageError, match="one of: light, dark"):
        path.plot(theme="pink")


def test_a_path_without_its_data_draws_its_nodes():
    path = hand_built.path()
    bare = BoundProblem(path.bound.problem, {}, {}, path.bound.sizes)
    figure = replace(path, bound=bare, branch=None, stored_critical_points=()).plot()
    assert len(figure.axes) == 2


def test_a_path_of_one_age_and_one_that_was_stopped_at_once_draw():
    path = hand_built.path()
    one = replace(
        path,
        ages=path.ages[:1],
        nodes=path.nodes[:1],
        kkt_residuals=path.kkt_residuals[:1],
        status=Status.INTERRUPTED,
        stored_critical_points=(),
    )
    one.plot().canvas.draw()


def symmetric(d: int) -> BoundProblem:
    bound = hand_built.bound()
    problem = replace(
        bound.problem, variables=(VariableDeclaration("M", "symmetric", ("d",)),), loss=None, self_paced=None
    )
    return BoundProblem(problem, {}, {}, {"d": d, "n": 4})


def test_a_symmetric_variable_is_drawn_by_its_eigenvalues():
    bound = symmetric(2)
    ages = np.linspace(1, 2, 12)
    nodes = np.array([np.diag([age, 3 * age]).ravel() for age in ages])
    path = Path(bound, ages, nodes, np.full(12, 1e-12), Status.SOLVED, "fake")
    figure = path.plot()
    assert figure.axes[0].get_title(loc="left").startswith("eigenvalues of M")
    top = max(line[:, 1].max() for line in drawn(figure))
    assert top == pytest.approx(6.0)


def test_a_solution_draws_its_coefficients_weights_and_history(tmp_path):
    bound = hand_built.bound()
    history = History({"iteration": np.arange(5), "objective": np.geomspace(1e3, 1, 5)})
    solution = Solution(bound, np.array([1.0, 0.0, 2.0]), Status.SOLVED, 1.0, "fake", age=2.0, history=history)
    figure = solution.plot(tmp_path / "s.svg")
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles[0] == "w: 1 of 2 not zero"
    assert titles[1].startswith("sample weight v")
    assert titles[2] == "objective"
    assert (tmp_path / "s.svg").read_text().startswith("<?xml")


def test_a_matrix_and_a_long_vector_of_a_solution_draw():
    Solution(symmetric(3), np.eye(3).ravel(), Status.SOLVED, 1.0, "fake").plot().canvas.draw()
    bound = hand_built.bound(d=200, paced=False)
    Solution(bound, np.arange(201.0), Status.SOLVED, 1.0, "fake").plot().canvas.draw()


def test_a_choice_of_the_age_draws_its_curve_and_its_best_age(path, tmp_path):
    rng = np.random.default_rng(0)
    chosen = path.select(X=rng.normal(size=(6, 2)), y=rng.normal(size=6))
    figure = chosen.plot(tmp_path / "choice.png")
    (best,) = [line for line in figure.axes[0].lines if line.get_markersize() == 7]
    assert best.get_xdata()[0] == chosen.age


@pytest.mark.parametrize("name", ["picture.xyz", "picture", "nowhere/picture.png"])
def test_a_picture_that_cannot_be_written_is_an_error_with_its_name(path, tmp_path, name):
    with pytest.raises(UsageError, match=r"picture"):
        path.plot(tmp_path / name)


def test_labels_keep_their_distance_and_move_as_little_as_possible():
    placed = moved_apart([0.5, 0.5, 0.5, 0.9], 0.1)
    np.testing.assert_allclose(sorted(placed), [0.4, 0.5, 0.6, 0.9])
    assert moved_apart([0.1, 0.9], 0.1) == [0.1, 0.9]
    ordered = moved_apart([0.3, 0.1, 0.2], 0.2)
    assert ordered[1] < ordered[2] < ordered[0]
    np.testing.assert_allclose(np.diff(sorted(ordered)), 0.2)


def test_long_names_are_shortened_in_the_middle_and_dollars_are_no_mathematics():
    assert shortened("a_very_long_name_of_a_column_2024") == "a_very_lon…mn_2024"
    assert shortened("cost$") == r"cost\$"


def test_no_window_is_opened_and_no_figure_stays_behind(path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    path.plot()
    assert plt.get_fignums() == before

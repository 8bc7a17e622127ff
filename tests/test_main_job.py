"""The main job from end to end with the real back ends: a model file and a table become a certified age-path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.linear_model import Lasso

import spdsl
from spdsl.cli.app import app
from spdsl.cli.demo import MODEL

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DIABETES = EXAMPLES / "diabetes.csv"
BIND = {"y": "target"}


def spdsl_(*arguments):
    return CliRunner(catch_exceptions=False).invoke(app, [str(item) for item in arguments])


@pytest.fixture(scope="module")
def model():
    return spdsl.parse(MODEL, "lasso.spl")


@pytest.fixture(scope="module")
def path(model):
    return model.solve(DIABETES, bind=BIND, standardize=["X", "y"])


@pytest.fixture(scope="module")
def saved(path, tmp_path_factory):
    file = tmp_path_factory.mktemp("saved") / "path.npz"
    path.save(file)
    return file


def test_every_age_of_the_path_is_an_optimum_of_its_weighted_problem(model, path):
    certificate = model.check(path)
    assert certificate, str(certificate)
    assert certificate.worst_gap < 1e-8
    assert path.worst_kkt_residual <= 1e-8


def test_a_path_that_was_moved_a_little_is_not_certified(model, path):
    class Moved:
        def at(self, age):
            x, residual = path.branch.at(age)
            return x + 1e-3, residual

        def critical_points(self):
            return ()

    from dataclasses import replace

    assert not model.check(replace(path, branch=Moved()), ages=[path.age_range[1]])


def test_each_critical_point_has_a_kind_a_cause_and_an_age_of_the_path(path):
    low, high = path.age_range
    assert len(path.turning_points) > 100
    assert len(path.jumps) >= 1
    for point in path.critical_points:
        assert low <= point.age <= high
        assert point.cause
        assert point.samples or point.coordinates
    assert all(point.change > 0 for point in path.jumps)


def test_at_a_great_age_the_self_paced_lasso_is_scikit_learns_lasso():
    text = MODEL.replace("quantiles(0.2, 1)", "[0.1, 1e7]")
    with pytest.warns(spdsl.SpdslWarning, match=r"lies above every loss.*losses range from"):
        path = spdsl.parse(text, "lasso.spl").solve(DIABETES, bind=BIND, standardize=["X", "y"])
    X, y = path.bound.data["X"], path.bound.data["y"]
    expected = Lasso(alpha=0.01, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    np.testing.assert_allclose(path(1e7)["w"], expected, atol=1e-6)
    assert path(1e7).in_share == 1.0


def test_a_saved_path_answers_as_the_one_that_was_solved(path, saved):
    again = spdsl.load_result(saved)
    low, high = path.age_range
    for age in np.geomspace(low, high, 7):
        np.testing.assert_allclose(again(age).x, path(age).x, atol=1e-12)
        assert again(age).kkt_residual <= 1e-8
    assert again.critical_points == path.critical_points


def test_validation_finds_an_age_at_least_as_good_as_any_of_a_fine_grid(model):
    table = np.genfromtxt(DIABETES, delimiter=",", skip_header=1)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    train, rest = table[::4], table[1::4]
    path = model.solve(X=train[:, :-1], y=train[:, -1])
    chosen = path.select(X=rest[:, :-1], y=rest[:, -1])

    def validation(age):
        return np.mean((rest[:, :-1] @ path(age)["w"] - rest[:, -1]) ** 2) / (2 * len(rest))

    grid = np.geomspace(*path.age_range, 120)
    assert chosen.value <= min(map(validation, grid)) + 1e-12
    assert chosen.value == pytest.approx(validation(chosen.age), rel=1e-9)


# --- the command line ----------------------------------------------------------------------------------------------


def test_the_two_commands_of_the_documents_solve_and_certify(tmp_path):
    lasso = EXAMPLES / "lasso.spl"
    flags = ("--data", DIABETES, "--bind", "y=target", "--standardize", "X,y")
    run = spdsl_("solve", lasso, *flags, "--out", tmp_path / "path.npz", "--json")
    assert run.exit_code == 0, run.stderr
    content = json.loads(run.stdout)
    assert content["worst_kkt_residual"] <= 1e-8
    assert content["rows"][-1]["in_share"] > 0.99
    run = spdsl_("check", tmp_path / "path.npz")
    assert run.exit_code == 0, run.output
    assert "certified: everything holds" in run.stdout


def test_quantiles_are_those_of_the_losses_under_the_fit_that_starts_the_path(path):
    X, y = path.bound.data["X"], path.bound.data["y"]
    fit = Lasso(alpha=0.01, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
    losses = (fit.predict(X) - y) ** 2 / (2 * len(y))
    low, high = path.age_range
    assert np.mean(losses < low) == pytest.approx(0.2, abs=2 / len(y))
    assert high == pytest.approx(losses.max(), rel=1e-6)


def test_an_explanation_names_the_back_end_and_why_not_the_others(model):
    text = str(model.explain())
    assert "path_following, the first that can solve it" in text
    assert "dual_averaging" in text


def test_a_mix_that_no_back_end_can_solve_tells_every_reason_and_exits_1(tmp_path):
    (tmp_path / "mix.spl").write_text(MODEL + "\nsubject to\n  support(w) in sparse(3)\n")
    run = spdsl_("solve", tmp_path / "mix.spl", "--data", DIABETES, "--bind", "y=target")
    assert run.exit_code == 1
    assert "no back end takes `support(w) in sparse(3)` together with the rest" in run.stderr
    assert "leave out `support(w) in sparse(3)`: `path_following` solves the rest" in run.stderr
    assert "path_following: " in run.stderr


def test_the_demo_prints_its_table_certifies_every_age_and_saves_the_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "spdsl", "demo", "--out", "demo.png"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("age", "in", "w ≠ 0", "gap to CVX", "turning points", "jump", "worst KKT residual", "certified:"):
        assert words in done.stdout
    assert (tmp_path / "demo.png").stat().st_size > 50_000
    assert done.stderr == ""

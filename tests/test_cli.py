"""The command line through click's runner: every command, every exit code, what goes to stdout and what to stderr.

Back ends are fakes here; `test_cli_process.py` runs real processes, and `test_main_job.py` the real chain.
"""

from __future__ import annotations

import json
from pathlib import Path

import click
import hand_built
import numpy as np
import pytest
from click.testing import CliRunner

import spdsl
from spdsl.cli.app import COMMANDS, app
from spdsl.cli.arguments import value_of
from spdsl.cli.writing import starters
from spdsl.solvers import dispatch

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    table = {"fakepath": "hand_built:FakePath", "fake": "hand_built:Fake", "broken": "hand_built:Broken"}
    monkeypatch.setattr(dispatch, "BACKENDS", {**table, "slow": "hand_built:Slow"})


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model and a table in it, and the shell in that folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.spl").write_text(hand_built.SOURCE)
    bound = hand_built.bound()
    rows = np.column_stack([bound.data["X"], bound.data["y"]])
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header="one,two,target", comments="", fmt="%.17g")
    return tmp_path


def spdsl_(*arguments, **options):
    return CliRunner(catch_exceptions=False).invoke(app, [str(item) for item in arguments], **options)


SOLVE = ("solve", "m.spl", "--data", "t.csv", "--bind", "y=target")


# --- solve ---------------------------------------------------------------------------------------------------------


def test_solve_prints_a_table_and_writes_a_result_that_loads(here):
    run = spdsl_(*SOLVE, "--out", "p.npz")
    assert run.exit_code == 0, run.stderr
    assert "2 turning points, 1 jump (at age 2)" in run.stdout
    assert "written to p.npz" in run.stdout
    assert run.stderr == ""
    assert spdsl.load_result("p.npz")(3.0)["b"] == 19.0


def test_ages_asked_for_are_the_rows_of_the_table(here):
    run = spdsl_(*SOLVE, "--age", "1.25", "--age", "3.5")
    rows = [line.split() for line in run.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert [row[0] for row in rows[:2]] == ["1.25", "3.5"]


def test_an_age_outside_the_path_is_a_usage_error_that_names_the_path(here):
    run = spdsl_(*SOLVE, "--age", "99")
    assert run.exit_code == 2
    assert "covers [1, 4]" in run.stderr


def test_ages_of_a_model_with_one_solution_are_refused_before_any_work(here):
    (here / "one.spl").write_text(hand_built.SOURCE.replace("in [1, 4]", "= 2"))
    run = spdsl_("solve", "one.spl", "--data", "t.csv", "--bind", "y=target", "--age", "2", "--out", "s.npz")
    assert run.exit_code == 2
    assert "this model has one solution" in run.stderr
    assert not (here / "s.npz").exists()
    spdsl_(*SOLVE, "--backend", "fake", "--out", "s.npz")
    assert spdsl_("show", "s.npz", "--age", "2").exit_code == 2


@pytest.mark.parametrize(
    ("command", "option"),
    [("solve", "--out"), ("select", "--out"), ("select", "--plot"), ("stability", "--out")],
)
def test_a_file_that_could_not_be_written_is_refused_before_any_work(here, monkeypatch, command, option):
    from spdsl.cli import repeating, selecting, solving

    for module in (repeating, selecting, solving):
        monkeypatch.setattr(module, "loaded_model", lambda *_, **__: pytest.fail("it was loaded"))
    run = spdsl_(command, *SOLVE[1:], option, "nowhere/f.npz")
    assert run.exit_code == 2
    assert "there is no folder" in run.stderr
    assert f"choose another `{option}`" in run.stderr


def test_json_is_the_only_thing_on_stdout_and_every_reader_takes_it(here):
    run = spdsl_(*SOLVE, "--json", "--out", "p.npz")
    content = json.loads(run.stdout, parse_constant=pytest.fail)
    assert content["kind"] == "path"
    assert content["turning_points"] == 2
    assert content["jumps"][0]["age"] == 2.0
    assert content["out"] == "p.npz"
    assert content["solved"] is True


def test_quiet_prints_nothing(here):
    run = spdsl_(*SOLVE, "--quiet")
    assert (run.exit_code, run.stdout, run.stderr) == (0, "", "")


def test_more_files_may_follow_and_flags_may_stand_anywhere(here):
    run = spdsl_("solve", "--quiet", "m.spl", "t.csv", "--bind", "y=target", "--out", "p.npz")
    assert run.exit_code == 0, run.stderr
    assert spdsl.load_result("p.npz").bound.sizes["d"] == 2


def test_parameters_options_seed_and_standardize_reach_the_model(here):
    run = spdsl_(
        *SOLVE, "--set", "alpha=0.5", "-o", "steps=7", "--backend", "fake", "--seed", "9", "--standardize", "X, y",
        "--out", "s.npz",
    )  # fmt: skip
    assert run.exit_code == 0, run.stderr
    result = spdsl.load_result("s.npz")
    assert result.bound.parameters["alpha"] == 0.5
    assert (result.options["steps"], result.options["seed"]) == (7, 9)
    assert set(result.bound.scaling) == {"X", "y"}
    assert "standardized: X, y" in run.stdout


def test_a_solution_is_shown_by_its_main_figures(here):
    run = spdsl_(*SOLVE, "--backend", "fake")
    for words in ("objective", "w ≠ 0", "2 of 2", "b", "5"):
        assert words in run.stdout


def test_a_solver_that_stops_short_leaves_what_it_reached_and_exit_code_3(here):
    run = spdsl_(*SOLVE, "--backend", "slow", "--time-limit", "0.1", "--out", "p.npz")
    assert run.exit_code == 3
    assert "the time limit was reached" in run.stdout
    assert "stopped after" in run.stdout
    assert not spdsl.load_result("p.npz").status.ok


# --- what is wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["solve", "nothing.spl"], 1, "there is no file `nothing.spl`"),
        (["solve", "n.spl", "--data", "t.csv"], 1, "did you mean `m.spl`"),
        (["solve", "m.spl", "--data", "t.cvs"], 1, "t.cvs"),
        (["solve", "m.spl", "--data", "t.csv"], 1, "`y`"),
        ([*SOLVE, "--set", "alhpa=1"], 1, "alhpa"),
        ([*SOLVE, "--set", "alpha"], 2, "--set NAME=VALUE"),
        ([*SOLVE, "--set", "alpha=1", "--set", "alpha=2"], 2, "twice"),
        ([*SOLVE, "--bind", "=x"], 2, "--bind NAME=SOURCE"),
        ([*SOLVE, "--option", "stepz=3"], 2, "did you mean `steps`"),
        ([*SOLVE, "--option", "steps=0"], 2, "must be positive"),
        ([*SOLVE, "--backend", "fakepaht"], 2, "did you mean `fakepath`"),
        ([*SOLVE, "--standardize", "Z"], 2, "can't be standardized"),
        ([*SOLVE, "--time-limit", "-1"], 2, "must be positive"),
        ([*SOLVE, "--out", "nowhere/p.npz"], 2, "can't write nowhere/p.npz"),
        # before the data are read, let alone the model solved
        (["solve", "m.spl", "--data", "none.csv", "--out", "nowhere/p.npz"], 2, "mkdir -p nowhere"),
        (["check", "m.spl", "--data", "none.csv", "--out", "."], 2, "it is a folder"),
        ([*SOLVE, "--bogus"], 2, "No such option"),
        (["slove", "m.spl"], 2, "Did you mean `spdsl solve`"),
        (["m.spl"], 2, "Did you mean `spdsl solve m.spl`"),
        (["solve"], 2, "Missing argument 'MODEL'"),
        (["plot", "m.spl"], 2, "is a model; this needs a result"),
        (["plot", "t.csv"], 2, "is not a result file"),
        (["show", "missing.npz"], 2, "can't read missing.npz"),
        (["new"], 2, "Missing argument 'FILE'"),
        (["new", "x.spl", "--from", "laso"], 2, "Did you mean `lasso`"),
        (["new", "m.spl"], 2, "m.spl is already there"),
        (["backends", "fakepat"], 2, "did you mean `fakepath`"),
    ],
)
def test_what_is_wrong_is_told_on_stderr_with_its_exit_code_and_never_a_traceback(here, arguments, code, words):
    run = spdsl_(*arguments)
    assert run.exit_code == code, run.output
    assert words in run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.output


def test_every_complaint_about_a_model_is_shown_with_its_line(here):
    (here / "bad.spl").write_text(hand_built.SOURCE.replace("X @ w", "X @ ww").replace("alpha *", "alhpa *"))
    run = spdsl_("solve", "bad.spl", "--data", "t.csv")
    assert run.exit_code == 1
    assert "bad.spl:15:" in run.stderr
    assert "bad.spl:16:" in run.stderr
    assert "did you mean `alpha`" in run.stderr


def test_a_bug_is_called_a_bug_says_where_and_what_to_report_and_exits_70(here):
    run = spdsl_(*SOLVE, "--backend", "broken")
    assert run.exit_code == 70
    assert "this is a bug in spdsl: KeyError: 'nothing'" in run.stderr
    assert "hand_built.py:" in run.stderr
    assert f"spdsl {spdsl.__version__}, Python 3." in run.stderr
    assert "Traceback" not in run.output


def test_debug_shows_the_traceback_of_a_bug_and_of_a_wrong_model(here):
    run = spdsl_(*SOLVE, "--backend", "broken", "--debug")
    assert run.exit_code == 70
    assert "Traceback" in run.stderr
    assert "Traceback" in spdsl_("solve", "nothing.spl", "--debug").stderr


def test_remarks_go_to_stderr_and_quiet_keeps_them_back(here):
    (here / "log.spl").write_text(hand_built.SOURCE.replace("linear(lambda)", "log(lambda, 0.5)"))
    arguments = ("solve", "log.spl", "--data", "t.csv", "--bind", "y=target")
    run = spdsl_(*arguments)
    assert run.exit_code == 0, run.stderr
    assert "axiom (iii)" in run.stderr
    assert spdsl_(*arguments, "--quiet").stderr == ""


# --- check ---------------------------------------------------------------------------------------------------------


def test_check_fails_with_exit_code_1_for_a_path_that_is_no_optimum(here):
    run = spdsl_("check", *SOLVE[1:], "--age", "1.5", "--age", "3")
    assert run.exit_code == 1
    assert "NOT certified" in run.stdout
    assert "at age 3: " in run.stdout


def test_a_certificate_is_kept_with_the_result(here):
    run = spdsl_("check", *SOLVE[1:], "--age", "3", "--out", "p.npz", "--quiet")
    assert run.exit_code == 1
    certificate = spdsl.load_result("p.npz").certificate
    assert not certificate
    assert certificate.rows[0].age == 3.0
    assert certificate.failures


def test_a_looser_tolerance_may_pass_what_a_tight_one_does_not(here):
    spdsl_(*SOLVE, "--out", "p.npz")
    assert spdsl_("check", "p.npz", "--age", "3").exit_code == 1
    run = spdsl_("check", "p.npz", "--age", "3", "--tolerance", "1e40")
    assert run.exit_code == 0, run.stdout
    assert "certified: everything holds to 1e+40" in run.stdout


def test_check_takes_a_result_file_and_gives_json(here):
    spdsl_(*SOLVE, "--out", "p.npz")
    run = spdsl_("check", "p.npz", "--age", "3", "--json")
    assert run.exit_code == 1
    content = json.loads(run.stdout, parse_constant=pytest.fail)
    assert content["certificate"]["ok"] is False
    assert len(content["certificate"]["rows"]) == 1


# --- show, plot, explain, backends ---------------------------------------------------------------------------------


def test_show_prints_what_solve_printed(here):
    solved = spdsl_(*SOLVE, "--out", "p.npz")
    shown = spdsl_("show", "p.npz")
    assert shown.exit_code == 0
    assert shown.stdout.strip() in solved.stdout


def test_show_lists_critical_points_and_values(here):
    spdsl_(*SOLVE, "--out", "p.npz")
    run = spdsl_("show", "p.npz", "--critical", "--age", "3", "--values")
    assert "sample 5 enters E" in run.stdout
    assert "w[one]" in run.stdout
    assert spdsl_("show", "p.npz", "--values").exit_code == 2
    assert json.loads(spdsl_("show", "p.npz", "--json").stdout)["nodes"] == 6


@pytest.mark.parametrize(
    ("flags", "name"), [([], "p.png"), (["--format", "svg"], "p.svg"), (["--out", "q.html"], "q.html")]
)
def test_plot_writes_the_picture_that_was_asked_for(here, flags, name):
    spdsl_(*SOLVE, "--out", "p.npz")
    run = spdsl_("plot", "p.npz", *flags)
    assert run.exit_code == 0, run.stderr
    assert run.stdout == f"written to {name}\n"
    assert (here / name).stat().st_size > 1000


def test_plot_refuses_a_format_and_a_name_that_disagree(here):
    spdsl_(*SOLVE, "--out", "p.npz")
    run = spdsl_("plot", "p.npz", "--format", "png", "--out", "p.html")
    assert run.exit_code == 2
    assert "don't agree" in run.stderr


@pytest.mark.parametrize("form", ["text", "latex", "html"])
def test_explain_prints_or_writes_each_format(here, form):
    run = spdsl_("explain", "m.spl", "--format", form)
    assert run.exit_code == 0, run.stderr
    assert {"text": "Sample weights", "latex": r"\subsection*{Sample weights}", "html": "<math"}[form] in run.stdout
    assert spdsl_("explain", "m.spl", "--format", form, "--out", "e.txt").stdout == ""
    assert len((here / "e.txt").read_text()) > 500


def test_backends_lists_them_and_the_options_of_one(here):
    run = spdsl_("backends")
    assert "fakepath" in run.stdout
    run = spdsl_("backends", "fake")
    assert "how many steps to make" in run.stdout
    assert "plain, fancy" in run.stdout


# --- fmt, new ------------------------------------------------------------------------------------------------------

CROWDED = hand_built.SOURCE.replace("  alpha = 0.1", "alpha=0.1")


def test_fmt_writes_the_one_layout_and_leaves_a_file_in_it_alone(here):
    (here / "c.spl").write_text(CROWDED)
    run = spdsl_("fmt", "c.spl", "m.spl")
    assert run.exit_code == 0
    assert (here / "c.spl").read_text() == hand_built.SOURCE
    assert run.stderr == "formatted c.spl\n"


def test_fmt_check_writes_nothing_and_has_exit_code_1_when_a_file_would_change(here):
    (here / "c.spl").write_text(CROWDED)
    run = spdsl_("fmt", "--check", "c.spl")
    assert (run.exit_code, run.stderr) == (1, "would change c.spl\n")
    assert (here / "c.spl").read_text() == CROWDED
    assert spdsl_("fmt", "--check", "m.spl").exit_code == 0


def test_fmt_diff_shows_the_lines_and_writes_nothing(here):
    (here / "c.spl").write_text(CROWDED)
    run = spdsl_("fmt", "--diff", "c.spl")
    assert run.exit_code == 0
    assert "-alpha=0.1" in run.stdout
    assert "+  alpha = 0.1" in run.stdout
    assert (here / "c.spl").read_text() == CROWDED


def test_fmt_reads_stdin_and_writes_stdout(here):
    run = spdsl_("fmt", "-", input=CROWDED.encode())
    assert run.stdout == hand_built.SOURCE


def test_fmt_mends_line_ends_and_byte_order_marks(here):
    (here / "c.spl").write_bytes(b"\xef\xbb\xbf" + hand_built.SOURCE.replace("\n", "\r\n").encode())
    assert spdsl_("fmt", "--check", "c.spl").exit_code == 1
    assert spdsl_("fmt", "c.spl").exit_code == 0
    assert (here / "c.spl").read_bytes() == hand_built.SOURCE.encode()


def test_fmt_goes_on_after_a_file_that_is_wrong(here):
    (here / "bad.spl").write_text("minimize minimize")
    (here / "c.spl").write_text(CROWDED)
    run = spdsl_("fmt", "bad.spl", "c.spl")
    assert run.exit_code == 1
    assert "bad.spl" in run.stderr
    assert (here / "c.spl").read_text() == hand_built.SOURCE
    assert (here / "bad.spl").read_text() == "minimize minimize"


def test_fmt_keeps_the_mode_of_a_file(here):
    (here / "c.spl").write_text(CROWDED)
    (here / "c.spl").chmod(0o640)
    spdsl_("fmt", "c.spl")
    assert (here / "c.spl").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["lasso", "svm", "graph", "online", "metric"])
def test_every_starter_compiles_is_in_the_one_layout_and_says_how_to_solve_it(here, name):
    run = spdsl_("new", "mine.spl", "--from", name)
    assert run.exit_code == 0
    text = (here / "mine.spl").read_text()
    assert text.startswith("# ")
    assert "spdsl solve mine.spl" in text
    assert spdsl.load("mine.spl").format() == text


def test_the_starters_are_listed_with_a_line_each_and_new_writes_to_stdout(here):
    run = spdsl_("new", "--list")
    assert [line.split()[0] for line in run.stdout.splitlines()] == list(starters())
    assert spdsl_("new", "-", "--from", "svm").stdout == starters()["svm"]
    assert spdsl_("new", "m.spl", "--force").exit_code == 0


# --- examples, help, values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.spl")), ids=lambda file: file.stem)
def test_every_example_compiles_and_is_in_the_one_layout(file):
    assert spdsl.load(file).format() == file.read_text()


def test_every_command_has_help_that_shows_and_every_option_of_it_a_text():
    for name in COMMANDS:
        run = spdsl_(name, "--help")
        assert run.exit_code == 0
        command = app.get_command(None, name)
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.name}"
        assert command.help
    assert "demo" in spdsl_("--help").stdout
    assert spdsl_("--version").stdout == f"spdsl {spdsl.__version__}\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2.5e-3", -2.5e-3),
        ("true", True),
        ("False", False),
        ("inf", float("inf")),
        ("full", "full"),
        ("'two words'", "two words"),
        ("subset(0.5, seed = 1)", ("subset", (0.5,), {"seed": 1})),
        ("normal(0, scale(2, a=b))", ("normal", (0, ("scale", (2,), {"a": "b"})), {})),
        ("zero()", ("zero", (), {})),
        ("1/n", "1/n"),
    ],
)
def test_values_of_options_are_read_as_in_a_solve_statement(text, value):
    assert value_of(text) == value


# --- select --------------------------------------------------------------------------------------------------------

SELECT = ("select", "m.spl", "--data", "t.csv", "--bind", "y=target", "--backend", "fakepath")


def validated_by(here, value):
    """A table that the fake path fits best at the age whose coordinates are `value`."""
    X = np.random.default_rng(1).normal(size=(7, 2))
    rows = np.column_stack([X, X @ np.full(2, value) + value])
    np.savetxt(here / "v.csv", rows, delimiter=",", header="one,two,target", comments="", fmt="%.17g")


def test_select_finds_the_age_on_a_validation_file_and_writes_its_solution(here):
    validated_by(here, 1.5**2)
    run = spdsl_(*SELECT, "--validation", "v.csv", "--out", "s.npz", "--plot", "curve.png")
    assert run.exit_code == 0, run.stderr
    assert "best age 1.5" in run.stdout
    assert spdsl.load_result("s.npz")["b"] == pytest.approx(2.25, rel=1e-2)
    assert (here / "curve.png").stat().st_size > 1000


def test_select_over_folds_tells_the_standard_error_and_the_smallest_age_within_it(here):
    run = spdsl_(*SELECT, "--folds", "3", "--json")
    assert run.exit_code == 0, run.stderr
    content = json.loads(run.stdout, parse_constant=pytest.fail)
    assert content["by"] == "3 folds"
    assert content["age_within_one_standard_error"] <= content["age"]
    assert content["value"] == pytest.approx(content["minima"][0][1])
    assert content["standard_error"] >= 0.0


def test_select_refuses_ages_and_models_without_any(here):
    assert spdsl_(*SELECT, "--age", "2").exit_code == 2
    (here / "one.spl").write_text(hand_built.SOURCE.replace("in [1, 4]", "= 2"))
    run = spdsl_("select", "one.spl", "--data", "t.csv", "--bind", "y=target", "--backend", "fake")
    assert run.exit_code == 2
    assert "none to choose" in run.stderr

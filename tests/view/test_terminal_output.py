"""Tables, messages and the progress bar on terminals and elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace

import hand_built
import numpy as np
import pytest
from rich.console import Console

from spdsl.diagnostics import Diagnostic, Related, Severity, Source, Span, render
from spdsl.problem import LabelMapping
from spdsl.solution import Status
from spdsl.view.messages import colored
from spdsl.view.progress import progress_bar
from spdsl.view.tables import critical_table, nonzeros, path_rows, result_report, summary, values_table


def shown(renderable, width=100):
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(renderable)
    return stream.getvalue()


@pytest.fixture
def path():
    return hand_built.path()


def test_the_table_of_a_path_has_the_figures_of_its_solutions(path):
    rows = path_rows(path, [1.25, 3.0])
    for row in rows:
        solution = path(row["age"])
        assert row["in_share"] == solution.in_share
        assert row["mean_weight"] == pytest.approx(solution.weights.mean())
        assert row["objective"] == solution.objective
        assert row["nonzeros"] == {"w": 2}


def test_the_report_of_a_path_tells_ages_critical_points_residual_and_how_it_ended(path):
    text = shown(result_report(path))
    assert "2 turning points, 1 jump (at age 2)" in text
    assert "worst KKT residual 3.0e-11 over 6 nodes" in text
    assert Status.SOLVED.value in text
    first, last = text.splitlines()[4].split(), text.splitlines()[12].split()
    assert (first[0], last[0]) == ("1", "4")


def test_a_path_that_ended_early_says_so_with_the_message(path):
    text = shown(result_report(replace(path, status=Status.PARTIAL_PATH, message="at age 3: no minimum found")))
    assert "at age 3: no minimum found" in text


def test_how_labels_were_mapped_and_what_was_standardized_is_told(path):
    from spdsl.problem import standardize

    bound = standardize(replace(path.bound, labels={"y": LabelMapping("no", "yes")}), ["X"])
    text = shown(result_report(hand_built.path(bound)))
    assert "labels y: 'no' is -1, 'yes' is +1" in text
    assert "standardized: X" in text


def test_a_path_without_data_shows_its_nodes(path):
    bare = replace(path, branch=None, bound=replace(path.bound, data={}), stored_critical_points=())
    text = shown(result_report(bare))
    assert "objective" not in text
    assert "w ≠ 0" in text


def test_the_report_of_a_solution_has_its_figures(path):
    text = shown(result_report(path(3.0)))
    for words in ("age", "objective", "samples in", "KKT residual", "2 of 2", "19"):
        assert words in text


@pytest.mark.parametrize("width", [36, 50, 80, 200])
def test_no_line_is_wider_than_the_terminal(path, width):
    for renderable in (result_report(path), critical_table(path), values_table(path(3.0))):
        assert max(map(len, shown(renderable, width).splitlines())) <= width


def test_numbers_are_never_cut_on_an_ordinary_terminal(path):
    assert "…" not in shown(result_report(path), 72)


def test_summaries_hold_plain_values_only(path):
    import json

    from spdsl.cli.solving import print_json

    print_json(summary(path))
    json.dumps(summary(path, [2.5])["rows"])
    assert summary(path(3.0))["values"] == {"w": [19.0, 19.0], "b": 19.0}


def test_critical_points_are_listed_with_their_causes(path):
    text = shown(critical_table(path))
    assert "sample 5 enters E" in text
    assert text.index("1.5") < text.index("sample 5")


def test_entries_that_are_rounding_noise_count_as_zeros():
    bound = hand_built.bound()
    assert nonzeros(bound, np.array([1.0, 1e-14, 0.0])) == {"w": 1}
    assert nonzeros(bound, np.zeros(3)) == {"w": 0}


# --- messages ------------------------------------------------------------------------------------------------------

SOURCE = Source("robust.spl", "minimize\n  loss sum((X @ w - y)^2)\n")
ONE = Diagnostic(
    "SPL203",
    "`self_paced` needs one loss per sample, and this loss is a scalar",
    span=Span(SOURCE, 16, 33),
    label="scalar",
    help=("drop the `sum`", "or say [bold]what[/bold] is meant"),
    related=(Related(Span(SOURCE, 0, 8), "declared here"), Related(None, "a remark")),
)
TWO = Diagnostic("SPL701", "an age is off", place="table.csv:14", severity=Severity.WARNING)


def test_colours_change_no_word_of_a_message():
    text = colored([ONE, TWO])
    assert text.plain == f"{render(ONE)}\n\n{render(TWO)}"
    assert shown(text, 200).rstrip("\n") == text.plain


def test_the_head_the_carets_and_the_helps_are_coloured():
    text = colored([ONE])
    styles = {text.plain[span.start : span.end].strip(): str(span.style) for span in text.spans}
    assert styles["error[SPL203]"] == "bold red"
    assert styles["help"] == "bold green"
    assert any("^^^" in part and style == "bold red" for part, style in styles.items())


# --- progress ------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_there_is_no_bar_where_there_is_no_terminal():
    with progress_bar(io.StringIO()) as told:
        assert told is None


def test_short_work_shows_no_bar():
    terminal = Terminal()
    with progress_bar(terminal, wait=60) as told:
        told(0.5, "age 1")
    assert terminal.getvalue() == ""


def test_long_work_shows_share_and_words_and_leaves_nothing_behind():
    terminal = Terminal()
    with progress_bar(terminal, wait=0) as told:
        told(0.5, "age 1.25 [of 4]")
    assert "50%" in terminal.getvalue()
    assert "age 1.25 [of 4]" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith(("\x1b[2K", "\x1b[?25h", "\r"))

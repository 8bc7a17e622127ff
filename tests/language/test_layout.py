"""Where a statement ends: lines, semicolons, brackets, operators at ends and starts of lines."""

from __future__ import annotations

import pytest

from spdsl.diagnostics import ModelError
from spdsl.language import parse
from spdsl.language.printer import unparse_statement
from spdsl.language.tree import Model
from tests.language.models import SELF_PACED_LASSO, checked, regression


def _printed(text: str, keyword: str) -> list[str]:
    tree: Model = parse(text)
    return [unparse_statement(s) for section in tree.sections if section.keyword == keyword for s in section.statements]


def _errors(text: str) -> list[str]:
    with pytest.raises(ModelError) as caught:
        parse(text)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def test_a_comparison_above_a_negative_number_makes_two_constraints() -> None:
    assert _printed(regression(subject="w >= 0\n-1 <= w"), "subject to") == ["w >= 0", "-1 <= w"]


def test_a_line_that_ends_in_an_operator_goes_on() -> None:
    text = "subject to\n  w >=\n    0\n  norm1(w) +\n  sum(w) <= 1\n"
    assert _printed(text, "subject to") == ["w >= 0", "norm1(w) + sum(w) <= 1"]


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "^", "@"])
def test_every_operator_continues_its_line(operator: str) -> None:
    assert parse(f"minimize\n  loss a {operator}\n\n   b\n") == parse(f"minimize loss a {operator} b")


@pytest.mark.parametrize("operator", ["/", "*", "^", "@", "+", "-", "<="])
def test_a_line_that_starts_with_an_operator_says_how_to_continue_the_one_above(operator: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse(f"minimize\n  loss (X @ w - y)^2\n  {operator} n\n")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "SPL111"
    assert f"end the line above with `{operator}`" in diagnostic.help[0]


def test_an_open_bracket_continues_over_lines_and_comments() -> None:
    text = "minimize\n  loss (X @ w   # the fit\n\n    # minus\n    - y)^2\n"
    assert _printed(text, "minimize") == ["loss (X @ w - y)^2"]


def test_semicolons_end_statements() -> None:
    text = "data X : matrix(n, d); y : vector(n);; z : scalar ;\nvariable w : vector(d)\nminimize loss y; loss z\n"
    assert _printed(text, "data") == ["X : matrix(n, d)", "y : vector(n)", "z : scalar"]
    assert _printed(text, "minimize") == ["loss y", "loss z"]


def test_a_section_may_start_after_a_semicolon() -> None:
    assert parse("data X : vector(n); variable w : scalar") == parse("data\n X : vector(n)\nvariable\n w : scalar")


def test_the_first_statement_may_share_the_line_of_its_keyword() -> None:
    assert parse("data X : matrix(n, d)\n  y : vector(n)\n") == parse("data\nX : matrix(n, d)\ny : vector(n)\n")


def test_an_expression_may_start_on_the_line_below_its_keyword() -> None:
    assert parse("minimize\n  loss\n    (X @ w)^2\n") == parse("minimize loss (X @ w)^2")


def test_indentation_and_blank_lines_carry_no_meaning() -> None:
    flat = "\n\n".join(line.strip() for line in SELF_PACED_LASSO.splitlines())
    assert parse(flat) == parse(SELF_PACED_LASSO)


def test_unicode_spellings_are_accepted() -> None:
    greek = SELF_PACED_LASSO.replace("lambda", "λ").replace("alpha", "α")
    assert parse(greek) == parse(SELF_PACED_LASSO)
    assert parse("subject to w ≥ 0; w ≤ γ_1; M ⪰ 0") == parse("subject to w >= 0; w <= gamma_1; M >> 0")


def test_an_unclosed_bracket_costs_one_complaint_and_not_the_rest_of_the_file() -> None:
    text = SELF_PACED_LASSO.replace("(2*n)", "(2*n").replace("alpha = 5e-3", "alpha : 5e-3")
    assert _errors(text) == ["SPL119", "SPL109"]


def test_an_option_on_its_own_line_does_not_end_a_call() -> None:
    text = "solve comid(\n  step = 0.1,\n  passes = 5\n)\n"
    assert _printed(text, "solve") == ["comid(step = 0.1, passes = 5)"]


def test_each_broken_statement_gets_its_own_complaint() -> None:
    text = "data\n  X = matrix(n)\n  y vector(n)\nparameter\n  a : 1\nminimize\n  loss +\n  regularizer )\n"
    assert _errors(text) == ["SPL119", "SPL119", "SPL119", "SPL113", "SPL110"]


def test_no_more_than_twenty_errors_are_shown_and_the_rest_is_counted() -> None:
    with pytest.raises(ModelError) as caught:
        parse("data\n" + "  X = 1\n" * 33)
    assert len(caught.value.diagnostics) == 20
    assert "13 more errors are not shown" in str(caught.value)


def test_errors_come_in_the_order_of_the_file() -> None:
    with pytest.raises(ModelError) as caught:
        parse("data\n  X = 1\n  y ? 2\n  z\nminimize\n  loss )\n  (\n")
    starts = [d.span.start for d in caught.value.diagnostics if d.span]
    assert starts == sorted(starts)


@pytest.mark.parametrize("name", ["pace", "st", "min_", "convex", "var"])
def test_a_name_like_another_word_for_a_section_can_be_used(name: str) -> None:
    """`age pace in ...` and `st in ...` are statements, not misspelt sections."""
    text = f"age {name} in [1, 2]\nsubject to\n  {name} in sparse(3)\n"
    assert _printed(text, "age") == [f"{name} in [1, 2]"]
    assert _printed(text, "subject to") == [f"{name} in sparse(3)"]


def test_a_flood_of_errors_ends_the_search_early() -> None:
    with pytest.raises(ModelError) as caught:
        parse("|\n" * 200_000)
    assert len(caught.value.diagnostics) == 20
    assert "many more errors are not shown" in str(caught.value)


def test_thousands_of_names_in_one_sum() -> None:
    names = [f"p{k}" for k in range(3000)]
    text = regression(
        "(X @ w - y)^2",
        f"regularizer ({' + '.join(names)}) * norm1(w)",
        parameter="\n".join(f"{name} = 1" for name in names),
    )
    assert set(checked(text).parameter_signs) == set(names)

"""Says in a sentence why a statement can't be parsed, and how to mend it.

In: a `Failure`. Out: one complaint for each statement. The rules are tried in order; the last one always answers.
"""

from __future__ import annotations

from collections.abc import Callable

from spdsl.language import expression_failures as expression
from spdsl.language import statement_failures as statement
from spdsl.language.complaints import Complaints
from spdsl.language.failures import Answer, Failure

__all__ = ["RULES", "explain"]

RULES: tuple[Callable[[Failure], Answer | None], ...] = (
    statement.word_taken_for_name,
    statement.operator_starts_line,
    statement.wrong_section,
    statement.no_statement_word,
    statement.equals_mixed_up,
    expression.comparison_in_expression,
    statement.wrong_type_form,
    expression.indexing,
    expression.pieces_outside,
    expression.piece_without_condition,
    statement.reserved,
    statement.missing_colon,
    statement.age_range,
    expression.option_with_colon,
    expression.logic,
    statement.several_names,
    expression.missing_operator,
    statement.ends_early,
    expression.empty_brackets,
    expression.double_operator,
    statement.anything_else,
)
"""The rules, most special first."""


def explain(failure: Failure, complaints: Complaints) -> None:
    """Note the complaint of the first rule that knows the failure."""
    for rule in RULES:
        answer = rule(failure)
        if answer is not None:
            complaints.error(answer.code, answer.message, answer.span or failure.span, answer.label, *answer.helps)
            return
    raise AssertionError("the last rule answers everything")

"""Reads `age`: an interval, quantiles of the losses, or one age.

In: an `age` statement. Out: an `Age`, or None after a complaint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spdsl.diagnostics import nearest_name
from spdsl.language.checked import Age, AgeForm
from spdsl.language.constants import constant_value
from spdsl.language.printer import shown
from spdsl.language.tree import AgeStatement, Call, Expression, Interval

if TYPE_CHECKING:
    from spdsl.language.declarations import Declarations

__all__ = ["read_age"]


def read_age(declarations: Declarations, statement: AgeStatement) -> Age | None:
    """`age lambda in [a, b]`, `in quantiles(a, b)` or `= a`"""
    value = statement.value
    ends: tuple[Expression, ...]
    if isinstance(value, Interval):
        form, ends = AgeForm.INTERVAL, (value.low, value.high)
    elif statement.fixed:
        form, ends = AgeForm.FIXED, (value,)
    elif isinstance(value, Call) and value.function == "quantiles":
        form, ends = AgeForm.QUANTILES, value.arguments
        if len(ends) != 2 or value.options:
            message = "`quantiles` takes the share of samples at the start and at the end"
            declarations.complaints.error("SPL211", message, value.span, "", "its form is `quantiles(0.2, 1)`")
            ends = ()
    else:
        form, ends = AgeForm.FIXED, ()
        message = "an age lies in an interval or in quantiles of the losses"
        helps, place = ["an age reads `in [a, b]`, `in quantiles(0.2, 1)` or `= a`"], value.span
        if isinstance(value, Call) and nearest_name(value.function, ["quantiles"]):
            helps, place = ["did you mean `quantiles`?"], value.name_span
        declarations.complaints.error("SPL231", message, place, "", *helps)
    made: list[Expression] = []
    for end in ends:
        node, type_ = declarations.elaborator.number(
            end, "the age" if form is not AgeForm.QUANTILES else "a share of samples"
        )
        if type_ is not None:
            made.append(node)
    if not ends or len(made) < len(ends):
        return None
    age = Age(statement.name, form, made[0], made[-1], statement)
    _check_range(declarations, age)
    return age


def _check_range(declarations: Declarations, age: Age) -> None:
    low = constant_value(age.low, declarations.elaborator.defaults)
    high = constant_value(age.high, declarations.elaborator.defaults)
    for value, node in ((low, age.low), (high, age.high)):
        if value is None:
            continue
        if age.form is AgeForm.QUANTILES and not 0 <= value <= 1:
            help_ = "1 stands for all samples, 0.2 for a fifth of them"
            message = f"a share of samples lies between 0 and 1, and this is {value:g}"
            declarations.complaints.error("SPL231", message, node.span, "", help_)
            return
        if age.form is not AgeForm.QUANTILES and value <= 0:
            message = f"an age is positive, and this is {value:g}"
            declarations.complaints.error("SPL231", message, node.span, "", "at age 0 no sample is selected")
            return
    if age.form is not AgeForm.FIXED and low is not None and high is not None and low >= high:
        span = age.low.span.to(age.high.span)
        if low == high:
            message, help_ = "the ages end where they start", f"for one age write `age {age.name} = {low:g}`"
        else:
            message, help_ = "the ages run backwards", f"write `{shown(age.high)}, {shown(age.low)}`"
        declarations.complaints.error("SPL231", message, span, "", help_)

"""Records: equality without places, frozen, copied, pickled, matched; complaints: kept once, in order."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from spdsl.diagnostics import ModelError, Source, Span, nearest_name, render
from spdsl.language.complaints import Complaints
from spdsl.language.record import Record, place
from spdsl.language.tree import Name, Number, Unary

_SOURCE = Source("model.spl", "alpha = 1\nbeta = 2\n")
_HERE, _THERE = Span(_SOURCE, 0, 5), Span(_SOURCE, 10, 14)


class _Pair(Record):
    left: int
    right: str = "r"
    where: Span | None = place(kw_only=True, default=None)


def test_places_take_no_part_in_equality_hash_and_repr() -> None:
    here, there = Name("w", span=_HERE), Name("w", span=_THERE)
    assert here == there
    assert hash(here) == hash(there)
    assert repr(here) == "Name(name='w')"
    assert here != Name("u", span=_HERE)
    assert here != Number(1, text="1", span=_HERE)


def test_defaults_positions_and_keywords_work_as_in_a_dataclass() -> None:
    assert _Pair(1) == _Pair(1, "r") == _Pair(right="r", left=1, where=_HERE)
    with pytest.raises(TypeError):
        _Pair()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Name("w")  # type: ignore[call-arg]


def test_records_are_frozen() -> None:
    node = _Pair(1)
    with pytest.raises(AttributeError, match="frozen"):
        node.left = 2
    with pytest.raises(AttributeError, match="frozen"):
        del node.left
    with pytest.raises(AttributeError):
        node.other = 2  # type: ignore[attr-defined]


def test_a_changed_copy() -> None:
    node = Unary("-", Name("w", span=_HERE), span=_HERE)
    assert node.replace(operator="+") == Unary("+", Name("w", span=_HERE), span=_THERE)
    assert node.replace(operator="+").span == _HERE
    with pytest.raises(TypeError):
        node.replace(nothing=1)


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
def test_copies_are_equal_places_included(copied: Any) -> None:
    node = Unary("-", Name("w", span=_HERE), span=_THERE)
    again = copied(node)
    assert again == node
    assert (again.span, again.operand.span) == (node.span, node.operand.span)


def test_matching_by_position_and_keyword() -> None:
    match Unary("-", Name("w", span=_HERE), span=_HERE):
        case Unary("-", Name(name)):
            assert name == "w"
        case _:
            pytest.fail("no match")


def test_a_complaint_is_kept_once_and_all_in_order() -> None:
    complaints = Complaints()
    complaints.error("SPL200", "second", _THERE)
    complaints.error("SPL200", "first", _HERE)
    complaints.error("SPL200", "again", _HERE)
    complaints.warning("SPL290", "a warning", _HERE)
    assert bool(complaints)
    assert [d.message for d in complaints.errors()] == ["first", "second"]
    assert [d.message for d in complaints.warnings()] == ["a warning"]
    with pytest.raises(ModelError):
        complaints.raise_if_any()


def test_warnings_alone_do_not_end_a_run() -> None:
    complaints = Complaints()
    complaints.warning("SPL290", "a warning", _HERE)
    complaints.raise_if_any()


def test_a_diagnostic_looks_like_the_one_in_the_design() -> None:
    lines = [""] * 13 + ["  loss  sum((X @ w - y)^2) / (2*n)"]
    source = Source("robust.spl", "\n".join(lines))
    start = source.text.index("sum")
    complaints = Complaints()
    complaints.error(
        "SPL203",
        "`self_paced` needs one loss per sample, and this loss is a scalar",
        Span(source, start, start + 26),
        "scalar",
        "drop the `sum`: the samples are summed for you",
    )
    assert render(complaints.errors()[0]) == (
        "error[SPL203]: `self_paced` needs one loss per sample, and this loss is a scalar\n"
        "  --> robust.spl:14:9\n"
        "   |\n"
        "14 |   loss  sum((X @ w - y)^2) / (2*n)\n"
        "   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^ scalar\n"
        "   |\n"
        "help: drop the `sum`: the samples are summed for you"
    )


@pytest.mark.parametrize(
    ("name", "candidates", "nearest"),
    [
        ("alhpa", ["alpha", "beta"], "alpha"),
        ("varaible", ["variable", "parameter"], "variable"),
        ("N", ["n", "d"], "n"),
        ("v", ["w", "X"], None),
        ("rho", ["alpha", "w"], None),
        ("Lambda", ["lambda", "lamda"], "lambda"),
        ("hubber", ["huber", "hinge"], "huber"),
    ],
)
def test_the_nearest_name(name: str, candidates: list[str], nearest: str | None) -> None:
    assert nearest_name(name, candidates) == nearest


def test_long_lines_are_shown_around_the_place() -> None:
    text = "x" * 500 + " bad " + "y" * 500
    complaints = Complaints()
    complaints.error("SPL200", "a message", Span(Source("m", text), 501, 504))
    shown = render(complaints.errors()[0]).splitlines()
    assert all(len(line) < 130 for line in shown)
    marks = shown[4].index("^")
    assert shown[3][marks : marks + 3] == "bad"

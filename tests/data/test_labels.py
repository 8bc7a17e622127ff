"""Two classes of any kind become -1 and +1, and the mapping is reported; anything else is refused."""

from __future__ import annotations

import numpy as np
import pytest

from data.models import CLASSIFICATION, only
from spdsl.data import bind, rebind
from spdsl.diagnostics import DataError
from spdsl.problem import LabelMapping

X = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("values", "negative", "positive"),
    [
        ([-1, 1, 1, -1], -1, 1),
        ([-1.0, 1.0, 1.0, -1.0], -1, 1),
        ([0, 1, 1, 0], 0, 1),
        ([False, True, True, False], False, True),
        ([1, 2, 2, 1], 1, 2),
        ([0.5, 1.5, 1.5, 0.5], 0.5, 1.5),
        (["ham", "spam", "spam", "ham"], "ham", "spam"),
        (np.array(["b", "c", "c", "b"], dtype=object), "b", "c"),
        (np.array([b"b", b"c", b"c", b"b"]), "b", "c"),
    ],
)
def test_the_smaller_class_becomes_minus_one(values, negative, positive):
    found = bind(CLASSIFICATION, {"X": X, "y": values})
    assert found.data["y"].tolist() == [-1, 1, 1, -1]
    assert found.labels["y"] == LabelMapping(negative, positive)
    assert found.data["y"].dtype == np.float64


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, 1, 1, 1], "it has 1: 1 (4)"),
        ([0, 1, 2, 2], "it has 3: 0 (1), 1 (1), 2 (2)"),
        (["a", "b", "c", "c"], "it has 3: 'a' (1), 'b' (1), 'c' (2)"),
    ],
)
def test_one_class_or_more_than_two_are_listed_with_their_counts(values, words):
    found = only(CLASSIFICATION, {"X": X, "y": values})
    assert found.code == "SPL419"
    assert words in found.message


def test_a_numeric_target_given_as_labels_gets_the_hint_to_declare_a_vector():
    data = {"X": np.zeros((20, 2)), "y": np.linspace(0, 1, 20)}
    assert "vector(n)" in only(CLASSIFICATION, data).help[0]


@pytest.mark.parametrize(
    "values", [[0, 1, np.nan, 1], ["a", None, "b", "a"], ["a", "", "b", "a"], ["a", "NA", "b", "a"]]
)
def test_a_missing_label_is_an_error_with_its_row(values):
    found = only(CLASSIFICATION, {"X": X, "y": values})
    assert found.code == "SPL409"
    assert "row" in found.place


def test_complex_labels_are_refused():
    assert only(CLASSIFICATION, {"X": X, "y": [1j, 1, 1, 1j]}).code == "SPL418"


def test_later_data_keep_the_mapping_and_may_hold_one_class():
    bound = bind(CLASSIFICATION, {"X": X, "y": ["no", "yes", "yes", "no"]})
    assert rebind(bound, {"X": X[:2], "y": ["yes", "yes"]}).data["y"].tolist() == [1, 1]
    with pytest.raises(DataError, match="fitted on 'no' and 'yes'"):
        rebind(bound, {"X": X[:2], "y": ["yes", "maybe"]})

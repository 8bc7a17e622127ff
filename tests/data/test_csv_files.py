"""CSV and TSV: what is read, and where each flaw is said to be (rows counted as the file's lines)."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from data.models import CLASSIFICATION, REGRESSION, complaints, model, only
from spdsl.data import bind, csv_files


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def writer(content: str | bytes, name: str = "t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writer


PLAIN = "a,b,y\n1,2,3\n4,5,6\n"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (PLAIN, "t.csv"),
        (PLAIN.replace(",", ";"), "t.csv"),
        (PLAIN.replace(",", "\t"), "t.tsv"),
        (PLAIN.replace(",", "|"), "t.csv"),
        (PLAIN.replace(",", "  "), "t.txt"),
        (PLAIN.replace("\n", "\r\n"), "t.csv"),
        (PLAIN.replace("\n", "\r"), "t.csv"),
        ("\ufeff" + PLAIN, "t.csv"),
        (PLAIN.encode("utf-16"), "t.csv"),
        (PLAIN.rstrip("\n"), "t.csv"),
        ("\n\n" + PLAIN.replace("\n", "\n\n"), "t.csv"),
        (PLAIN.replace("1", '"1"'), "t.csv"),
        ('"a","b","y"\n1,2,3\n4,5,6\n', "t.csv"),
        ("a, b , y\n 1, 2 ,3\n4 ,5, 6\n", "t.csv"),
        ("a,b,y,\n1,2,3,\n4,5,6,\n", "t.csv"),
        (gzip.compress(PLAIN.encode(), mtime=0), "t.csv.gz"),
        (gzip.compress(PLAIN.encode(), mtime=0), "t.csv"),
        (PLAIN, "T.CSV"),
    ],
)
def test_the_same_table_in_every_spelling(write, content, name):
    found = bind(REGRESSION, data=write(content, name))
    np.testing.assert_array_equal(found.data["X"], [[1, 2], [4, 5]])
    np.testing.assert_array_equal(found.data["y"], [3, 6])
    assert found.feature_names["X"] == ("a", "b")


def test_numbers_in_every_notation(write):
    found = bind(REGRESSION, data=write("a,y\n1e-3,-2.5E+2\n.5,+7\n1.,0\n"))
    np.testing.assert_array_equal(found.data["X"][:, 0], [1e-3, 0.5, 1.0])
    np.testing.assert_array_equal(found.data["y"], [-250, 7, 0])


def test_without_a_header_columns_are_called_c1_c2(write):
    found = bind(REGRESSION, data=write("1,2,3\n4,5,6\n"), bindings=["y=c2"])
    assert found.feature_names["X"] == ("c1", "c3")
    np.testing.assert_array_equal(found.data["X"], [[1, 3], [4, 6]])


def test_a_first_line_that_may_or_may_not_be_a_header_is_refused(write):
    found = only(CLASSIFICATION, data=write("5.1,3.5,setosa\n1,2,virginica\n"))
    assert found.code == "SPL416"
    assert found.place == "t.csv:1"


def test_text_above_numbers_is_a_header_even_beside_a_number(write):
    assert bind(REGRESSION, data=write("a,2020,y\n1,2,3\n")).feature_names["X"] == ("a", "2020")


@pytest.mark.parametrize(
    ("content", "code", "place", "word"),
    [
        ("", "SPL403", "t.csv", "empty"),
        (" \n\n", "SPL403", "t.csv", "empty"),
        ("\ufeff", "SPL403", "t.csv", "empty"),
        ("a,b,y\n", "SPL404", "t.csv", "no rows"),
        ("a,b,y\n\n\n", "SPL404", "t.csv", "no rows"),
        ("a,b,y\n1,2,3\n4,5\n", "SPL405", "t.csv:3", "has 2 cells, but the header has 3"),
        ("a,b,y\n1,2,3\n4,5,6,7\n8,9\n", "SPL405", "t.csv:3", "(2 such lines in all)"),
        ("1,2,3\n4,5\n", "SPL405", "t.csv:2", "the first line has 3"),
        (b"a,b,y\n1,2,3\n\xe9,5,6\n", "SPL406", "t.csv:3, byte 1", "UTF-8"),
        (b"\x00\x01\x02", "SPL406", "t.csv", "binary"),
        ("a,b,a,y\n1,2,3,4\n", "SPL407", "t.csv:1", "columns 1 and 3"),
        ("a,b,y\n1,2,3\n4,,6\n", "SPL409", "t.csv:3, column 'b'", "a missing value"),
        ("a,b,y\n1,2,3\n4,NA,6\n7,nan,9\n", "SPL409", "t.csv:3, column 'b'", "2 missing values ('NA')"),
        ("a,b,y\n1,2,3\n4,inf,6\n", "SPL410", "t.csv:3, column 'b'", "infinite"),
        ("a,b,y\n1,2,3\n4,-1e400,6\n", "SPL410", "t.csv:3, column 'b'", "infinite"),
        ("a,b,y\n1,2,3\n4,x5,6\n", "SPL408", "t.csv:3, column 'b'", "'x5'"),
        ("a,b,y\n1,2,3\n4,1_000,6\n", "SPL408", "t.csv:3, column 'b'", "'1_000'"),
        ("a,b,y\n\n1,2,3\n\n\n4,5,six\n", "SPL408", "t.csv:6, column 'y'", "'six'"),
        ('a,b,y\n"1\n",2,3\n4,5,\n', "SPL409", "t.csv:4, column 'y'", "missing"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-9], "SPL424", "t.csv", "damaged"),
    ],
)
def test_each_flaw_has_its_code_and_place(write, content, code, place, word):
    found = only(REGRESSION, data=write(content))
    assert (found.code, found.place) == (code, place)
    assert word in found.message


def test_every_flaw_is_told_in_one_go(write):
    found = complaints(REGRESSION, data=write("a,b,y\n1,2,3\n,5,six\n7,inf,9\n10,11,\n"))
    assert [item.code for item in found] == ["SPL409", "SPL410", "SPL408", "SPL409"]


def test_decimal_commas_get_their_mend(write):
    found = only(REGRESSION, data=write("a;y\n1,5;2\n2,5;3\n3;1\n4;1\n"))
    assert found.code == "SPL408"
    assert "decimal point" in found.help[0]


def test_text_columns_are_left_out_of_the_matrix_with_a_note(write):
    found = bind(REGRESSION, data=write("id,a,y\nx,1,2\nz,3,4\n"))
    assert found.feature_names["X"] == ("a",)
    assert found.notes == ("columns of text left out of `X`: id (t.csv)",)


def test_flaws_in_columns_that_nothing_uses_are_nobodys_trouble(write):
    found = bind(REGRESSION, data=write("a,b,y\n1,NA,3\n4,5,6\n"), bindings=["X=a"])
    np.testing.assert_array_equal(found.data["X"], [[1], [4]])


def test_a_text_column_bound_to_a_vector_gets_the_hint_of_labels(write):
    found = only(REGRESSION, data=write("a,y\n1,ham\n4,spam\n"))
    assert found.code == "SPL418"
    assert "labels(n)" in found.help[0]


def test_labels_come_from_columns_of_text_booleans_and_numbers(write):
    for low, high in (("ham", "spam"), ("False", "True"), ("0", "1"), ("1.5", "2.5")):
        found = bind(CLASSIFICATION, data=write(f"a,y\n1,{low}\n2,{high}\n3,{low}\n"))
        assert found.data["y"].tolist() == [-1, 1, -1]
        assert str(found.labels["y"].negative) == low


def test_a_blank_line_in_a_single_column_is_a_missing_value_and_at_the_end_nothing(write):
    problem = model("y : vector(n)", variables=())
    assert only(problem, data=write("y\n1\n\n3\n\n")).place == "t.csv:3, column 'y'"
    assert bind(problem, data=write("y\n1\n2\n\n\n")).sizes == {"n": 2}


def test_a_missing_file_gets_the_nearest_name(write):
    path = write(PLAIN, "diabetes.csv")
    found = only(REGRESSION, data=path.with_name("diabets.csv"))
    assert found.code == "SPL401"
    assert "diabetes.csv" in found.help[0]
    assert only(REGRESSION, data=path.parent).code == "SPL401"
    assert only(REGRESSION, data=path / "x" / "y.csv").code == "SPL401"


@pytest.mark.parametrize("name", ["t.xlsx", "t.cvs", "t", "t.zip", "t.json"])
def test_an_unknown_extension_lists_the_known_ones(write, name):
    found = only(REGRESSION, data=write(PLAIN, name))
    assert found.code == "SPL402"
    assert ".parquet" in found.help[-1]


def test_a_misspelt_extension_gets_the_nearest(write):
    assert ".csv" in only(REGRESSION, data=write(PLAIN, "t.cvs")).help[0]


def large(rows: int, last: str) -> str:
    return "a,b,y\n" + "\n".join(f"{k},{k / 7},{-k}" for k in range(rows)) + f"\n{last}\n"


def test_a_flaw_in_the_last_of_many_rows_is_found_by_its_line(write):
    found = only(REGRESSION, data=write(large(20_000, "1,,3")))
    assert found.place == "t.csv:20002, column 'b'"


def test_a_column_that_turns_to_text_late_is_a_flaw_and_not_left_out(write):
    found = only(REGRESSION, data=write(large(9_000, "1,two,3")))
    assert (found.code, found.place) == ("SPL408", "t.csv:9002, column 'b'")


def test_the_fast_readers_agree_with_the_careful_one(write, monkeypatch):
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(f"{value:.17g}" for value in row) + ",word" for row in rng.normal(size=(500, 4)))
    path = write("a,b,c,y,name\n" + rows + "\n")
    numpy_way = bind(REGRESSION, data=path)
    monkeypatch.setattr(csv_files, "LARGE", 0)
    pyarrow_way = bind(REGRESSION, data=path)
    monkeypatch.setattr(csv_files, "_read_fast", lambda *arguments: None)
    careful_way = bind(REGRESSION, data=path)
    for other in (pyarrow_way, careful_way):
        np.testing.assert_array_equal(numpy_way.data["X"], other.data["X"])
        np.testing.assert_array_equal(numpy_way.data["y"], other.data["y"])
        assert numpy_way.feature_names == other.feature_names
        assert numpy_way.notes == other.notes


def test_line_numbers_of_a_file_that_was_read_fast_are_found_afterwards(write):
    from pathlib import Path

    from spdsl.data.complaints import Complaints

    table = csv_files.read_csv(Path(write("\na,y\n1,2\n\n3,4\n")), Complaints())
    assert [table.where(row) for row in range(2)] == ["t.csv:3", "t.csv:5"]

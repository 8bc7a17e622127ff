"""The rules that bind files and arguments to names, sizes that must agree, parameters, later data for the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from data.models import CLASSIFICATION, GRAPH, REGRESSION, codes, complaints, model, only
from spdsl.data import bind, rebind
from spdsl.data.bundled import load_breast_cancer, load_bundled, load_diabetes, load_diabetes_standardized
from spdsl.diagnostics import UsageError
from spdsl.problem import Call, Name, Number, ParameterDeclaration, VariableDeclaration

X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
PAIRS = model("U : matrix(T, d)", "V : matrix(T, d)", "y : labels(T)")
TABLE = "a,b,y\n0,1,1\n2,3,2\n4,5,3\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    np.save(tmp_path / "y.npy", np.arange(4.0))
    return tmp_path


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_clash_of_sizes_names_both_places(folder):
    found = only(REGRESSION, data=folder / "t.csv", bindings=[f"y={folder / 'y.npy'}"])
    assert found.code == "SPL412"
    assert found.message == "n is 3 by X (t.csv) but 4 by y (y.npy)"
    assert only(REGRESSION, {"X": X, "y": [1, 2]}).message == "n is 3 by X but 2 by y"


def test_literal_sizes_are_held():
    problem = model("X : matrix(n, 3)", "y : vector(n)", variables=())
    found = only(problem, {"X": X, "y": y})
    assert found.code == "SPL412"
    assert found.message == "`X` is declared with 3 columns, but it has 2"


def test_every_clash_is_told():
    problem = model("X : matrix(n, d)", "y : vector(n)", "c : vector(d)")
    assert codes(problem, {"X": X, "y": [1.0], "c": [1.0]}) == ["SPL412", "SPL412"]


def test_a_size_of_a_variable_alone_must_be_given():
    problem = model("y : vector(n)", variables=(VariableDeclaration("w", "vector", ("k",)),))
    assert only(problem, {"y": y}).code == "SPL426"
    assert bind(problem, {"y": y}, parameters={"k": 5}).sizes == {"n": 3, "k": 5}
    assert codes(problem, {"y": y}, parameters={"k": 2.5}) == ["SPL425", "SPL426"]


# -- by name and by shape ----------------------------------------------------------------------------------------------


def test_a_column_named_like_a_datum_never_becomes_a_feature(folder):
    found = bind(REGRESSION, {"y": y}, data=folder / "t.csv")
    assert found.feature_names["X"] == ("a", "b")
    assert found.origin == {"y": "argument", "X": "t.csv, columns 'a' .. 'b' (2)"}


def test_several_files_fill_one_model(folder):
    (folder / "X.csv").write_text("1,2\n3,4\n")
    (folder / "y.csv").write_text("10\n20\n")
    found = bind(REGRESSION, data=[folder / "X.csv", folder / "y.csv"])
    np.testing.assert_array_equal(found.data["X"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(found.data["y"], [10, 20])


def test_columns_go_to_the_one_matrix_with_as_many_rows(folder):
    problem = model("X : matrix(n, d)", "Z : matrix(m, d)", "y : vector(n)")
    (folder / "Z.csv").write_text("a,b\n7,8\n")
    found = bind(problem, data=[folder / "t.csv", folder / "Z.csv"])
    np.testing.assert_array_equal(found.data["Z"], [[7, 8]])
    np.testing.assert_array_equal(found.data["X"], X)


def test_columns_that_could_be_either_of_two_matrices_are_refused_and_can_be_bound_outright(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,e,y\n1,2,3,4,0\n5,6,7,8,1\n")
    found = only(PAIRS, data=tmp_path / "t.csv")
    assert found.code == "SPL416"
    bound = bind(PAIRS, data=tmp_path / "t.csv", bindings=["U=a:b", "V=c,e"])
    np.testing.assert_array_equal(bound.data["V"], [[3, 4], [7, 8]])


def test_a_name_in_two_files_is_bound_twice(folder):
    (folder / "u.csv").write_text(TABLE)
    assert "SPL415" in codes(REGRESSION, data=[folder / "t.csv", folder / "u.csv"])
    found = complaints(REGRESSION, {"y": y}, data=folder / "t.csv", bindings={"y": "a"})
    assert found[0].code == "SPL415"
    assert "by an argument and by t.csv, column 'a'" in found[0].message
    assert codes(REGRESSION, data=folder / "t.csv", bindings=["y=a", "y=b"])[0] == "SPL415"


def test_nothing_bound_says_what_the_data_offer(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,target\n0,1,1\n2,3,2\n")
    found = only(REGRESSION, data=tmp_path / "t.csv")
    assert found.code == "SPL413"
    assert "target" in found.help[0]
    assert codes(REGRESSION, {}) == ["SPL413", "SPL413"]


def test_a_graph_that_is_not_given_is_asked_for_as_edges_or_a_grid():
    found = only(GRAPH, {"X": np.eye(3), "y": np.ones(3)})
    assert found.code == "SPL413"
    assert "G=grid(20, 20)" in found.help[0]


def test_a_name_in_the_wrong_case_gets_the_nearest(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,Y\n0,1,1\n2,3,2\n")
    assert "--bind y=Y" in only(REGRESSION, data=tmp_path / "t.csv").help[0]


def test_unknown_names_get_the_nearest():
    assert "did you mean `X`?" in complaints(REGRESSION, {"x": X, "y": y})[0].help
    found = only(REGRESSION, {"X": X, "y": y, "w": [1, 2]})
    assert found.code == "SPL414"
    assert "variable" in found.help[0]
    assert only(REGRESSION, {"X": X, "y": y}, bindings={"z": "a"}).code == "SPL414"


# -- NAME=SOURCE -------------------------------------------------------------------------------------------------------


def test_every_form_of_a_source(folder):
    np.savez(folder / "z.npz", target=y, other=X)
    (folder / "two.csv").write_text("p,q\n1,2\n3,4\n5,6\n")
    table = folder / "t.csv"
    forms = {
        "a": y * 2 - 2,
        f"{table}:b": y * 2 - 1,
        f"{folder / 'z.npz'}:target": y,
        f"{folder / 'two.csv'}:q": [2, 4, 6],
    }
    for source, expected in forms.items():
        problem = model("X : matrix(n, d)", "y : vector(n)")
        found = bind(problem, {"X": X}, data=table, bindings=[f"y={source}"])
        np.testing.assert_array_equal(found.data["y"], expected)
    for source in ("a,b", "a:b", f"{table}:a,b", f"{table}:a:b", f"{folder / 'z.npz'}:other"):
        found = bind(REGRESSION, {"y": y}, data=table, bindings={"X": source})
        np.testing.assert_array_equal(found.data["X"], X)
    scalar = model("X : matrix(n, d)", "y : vector(n)", "s : scalar")
    assert bind(scalar, data=table, bindings="s=2.5").data["s"] == 2.5


@pytest.mark.parametrize(
    ("binding", "code"),
    [
        ("y", "SPL431"),
        ("=a", "SPL431"),
        ("y=", "SPL431"),
        ("y=tagret", "SPL417"),
        ("y=nothing.csv", "SPL401"),
        ("y=t.csv:c", "SPL417"),
        ("X=b:a", "SPL417"),
        ("X=a,c", "SPL417"),
        ("y=a,b", "SPL411"),
        ("X=3", "SPL411"),
    ],
)
def test_a_source_that_means_nothing_is_refused(folder, monkeypatch, binding, code):
    monkeypatch.chdir(folder)
    assert code in codes(REGRESSION, data="t.csv", bindings=binding)


def test_a_column_in_two_files_must_be_told_apart(folder):
    (folder / "u.csv").write_text("a,q\n1,2\n3,4\n5,6\n")
    files = [folder / "t.csv", folder / "u.csv"]
    assert "SPL416" in codes(REGRESSION, data=files, bindings="X=a")
    np.testing.assert_array_equal(bind(REGRESSION, data=files, bindings="X=u.csv:a,q").data["X"][0], [1, 2])


# -- frames ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_and_series_keep_names_and_order(library):
    frame = library.DataFrame({"b": [1, 2, 3], "a": [0.5, 1.5, 2.5]})
    found = bind(CLASSIFICATION, {"X": frame, "y": library.Series(["no", "yes", "no"])})
    assert found.feature_names["X"] == ("b", "a")
    np.testing.assert_array_equal(found.data["X"], [[1, 0.5], [2, 1.5], [3, 2.5]])
    assert found.data["y"].tolist() == [-1, 1, -1]


@pytest.mark.parametrize("library", [pd, pl])
def test_a_whole_frame_binds_by_the_rules_of_tables(library):
    frame = library.DataFrame({"a": [1, 2, 3], "kind": ["x", "y", "x"], "y": [True, False, True]})
    found = bind(CLASSIFICATION, data=frame)
    assert found.feature_names["X"] == ("a",)
    assert found.labels["y"].positive is True
    assert "kind" in found.notes[0]


@pytest.mark.parametrize("library", [pd, pl])
def test_flaws_in_frames_are_named_by_row_and_column(library):
    frame = library.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, float("inf")]})
    found = complaints(REGRESSION, {"X": frame, "y": y})
    assert [item.code for item in found] == ["SPL409", "SPL410"]
    assert found[0].place == "argument `X`, row 1 (counted from 0), column 'a'"
    text = only(REGRESSION, {"X": library.DataFrame({"a": ["u", "v", "w"]}), "y": y})
    assert (text.code, "'a'" in text.message) == ("SPL418", True)


def test_pandas_objects_nullable_and_categorical_columns():
    frame = pd.DataFrame(
        {
            "a": pd.array([1, 2, 3], dtype="Int64"),
            "b": np.array([1, 2.5, 3], dtype=object),
            "y": pd.Categorical(["lo", "hi", "lo"]),
        }
    )
    found = bind(CLASSIFICATION, data=frame)
    np.testing.assert_array_equal(found.data["X"], [[1, 1], [2, 2.5], [3, 3]])
    assert found.labels["y"].negative == "hi"
    frame["a"] = pd.array([1, None, 3], dtype="Int64")
    assert only(CLASSIFICATION, data=frame).code == "SPL409"
    frame["a"] = np.array([1, "two", 3], dtype=object)
    assert only(CLASSIFICATION, data=frame).code == "SPL408"


def test_a_mapping_is_like_an_archive_and_other_things_are_refused():
    assert bind(REGRESSION, data={"X": X, "y": y, "more": 1}).sizes == {"n": 3, "d": 2}
    assert codes(REGRESSION, data=[X]) == ["SPL418"]


# -- parameters --------------------------------------------------------------------------------------------------------

ALPHA = ParameterDeclaration("alpha", Call("divide", (Number(1.0), Name("n"))))
BETA = ParameterDeclaration("beta", Call("multiply", (Number(2.0), Name("alpha"))))
LEVELS = ParameterDeclaration("levels", None, "vector", ("d",))
FREE = ParameterDeclaration("rho", None)
PARAMETERS = model("X : matrix(n, d)", parameters=(ALPHA, BETA))


def test_defaults_use_sizes_and_earlier_parameters():
    assert bind(PARAMETERS, {"X": X}).parameters == pytest.approx({"alpha": 1 / 3, "beta": 2 / 3})
    assert bind(PARAMETERS, {"X": X, "alpha": 5}).parameters == {"alpha": 5, "beta": 10}
    assert bind(PARAMETERS, {"X": X}, parameters={"alpha": "1e-3"}).parameters["alpha"] == 1e-3


@pytest.mark.parametrize("value", ["much", True, None, np.nan, np.inf, [1, 2], "1,2", 1j, "1_0"])
def test_a_parameter_must_be_a_finite_number(value):
    assert codes(PARAMETERS, {"X": X}, parameters={"alpha": value})


def test_parameters_without_a_value_or_with_an_unknown_name_are_told():
    problem = model("X : matrix(n, d)", parameters=(ALPHA, FREE))
    found = complaints(problem, {"X": X}, parameters={"alhpa": 1})
    assert [item.code for item in found] == ["SPL414", "SPL425"]
    assert "did you mean `alpha`?" in found[0].help
    assert codes(problem, {"X": X, "rho": 1}, parameters={"rho": 2}) == ["SPL415"]


def test_a_default_that_is_no_number_is_told():
    broken = ParameterDeclaration("alpha", Call("divide", (Number(1.0), Number(0.0))))
    assert codes(model("X : matrix(n, d)", parameters=(broken,)), {"X": X}) == ["SPL425"]


def test_vector_parameters_are_given_like_data(tmp_path):
    problem = model("X : matrix(n, d)", parameters=(LEVELS,))
    np.testing.assert_array_equal(bind(problem, {"X": X, "levels": [1, 2]}).parameters["levels"], [1, 2])
    np.testing.assert_array_equal(bind(problem, {"X": X}, parameters={"levels": "1, 2"}).parameters["levels"], [1, 2])
    np.savez(tmp_path / "d.npz", X=X, levels=[3, 4])
    np.testing.assert_array_equal(bind(problem, data=tmp_path / "d.npz").parameters["levels"], [3, 4])
    (tmp_path / "l.csv").write_text("levels\n5\n6\n")
    found = bind(problem, {"X": X}, bindings={"levels": f"{tmp_path / 'l.csv'}:levels"})
    np.testing.assert_array_equal(found.parameters["levels"], [5, 6])
    assert codes(problem, {"X": X, "levels": [1, 2, 3]}) == ["SPL412"]


# -- standardizing, other data -----------------------------------------------------------------------------------------


def test_standardizing_is_done_on_request_only_and_kept_for_later_data():
    raw = bind(REGRESSION, {"X": X, "y": y})
    np.testing.assert_array_equal(raw.data["X"], X)
    bound = bind(REGRESSION, {"X": X, "y": y}, standardize=("X", "y"))
    for name in ("X", "y"):
        np.testing.assert_allclose(bound.data[name].mean(axis=0), 0, atol=1e-15)
        np.testing.assert_allclose(bound.data[name].std(axis=0), 1)
    later = rebind(bound, {"X": X[:1], "y": y[:1]})
    np.testing.assert_allclose(later.data["X"], bound.data["X"][:1])
    np.testing.assert_allclose(later.data["y"], bound.data["y"][:1])


def test_later_data_keep_parameters_and_what_is_not_given_anew():
    problem = model("X : matrix(n, d)", "y : vector(n)", "c : vector(d)", parameters=(ALPHA,))
    bound = bind(problem, {"X": X, "y": y, "c": [1, 2]})
    later = rebind(bound, {"X": X[:2], "y": y[:2]})
    assert later.parameters == bound.parameters
    np.testing.assert_array_equal(later.data["c"], [1, 2])
    assert later.sizes == {"n": 2, "d": 2}


def test_later_data_with_other_columns_are_refused():
    bound = bind(REGRESSION, {"X": pd.DataFrame(X, columns=["a", "b"]), "y": y})
    with pytest.raises(ValueError, match="fitted on 2 columns of `X`, and the new data have 3"):
        rebind(bound, {"X": np.ones((3, 3)), "y": y})
    with pytest.raises(ValueError, match="column 0 of `X` is 'b'"):
        rebind(bound, {"X": pd.DataFrame(X, columns=["b", "a"]), "y": y})


def test_more_than_twenty_complaints_are_cut_with_a_count():
    found = complaints(REGRESSION, {f"name{k}": 1 for k in range(30)})
    assert len(found) == 20
    assert "more complaints not shown" in found[-1].related[-1].text


# -- what comes along --------------------------------------------------------------------------------------------------


def test_the_bundled_sets_are_what_scikit_learn_says(tmp_path):
    diabetes = load_diabetes()
    assert diabetes.X.shape == (442, 10)
    standard = load_diabetes_standardized()
    np.testing.assert_allclose(standard.X.std(axis=0), 1)
    np.testing.assert_allclose(standard.y.mean(), 0, atol=1e-14)
    bound = bind(REGRESSION, data=diabetes.write_csv(tmp_path / "diabetes.csv"), bindings="y=target")
    np.testing.assert_array_equal(bound.data["X"], diabetes.X)
    np.testing.assert_array_equal(bound.data["y"], diabetes.y)
    tumours = load_breast_cancer()
    labels = bind(CLASSIFICATION, data=tumours.write_csv(tmp_path / "t.csv"), bindings={"y": "diagnosis"})
    assert (labels.labels["y"].negative, labels.labels["y"].positive) == ("benign", "malignant")
    assert (labels.data["y"] == 1).sum() == 212
    with pytest.raises(UsageError, match="did you mean `diabetes`"):
        load_bundled("diabets")


def test_a_sparse_matrix_is_never_densified(monkeypatch):
    matrix = sp.random_array((2000, 500), density=1e-3, rng=np.random.default_rng(0), format="coo")

    def refuse(self, *arguments, **options):
        raise AssertionError("densified")

    for kind in (sp.csr_array, sp.coo_array, sp.csr_matrix):
        monkeypatch.setattr(kind, "toarray", refuse)
    found = bind(REGRESSION, {"X": matrix, "y": np.zeros(2000)})
    assert found.data["X"].nnz == matrix.nnz

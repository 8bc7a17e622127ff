"""NPZ, NPY, Parquet, LIBSVM and edge lists: what is read, and each flaw with its place."""

from __future__ import annotations

import builtins
import gzip

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from data.models import CLASSIFICATION, GRAPH, REGRESSION, codes, complaints, model, only
from spdsl.data import bind, rebind

X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
SAMPLES = "+1 1:0.5 3:-2 # first\n-1 2:1\n\n# nothing\n+1 1:1 2:2 3:3\n"


# -- NPZ and NPY -------------------------------------------------------------------------------------------------------


def test_the_keys_of_an_archive_bind_by_name(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=y, feature_names=["u", "v"], more=1)
    found = bind(REGRESSION, data=tmp_path / "d.npz")
    np.testing.assert_array_equal(found.data["X"], X)
    assert found.feature_names["X"] == ("u", "v")
    assert found.origin["y"] == "d.npz, array 'y'"


@pytest.mark.parametrize("prefix", ["", "X_", "X.", "X/"])
@pytest.mark.parametrize("with_shape", [True, False])
def test_a_csr_matrix_stored_in_parts_is_put_together(tmp_path, prefix, with_shape):
    matrix = sp.csr_array(X)
    parts = {prefix + "data": matrix.data, prefix + "indices": matrix.indices, prefix + "indptr": matrix.indptr}
    if with_shape:
        parts[prefix + "shape"] = np.array(matrix.shape)
    np.savez(tmp_path / "d.npz", y=y, **parts)
    found = bind(REGRESSION, data=tmp_path / "d.npz").data["X"]
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), X)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_what_scipy_saves_is_read(tmp_path, layout):
    sp.save_npz(tmp_path / "d.npz", sp.coo_matrix(X).asformat(layout))
    np.save(tmp_path / "y.npy", y)
    found = bind(REGRESSION, data=[tmp_path / "d.npz", tmp_path / "y.npy"])
    np.testing.assert_array_equal(found.data["X"].toarray(), X)


def test_the_published_sparse_sets_bind_without_more_words(data_file):
    found = bind(CLASSIFICATION, data=data_file("libsvm/a9a.npz"))
    assert found.data["X"].shape == (32561, 123)
    assert found.data["X"].nnz == 451592
    assert (found.data["y"] == 1).sum() == 7841


def test_a_graph_in_an_archive_binds(tmp_path):
    np.savez(tmp_path / "d.npz", X=np.ones((2, 3)), y=[1, 2], edges=[[0, 1], [1, 2]], costs=[2.0, 3.0])
    found = bind(GRAPH, data=tmp_path / "d.npz").data["G"]
    np.testing.assert_array_equal(found.costs, [2, 3])
    np.savez(tmp_path / "e.npz", X=np.ones((2, 3)), y=[1, 2], G_edges=[[0, 1], [1, 5]])
    assert only(GRAPH, data=tmp_path / "e.npz").code == "SPL420"


def test_a_lone_array_binds_by_the_files_name_or_by_what_fits(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "target.npy", y)
    found = bind(REGRESSION, data=[tmp_path / "X.npy", tmp_path / "target.npy"])
    np.testing.assert_array_equal(found.data["y"], y)


def test_archives_with_pickles_damage_or_nothing_are_refused(tmp_path):
    np.savez(tmp_path / "objects.npz", X=X, y=np.array([{}, 1, 2], dtype=object))
    found = only(REGRESSION, data=tmp_path / "objects.npz")
    assert found.code == "SPL424"
    assert "pickle" in found.message
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    assert codes(REGRESSION, data=tmp_path / "objects.npy") == ["SPL424"]
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 broken")
    assert codes(REGRESSION, data=tmp_path / "broken.npz") == ["SPL424"]
    (tmp_path / "empty.npz").write_bytes(b"")
    assert codes(REGRESSION, data=tmp_path / "empty.npz") == ["SPL403"]
    (tmp_path / "empty.npy").write_bytes(b"")
    assert codes(REGRESSION, data=tmp_path / "empty.npy") == ["SPL403"]
    np.savez(tmp_path / "nothing.npz")
    assert codes(REGRESSION, data=tmp_path / "nothing.npz") == ["SPL403"]
    np.save(tmp_path / "swapped.npy", X)
    (tmp_path / "swapped.npy").rename(tmp_path / "swapped.npz")
    assert "name it .npy" in only(REGRESSION, data=tmp_path / "swapped.npz").message


# -- Parquet and frames ------------------------------------------------------------------------------------------------


def test_parquet_reads_like_the_frame_it_was_written_from(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "name": ["u", "v", "w"], "y": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    from_file, from_frame = bind(REGRESSION, data=tmp_path / "t.parquet"), bind(REGRESSION, data=frame)
    np.testing.assert_array_equal(from_file.data["X"], from_frame.data["X"])
    assert from_file.feature_names["X"] == from_frame.feature_names["X"] == ("a", "b")
    assert "name" in from_file.notes[0]


def test_parquet_without_pyarrow_says_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    found = only(REGRESSION, data=tmp_path / "t.parquet")
    assert found.code == "SPL422"
    assert "pip install" in found.help[0]


def test_flawed_parquet_files_are_refused(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nonsense")
    assert codes(REGRESSION, data=tmp_path / "t.parquet") == ["SPL424"]
    pd.DataFrame({"a": [], "y": []}).to_parquet(tmp_path / "e.parquet")
    assert codes(REGRESSION, data=tmp_path / "e.parquet") == ["SPL404"]
    pd.DataFrame({"a": [1.0, None], "y": [1, 2]}).to_parquet(tmp_path / "m.parquet")
    found = only(REGRESSION, data=tmp_path / "m.parquet")
    assert (found.code, found.place) == ("SPL409", "m.parquet, row 1 (counted from 0), column 'a'")


# -- LIBSVM ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.svm", "t.libsvm", "t.svmlight", "t.txt", "a9a", "a9a.t", "t.svm.gz"])
def test_libsvm_is_known_by_its_extension_or_its_first_line(tmp_path, name):
    content = SAMPLES.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    found = bind(CLASSIFICATION, data=tmp_path / name)
    np.testing.assert_array_equal(found.data["X"].toarray(), [[0.5, 0, -2], [0, 1, 0], [1, 2, 3]])
    assert found.data["y"].tolist() == [1, -1, 1]


def test_libsvm_counts_from_zero_where_an_index_zero_occurs_and_skips_qid(tmp_path):
    (tmp_path / "t.svm").write_text("2.5 qid:1 0:1\n3.5 qid:1 2:1\n")
    found = bind(REGRESSION, data=tmp_path / "t.svm")
    np.testing.assert_array_equal(found.data["X"].toarray(), [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(found.data["y"], [2.5, 3.5])


def test_unsorted_indices_are_sorted(tmp_path):
    (tmp_path / "t.svm").write_text("1 3:3 1:1\n-1 2:2\n")
    assert bind(CLASSIFICATION, data=tmp_path / "t.svm").data["X"].toarray().tolist() == [[1, 0, 3], [0, 2, 0]]


def test_a_width_that_is_known_otherwise_is_filled_up_with_zeros(tmp_path):
    (tmp_path / "t.svm").write_text(SAMPLES)
    (tmp_path / "new.svm").write_text("-1 1:1\n")
    wide = model("X : matrix(n, 5)", "y : labels(n)", variables=())
    assert bind(wide, data=tmp_path / "t.svm").data["X"].shape == (3, 5)
    assert bind(CLASSIFICATION, data=tmp_path / "t.svm", parameters={"d": "7"}).data["X"].shape == (3, 7)
    weighted = model("X : matrix(n, d)", "y : labels(n)", "c : vector(d)")
    assert bind(weighted, {"c": np.ones(4)}, data=tmp_path / "t.svm").data["X"].shape == (3, 4)
    bound = bind(CLASSIFICATION, data=tmp_path / "t.svm")
    assert rebind(bound, data=tmp_path / "new.svm").data["X"].shape == (1, 3)
    narrow = model("X : matrix(n, 2)", "y : labels(n)", variables=())
    assert codes(narrow, data=tmp_path / "t.svm") == ["SPL412"]


@pytest.mark.parametrize(
    ("content", "code", "line", "word"),
    [
        ("1 1:1\nspam 1:2\n", "SPL423", 2, "'spam' is no number"),
        ("1 1:1\n1:2 2:3\n", "SPL423", 2, "no label"),
        ("1 1:x\n", "SPL423", 1, "'1:x'"),
        ("1 a:1\n", "SPL423", 1, "'a:1'"),
        ("1 -1:1\n", "SPL423", 1, "'-1:1'"),
        ("1 1:1\n-1 3:1 3:2\n", "SPL423", 2, "twice"),
        ("1 1:1\n-1 5\n", "SPL423", 2, "'5' isn't"),
        ("1 1:1\n-1 2:nan\n", "SPL409", 2, "nan"),
        ("1 1:1\n-1 2:inf\n", "SPL410", 2, "inf"),
        ("nan 1:1\n1 1:1\n", "SPL409", 1, "label"),
        ("1 99999999999:1\n", "SPL423", 1, "too large"),
    ],
)
def test_each_flaw_of_a_libsvm_file_is_named_by_its_line(tmp_path, content, code, line, word):
    (tmp_path / "t.svm").write_text(content)
    found = only(CLASSIFICATION, data=tmp_path / "t.svm")
    assert (found.code, found.place) == (code, f"t.svm:{line}")
    assert word in found.message


def test_libsvm_files_without_samples_or_features_are_refused(tmp_path):
    for content, code in (("", "SPL403"), ("# only a comment\n", "SPL403"), ("1\n-1\n", "SPL427")):
        (tmp_path / "t.svm").write_text(content)
        assert codes(CLASSIFICATION, data=tmp_path / "t.svm") == [code]


def test_all_flawed_lines_are_told_at_once(tmp_path):
    (tmp_path / "t.svm").write_text("a 1:1\nb 1:1\n1 x\n")
    assert [item.place for item in complaints(CLASSIFICATION, data=tmp_path / "t.svm")] == [
        f"t.svm:{k}" for k in (1, 2, 3)
    ]


# -- edge lists --------------------------------------------------------------------------------------------------------

TABLE = "a,b,c,y\n1,2,3,4\n5,6,7,8\n"


def graph_of(tmp_path, edges: str, name: str = "e.csv", **options):
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / name).write_text(edges)
    return {"data": [tmp_path / "t.csv", tmp_path / name], **options}


@pytest.mark.parametrize(
    ("edges", "name"),
    [
        ("u,v,cost\n0,1,2\n1,2,3\n", "e.csv"),
        ("source,target,weight\n0,1,2\n1,2,3\n", "e.csv"),
        ("0,1,2\n1,2,3\n", "e.csv"),
        ("0 1 2\n1 2 3\n", "e.edges"),
        ("from\tto\tw\n0\t1\t2\n1\t2\t3\n", "e.tsv"),
        ("a,b,2\nb,c,3\n", "e.edgelist"),
        ("u,v,cost\na,b,2\nc,b,3\n", "e.csv"),
        ("\ufeffu,v,cost\r\n0,1,2\r\n1,2,3\r\n", "G.csv"),
    ],
)
def test_the_same_graph_in_every_spelling(tmp_path, edges, name):
    found = bind(GRAPH, **graph_of(tmp_path, edges, name))
    np.testing.assert_array_equal(found.data["G"].edges, [(0, 1), (1, 2)])
    np.testing.assert_array_equal(found.data["G"].costs, [2, 3])
    assert found.feature_names["X"] == ("a", "b", "c")


def test_costs_may_be_absent(tmp_path):
    found = bind(GRAPH, **graph_of(tmp_path, "u,v\n0,1\n1,2\n"))
    np.testing.assert_array_equal(found.data["G"].costs, [1, 1])


@pytest.mark.parametrize(
    ("edges", "code", "place"),
    [
        ("u,v,cost\n0,1,2\n1,2,x\n", "SPL408", "e.csv:3"),
        ("u,v,cost\n0,1,2\n1,2,-3\n", "SPL420", "e.csv:3"),
        ("u,v,cost\n0,1,2\n1,9,3\n", "SPL420", "e.csv:3"),
        ("u,v,cost\n0,1,2\n1,2\n", "SPL405", "e.csv:3"),
        ("u,v,cost\n0,1,2\n,2,3\n", "SPL409", "e.csv:3"),
        ("u,v,cost\na,b,2\nb,zz,3\n", "SPL421", "e.csv:3"),
        ("u,v\n", "SPL404", "e.csv"),
        ("", "SPL403", "e.csv"),
    ],
)
def test_each_flaw_of_an_edge_list_is_named_by_its_line(tmp_path, edges, code, place):
    found = only(GRAPH, **graph_of(tmp_path, edges))
    assert (found.code, found.place) == (code, place)


def test_named_nodes_without_named_columns_are_refused(tmp_path):
    (tmp_path / "e.csv").write_text("u,v\na,b\n")
    found = only(GRAPH, {"X": np.ones((2, 2)), "y": [1, 2]}, data=tmp_path / "e.csv")
    assert found.code == "SPL421"
    assert "number the nodes" in found.help[0]


def test_ids_that_count_from_one_are_read_on_request(tmp_path):
    options = graph_of(tmp_path, "1,2\n2,3\n")
    assert "from1" in only(GRAPH, **options).help[0]
    path = tmp_path / "e.csv"
    found = bind(GRAPH, data=tmp_path / "t.csv", bindings={"G": f"{path}:from1"})
    np.testing.assert_array_equal(found.data["G"].edges, [(0, 1), (1, 2)])

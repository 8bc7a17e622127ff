"""What is written in a format is read back bit by bit, for any finite numbers (hypothesis)."""

from __future__ import annotations

import gzip
import string
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file

from data.models import REGRESSION, model
from spdsl.data import bind

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
MATRICES = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=NUMBERS)
NAMES = st.text(string.ascii_letters + " éλ_.", min_size=1, max_size=6).map(str.strip).filter(lambda name: name)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def held(found, X, y):
    np.testing.assert_array_equal(found.data["X"], X)
    np.testing.assert_array_equal(found.data["y"], y)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "npz"])
@settings(max_examples=25)
@given(X=MATRICES)
def test_tables_and_archives(folder, ending, X):
    y = X[:, 0] / 3.0
    path = folder / f"t.{ending}"
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(y=y)
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "npz":
        np.savez(path, X=X, y=y)
    else:
        text = frame.to_csv(index=False, sep="\t" if ending == "tsv" else ",", float_format="%.17g")
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    held(bind(REGRESSION, data=path), X, y)


@settings(max_examples=25)
@given(X=MATRICES)
def test_libsvm(folder, X):
    X[0, -1] = 1.0  # the last column must show
    y = X[:, 0] / 7.0
    path = folder / "t.svm"
    path.write_text(
        "\n".join(
            f"{target!r} " + " ".join(f"{k + 1}:{value!r}" for k, value in enumerate(row) if value != 0)
            for row, target in zip(X.tolist(), y.tolist())
        )
    )
    found = bind(REGRESSION, data=path)
    np.testing.assert_array_equal(found.data["X"].toarray(), X)
    np.testing.assert_array_equal(found.data["y"], y)


@settings(max_examples=15)
@given(X=hnp.arrays(np.float64, (4, 3), elements=st.integers(-9, 9)))
def test_what_scikit_learn_writes_as_libsvm(folder, X):
    X[0] = 1.0
    dump_svmlight_file(X, np.arange(4.0), str(folder / "s.svm"), zero_based=False)
    held_sparse = bind(REGRESSION, data=folder / "s.svm").data["X"]
    np.testing.assert_array_equal(held_sparse.toarray(), X)


@settings(max_examples=25)
@given(X=MATRICES, layout=st.sampled_from(["csr", "csc", "coo"]))
def test_sparse_archives(folder, X, layout):
    sp.save_npz(folder / "s.npz", sp.coo_array(X).asformat(layout))
    problem = model("X : matrix(n, d)")
    np.testing.assert_array_equal(bind(problem, data=folder / "s.npz").data["X"].toarray(), X)


@settings(max_examples=25)
@given(names=st.lists(NAMES, min_size=2, max_size=5, unique=True))
def test_column_names_of_any_letters(folder, names):
    names = [name for name in names if name.lower() not in {"nan", "inf", "infinity"}] or ["a"]
    names = [name for name in names if name != "y"] or ["a"]
    frame = pd.DataFrame(np.ones((2, len(names))), columns=names).assign(y=[1.0, 2.0])
    frame.to_csv(folder / "n.csv", index=False)
    assert bind(REGRESSION, data=folder / "n.csv").feature_names["X"] == tuple(names)


@settings(max_examples=25)
@given(
    edges=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12),
    header=st.booleans(),
    delimiter=st.sampled_from([",", "\t", " ", ";"]),
)
def test_edge_lists(folder, edges, header, delimiter):
    lines = [delimiter.join(map(str, (u, v, (u + 1) / (v + 3)))) for u, v in edges]
    (folder / "e.edges").write_text("\n".join([delimiter.join(("u", "v", "cost"))] * header + lines) + "\n")
    problem = model("G : graph(7)", variables=())
    expected = bind(problem, {"G": (7, np.array(edges), np.array([(u + 1) / (v + 3) for u, v in edges]))}).data["G"]
    found = bind(problem, data=folder / "e.edges").data["G"]
    np.testing.assert_array_equal(found.edges, expected.edges)
    np.testing.assert_array_equal(found.costs, expected.costs)

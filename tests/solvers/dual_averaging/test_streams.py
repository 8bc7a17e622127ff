"""Chunks from files and the learner that is fed them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import spdsl
from spdsl.diagnostics import DataError, UsageError
from spdsl.solvers.dual_averaging.streams import Learner, map_npz, read_chunks

TEXT = """parameter
  rho = 1e-2

data
  X : matrix(n, d)
  y : labels(n)

variable
  w : vector(d)
  b : scalar

minimize
  loss         hinge(y * (X @ w + b)) / n
  regularizer  rho * norm1(w)
"""


@pytest.fixture(scope="module")
def model() -> Any:
    return spdsl.parse(TEXT)


def sparse_clouds(n: int = 3_000, d: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.2)
    X[:, 0] += y
    return sp.csr_array(X), y


def write_npz(path: Any, X: Any, y: Any) -> str:
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), y=y)
    return str(path)


def write_libsvm(path: Any, X: Any, y: Any) -> str:
    with open(path, "w") as file:
        for i in range(X.shape[0]):
            row = slice(X.indptr[i], X.indptr[i + 1])
            pairs = " ".join(f"{j + 1}:{v!r}" for j, v in zip(X.indices[row].tolist(), X.data[row].tolist()))
            file.write(f"{y[i]:+.0f} {pairs}\n")
    return str(path)


@pytest.mark.parametrize("kind", ["npz", "libsvm"])
def test_chunks_of_a_file_put_together_are_the_data(tmp_path, kind):
    X, y = sparse_clouds(257)
    path = write_npz(tmp_path / "a.npz", X, y) if kind == "npz" else write_libsvm(tmp_path / "a.svm", X, y)
    chunks = list(read_chunks(path, rows=100, n_features=40))
    assert [part.shape[0] for part, _ in chunks] == [100, 100, 57]
    assert (sp.vstack([part for part, _ in chunks]) != X).nnz == 0
    assert np.array_equal(np.concatenate([labels for _, labels in chunks]), y)


def test_chunks_of_a_dense_file_are_mapped_views(tmp_path):
    X = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "a.npy", X)
    chunks = list(read_chunks(str(tmp_path / "a.npy"), rows=8))
    assert all(isinstance(part, np.memmap) for part, _ in chunks)
    assert np.array_equal(np.vstack([part for part, _ in chunks]), X)


def test_large_arrays_of_an_uncompressed_npz_are_mapped_and_right(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"data": rng.normal(size=20_000), "indices": rng.integers(0, 9, 20_000), "small": np.arange(3)}
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez_compressed(tmp_path / "b.npz", **arrays)
    mapped, read = map_npz(str(tmp_path / "a.npz")), map_npz(str(tmp_path / "b.npz"))
    assert isinstance(mapped["data"], np.memmap)
    for name, array in arrays.items():
        assert np.array_equal(mapped[name], array)
        assert np.array_equal(read[name], array)


def test_one_pass_in_chunks_is_one_pass_over_all_rows(model):
    X, y = sparse_clouds()
    fed = Learner(model, len(y), gamma=0.5, order="sequential")
    for begin in range(0, len(y), 700):
        fed.partial_fit(X=X[begin : begin + 700], y=y[begin : begin + 700])
    whole = model.solve(X=X, y=y, backend="dual_averaging", gamma=0.5, order="sequential", passes=1)
    np.testing.assert_allclose(fed.solution().x, whole.x, rtol=1e-9, atol=1e-13)


def test_saving_and_loading_between_chunks_changes_no_bit(model, tmp_path):
    X, y = sparse_clouds()
    parts = [(X[begin : begin + 700], y[begin : begin + 700]) for begin in range(0, len(y), 700)]
    whole = Learner(model, len(y), gamma=0.5, seed=3)
    for part, labels in parts:
        whole.partial_fit(X=part, y=labels)
    first = Learner(model, len(y), gamma=0.5, seed=3)
    for part, labels in parts[:2]:
        first.partial_fit(X=part, y=labels)
    first.save(str(tmp_path / "run.npz"))
    second = Learner(model, len(y), gamma=0.5, seed=3).load(str(tmp_path / "run.npz"), X=parts[2][0], y=parts[2][1])
    for part, labels in parts[2:]:
        second.partial_fit(X=part, y=labels)
    assert np.array_equal(whole.solution().x, second.solution().x)


def test_a_stream_comes_near_the_optimum_of_all_the_data(model, tmp_path):
    X, y = sparse_clouds()
    path = write_npz(tmp_path / "a.npz", X, y)
    learner = Learner(model, len(y), {"rho": 1e-2})
    for _ in range(8):
        for part, labels in read_chunks(path, rows=500):
            learner.partial_fit(X=part, y=labels)
    all_at_once = model.solve(X=X, y=y, backend="dual_averaging", passes=60)
    assert all_at_once.bound.objective(learner.solution().x) <= all_at_once.objective + 0.02


def test_complaints_about_chunks_and_files_name_the_place(model, tmp_path):
    X, y = sparse_clouds(300)
    learner = Learner(model, 300, gamma=1.0).partial_fit(X=X, y=y)
    with pytest.raises(DataError, match="has 20 features, those before had 40"):
        learner.partial_fit(X=X[:, :20], y=y)
    with pytest.raises(DataError, match="the chunk lacks `y`"):
        learner.partial_fit(X=X)
    with pytest.raises(DataError, match="are -1 and \\+1"):
        learner.partial_fit(X=X, y=0.0 * y)
    (tmp_path / "bad.svm").write_text("+1 1:2 3:4\n-1 5:x\n")
    with pytest.raises(DataError, match=r"bad\.svm:2"):
        list(read_chunks(str(tmp_path / "bad.svm"), n_features=9))
    np.savez(tmp_path / "other.npz", a=np.ones(2))
    with pytest.raises(DataError, match="data, indices, indptr, shape missing"):
        list(read_chunks(str(tmp_path / "other.npz")))
    with pytest.raises(DataError, match="does not exist"):
        list(read_chunks(str(tmp_path / "none.npz")))


def test_what_needs_all_data_at_once_is_refused(model):
    X, y = sparse_clouds(300)
    with pytest.raises(UsageError, match="need all samples at once"):
        Learner(model, 300, gap=True).partial_fit(X=X, y=y)
    with pytest.raises(UsageError, match="lazy methods only"):
        Learner(model, 300, method="sfgm").partial_fit(X=X, y=y)

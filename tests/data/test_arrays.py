"""Arrays given from Python: what is accepted, what it becomes, and every flaw with its place."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from data.models import CLASSIFICATION, REGRESSION, codes, complaints, model, only
from spdsl.data import bind

X = np.arange(12.0).reshape(4, 3)
y = np.array([1.0, 2.0, 3.0, 4.0])
SYMMETRIC = model("M : symmetric(d)")


@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64", "float16", "float32", "float64", "bool"])
def test_every_real_type_becomes_float64_in_c_order(dtype):
    given_ = np.asfortranarray(X.astype(dtype))
    found = bind(REGRESSION, {"X": given_, "y": y.astype(dtype)})
    assert found.data["X"].dtype == np.float64
    assert found.data["X"].flags.c_contiguous
    np.testing.assert_array_equal(found.data["X"], given_.astype(float))


def test_lists_tuples_decimals_and_objects_of_numbers_are_read():
    found = bind(REGRESSION, {"X": [[1, 2.5], (3, 4)], "y": np.array([Decimal("1.5"), 2], dtype=object)})
    np.testing.assert_array_equal(found.data["X"], [[1, 2.5], [3, 4]])
    np.testing.assert_array_equal(found.data["y"], [1.5, 2])


def test_a_column_is_flattened_to_a_vector():
    assert bind(REGRESSION, {"X": X, "y": y[:, None]}).data["y"].shape == (4,)


def test_a_float64_array_is_shared_and_nothing_given_is_changed():
    before = X.copy()
    found = bind(REGRESSION, {"X": X, "y": y}, standardize=["X"])
    np.testing.assert_array_equal(X, before)
    assert not np.shares_memory(found.data["X"], X)
    assert np.shares_memory(bind(REGRESSION, {"X": X, "y": y}).data["X"], X)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_every_sparse_format_becomes_canonical_csr(layout, kind):
    matrix = kind(np.diag([1.0, 2.0, 3.0, 4.0])).asformat(layout)
    found = bind(REGRESSION, {"X": matrix, "y": y}).data["X"]
    assert isinstance(found, sp.csr_array)
    assert found.has_canonical_format
    assert found.indices.dtype == np.int32
    np.testing.assert_array_equal(found.toarray(), np.diag([1.0, 2.0, 3.0, 4.0]))


def test_unsorted_and_repeated_sparse_entries_are_put_right_in_a_copy():
    indices, data = np.array([2, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 0.0])
    matrix = sp.csr_matrix((data, indices, np.array([0, 3, 4, 4, 4])), shape=(4, 3))
    found = bind(REGRESSION, {"X": matrix, "y": y}).data["X"]
    np.testing.assert_array_equal(found.toarray(), [[5, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert found.nnz == 2
    np.testing.assert_array_equal(indices, [2, 0, 0, 1])
    np.testing.assert_array_equal(data, [1, 2, 3, 0])


def test_integer_and_float32_sparse_matrices_become_float64():
    for dtype in ("int32", "float32", "bool"):
        assert bind(REGRESSION, {"X": sp.eye(4, dtype=dtype), "y": y}).data["X"].dtype == np.float64


def test_a_flaw_in_a_sparse_matrix_is_named_by_row_and_column():
    matrix = sp.csr_array(np.array([[0, 1.0], [0, 0], [np.nan, 0], [0, np.inf]]))
    missing, infinite = complaints(REGRESSION, {"X": matrix, "y": y})
    assert (missing.code, infinite.code) == ("SPL409", "SPL410")
    assert "row 2, column 0" in missing.place
    assert "row 3, column 1" in infinite.place


def test_a_malformed_sparse_matrix_is_refused():
    matrix = sp.csr_array(np.eye(4))
    matrix.indices = matrix.indices + 7
    assert codes(REGRESSION, {"X": matrix, "y": y}) == ["SPL429"]


def test_missing_values_and_infinities_are_all_told_in_one_go_with_their_places():
    bad = X.copy()
    bad[1, 2] = np.nan
    bad[3, 0] = -np.inf
    target = y.copy()
    target[2] = np.nan
    found = complaints(REGRESSION, {"X": bad, "y": target})
    assert [item.code for item in found] == ["SPL409", "SPL410", "SPL409"]
    assert "row 1, column 2" in found[0].place
    assert "row 3, column 0" in found[1].place
    assert "`y`, row 2" in found[2].place


def test_masked_entries_and_none_are_missing_values():
    assert codes(REGRESSION, {"X": X, "y": np.ma.array(y, mask=[0, 1, 0, 0])}) == ["SPL409"]
    assert codes(REGRESSION, {"X": X, "y": [1, None, 2, 3]}) == ["SPL409"]


@pytest.mark.parametrize(
    ("value", "code", "word"),
    [
        (y + 1j, "SPL418", "complex"),
        (np.array(["1", "2", "3", "4"]), "SPL418", "text"),
        (np.array(["2020-01-01"] * 4, dtype="datetime64[D]"), "SPL418", "dates"),
        (np.array([1, "two", 3, 4], dtype=object), "SPL408", "'two'"),
        (np.array([1, {}, 3, 4], dtype=object), "SPL418", "{}"),
        (np.zeros(4, dtype=[("a", float)]), "SPL418", "structured"),
        (object(), "SPL418", "object"),
        (lambda: 1, "SPL418", "function"),
        (np.zeros((2, 2, 1)), "SPL411", "2 x 2 x 1"),
        (np.zeros((1, 4)), "SPL411", "1 x 4"),
        (3.0, "SPL411", "single number"),
        ([], "SPL427", "no entries"),
        ([10**400, 1, 2, 3], "SPL410", "infinite"),
    ],
)
def test_a_vector_that_is_none_is_refused_by_name(value, code, word):
    found = only(REGRESSION, {"X": X, "y": value})
    assert found.code == code
    assert word in found.message


@pytest.mark.parametrize(
    ("value", "code", "word"),
    [
        (y, "SPL411", "a vector of 4"),
        ([[1, 2], [3]], "SPL405", "row 0 has 2 entries, row 1 has 1"),
        (np.zeros((0, 3)), "SPL427", "no rows"),
        (np.zeros((4, 0)), "SPL427", "no columns"),
        (sp.csr_array((0, 3)), "SPL427", "no rows"),
        (sp.csr_array(np.eye(4) * 1j), "SPL418", "complex"),
        (None, "SPL413", "None"),
    ],
)
def test_a_matrix_that_is_none_is_refused_by_name(value, code, word):
    found = only(REGRESSION, {"X": value, "y": y})
    assert found.code == code
    assert word in found.message


def test_whole_numbers_beyond_two_to_the_53_are_rounded_with_a_note():
    found = bind(REGRESSION, {"X": X, "y": [2**60 + 1, 1, 2, 3]})
    assert any("2^53" in note for note in found.notes)


def test_a_matrix_declared_symmetric_must_be_so():
    assert codes(SYMMETRIC, {"M": np.ones((2, 3))}) == ["SPL428"]
    found = only(SYMMETRIC, {"M": [[1, 2], [3, 1]]})
    assert found.code == "SPL428"
    assert "(0, 1) is 2" in found.message
    rounding = np.array([[1.0, 2.0], [2.0 + 1e-15, 1.0]])
    matrix = bind(SYMMETRIC, {"M": rounding}).data["M"]
    assert (matrix == matrix.T).all()
    np.testing.assert_array_equal(bind(SYMMETRIC, {"M": sp.eye(3)}).data["M"], np.eye(3))


def test_a_scalar_takes_one_number():
    problem = model("X : matrix(n, d)", "s : scalar")
    assert bind(problem, {"X": X, "s": np.array([2])}).data["s"] == 2.0
    assert codes(problem, {"X": X, "s": [1, 2]}) == ["SPL411"]


def test_labels_may_be_sparse_or_a_column():
    assert bind(CLASSIFICATION, {"X": X, "y": sp.csr_array([[1], [0], [1], [0]])}).data["y"].tolist() == [1, -1, 1, -1]
    assert only(CLASSIFICATION, {"X": X, "y": np.eye(4)}).code == "SPL411"


@given(
    hnp.arrays(
        st.sampled_from([np.int16, np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.integers(-100, 100),
    )
)
def test_dense_and_sparse_bindings_of_one_matrix_agree(matrix):
    problem = model("X : matrix(n, d)")
    dense, sparse = bind(problem, {"X": matrix}), bind(problem, {"X": sp.coo_array(matrix)})
    np.testing.assert_array_equal(dense.data["X"], sparse.data["X"].toarray())
    assert dense.sizes == sparse.sizes == {"n": matrix.shape[0], "d": matrix.shape[1]}

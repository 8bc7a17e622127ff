"""Expressions over data: evaluation against NumPy written by hand, and printing that evaluates to the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.problem import Call, Name, Number, evaluate
from spdsl.problem.expressions import names, text

VALUES = {"a": 1.7, "b": -0.4, "n": 5.0}


def leaves():
    return st.one_of(
        st.sampled_from([Name(name) for name in VALUES]),
        st.floats(0.1, 9.0).map(lambda value: Number(round(value, 3))),
    )


def trees(children):
    pairs = st.tuples(children, children)
    return st.one_of(
        st.lists(children, min_size=2, max_size=4).map(lambda parts: Call("add", tuple(parts))),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: Call("multiply", tuple(parts))),
        pairs.map(lambda pair: Call("divide", (pair[0], Call("exp", (Call("negative", (Call("abs", (pair[1],)),)),))))),
        children.map(lambda child: Call("negative", (child,))),
        children.map(lambda child: Call("power", (Call("abs", (child,)), Number(2.0)))),
        pairs.map(lambda pair: Call("max", pair)),
    )


def to_python(expression):
    """An independent evaluator: the printed text read by Python, with ^ as **."""
    scope = {**VALUES, "exp": np.exp, "abs": abs, "max": np.maximum}
    return eval(text(expression).replace("^", "**"), {"__builtins__": {}}, scope)


@settings(max_examples=150, deadline=None)
@given(st.recursive(leaves(), trees, max_leaves=12))
def test_printed_text_means_what_the_tree_means(expression):
    with np.errstate(all="ignore"):
        assert to_python(expression) == pytest.approx(evaluate(expression, VALUES), rel=1e-9, nan_ok=True)


def test_minus_and_brackets_print_as_people_write_them():
    X, w, y = Name("X"), Name("w"), Name("y")
    residual = Call("add", (Call("matmul", (X, w)), Call("negative", (y,))))
    loss = Call("divide", (Call("power", (residual, Number(2.0))), Call("multiply", (Number(2.0), Name("n")))))
    assert text(loss) == "(X @ w - y)^2/(2*n)"
    assert names(loss) == {"X", "w", "y", "n"}


def test_a_sum_of_fifty_thousand_terms_evaluates_without_recursion():
    nested = Name("a")
    for _ in range(50_000):
        nested = Call("add", (nested, Number(1.0)))
    assert evaluate(nested, VALUES) == pytest.approx(50_001.7)


def test_sparse_arrays_stay_sparse_and_a_vector_scales_rows():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((6, 4), density=0.5, rng=rng, format="csr")
    y = rng.normal(size=6)
    product = evaluate(Call("multiply", (Name("y"), Name("X"))), {"X": X, "y": y})
    assert scipy.sparse.issparse(product)
    np.testing.assert_allclose(product.toarray(), np.diag(y) @ X.toarray())
    quotient = evaluate(Call("divide", (Name("X"), Number(4.0))), {"X": X})
    np.testing.assert_allclose(quotient.toarray(), X.toarray() / 4)


def test_a_missing_name_is_a_key_error_with_the_name():
    with pytest.raises(KeyError, match="gone"):
        evaluate(Call("add", (Number(1.0), Name("gone"))), VALUES)

"""Designs and objectives of bound problems, against the formulas written by hand in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from spdsl.problem import (
    BoundProblem,
    Call,
    DataDeclaration,
    GroupNorm,
    KernelNorm,
    LinearTerm,
    Name,
    Norm,
    Number,
    Predictor,
    Problem,
    Term,
    TraceNorm,
    VariableDeclaration,
)
from spdsl.problem.kernels import gram

RNG = np.random.default_rng(3)
X, y = RNG.normal(size=(7, 3)), RNG.choice([-1.0, 1.0], size=7)
U, V = RNG.normal(size=(7, 3)), RNG.normal(size=(7, 3))


def bound(variables, **data):
    declarations = tuple(DataDeclaration(name, "matrix", ("n", "d")) for name in data)
    problem = Problem("test", "", declarations, (), tuple(variables), loss=None)
    return BoundProblem(problem, data, {}, {"n": 7, "d": 3})


w_and_b = (VariableDeclaration("w", "vector", ("d",)), VariableDeclaration("b", "scalar", ()))
margin = Predictor(
    (Term("w", "matrix", Name("X"), Name("y")), Term("b", "ones", None, Name("y"))),
    Call("negative", (Name("y"),)),
    "n",
)


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array], ids=["dense", "csr"])
def test_the_design_of_a_margin_is_the_affine_map_written_by_hand(wrap):
    problem = bound(w_and_b, X=wrap(X), y=y)
    A, c = problem.design(margin)
    assert scipy.sparse.issparse(A) == (wrap is scipy.sparse.csr_array)
    x = RNG.normal(size=4)
    expected = y * (X @ x[:3] + x[3]) - y
    np.testing.assert_allclose(A @ x + c, expected)
    np.testing.assert_allclose(problem.predict(margin, x), expected)
    assert problem.design(margin)[0] is A  # cached


def test_a_mahalanobis_predictor_agrees_with_its_expanded_design():
    variables = (VariableDeclaration("M", "symmetric", ("d",)), VariableDeclaration("mu", "scalar", ()))
    difference = Call("add", (Name("U"), Call("negative", (Name("V"),))))
    predictor = Predictor(
        (Term("mu", "ones", None, Name("y")), Term("M", "quadratic_form", difference, Call("negative", (Name("y"),)))),
        None,
        "n",
    )
    problem = bound(variables, U=U, V=V, y=y)
    M = RNG.normal(size=(3, 3))
    M = M + M.T
    x = problem.layout.pack({"M": M, "mu": 1.3})
    expected = y * (1.3 - np.array([u @ M @ u for u in U - V]))
    A, c = problem.design(predictor)
    np.testing.assert_allclose(A @ x + c, expected)
    np.testing.assert_allclose(problem.predict(predictor, x), expected)


def test_packing_and_unpacking_are_inverse():
    variables = (VariableDeclaration("M", "symmetric", ("d",)), *w_and_b)
    layout = bound(variables, X=X).layout
    x = RNG.normal(size=layout.size)
    values = layout.unpack(x)
    assert values["M"].shape == (3, 3)
    assert values["w"].shape == (3,)
    assert isinstance(values["b"], float)
    np.testing.assert_array_equal(layout.pack(values), x)


def test_coupled_regularizers_have_the_values_of_their_definitions():
    variables = (VariableDeclaration("M", "symmetric", ("d",)), *w_and_b)
    problem = bound(variables, X=X, groups=np.array([4, 9, 4]))
    M = RNG.normal(size=(3, 3))
    M = M + M.T
    w = RNG.normal(size=3)
    x = problem.layout.pack({"M": M, "w": w, "b": 0.7})
    identity = Predictor((Term("w", "identity"),), None, "d")
    value = problem.regularizer_value
    assert value(Norm(Number(2.0), identity), x) == pytest.approx(2 * np.sqrt(w @ w))
    assert value(GroupNorm(Number(3.0), identity, Name("groups")), x) == pytest.approx(
        3 * (np.hypot(w[0], w[2]) + abs(w[1]))
    )
    assert value(TraceNorm(Number(0.5), "M"), x) == pytest.approx(0.5 * np.linalg.norm(M, "nuc"))
    assert value(LinearTerm(Number(1.0), Predictor((Term("M", "trace"),), None, "")), x) == pytest.approx(np.trace(M))


@pytest.mark.parametrize(
    ("name", "options", "by_hand"),
    [
        ("rbf", {"gamma": 0.3}, lambda a, b: np.exp(-0.3 * np.sum((a - b) ** 2))),
        ("polynomial", {"degree": 3, "coef0": 0.5}, lambda a, b: (a @ b + 0.5) ** 3),
        ("linear", {}, lambda a, b: a @ b),
    ],
)
@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array], ids=["dense", "csr"])
def test_kernel_matrices_are_what_their_formulas_say(name, options, by_hand, wrap):
    K = gram(name, wrap(X), wrap(U), options)
    np.testing.assert_allclose(K, [[by_hand(a, b) for b in U] for a in X], rtol=1e-12)


def test_the_norm_of_a_function_in_the_kernel_space_is_alpha_K_alpha():
    variables = (VariableDeclaration("f", "rkhs", ("n",), ("rbf", (("gamma", Number(0.5)),)), Name("X")),)
    problem = bound(variables, X=X)
    alpha = RNG.normal(size=7)
    K = gram("rbf", X, X, {"gamma": 0.5})
    assert problem.regularizer_value(KernelNorm(Number(0.5), "f"), alpha) == pytest.approx(0.5 * alpha @ K @ alpha)
    at_new = Predictor((Term("f", "kernel", Name("X")),), None, "n")
    np.testing.assert_allclose(problem.predict(at_new, alpha), K @ alpha)

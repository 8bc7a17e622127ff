"""A lowered problem means what the model says: its objective against the formulas evaluated directly by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from spdsl.compiler import compile_text
from spdsl.problem import BoundProblem, KernelNorm, LinearTerm, Norm, Separable, TraceNorm

N, D, K = 7, 4, 3


def huber(r, delta=1.0):
    return np.where(abs(r) <= delta, r**2 / 2, delta * (abs(r) - delta / 2))


def group_norm(x, groups):
    return sum(np.linalg.norm(x[groups == g]) for g in np.unique(groups))


NUMPY = {
    "abs": np.abs,
    "pos": lambda u: np.maximum(u, 0),
    "max": lambda *us: np.max(us[0]) if len(us) == 1 else np.maximum.reduce(np.broadcast_arrays(*us)),
    "min": lambda *us: np.minimum.reduce(np.broadcast_arrays(*us)),
    "square": np.square,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "logistic": lambda m: np.log1p(np.exp(-m)),
    "hinge": lambda m: np.maximum(0, 1 - m),
    "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
    "huber": huber,
    "piecewise": lambda value, condition, other: np.where(condition, value, other),
    "quantile": lambda r, tau: np.maximum(tau * r, (tau - 1) * r),
    "epsilon_insensitive": lambda r, epsilon: np.maximum(0, np.abs(r) - epsilon),
    "sum": np.sum,
    "norm1": lambda u: np.abs(u).sum(),
    "norm": lambda u: np.sqrt(np.sum(u * u)),
    "norm2": lambda u: np.sqrt(np.sum(u * u)),
    "sum_squares": lambda u: np.sum(u * u),
    "trace": np.trace,
    "trace_norm": lambda M: np.abs(np.linalg.eigvalsh(M)).sum(),
    "group_norm": group_norm,
    "mahalanobis": lambda M, D: np.einsum("ti,ij,tj->t", D, M, D),
}

DECLARATIONS = """
data
  X : matrix(n, d)
  Z : matrix(n, d)
  A : matrix(k, d)
  B : matrix(k, n)
  y : labels(n)
  u : vector(n)
  c : vector(d)
  g : vector(d)
  s : scalar
parameter
  alpha = 0.3
  C = 2
  tau = 0.7
  delta = 0.5
variable
  w : vector(d)
  b : scalar
  M : symmetric(d)
  W : matrix(d, k)
minimize
"""


def data(seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    return {
        "X": rng.normal(size=(N, D)),
        "Z": rng.normal(size=(N, D)),
        "A": rng.normal(size=(K, D)),
        "B": rng.normal(size=(K, N)),
        "y": rng.choice([-1.0, 1.0], N),
        "u": rng.normal(size=N),
        "c": rng.normal(size=D),
        "g": np.array([1.0, 1.0, 2.0, 2.0]),
        "s": 0.8,
    }


PARAMETERS = {"alpha": 0.3, "C": 2.0, "tau": 0.7, "delta": 0.5}
SIZES = {"n": N, "d": D, "k": K}


def bound(minimize: str, declarations: str = DECLARATIONS, **changes) -> BoundProblem:
    problem = compile_text(declarations + minimize, "test.spl")
    return BoundProblem(problem, {**data(), **changes}, PARAMETERS, SIZES)


def point(problem: BoundProblem, seed: int = 1) -> tuple[np.ndarray, dict]:
    rng = np.random.default_rng(seed)
    values = {"w": rng.normal(size=D), "b": 0.4, "W": rng.normal(size=(D, K))}
    M = rng.normal(size=(D, D))
    values["M"] = M @ M.T / 4
    x = problem.layout.pack(values)
    return x, values


def direct(text: str, values: dict) -> np.ndarray:
    """The formula as Python: ^ is **."""
    text = text.replace(" otherwise", "").replace(" if ", ", ").replace("^", "**")
    return eval(text, {"__builtins__": {}}, {**NUMPY, **data(), **PARAMETERS, **SIZES, **values})


ELEMENTWISE = [
    "(X @ w - u)^2 / (2*n)",
    "(u - X @ w - b)^2",
    "C * hinge(y * (X @ w + b))",
    "logistic(y * (X @ w)) / n",
    "log(1 + exp(-y * (X @ w + b)))",
    "huber(X @ w - u, delta)",
    "quantile(u - X @ w, tau)",
    "epsilon_insensitive(X @ w - u, delta) + (X @ w - u)^2 / 10",
    "max(X @ w - u, 2*(u - X @ w))",
    "max(0, 1 - y * (X @ w), 0.5 - y * (X @ w))",
    "squared_hinge(y * (X @ w)) + hinge(y * (X @ w))",
    "abs(X @ w - u) * 2 - u",
    "pos(abs(X @ w - s) - delta)",
    "(X @ w - u)^2 + 3 * (X @ w)",
    "square((X @ w + X @ c - u) / C)",
    "exp(-y * (X @ w)) / 10",
    "max(X @ w, Z @ w, u)",
    "(X @ w - u)^2 + (Z @ w)^2",
    "X @ w",
    "(X @ (2*w - c) - u)^2",
    "hinge(y * (b - mahalanobis(M, X - Z))) / n",
    "abs(B.T @ (A @ w) - u)",
    "(sum(w) - u)^2",
    "(c @ w + b - u)^2",
    "huber(y*(X @ w), 0.3 + delta^2) / sqrt(n)",
    "hinge(y * (X @ w)) + (X @ w - u)^2",
    "abs(X @ w) + hinge(2 * y * (X @ w))",
    "max(0, y * (X @ w), X @ w - 1)",
    "(X @ w)^2 + pos(X @ w + y) * (1 + y)",
    "logistic(y * (X @ w + b)) + alpha * abs(X @ w)",
    "exp(X @ w) - u * (X @ w)",
    "piecewise(tau * (X @ w - u)^2 if X @ w > u, (X @ w - u)^2 / 3 otherwise)",
    "piecewise(tau * (X @ w - u)^2 if u < X @ w, (X @ w - u)^2 / 3 otherwise)",
]


@pytest.mark.parametrize("formula", ELEMENTWISE)
def test_losses_by_sample_equal_the_formula(formula):
    problem = bound(f"  loss {formula}")
    x, values = point(problem)
    expected = np.broadcast_to(direct(formula, values), (N,))
    np.testing.assert_allclose(problem.losses(x), expected, rtol=1e-10, atol=1e-12)
    assert problem.n_samples == N


def test_a_piecewise_loss_is_its_first_case_that_holds():
    problem = bound("  loss piecewise((X @ w)^2/2 if abs(X @ w) <= delta, delta*(abs(X @ w) - delta/2) otherwise)\n")
    x, values = point(problem)
    np.testing.assert_allclose(problem.losses(x), huber(data()["X"] @ values["w"], 0.5))
    assert [kink.smooth for kink in problem.problem.loss.function.kinks] == [True, True]


SCALAR = [
    "sum((X @ w - u)^2) / (2*n)",
    "norm(X @ w - u)^2 / (2*n)",
    "sum_squares(X @ w - u) + alpha * norm1(w)",
    "C * sum(hinge(y * (X @ w + b))) + norm(w)^2 / 2",
    "norm(X @ w - u)",
    "sqrt(sum_squares(X @ w - u)) / 2",
    "norm1(X @ w - u) / n + sum(abs(w)) * alpha",
    "sum(logistic(y * (X @ w))) / n + (b - 1)^2",
    "-(sum(u * (X @ w)) - sum(exp(X @ w)))",
    "trace(M) + sum((b - mahalanobis(M, X))^2)",
]


@pytest.mark.parametrize("formula", SCALAR)
def test_scalar_losses_keep_their_value(formula):
    problem = bound(f"  loss {formula}")
    x, values = point(problem)
    assert problem.objective(x) == pytest.approx(float(direct(formula, values)), rel=1e-10)


def test_a_summed_square_is_recovered_sample_by_sample():
    problem = bound("  loss sum((X @ w - u)^2) / (2*n)\n")
    x, values = point(problem)
    assert problem.problem.loss.elementwise is False
    assert problem.n_samples == N
    np.testing.assert_allclose(problem.losses(x), (data()["X"] @ values["w"] - data()["u"]) ** 2 / (2 * N))
    assert problem.problem.loss.function.is_quadratic


REGULARIZERS = [
    ("alpha * norm1(w)", Separable),
    ("alpha * norm1(A @ w)", Separable),
    ("norm(w)^2 / 2", Separable),
    ("sum_squares(w - c) * alpha", Separable),
    ("norm(w) * alpha", Norm),
    ("norm2(A @ w - 1)", Norm),
    ("sum(huber(w, delta)) / n", Separable),
    ("alpha * sum(max(-w, 2*w))", Separable),
    ("alpha * group_norm(w, g)", None),
    ("trace_norm(M) * alpha", TraceNorm),
    ("alpha * trace(M)", LinearTerm),
    ("c @ w", LinearTerm),
    ("norm(W)^2", Separable),
    ("norm1(W)", Separable),
    ("norm(M)", Norm),
    ("b^2", Separable),
    ("abs(b - 1)", Separable),
    ("alpha * (norm1(w) * tau + norm(w)^2 * C / 2)", None),
    ("2 * (norm1(w) + sum_squares(w)) / C", None),
    ("sum(w^2) + sum(c * w)", None),
    ("sum((w - c)^2 * c^2)", Separable),
    ("w @ w / 2", Separable),
    ("alpha * (w @ w)", Separable),
    ("alpha * ((A @ w - 1) @ (A @ w - 1))", Separable),
]


@pytest.mark.parametrize(("formula", "kind"), REGULARIZERS)
def test_regularizers_equal_the_formula(formula, kind):
    problem = bound(f"  loss (X @ w - u)^2\n  regularizer {formula}\n")
    x, values = point(problem)
    assert problem.regularization(x) == pytest.approx(float(direct(formula, values)), rel=1e-10)
    if kind is not None:
        (found,) = problem.problem.regularizers
        assert isinstance(found, kind)


def test_constant_terms_are_dropped_or_kept_but_never_change_the_minimizer():
    one = bound("  loss sum((X @ w - u)^2) + 5\n")
    two = bound("  loss sum((X @ w - u)^2)\n")
    xs = [point(one, seed)[0] for seed in (1, 2)]
    assert one.objective(xs[0]) - one.objective(xs[1]) == pytest.approx(two.objective(xs[0]) - two.objective(xs[1]))


def test_several_losses_are_summed_elementwise_and_several_regularizers_added():
    problem = bound(
        "  loss hinge(y * (X @ w))\n  loss (X @ w - u)^2\n  regularizer norm1(w)\n  regularizer norm(w)^2\n"
    )
    x, values = point(problem)
    expected = direct("hinge(y * (X @ w)) + (X @ w - u)^2", values)
    np.testing.assert_allclose(problem.losses(x), expected)
    assert problem.regularization(x) == pytest.approx(float(direct("norm1(w) + norm(w)^2", values)))


def test_predictors_that_are_multiples_of_one_another_become_one_argument():
    for formula in ("max(X @ w - u, 2*(u - X @ w))", "hinge(y*(X @ w)) + (X @ w)^2", "(X@w - u)^2 + abs(X@w)"):
        assert len(bound(f"  loss {formula}").problem.loss.predictors) == 1, formula
    assert len(bound("  loss max(X @ w, Z @ w)").problem.loss.predictors) == 2


def test_labels_fold_into_the_design():
    problem = bound("  loss hinge(y * (X @ w + b))")
    A, offset = problem.design(problem.problem.loss.predictors[0])
    y = data()["y"]
    expected = np.zeros((N, problem.layout.size))
    expected[:, problem.layout.slices["w"]] = y[:, None] * data()["X"]
    expected[:, problem.layout.slices["b"]] = y[:, None]
    np.testing.assert_allclose(A, expected)
    np.testing.assert_allclose(offset, 0)


def test_sparse_data_stay_sparse_through_labels_and_scales():
    sparse = scipy.sparse.csr_array(np.where(np.abs(data()["X"]) > 0.7, data()["X"], 0.0))
    text = DECLARATIONS.replace("  b : scalar\n  M : symmetric(d)\n  W : matrix(d, k)\n", "")
    problem = BoundProblem(
        compile_text(text + "  loss hinge(y * (X @ w)) / n"), {**data(), "X": sparse}, PARAMETERS, SIZES
    )
    A, _ = problem.design(problem.problem.loss.predictors[0])
    assert scipy.sparse.issparse(A)
    np.testing.assert_allclose(A.toarray(), data()["y"][:, None] * sparse.toarray())


def test_kernel_functions_become_kernel_terms_and_norms():
    text = """
data
  X : matrix(n, d)
  y : labels(n)
parameter
  gamma = 0.5
variable
  f : rkhs(X, rbf(gamma))
  b : scalar
minimize
  loss hinge(y * (f(X) + b))
  regularizer norm(f)^2 / 2
"""
    problem = BoundProblem(compile_text(text), data(), {"gamma": 0.5}, SIZES)
    assert isinstance(problem.problem.regularizers[0], KernelNorm)
    rng = np.random.default_rng(3)
    alpha = rng.normal(size=N)
    X, y = data()["X"], data()["y"]
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    x = problem.layout.pack({"f": alpha, "b": 0.2})
    np.testing.assert_allclose(problem.losses(x), np.maximum(0, 1 - y * (gram @ alpha + 0.2)))
    assert problem.regularization(x) == pytest.approx(alpha @ gram @ alpha / 2)

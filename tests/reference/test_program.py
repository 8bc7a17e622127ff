"""`to_cvxpy` against other libraries and closed forms, and every part of a problem in it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, QuantileRegressor, Ridge
from sklearn.svm import SVC, LinearSVC

from reference.fits import bound, classification, cvx_point, linear, regression
from spdsl.problem import Call, Name, Number, ScalarFunction
from spdsl.reference import TranslationError, to_cvxpy
from spdsl.reference.atoms import translate
from spdsl.reference.scalar import RULES, value
from spdsl.reference.solve import Outcome, solve_tightly

SQUARES = "minimize\n  loss (X @ w + b - y)^2 / (2*n)\n"
DATA, CLASSES = regression(80, 5), classification(80, 5)


def parts(problem, x):
    values = problem.layout.unpack(x)
    return values["w"], values.get("b", 0.0)


def test_lasso_ridge_and_elastic_net_are_scikit_learns():
    for regularizer, theirs in (
        ("alpha * norm1(w)", Lasso(0.3, tol=1e-12, max_iter=100_000)),
        ("alpha * sum_squares(w) / 2", Ridge(0.3 * 80, tol=1e-12)),
        ("alpha/2 * norm1(w) + alpha/4 * sum_squares(w)", ElasticNet(0.3, l1_ratio=0.5, tol=1e-12, max_iter=100_000)),
    ):
        problem = bound(linear(SQUARES + f"regularizer {regularizer}", intercept=True), {"alpha": 0.3}, **DATA)
        w, b = parts(problem, cvx_point(problem))
        theirs.fit(DATA["X"], DATA["y"])
        np.testing.assert_allclose(w, theirs.coef_, atol=2e-6)
        assert b == pytest.approx(theirs.intercept_, abs=2e-6)


def test_quantile_regression_is_scikit_learns():
    text = linear("minimize\nloss quantile(y - X @ w - b, 0.3) / n\nregularizer alpha * norm1(w)", intercept=True)
    problem = bound(text, **DATA)
    w, b = parts(problem, cvx_point(problem))
    theirs = QuantileRegressor(quantile=0.3, alpha=0.05).fit(DATA["X"], DATA["y"])
    np.testing.assert_allclose(w, theirs.coef_, atol=1e-6)
    assert b == pytest.approx(theirs.intercept_, abs=1e-6)


def test_logistic_regression_and_squared_hinge_svm_are_scikit_learns():
    text = linear("minimize\nloss logistic(y * (X @ w + b))\nregularizer sum_squares(w)/2", "labels", intercept=True)
    problem = bound(text, **CLASSES)
    w, b = parts(problem, cvx_point(problem))
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(CLASSES["X"], CLASSES["y"])
    np.testing.assert_allclose(w, theirs.coef_[0], atol=1e-5)
    assert b == pytest.approx(theirs.intercept_[0], abs=1e-5)
    text = linear("minimize\nloss squared_hinge(y * (X @ w))\nregularizer sum_squares(w)/2", "labels")
    problem = bound(text, **CLASSES)
    theirs = LinearSVC(C=1.0, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(CLASSES["X"], CLASSES["y"])
    np.testing.assert_allclose(parts(problem, cvx_point(problem))[0], theirs.coef_[0], atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf(0.5)", "linear()", "polynomial(2, 1)"])
def test_a_kernel_svm_is_scikit_learns(kernel):
    text = (
        f"data\n  X : matrix(n, d)\n  y : labels(n)\nvariable\n  f : rkhs(X, {kernel})\n  b : scalar\n"
        "minimize\n  loss hinge(y * (f(X) + b))\n  regularizer norm(f)^2 / 2\n"
    )
    problem = bound(text, **CLASSES)
    x = cvx_point(problem)
    decision = problem.margins(x)[0] * CLASSES["y"]
    options = {"rbf(0.5)": {"gamma": 0.5}, "polynomial(2, 1)": {"kernel": "poly", "degree": 2, "coef0": 1, "gamma": 1}}
    theirs = SVC(C=1.0, tol=1e-8, **{"kernel": kernel.partition("(")[0], **options.get(kernel, {})})
    theirs.fit(CLASSES["X"], CLASSES["y"])
    np.testing.assert_allclose(decision, theirs.decision_function(CLASSES["X"]), atol=1e-4)


def test_sample_weights_are_scikit_learns():
    problem = bound(linear(SQUARES, intercept=True), **DATA)
    v = np.linspace(0, 1, 80)
    w, b = parts(problem, cvx_point(problem, v))
    theirs = Ridge(0.0).fit(DATA["X"], DATA["y"], sample_weight=v)
    np.testing.assert_allclose([*w, b], [*theirs.coef_, theirs.intercept_], atol=1e-6)


METRIC = """data
  U : matrix(T, 2)
  y : vector(T)

variable
  M : symmetric(2)

minimize
  loss (mahalanobis(M, U) - y)^2
{more}
"""
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def test_a_semidefinite_program_of_two_by_two_has_its_closed_form():
    """By symmetry M = [[a, b], [b, a]]; where M >> 0 binds, b = a and 2 (a - 1)^2 + (4a - 6)^2 is least at a = 13/9."""
    data = {"U": ROWS, "y": np.array([1.0, 1.0, 6.0])}
    free = bound(METRIC.format(more=""), **data)
    np.testing.assert_allclose(cvx_point(free), [1, 2, 2, 1], atol=1e-6)
    cone = bound(METRIC.format(more="subject to\n  M >> 0"), **data)
    np.testing.assert_allclose(cvx_point(cone), np.full(4, 13 / 9), atol=1e-5)


def test_trace_norm_shrinks_the_trace_under_the_cone():
    """With M >> 0 inactive and |M|_tr = tr M: 2 (a - t) + c = 0 on each diagonal, the off-diagonal follows."""
    data = {"U": ROWS[:2], "y": np.array([3.0, 2.0])}
    problem = bound(METRIC.format(more="regularizer 0.4 * trace_norm(M)\nsubject to\n  M >> 0"), **data)
    found = cvx_point(problem).reshape(2, 2)
    np.testing.assert_allclose(np.diag(found), [2.8, 1.8], atol=1e-5)


CONSTRAINED = {
    "w >= 0": lambda w: w.min() >= -1e-7,
    "sum(w) == 1": lambda w: abs(w.sum() - 1) < 1e-7,
    "norm1(w) <= 0.5": lambda w: np.abs(w).sum() <= 0.5 + 1e-7,
    "norm(w) <= 0.5": lambda w: np.linalg.norm(w) <= 0.5 + 1e-7,
    "max(abs(w)) <= 0.2": lambda w: np.abs(w).max() <= 0.2 + 1e-7,
}


@pytest.mark.parametrize("row", CONSTRAINED)
def test_constraints_hold_and_bind(row):
    problem = bound(linear(SQUARES + f"subject to\n  {row}", intercept=True), **DATA)
    w, _ = parts(problem, cvx_point(problem))
    assert CONSTRAINED[row](w)
    free = bound(linear(SQUARES, intercept=True), **DATA)
    assert not CONSTRAINED[row](parts(free, cvx_point(free))[0])


def test_a_support_constraint_needs_a_support():
    problem = bound(linear("minimize\nloss (X @ w - y)^2\nsubject to\nsupport(w) in sparse(size = 2)"), **DATA)
    with pytest.raises(TranslationError, match="given support only") as caught:
        to_cvxpy(problem)
    assert caught.value.diagnostics[0].code == "SPL601"
    support = np.array([True, False, True, False, False])
    w, _ = parts(problem, cvx_point(problem, None, support))
    expected = np.linalg.lstsq(DATA["X"][:, support], DATA["y"], rcond=None)[0]
    np.testing.assert_allclose(w[support], expected, atol=1e-6)
    np.testing.assert_allclose(w[~support], 0, atol=1e-8)


def test_a_sparse_design_gives_the_same_answer():
    import scipy.sparse as sp

    text = linear("minimize\nloss (X @ w - y)^2 / n\nregularizer alpha * norm1(w)")
    dense = bound(text, **DATA)
    sparse = bound(text, X=sp.csc_array(DATA["X"]), y=DATA["y"])
    np.testing.assert_allclose(cvx_point(dense), cvx_point(sparse), atol=1e-7)


z = Name("z")


def call(function, *arguments):
    return Call(function, tuple(arguments))


def huber_by_hand(delta):
    inner = call("divide", call("power", z, Number(2.0)), Number(2.0))
    outer = call("multiply", delta, call("add", call("abs", z), call("negative", call("divide", delta, Number(2.0)))))
    return call("piecewise", inner, call("less_equal", call("abs", z), delta), outer)


FORMULAS = {
    "huber by hand": huber_by_hand(Number(0.7)),
    "huber by hand, scaled": call("divide", huber_by_hand(Number(0.7)), Number(5.0)),
    "four pieces": call(
        "piecewise",
        call("negative", z),
        call("less", z, Number(-1.0)),
        Number(1.0),
        call("less", z, Number(0.0)),
        call("exp", z),
        call("less_equal", z, Number(1.0)),
        call("multiply", Number(np.e), z),
    ),
    "add": call("add", z, Number(2.0)),
    "multiply": call("multiply", Number(3.0), z, z),
    "divide": call("divide", call("abs", z), Number(4.0)),
    "negative": call("negative", z),
    "power": call("power", z, Number(4.0)),
    "a power of a positive part": call("power", call("pos", z), Number(3.0)),
    "exponential base": call("power", Number(2.0), z),
    "max": call("max", z, call("multiply", Number(-2.0), z), Number(0.5)),
    "min": call("negative", call("min", z, Number(1.0))),
    "abs": call("abs", z),
    "pos": call("pos", z),
    "square": call("square", call("pos", z)),
    "exp": call("exp", z),
    "log": call("negative", call("log", call("add", z, Number(9.0)))),
    "sqrt": call("negative", call("sqrt", call("add", z, Number(9.0)))),
    "softplus": call("softplus", z),
    "logistic": call("logistic", z),
    "hinge": call("hinge", z),
    "squared_hinge": call("squared_hinge", z),
    "huber": call("huber", z, Number(0.7)),
    "huber with one delta a sample": call("huber", z, Name("c")),
    "quantile": call("quantile", z, Name("c")),
    "epsilon_insensitive": call("epsilon_insensitive", z, Name("c")),
    "piecewise": call("piecewise", call("negative", z), call("less", z, Number(0.0)), call("multiply", Number(3.0), z)),
    "constants": call(
        "multiply",
        call("max", Number(2.0), call("abs", Number(-3.0))),
        call("exp", call("log", call("sqrt", Number(4.0)))),
        z,
    ),
}


def test_every_atom_of_the_certificate_has_a_form_in_cvxpy():
    assert set(RULES) <= set(FORMULAS)


@pytest.mark.parametrize("name", FORMULAS)
def test_translated_formulas_are_convex_to_cvxpy_and_have_the_same_values(name):
    import cvxpy as cp

    theta = [np.linspace(0.1, 0.9, 9)] if "Name(name='c')" in repr(FORMULAS[name]) else []
    function = ScalarFunction(FORMULAS[name], ("z",), ("c",) if theta else (), (), (), ())
    points = np.linspace(-3, 3, 9)
    variable = cp.Variable(9)
    translated = translate(function, [variable], theta)
    problem = cp.Problem(cp.Minimize(cp.sum(translated)), [variable == points])
    assert problem.is_dcp()
    assert solve_tightly(problem).value == pytest.approx(value(function, [points], theta).sum(), abs=1e-6)


REFUSED = {
    "a product that varies": (call("multiply", z, call("exp", z)), "product"),
    "a quotient that varies": (call("divide", z, call("add", Number(2.0), call("square", z))), "quotient"),
    "an odd power": (call("power", z, Number(3.0)), "at least 0"),
    "a varying exponent": (call("power", call("pos", z), z), "exponent"),
    "an unknown atom": (call("sine", z), "`sine`"),
    "pieces that bend the wrong way": (
        call(
            "piecewise",
            z,
            call("less_equal", z, Number(1.0)),
            call(
                "add",
                Number(0.5),
                call("divide", z, Number(2.0)),
                call("square", call("pos", call("add", z, Number(-3.0)))),
            ),
        ),
        "isn't convex by itself",
    ),
    "pieces with one parameter a sample": (huber_by_hand(Name("c")), "one parameter a sample"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cvxpy_cant_express_is_refused_in_a_sentence(name):
    import cvxpy as cp

    body, words = REFUSED[name]
    theta = [np.array([0.5, 1.0, 1.5])] if "Name(name='c')" in repr(body) else []
    with pytest.raises(TranslationError, match=words):
        translate(ScalarFunction(body, ("z",), ("c",) if theta else (), (), (), ()), [cp.Variable(3)], theta)


def test_solvers_are_tried_until_one_is_accurate_and_failure_is_told():
    import cvxpy as cp

    x = cp.Variable()
    assert solve_tightly(cp.Problem(cp.Minimize(cp.square(x - 1)))).accurate
    assert solve_tightly(cp.Problem(cp.Minimize(x), [x >= 0]), "highs").solver == "HIGHS"
    unbounded = solve_tightly(cp.Problem(cp.Minimize(x)))
    assert (unbounded.status, unbounded.found) == ("unbounded", False)
    assert not solve_tightly(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0])).found
    assert not solve_tightly(cp.Problem(cp.Minimize(cp.square(x))), "nosuchsolver").found
    assert Outcome("optimal_inaccurate", "SCS", 1.0, False).found

"""Curvatures and signs agree with cvxpy's, convex verdicts hold numerically, and blame points at the right place."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spdsl.diagnostics import ModelError
from spdsl.language.printer import unparse
from spdsl.language.types import Curvature, Sign, Verdict
from spdsl.problem.expressions import evaluate
from tests.language.models import checked, regression
from tests.language.typing import Bench

BENCH = Bench()

# --- against cvxpy ---

_UNARY: dict[str, Callable[[Any], Any]] = {
    "abs({})": cp.abs,
    "pos({})": cp.pos,
    "square({})": cp.square,
    "sqrt({})": cp.sqrt,
    "exp({})": cp.exp,
    "log({})": cp.log,
    "hinge({})": lambda m: cp.pos(1 - m),
    "squared_hinge({})": lambda m: cp.square(cp.pos(1 - m)),
    "logistic({})": lambda m: cp.logistic(-m),
    "huber({}, delta = 2)": lambda r: 0.5 * cp.huber(r, 2),
    "epsilon_insensitive({})": lambda r: cp.pos(cp.abs(r) - 0.1),
    "-{}": lambda x: -x,
    "3 * {}": lambda x: 3 * x,
    "{} / -2": lambda x: x / -2,
    "alpha * {}": lambda x: 0.5 * x,
    "beta * {}": lambda x: -2 * x,
    "{}^2": cp.square,
    "{} + 1": lambda x: x + 1,
    "1 - {}": lambda x: 1 - x,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "({} + {})": lambda x, y: x + y,
    "({} - {})": lambda x, y: x - y,
    "max({}, {})": cp.maximum,
    "min({}, {})": cp.minimum,
}
_A, _B = cp.Variable(name="a"), cp.Variable(name="b")

_Pair = tuple[str, Any]
_LEAVES = st.sampled_from([("a", _A), ("b", _B), ("2", cp.Constant(2)), ("(-1)", cp.Constant(-1))])


def _extend(inner: st.SearchStrategy[_Pair]) -> st.SearchStrategy[_Pair]:
    one = st.builds(lambda key, x: (key.format(f"({x[0]})"), _UNARY[key](x[1])), st.sampled_from(sorted(_UNARY)), inner)
    two = st.builds(
        lambda key, x, y: (key.format(x[0], y[0]), _BINARY[key](x[1], y[1])),
        st.sampled_from(sorted(_BINARY)),
        inner,
        inner,
    )
    return st.one_of(one, two)


def _curvature(expression: Any) -> Curvature:
    if expression.is_constant():
        return Curvature.CONSTANT
    if expression.is_affine():
        return Curvature.AFFINE
    if expression.is_convex():
        return Curvature.CONVEX
    return Curvature.CONCAVE if expression.is_concave() else Curvature.UNKNOWN


@settings(max_examples=150, deadline=None)
@given(st.recursive(_LEAVES, _extend, max_leaves=6))
@example(("min(a, pos((-1)))", cp.minimum(_A, cp.pos(cp.Constant(-1)))))
def test_curvature_and_sign_are_at_least_as_sharp_as_cvxpys_and_never_contradict_them(pair: _Pair) -> None:
    text, expression = pair
    type_ = BENCH.type_of(text)
    theirs = _curvature(expression)
    if expression.variables() and theirs is not Curvature.CONSTANT:
        assert type_.curvature in (theirs, *_SHARPER.get(theirs, ()))
    unknown = () if expression.variables() else (Sign.UNKNOWN,)  # cvxpy evaluates constants; we do with literals alone
    if expression.is_nonneg() and not expression.is_nonpos():
        assert type_.sign in (Sign.NONNEGATIVE, Sign.ZERO, *unknown)
    if expression.is_nonpos() and not expression.is_nonneg():
        assert type_.sign in (Sign.NONPOSITIVE, Sign.ZERO, *unknown)


@pytest.mark.parametrize(
    ("text", "sign"),
    [("(-1) - 2 + 1", Sign.NONPOSITIVE), ("1 - 2 + 3", Sign.NONNEGATIVE), ("2 - 3 + 1", Sign.ZERO)],
)
def test_literals_have_the_sign_of_their_value(text, sign):
    assert BENCH.type_of(text).sign is sign


# Where cvxpy knows less than we may: never the other way round.
_SHARPER = {Curvature.UNKNOWN: (Curvature.CONVEX, Curvature.CONCAVE)}


# --- against numbers ---

_NUMPY: dict[str, Any] = {
    "abs": np.abs,
    "pos": lambda x: np.maximum(x, 0),
    "square": np.square,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "max": lambda *x: np.maximum.reduce(np.broadcast_arrays(*x)),
    "min": lambda *x: np.minimum.reduce(np.broadcast_arrays(*x)),
    "hinge": lambda m: np.maximum(0, 1 - m),
    "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
    "logistic": lambda m: np.logaddexp(0, -m),
    "huber": lambda r, delta=1: np.where(np.abs(r) <= delta, r**2 / 2, delta * (np.abs(r) - delta / 2)),
    "quantile": lambda r, tau=0.5: np.maximum(tau * r, (tau - 1) * r),
    "epsilon_insensitive": lambda r, epsilon=0.1: np.maximum(0, np.abs(r) - epsilon),
    "alpha": np.float64(0.5),
    "beta": np.float64(-2),
    "number": np.float64,
}
_TEMPLATES = [*_UNARY, "quantile({}, tau = 0.3)", "{}^3", "{}^0.5", "{}^1.5", "1 / {}", "2^{}", "{}^4"]


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    one = st.builds(lambda key, x: key.format(f"({x})"), st.sampled_from(_TEMPLATES), inner)
    two = st.builds(lambda key, x, y: key.format(x, y), st.sampled_from([*_BINARY, "({}) * ({})"]), inner, inner)
    return st.one_of(one, two)


_TEXTS = st.recursive(st.sampled_from(["a", "b", "2", "(-1)", "(a - b)"]), _grow, max_leaves=5)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(st.sampled_from(["a", "b", "2", "(-1)", "(a - b)"]), _grow, max_leaves=5), st.integers(0, 2**32 - 1)
)
def test_what_is_called_convex_or_concave_or_signed_is_so_at_random_points(text: str, seed: int) -> None:
    type_ = BENCH.type_of(text)
    numbers = re.sub(r"(?<![\w.])([0-9.]+)", r"number(\1)", text.replace("^", "**"))
    code = compile(numbers, "<expression>", "eval")

    def value(point: np.ndarray[Any, Any]) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = {**_NUMPY, "a": np.float64(point[0]), "b": np.float64(point[1])}
            try:
                return np.float64(eval(code, {"__builtins__": {}}, names))
            except (OverflowError, ZeroDivisionError):
                return np.float64(np.nan)

    rng = np.random.default_rng(seed)
    for _ in range(8):
        left, right = rng.normal(size=2) * 2, rng.normal(size=2) * 2
        ends, middle = (value(left) + value(right)) / 2, value((left + right) / 2)
        if not np.isfinite([ends, middle]).all() or max(abs(ends), abs(middle)) > 1e12:
            continue  # outside of the domain, or of floating point
        slack = 1e-9 * (1 + abs(ends) + abs(middle))
        if type_.curvature in (Curvature.CONVEX, Curvature.AFFINE, Curvature.CONSTANT):
            assert middle <= ends + slack
        if type_.curvature in (Curvature.CONCAVE, Curvature.AFFINE, Curvature.CONSTANT):
            assert middle >= ends - slack
        if type_.sign in (Sign.NONNEGATIVE, Sign.ZERO):
            assert middle >= -slack
        if type_.sign in (Sign.NONPOSITIVE, Sign.ZERO):
            assert middle <= slack


@pytest.mark.parametrize(
    ("text", "curvature"),
    [
        ("y * (X @ w)", Curvature.AFFINE),
        ("hinge(l * (X @ w + b))", Curvature.CONVEX),
        ("log(1 + exp(-l * (X @ w)))", Curvature.UNKNOWN),
        ("c * (X @ w - y)^2", Curvature.UNKNOWN),
        ("abs(c) * (X @ w - y)^2", Curvature.CONVEX),
        ("(X @ w) * (X @ w)", Curvature.CONVEX),
        ("w @ w", Curvature.CONVEX),
        ("2 * w @ w", Curvature.CONVEX),
        ("-2 * w @ w / 3", Curvature.CONCAVE),
        ("2 * w @ w * 3", Curvature.CONVEX),
        ("w * w @ w", Curvature.UNKNOWN),
        ("2 * w @ (2 * w)", Curvature.UNKNOWN),
        ("w.T @ w", Curvature.CONVEX),
        ("w @ S @ w", Curvature.UNKNOWN),
        ("w @ u", Curvature.UNKNOWN),
        ("mahalanobis(M, X)", Curvature.AFFINE),
        ("mahalanobis(S, X - y @ X)", None),
        ("trace(S @ M)", Curvature.AFFINE),
        ("norm2(w)^2", Curvature.CONVEX),
        ("norm2(w)^3", Curvature.CONVEX),
        ("norm2(w)^1.5", Curvature.CONVEX),
        ("norm2(w)^0.5", Curvature.UNKNOWN),
        ("norm(f)^2", Curvature.CONVEX),
        ("a^3", Curvature.UNKNOWN),
        ("pos(a)^3", Curvature.CONVEX),
        ("1 / sqrt(a)", Curvature.CONVEX),
        ("1 / a", Curvature.UNKNOWN),
        ("a / b", Curvature.UNKNOWN),
        ("2^a", Curvature.CONVEX),
        ("0.5^abs(a)", Curvature.UNKNOWN),
        ("0.5^sqrt(a)", Curvature.CONVEX),
        ("a^alpha", Curvature.UNKNOWN),
        ("piecewise(a if y <= 0, abs(a) otherwise)", Curvature.CONVEX),
        ("piecewise(a if a <= 0, abs(a) otherwise)", Curvature.UNKNOWN),
        ("sum(exp(X @ w) - y * (X @ w))", Curvature.CONVEX),
        ("group_norm(w, g)", Curvature.CONVEX),
        ("max(abs(w))", Curvature.CONVEX),
    ],
)
def test_curvatures_of_what_models_are_made_of(text: str, curvature: Curvature | None) -> None:
    if curvature is None:
        assert BENCH.codes(text)
    else:
        assert BENCH.type_of(text).curvature is curvature


# --- verdicts ---


def test_a_loss_that_the_rules_do_not_reach_is_left_undecided() -> None:
    text = regression("log(1 + exp(-y * (X @ w)))")
    assert checked(text).losses[0].verdict is Verdict.UNDECIDED


def test_assume_convex_is_noted_and_not_needed_assumptions_are_warned_of() -> None:
    model = checked(regression("log(1 + exp(-y * (X @ w))) assume convex"))
    assert (model.losses[0].verdict, model.losses[0].assume_convex) == (Verdict.ASSUMED, True)
    assert "SPL306" in [w.code for w in checked(regression("(X @ w - y)^2 assume convex", parameter="")).warnings]


def test_assume_convex_does_not_excuse_what_is_concave() -> None:
    with pytest.raises(ModelError, match="SPL301"):
        checked(regression("-(X @ w - y)^2 assume convex"))


def test_sample_weights_must_be_nonnegative_data() -> None:
    model = checked(regression("c * (X @ w - y)^2", data="c : vector(n)"))
    assert model.losses[0].verdict is Verdict.CONVEX
    assert model.losses[0].needs_nonnegative == {"c"}


def test_sample_weights_of_an_undecided_loss_must_be_nonnegative_too() -> None:
    """So that the compiler has the formula of one sample to decide, not the sign of its weight."""
    text = regression("c * log(1 + exp(-y * (X @ w))) + y * (X @ w)", data="c : vector(n)")
    (loss,) = checked(text).losses
    assert loss.verdict is Verdict.UNDECIDED
    assert loss.needs_nonnegative == {"c"}


def test_what_is_no_mere_weight_is_not_required_to_be_nonnegative() -> None:
    (loss,) = checked(regression("y * logistic(X @ w) + (1 - y) * logistic(-(X @ w))")).losses
    assert loss.verdict is Verdict.UNDECIDED
    assert loss.needs_nonnegative == frozenset()


def test_only_the_data_that_matter_must_be_nonnegative() -> None:
    model = checked(regression("c * exp(X @ w) - y * (X @ w)", data="c : vector(n)"))
    assert model.losses[0].needs_nonnegative == {"c"}
    assert checked(regression("exp(X @ w) - y * (X @ w)")).losses[0].needs_nonnegative == frozenset()


def test_labels_are_never_taken_for_nonnegative() -> None:
    model = checked(regression("l * abs(X @ w)", data="l : labels(n)"))
    assert model.losses[0].verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("parameter", "line", "signs"),
    [
        ("alpha = 1", "alpha * norm1(w)", {"alpha": Sign.NONNEGATIVE}),
        ("alpha = 0", "alpha * norm1(w)", {"alpha": Sign.NONNEGATIVE}),
        ("alpha = -1", "-alpha * norm1(w)", {"alpha": Sign.NONPOSITIVE}),
        ("alpha = 1", "alpha^2 * norm1(w)", {}),
        ("alpha = 1", "alpha * sum(w)", {}),
        ("alpha = 1\nrho = 2", "alpha * (rho * norm1(w) + (1 - rho)^2 * norm2(w))", {"alpha", "rho"}),
        ("alpha = 1 / n", "alpha * norm1(w)", {"alpha": Sign.NONNEGATIVE}),
    ],
)
def test_the_signs_of_parameters_that_a_verdict_rests_on_are_noted(parameter: str, line: str, signs: Any) -> None:
    found = checked(regression("(X @ w - y)^2", f"regularizer {line}", parameter=parameter)).parameter_signs
    assert found == signs if isinstance(signs, dict) else set(found) == signs


@pytest.mark.parametrize(
    ("parameter", "line", "conditions"),
    [
        ("rho = 0.5", "rho * norm1(w) + (1 - rho) * sum_squares(w)", {"1 - rho": Sign.NONNEGATIVE}),
        ("rho = 1", "rho * norm1(w) + (1 - rho) * sum_squares(w)", {"1 - rho": Sign.NONNEGATIVE}),
        ("rho = 3", "(1 - rho) * min(b, 2 * b)", {"1 - rho": Sign.NONPOSITIVE}),
        ("rho = 3", "norm1(w) + (1 - rho) * sum(w)", {}),
        ("rho = 3", "(1 - rho)^2 * norm1(w)", {}),
        ("rho = 3\nk = 1", "(rho - k) * norm1(w) + (rho - 1) * b", {"rho - k": Sign.NONNEGATIVE}),
    ],
)
def test_the_sign_of_a_constant_is_that_under_the_defaults_and_is_noted(
    parameter: str, line: str, conditions: Any
) -> None:
    text = regression("(X @ w - y)^2", f"regularizer {line}", parameter=parameter, variable="b : scalar")
    assert {unparse(c.expression): c.sign for c in checked(text).sign_conditions} == conditions


def test_a_sum_of_parameters_rests_on_all_of_them() -> None:
    found = checked(regression("(X @ w - y)^2", "regularizer (p + q) * norm1(w)", parameter="p = 1\nq = 2"))
    assert (set(found.parameter_signs), found.sign_conditions) == ({"p", "q"}, ())


def test_what_a_verdict_is_said_to_rest_on_is_enough_for_it() -> None:
    """`max(p, q)` is >= 0 by either: giving up both would leave nothing."""
    found = checked(regression("(X @ w - y)^2", "regularizer max(p, q) * norm1(w)", parameter="p = 1\nq = 2"))
    assert len(found.parameter_signs) == 1


def test_a_constant_that_is_negative_under_the_defaults_makes_a_regularizer_concave() -> None:
    with pytest.raises(ModelError, match="SPL302"):
        checked(regression("(X @ w - y)^2", "regularizer (1 - rho) * norm1(w)", parameter="rho = 1.5"))


def test_an_override_that_breaks_a_noted_sign_is_found_when_data_are_bound() -> None:
    from spdsl.compiler import compile_text

    text = regression("(X @ w - y)^2", "regularizer rho * norm1(w) + (1 - rho) * sum_squares(w)", parameter="rho = 0.5")
    (requirement,) = [item for item in compile_text(text).requirements if item.expression is not None]
    assert (requirement.name, requirement.sign) == ("1 - rho", "nonnegative")
    assert evaluate(requirement.expression, {"rho": 1.5}) == -0.5


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("regularizer norm1(w) - norm2(w)", "norm2(w)"),
        ("regularizer norm1(w) + 2 * sqrt(norm1(w)) + b", "sqrt(norm1(w))"),
        ("regularizer norm1(w) + min(b, 2 * b)", "min(b, 2 * b)"),
        ("regularizer exp(b * b - abs(b))", "abs(b)"),
        ("regularizer abs(abs(b) - 1)", "abs(abs(b) - 1)"),
        ("regularizer sum(b * w)", "b * w"),
        ("regularizer 1 / b", "1 / b"),
        ("regularizer b^3", "b^3"),
    ],
)
def test_the_smallest_expression_that_is_not_convex_is_marked(line: str, marked: str) -> None:
    with pytest.raises(ModelError) as caught:
        checked(regression("(X @ w - y)^2", line, variable="b : scalar"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code in ("SPL302", "SPL304")
    assert diagnostic.span is not None
    assert diagnostic.span.text == marked


@pytest.mark.parametrize(
    ("constraint", "right"),
    [
        ("norm2(w) <= 1", True),
        ("1 >= norm2(w)", True),
        ("-norm2(w) >= -1", True),
        ("-1 <= w <= 1", True),
        ("sum(w) == 1", True),
        ("sqrt(b) >= 1", True),
        ("norm2(w) <= b", True),
        ("norm2(w) >= 1", False),
        ("1 <= norm1(w)", False),
        ("norm2(w) == 1", False),
        ("b * b == 1", False),
        ("sqrt(b) <= 1", False),
    ],
)
def test_constraints_cut_out_convex_sets_as_in_cvxpy(constraint: str, right: bool) -> None:
    names = {"w": cp.Variable(3), "b": cp.Variable(), "norm1": cp.norm1, "norm2": cp.norm2, "sum": cp.sum}
    names["sqrt"] = cp.sqrt
    parts = constraint.split(" <= ") if constraint.count("<=") == 2 else [constraint]
    pairs = [f"{parts[0]} <= {parts[1]}", f"{parts[1]} <= {parts[2]}"] if len(parts) == 3 else parts
    theirs = all(eval(pair, {"__builtins__": {}}, names).is_dcp() for pair in pairs)
    try:
        checked(regression("(X @ w - y)^2", variable="b : scalar", subject=constraint))
        ours = True
    except ModelError:
        ours = False
    assert ours == theirs == right

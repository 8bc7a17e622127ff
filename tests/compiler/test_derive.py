"""Selection functions: every derived piece against its formula, derivatives by finite differences, kinks, convexity."""

from __future__ import annotations

import numpy as np
import pytest
from formulas import formula
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spdsl.compiler.failures import NoClosedFormError, TooManyPiecesError
from spdsl.compiler.functions import derived_function, scalar_function
from spdsl.compiler.quantities import Quantity
from spdsl.problem.expressions import Call, Name, Number, evaluate, names
from spdsl.problem.requirements import disorder

KNOWN = {
    "delta": Quantity("delta", "positive", 0.8),
    "tau": Quantity("tau", "positive", 0.3),
    "n": Quantity("n", "count", 20.0),
    "y": Quantity("y", "labels", 1.0, varies=True),
    "u": Quantity("u", "real", 0.7, varies=True),
    "c": Quantity("c", "nonnegative", 0.7, varies=True),
}


def derive(body):
    if isinstance(body, str):
        body = formula(body)
    quantities = [item for name, item in KNOWN.items() if name in names(body)]
    derived, kept = derived_function(body, "z", quantities)
    return derived, scalar_function(body, "z", kept, [Name(item.name) for item in quantities], "convex")


FORMULAS = {
    # formula: (number of pieces, kinked borders, convexity)
    "z**2/(2*n)": (1, "", "proved"),
    "hinge(z)": (2, "k", "proved"),
    "squared_hinge(z)": (2, "s", "proved"),
    "logistic(z)": (1, "", "proved"),
    "log(1 + exp(-z))": (1, "", "proved"),
    "log(1 + exp(z))/log(2)": (1, "", "proved"),
    "log(exp(-z) + exp(z))": (1, "", "proved"),
    "log(exp(z - u) + 3)": (1, "", "proved"),
    "exp(-z)": (1, "", "proved"),
    "abs(z)": (2, "k", "proved"),
    "huber(z, delta)": (3, "ss", "proved"),
    "quantile(z, tau)": (2, "k", None),
    "epsilon_insensitive(z, delta)": (3, "kk", "proved"),
    "max(0, 1 - z, 2 - 3*z)": (3, "kk", "proved"),
    "abs(abs(z) - delta)": (4, "kkk", "refuted"),
    "max(z**2, abs(z), 0.1)": (5, "kkkk", "proved"),
    "max(exp(z), 2 + z)": (3, "kk", "proved"),
    "min(exp(z), 2)": (2, "k", "refuted"),
    "pos(abs(z - u) - delta)**2": (3, "ss", "proved"),
    "piecewise(z**2/2, abs(z) <= 1, abs(z) - 1/2)": (3, "ss", "proved"),
    "piecewise(1 - z, z < 0, (1 - z)**2, z <= 1, 0)": (3, "ks", "refuted"),
    "piecewise(0, z < 1, 1)": (2, "s", "refuted"),
    "hinge(y*z) + z**2": (2, "k", "proved"),
    "c*(z - u)**2": (1, "", "proved"),
    "max(0, abs(z) - delta)**3/3": (3, "ss", "proved"),
    "sqrt(1 + z**2)": (1, "", "proved"),
    "z**4 - z**2": (1, "", "refuted"),
    "z**4 + z**2/100": (1, "", "proved"),
    "(z - 1)**4": (1, "", "proved"),
    "(1/2)*abs(max(2*z, -z) + max(z, 3*z))": (2, "k", "proved"),
}
DERIVED = {text: derive(text) for text in FORMULAS}


@pytest.mark.parametrize("text", DERIVED)
def test_the_number_of_pieces_and_the_kinks_are_those_of_the_function(text):
    pieces, kinks, convexity = FORMULAS[text]
    derived, function = DERIVED[text]
    assert len(derived.pieces) == pieces
    assert "".join("s" if kink.smooth else "k" for kink in derived.kinks) == kinks
    assert function.kernel.kinked == tuple(letter == "k" for letter in kinks)
    if convexity is not None:
        assert derived.convexity == convexity, derived.reason


points = st.floats(-30, 30, allow_subnormal=False)
parameters = st.fixed_dictionaries(
    {
        "delta": st.floats(0.05, 5),
        "tau": st.floats(0.02, 0.98),
        "n": st.integers(1, 500).map(float),
        "y": st.sampled_from([-1.0, 1.0]),
        "u": st.floats(-3, 3),
        "c": st.floats(0, 4),
    }
)


@pytest.mark.parametrize("text", DERIVED)
@settings(max_examples=20)
@given(points, parameters)
def test_values_and_derivatives_agree_with_the_formula(text, z, drawn):
    function = DERIVED[text][1]
    theta = [drawn[name] for name in function.parameters]
    kernel = function.kernel
    at = np.array([z])
    piece = kernel.piece(at, *theta)
    expected = float(evaluate(function.body, {**drawn, "z": np.float64(z)}))
    assert float(kernel.value(piece, at, *theta)[0]) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    h = 1e-6 * max(1.0, abs(z))
    assume(all(abs(np.float64(border) - z) > 10 * h for border in kernel.breaks(*theta)))

    def value(x):
        return float(evaluate(function.body, {**drawn, "z": np.float64(x)}))

    slope = (value(z + h) - value(z - h)) / (2 * h)
    assert float(kernel.slope(piece, at, *theta)[0]) == pytest.approx(slope, rel=1e-4, abs=1e-6)
    curvature = (kernel.slope(piece, at + h, *theta)[0] - kernel.slope(piece, at - h, *theta)[0]) / (2 * h)
    assert float(kernel.curvature(piece, at, *theta)[0]) == pytest.approx(curvature, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("text", [text for text in DERIVED if FORMULAS[text][2] == "refuted"])
def test_a_refutation_names_a_point_where_the_midpoint_lies_above_the_chord(text):
    derived, function = DERIVED[text]
    witness = dict(derived.witness)
    z = witness.pop("z")

    def value(x):
        return float(evaluate(function.body, {**witness, "z": np.float64(x)}))

    gaps = [(value(z - h) + value(z + h)) / 2 - value(z) for h in (1e-3, 1e-2, 0.1, 0.5)]
    jump = abs(value(z + 1e-9) - value(z - 1e-9)) > 1e-3
    assert min(gaps) < 0 or jump


@pytest.mark.parametrize(
    "text", ["logistic(z)", "log(1 + exp(-z))", "log(exp(-z) + exp(z))", "exp(-z)", "log(exp(z - u) + 3)"]
)
@pytest.mark.parametrize("z", [-800.0, 800.0, -1e6, 1e6])
def test_kernels_are_finite_far_out(text, z):
    function = DERIVED[text][1]
    theta = [0.5] * len(function.parameters)
    at = np.array([z])
    for part in (function.kernel.value, function.kernel.slope, function.kernel.curvature):
        assert np.isfinite(part(0, at, *theta)).all()
    twin = function.kernel.compiled()
    packed = np.array(theta)
    assert all(np.isfinite(part(z, packed)) for part in (twin.value, twin.slope, twin.curvature))


def test_logistic_keeps_its_relative_precision_in_the_tail():
    function = DERIVED["logistic(z)"][1]
    at = np.array([40.0, 300.0])
    np.testing.assert_allclose(function.kernel.value(0, at), np.exp(-at), rtol=1e-14)
    np.testing.assert_allclose(function.kernel.slope(0, at), -np.exp(-at), rtol=1e-14)


TWINS = [
    "z**2/(2*n)",
    "hinge(z)",
    "logistic(z)",
    "log(exp(z - u) + 3)",
    "huber(z, delta)",
    "quantile(z, tau)",
    "max(z**2, abs(z), 0.1)",
    "max(exp(z), 2 + z)",
    "hinge(y*z) + z**2",
    "sqrt(1 + z**2)",
]


@pytest.mark.parametrize("text", TWINS)
def test_the_compiled_twin_agrees_to_1e_12(text):
    function = DERIVED[text][1]
    kernel, twin = function.kernel, function.kernel.compiled()
    values = {"delta": 0.6, "tau": 0.35, "n": 9.0, "y": -1.0, "u": 0.4, "c": 1.5}
    theta = [values[name] for name in function.parameters]
    packed = np.array(theta, float)
    z = np.unique(np.concatenate([np.linspace(-6, 6, 49), [np.float64(b) for b in kernel.breaks(*theta)]]))
    piece = kernel.piece(z, *theta)
    for what in ("value", "slope", "curvature"):
        found = np.array([getattr(twin, what)(x, packed) for x in z])
        np.testing.assert_allclose(found, getattr(kernel, what)(piece, z, *theta), rtol=1e-12, atol=1e-12)


def test_parameters_may_differ_from_sample_to_sample():
    function = DERIVED["pos(abs(z - u) - delta)**2"][1]
    rng = np.random.default_rng(0)
    z, u = rng.normal(size=50) * 3, rng.normal(size=50)
    values = {"u": u, "delta": 0.4}
    theta = [values[name] for name in function.parameters]
    piece = function.kernel.piece(z, *theta)
    np.testing.assert_allclose(
        function.kernel.value(piece, z, *theta), np.maximum(np.abs(z - u) - 0.4, 0) ** 2, atol=1e-12
    )
    assert set(piece) == {0, 1, 2}


def test_at_a_border_the_label_is_that_of_the_right_hand_piece():
    kernel = DERIVED["hinge(z)"][1].kernel
    assert kernel.piece(np.array([1.0, np.nextafter(1.0, 0)])).tolist() == [1, 0]


# --- random nests of kinks -------------------------------------------------------------------------------------------

numbers = st.integers(-4, 4).map(lambda value: Number(value / 2))


def nests(children):
    pair = st.tuples(children, children)
    return st.one_of(
        children.map(lambda u: Call("abs", (u,))),
        pair.map(lambda uv: Call("max", uv)),
        pair.map(lambda uv: Call("min", uv)),
        pair.map(lambda uv: Call("add", uv)),
        st.tuples(numbers, children).map(lambda cu: Call("multiply", cu)),
        children.map(lambda u: Call("hinge", (u,))),
        st.tuples(
            children, children, children, st.sampled_from(["less", "less_equal", "greater", "greater_equal"])
        ).map(lambda abcd: Call("piecewise", (abcd[0], Call(abcd[3], (abcd[2], Number(0.5))), abcd[1]))),
    )


@settings(max_examples=60)
@given(st.recursive(st.one_of(st.just(Name("z")), numbers), nests, max_leaves=8))
def test_any_nest_of_kinks_is_enumerated_without_losing_a_branch(body):
    assume("z" in names(body))
    derived, function = derive(body)
    z = np.concatenate([np.linspace(-9, 9, 721) + 1.2345e-4, [-1e3, 1e3]])
    kernel = function.kernel
    found = kernel.value(kernel.piece(z), z)
    np.testing.assert_allclose(found, np.broadcast_to(evaluate(body, {"z": z}), z.shape), atol=1e-9)
    slopes = kernel.slope(kernel.piece(z), z)
    if derived.convexity == "proved":
        assert (np.diff(slopes[:-2]) >= -1e-9).all()
    assert derived.convexity != "undecided"
    if derived.convexity == "refuted":
        assert derived.witness


def test_kinks_whose_order_depends_on_data_are_derived_in_their_typical_order():
    _, function = derive("abs(z - u) + abs(z + 2*u)")
    z = np.linspace(-5, 5, 101)
    for u in (0.1, 2.0):
        piece = function.kernel.piece(z, u)
        np.testing.assert_allclose(function.kernel.value(piece, z, u), abs(z - u) + abs(z + 2 * u), atol=1e-12)
    assert disorder(function, (np.array([0.3, -0.2]),)) == 1
    assert disorder(function, (np.array([0.3, 0.2]),)) is None


def test_a_kink_without_a_formula_is_an_error_with_its_equation():
    with pytest.raises(NoClosedFormError, match="delta"):
        derive("max(exp(z) + z**3, delta*z + 2)")


def test_more_pieces_than_labels_are_an_error():
    many = Call("add", tuple(Call("abs", (Call("add", (Name("z"), Number(float(k)))),)) for k in range(200)))
    with pytest.raises(TooManyPiecesError):
        derive(many)


def test_a_formula_too_large_to_derive_is_an_error():
    body = Call("add", tuple(formula(f"logistic(z + {k})") for k in range(5000)))
    with pytest.raises(TooManyPiecesError, match="operations"):
        derive(body)


def test_a_sum_of_five_thousand_terms_is_derived():
    body = Call(
        "add", tuple(Call("power", (Call("add", (Name("z"), Number(k / 7))), Number(2.0))) for k in range(5000))
    )
    derived, function = derive(body)
    z = np.array([0.3])
    assert derived.convexity == "proved"
    expected = sum((0.3 + k / 7) ** 2 for k in range(5000))
    assert float(function.kernel.value(0, z)[0]) == pytest.approx(expected)

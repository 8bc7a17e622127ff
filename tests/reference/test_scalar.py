"""The certificate's own arithmetic: values and one-sided derivatives of every atom against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.problem import Call, Name, Number, ScalarFunction
from spdsl.reference.scalar import RULES, Touch, UnknownAtomError, corner_gradients, jet, value

z, tau = Name("z"), Number(0.3)


def call(function: str, *arguments):
    return Call(function, tuple(arguments))


def function_of(body, arguments=("z",), parameters=()) -> ScalarFunction:
    return ScalarFunction(body, arguments, parameters, (), (), ())


HUBER_BY_HAND = call(
    "piecewise",
    call("divide", call("power", z, Number(2.0)), Number(2.0)),
    call("less_equal", call("abs", z), Number(1.0)),
    call("add", call("abs", z), Number(-0.5)),
)
BODIES = {
    "add": (call("add", z, Number(2.0), z), []),
    "multiply": (call("multiply", Number(3.0), z, z), []),
    "divide": (call("divide", z, call("add", Number(2.0), call("square", z))), []),
    "negative": (call("negative", z), []),
    "power": (call("power", z, Number(3.0)), []),
    "exponential base": (call("power", Number(2.0), z), []),
    "max": (call("max", z, call("multiply", Number(-2.0), z), Number(0.5)), [-0.25, 0.5]),
    "min": (call("negative", call("min", z, Number(1.0))), [1.0]),
    "abs": (call("abs", call("add", z, Number(-0.5))), [0.5]),
    "pos": (call("pos", z), [0.0]),
    "square": (call("square", call("pos", z)), []),
    "sqrt": (call("sqrt", call("add", Number(1.0), call("square", z))), []),
    "exp": (call("exp", z), []),
    "log": (call("log", call("add", Number(3.0), call("square", z))), []),
    "softplus": (call("softplus", z), []),
    "logistic": (call("logistic", z), []),
    "hinge": (call("hinge", z), [1.0]),
    "squared_hinge": (call("squared_hinge", z), []),
    "huber": (call("huber", z, Number(0.7)), []),
    "huber with its default": (call("huber", z), []),
    "quantile": (call("quantile", z, tau), [0.0]),
    "epsilon_insensitive": (call("epsilon_insensitive", z, Number(0.4)), [-0.4, 0.4]),
    "piecewise": (HUBER_BY_HAND, []),
    "piecewise with a kink": (
        call("piecewise", call("negative", z), call("less", z, Number(0.0)), call("multiply", Number(3.0), z)),
        [0.0],
    ),
    "piecewise between": (
        call(
            "piecewise",
            Number(0.0),
            call("and", call("greater_equal", z, Number(-1.0)), call("less_equal", z, Number(1.0))),
            call("add", call("abs", z), Number(-1.0)),
        ),
        [-1.0, 1.0],
    ),
}


def test_every_atom_is_tested():
    assert set(RULES) <= set(BODIES)


@pytest.mark.parametrize("name", BODIES)
def test_one_sided_derivatives_agree_with_finite_differences(name):
    body, kinks = BODIES[name]
    function = function_of(body)
    points = np.array([-2.1, -1.3, -0.6, 0.05, 0.45, 0.9, 1.7, 3.0, *kinks])
    left, right = corner_gradients(function, [points], [], Touch(1e-12))
    h = 1e-6
    at = value(function, [points], [])
    forward = (value(function, [points + h], []) - at) / h
    backward = (at - value(function, [points - h], [])) / h
    np.testing.assert_allclose(right[0], forward, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(left[0], backward, rtol=2e-5, atol=2e-5)
    kinked = np.isin(points, kinks)
    assert (np.abs(right[0] - left[0])[kinked] > 0.1).all()
    np.testing.assert_array_equal(right[0][~kinked], left[0][~kinked])


@settings(max_examples=60)
@given(st.floats(-5, 5), st.floats(0.05, 0.95), st.floats(0.1, 3))
def test_values_agree_with_the_textbook(r, quantile, delta):
    function = function_of(call("quantile", z, Name("t")), parameters=("t",))
    assert value(function, [np.array([r])], [quantile])[0] == pytest.approx(r * (quantile - (r < 0)), abs=1e-14)
    function = function_of(call("huber", z, Name("t")), parameters=("t",))
    expected = r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)
    assert value(function, [np.array([r])], [delta])[0] == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_large_margins_neither_overflow_nor_vanish():
    function = function_of(call("logistic", z))
    np.testing.assert_allclose(value(function, [np.array([-800.0, 800.0])], []), [800.0, np.exp(-800.0)])
    slopes = jet(function, [np.array([-800.0, 30.0])], [], [1.0], Touch(0.0)).along
    np.testing.assert_allclose(slopes, [-1.0, -np.exp(-30.0)], rtol=1e-3)


def test_a_corner_of_several_arguments_gives_the_gradients_of_the_pieces_that_meet():
    body = call("max", Name("a"), Name("b"), Number(0.0))
    function = function_of(body, ("a", "b"))
    corners = corner_gradients(function, [np.array([0.0, 1.0, -1.0]), np.array([0.0, 1.0, 0.0])], [], Touch(1e-12))
    met = [{(g[0][i], g[1][i]) for g in corners} for i in range(3)]
    assert met == [{(1, 0), (0, 1), (0, 0)}, {(1, 0), (0, 1)}, {(0, 1), (0, 0)}]


def test_parameters_may_differ_between_samples():
    function = function_of(call("max", Name("c"), z), parameters=("c",))
    left, right = corner_gradients(function, [np.array([1.0, 1.0, 1.0])], [np.array([0.0, 1.0, 2.0])], Touch(1e-12))
    assert left[0].tolist() == [1, 0, 0]
    assert right[0].tolist() == [1, 1, 0]


def test_an_atom_that_is_unknown_is_said_to_be():
    with pytest.raises(UnknownAtomError, match="`sine`"):
        value(function_of(call("sine", z)), [np.zeros(1)], [])


def test_thousands_of_terms_are_no_problem():
    body = call("add", *[call("abs", call("add", z, Number(float(k)))) for k in range(5000)])
    for _ in range(2000):
        body = call("negative", call("negative", body))
    assert value(function_of(body), [np.array([0.5])], [])[0] == pytest.approx(sum(abs(0.5 + k) for k in range(5000)))

"""Shapes and kinds of expressions, and what doesn't fit."""

from __future__ import annotations

import numpy as np
import pytest

from spdsl.language.printer import unparse
from tests.language.typing import Bench

BENCH = Bench()


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("3", "scalar"),
        ("n", "scalar"),
        ("alpha * s / (2*n)", "scalar"),
        ("y", "vector(n)"),
        ("l", "labels(n)"),
        ("l * y", "vector(n)"),
        ("-l", "vector(n)"),
        ("X @ w", "vector(n)"),
        ("X @ w - y", "vector(n)"),
        ("(X @ w - y)^2 / (2*n)", "vector(n)"),
        ("y * X @ w", None),
        ("y @ X", "vector(d)"),
        ("X.T @ y", "vector(d)"),
        ("y.T @ y", "scalar"),
        ("X @ X.T", "matrix(n, n)"),
        ("X.T @ X", "matrix(d, d)"),
        ("w @ u", "scalar"),
        ("w * u", "vector(d)"),
        ("M", "symmetric(d)"),
        ("2 * M - S", "symmetric(d)"),
        ("M - X.T @ X", "matrix(d, d)"),
        ("M.T", "symmetric(d)"),
        ("M @ w", "vector(d)"),
        ("M + 1", "symmetric(d)"),
        ("trace(M)", "scalar"),
        ("trace_norm(M - S)", "scalar"),
        ("norm(M)", "scalar"),
        ("norm(f)^2 / 2", "scalar"),
        ("f(X) + b", "vector(n)"),
        ("f(Z)", "vector(m)"),
        ("mahalanobis(M, X)", "vector(n)"),
        ("mahalanobis(M, w)", "scalar"),
        ("max(0, 1 - y * (X @ w))", "vector(n)"),
        ("max(w)", "scalar"),
        ("max(a, b, 1)", "scalar"),
        ("huber(X @ w - y)", "vector(n)"),
        ("huber(X @ w - y, alpha)", "vector(n)"),
        ("sum(abs(w))", "scalar"),
        ("norm1(X)", "scalar"),
        ("group_norm(w, g)", "scalar"),
        ("group_norm(w, 5)", "scalar"),
        ("piecewise(0 if y <= 0, X @ w otherwise)", "vector(n)"),
        ("piecewise(a if a <= b, 1 otherwise)", "scalar"),
        ("2^alpha", "scalar"),
        ("X^2", "matrix(n, d)"),
    ],
)
def test_types_follow_numpy(text: str, type_: str | None) -> None:
    if type_ is None:
        assert BENCH.codes(text) == ["SPL205"]
    else:
        assert str(BENCH.type_of(text)) == type_


_SIZES = {"n": 7, "d": 3, "m": 4}
_RNG = np.random.default_rng(0)
_VALUES = {
    "X": _RNG.normal(size=(7, 3)),
    "Z": _RNG.normal(size=(4, 3)),
    "y": _RNG.normal(size=7),
    "w": _RNG.normal(size=3),
    "u": _RNG.normal(size=3),
    "W": _RNG.normal(size=(3, 3)),
    "a": np.float64(0.3),
}


@pytest.mark.parametrize("left", _VALUES)
@pytest.mark.parametrize("right", _VALUES)
@pytest.mark.parametrize("operator", ["+", "*", "@"])
def test_accepted_operations_have_the_shape_that_numpy_gives(left: str, operator: str, right: str) -> None:
    """Ours is the stricter: what it accepts, NumPy computes, with the very shape."""
    bench = Bench()
    text = f"{left} {operator} {right}.T"
    if bench.codes(text):
        return
    value = np.asarray(eval(text, {"__builtins__": {}}, _VALUES))
    assert value.shape == tuple(_SIZES[size] for size in bench.type_of(text).shape)  # type: ignore[index]


def test_numpy_agrees_that_refused_matrix_products_are_wrong() -> None:
    for left in _VALUES:
        for right in _VALUES:
            if "SPL206" in BENCH.codes(f"{left} @ {right}"):
                with pytest.raises((ValueError, TypeError)):
                    eval(f"{left} @ {right}", {"__builtins__": {}}, _VALUES)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("X + y", "SPL205"),
        ("X + w", "SPL205"),
        ("y + w", "SPL205"),
        ("max(y, w)", "SPL205"),
        ("piecewise(y if a <= 0, w otherwise)", "SPL205"),
        ("group_norm(w, y)", "SPL205"),
        ("mahalanobis(M, Z.T)", "SPL205"),
        ("X @ y", "SPL206"),
        ("X @ 2", "SPL206"),
        ("a @ b", "SPL206"),
        ("X @ Z", "SPL206"),
        ("norm1(a)", "SPL213"),
        ("norm2(X)", "SPL213"),
        ("trace(X)", "SPL213"),
        ("trace_norm(w)", "SPL213"),
        ("sum(3)", "SPL213"),
        ("max(a)", "SPL213"),
        ("a^w", "SPL213"),
        ("huber(w, w)", "SPL213"),
        ("huber(w, a)", "SPL213"),
        ("group_norm(w, u)", "SPL213"),
        ("mahalanobis(X, X)", "SPL213"),
        ("support(X)", "SPL213"),
        ("G + 1", "SPL215"),
        ("norm(G)", "SPL215"),
        ("f + 1", "SPL228"),
        ("norm2(f)", "SPL228"),
        ("f(y)", "SPL228"),
        ("f(2 * X)", "SPL228"),
        ("f(X, Z)", "SPL211"),
        ("f(X.T)", "SPL228"),
        ("abs()", "SPL211"),
        ("abs(w, u)", "SPL211"),
        ("max()", "SPL211"),
        ("huber(w, delta = -1)", "SPL230"),
        ("w / 0", "SPL230"),
        ("w / (1 - 1)", "SPL230"),
    ],
)
def test_what_does_not_fit_has_its_code(text: str, code: str) -> None:
    assert BENCH.codes(text) == [code]


def test_one_mistake_makes_one_complaint_however_often_it_is_contained() -> None:
    assert BENCH.codes("norm1(abs((X @ w - nothing)^2 + 1) * 2)") == ["SPL200"]


def test_independent_mistakes_are_all_reported() -> None:
    assert BENCH.codes("norm1(nothing) + hubber(w) + (X @ y) + norm1(a)") == ["SPL200", "SPL210", "SPL206", "SPL213"]


def test_atoms_come_out_with_positional_arguments_and_defaults() -> None:
    assert unparse(BENCH.typed("huber(X @ w)")[0]) == "huber(X @ w, 1)"
    assert unparse(BENCH.typed("huber(delta = 2, x = X @ w)")[0]) == "huber(X @ w, 2)"
    assert unparse(BENCH.typed("epsilon_insensitive(y)")[0]) == "epsilon_insensitive(y, 0.1)"


def test_a_define_is_unfolded_with_its_arguments_and_names() -> None:
    bench = Bench("define\n  r = X @ w - y\n  half(x) = x^2 / 2\n  both(x, k) = half(x) + k * half(2 * x)\n")
    made, type_ = bench.typed("both(r, k = alpha)")
    assert unparse(made) == "(X @ w - y)^2 / 2 + alpha * ((2 * (X @ w - y))^2 / 2)".replace(" / 2", "/2")
    assert str(type_) == "vector(n)"
    assert type_.variables == {"w"}
    assert type_.parameters == {"alpha"}


def test_the_arguments_of_a_define_hide_names_of_the_model() -> None:
    bench = Bench("define shadow(w) = w + 1\n")
    assert unparse(bench.typed("shadow(y)")[0]) == "y + 1"
    assert bench.type_of("shadow(y)").variables == frozenset()


def test_an_argument_is_not_captured_by_the_inner_define() -> None:
    bench = Bench("define\n  inner(x) = x + a\n  outer(a) = inner(a)\n")
    assert unparse(bench.typed("outer(b)")[0]) == "b + a"

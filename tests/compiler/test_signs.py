"""Proofs of nonnegativity: none for a function that is negative somewhere; enclosures hold every sampled value."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from formulas import formula
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.compiler.algebra import to_sympy
from spdsl.compiler.atoms import expand_atoms
from spdsl.compiler.branches import Border, Segment
from spdsl.compiler.intervals import enclosure
from spdsl.compiler.quantities import Quantity
from spdsl.compiler.scope import Scope
from spdsl.compiler.signs import proof_of_nonnegativity

SCOPE = Scope("z", (Quantity("delta", "positive", 0.5), Quantity("u", "real", 0.7, varies=True)))


def segment(low: float | None, high: float | None) -> Segment:
    ends = [None if end is None else Border(sympy.nsimplify(end), float(end)) for end in (low, high)]
    return Segment(*ends, None)


def prove(text: str, low=None, high=None) -> str | None:
    return proof_of_nonnegativity(to_sympy(formula(text), SCOPE.symbols), segment(low, high), SCOPE)


@pytest.mark.parametrize(
    ("text", "low", "high", "how"),
    [
        ("2*delta", None, None, "signs"),
        ("z**2 + delta*z**4", None, None, "signs"),
        ("2*(z - 1)", 1, None, "signs"),
        ("delta*(3 - z)", None, 3, "signs"),
        ("(z - 1)*(4 - z)", 1, 4, "signs"),
        ("12*z**2 - 12*z + 4", None, None, "roots"),
        ("z**3 - z**2 + z/4", 0, None, "roots"),
        ("(1 + z**2)**(-1/2) - z**2*(1 + z**2)**(-3/2)", None, None, "signs"),
        ("exp(z) + exp(-z) - z**2", -1, 1, "interval"),
        ("2 - z*exp(-z)", 0, 30, "interval"),
    ],
)
def test_nonnegative_functions_are_proved(text, low, high, how):
    assert how in (prove(text, low, high) or "")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("z", None, None),
        ("12*z**2 - 12*z + 2", None, None),
        ("z - 1", 0, None),
        ("(z - 1)*(4 - z)", 0, 4),
        ("exp(z) - 2", -1, 1),
        ("u", None, None),
        ("u*z**2", None, None),
        ("z**3 - z**2 + z/5", 0, None),
        ("delta - 1/1000000*z**2", None, None),
    ],
)
def test_functions_that_are_negative_somewhere_are_never_proved(text, low, high):
    assert prove(text, low, high) is None


FORMULAS = [
    "z**3 - 2*z + 1/(1 + z**2)",
    "exp(-z)*z + logistic(z)",
    "sqrt(2 + z**2) - abs(z)",
    "(z - 1)**2/(1 + exp(z))",
    "log(2 + z**2)*max(z, 0.3)",
]


@pytest.mark.parametrize("text", FORMULAS)
@settings(max_examples=60)
@given(st.floats(-20, 20), st.floats(0, 5), st.floats(0, 1))
def test_an_enclosure_holds_every_value(text, low, width, share):
    expression = to_sympy(expand_atoms(formula(text)), SCOPE.symbols)
    bounds = enclosure(expression, {SCOPE.symbol: (low, low + width)})
    value = float(SCOPE.function(expression)(np.float64(low + share * width), SCOPE.typical))
    assert bounds[0] <= value <= bounds[1]

"""Formulas for people: Unicode text, LaTeX of expressions, and MathML that is well formed whatever sympy writes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.problem import Call, Name, Number
from spdsl.view.mathematics import expression_latex, mathml, name_latex, unicode_math


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("lambda*(v^2/2 - v)", "λ·(v²/2 − v)"),
        ("alpha^(-1)*sqrt(l)", "α⁻¹·√(l)"),
        ("l <= inf", "l ≤ ∞"),
        ("(X @ w - y)^2/(2*n)", "(X w − y)²/(2·n)"),
        ("x^2.5", "x^2.5"),
        ("alphabet*mu", "alphabet·μ"),
        ("M >> 0", "M ⪰ 0"),
    ],
)
def test_the_languages_spelling_becomes_unicode(text, shown):
    assert unicode_math(text) == shown


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("lambda", r"\lambda"),
        ("X", "X"),
        ("step", r"\mathrm{step}"),
        ("w_0", r"w_{\mathrm{0}}"),
        ("a_b_c", r"a_{\mathrm{b\_c}}"),
    ],
)
def test_names_as_latex(name, latex):
    assert name_latex(name) == latex


def test_an_expression_as_latex_keeps_its_brackets():
    difference = Call("add", (Name("a"), Call("negative", (Name("b"),))))
    assert expression_latex(difference) == "a - b"
    assert expression_latex(Call("multiply", (Number(2.0), difference))) == r"2 \, \left(a - b\right)"
    assert expression_latex(Call("negative", (difference,))) == r"- \left(a - b\right)"
    assert expression_latex(Call("power", (difference, Number(2.0)))) == r"\left(a - b\right)^{2}"
    assert expression_latex(Call("divide", (difference, Name("n")))) == r"\frac{a - b}{n}"
    assert expression_latex(Number(5e-7)) == r"5 \cdot 10^{-7}"


def parsed(latex):
    return ElementTree.fromstring(mathml(latex))


def text_of(element):
    return "".join(element.itertext())


def test_fractions_roots_scripts_and_fences_become_mathml():
    found = parsed(r"\lambda \left(\frac{v^{2}}{2} - v\right) + \sqrt{l_{i}}")
    tags = [element.tag.split("}")[1] for element in found.iter()]
    assert {"mfrac", "msup", "msqrt", "msub"} <= set(tags)
    assert text_of(found) == "λ(v22−v)+li"


def test_cases_become_a_table_with_a_row_each():
    found = parsed(r"\begin{cases} 1 & \text{for}\: l < \lambda \\ 0 & \text{otherwise} \end{cases}")
    rows = [element for element in found.iter() if element.tag.endswith("mtr")]
    assert [text_of(row) for row in rows] == ["1forl<λ", "0otherwise"]


def test_an_unknown_command_is_shown_and_not_dropped():
    assert r"\wibble" in text_of(parsed(r"\wibble + 1"))


SYMBOLS = sympy.symbols("v l lambda gamma_0 x1", positive=True)
LEAVES = st.sampled_from([*SYMBOLS, sympy.Integer(2), sympy.Rational(1, 3), sympy.pi, sympy.Float(0.25), sympy.oo])


def grown(children):
    pairs = st.tuples(children, children)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: p[0] ** p[1]),
        pairs.map(lambda p: sympy.Max(*p) if all(item.is_real for item in p) else p[0]),
        children.map(sympy.log),
        children.map(sympy.exp),
        children.map(sympy.sqrt),
        children.map(sympy.Abs),
        pairs.map(lambda p: sympy.Piecewise((p[0], SYMBOLS[0] < 1), (p[1], True))),
    )


@settings(max_examples=120)
@given(st.recursive(LEAVES, grown, max_leaves=7))
def test_whatever_sympy_writes_becomes_well_formed_mathml_without_unknown_commands(expression):
    latex = sympy.latex(expression)
    assert "\\" not in text_of(parsed(latex)), latex

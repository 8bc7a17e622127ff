"""`describe` answers for every kind of model: implicit weights, several affine maps, labels inside, metrics, no loss."""

from __future__ import annotations

import pytest

from spdsl.compiler import compile_text, describe

HEAD = """
data
  X : matrix(n, d)
  Z : matrix(n, d)
  y : labels(n)
  u : vector(n)
parameter
  lambda_1 = 0.1
  E = 2
variable
  w : vector(d)
  M : symmetric(d)
"""
AGE = "age lambda in [0.1, 2]\ndefine own(v, lambda) = lambda*(v^2/4 + v^7/14 - v)\n"

MODELS = {
    "implicit weights": AGE + "minimize\n  loss E * logistic(y * (X @ w))\n  self_paced own(lambda)\n",
    "several affine maps": "minimize\n  loss max(X @ w, Z @ w)\n  regularizer norm1(w)\n",
    "several, self-paced": AGE + "minimize\n  loss max(X @ w, Z @ w, 0)\n  self_paced own(lambda)\n",
    "labels inside": "minimize\n  loss hinge(y * (X @ w)) + (X @ w - u)^2\n",
    "a metric": "minimize\n  loss hinge(y * (1 - mahalanobis(M, X - Z)))\n  regularizer trace_norm(M)\nsubject to\n  M >> 0\n",
    "a norm as loss": "minimize\n  loss norm(X @ w - u)\n  regularizer lambda_1 * norm1(w)\n",
    "hard": AGE + "minimize\n  loss huber(X @ w - u)\n  regularizer sum(huber(w, E))\n  self_paced hard(lambda)\n",
}


@pytest.mark.parametrize("name", MODELS)
def test_every_formula_has_text_and_latex(name):
    derivation = describe(compile_text(HEAD + MODELS[name]))
    formulas = [derivation.stationarity]
    for condition in (*derivation.samples, *derivation.coordinates):
        formulas += [condition.members, condition.holds]
        assert condition.words
    for row in derivation.curvatures:
        formulas.append(row.curvature)
    assert all(item.text and item.latex for item in formulas)
    assert all(item.latex.count("{") == item.latex.count("}") for item in formulas)
    has_path = "self_paced" in MODELS[name] and "several" not in name
    assert bool(derivation.system.text) is has_path


def test_weights_without_a_closed_form_stay_the_symbol_v():
    derivation = describe(compile_text(HEAD + MODELS["implicit weights"]))
    (row,) = [row for row in derivation.curvatures if row.weights == "E"]
    assert "v" in row.curvature.text
    assert "E^2" in row.curvature.text or "E*" in row.curvature.text

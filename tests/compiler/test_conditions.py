"""The KKT blocks: curvatures against finite differences of the derived kernels, and the closed forms of the papers."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from spdsl.compiler import compile_text, describe

MODEL = """
data
  X : matrix(n, d)
  y : vector(n)
  c : labels(n)
parameter
  alpha = 0.1
  C = 2
  gamma = 0.6
variable
  w : vector(d)
age lambda in [0.1, 2]
minimize
  loss {loss}
  regularizer alpha * norm1(w)
  self_paced {paced}
"""

LOSSES = {
    "square": "(X @ w - y)^2 / (2*n)",
    "hinge": "C * hinge(c * (X @ w))",
    "logistic": "logistic(c * (X @ w))",
    "huber": "huber(X @ w - y, 0.7)",
}
PACED = ["linear(lambda)", "mixture(lambda, gamma)", "log(lambda, 2)", "hard(lambda)"]
SIZES = {"n": 5.0, "C": 2.0, "gamma": 0.6, "alpha": 0.1}


def value(text: str, **values: float) -> float:
    """A printed formula as a number, read by sympy as any reader would."""
    spelled = text.replace("^", "**").replace("lambda", "lambda_").replace("logistic", "softminus")
    known = {"softminus": lambda m: sympy.log(1 + sympy.exp(-m))}
    known |= {name.replace("lambda", "lambda_"): sympy.Symbol(name) for name in [*values, *SIZES]}
    found = sympy.sympify(spelled, locals=known)
    return float(found.subs({sympy.Symbol(key): item for key, item in {**SIZES, **values}.items()}))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("paced", PACED)
def test_curvature_and_drift_are_the_derivatives_of_the_weighed_slope(loss, paced):
    problem = compile_text(MODEL.format(loss=LOSSES[loss], paced=paced))
    phi, weights = problem.loss.function.kernel, problem.self_paced.kernel
    theta = [SIZES[name] for name in problem.loss.function.parameters]
    own = [float(getattr(item, "value", 0.0) or SIZES[item.name]) for item in problem.self_paced.values]
    rows = {(row.piece, row.weights): row for row in describe(problem).curvatures}
    z = np.array([-2.3, -1.1, -0.4, 0.2, 0.55, 0.8, 1.7])
    age, h = 0.9, 1e-6
    piece = phi.piece(z, *theta)

    def weighed(at, lam, label):
        losses = phi.value(piece, at, *theta)
        return weights.weight(label, losses, lam, *own) * phi.slope(piece, at, *theta)

    losses = phi.value(piece, z, *theta)
    label = weights.piece(losses, age, *own)
    by_z = (weighed(z + h, age, label) - weighed(z - h, age, label)) / (2 * h)
    by_age = (weighed(z, age + h, label) - weighed(z, age - h, label)) / (2 * h)
    named = dict(zip(problem.self_paced.parameters, own))
    compared = 0
    for i in range(len(z)):
        row = rows.get((int(piece[i]) + 1, weights.names[label[i]]))
        if row is None:
            assert by_z[i] == pytest.approx(0.0, abs=1e-8)  # left out, or a flat piece
            continue
        at = {"z": float(z[i]), "l": float(losses[i]), "lambda": age, **named}
        assert value(row.curvature.text, **at) == pytest.approx(by_z[i], rel=1e-5, abs=1e-7)
        assert value(row.drift.text, **at) == pytest.approx(by_age[i], rel=1e-5, abs=1e-7)
        compared += 1
    assert compared


def test_the_self_paced_lasso_has_the_curvature_of_the_paper():
    problem = compile_text(MODEL.format(loss=LOSSES["square"], paced="linear(lambda)"))
    (row,) = describe(problem).curvatures
    n, l, lam = sympy.symbols("n l lambda")
    found = sympy.sympify(row.curvature.text.replace("^", "**").replace("lambda", "la"), locals={"la": lam})
    assert sympy.simplify(found - (1 - 3 * l / lam) / n) == 0


def test_the_kernel_svm_has_the_curvature_of_the_paper_under_mixture():
    problem = compile_text(MODEL.format(loss=LOSSES["hinge"], paced="mixture(lambda, gamma)"))
    row = next(item for item in describe(problem).curvatures if item.weights == "M")
    for l in (0.1, 0.7):
        assert value(row.curvature.text, l=l, z=0.0) == pytest.approx(-(2.0**2) * 0.6 / 2 * l**-1.5)


def test_kinks_of_loss_and_regularizer_become_sets_with_multipliers():
    derivation = describe(compile_text(MODEL.format(loss=LOSSES["hinge"], paced="hard(lambda)")))
    kink = next(item for item in derivation.samples if item.name == "kink 1")
    assert kink.holds.text == "t_i in v_i * [-C, 0]"
    (zero,) = derivation.coordinates
    assert zero.holds.text == "s_k in alpha * [-1, 1]"


def test_a_stored_description_is_the_same_as_a_fresh_one(monkeypatch, tmp_path):
    monkeypatch.setenv("SPDSL_CACHE", str(tmp_path))
    problem = compile_text(MODEL.format(loss=LOSSES["logistic"], paced="linear(lambda)"))
    assert describe(problem) == describe(problem)
    assert list(tmp_path.glob("conditions_*"))

"""SP-regularizers in models: names of all kinds, parameters from the model, errors and warnings at their place."""

from __future__ import annotations

import numpy as np
import pytest

from spdsl.compiler import compile_text
from spdsl.problem import BoundProblem

MODEL = """
data
  X : matrix(n, d)
  y : vector(n)
parameter
{parameters}
variable
  w : vector(d)
age {age} in [0.1, 2]
define {define}
minimize
  loss         (X @ w - y)^2
  self_paced   own({age})
"""


def weights(define: str, parameters: str, values: dict[str, float], losses, age: float, name: str = "lambda"):
    text = MODEL.format(define=define, parameters="".join(f"  {item}\n" for item in parameters.split(";")), age=name)
    problem = compile_text(text)
    bound = BoundProblem(problem, {"X": np.eye(2), "y": np.ones(2)}, values, {"n": 2, "d": 2})
    return bound.weights(np.asarray(losses, float), age), problem


LOSSES = [0.0, 0.2, 0.7, 3.0]


@pytest.mark.parametrize(
    ("define", "parameters", "values", "expected"),
    [
        ("own(v, lambda) = lambda*(v^2/2 - v)", "k = 1", {"k": 1.0}, lambda l, a: np.maximum(1 - l / a, 0)),
        ("own(l, v) = v*(l^2/2 - l)", "k = 1", {"k": 1.0}, lambda l, a: np.maximum(1 - l / a, 0)),
        ("own(x, z) = z*(x^2/2 - x)", "z_ = 1", {"z_": 1.0}, lambda l, a: np.maximum(1 - l / a, 0)),
        ("own(u, t) = l*t*(u^2/2 - u)", "l = 2", {"l": 2.0}, lambda l, a: np.maximum(1 - l / (2 * a), 0)),
        ("own(u, t) = v*t*(u^2/2 - u)", "v = 2", {"v": 2.0}, lambda l, a: np.maximum(1 - l / (2 * a), 0)),
        (
            "own(v, lambda) = theta*lambda*(v^2/2 - v)*piece/np",
            "theta = 2; piece = 3; np = 6",
            {"theta": 2.0, "piece": 3.0, "np": 6.0},
            lambda l, a: np.maximum(1 - l / a, 0),
        ),
    ],
)
def test_weights_do_not_depend_on_what_things_are_called(define, parameters, values, expected):
    found, _ = weights(define, parameters, values, LOSSES, 0.8)
    np.testing.assert_allclose(found, expected(np.array(LOSSES), 0.8), atol=1e-12)


def test_an_age_of_another_name_is_the_age():
    found, problem = weights("own(v, t) = t*(v^2/2 - v)", "k = 1", {"k": 1.0}, LOSSES, 0.8, name="mu")
    np.testing.assert_allclose(found, np.maximum(1 - np.array(LOSSES) / 0.8, 0))
    assert problem.age.name == "mu"


def test_parameters_of_the_model_reach_f_and_can_be_changed_without_compiling_again():
    define = "own(v, lambda) = kappa^2 / (v + kappa/lambda)"
    l = np.array(LOSSES) + 1e-9
    for kappa in (0.2, 0.9):
        found, problem = weights(define, "kappa = 0.2", {"kappa": kappa}, l, 0.8)
        inner = kappa * (1 / np.sqrt(l) - 1 / 0.8)
        np.testing.assert_allclose(found, np.clip(inner, 0, 1), atol=1e-12)
        assert problem.self_paced.parameters == ("kappa",)


def test_an_option_with_the_name_of_another_parameter_keeps_its_own_value():
    text = """
data
  X : matrix(n, d)
  y : vector(n)
parameter
  gamma = 5
variable
  w : vector(d)
age lambda in [0.1, 2]
minimize
  loss         gamma * (X @ w - y)^2
  self_paced   mixture(lambda, gamma = 0.3)
"""
    bound = BoundProblem(compile_text(text), {"X": np.eye(2), "y": np.ones(2)}, {"gamma": 5.0}, {"n": 2, "d": 2})
    l = np.array([0.05, 0.1])
    np.testing.assert_allclose(bound.weights(l, 0.8), np.clip(0.3 * (1 / np.sqrt(l) - 1 / 0.8), 0, 1))


def test_a_hinge_loss_is_seen_to_be_nonnegative_and_a_linear_one_not():
    template = """
data
  X : matrix(n, d)
  y : labels(n)
variable
  w : vector(d)
age lambda in [0.1, 2]
minimize
  loss         {loss}
  self_paced   linear(lambda)
"""
    assert compile_text(template.format(loss="hinge(y * (X @ w))")).self_paced.kernel.names == ("E", "D")
    assert compile_text(template.format(loss="-y * (X @ w)")).self_paced.kernel.names == ("E", "M", "D")

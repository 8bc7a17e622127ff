"""Every mix of losses, regularizers, SP-regularizers and constraints that the design names is well-formed here."""

from __future__ import annotations

import pytest

from spdsl.language import check, format_model, parse
from spdsl.language.types import Verdict

_DATA = (
    "data\n  X : matrix(n, d)\n  y : vector(n)\n  l : labels(n)\n  D : matrix(k, d)\n  G : graph(d)\n  g : vector(d)\n"
)
_SOLO = "parameter\n  alpha = 0.1\n  rho = 0.5\nvariable\n  w : vector(d)\n  b : scalar\n"
_AGE = "age lambda in quantiles(0.3, 1)\n"

LOSSES = {
    "least squares": "(X @ w + b - y)^2 / (2*n)",
    "huber": "huber(X @ w + b - y, delta = 1.35)",
    "quantile": "quantile(y - X @ w, tau = 0.9)",
    "epsilon-insensitive": "epsilon_insensitive(X @ w + b - y, 0.2)",
    "absolute": "abs(X @ w - y)",
    "hinge": "hinge(l * (X @ w + b))",
    "squared hinge": "squared_hinge(l * (X @ w + b))",
    "logistic": "logistic(l * (X @ w + b))",
    "poisson": "exp(X @ w) - y * (X @ w)",
    "exponential": "exp(-l * (X @ w))",
    "written-out hinge": "max(0, 1 - l * (X @ w + b))",
    "two-sided": "max(X @ w - y, 2 * (y - X @ w))",
    "elastic pieces": "max(abs(X @ w - y), (X @ w - y)^2)",
}
REGULARIZERS = {
    "none": "",
    "lasso": "alpha * norm1(w)",
    "ridge": "alpha * sum_squares(w) / 2",
    "ridge by a power": "alpha * norm2(w)^2 / 2",
    "ridge by a product": "alpha / 2 * (w @ w)",
    "elastic net": "alpha * (rho * norm1(w) + (1 - rho) * sum_squares(w) / 2)",
    "group lasso": "alpha * group_norm(w, g)",
    "blocks": "alpha * group_norm(w, 5)",
    "generalized lasso": "alpha * norm1(D @ w)",
    "not squared": "alpha * norm2(w)",
    "max-norm": "alpha * max(abs(w))",
    "huber": "alpha * sum(huber(w, 0.1))",
    "intercept too": "alpha * (norm1(w) + b^2)",
}
SELF_PACED = ["", "hard(lambda)", "linear(lambda)", "mixture(lambda, 0.5)", "log(lambda, a = 1)", "welsch(lambda)"]
CONSTRAINTS = {
    "none": "",
    "non-negative": "w >= 0",
    "box": "-1 <= w <= 1",
    "simplex": "w >= 0\n  sum(w) == 1",
    "ball": "norm2(w) <= 3",
    "l1 ball": "norm1(w) <= 3",
    "general": "D @ w <= 1",
    "sparse": "support(w) in sparse(10)",
    "connected": "support(w) in connected(G, size = 10, components = 2, budget = 3)",
    "groups": "support(w) in groups(g, count = 2)",
    "union": "support(w) in union_of(D, count = 2)",
}


def _model(loss: str, regularizer: str, self_paced: str, constraint: str) -> str:
    lines = [f"loss {loss}"]
    lines += [f"regularizer {regularizer}"] if regularizer else []
    lines += [f"self_paced {self_paced}"] if self_paced else []
    text = _DATA + _SOLO + (_AGE if self_paced else "") + "minimize\n  " + "\n  ".join(lines) + "\n"
    return text + (f"subject to\n  {constraint}\n" if constraint else "")


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("self_paced", SELF_PACED)
def test_every_loss_goes_with_every_self_paced_regularizer(loss: str, self_paced: str) -> None:
    model = check(parse(_model(loss, "alpha * norm1(w)", self_paced, "")))
    assert model.losses[0].verdict is Verdict.CONVEX
    assert model.type_of(model.losses[0].expression).shape == ("n",)


@pytest.mark.parametrize("regularizer", REGULARIZERS.values(), ids=REGULARIZERS.keys())
@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS.keys())
def test_every_regularizer_goes_with_every_constraint(regularizer: str, constraint: str) -> None:
    text = _model(LOSSES["least squares"], regularizer, "linear(lambda)", constraint)
    model = check(parse(text))
    assert all(item.verdict is Verdict.CONVEX for item in model.regularizers)
    assert len(model.constraints) == constraint.count("<=") + constraint.count(">=") + constraint.count(
        "=="
    ) + constraint.count(" in ")
    assert parse(format_model(parse(text))) == parse(text)


def test_a_self_paced_metric() -> None:
    text = """
data
  U : matrix(T, d)
  V : matrix(T, d)
  y : labels(T)
variable
  M : symmetric(d)
  mu : scalar
age lambda in quantiles(0.2, 1)
minimize
  loss hinge(y * (mu - mahalanobis(M, U - V))) / T
  regularizer trace(M) / 10
  self_paced linear(lambda)
subject to
  M >> 0
  mu >= 1
"""
    model = check(parse(text))
    assert model.type_of(model.losses[0].expression).shape == ("T",)
    assert len(model.constraints) == 2


def test_losses_over_the_same_samples_are_added() -> None:
    text = _model("abs(X @ w - y)", "", "", "").replace("minimize\n", "minimize\n  loss (X @ w - y)^2\n")
    model = check(parse(text))
    assert len(model.losses) == 2


def test_several_regularizers_are_added() -> None:
    text = _model("abs(X @ w - y)", "norm1(w)", "", "") + "subject to w <= 2\n"
    model = check(parse(text.replace("minimize\n", "minimize\n  regularizer alpha * b^2\n")))
    assert len(model.regularizers) == 2

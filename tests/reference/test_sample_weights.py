"""Sample weights by search against the table of v* in the self-paced literature, for every built-in and user's f."""

from __future__ import annotations

import numpy as np
import pytest

from reference.fits import bound, linear, regression
from spdsl.reference.sample_weights import UnreadableFormulaError, formula_function, least_weighted_loss, penalty

LOSSES = np.concatenate([[0.0], np.geomspace(1e-4, 20, 60)])
AGE = 0.6

TABLE = {
    "hard(lambda)": lambda l: (l < AGE).astype(float),
    "linear(lambda)": lambda l: np.maximum(1 - l / AGE, 0),
    "mixture(lambda, gamma = 0.4)": lambda l: np.clip(0.4 * (1 / np.sqrt(np.maximum(l, 1e-300)) - 1 / AGE), 0, 1),
    "log(lambda, a = 2)": lambda l: np.minimum(1, (1 + 2 * AGE) / (1 + 2 * l)),
    "polynomial(lambda, t = 3)": lambda l: np.sqrt(np.maximum(1 - l / AGE, 0)),
    "logarithmic(lambda)": lambda l: np.clip(np.log(l + 1 - AGE) / np.log(1 - AGE), 0, 1),
    "welsch(lambda)": lambda l: np.exp(-l / AGE),
    "cauchy(lambda)": lambda l: AGE / (AGE + l),
    "huber(lambda)": lambda l: np.minimum(1, np.sqrt(AGE / np.maximum(l, 1e-300))),
}


def problem_with(paced: str, define: str = ""):
    text = linear(f"{define}\nage lambda in [0.1, 0.9]\nminimize\n  loss (X @ w - y)^2\n  self_paced {paced}\n")
    return bound(text, **regression())


@pytest.mark.parametrize("paced", TABLE)
def test_the_search_finds_the_weights_of_the_literature(paced):
    f = penalty(problem_with(paced), AGE)
    least, v = least_weighted_loss(f, LOSSES)
    expected = TABLE[paced](LOSSES)
    tolerance = 1e-7 if "hard" not in paced else 1e-12
    np.testing.assert_allclose(v, expected, atol=max(tolerance, 2e-7))
    np.testing.assert_allclose(least, expected * LOSSES + f(expected), atol=1e-12)


def test_a_users_f_may_call_its_arguments_anything():
    define = "define mine(u, s) = 0.16 / (u + 0.4/s)"
    f = penalty(problem_with("mine(lambda)", define), AGE)
    np.testing.assert_allclose(f(np.array([0.5])), 0.16 / (0.5 + 0.4 / AGE))
    define = "define mine(s, u) = u * (s^2/4 + s^7/14 - s)"
    f = penalty(problem_with("mine(lambda)", define), AGE)
    np.testing.assert_allclose(f(np.array([0.5])), AGE * (0.25 / 4 + 0.5**7 / 14 - 0.5))


def test_the_search_agrees_with_a_fine_grid():
    grid = np.linspace(0, 1, 20_001)
    for paced in TABLE:
        f = penalty(problem_with(paced), AGE)
        at_grid = f(grid)
        least, _ = least_weighted_loss(f, LOSSES)
        brute = np.array([np.min(grid * l + at_grid) for l in LOSSES])
        assert (least <= brute + 1e-12).all()
        np.testing.assert_allclose(least, brute, atol=2e-5)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("lambda*(v^2/2 - v)", {"lambda": 2.0, "v": 0.5}, -0.75),
        ("-v^2", {"v": 3.0}, -9.0),
        ("max(v, 0.2) + min(1, v) - abs(-v)", {"v": 0.1}, 0.2),
        ("exp(log(v))/sqrt(4)", {"v": 6.0}, 3.0),
        ("2^v", {"v": 3.0}, 8.0),
    ],
)
def test_formulas_are_read_as_written(text, values, expected):
    assert formula_function(text)(values) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["v +", "__import__('os')", "v if v else 1", "besselj(v)", "v.real", "'v'"])
def test_anything_but_arithmetic_is_refused(text):
    with pytest.raises(UnreadableFormulaError):
        formula_function(text)

"""Parameters and data for which kinks lie in another order than for the defaults: derived anew, never silently wrong."""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import spdsl

TWO_HINGES = """
data
  X : matrix(n, d)
  y : vector(n)

parameter
  a = 1
  b = 2

variable
  w : vector(d)

minimize
  loss         (hinge(a*(X @ w - y)) + hinge(b - (X @ w - y))) / n
  regularizer  0.05 * sum_squares(w)
"""

AGED = TWO_HINGES.replace("minimize", "age lambda in [0.03, 0.2]\n\nminimize") + "  self_paced   linear(lambda)\n"


def data(n: int = 30) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return {"X": X, "y": X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=n)}


def objective(w: cp.Variable, v: np.ndarray | float, X: np.ndarray, y: np.ndarray, a: float, b: float) -> cp.Expression:
    z = X @ w - y
    losses = cp.pos(1 - a * z) + cp.pos(1 - (b - z))
    return cp.sum(cp.multiply(v, losses)) / len(y) + 0.05 * cp.sum_squares(w)


@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (2.0, 0.1), (-1.0, -3.0), (0.5, 40.0), (3.0, 1.0)])
def test_a_solution_is_cvxpys_whatever_the_order_of_the_kinks(a: float, b: float) -> None:
    known = data()
    solution = spdsl.parse(TWO_HINGES).solve(**known, a=a, b=b)
    w = cp.Variable(3)
    value = cp.Problem(cp.Minimize(objective(w, 1.0, **known, a=a, b=b))).solve(solver=cp.CLARABEL)
    assert solution.objective == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(solution["w"], w.value, atol=1e-5)


def test_the_same_answer_as_from_a_model_that_has_the_values_as_defaults() -> None:
    written = TWO_HINGES.replace("a = 1", "a = 2").replace("b = 2", "b = 0.1")
    np.testing.assert_allclose(
        spdsl.parse(TWO_HINGES).solve(**data(), a=2, b=0.1)["w"], spdsl.parse(written).solve(**data())["w"], atol=1e-10
    )


def test_a_path_keeps_its_derivation_in_a_file_and_passes_the_check(tmp_path: Path) -> None:
    model = spdsl.parse(AGED)
    path = model.solve(**data(), a=2, b=0.1)
    assert path.status.ok
    assert model.check(path)
    path.save(tmp_path / "path.npz")
    again = spdsl.load_result(tmp_path / "path.npz")
    for age in np.linspace(*path.age_range, 7):
        np.testing.assert_array_equal(again(age)["w"], path(age)["w"])
    assert model.check(again)


PER_ROW = TWO_HINGES.replace("  y : vector(n)\n", "  y : vector(n)\n  t : vector(n)\n").replace(
    "hinge(b - (X @ w - y))", "hinge(b*t - (X @ w - y))"
)


def test_rows_that_need_different_pieces_are_refused_in_words() -> None:
    known = data()
    t = np.where(np.arange(30) % 2 == 0, 0.05, 3.0)
    with pytest.raises(spdsl.DataError, match="pieces") as failure:
        spdsl.parse(PER_ROW).solve(**known, t=t)
    assert failure.value.diagnostics[0].code == "SPL432"
    assert "split the loss" in str(failure.value)


def test_rows_that_all_need_other_pieces_are_derived_for_them() -> None:
    known = data()
    solution = spdsl.parse(PER_ROW).solve(**known, t=np.full(30, 0.05), a=2)
    w = cp.Variable(3)
    value = cp.Problem(cp.Minimize(objective(w, 1.0, **known, a=2, b=0.1))).solve(solver=cp.CLARABEL)
    assert solution.objective == pytest.approx(value, rel=1e-7)


def test_validation_data_that_need_other_pieces_are_refused() -> None:
    known = data()
    aged = PER_ROW.replace("minimize", "age lambda in [0.03, 0.2]\n\nminimize") + "  self_paced   linear(lambda)\n"
    path = spdsl.parse(aged).solve(**known, t=np.full(30, 0.05), a=2)
    with pytest.raises(spdsl.DataError, match="SPL432"):
        path.select(**known, t=np.full(30, 5.0))


def test_a_loss_that_is_not_convex_for_the_values_is_refused() -> None:
    text = TWO_HINGES.replace("(hinge(a*(X @ w - y)) + hinge(b - (X @ w - y))) / n", "a * abs(X @ w - y) / n")
    with pytest.raises(spdsl.SpdslError, match=r"convex|nonnegative"):
        spdsl.parse(text).solve(**data(), a=-1)

"""`certify` passes what is right and FAILS what isn't: variables, weights, objective, support, constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import spdsl.reference.checking as checking
import spdsl.reference.program as program
from reference.fits import bound, classification, cvx_point, linear, regression, solution
from spdsl.data import grid
from spdsl.reference import Certificate, certify
from spdsl.reference.solve import Outcome
from spdsl.solution import CriticalPoint, Path, Solution, Status

PACED = "age lambda in [{low}, {high}]\nminimize\n  loss (X @ w - y)^2 / (2*n)\n  regularizer alpha * norm1(w)\n"
LASSO = linear("minimize\n  loss (X @ w - y)^2 / (2*n)\n  regularizer alpha * norm1(w)")
SELF_PACED = linear(PACED.format(low=0.001, high=1) + "  self_paced linear(lambda)")
DATA = regression(60, 4)


def partial_optimum(problem, age: float) -> np.ndarray:
    """Alternate search over scikit-learn's lasso until the weights stand still."""
    X, y, v = problem.data["X"], problem.data["y"], np.ones(problem.n_samples)
    lasso = Lasso(problem.parameters["alpha"], fit_intercept=False, tol=1e-15, max_iter=1_000_000, warm_start=True)
    for _ in range(20_000):
        x = lasso.fit(X * np.sqrt(v)[:, None], y * np.sqrt(v)).coef_.copy()
        new = problem.weights(problem.losses(x), age)
        if np.abs(new - v).max() < 1e-13:
            return x
        v = new
    raise AssertionError("alternate search did not settle")


@pytest.fixture(scope="module")
def lasso() -> Solution:
    problem = bound(LASSO, **DATA)
    return solution(problem, Lasso(0.05, fit_intercept=False, tol=1e-15, max_iter=100_000).fit(**DATA).coef_)


@pytest.fixture(scope="module")
def paced() -> Solution:
    problem = bound(SELF_PACED, **DATA)
    return solution(problem, partial_optimum(problem, 0.03), 0.03)


def test_an_optimum_passes_every_check(lasso):
    certificate = certify(lasso)
    (row,) = certificate.rows
    assert certificate, str(certificate)
    assert row.objective == pytest.approx(lasso.objective, rel=1e-12)
    assert row.kkt_residual < 1e-9
    assert abs(row.gap) < 1e-8
    assert row.distance < 1e-4
    assert row.weight_error is None
    assert not certificate.failures


def test_a_partial_optimum_passes_with_weights_found_by_search(paced):
    certificate = certify(paced)
    assert certificate, str(certificate)
    assert certificate.rows[0].weight_error < 1e-12
    assert 0 < (paced.weights > 0).mean() < 1


@pytest.mark.parametrize("size", [1e-3, 1e-2, 1.0])
def test_moved_variables_fail(lasso, paced, size):
    for result in (lasso, paced):
        x = result.x + size * np.random.default_rng(0).normal(size=result.x.size)
        certificate = certify(solution(result.bound, x, result.age))
        assert not certificate
        assert any("KKT" in failure for failure in certificate.failures)


def test_a_run_that_ended_early_is_told_so(lasso):
    certificate = certify(replace(lasso, status=Status.TIME_LIMIT))
    assert certificate
    assert "time limit" in certificate.notes[0]


def test_an_infimum_that_is_not_reached_is_measured_against_the_losses_at_zero():
    """One class only: the loss falls to 0 as b grows; where it is 1e-300 nothing is left to gain."""
    text = linear("minimize\n  loss logistic(b + 0 * (X @ w)) / n\n  regularizer sum_squares(w)", intercept=True)
    problem = bound(text, **DATA)
    certificate = certify(solution(problem, np.array([0.0, 0, 0, 0, 700.0])))
    assert certificate, str(certificate)


def test_a_wrong_objective_fails(lasso):
    certificate = certify(replace(lasso, objective=lasso.objective * (1 + 1e-6)))
    assert not certificate
    assert "claims the objective" in certificate.failures[0]


def test_wrong_weights_fail(paced, monkeypatch):
    right = paced.weights
    monkeypatch.setattr(Solution, "weights", property(lambda self: np.clip(right + 1e-3, 0, 1)))
    found = certify(paced).failures
    assert any("by search" in failure for failure in found)
    monkeypatch.setattr(Solution, "weights", property(lambda self: right * 1.5))
    assert any("outside [0, 1]" in failure for failure in certify(paced).failures)


def test_weights_of_another_age_fail(paced):
    problem = paced.bound
    moved = replace(paced, age=0.033, objective=problem.objective(paced.x, 0.033))
    assert any("KKT" in failure for failure in certify(moved).failures)


def test_a_variable_that_is_not_finite_fails(lasso):
    assert "NaN" in certify(replace(lasso, x=np.full(4, np.nan))).failures[0]


def test_a_constraint_that_is_violated_fails():
    text = linear("minimize\n  loss (X @ w - y)^2 / (2*n)\nsubject to\n  w >= 0\n  norm(w) <= 0.5")
    problem = bound(text, **DATA)
    x = cvx_point(problem)
    assert certify(solution(problem, np.maximum(x, 0)), tolerance=1e-5)
    for moved in (x - 0.01, x * 1.1):
        assert any("violated" in failure for failure in certify(solution(problem, moved)).failures)


def test_a_matrix_outside_its_cone_or_askew_fails():
    text = "data\n  U : matrix(T, 2)\n  y : vector(T)\nvariable\n  M : symmetric(2)\n"
    text += "minimize\n  loss (mahalanobis(M, U) - y)^2\nsubject to\n  M >> 0\n"
    problem = bound(text, U=[[1.0, 0], [0, 1.0], [1.0, 1.0]], y=[1.0, 1.0, 6.0])
    assert certify(solution(problem, np.full(4, 13 / 9)))
    for x in ([1.0, 2.0, 2.0, 1.0], [13 / 9, 1.5, 13 / 9, 13 / 9]):
        assert any("violated" in failure for failure in certify(solution(problem, np.array(x))).failures)


SUPPORT = """data
  X : matrix(m, p)
  y : vector(m)
  G : graph(p)

variable
  w : vector(p)

minimize
  loss (X @ w - y)^2 / (2*m)

subject to
  support(w) in connected(G, size = 3, components = 1)
"""


def test_supports_are_counted():
    data = {"X": regression(60, 9)["X"], "y": regression(60, 9)["y"], "G": grid(3, 3)}
    problem = bound(SUPPORT, **data)

    def on(support):
        x = np.zeros(9)
        x[support] = np.linalg.lstsq(data["X"][:, support], data["y"], rcond=None)[0]
        return certify(solution(problem, x))

    assert on([0, 1, 4])
    assert any("3 entries in 1 component, spanned by edges of cost 2" in note for note in on([0, 1, 4]).notes)
    assert any("4 entries" in failure for failure in on([0, 1, 2, 5]).failures)
    assert any("2 components" in failure for failure in on([0, 1, 8]).failures)


def test_groups_and_budgets_are_counted():
    problem = bound(linear("minimize\nloss (X @ w - y)^2\nsubject to\nsupport(w) in groups(2, count = 1)"), **DATA)
    x = np.zeros(4)
    x[[0, 1]] = np.linalg.lstsq(DATA["X"][:, :2], DATA["y"], rcond=None)[0]
    certificate = certify(solution(problem, x))
    assert certificate
    assert any("2 entries in 1 group" in note for note in certificate.notes)
    x = np.linalg.lstsq(DATA["X"], DATA["y"], rcond=None)[0]
    assert any("touches 2 groups" in failure for failure in certify(solution(problem, x)).failures)


# -- cvxpy -------------------------------------------------------------------------------------------------------------


def test_a_better_cvx_optimum_is_a_failure_and_an_inaccurate_one_a_note(lasso, monkeypatch):
    value = lasso.objective
    accurate = Outcome("optimal", "TEST", value * 0.99, True)
    monkeypatch.setattr(program, "solve_tightly", lambda problem, solver: _with_values(problem, accurate))
    assert any("lies lower" in failure for failure in certify(lasso).failures)
    vague = Outcome("optimal_inaccurate", "TEST", value * 0.99, False)
    monkeypatch.setattr(program, "solve_tightly", lambda problem, solver: _with_values(problem, vague))
    certificate = certify(lasso)
    assert certificate
    assert any("CVX stopped at `optimal_inaccurate`" in note for note in certificate.notes)
    above = Outcome("optimal", "TEST", value * 1.01, True)
    monkeypatch.setattr(program, "solve_tightly", lambda problem, solver: _with_values(problem, above))
    assert any("another problem" in failure for failure in certify(lasso).failures)
    nothing = Outcome("infeasible", "TEST", np.inf, False)
    monkeypatch.setattr(program, "solve_tightly", lambda problem, solver: nothing)
    assert any("CVX gave no optimum" in note for note in certify(lasso).notes)


def _with_values(problem, outcome):
    for variable in problem.variables():
        variable.value = np.zeros(variable.shape)
    return outcome


def test_many_samples_are_left_to_the_kkt_residual_unless_forced(lasso, monkeypatch):
    monkeypatch.setattr(checking, "LARGEST", 50)
    monkeypatch.setattr(checking, "LIGHT", 0)
    certificate = certify(lasso)
    assert certificate.rows[0].gap is None
    assert "cvxpy wasn't asked: it takes long for 60 samples" in certificate.notes[0]
    assert certificate.ok
    assert certify(lasso, force_cvxpy=True).rows[0].gap is not None
    assert not certify(solution(lasso.bound, lasso.x + 0.01))


def test_light_programs_are_asked_of_cvxpy_up_to_more_samples(lasso, monkeypatch):
    monkeypatch.setattr(checking, "LARGEST", 50)
    monkeypatch.setattr(checking, "LIGHT", 60 * 4 + 60)  # X and y as they are
    assert certify(lasso).rows[0].gap is not None
    monkeypatch.setattr(checking, "LARGEST_LIGHT", 59)
    assert "60 samples (more than 59)" in certify(lasso).notes[0]
    smooth = linear("minimize\n  loss logistic((X @ w) * y) / n\n  regularizer alpha * norm1(w)")
    assert not checking._Work(bound(smooth, **DATA), Status.SOLVED, 1e-6, False, None).light()


def test_a_run_of_passes_is_judged_by_its_gap_and_told_what_near_enough_means(lasso):
    near = solution(lasso.bound, lasso.x + 1e-3)
    passes = replace(near, status=Status.FINISHED)
    assert not certify(near, tolerance=1e-4), "whoever claims an optimum is held to the KKT conditions"
    certificate = certify(passes, tolerance=1e-4)
    assert certificate, str(certificate)
    assert certificate.rows[0].kkt_residual > 1e-4
    assert any("check --tolerance" in note for note in certificate.notes)
    exact = certify(passes)
    assert any("optimum lies lower" in failure for failure in exact.failures)
    assert not any("KKT" in failure for failure in exact.failures)


def test_large_semidefinite_and_kernel_problems_are_left_to_the_kkt_residual_too(monkeypatch):
    metric = "data\n  U : matrix(T, d)\n  y : vector(T)\nvariable\n  M : symmetric(d)\n"
    metric += "minimize\n  loss (mahalanobis(M, U) - y)^2"
    problem = bound(metric, U=np.eye(3), y=np.ones(3))
    monkeypatch.setattr(checking, "LARGEST_MATRIX", 2)
    assert "3 x 3" in certify(solution(problem, np.eye(3).ravel())).notes[0]
    kernel = "data\n  X : matrix(n, d)\n  y : vector(n)\nvariable\n  f : rkhs(X, rbf(1))\n"
    problem = bound(kernel + "minimize\n  loss (f(X) - y)^2", X=np.eye(3), y=np.zeros(3))
    monkeypatch.setattr(checking, "LARGEST_KERNEL", 2)
    certificate = certify(solution(problem, np.zeros(3)))
    assert certificate
    assert "3 points" in certificate.notes[0]


def test_a_users_own_piecewise_huber_is_held_against_cvx_like_the_built_in():
    text = linear(
        "minimize\n  loss piecewise(r^2/2 if abs(r) <= 1, abs(r) - 0.5 otherwise) / n\n  regularizer sum_squares(w)/9"
    )
    text = text.replace("r^2", "(X @ w - y)^2").replace("abs(r)", "abs(X @ w - y)")
    builtin = bound(linear("minimize\n  loss huber(X @ w - y) / n\n  regularizer sum_squares(w)/9"), **DATA)
    by_hand = bound(text, **DATA)
    x = cvx_point(builtin)
    one, other = certify(solution(builtin, x)), certify(solution(by_hand, x))
    assert one, str(one)
    assert other, str(other)
    assert other.rows[0].cvx_objective == pytest.approx(one.rows[0].cvx_objective, rel=1e-8)
    assert not certify(solution(by_hand, x + 0.01))


def test_what_cvxpy_cant_express_is_left_to_the_kkt_residual():
    text = linear("minimize\n  loss sqrt(1 + (X @ w - y)^2) assume convex\n  regularizer sum_squares(w)/9")
    problem = bound(text, **DATA)
    from scipy.optimize import minimize

    x = minimize(problem.objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    certificate = certify(solution(problem, x), tolerance=1e-5)
    assert certificate, str(certificate)
    assert certificate.rows[0].gap is None
    assert any("the KKT residual decides" in note for note in certificate.notes)
    assert not certify(solution(problem, x + 0.01), tolerance=1e-5)


def test_a_flat_optimum_has_a_distance_and_no_failure():
    X = np.repeat(DATA["X"][:, :1], 2, axis=1)
    problem = bound(linear("minimize\n  loss (X @ w - y)^2 / (2*n)"), X=X, y=DATA["y"])
    slope = float(X[:, 0] @ DATA["y"] / (X[:, 0] @ X[:, 0]))
    certificate = certify(solution(problem, np.array([slope + 1.0, -1.0])))
    assert certificate, str(certificate)
    assert any("flat or not unique" in note for note in certificate.notes)


# -- paths -------------------------------------------------------------------------------------------------------------


@dataclass
class Followed:
    """A branch whose points are partial optima by cvxpy; `error` is added to them."""

    problem: object
    error: float = 0.0

    def at(self, age):
        return partial_optimum(self.problem, age) + self.error, 0.0

    def critical_points(self):
        return (CriticalPoint(0.2, "turning", "made up"), CriticalPoint(0.3, "jump", "made up"))


@pytest.fixture(scope="module")
def path() -> Path:
    problem = bound(linear(PACED.format(low=0.1, high=0.5) + "  self_paced linear(lambda)"), **regression(25, 2))
    ages = np.array([0.1, 0.5])
    return Path(problem, ages, np.zeros((2, 2)), np.zeros(2), Status.SOLVED, "test", branch=Followed(problem))


def test_a_path_is_checked_over_its_range_and_on_both_sides_of_jumps(path):
    certificate = certify(path)
    ages = [row.age for row in certificate.rows]
    assert certificate, str(certificate)
    assert (ages[0], ages[-1]) == (0.1, 0.5)
    assert 0.3 in ages
    assert any(0.29999 < age < 0.3 for age in ages)
    assert len(certify(path, ages=[0.2]).rows) == 1


def test_a_path_that_is_off_fails_at_every_age(path):
    wrong = replace(path, branch=Followed(path.bound, 1e-3))
    certificate = certify(wrong, ages=[0.2, 0.4])
    assert len(certificate.failures) >= 2
    assert certificate.failures[0].startswith("at age 0.2")


# -- the certificate itself --------------------------------------------------------------------------------------------


def test_a_certificate_reads_as_a_table_and_as_plain_values(paced):
    certificate = certify(paced)
    text = str(certificate)
    assert "KKT residual" in text
    assert "certified: everything holds to 1e-06 at 1 point" in text
    assert len(certificate.table()[0]) == len(certificate.columns)
    plain = certificate.to_dict()
    assert plain["ok"] is True
    assert plain["rows"][0]["age"] == 0.03
    broken = certify(replace(paced, objective=0.0))
    assert "NOT certified: 1 of 1 point fails" in str(broken)
    assert broken.worst_kkt_residual == pytest.approx(certificate.worst_kkt_residual)
    assert not Certificate((), 1e-6)


def test_an_assumption_of_convexity_is_told():
    problem = bound(linear("minimize\n  loss (X @ w - y)^2"), **DATA)
    problem = replace(problem, problem=replace(problem.problem, assumptions=("exp(-r) is convex",)))
    x = np.linalg.lstsq(DATA["X"], DATA["y"], rcond=None)[0]
    assert any("because the model says so" in note for note in certify(solution(problem, x)).notes)


def test_classification_is_checked_in_its_own_coordinates():
    text = linear("minimize\n  loss hinge(y * (X @ w)) / n\n  regularizer sum_squares(w)/20", "labels")
    problem = bound(text, **classification(60, 3))
    certificate = certify(solution(problem, cvx_point(problem)))
    assert certificate, str(certificate)

"""`certify`: holds a result against formulas evaluated anew and against cvxpy, at ages of its path.

In: a `Solution` or a `Path`. Out: a `Certificate`. At each point: the objective from the formulas; the constraints; the
KKT residual over all multipliers; the sample weights by search; and cvxpy's optimum of the w-problem at these weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from spdsl.problem import BoundProblem, SupportConstraint
from spdsl.problem.functions import Array
from spdsl.reference.atoms import TranslationError
from spdsl.reference.certificate import Certificate, CertificateRow
from spdsl.reference.feasibility import infeasibility
from spdsl.reference.objective import recomputed_losses, recomputed_regularization
from spdsl.reference.program import optimum
from spdsl.reference.sample_weights import UnreadableFormulaError, least_weighted_loss, penalty
from spdsl.reference.scalar import FLOOR, UnknownAtomError
from spdsl.reference.solve import Outcome
from spdsl.reference.stationarity import kkt_residual
from spdsl.reference.support import support_complaints, support_counts, support_mask
from spdsl.solution import Path, Solution, Status

__all__ = ["certify"]

LARGEST = 20_000  # samples up to which cvxpy is asked unless forced
LARGEST_LIGHT, LIGHT = 100_000, 1_000_000  # and up to which for linear and quadratic programs of so few data entries
LARGEST_MATRIX = 60  # rows of a symmetric variable
LARGEST_KERNEL = 2_000  # points of an rkhs variable
SPREAD = 7  # ages over a path
MOST_JUMPS = 8  # of which both sides are checked
ROUNDING = 64 * float(np.finfo(float).eps)  # of a loss, relative to the largest
BESIDE = 1e-6  # how far before a jump, relative to the path's length
BELOW = 1e-4  # cvxpy may miss its optimum by so much; by more, it has not the same problem
LEAST = 1e-4  # of all losses, that a gap is relative to at least: samples that are out say how large 0 is
PASSES = (
    "the run made its passes and was asked for no tolerance, so its gap to the optimum decides, not the KKT residual: "
    "say what is near enough (`check --tolerance 1e-2`, from Python `tolerance=1e-2`), or ask for more passes"
)
EXACT = 1e-9  # for what is only arithmetic: the objective, the weights


def certify(
    result: Solution | Path,
    ages: Iterable[float] | None = None,
    *,
    tolerance: float = 1e-6,
    force_cvxpy: bool = False,
    solver: str | None = None,
) -> Certificate:
    """Hold a result against CVX and against its own formulas.

    Parameters
    ----------
    result : Solution or Path
    ages : iterable of float, optional
        For a path: where to check; unless given, some ages over its range, and both sides of its jumps.
    tolerance : float
        Up to which infeasibility, KKT residual and the gap to cvxpy (all scaled) pass. Objective and weights are only
        arithmetic and must agree to 1e-9. Of a run that makes so many passes and no more (`Status.FINISHED`) the KKT
        residual is reported, and decides only where cvxpy gave no optimum.
    force_cvxpy : bool
        Ask cvxpy also beyond 20,000 samples (100,000 of a sparse linear or quadratic program), symmetric variables of
        60 rows and 2,000 kernel points: that takes long.
    solver : str, optional
        The solver that cvxpy is to use; several are tried in turn unless given.
    """
    work = _Work(result.bound, result.status, tolerance, force_cvxpy, solver)
    if isinstance(result, Path):
        wanted = _ages(result) if ages is None else [float(age) for age in ages]
        rows = tuple(work.row(result(age)) for age in wanted)
    else:
        rows = (work.row(result),)
    return Certificate(rows, tolerance, result.bound.problem.name, result.backend, tuple(dict.fromkeys(work.notes)))


def _ages(path: Path) -> list[float]:
    """Ages over the whole range, and just before and at jumps."""
    low, high = path.age_range
    if low == high:
        return [low]
    spread = np.linspace(low, high, SPREAD) if low <= 0 else np.geomspace(low, high, SPREAD)
    jumps = [point.age for point in path.critical_points if point.kind == "jump"]
    if len(jumps) > MOST_JUMPS:
        jumps = [jumps[k] for k in np.linspace(0, len(jumps) - 1, MOST_JUMPS).astype(int)]
    before = [max(low, age - BESIDE * (high - low)) for age in jumps]
    inside = [min(max(float(age), low), high) for age in [*spread, *jumps, *before]]
    return sorted(set(inside))


@dataclass
class _Work:
    """Checks points of one bound problem."""

    bound: BoundProblem
    status: Status
    tolerance: float
    force_cvxpy: bool
    solver: str | None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.status.ok:
            self.notes.append(f"the run ended early, and only what it reached was checked: {self.status.value}")
        for assumption in self.bound.problem.assumptions:
            self.notes.append(f"taken as convex because the model says so: {assumption}")

    def row(self, solution: Solution) -> CertificateRow:
        x, age = np.asarray(solution.x, float), solution.age
        weights = np.asarray(solution.weights, float)
        if not np.isfinite(x).all():
            return CertificateRow(age, np.nan, np.nan, np.nan, np.nan, failures=("the variables hold NaN or infinity",))
        failures: list[str] = []
        try:
            losses = recomputed_losses(self.bound, x)
            regularization = recomputed_regularization(self.bound, x)
            residual = kkt_residual(self.bound, x, weights, good_enough=1e-3 * self.tolerance)
        except UnknownAtomError as error:
            return CertificateRow(age, np.nan, np.nan, np.nan, np.nan, failures=(str(error),))
        at_zero = self.losses_at_zero()
        weight_error, extra = self.weights(losses, at_zero, weights, age, failures)
        total = regularization + float(weights @ losses)
        objective = total + extra
        # Where every weight is 0 nothing is left to be relative to but the losses that could have been.
        whole = float(np.sum(at_zero)) + float(np.sum(np.abs(losses)))
        size = abs(regularization) + float(weights @ np.abs(losses)) + abs(extra)
        objective_error = abs(solution.objective - objective) / max(size, ROUNDING * whole, 1e-300)
        violation = infeasibility(self.bound, x)
        self.judge(failures, objective_error, violation, solution.objective, objective)
        for constraint in self.bound.problem.constraints:
            if isinstance(constraint, SupportConstraint):
                failures += support_complaints(self.bound, constraint, x)
                self.notes.append(support_counts(self.bound, constraint, x))
        cvx, status, distance = self.cvxpy(x, weights)
        gap = None
        if cvx is not None:
            sizes = (abs(cvx.value), float(weights @ np.abs(losses)), float(weights @ at_zero), LEAST * whole, 1e-300)
            gap = (total - cvx.value) / max(sizes)
            self.judge_gap(failures, gap, cvx)
        self.judge_residual(failures, residual, cvx)
        if gap is not None and distance is not None and distance > 1e-3 and gap <= self.tolerance:
            self.notes.append("where the distance is large and the gap is not, the optimum is flat or not unique")
        return CertificateRow(
            age,
            objective,
            objective_error,
            violation,
            residual,
            weight_error,
            None if cvx is None else cvx.value,
            gap,
            distance,
            status,
            tuple(failures),
        )

    def losses_at_zero(self) -> Array:
        """|l_i(0)|: with the losses at x, the size that rounding and gaps are held against."""
        with np.errstate(all="ignore"):
            found = np.abs(recomputed_losses(self.bound, np.zeros(self.bound.layout.size)))
        return np.where(np.isfinite(found), found, 0.0)

    # -- verdicts ----------------------------------------------------------------------------------------------------

    def judge(self, failures: list[str], objective: float, violation: float, claimed: float, found: float) -> None:
        if not objective <= EXACT:
            failures.append(f"the result claims the objective {claimed:.10g}, the formulas give {found:.10g}")
        if not violation <= self.tolerance:
            failures.append(f"a constraint is violated by {violation:.1e} of its size")

    def judge_residual(self, failures: list[str], residual: float, cvx: Outcome | None) -> None:
        """A run of so many passes, with no tolerance to reach, is judged by its gap where cvxpy gives one.

        Near a kink the subgradient of a point that is nearly optimal is as large as that of any other.
        """
        if residual <= self.tolerance:
            return
        if self.status is Status.FINISHED and cvx is not None and cvx.accurate:
            self.notes.append(PASSES)
        else:
            failures.append(f"the KKT residual is {residual:.1e}: this is no optimum of the w-problem")
            if self.status is Status.FINISHED:
                self.notes.append(PASSES)

    def judge_gap(self, failures: list[str], gap: float, cvx: Outcome) -> None:
        if -BELOW <= gap <= self.tolerance:
            return
        if cvx.accurate and gap > 0:
            failures.append(f"cvxpy's optimum lies lower by {gap:.1e} of its size")
        elif cvx.accurate:
            failures.append(f"cvxpy's optimum lies higher by {-gap:.1e} of its size: it solved another problem")
        else:
            self.notes.append(f"CVX stopped at `{cvx.status}` ({cvx.solver}), {gap:.1e} away; the KKT residual decides")

    # -- sample weights ----------------------------------------------------------------------------------------------

    def weights(
        self, losses: Array, at_zero: Array, weights: Array, age: float | None, failures: list[str]
    ) -> tuple[float | None, float]:
        """By how much the weights miss the least of v l + f(v), relative; and sum_i f(v_i)."""
        if self.bound.problem.self_paced is None or age is None:
            return None, 0.0
        if not ((weights >= 0) & (weights <= 1)).all():
            failures.append("a sample weight lies outside [0, 1]")
        try:
            f = penalty(self.bound, age)
        except UnreadableFormulaError as error:
            self.notes.append(f"the sample weights weren't searched for anew: {error}")
            kernel = self.bound.problem.self_paced.kernel
            assert kernel is not None
            return None, float(np.sum(kernel.regularizer(weights, age, *self.bound.weight_parameters())))
        least, found = least_weighted_loss(f, losses)
        value = weights * losses + f(weights)
        size = np.abs(losses) + np.abs(f(found)) + np.abs(f(np.ones_like(losses)))
        rounding = ROUNDING * max(float(np.max(np.abs(losses), initial=0.0)), float(np.max(at_zero, initial=0.0)))
        missed = np.maximum(value - least - rounding, 0.0) / np.maximum(size, 1e-300)
        worst = int(np.argmax(missed))
        most = float(missed[worst])
        if not most <= EXACT:
            failures.append(
                f"sample {worst} has the weight {weights[worst]:.6g}, but v*(l, age) is {found[worst]:.6g} by search"
            )
        return most, float(np.sum(f(weights)))

    # -- cvxpy -------------------------------------------------------------------------------------------------------

    def cvxpy(self, x: Array, weights: Array) -> tuple[Outcome | None, str, float | None]:
        """cvxpy's optimum at these weights, how it ended, and the distance of x from it."""
        large = self.too_large()
        if large and not self.force_cvxpy:
            self.notes.append(
                f"cvxpy wasn't asked: it takes long for {large}; the KKT residual decides. "
                "`force_cvxpy=True` asks it all the same"
            )
            return None, "not asked", None
        support = None
        for constraint in self.bound.problem.constraints:
            if isinstance(constraint, SupportConstraint):
                mask = support_mask(self.bound, constraint, x)
                support = mask if support is None else support & mask
                self.notes.append("cvxpy solves the problem on the support that was found, not over all supports")
        try:
            outcome, optimal = optimum(self.bound, weights, support, self.solver)
        except TranslationError as error:
            self.notes.append(f"cvxpy wasn't asked: {error.sentence}; the KKT residual decides")
            return None, "not asked", None
        if optimal is None:
            self.notes.append(f"CVX gave no optimum: {outcome.status}; the KKT residual decides")
            return None, outcome.status, None
        if not np.isfinite(optimal).all():  # with no sample in and no regularizer, nothing says where the optimum is
            return outcome, outcome.status, None
        return outcome, outcome.status, self.distance(x, optimal)

    def too_large(self) -> str:
        """What makes the problem too large for cvxpy; empty when nothing does."""
        n = self.bound.n_samples
        most = LARGEST_LIGHT if n > LARGEST and self.light() else LARGEST
        if n > most:
            return f"{n:,} samples (more than {most:,})"
        for item in self.bound.problem.variables:
            shape = self.bound.layout.shapes[item.name]
            if item.kind == "symmetric" and shape[0] > LARGEST_MATRIX:
                return f"a semidefinite program of {shape[0]} x {shape[0]} (more than {LARGEST_MATRIX})"
            if item.kind == "rkhs" and shape[0] > LARGEST_KERNEL:
                return f"a kernel matrix of {shape[0]:,} points (more than {LARGEST_KERNEL:,})"
        return ""

    def light(self) -> bool:
        """Is it a linear or quadratic program of few data entries? Of a sparse matrix those that are stored count."""
        loss = self.bound.problem.loss
        if loss is None or not loss.function.curvature_is_constant:
            return False
        if any(item.kind not in ("vector", "scalar") for item in self.bound.problem.variables):
            return False
        return sum(getattr(array, "nnz", np.size(array)) for array in self.bound.data.values()) <= LIGHT

    def distance(self, x: Array, other: Array) -> float:
        """Between two points, relative; rkhs variables by their values at the training points."""
        difference, size = 0.0, 0.0
        for item in self.bound.problem.variables:
            where = self.bound.layout.slices[item.name]
            a, b = x[where], other[where]
            if item.kind == "rkhs":
                a, b = self.bound.gram(item.name) @ a, self.bound.gram(item.name) @ b
            difference += float(np.sum((a - b) ** 2))
            size += max(float(np.sum(a**2)), float(np.sum(b**2)))
        return float(np.sqrt(difference) / max(np.sqrt(size), FLOOR))

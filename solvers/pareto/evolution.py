"""One evolutionary run over (x, age): NSGA-II from pymoo, each child improved by one round of alternate search.

In: a system, the interval of ages, a first fit, a seed. Out: a generation at a time, and the front: members of which none is
better than another in both objectives,

    the weighted loss and regularizers    sum_i v_i l_i(w) + R(w),   v = v*(l(w), age)
    the samples that are left out         sum_i (1 - v_i)

so the front leads from few samples fitted well to all samples fitted as well as can be: an age-path, in which the age is
one more gene.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solvers.active_set.minimize import minimize
from spdsl.solvers.active_set.system import System
from spdsl.solvers.active_set.weighting import FixedWeights
from spdsl.solvers.ages import Ages
from spdsl.solvers.alternate_search.convex import feasible
from spdsl.solvers.alternate_search.start import weighted_fit

__all__ = ["Evolution", "Front"]


@dataclass(frozen=True)
class Front:
    """The members of a front, ascending by age: ages (k,), flat vectors (k, p), objectives (k, 2)."""

    ages: Array
    points: Array
    objectives: Array


class Evolution:
    """A run of NSGA-II; `advance` makes one generation.

    Parameters
    ----------
    first : array (p,)
        The fit that starts the run: one member of the first generation; the others are fits of random weights.
    population : int
        Members of a generation.
    improve : bool
        Give each child one round of alternate search (v* at its age, then the w-problem), as a memetic algorithm does.
    """

    def __init__(
        self, bound: BoundProblem, system: System, ages: Ages, first: Array, population: int, improve: bool, seed: int
    ) -> None:
        self.bound = bound
        self.system = system
        self.ages = ages
        self.improve = improve
        self.evaluations = 0
        rng = np.random.default_rng(seed)
        start = self._first_generation(rng, first, population)
        self.lowest, self.highest = _ranges(start, ages)
        self._algorithm = _nsga2(start, population, self.lowest, self.highest, int(rng.integers(2**31 - 1)))

    def advance(self) -> None:
        """One generation: children, improved and weighed, and the survivors."""
        from pymoo.core.evaluator import Evaluator
        from pymoo.problems.static import StaticProblem

        children = self._algorithm.ask()
        genes = np.asarray(children.get("X"), float)
        if self.improve:
            genes = np.array([self._improved(row) for row in genes])
            children.set("X", genes)
        objectives = np.array([self._objectives(row) for row in genes])
        Evaluator().eval(StaticProblem(self._algorithm.problem, F=objectives), children)
        self._algorithm.tell(infills=children)

    def front(self) -> Front:
        """The non-dominated members so far, one for each age."""
        members = self._algorithm.opt
        genes, objectives = np.asarray(members.get("X"), float), np.asarray(members.get("F"), float)
        order = np.argsort(genes[:, -1], kind="stable")
        order = order[np.concatenate([[True], np.diff(genes[order, -1]) > 0.0])]
        return Front(genes[order, -1], genes[order, :-1], objectives[order])

    # -- members -----------------------------------------------------------------------------------------------------

    def _first_generation(self, rng: np.random.Generator, first: Array, population: int) -> Array:
        ages = np.linspace(self.ages.lower, self.ages.upper, population)
        rows = [np.append(first, ages[-1])]
        n = self.bound.n_samples
        for age in ages[:-1]:
            share = rng.uniform(0.2, 1.0)
            rows.append(np.append(weighted_fit(self.bound, self.system, (rng.random(n) < share).astype(float)), age))
        return np.array(rows)

    def _improved(self, genes: Array) -> Array:
        """The member after one round of alternate search at its own age."""
        x, age = genes[:-1], float(genes[-1])
        convex = self.system.with_weighting(FixedWeights(self.system.weights(x, age)))
        found = minimize(convex, age, feasible(self.system, x))
        x = x if found.failure else found.point.x
        return np.append(x, age)

    def _objectives(self, genes: Array) -> Array:
        x, age = genes[:-1], float(genes[-1])
        self.evaluations += 1
        losses = self.system.losses(x)
        weights = self.system.weights(x, age)
        fit = float(weights @ losses) + self.bound.regularization(x)
        return np.array([fit, float(np.sum(1.0 - weights))])


def _ranges(start: Array, ages: Ages) -> tuple[Array, Array]:
    """Where genes may go: the first generation's ranges, half as wide again on both sides; ages keep to their interval."""
    low, high = start.min(axis=0), start.max(axis=0)
    room = 0.5 * (high - low) + 1e-12 * (1.0 + np.abs(high))
    low, high = low - room, high + room
    low[-1], high[-1] = ages.lower, ages.upper
    return low, high


def _nsga2(start: Array, population: int, low: Array, high: Array, seed: int) -> Any:
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.problem import Problem
    from pymoo.core.termination import NoTermination

    algorithm = NSGA2(pop_size=population, sampling=start)
    problem = Problem(n_var=start.shape[1], n_obj=2, n_constr=0, xl=low, xu=high)
    algorithm.setup(problem, termination=NoTermination(), seed=seed, verbose=False)
    return algorithm

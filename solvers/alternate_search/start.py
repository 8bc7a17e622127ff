"""How a self-paced run starts: the fit of all samples, zero, or the fit of a random subset.

In: the option `start`. Out: a first x, whose losses also resolve ages given in quantiles.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, SolverError
from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solvers.active_set.system import System
from spdsl.solvers.active_set.weighting import FixedWeights
from spdsl.solvers.alternate_search.convex import convex_minimum, feasible
from spdsl.solvers.protocol import option

__all__ = ["check_start", "first_fit", "first_weights", "parse_start", "start_option", "weighted_fit"]

_SUBSET = re.compile(r"subset\(\s*([0-9.eE+-]+)\s*(?:,\s*(?:seed\s*=\s*)?(\d+)\s*)?\)\s*")


def check_start(value: Any) -> str | None:
    """A complaint about the option `start`, or None."""
    try:
        parse_start(value, 0)
    except ValueError as error:
        return str(error)
    return None


def start_option(help: str) -> Any:
    """The option `start` of a back end; `help` says what starts there."""
    return option("full", f"{help}, or subset(share, seed = k)", check=check_start)


def parse_start(value: Any, seed: int) -> tuple[str, float, int]:
    """(kind, share, seed) of `full`, `zero` or `subset(share, seed = k)`, as text or as (name, arguments, keywords)."""
    wanted = f"must be full, zero or subset(share, seed = k), not {value!r}"
    if value in ("full", "zero"):
        return str(value), 1.0, seed
    if isinstance(value, str):
        found = _SUBSET.fullmatch(value.strip())
        if not found:
            raise ValueError(wanted)
        value = ("subset", (float(found[1]),), {"seed": int(found[2])} if found[2] else {})
    if not (isinstance(value, tuple) and len(value) == 3 and value[0] == "subset"):
        raise ValueError(wanted)
    _, arguments, keywords = value
    named = dict(zip(("share", "seed"), arguments)) | dict(keywords)
    if not set(named) <= {"share", "seed"} or "share" not in named:
        raise ValueError(wanted)
    share = float(named["share"])
    if not 0.0 < share <= 1.0:
        raise ValueError(f"takes a share in (0, 1], not {share:.6g}")
    return "subset", share, int(named.get("seed", seed))


def first_fit(bound: BoundProblem, system: System, start: Any, seed: int) -> Array:
    """The x that a run starts from (p,).

    Raises
    ------
    SolverError
        When the fit has no finite optimum.
    """
    weights = first_weights(bound.n_samples, start, seed)
    return feasible(system, np.zeros(system.p)) if weights is None else weighted_fit(bound, system, weights)


def first_weights(n: int, start: Any, seed: int) -> Array | None:
    """The weights (n,) of the fit that a run starts from; None for a start at zero."""
    kind, share, seed = parse_start(start, seed)
    if kind == "zero":
        return None
    weights = np.ones(n)
    if kind == "subset":
        chosen = np.random.default_rng(seed).permutation(n)[: max(1, round(share * n))]
        weights = np.zeros(n)
        weights[chosen] = 1.0
    return weights


def weighted_fit(bound: BoundProblem, system: System, weights: Array) -> Array:
    """The w-problem's optimum at fixed weights."""
    convex = system.with_weighting(FixedWeights(weights))
    minimum = convex_minimum(bound, convex, weights, feasible(system, np.zeros(system.p)))
    if minimum.failure == "unbounded":
        raise SolverError(
            Diagnostic(
                "SPL506",
                "the fit that starts the run has no finite optimum (the classes can be separated, or columns are free)",
                help=("add a regularizer, or start otherwise: `start = zero`",),
            )
        )
    return minimum.point.x

"""The options of the back end `dual_averaging`, and the oracles of biased gradients that can be asked for.

In: what the `solve` statement, Python or the command line says. Out: an `Options`, checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.solvers.protocol import CommonOptions, option

__all__ = ["METHODS", "Noise", "Options", "as_noise"]

METHODS = (
    "dual_averaging",
    "l1_rda",
    "adagrad_rda",
    "ftrl_proximal",
    "projected_subgradient",
    "pgd_step",
    "spgm",
    "sdgm",
    "sfgm",
)


@dataclass(frozen=True)
class Noise:
    """Independent N(mean, deviation^2) in every coordinate of every stochastic gradient."""

    mean: float
    deviation: float


def as_noise(value: Any) -> Noise | None:
    """A `Noise` from ``normal(mean, deviation)`` as the language, the command line or Python gives it.

    Raises
    ------
    ValueError
        When it is none of these.
    """
    if value is None or value == "none" or isinstance(value, Noise):
        return None if value == "none" else value
    arguments: Any = None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*normal\(\s*([^,()]+)\s*,\s*([^,()]+)\s*\)\s*", value)
        arguments = found.groups() if found else None
    elif isinstance(value, tuple) and len(value) == 3 and value[0] == "normal":
        arguments = (*value[1], *dict(value[2]).values())
    elif isinstance(value, tuple) and len(value) == 2:
        arguments = value
    if arguments is None or len(arguments) != 2:
        raise ValueError("must be normal(mean, deviation) or none")
    mean, deviation = (float(item) for item in arguments)
    if not (np.isfinite(mean) and np.isfinite(deviation) and deviation >= 0.0):
        raise ValueError("must have a finite mean and a deviation of at least 0")
    return Noise(mean, deviation)


def _noise_complaint(value: Any) -> str | None:
    try:
        as_noise(value)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def _bias_complaint(value: Any) -> str | None:
    if callable(value):
        return None
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        return "must be a number, an array with an entry for each coordinate, or a function of (step, w)"
    return None if numbers.ndim <= 1 and bool(np.all(np.isfinite(numbers))) else "must be finite, a number or a vector"


def _at_least(low: float) -> Callable[[Any], str | None]:
    return lambda value: None if value is None or value >= low else f"must be at least {low:g}"


def _positive(value: Any) -> str | None:
    return None if value is None or value > 0 else "must be positive"


@dataclass(frozen=True)
class Options(CommonOptions):
    """Options of `dual_averaging`."""

    method: str = option(
        "dual_averaging",
        "which method: dual averaging (interpolated or plain), l1-RDA, AdaGrad-RDA, FTRL-Proximal, the projected "
        "subgradient method of [DA] eq. 11, PGD_step, or the stochastic primal, dual and fast gradient methods",
        METHODS,
    )
    interpolate: bool | None = option(
        None,
        "take gradients at the interpolated w (its last value then converges at the optimal rate) instead of at the "
        "dual iterate; none: true for dual_averaging and projected_subgradient, false for adagrad_rda",
    )
    weights: str = option(
        "uniform", "weights a_k of the steps: 1, or k + 1 (forgets the start sooner)", ("uniform", "linear")
    )
    output: str = option(
        "auto",
        "which point is the answer: the individual iterate at which gradients are taken, the weighted average of the "
        "dual iterates, or the dual iterate itself (the sparse one); auto: the one that the method's theory is about",
        ("auto", "individual", "average", "dual"),
    )
    passes: float = option(10.0, "passes over the data", check=_positive)
    steps: int | None = option(None, "steps to make, instead of `passes`", check=_at_least(1))
    batch: int = option(1, "samples in a step", check=_at_least(1))
    order: str = option(
        "shuffle",
        "samples in a fresh random order every pass, in independent uniform draws (what the theory assumes), or as "
        "they lie",
        ("shuffle", "uniform", "sequential"),
    )
    gamma: float | None = option(
        None,
        "scale of the prox-function's weight gamma_k = gamma sqrt(k + 1); larger means shorter steps; none: tuned on "
        "short trial runs",
        check=_positive,
    )
    delta: float = option(1.0, "AdaGrad and FTRL: added to the root of the sum of squares", check=_at_least(0.0))
    smoothness: float = option(
        0.0, "spgm, sdgm, sfgm: the constant L of the (delta, L)-oracle, added to the weights", check=_at_least(0.0)
    )
    box: bool = option(
        True, "add the box of [DA] Lemma 3, |w_j| <= F(0) / rho, where the L1 norm and losses >= 0 imply it"
    )
    gradient_bias: Any = option(
        0.0,
        "added to every stochastic gradient: a number, a vector, or from Python a function of (step, w)",
        check=_bias_complaint,
    )
    gradient_noise: Any = option(
        None, "normal(mean, deviation): drawn for every coordinate of every stochastic gradient", check=_noise_complaint
    )
    tolerance: float = option(
        0.0,
        "stop when the duality gap, or without one the progress between looks, falls below this share of the objective",
        check=_at_least(0.0),
    )
    gap: bool = option(False, "compute a duality gap at every look (keeps three numbers for each sample)")
    looks: int = option(40, "how often the objective is looked at, at log-spaced steps", check=_at_least(0))
    bound: bool = option(
        False,
        "with a constant bias: solve the two linear programs that give the optimum and the plateau, and report the "
        "bound line of [DA] Theorem 2 with its constants",
    )
    lazy: bool = option(True, "steps of O(nonzeros) where they are exact; false: O(features), for comparison")
    resume: str = option("", "file of a run that was saved with `save`, to go on from")
    save: str = option("", "file to save the run to, to go on later with the same bits")

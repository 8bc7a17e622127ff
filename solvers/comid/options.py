"""The options of the back end `comid`, and what they mean to the engines.

In: names and values as a `solve` statement gives them. Out: `Settings` for a metric, a `VectorMirror` for a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from spdsl.solvers.comid.divergences import DIVERGENCES, Divergence, Penalty, divergence_named
from spdsl.solvers.comid.engine import AVERAGES, SCHEDULES, Settings
from spdsl.solvers.comid.vector import MIRRORS
from spdsl.solvers.protocol import CommonOptions, option

__all__ = ["ComidOptions", "divergence_of", "mirror_of", "settings_of"]

_AS_MIRROR = {"squared_frobenius": "euclidean", "von_neumann": "entropic", "schatten": "p_norm"}


def _check_divergence(value: Any) -> str | None:
    name, arguments, named = value if isinstance(value, tuple) else (value, (), {})
    known = {**DIVERGENCES, **dict.fromkeys(MIRRORS)}
    if name not in known:
        return f"can't be {name!r}; it can be {', '.join(known)}, where schatten and p_norm take p, as in schatten(1.5)"
    if name not in ("schatten", "p_norm"):
        return f"takes no arguments with {name}" if arguments or named else None
    numbers = [*arguments, *named.values()]
    if len(numbers) > 1 or set(named) - {"p"} or not all(isinstance(p, int | float) and p > 1 for p in numbers):
        return f"takes {name}(p) with one number p > 1"
    return None


def _positive(value: float) -> str | None:
    return None if 0 < value < float("inf") else "must be positive and finite"


def _at_least_one(value: int) -> str | None:
    return None if value >= 1 else "must be at least 1"


@dataclass(frozen=True)
class ComidOptions(CommonOptions):
    """Options of `comid`."""

    divergence: str | tuple[Any, ...] = option(
        "squared_frobenius",
        "the mirror map: squared_frobenius, von_neumann, burg or schatten(p) for a metric; euclidean, entropic or "
        "p_norm(p) for a vector. squared_frobenius and schatten give low rank, von_neumann and burg only shrink",
        check=_check_divergence,
    )
    step: float = option(
        0.1,
        "step length at t = 1, for the loss's sum times T / batch, so it suits losses divided by T",
        check=_positive,
    )
    schedule: str = option("sqrt", "step lengths: step/sqrt(t), step, or step/t", choices=SCHEDULES)
    passes: int = option(5, "passes over the samples", check=_at_least_one)
    batch: int = option(1, "samples a step; their gradients are averaged", check=_at_least_one)
    average: str = option(
        "none",
        "which iterate is the answer: the last (none), the mean (uniform), or the mean with weights t (linear); a mean "
        "is nearer the optimum but not of low rank",
        choices=AVERAGES,
    )
    polish: bool = option(
        False,
        "after the passes go on to the optimum itself, by ADMM from the point that they reached; for metrics "
        "of up to about a hundred features",
    )
    tolerance: float = option(1e-8, "scaled residual at which polishing ends", check=_positive)
    polish_limit: int = option(20_000, "iterations of polishing at most", check=_at_least_one)
    shuffle: bool = option(True, "draw a new order of the samples for each pass")
    scale: str = option(
        "none",
        "divide the pairs' differences by their median norm before learning (median), or solve the model as written "
        "(none); with median, rho means rho per squared median",
        choices=("none", "median"),
    )


def divergence_of(options: ComidOptions) -> Divergence:
    """The divergence for a metric; a vector's names stand for their matrix twins."""
    name, p = _name_and_p(options)
    twins = {vector: matrix for matrix, vector in _AS_MIRROR.items()}
    return divergence_named(twins.get(name, name), p)


def mirror_of(options: ComidOptions) -> tuple[str, float]:
    """The mirror map's name and p for a vector; a matrix's names stand for their vector twins."""
    name, p = _name_and_p(options)
    return _AS_MIRROR.get(name, name), 1.5 if p is None else p


def settings_of(options: ComidOptions, penalty: Penalty, mu_lower: float, mu_upper: float) -> Settings:
    """The metric engine's settings."""
    return Settings(
        divergence=divergence_of(options),
        penalty=penalty,
        step=float(options.step),
        schedule=cast(Literal["sqrt", "constant", "inverse"], options.schedule),
        batch=int(options.batch),
        average=cast(Literal["none", "uniform", "linear"], options.average),
        mu_lower=mu_lower,
        mu_upper=mu_upper,
    )


def _name_and_p(options: ComidOptions) -> tuple[str, float | None]:
    value = options.divergence
    if not isinstance(value, tuple):
        return str(value), None
    name, arguments, named = value
    numbers = [*arguments, *named.values()]
    return str(name), float(numbers[0]) if numbers else None

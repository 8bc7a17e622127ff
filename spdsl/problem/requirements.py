"""What a derivation took for granted, checked against the values that a problem is bound to.

In: a `BoundProblem`. Out: sentences for what doesn't hold: a sign on which a proof of convexity rests, pieces that
come in another order than derived, an f(v, lambda) that is no SP-regularizer for these parameters. Compiling again
for these values (`spdsl.compiler.compile_text(..., parameters=...)`) settles all that concerns parameters; data that
fail are an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spdsl.diagnostics import DataError, Diagnostic
from spdsl.problem.expressions import Expression, evaluate, names, text
from spdsl.problem.functions import ScalarFunction
from spdsl.problem.regularizers import GroupNorm
from spdsl.problem.self_paced import SelfPaced

if TYPE_CHECKING:
    from spdsl.problem.bound import BoundProblem

__all__ = ["Range", "Requirement", "disorder", "require_met", "unmet"]


@dataclass(frozen=True)
class Requirement:
    """What must have a sign in every element: a datum, a parameter, or an `expression` of them named by its text."""

    name: str
    sign: Literal["nonnegative", "nonpositive"]
    reason: str
    expression: Expression | None = None


@dataclass(frozen=True)
class Range:
    """An argument (a number made of parameters, data and sizes) with a range; `what` it is, and what is `wanted`."""

    what: str
    wanted: str
    expression: Expression
    low: float | None = None
    high: float | None = None
    open_low: bool = False


def unmet(bound: BoundProblem) -> list[str]:
    """Sentences for everything that the derivation rests on and that these values break; usually none."""
    problem = bound.problem
    complaints = [
        found
        for item in problem.requirements
        if (found := _out_of_range(item, bound) if isinstance(item, Range) else _wrong_sign(item, bound))
    ]
    complaints += _broken_groups(bound)
    if complaints:
        return complaints  # the pieces of a function that isn't defined for these values say nothing
    functions = [] if problem.loss is None else [problem.loss.function]
    functions += [item.function for item in problem.regularizers if hasattr(item, "function")]
    for function in functions:
        if function.kernel is not None:
            complaints += _wrong_pieces(function, bound)
    if problem.self_paced is not None:
        complaints += _no_regularizer(problem.self_paced, bound)
    return complaints


def require_met(bound: BoundProblem) -> None:
    """Complain of what `unmet` finds.

    Raises
    ------
    DataError
        With a complaint for each.
    """
    complaints = unmet(bound)
    if complaints:
        raise DataError([Diagnostic("SPL432", complaint, help=(_mend(complaint),)) for complaint in complaints])


def _mend(complaint: str) -> str:
    if "pieces" in complaint or "kinks" in complaint:
        return "where rows need other pieces each, split the loss into a sum"
    return "give other values"


def _broken_groups(bound: BoundProblem) -> list[str]:
    """Lengths of groups that make none."""
    found = []
    for item in bound.problem.regularizers:
        if isinstance(item, GroupNorm):
            groups = np.asarray(evaluate(item.groups, bound.values), float)
            if groups.ndim:  # a label for each coefficient: any number is one
                continue
            length = float(groups)
            if not (np.isfinite(length) and length >= 1.0 and length == np.floor(length)):
                found.append(
                    f"`{text(item.groups)}`, the length of the groups, is a whole number from 1 on, not {length:.6g}"
                )
    return found


def _wrong_sign(item: Requirement, bound: BoundProblem) -> str:
    value = bound.values[item.name] if item.expression is None else evaluate(item.expression, bound.values)
    numbers = np.asarray(value.data if hasattr(value, "tocsr") else value, float)
    bad = numbers < 0 if item.sign == "nonnegative" else numbers > 0
    if not bad.any():
        return ""
    worst = float(numbers.flat[int(np.argmax(bad))])
    return f"`{item.name}` has to be {item.sign} ({item.reason}), and it is {worst:.6g}"


def _out_of_range(item: Range, bound: BoundProblem) -> str:
    if not names(item.expression) <= set(bound.values):
        return ""  # it moves with the age
    value = float(evaluate(item.expression, bound.values))
    low = -np.inf if item.low is None else item.low
    high = np.inf if item.high is None else item.high
    if value < low or value > high or np.isnan(value) or (item.open_low and value == low):
        return f"{item.what} {item.wanted}, and it is {value:.6g}"
    return ""


ROWS = 100_000  # of parameters that differ from sample to sample, at most so many are held against the formula


def _wrong_pieces(function: ScalarFunction, bound: BoundProblem) -> list[str]:
    """Hold the pieces against the formula, for every row of the parameters' values."""
    kernel = function.kernel
    assert kernel is not None
    theta = _thinned(bound.parameters_of(function))
    row = disorder(function, theta)
    if row is not None:
        return [f"the kinks of {_shown(function, _row(theta, row))} come in another order than was derived"]
    rows = max([1, *(np.size(value) for value in theta)])
    scale = np.ones(rows)
    for border in kernel.breaks(*theta):
        scale = np.maximum(scale, np.abs(border))
    for share in _SHARES:
        z = scale * share
        values: dict[str, Any] = {**dict(zip(function.parameters, theta)), function.arguments[0]: z}
        with np.errstate(all="ignore"):
            expected = np.broadcast_to(evaluate(function.body, values), z.shape)
        piece = kernel.piece(z, *theta)
        found = kernel.value(piece, z, *theta)
        bad = np.isfinite(expected) & ~np.isclose(found, expected, rtol=1e-8, atol=1e-9)
        if bad.any():
            shown = _shown(function, _row(theta, int(np.argmax(bad))))
            return [f"the pieces of {shown} are others than those that were derived"]
        curvature = kernel.curvature(piece, z, *theta)
        bad = np.isfinite(expected) & (curvature < -1e-9)
        if function.convexity == "convex" and bad.any():
            shown = _shown(function, _row(theta, int(np.argmax(bad))))
            return [f"{shown} is not convex: its curvature is {float(curvature[bad][0]):.6g} somewhere"]
    return []


_SHARES = (-2.71, -1.37, -1.003, -0.997, -0.73, -0.41, -0.13, -0.007, 0.007, 0.17, 0.43, 0.69, 0.996, 1.002, 1.41, 2.73)
"""Places of the argument, in units of the outermost kink; irregular, so that none is a kink."""


def _thinned(theta: tuple[Any, ...]) -> tuple[Any, ...]:
    rows = max([1, *(np.size(value) for value in theta)])
    step = -(-rows // ROWS)
    return tuple(value if np.ndim(value) == 0 else value[::step] for value in theta)


def disorder(function: ScalarFunction, theta: tuple[Any, ...]) -> int | None:
    """The first row of parameters at which the borders between pieces are not ascending, None when there is none."""
    assert function.kernel is not None
    borders = function.kernel.breaks(*theta)
    if not borders:
        return None
    places = np.stack(np.broadcast_arrays(*map(np.atleast_1d, borders)))
    bad = np.isnan(places).any(axis=0)
    bad |= (places[1:] < places[:-1] - 1e-12 * np.maximum(1.0, np.abs(places[1:]))).any(axis=0)
    return int(np.argmax(bad)) if bad.any() else None


def _row(theta: tuple[Any, ...], row: int) -> tuple[float, ...]:
    return tuple(float(value if np.ndim(value) == 0 else value[row]) for value in theta)


def _shown(function: ScalarFunction, theta: tuple[float, ...]) -> str:
    named = ", ".join(f"{name} = {value:.6g}" for name, value in zip(function.parameters, theta))
    return f"`{text(function.body)}` at {named}" if named else f"`{text(function.body)}`"


def _no_regularizer(item: SelfPaced, bound: BoundProblem) -> list[str]:
    """f has to be convex in v and v* to minimize v l + f, on a grid of ages, losses and weights."""
    kernel = item.kernel
    assert kernel is not None
    theta = bound.weight_parameters()
    v = np.linspace(0.0, 1.0, 101)[1:]
    low, high = item.age_range
    ages = np.geomspace(1e-2, 1e2, 9) if np.isinf(high) else low + (high - low) * np.linspace(0.05, 0.95, 9)
    named = ", ".join(f"{name} = {value:.6g}" for name, value in zip(item.parameters, theta))
    shown = f"`{item.name}`" + (f" at {named}" if named else "")
    for age in ages:
        f = kernel.regularizer(v, float(age), *theta)
        if not np.isfinite(f).all():
            return [f"f(v, lambda) of {shown} is not a number at lambda = {age:.6g}"]
        if (np.diff(f, 2) < -1e-9 * max(1.0, float(np.abs(f).max()))).any():
            return [f"f(v, lambda) of {shown} is not convex in v at lambda = {age:.6g}"]
        losses = float(age) * np.array([0.0, 0.3, 0.9, 1.5, 5.0])
        best = kernel.weight(kernel.piece(losses, float(age), *theta), losses, float(age), *theta)
        mine = best * losses + kernel.regularizer(best, float(age), *theta)
        least = np.min(v[:, None] * losses + f[:, None], axis=0)
        if not (mine <= least + 1e-8 * (1.0 + np.abs(least))).all():
            return [f"the sample weights of {shown} are others than those that were derived"]
        if best[0] < 1.0 - 1e-6:
            return [f"{shown} is no self-paced regularizer: v* = {best[0]:.6g} at loss 0, where it has to be 1"]
    return []

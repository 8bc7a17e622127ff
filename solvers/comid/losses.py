"""Losses of the margin z = y (mu - u'Mu): value, derivative and the interval on which the derivative is zero.

In: margins. Out: phi(z) and phi'(z). A pair whose margin lies on the flat interval asks for no gradient: there a
step of COMID only shrinks. Losses of one's own are a `MarginLoss` with two functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError, nearest_name
from spdsl.problem.functions import Array

__all__ = ["LOSSES", "MarginLoss", "loss_named"]


@dataclass(frozen=True)
class MarginLoss:
    """A convex loss of the margin.

    Attributes
    ----------
    value, derivative : callable
        phi and phi', from an array of any shape to the same shape; any subgradient at a kink.
    flat : tuple of float
        phi' = 0 exactly for ``flat[0] <= z < flat[1]``; (inf, inf) when it vanishes nowhere.
    """

    name: str
    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    flat: tuple[float, float] = (np.inf, np.inf)


def _softplus(z: Array) -> Array:
    return np.logaddexp(0.0, z)


def _sigmoid(z: Array) -> Array:
    z = np.asarray(z, float)
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)


def _exp(z: Array) -> Array:
    return np.exp(np.minimum(z, 700.0))


def _smoothed_hinge(z: Array) -> Array:
    gap = 1.0 - np.asarray(z, float)
    return np.where(gap >= 1.0, gap - 0.5, 0.5 * np.maximum(gap, 0.0) ** 2)


LOSSES: dict[str, MarginLoss] = {
    loss.name: loss
    for loss in (
        MarginLoss("hinge", lambda z: np.maximum(1.0 - z, 0.0), lambda z: np.where(z < 1.0, -1.0, 0.0), (1.0, np.inf)),
        MarginLoss(
            "squared_hinge",
            lambda z: 0.5 * np.maximum(1.0 - z, 0.0) ** 2,
            lambda z: -np.maximum(1.0 - z, 0.0),
            (1.0, np.inf),
        ),
        MarginLoss("smoothed_hinge", _smoothed_hinge, lambda z: -np.clip(1.0 - z, 0.0, 1.0), (1.0, np.inf)),
        MarginLoss("logistic", lambda z: _softplus(-z), lambda z: -_sigmoid(-z)),
        MarginLoss("exponential", lambda z: _exp(-z), lambda z: -_exp(-z)),
    )
}


def loss_named(name: str | MarginLoss) -> MarginLoss:
    """The loss of that name (``squared_hinge`` is (1 - z)+^2 / 2), or the one given.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    if isinstance(name, MarginLoss):
        return name
    if name not in LOSSES:
        near = nearest_name(name, LOSSES)
        helps = ((f"did you mean `{near}`?",) if near else ()) + (f"one of: {', '.join(LOSSES)}",)
        raise UsageError(Diagnostic("SPL561", f"there is no margin loss called `{name}`", help=helps))
    return LOSSES[name]

"""Sample weights as the row blocks use them: v*(l, age) of the SP-regularizer, or weights held fixed.

In: losses and an age. Out: bands (the pieces of v*), weights and their two derivatives, the borders of the bands.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array

__all__ = ["FixedWeights", "IntArray", "SelfPacedWeights", "Weighting"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]


class Weighting(Protocol):
    """How a sample's loss is weighed. `band` are labels of pieces of v*, by ascending loss."""

    n_bands: int
    names: tuple[str, ...]
    continuous: bool

    def borders(self, age: float) -> tuple[Array, Array]:
        """The n_bands - 1 loss thresholds and their derivatives by the age."""

    def band(self, loss: Array, age: float) -> IntArray:
        """Labels of the pieces of v* that hold the losses."""

    def evaluate(self, band: IntArray, loss: Array, age: float) -> tuple[Array, Array, Array]:
        """v, dv/dl and dv/dage by the pieces with labels `band`."""


class SelfPacedWeights:
    """v*(l, age) of a bound problem's SP-regularizer."""

    def __init__(self, bound: BoundProblem) -> None:
        self_paced = bound.problem.self_paced
        assert self_paced is not None
        assert self_paced.kernel is not None
        self.kernel = self_paced.kernel
        self.theta = bound.weight_parameters()
        self.n_bands = self.kernel.n_pieces
        self.names = self.kernel.names
        self.continuous = self.kernel.continuous
        self._borders: tuple[float, Array, Array] | None = None  # at the age asked for last

    def borders(self, age: float) -> tuple[Array, Array]:
        """Thresholds and their slopes; the slopes by central differences (they only steer Newton and predictors)."""
        if self._borders is not None and self._borders[0] == age:
            return self._borders[1:]
        here = np.asarray(self.kernel.breaks(age, *self.theta), float)
        if here.size == 0:
            return here, here
        step = 1e-5 * age
        above = np.asarray(self.kernel.breaks(age + step, *self.theta), float)
        below = np.asarray(self.kernel.breaks(age - step, *self.theta), float)
        with np.errstate(invalid="ignore"):
            slope = (above - below) / (2.0 * step)
        slope = np.where(np.isfinite(slope), slope, 0.0)
        self._borders = (age, here, slope)
        return here, slope

    def band(self, loss: Array, age: float) -> IntArray:
        """Labels of the pieces of v*."""
        return np.asarray(self.kernel.piece(loss, age, *self.theta), np.int64)

    def evaluate(self, band: IntArray, loss: Array, age: float) -> tuple[Array, Array, Array]:
        """v, dv/dl, dv/dage."""
        weight = self.kernel.weight(band, loss, age, *self.theta)
        by_loss = self.kernel.dloss(band, loss, age, *self.theta)
        by_age = self.kernel.dage(band, loss, age, *self.theta)
        return _like(weight, loss), _like(by_loss, loss), _like(by_age, loss)


def _like(values: Array, loss: Array) -> Array:
    return values if np.shape(values) == loss.shape else np.broadcast_to(np.asarray(values, float), loss.shape)


class FixedWeights:
    """Weights that depend on nothing: the w-problem of alternate convex search, or a model without ages (all ones)."""

    n_bands = 1
    names: tuple[str, ...] = ("E",)
    continuous = True

    def __init__(self, weights: Array) -> None:
        self.weights = weights
        self._zeros = np.zeros_like(weights)

    def borders(self, age: float) -> tuple[Array, Array]:
        """No thresholds."""
        return np.zeros(0), np.zeros(0)

    def band(self, loss: Array, age: float) -> IntArray:
        """One band."""
        return np.zeros(loss.shape, np.int64)

    def evaluate(self, band: IntArray, loss: Array, age: float) -> tuple[Array, Array, Array]:
        """The weights and zeros."""
        return self.weights, self._zeros, self._zeros

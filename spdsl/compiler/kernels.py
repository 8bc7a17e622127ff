"""Kernels of a derived function or of derived weights, loaded from their generated source.

In: a `Stored` derivation. Out: objects that fulfil `PieceKernel` and `WeightKernel`, and that can be pickled (their
sources travel with them). Only the generated functions know formulas; here they are applied by label, elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spdsl.compiler.store import Stored
from spdsl.problem.functions import Array, CompiledKernel

__all__ = ["GeneratedPieceKernel", "GeneratedWeightKernel"]

SMALLEST_BORDER = 1e-300

Labels = Any  # an int or an int8 array (n,)


class GeneratedPieceKernel:
    """Vectorized kernels of a PC^r function (see `spdsl.problem.PieceKernel`)."""

    def __init__(self, stored: Stored) -> None:
        namespace = stored.namespace()
        self.stored = stored
        self.n_pieces: int = namespace["n_pieces"]
        self.kinked: tuple[bool, ...] = namespace["kinked"]
        self._breaks = namespace["breaks"]
        self._values: Sequence[Any] = [namespace[f"value_{k}"] for k in range(self.n_pieces)]
        self._slopes: Sequence[Any] = [namespace[f"slope_{k}"] for k in range(self.n_pieces)]
        self._curvatures: Sequence[Any] = [namespace[f"curvature_{k}"] for k in range(self.n_pieces)]
        self._compiled: CompiledKernel | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stored,)

    def breaks(self, *theta: Any) -> tuple[Any, ...]:
        """The borders, ascending."""
        with np.errstate(all="ignore"):
            return tuple(self._breaks(*_numbers(theta)))

    def piece(self, z: Array, *theta: Any) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Labels of the pieces that hold `z`; at a border that of the right-hand piece."""
        label = np.zeros(np.shape(z), np.int8)
        for border in self.breaks(*theta):
            label += np.asarray(z) >= border
        return label

    def value(self, piece: Labels, z: Array, *theta: Any) -> Array:
        """The selection functions `piece` at `z`."""
        return _by_label(self._values, piece, z, theta)

    def slope(self, piece: Labels, z: Array, *theta: Any) -> Array:
        """Their first derivatives."""
        return _by_label(self._slopes, piece, z, theta)

    def curvature(self, piece: Labels, z: Array, *theta: Any) -> Array:
        """Their second derivatives."""
        return _by_label(self._curvatures, piece, z, theta)

    def compiled(self) -> CompiledKernel:
        """The numba twin."""
        if self._compiled is None:
            self._compiled = self.stored.compiled()
        return self._compiled

    def fused(self, weights: Any) -> Any:
        """Compiled loops over the samples of this loss with these weights; None where there are none."""
        if not isinstance(weights, GeneratedWeightKernel):
            return None
        from spdsl.compiler.fused import fused_loops

        return fused_loops(self.stored, weights.stored)


class GeneratedWeightKernel:
    """Vectorized kernels of v*(l, lambda) (see `spdsl.problem.WeightKernel`)."""

    def __init__(self, stored: Stored) -> None:
        namespace = stored.namespace()
        self.stored = stored
        self.n_pieces: int = namespace["n_pieces"]
        self.names: tuple[str, ...] = namespace["names"]
        self.continuous: bool = namespace["continuous"]
        self._breaks = namespace["breaks"]
        self._weights: Sequence[Any] = [namespace[f"weight_{k}"] for k in range(self.n_pieces)]
        self._by_loss: Sequence[Any] = [namespace[f"dloss_{k}"] for k in range(self.n_pieces)]
        self._by_age: Sequence[Any] = [namespace[f"dage_{k}"] for k in range(self.n_pieces)]
        self._regularizer = namespace["regularizer"]
        self._compiled: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stored,)

    def breaks(self, age: float, *theta: float) -> tuple[float, ...]:
        """The loss thresholds, ascending."""
        with np.errstate(all="ignore"):
            return tuple(float(border) for border in self._breaks(*_numbers((age, *theta))))

    def piece(self, loss: Array, age: float, *theta: float) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Labels of the pieces that hold `loss`; at a border that of the larger losses.

        A loss of 0 is in even where the first border underflows to 0 (ages below 1e-150).
        """
        label = np.zeros(np.shape(loss), np.int8)
        for border in self.breaks(age, *theta):
            label += np.asarray(loss) >= max(border, SMALLEST_BORDER)
        return label

    def weight(self, piece: Labels, loss: Array, age: float, *theta: float) -> Array:
        """v* by the pieces `piece`."""
        return _by_label(self._weights, piece, loss, (age, *theta))

    def dloss(self, piece: Labels, loss: Array, age: float, *theta: float) -> Array:
        """Derivative by the loss."""
        return _by_label(self._by_loss, piece, loss, (age, *theta))

    def dage(self, piece: Labels, loss: Array, age: float, *theta: float) -> Array:
        """Derivative by the age."""
        return _by_label(self._by_age, piece, loss, (age, *theta))

    def regularizer(self, weight: Array, age: float, *theta: float) -> Array:
        """f(v, lambda)."""
        with np.errstate(all="ignore"):
            found = self._regularizer(np.asarray(weight, float), *_numbers((age, *theta)))
        return _filled(found, np.shape(weight))

    def compiled(self) -> Any:
        """The numba twin."""
        if self._compiled is None:
            self._compiled = self.stored.compiled()
        return self._compiled


def _by_label(functions: Sequence[Any], piece: Labels, z: Any, theta: tuple[Any, ...]) -> Array:
    """Each element by the function that its label names; a label that no element has costs nothing."""
    z = np.asarray(z, float)
    theta = _numbers(theta)
    with np.errstate(all="ignore"):  # a selection function may leave its domain outside its own piece
        if np.ndim(piece) == 0:
            return _filled(functions[int(piece)](z, *theta), z.shape)
        if len(functions) == 1:
            return _filled(functions[0](z, *theta), z.shape)
        if len(functions) <= 3 and not any(_is_implicit(function) for function in functions):
            # Closed forms: all of them everywhere cost less than gathering each one's elements.
            found = functions[0](z, *theta)
            for label, function in enumerate(functions[1:], 1):
                found = np.where(piece == label, function(z, *theta), found)
            return _filled(found, z.shape)
        result = np.empty(z.shape)
        for label, function in enumerate(functions):
            mine = piece == label
            if mine.any():
                own = tuple(value[mine] if np.ndim(value) else value for value in theta)
                result[mine] = function(z[mine], *own)
        return result


def _is_implicit(function: Any) -> bool:
    """Does it solve for v*, which is worth doing for its own elements only?"""
    names = function.__code__.co_names
    return "_solve" in names or any(name.startswith("weight_") for name in names)


def _numbers(theta: tuple[Any, ...]) -> tuple[Any, ...]:
    """NumPy numbers: where a Python float raises OverflowError they give inf."""
    if all(type(value) in (np.float64, np.ndarray) for value in theta):
        return theta
    return tuple(np.float64(value) if np.ndim(value) == 0 else value for value in theta)


def _filled(value: Any, shape: tuple[int, ...]) -> Array:
    """An array of its own in the given shape: constant formulas give a number."""
    value = np.asarray(value, float)
    return value if value.shape == shape else np.broadcast_to(value, shape).copy()

"""PC^r functions of one predictor (GAGA, Definition 1): pieces, kinks and the kernels that evaluate them.

In: what the compiler derived from a formula. Out: to people the pieces as text and LaTeX, to back ends a `PieceKernel`.
No sympy object is kept: formulas are text, so that a cached model loads without importing sympy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from spdsl.problem.expressions import Expression

__all__ = ["Array", "CompiledKernel", "Formula", "Kink", "Piece", "PieceKernel", "ScalarFunction"]

Array: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True)
class Formula:
    """A derived formula, as text in the language's spelling and as LaTeX."""

    text: str
    latex: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Piece:
    """One selection function: valid for ``lower <= z <= upper`` (None: unbounded)."""

    lower: Formula | None
    upper: Formula | None
    value: Formula
    slope: Formula
    curvature: Formula


@dataclass(frozen=True)
class Kink:
    """A border between two pieces; `smooth` says that the first derivative is continuous there."""

    at: Formula
    left_slope: Formula
    right_slope: Formula
    smooth: bool


class CompiledKernel(Protocol):
    """numba functions of one sample: ``f(z, theta) -> float`` with `theta` the sample's row of parameters
    (float64[:])."""

    value: Any
    slope: Any
    curvature: Any


class PieceKernel(Protocol):
    """Vectorized NumPy kernels of a PC^r function of one argument.

    `z` is an array of shape (n,); each of `theta` (in the order of `ScalarFunction.parameters`) a float or an
    array (n,).
    Labels count pieces from the left, from 0; at a border between two pieces the label is that of the right-hand piece.
    """

    n_pieces: int
    kinked: tuple[bool, ...]  # for each of the n_pieces - 1 borders: is the slope discontinuous there?

    def breaks(self, *theta: Any) -> tuple[Any, ...]:
        """The n_pieces - 1 borders, ascending, each a float or an array (n,)."""

    def piece(self, z: Array, *theta: Any) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Labels of the pieces that hold `z`."""

    def value(self, piece: Any, z: Array, *theta: Any) -> Array:
        """The selection functions with labels `piece` (an int or an array), also outside their own interval."""

    def slope(self, piece: Any, z: Array, *theta: Any) -> Array:
        """Their first derivatives."""

    def curvature(self, piece: Any, z: Array, *theta: Any) -> Array:
        """Their second derivatives."""

    def compiled(self) -> CompiledKernel:
        """The numba twin (compiled or loaded from the cache on first call)."""


@dataclass(frozen=True)
class ScalarFunction:
    """A PC^r function phi(z_1, ..., z_k; theta), applied elementwise.

    Attributes
    ----------
    body : Expression
        The formula in the atoms of the language, over `arguments` and `parameters`; the reference translates this one.
    arguments : tuple of str
        Names of the predictors; one for all but ``max`` of several predictors.
    parameters : tuple of str
        Names of the parameters theta.
    values : tuple of Expression
        What each parameter is, over data, parameters and sizes; evaluates to a float or an array (n,).
    pieces, kinks : tuple
        The selection functions and the borders between them (one argument only; for several, pieces have no bounds).
    convexity : str
        ``"convex"``, ``"assumed"`` (the user said so).
    kernel : PieceKernel or None
        None only for several arguments.
    """

    body: Expression
    arguments: tuple[str, ...]
    parameters: tuple[str, ...]
    values: tuple[Expression, ...]
    pieces: tuple[Piece, ...]
    kinks: tuple[Kink, ...]
    convexity: str = "convex"
    kernel: PieceKernel | None = field(default=None, compare=False, repr=False)

    @property
    def is_quadratic(self) -> bool:
        """One piece whose curvature is free of the argument."""
        return len(self.pieces) == 1 and len(self.arguments) == 1 and self.curvature_is_constant

    @property
    def curvature_is_constant(self) -> bool:
        """No piece's curvature depends on the argument (piecewise quadratic or linear)."""
        import re

        word = re.compile(rf"\b{re.escape(self.arguments[0])}\b")
        return all(not word.search(piece.curvature.text) for piece in self.pieces)

    @property
    def is_smooth(self) -> bool:
        """Continuously differentiable."""
        return all(kink.smooth for kink in self.kinks)

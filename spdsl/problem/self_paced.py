"""Self-paced regularizers f(v, lambda) and the sample weights v*(l, lambda) that follow from them (GAGA, Definition 2).

In: what the compiler derived from f. Out: to people formulas, partition and verdicts on the axioms; to back ends a
`WeightKernel`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from spdsl.problem.expressions import Expression
from spdsl.problem.functions import Array, Formula

__all__ = ["AxiomVerdict", "SelfPaced", "WeightKernel", "WeightPiece"]


@dataclass(frozen=True)
class WeightPiece:
    """One piece of v*: valid for losses in ``[lower, upper)``; `name` is its letter in GAGA's partition (E, M, D)."""

    name: str
    lower: Formula | None
    upper: Formula | None
    weight: Formula | None  # None: no closed form, found by Newton on l + f'(v) = 0
    dloss: Formula | None
    dage: Formula | None


@dataclass(frozen=True)
class AxiomVerdict:
    """The verdict on one axiom of Definition 2."""

    axiom: str  # "(i) f convex in v", ...
    verdict: Literal["proved", "refuted", "checked numerically", "warning"]
    reason: str
    counterexample: dict[str, float] | None = None


class WeightKernel(Protocol):
    """Vectorized NumPy kernels of v*(l, lambda).

    `loss` is an array (n,), `age` a float, `theta` floats (the parameters of f). Labels count pieces by ascending loss.
    """

    n_pieces: int
    names: tuple[str, ...]  # one letter a piece: E (in, v > 0 and below the first border), M, D (out)
    continuous: bool  # False for hard: v* jumps at a border

    def breaks(self, age: float, *theta: float) -> tuple[float, ...]:
        """The n_pieces - 1 loss thresholds, ascending (inf allowed)."""

    def piece(self, loss: Array, age: float, *theta: float) -> np.ndarray[Any, np.dtype[np.int8]]:
        """Labels of the pieces that hold `loss`."""

    def weight(self, piece: Any, loss: Array, age: float, *theta: float) -> Array:
        """v* by the pieces with labels `piece`, in [0, 1] on their own interval."""

    def dloss(self, piece: Any, loss: Array, age: float, *theta: float) -> Array:
        """Derivative of v* by the loss."""

    def dage(self, piece: Any, loss: Array, age: float, *theta: float) -> Array:
        """Derivative of v* by the age."""

    def regularizer(self, weight: Array, age: float, *theta: float) -> Array:
        """f(v, lambda)."""

    def compiled(self) -> Any:
        """The numba twin: ``weight, dloss, dage (loss, age, theta) -> float`` with `theta` float64[:]."""


@dataclass(frozen=True)
class SelfPaced:
    """A self-paced regularizer with its derived weights.

    Attributes
    ----------
    name : str
        As in the model file.
    formula : Formula
        f(v, lambda).
    parameters, values :
        Names of f's own parameters and what they are (floats once evaluated).
    pieces : tuple of WeightPiece
    axioms : tuple of AxiomVerdict
    """

    name: str
    formula: Formula
    parameters: tuple[str, ...]
    values: tuple[Expression, ...]
    pieces: tuple[WeightPiece, ...]
    axioms: tuple[AxiomVerdict, ...]
    age_range: tuple[float, float] = (
        0.0,
        float("inf"),
    )  # ages for which f is an SP-regularizer (open interval)
    kernel: WeightKernel | None = field(default=None, compare=False, repr=False)

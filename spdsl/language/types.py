"""The type of an expression: kind, symbolic shape, the variables in it, curvature and sign.

In: nothing. Out: values that the checker attaches to every node and that the compiler reads.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from spdsl.language.record import Record

__all__ = ["Curvature", "Dimension", "Kind", "Sign", "Type", "Verdict"]

Dimension: TypeAlias = str | int
"""A size: a name such as ``"n"`` that the data fix, or a whole number written in the model."""


class Kind(Enum):
    """What an expression is; the first six are numeric."""

    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"
    LABELS = "labels"
    """A vector of -1 and +1."""
    SYMMETRIC = "symmetric"
    """A square matrix that equals its transpose."""
    GRAPH = "graph"
    RKHS = "rkhs"
    """A function of a row; used by evaluation `f(X)` and `norm(f)` only."""
    SUPPORT = "support"
    """The set of the non-zero coordinates of a vector variable; only to the left of `in`."""


class Curvature(Enum):
    """By the rules of disciplined convex programming; elementwise for vectors and matrices."""

    CONSTANT = "constant"
    AFFINE = "affine"
    CONVEX = "convex"
    CONCAVE = "concave"
    UNKNOWN = "unknown"


class Sign(Enum):
    """Of every element."""

    ZERO = "zero"
    NONNEGATIVE = "nonnegative"
    NONPOSITIVE = "nonpositive"
    UNKNOWN = "unknown"


class Verdict(Enum):
    """Whether a loss, a regularizer or a constraint is convex, as far as the language can tell."""

    CONVEX = "convex"
    UNDECIDED = "undecided"
    """The rules do not reach it: the compiler proves or refutes it, or asks for `assume convex`."""
    ASSUMED = "assumed"
    """The user wrote `assume convex`, and the rules do not decide it."""


class Type(Record):
    """What the checker knows about an expression.

    Attributes
    ----------
    kind : Kind
    shape : tuple of Dimension
        ``()`` for a scalar, ``("n",)`` for a vector, ``("n", "d")`` for a matrix.
    curvature, sign
        See `Curvature`, `Sign`.
    variables : frozenset of str
        The variables that the expression depends on; empty for a constant.
    data : frozenset of str
        The data that it depends on.
    parameters : frozenset of str
        The parameters that it depends on.
    sizes : frozenset of str
        The sizes used as numbers.
    """

    kind: Kind
    shape: tuple[Dimension, ...] = ()
    curvature: Curvature = Curvature.CONSTANT
    sign: Sign = Sign.UNKNOWN
    variables: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()

    @property
    def depends_on_variables(self) -> bool:
        """Whether any variable occurs in the expression."""
        return bool(self.variables)

    @property
    def is_scalar(self) -> bool:
        """Whether it is one number."""
        return self.shape == () and self.kind is Kind.SCALAR

    def __str__(self) -> str:
        if self.kind in (Kind.RKHS, Kind.SCALAR, Kind.SUPPORT):
            return str(self.kind.value)
        if self.kind is Kind.SYMMETRIC:
            return f"symmetric({self.shape[0]})"
        return f"{self.kind.value}({', '.join(map(str, self.shape))})"

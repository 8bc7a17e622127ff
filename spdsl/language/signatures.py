"""The functions that a model can call: atoms, kernels, sets and SP-regularizers, with arguments, defaults and formulas.

In: nothing. Out: the tables that the checker matches calls against and that grammars/README.md prints. To add an
elementwise loss atom, add a line to `ATOMS` (and its definition to the compiler's table).
"""

from __future__ import annotations

from enum import Enum

from spdsl.language.record import Record
from spdsl.language.types import Curvature, Sign

__all__ = ["ATOMS", "KERNELS", "SELF_PACED", "SETS", "Atom", "Monotone", "Parameter", "Role", "Signature"]


class Parameter(Record):
    """An argument by name; required when `default` is None. `low` and `high` bound what may be given."""

    name: str
    default: float | None = None
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    whole: bool = False
    optional: bool = False
    """May be left out without a default (`budget` of connected)."""


class Signature(Record):
    """A callable name: its parameters, in order, and how the reference prints it."""

    name: str
    parameters: tuple[Parameter, ...]
    formula: str


class Role(Enum):
    """How the shape of an atom's value follows from its argument's."""

    ELEMENTWISE = "elementwise"
    REDUCTION = "scalar"
    MAHALANOBIS = "one number a row"
    SUPPORT = "a set"


class Monotone(Enum):
    """How an atom changes with its argument, for the composition rules."""

    INCREASING = "increasing"
    DECREASING = "decreasing"
    LIKE_ABS = "increasing for x >= 0, decreasing for x <= 0"
    NEITHER = "neither"


class Atom(Record):
    """An atom.

    Attributes
    ----------
    name : str
    role : Role
    curvature : Curvature
    monotone : Monotone
    sign : Sign
        Of its value (UNKNOWN: that of its argument for `sum` and `trace`, else really unknown).
    formula : str
        For the reference.
    options : tuple of Parameter
        What follows the first argument: constant numbers.
    variadic : bool
        Takes any number of expressions (`max`, `min`).
    ranks : tuple of int
        The numbers of axes that its argument may have.
    """

    name: str
    role: Role
    curvature: Curvature
    monotone: Monotone
    sign: Sign
    formula: str
    options: tuple[Parameter, ...] = ()
    variadic: bool = False
    ranks: tuple[int, ...] = (0, 1, 2)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters, the expression first."""
        if self.name == "mahalanobis":
            return (Parameter("M"), Parameter("D"))
        if self.name == "group_norm":
            return (Parameter("x"), Parameter("groups"))
        return (Parameter("x"), *self.options)


_E, _R = Role.ELEMENTWISE, Role.REDUCTION
_CONVEX, _CONCAVE, _AFFINE = Curvature.CONVEX, Curvature.CONCAVE, Curvature.AFFINE
_UP, _DOWN, _ABS, _NEITHER = Monotone.INCREASING, Monotone.DECREASING, Monotone.LIKE_ABS, Monotone.NEITHER
_PLUS, _ANY = Sign.NONNEGATIVE, Sign.UNKNOWN

_ATOMS = (
    Atom("abs", _E, _CONVEX, _ABS, _PLUS, "|x|"),
    Atom("pos", _E, _CONVEX, _UP, _PLUS, "max(x, 0)"),
    Atom("square", _E, _CONVEX, _ABS, _PLUS, "x^2"),
    Atom("sqrt", _E, _CONCAVE, _UP, _PLUS, "x^(1/2), for x >= 0"),
    Atom("exp", _E, _CONVEX, _UP, _PLUS, "e^x"),
    Atom("log", _E, _CONCAVE, _UP, _ANY, "natural logarithm, for x > 0"),
    Atom("max", _E, _CONVEX, _UP, _ANY, "the largest argument; of one argument its largest element", variadic=True),
    Atom("min", _E, _CONCAVE, _UP, _ANY, "the smallest argument; of one argument its smallest element", variadic=True),
    Atom("hinge", _E, _CONVEX, _DOWN, _PLUS, "max(0, 1 - x)"),
    Atom("squared_hinge", _E, _CONVEX, _DOWN, _PLUS, "max(0, 1 - x)^2"),
    Atom("logistic", _E, _CONVEX, _DOWN, _PLUS, "log(1 + exp(-x)), a loss of the margin x"),
    Atom(
        "huber", _E, _CONVEX, _ABS, _PLUS, "x^2/2 if |x| <= delta, else delta (|x| - delta/2)",
        options=(Parameter("delta", 1.0, low=0.0, open_low=True),),
    ),
    Atom(
        "quantile", _E, _CONVEX, _ABS, _PLUS, "max(tau x, (tau - 1) x)",
        options=(Parameter("tau", 0.5, low=0.0, high=1.0),),
    ),
    Atom(
        "epsilon_insensitive", _E, _CONVEX, _ABS, _PLUS, "max(0, |x| - epsilon)",
        options=(Parameter("epsilon", 0.1, low=0.0),),
    ),
    Atom("sum", _R, _AFFINE, _UP, _ANY, "the sum of all elements", ranks=(1, 2)),
    Atom("norm1", _R, _CONVEX, _ABS, _PLUS, "the sum of the absolute values", ranks=(1, 2)),
    Atom("norm2", _R, _CONVEX, _ABS, _PLUS, "the square root of the sum of squares", ranks=(1,)),
    Atom("sum_squares", _R, _CONVEX, _ABS, _PLUS, "the sum of squares", ranks=(1, 2)),
    Atom("norm", _R, _CONVEX, _ABS, _PLUS, "Euclidean norm, Frobenius norm, RKHS norm of a function", ranks=(1, 2)),
    Atom("trace", _R, _AFFINE, _UP, _ANY, "the sum of the diagonal", ranks=(2,)),
    Atom("trace_norm", _R, _CONVEX, _NEITHER, _PLUS, "the sum of the singular values", ranks=(2,)),
    Atom("group_norm", _R, _CONVEX, _ABS, _PLUS, "the sum over the groups g of norm2(x_g)", ranks=(1,)),
    Atom("mahalanobis", Role.MAHALANOBIS, _AFFINE, _NEITHER, _ANY, "d' M d for every row d of D"),
    Atom("support", Role.SUPPORT, Curvature.UNKNOWN, _NEITHER, _ANY, "the coordinates that are not zero", ranks=(1,)),
)  # fmt: skip

ATOMS: dict[str, Atom] = {atom.name: atom for atom in _ATOMS}
"""The atoms by name."""


def _positive(name: str, default: float | None = None) -> Parameter:
    return Parameter(name, default, low=0.0, open_low=True)


KERNELS: dict[str, Signature] = {
    signature.name: signature
    for signature in (
        Signature("rbf", (_positive("gamma"),), "exp(-gamma |x - z|^2)"),
        Signature(
            "polynomial",
            (
                Parameter("degree", low=1.0, whole=True),
                Parameter("coef0", 1.0, low=0.0),
                _positive("gamma", 1.0),
            ),
            "(gamma x'z + coef0)^degree",
        ),
        Signature("linear", (), "x'z"),
        Signature("precomputed", (Parameter("K"),), "the entry of a positive semidefinite data matrix"),
    )
}  # fmt: skip
"""Kernels of rkhs variables."""

SETS: dict[str, Signature] = {
    signature.name: signature
    for signature in (
        Signature("sparse", (Parameter("size", low=1.0, whole=True),), "at most `size` coordinates"),
        Signature(
            "connected",
            (
                Parameter("graph"), Parameter("size", low=1.0, whole=True),
                Parameter("components", 1.0, low=1.0, whole=True), Parameter("budget", low=0.0, optional=True),
            ),
            "at most `size` nodes in at most `components` connected parts, of edge weight at most `budget`",
        ),
        Signature(
            "groups", (Parameter("groups"), Parameter("count", low=1.0, whole=True)),
            "the coordinates of at most `count` groups",
        ),
        Signature(
            "union_of", (Parameter("supports"), Parameter("count", 1.0, low=1.0, whole=True)),
            "the coordinates of at most `count` of the given supports",
        ),
    )
}  # fmt: skip
"""What the support of a vector may be kept in."""

SELF_PACED: dict[str, Signature] = {
    signature.name: signature
    for signature in (
        Signature("hard", (), "-lambda v"),
        Signature("linear", (), "lambda (v^2/2 - v)"),
        Signature("mixture", (_positive("gamma"),), "gamma^2 / (v + gamma/lambda)"),
        Signature("log", (_positive("a"),), "KL(1 + a lambda, v)/a, KL(p, v) = p log(p/v) - p + v"),
        Signature("polynomial", (Parameter("t", low=1.0, open_low=True),), "lambda (v^t/t - v)"),
        Signature("logarithmic", (), "z v - z^v / log z, z = 1 - lambda, 0 < lambda < 1"),
        Signature("welsch", (), "lambda (1 - v + v log v)"),
        Signature("cauchy", (), "lambda (v - 1 - log v)"),
        Signature("huber", (), "lambda / v"),
    )
}  # fmt: skip
"""The built-in SP-regularizers f(v, lambda); their parameters follow the age."""

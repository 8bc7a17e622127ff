"""Bound problems built by hand, with NumPy kernels written apart from the compiler: independent twins for tests of back ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdsl.problem import (
    AffineConstraint,
    Age,
    BoundProblem,
    Call,
    DataDeclaration,
    Loss,
    Name,
    Number,
    Piece,
    Predictor,
    Problem,
    ScalarFunction,
    SelfPaced,
    Separable,
    Term,
    VariableDeclaration,
)
from spdsl.problem.functions import Formula


def _select(piece, options, shape):
    return np.choose(np.broadcast_to(piece, shape), [np.broadcast_to(option, shape) for option in options])


@dataclass
class Pieces:
    """A PC^r kernel from lists of NumPy functions of (z, *theta)."""

    values: list
    slopes: list
    curvatures: list
    at: list = field(default_factory=list)  # borders: functions of theta
    kinked: tuple = ()

    @property
    def n_pieces(self):
        return len(self.values)

    def breaks(self, *theta):
        return tuple(border(*theta) for border in self.at)

    def piece(self, z, *theta):
        return sum(((z >= border).astype(np.int8) for border in self.breaks(*theta)), np.zeros(z.shape, np.int8))

    def value(self, piece, z, *theta):
        return _select(piece, [f(z, *theta) for f in self.values], z.shape)

    def slope(self, piece, z, *theta):
        return _select(piece, [f(z, *theta) for f in self.slopes], z.shape)

    def curvature(self, piece, z, *theta):
        return _select(piece, [f(z, *theta) for f in self.curvatures], z.shape)


def _sigmoid(z):
    return 0.5 * (1.0 + np.tanh(0.5 * z))


LOSSES = {
    # z = X w (+ b) - y, or y (X w + b); the parameter is the factor of the loss
    "squared": Pieces([lambda z, k: k * z * z / 2], [lambda z, k: k * z], [lambda z, k: k + 0 * z]),
    "huber": Pieces(  # knee at 1
        [lambda z, k: k * (-z - 0.5), lambda z, k: k * z * z / 2, lambda z, k: k * (z - 0.5)],
        [lambda z, k: -k + 0 * z, lambda z, k: k * z, lambda z, k: k + 0 * z],
        [lambda z, k: 0 * z, lambda z, k: k + 0 * z, lambda z, k: 0 * z],
        [lambda k: -1.0, lambda k: 1.0],
        (False, False),
    ),
    "quantile": Pieces(  # level 0.3
        [lambda z, k: -k * 0.7 * z, lambda z, k: k * 0.3 * z],
        [lambda z, k: -k * 0.7 + 0 * z, lambda z, k: k * 0.3 + 0 * z],
        [lambda z, k: 0 * z, lambda z, k: 0 * z],
        [lambda k: 0.0],
        (True,),
    ),
    "logistic": Pieces(
        [lambda z, k: k * np.logaddexp(0.0, -z)],
        [lambda z, k: -k * _sigmoid(-z)],
        [lambda z, k: k * _sigmoid(z) * _sigmoid(-z)],
    ),
    "hinge": Pieces(
        [lambda z, k: k * (1 - z), lambda z, k: 0 * z],
        [lambda z, k: -k + 0 * z, lambda z, k: 0 * z],
        [lambda z, k: 0 * z, lambda z, k: 0 * z],
        [lambda k: 1.0],
        (True,),
    ),
    "squared_hinge": Pieces(
        [lambda z, k: k * (1 - z) ** 2, lambda z, k: 0 * z],
        [lambda z, k: -2 * k * (1 - z), lambda z, k: 0 * z],
        [lambda z, k: 2 * k + 0 * z, lambda z, k: 0 * z],
        [lambda k: 1.0],
        (False,),
    ),
    "epsilon": Pieces(  # insensitive within 0.2
        [lambda z, k: k * (-z - 0.2), lambda z, k: 0 * z, lambda z, k: k * (z - 0.2)],
        [lambda z, k: -k + 0 * z, lambda z, k: 0 * z, lambda z, k: k + 0 * z],
        [lambda z, k: 0 * z] * 3,
        [lambda k: -0.2, lambda k: 0.2],
        (True, True),
    ),
}
MARGIN_LOSSES = ("logistic", "hinge", "squared_hinge")

ABS = Pieces(
    [lambda z: -z, lambda z: z],
    [lambda z: -1 + 0 * z, lambda z: 1 + 0 * z],
    [lambda z: 0 * z] * 2,
    [lambda: 0.0],
    (True,),
)
SQUARE = Pieces([lambda z: z * z], [lambda z: 2 * z], [lambda z: 2 + 0 * z])


@dataclass
class Weights:
    """v* from lists of NumPy functions of (l, age, *theta)."""

    weights: list
    dlosses: list
    dages: list
    at: list
    f: Any
    names: tuple
    continuous: bool = True

    @property
    def n_pieces(self):
        return len(self.weights)

    def breaks(self, age, *theta):
        return tuple(float(border(age, *theta)) for border in self.at)

    def piece(self, loss, age, *theta):
        found = np.zeros(loss.shape, np.int8)
        for border in self.breaks(age, *theta):
            found += (loss >= border).astype(np.int8)
        return found

    def weight(self, piece, loss, age, *theta):
        with np.errstate(all="ignore"):
            return _select(piece, [f(loss, age, *theta) for f in self.weights], loss.shape)

    def dloss(self, piece, loss, age, *theta):
        with np.errstate(all="ignore"):
            return _select(piece, [f(loss, age, *theta) for f in self.dlosses], loss.shape)

    def dage(self, piece, loss, age, *theta):
        with np.errstate(all="ignore"):
            return _select(piece, [f(loss, age, *theta) for f in self.dages], loss.shape)

    def regularizer(self, weight, age, *theta):
        return self.f(weight, age, *theta)


class NumericWeights(Weights):
    """f = age (v^2/4 + v^7/14 - v): v* solves l/age = 1 - v/2 - v^6/2, which has no closed form."""

    def __init__(self):
        super().__init__(
            [self._v, lambda l, a: 0 * l],
            [lambda l, a: -1 / (a * (0.5 + 3 * self._v(l, a) ** 5)), lambda l, a: 0 * l],
            [lambda l, a: (l / a) / (a * (0.5 + 3 * self._v(l, a) ** 5)), lambda l, a: 0 * l],
            [lambda a: a],
            lambda v, a: a * (v**2 / 4 + v**7 / 14 - v),
            ("E", "D"),
        )

    @staticmethod
    def _v(l, a):
        target = np.clip(1 - l / a, 0.0, 1.0)
        v = np.ones_like(target)  # the left side is convex and rises, so Newton comes down to the root
        for _ in range(12):
            v = v - (v / 2 + v**6 / 2 - target) / (0.5 + 3 * v**5)
        return v


GAMMA = 0.7
LOG_A = 0.8
SELF_PACED = {
    "hard": Weights([lambda l, a: 1 + 0 * l, lambda l, a: 0 * l], [lambda l, a: 0 * l] * 2, [lambda l, a: 0 * l] * 2,
                    [lambda a: a], lambda v, a: -a * v, ("E", "D"), continuous=False),
    "linear": Weights([lambda l, a: 1 - l / a, lambda l, a: 0 * l], [lambda l, a: -1 / a + 0 * l, lambda l, a: 0 * l],
                      [lambda l, a: l / a**2, lambda l, a: 0 * l], [lambda a: a], lambda v, a: a * (v * v / 2 - v), ("E", "D")),
    "mixture": Weights(
        [lambda l, a: 1 + 0 * l, lambda l, a: GAMMA * (l**-0.5 - 1 / a), lambda l, a: 0 * l],
        [lambda l, a: 0 * l, lambda l, a: -0.5 * GAMMA * l**-1.5, lambda l, a: 0 * l],
        [lambda l, a: 0 * l, lambda l, a: GAMMA / a**2 + 0 * l, lambda l, a: 0 * l],
        [lambda a: (a * GAMMA / (a + GAMMA)) ** 2, lambda a: a * a],
        lambda v, a: GAMMA**2 / (v + GAMMA / a), ("E", "M", "D")),
    "log": Weights(
        [lambda l, a: 1 + 0 * l, lambda l, a: (1 + LOG_A * a) / (1 + LOG_A * l)],
        [lambda l, a: 0 * l, lambda l, a: -LOG_A * (1 + LOG_A * a) / (1 + LOG_A * l) ** 2],
        [lambda l, a: 0 * l, lambda l, a: LOG_A / (1 + LOG_A * l)],
        [lambda a: a], lambda v, a: ((1 + LOG_A * a) * np.log((1 + LOG_A * a) / v) - (1 + LOG_A * a) + v) / LOG_A, ("E", "M")),
    "numeric": NumericWeights(),
    "welsch": Weights([lambda l, a: np.exp(-l / a)], [lambda l, a: -np.exp(-l / a) / a], [lambda l, a: l / a**2 * np.exp(-l / a)],
                      [], lambda v, a: a * (1 - v + v * np.log(np.maximum(v, 1e-300))), ("E",)),
}  # fmt: skip


def _times(factor, body):
    return (
        Call("multiply", (Name(factor), body)) if isinstance(factor, str) else Call("multiply", (Number(factor), body))
    )


Z = Name("z")
BODIES = {
    "squared": _times(0.5, Call("square", (Z,))),
    "huber": Call("huber", (Z, Number(1.0))),
    "quantile": Call("quantile", (Z, Number(0.3))),
    "logistic": Call("logistic", (Z,)),
    "hinge": Call("hinge", (Z,)),
    "squared_hinge": Call("squared_hinge", (Z,)),
    "epsilon": Call("epsilon_insensitive", (Z, Number(0.2))),
    "abs": Call("abs", (Z,)),
    "square": Call("square", (Z,)),
}


def _scalar(kernel, name, parameters=(), values=()):
    body = _times("k", BODIES[name]) if parameters else BODIES[name]
    constant = all(np.ptp(c(np.linspace(-3, 3, 7), *[1.0] * len(parameters))) == 0 for c in kernel.curvatures)
    bend = Formula("1" if constant else "z")
    pieces = tuple(Piece(None, None, Formula(name), Formula(name), bend) for _ in range(kernel.n_pieces))
    return ScalarFunction(body, ("z",), parameters, values, pieces, (), kernel=kernel)


def make(
    X, y, loss="squared", self_paced="linear", l1=0.0, l2=0.0, factor=None, intercept=False, nonnegative=False,
    D=None, fused=0.0, age=None,
):  # fmt: skip
    """A bound problem: sum_i phi(z_i) + l1 |w|_1 + l2 |w|^2 / 2 + fused |D w|_1, weighed by an SP-regularizer.

    `factor` is the loss's factor (1/n if not given); `age` is (lower, upper), a number, or ("quantiles", a, b).
    """
    n, d = X.shape
    data: dict[str, Any] = {"X": X, "y": y}
    margin = loss in MARGIN_LOSSES
    scale = Name("y") if margin else None
    terms = [Term("w", "matrix", Name("X"), scale)]
    variables = [VariableDeclaration("w", "vector", ("d",))]
    if intercept:
        terms.append(Term("b", "ones", None, scale))
        variables.append(VariableDeclaration("b", "scalar", ()))
    predictor = Predictor(tuple(terms), None if margin else Call("negative", (Name("y"),)), "n")
    parameters = {"factor": 1.0 / n if factor is None else factor, "l1": l1, "l2": l2, "fused": fused}
    function = _scalar(LOSSES[loss], loss, ("k",), (Name("factor"),))
    w = Predictor((Term("w", "identity"),), None, "d")
    regularizers: list[Any] = []
    if l1:
        regularizers.append(Separable(Name("l1"), _scalar(ABS, "abs"), w))
    if l2:
        regularizers.append(Separable(Call("divide", (Name("l2"), Number(2.0))), _scalar(SQUARE, "square"), w))
    sizes = {"n": n, "d": d}
    if fused:
        data["D"] = D
        sizes["k"] = D.shape[0]
        regularizers.append(
            Separable(Name("fused"), _scalar(ABS, "abs"), Predictor((Term("w", "matrix", Name("D")),), None, "k"))
        )
    constraints = ()
    if nonnegative:
        constraints = (
            AffineConstraint(Predictor((Term("w", "identity", None, Number(-1.0)),), None, "d"), "<=", "w >= 0"),
        )
    declared = None
    if isinstance(age, tuple) and age[0] == "quantiles":
        declared = Age("lambda", "quantiles", Number(age[1]), Number(age[2]))
    elif isinstance(age, tuple):
        declared = Age("lambda", "interval", Number(age[0]), Number(age[1]))
    elif age is not None:
        declared = Age("lambda", "fixed", Number(age))
    sp = None
    if self_paced is not None:
        sp = SelfPaced(self_paced, Formula(self_paced), (), (), (), (), kernel=SELF_PACED[self_paced])
    problem = Problem(
        "twin", "", (DataDeclaration("X", "matrix", ("n", "d")), DataDeclaration("y", "vector", ("n",))), (),
        tuple(variables), Loss((predictor,), function, "n"), tuple(regularizers), sp, declared, constraints,
    )  # fmt: skip
    return BoundProblem(problem, data, parameters, sizes)


def regression(n=60, d=5, seed=0, noise=0.5, outliers=0.2):
    """A sparse linear model with noise and a share of outliers, standardized."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = (X - X.mean(0)) / X.std(0)
    w = rng.standard_normal(d) * (rng.random(d) < 0.6)
    y = X @ w + noise * rng.standard_normal(n)
    hit = rng.random(n) < outliers
    y[hit] += 4.0 * rng.standard_normal(hit.sum())
    y = (y - y.mean()) / y.std()
    return X, y


def classification(n=60, d=4, seed=0, flipped=0.15):
    """Two classes by a noisy linear rule, with a share of flipped labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[rng.random(n) < flipped] *= -1
    return X, y

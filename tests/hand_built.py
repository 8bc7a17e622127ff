"""A small problem, a path and back ends built by hand, for tests of the rooms that take any problem and any back end.

The model: w in R^d and a scalar b, loss (X w + b - y)^2 / 2 a sample, regularizer alpha |w|_1, linear SP-regularizer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spdsl.problem import (
    Age,
    BoundProblem,
    Call,
    DataDeclaration,
    Loss,
    Name,
    Number,
    ParameterDeclaration,
    Piece,
    Predictor,
    Problem,
    ScalarFunction,
    SelfPaced,
    Term,
    VariableDeclaration,
)
from spdsl.problem.functions import Formula
from spdsl.solution import CriticalPoint, History, Path, Solution, Status
from spdsl.solvers.protocol import BackEnd, CommonOptions, option

SOURCE = """data
  X : matrix(n, d)
  y : vector(n)

parameter
  alpha = 0.1

variable
  w : vector(d)
  b : scalar

age lambda in [1, 4]

minimize
  loss         (X @ w + b - y)^2 / 2
  regularizer  alpha * norm1(w)
  self_paced   linear(lambda)
"""


class Square:
    """phi(z) = z^2 / 2."""

    n_pieces = 1
    kinked = ()

    def breaks(self, *theta: Any) -> tuple[Any, ...]:
        return ()

    def piece(self, z: Any, *theta: Any) -> Any:
        return np.zeros(np.shape(z), np.int8)

    def value(self, piece: Any, z: Any, *theta: Any) -> Any:
        return z * z / 2

    def slope(self, piece: Any, z: Any, *theta: Any) -> Any:
        return z

    def curvature(self, piece: Any, z: Any, *theta: Any) -> Any:
        return np.ones(np.shape(z))


class Linear:
    """v*(l, age) = (1 - l/age)+."""

    n_pieces = 2
    names = ("E", "D")
    continuous = True

    def breaks(self, age: float, *theta: float) -> tuple[float, ...]:
        return (age,)

    def piece(self, loss: Any, age: float, *theta: float) -> Any:
        return (loss >= age).astype(np.int8)

    def weight(self, piece: Any, loss: Any, age: float, *theta: float) -> Any:
        return np.where(piece == 0, 1 - loss / age, 0.0)

    def regularizer(self, weight: Any, age: float, *theta: float) -> Any:
        return age * (weight**2 / 2 - weight)


def problem(age: Age | None = None, paced: bool = True) -> Problem:
    z = Call("power", (Name("z"), Number(2.0)))
    square = ScalarFunction(
        body=Call("divide", (z, Number(2.0))),
        arguments=("z",),
        parameters=(),
        values=(),
        pieces=(Piece(None, None, Formula("z^2/2"), Formula("z"), Formula("1")),),
        kinks=(),
        kernel=Square(),
    )
    predictor = Predictor((Term("w", "matrix", Name("X")), Term("b", "ones")), Call("negative", (Name("y"),)), rows="n")
    linear = SelfPaced("linear", Formula("lambda*(v^2/2 - v)"), (), (), (), (), kernel=Linear())
    return Problem(
        name="hand_built.spl",
        source=SOURCE,
        data=(DataDeclaration("X", "matrix", ("n", "d")), DataDeclaration("y", "vector", ("n",))),
        parameters=(ParameterDeclaration("alpha", Number(0.1)),),
        variables=(VariableDeclaration("w", "vector", ("d",)), VariableDeclaration("b", "scalar", ())),
        loss=Loss((predictor,), square, "n"),
        self_paced=linear if paced else None,
        age=(age or Age("lambda", "interval", Number(1.0), Number(4.0))) if paced else None,
    )


def bound(n: int = 12, d: int = 2, seed: int = 0, paced: bool = True) -> BoundProblem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ np.arange(1.0, d + 1) + rng.normal(size=n)
    return BoundProblem(
        problem(paced=paced),
        {"X": X, "y": y},
        {"alpha": 0.1},
        {"n": n, "d": d},
        feature_names={"X": tuple(f"column{i}" for i in range(d))},
        origin={"X": "table.csv", "y": "table.csv"},
    )


@dataclass(frozen=True)
class Curve:
    """A branch of known form: every coordinate is age^2 up to the jump at age 2, and 10 more from there on."""

    size: int
    calls: list[float] = field(default_factory=list)

    def at(self, age: float) -> tuple[Any, float]:
        self.calls.append(age)
        return np.full(self.size, age**2 + (10.0 if age >= 2 else 0.0)), 1e-12

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        return (
            CriticalPoint(1.5, "turning", "sample 3 enters E", samples=(3,)),
            CriticalPoint(2.0, "jump", "sample 5 enters E", samples=(5,), change=10.0),
            CriticalPoint(3.0, "turning", "w[1] leaves zero", coordinates=(1,)),
        )


def path(problem: BoundProblem | None = None, status: Status = Status.SOLVED) -> Path:
    problem = problem or bound()
    ages = np.array([1.0, 1.5, 2.0, 2.0, 3.0, 4.0])
    size = problem.layout.size
    nodes = np.array([np.full(size, a**2 + (10.0 if i > 2 else 0.0)) for i, a in enumerate(ages)])
    return Path(
        bound=problem,
        ages=ages,
        nodes=nodes,
        kkt_residuals=np.array([1e-12, 2e-12, 1e-12, 3e-11, 1e-12, 1e-12]),
        status=status,
        backend="fake",
        branch=Curve(size),
        history=History({"age": ages, "seconds": np.arange(6.0)}),
        statistics={"steps": 5.0},
        options={"seed": 3, "time_limit": float("inf"), "start": ("subset", (0.5,), {"seed": 1})},
    )


@dataclass(frozen=True)
class FakeOptions(CommonOptions):
    steps: int = option(5, "how many steps to make", check=lambda v: None if v > 0 else "must be positive")
    mode: str = option("plain", "how", choices=("plain", "fancy"))


@dataclass(frozen=True)
class FakeState:
    count: int


class Fake(BackEnd[FakeState]):
    """Counts steps; `during` is called in each step with its number, for tests that interrupt."""

    name = "fake"
    summary = "counts steps"
    options = FakeOptions

    def __init__(
        self,
        refusals: tuple[str, ...] = (),
        during: Callable[[int], None] | None = None,
        starting: Callable[[], None] | None = None,
    ) -> None:
        self.refusals = refusals
        self.during = during
        self.starting = starting

    def refuses(self, problem: Problem) -> list[str]:
        return list(self.refusals)

    def init(self, problem: BoundProblem, options: FakeOptions) -> FakeState:
        if self.starting:
            self.starting()
        return FakeState(0)

    def step(self, problem: BoundProblem, options: FakeOptions, state: FakeState) -> FakeState:
        if self.during:
            self.during(state.count)
        return FakeState(state.count + 1)

    def done(self, problem: BoundProblem, options: FakeOptions, state: FakeState) -> Status | None:
        return Status.SOLVED if state.count >= options.steps else None

    def finish(self, problem: BoundProblem, options: FakeOptions, state: FakeState, status: Status) -> Solution:
        x = np.full(problem.layout.size, float(state.count))
        return Solution(problem, x, status, problem.objective(x), "fake", statistics={"steps": float(state.count)})

    def progress(self, state: FakeState) -> tuple[float, str]:
        return state.count / 5, f"step {state.count}"


class FakePath(Fake):
    """As `Fake`, but returns the path of `path`, its ages up to the steps that were made; slow when asked to be."""

    name = "fakepath"
    options = FakeOptions

    def finish(self, problem: BoundProblem, options: FakeOptions, state: FakeState, status: Status) -> Path:  # type: ignore[override]
        whole = replace(path(problem, status), options={}, backend=self.name)
        return whole if status.ok else replace(whole, message=f"stopped after {state.count} steps")

    def resume(self, problem: BoundProblem, path: Path) -> Curve:
        return Curve(problem.layout.size)


class Slow(FakePath):
    """Twenty seconds of short steps, to be interrupted."""

    name = "slow"

    def __init__(self) -> None:
        super().__init__(during=lambda _: time.sleep(0.05))

    def done(self, problem: BoundProblem, options: FakeOptions, state: FakeState) -> Status | None:
        return Status.SOLVED if state.count >= 400 else None

    def progress(self, state: FakeState) -> tuple[float, str]:
        return state.count / 400, f"step {state.count}"


class Broken(Fake):
    """Has a bug."""

    name = "broken"

    def __init__(self) -> None:
        super().__init__(during=lambda _: {}["nothing"])

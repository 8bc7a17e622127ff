"""What back ends return: `Solution`, `Path`, `CriticalPoint`, `History` and `Status`; saving and loading.

In: arrays from a back end. Out: values by variable name, exact values at any age, tables, files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, Protocol

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array

__all__ = ["Branch", "CriticalPoint", "History", "Path", "Solution", "Status"]


class Status(Enum):
    """How a run ended, as a sentence that says what to do next. Only the first two are answers."""

    SOLVED = "solved to the tolerance that was asked for"
    EXACT = "solved exactly: the KKT conditions hold to machine precision"
    INTERRUPTED = "stopped by the user; what was reached is kept, and running on from it is possible"
    TIME_LIMIT = "the time limit was reached before the tolerance; raise `time_limit` or loosen `tolerance`"
    ITERATION_LIMIT = (
        "the iteration limit was reached before the tolerance; raise the limit or loosen `tolerance`"
    )
    STALLED = "no further progress is possible in floating point; scale the data, or loosen `tolerance`"
    PARTIAL_PATH = "the path could not be followed to its end; see `message` for the age and the reason"
    DIVERGED = "the iterates grew without bound; lower `step`"
    UNBOUNDED = "the problem has no finite optimum; add a regularizer or a constraint"
    FINISHED = (
        "all passes were made; the result is as good as so many passes give, no tolerance was asked for"
    )

    @property
    def ok(self) -> bool:
        """Did the run end as asked?"""
        return self in (Status.SOLVED, Status.EXACT, Status.FINISHED)


@dataclass(frozen=True)
class History:
    """Named columns recorded during a run, all of one length (``iteration``, ``objective``, ``seconds``, ...)."""

    columns: Mapping[str, Array] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0


@dataclass(frozen=True)
class CriticalPoint:
    """A point of the path where a set changes.

    Attributes
    ----------
    age : float
    kind : {"turning", "jump"}
        A turning point is continuous with a bent; at a jump the branch ends and another is taken up.
    cause : str
        What happened, in words: "sample 17 enters E", "w[3] leaves zero", ...
    samples, coordinates : tuple of int
        Indices (from 0) of the samples, or of the flat vector's entries, that caused it.
    change : float
        Largest change of the variables across a jump, 0 for a turning point.
    """

    age: float
    kind: Literal["turning", "jump"]
    cause: str
    samples: tuple[int, ...] = ()
    coordinates: tuple[int, ...] = ()
    change: float = 0.0


@dataclass(frozen=True)
class Solution:
    """One answer.

    ``solution["w"]`` is a variable's value; `weights` are the sample weights v (n,) where the model is self-paced.
    """

    bound: BoundProblem = field(repr=False)
    x: Array = field(repr=False)
    status: Status
    objective: float
    backend: str
    age: float | None = None
    message: str = ""
    kkt_residual: float | None = None
    history: History = field(default_factory=History, repr=False)
    certificate: Any = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)  # a back end's own results, by name
    statistics: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        values = self.bound.layout.unpack(self.x)
        if name in values:
            return values[name]
        if name in self.extra:
            return self.extra[name]
        known = ", ".join([*values, *self.extra])
        raise KeyError(f"{name!r} is not a variable of this model; it has: {known}")

    def __contains__(self, name: object) -> bool:
        return name in self.bound.layout.slices or name in self.extra

    def __iter__(self) -> Iterator[str]:
        return iter(self.bound.layout.slices)

    def keys(self) -> tuple[str, ...]:
        """The variables' names."""
        return tuple(self.bound.layout.slices)

    @property
    def values(self) -> dict[str, Any]:
        """Every variable's value."""
        return self.bound.layout.unpack(self.x)

    @property
    def losses(self) -> Array:
        """l_i at the solution (n,)."""
        return self.bound.losses(self.x)

    @property
    def weights(self) -> Array:
        """Sample weights v (n,): v*(l, age) for a self-paced model, ones otherwise."""
        if self.bound.problem.self_paced is None or self.age is None:
            return np.ones(self.bound.n_samples)
        return self.bound.weights(self.losses, self.age)

    def with_certificate(self, certificate: Any) -> Solution:
        """The same solution with a certificate."""
        return replace(self, certificate=certificate)


class Branch(Protocol):
    """What a path asks of the back end that followed it."""

    def at(self, age: float) -> tuple[Array, float]:
        """The exact flat vector on the tracked branch at an age, and its KKT residual (scaled)."""

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """All critical points, ascending by age; may be computed on first call."""


@dataclass(frozen=True)
class Path:
    """An age-path: nodes that the back end computed, and exact values in between.

    ``path(age)`` gives the `Solution` at any age of the interval. At the age of a jump the value is that after the jump.

    Attributes
    ----------
    ages : array (k,), ascending
        Nodes.
    nodes : array (k, p)
        The flat vector at each node; the last row of two with equal ages is after a jump.
    kkt_residuals : array (k,)
        Scaled KKT residual at each node.
    """

    bound: BoundProblem = field(repr=False)
    ages: Array
    nodes: Array = field(repr=False)
    kkt_residuals: Array = field(repr=False)
    status: Status
    backend: str
    branch: Branch | None = field(repr=False, default=None)
    message: str = ""
    history: History = field(default_factory=History, repr=False)
    certificate: Any = field(default=None, repr=False)
    statistics: Mapping[str, float] = field(default_factory=dict)
    stored_critical_points: tuple[CriticalPoint, ...] | None = field(default=None, repr=False)

    @property
    def age_range(self) -> tuple[float, float]:
        """The interval of ages that was followed."""
        return float(self.ages[0]), float(self.ages[-1])

    @property
    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """Turning points and jumps, ascending by age."""
        if self.stored_critical_points is not None:
            return self.stored_critical_points
        return () if self.branch is None else self.branch.critical_points()

    def __call__(self, age: float) -> Solution:
        """The exact solution at an age.

        Raises
        ------
        UsageError
            When the age lies outside `age_range`.
        """
        low, high = self.age_range
        slack = 1e-12 * max(1.0, abs(high))
        if not low - slack <= age <= high + slack:
            raise UsageError(
                Diagnostic(
                    "SPL701",
                    f"age {age:.6g} lies outside the path, which covers [{low:.6g}, {high:.6g}]",
                    help=("ask for an age inside it, or solve again with a wider `age` interval",),
                )
            )
        age = min(max(float(age), low), high)
        if self.branch is None:
            raise UsageError(
                Diagnostic(
                    "SPL702",
                    "this path was loaded without its data, so only its nodes are known",
                    help=("use `path.ages` and `path.nodes`, or save it again with `include_data=True`",),
                )
            )
        x, residual = self.branch.at(age)
        return Solution(
            bound=self.bound,
            x=x,
            status=Status.EXACT if residual <= 1e-10 else Status.SOLVED,
            objective=self.bound.objective(x, age),
            backend=self.backend,
            age=age,
            kkt_residual=residual,
        )

    def weights(self, age: float) -> Array:
        """Sample weights v at an age (n,)."""
        return self(age).weights


ProgressCallback = Callable[[float, str], None]

"""`Path`: an age-path, exact at every age of its interval.

In: nodes and a branch from a back end. Out: solutions at any age, critical points, tables, plots, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, Protocol

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.solution.solution import Solution
from spdsl.solution.status import CriticalPoint, History, Status
from spdsl.solution.upstairs import upstairs

__all__ = ["Branch", "Path"]


class Branch(Protocol):
    """What a path asks of the back end that followed it."""

    def at(self, age: float) -> tuple[Array, float]:
        """The exact flat vector on the tracked branch at an age, and its KKT residual (scaled)."""

    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """All critical points, ascending by age; may be computed on first call."""


@dataclass(frozen=True, eq=False)
class Path:
    """An age-path: nodes that the back end computed, and exact values in between.

    ``path(age)`` gives the `Solution` at any age of the interval, at the age of a jump that after the jump.

    Attributes
    ----------
    ages : array (k,), ascending
        Nodes.
    nodes : array (k, p)
        The flat vector at each node; the last row of two with equal ages is after a jump.
    kkt_residuals : array (k,)
        Scaled KKT residual at each node.
    status : Status
        How the run ended, as a sentence; ``status.ok`` says whether it ended as asked.
    options : mapping
        The back end's options that this was solved with.
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
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        low, high = self.age_range
        return (
            f"<spdsl.Path by {self.backend}: ages [{low:.6g}, {high:.6g}], {len(self.ages)} nodes, "
            f"worst KKT residual {self.worst_kkt_residual:.1e}; {self.status.value}>"
        )

    @property
    def age_range(self) -> tuple[float, float]:
        """The interval of ages that was followed."""
        return float(self.ages[0]), float(self.ages[-1])

    @property
    def worst_kkt_residual(self) -> float:
        """The largest scaled KKT residual of all nodes."""
        return float(np.max(self.kkt_residuals)) if len(self.kkt_residuals) else float("nan")

    @cached_property
    def critical_points(self) -> tuple[CriticalPoint, ...]:
        """Turning points and jumps, ascending by age."""
        if self.stored_critical_points is not None:
            return self.stored_critical_points
        return () if self.branch is None else self.branch.critical_points()

    @property
    def turning_points(self) -> tuple[CriticalPoint, ...]:
        """The critical points at which the path bends."""
        return tuple(point for point in self.critical_points if point.kind == "turning")

    @property
    def jumps(self) -> tuple[CriticalPoint, ...]:
        """The critical points at which the path breaks."""
        return tuple(point for point in self.critical_points if point.kind == "jump")

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
            raise UsageError(self._only_nodes())
        x, residual = self.branch.at(age)
        near = Status.FINISHED if self.status is Status.FINISHED else Status.SOLVED  # no tolerance was asked for
        return Solution(
            bound=self.bound,
            x=x,
            status=Status.EXACT if residual <= 1e-10 else near,
            objective=self.bound.objective(x, age),
            backend=self.backend,
            age=age,
            kkt_residual=residual,
            options=self.options,
        )

    def _only_nodes(self) -> Diagnostic:
        use = "use `path.ages` and `path.nodes`"
        if self.bound.data:
            message = f"`{self.backend}` knows its paths at their nodes only"
            return Diagnostic("SPL702", message, help=(f"{use}, or solve with `path_following`",))
        message = "this path was loaded without its data, so only its nodes are known"
        return Diagnostic("SPL702", message, help=(f"{use}, or save it again with `include_data=True`",))

    def weights(self, age: float) -> Array:
        """Sample weights v at an age (n,)."""
        return self(age).weights

    def select(
        self,
        data: Any = None,
        *,
        bind: Mapping[str, Any] | None = None,
        metric: Any = None,
        **arrays: Any,
    ) -> Any:
        """The age that does best on validation data, over the whole continuum of ages.

        Parameters
        ----------
        data : file, frame or mapping, optional
            Validation data, read as `Model.solve` reads its own.
        bind : mapping, optional
            Sources by name, as in `Model.solve`.
        metric : None, "median", "error" or callable
            What is minimized: the mean validation loss (None), its median, the share of samples whose margin is not
            positive ("error", for models with labels), or ``metric(validation) -> float`` of a
            `spdsl.solution.select.Validation`.
        **arrays
            Validation data by name, such as ``X=..., y=...``.

        Returns
        -------
        spdsl.solution.select.Selection
            Best age, all local minima, the curve and ``.plot()``.

        Raises
        ------
        DataError
            When the validation data don't fit the model.
        UsageError
            For an unknown metric, or a model whose variables have one entry a sample.
        """
        from spdsl.solution.select import refuse_unknown, select_age

        refuse_unknown(self)
        validation = upstairs("spdsl.data", "rebind")(self.bound, arrays, data, bind)

        return select_age(self, validation, metric)

    def plot(self, file: str | PathLike[str] | None = None, **options: Any) -> Any:
        """Draw coefficients, sample weights, critical points, in-share and KKT residuals over the ages.

        Parameters
        ----------
        file : path, optional
            Where to save it; its ending picks the format (png, pdf, svg, or html for a self-contained page).
        **options
            See `spdsl.view.plot.plot_path`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return upstairs("spdsl.view.plot", "plot_result")(self, file, **options)

    def to_frame(self, ages: Iterable[float] | None = None) -> Any:
        """One row an age (the nodes unless `ages` are given) and one column an entry of the variables.

        Beside them ``age``, ``in_share``, ``objective`` and ``kkt_residual``. A pandas frame, else a polars frame, else
        a dict of arrays: whichever library is installed.
        """
        from spdsl.solution.frame import path_frame

        return path_frame(self, ages)

    def with_certificate(self, certificate: Any) -> Path:
        """The same path with a certificate."""
        return replace(self, certificate=certificate)

    def save(self, file: str | PathLike[str], include_data: bool = True) -> None:
        """Write it to an ``.npz`` file that `spdsl.load_result` reads; no pickle inside.

        Parameters
        ----------
        include_data : bool
            Keep the data in the file, so that any age can be asked for exactly after loading. Without, only the nodes
            are kept.

        Raises
        ------
        UsageError
            When the file cannot be written.
        """
        from spdsl.solution.files import save_path

        save_path(self, file, include_data)

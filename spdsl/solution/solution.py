"""`Solution`: one answer, at a fixed age or of a model without ages.

In: the flat vector that a back end found. Out: values by variable name, losses, weights, a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np

from spdsl.diagnostics import nearest_name
from spdsl.problem import BoundProblem
from spdsl.problem.functions import Array
from spdsl.problem.membership import in_share
from spdsl.solution.status import History, Status
from spdsl.solution.upstairs import upstairs

__all__ = ["Solution"]


@dataclass(frozen=True, eq=False)
class Solution:
    """One answer.

    ``solution["w"]`` is a variable's value; `weights` are the sample weights v (n,) where the model is self-paced.

    Attributes
    ----------
    status : Status
        How the run ended, as a sentence; ``status.ok`` says whether it ended as asked.
    objective : float
        The model's objective at `x` (with a self-paced term the latent one, v = v*(l, age) put in).
    age : float or None
    kkt_residual : float or None
        Scaled KKT residual, where the back end has one.
    history : History
        What the back end recorded, column by column.
    certificate
        What `Model.check` found, once it was asked.
    extra : mapping
        A back end's own results by name; ``solution["name"]`` finds them too.
    statistics : mapping of float
        Counts and seconds.
    options : mapping
        The back end's options that this was solved with.
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
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        age = "" if self.age is None else f" at age {self.age:.6g}"
        residual = "" if self.kkt_residual is None else f", KKT residual {self.kkt_residual:.1e}"
        message = f" ({self.message})" if self.message else ""
        return (
            f"<spdsl.Solution by {self.backend}{age}: objective {self.objective:.8g}{residual}; "
            f"{self.status.value}{message}>"
        )

    def __getitem__(self, name: str) -> Any:
        values = self.bound.layout.unpack(self.x)
        if name in values:
            return values[name]
        if name in self.extra:
            return self.extra[name]
        known = (*values, *self.extra)
        near = nearest_name(name, known)
        guess = f"; did you mean {near!r}?" if near else ""
        raise KeyError(f"{name!r} is not a variable of this model; it has: {', '.join(known)}{guess}")

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

    @property
    def in_share(self) -> float:
        """Share of the samples that are in at the age, as `spdsl.problem.membership` reads it."""
        return in_share(self.bound, self.losses, self.age) if self.bound.n_samples else 1.0

    def function(self, name: str, rows: Any) -> Array:
        """An rkhs variable's function at new points: f(x) = sum_j alpha_j k(x_j, x), without an intercept.

        Parameters
        ----------
        name : str
            The variable.
        rows : array (m, d)
            Points, in the units of the data that the model was solved with; scaled as these were.

        Returns
        -------
        array (m,)

        Raises
        ------
        KeyError
            For a name that is no rkhs variable of the model.
        """
        kinds = {item.name: item for item in self.bound.problem.variables if item.kind == "rkhs"}
        if name not in kinds:
            raise KeyError(f"{name!r} is not an rkhs variable of this model; it has: {', '.join(kinds) or 'none'}")
        points = kinds[name].points
        scaling = self.bound.scaling.get(getattr(points, "name", ""))
        rows = rows if scaling is None else scaling.apply(np.asarray(rows, float))
        return np.asarray(self.bound.gram(name, rows) @ self[name])

    def with_certificate(self, certificate: Any) -> Solution:
        """The same solution with a certificate."""
        return replace(self, certificate=certificate)

    def to_frame(self) -> Any:
        """One row an entry of the variables (columns ``variable``, ``entry``, ``name``, ``value``).

        A pandas frame, else a polars frame, else a dict of arrays: whichever library is installed.
        """
        from spdsl.solution.frame import solution_frame

        return solution_frame(self)

    def save(self, file: str | PathLike[str], include_data: bool = True) -> None:
        """Write it to an ``.npz`` file that `spdsl.load_result` reads; no pickle inside.

        Parameters
        ----------
        include_data : bool
            Keep the data in the file, so that losses and weights are known after loading.

        Raises
        ------
        UsageError
            When the file cannot be written.
        """
        from spdsl.solution.files import save_solution

        save_solution(self, file, include_data)

    def plot(self, file: str | PathLike[str] | None = None, **options: Any) -> Any:
        """Draw the coefficients, the weights and the history; see `spdsl.view.plot.plot_solution`."""
        return upstairs("spdsl.view.plot", "plot_result")(self, file, **options)

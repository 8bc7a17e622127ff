"""Results as tables: a pandas frame, else a polars frame, else a dict of arrays.

In: a `Path` or a `Solution`. Out: one column an entry of the variables, named after the data's columns where known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.problem.membership import in_share

if TYPE_CHECKING:
    from spdsl.solution.path import Path
    from spdsl.solution.solution import Solution

__all__ = ["entry_names", "matrix_columns", "path_frame", "solution_frame"]


def entry_names(bound: BoundProblem) -> list[str]:
    """A name for each entry of the flat vector: ``b``, ``w[bmi]`` (a column's name, where known), ``M[0,3]``."""
    names: list[str] = []
    columns = _column_names(bound)
    for variable, shape in bound.layout.shapes.items():
        if shape == ():
            names.append(variable)
        elif len(shape) == 1:
            known = columns.get(variable)
            names += [f"{variable}[{known[i] if known else i}]" for i in range(shape[0])]
        else:
            names += [f"{variable}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]
    return names


def _column_names(bound: BoundProblem) -> dict[str, tuple[str, ...]]:
    """For each vector variable the column names of the matrix that it is multiplied with."""
    sizes = {item.name: item.dims for item in bound.problem.data if item.kind == "matrix"}
    found: dict[str, tuple[str, ...]] = {}
    for variable in bound.problem.variables:
        if variable.kind != "vector":
            continue
        for matrix, dims in sizes.items():
            names = bound.feature_names.get(matrix)
            length = bound.layout.shapes[variable.name][0]
            if names and dims[-1] == variable.dims[0] and len(names) == length:
                found.setdefault(variable.name, tuple(names))
    return found


def matrix_columns(bound: BoundProblem, variable: str) -> tuple[str, ...]:
    """The names of the features that a symmetric variable's rows stand for; empty where there are none."""
    size = bound.problem.variable(variable).dims[0]
    for item in bound.problem.data:
        names = bound.feature_names.get(item.name, ())
        if item.kind == "matrix" and item.dims[-1] == size and names:
            return tuple(names)
    return ()


def path_frame(path: Path, ages: Iterable[float] | None = None) -> Any:
    """See `Path.to_frame`."""
    if ages is None:
        x, at, residuals = path.nodes, path.ages, path.kkt_residuals
    else:
        found = [path(float(age)) for age in ages]
        x = np.array([solution.x for solution in found]).reshape(len(found), path.nodes.shape[1])
        at = np.array([solution.age for solution in found], float)
        residuals = np.array([solution.kkt_residual for solution in found], float)
    columns: dict[str, Any] = {"age": at}
    if path.bound.data:
        losses = [path.bound.losses(row) for row in x]
        columns["in_share"] = np.array([in_share(path.bound, loss, float(age)) for loss, age in zip(losses, at)], float)
        columns["objective"] = np.array([path.bound.objective(row, float(age)) for row, age in zip(x, at)], float)
    columns["kkt_residual"] = residuals
    columns |= {name: x[:, i] for i, name in enumerate(entry_names(path.bound))}
    return _frame(columns)


def solution_frame(solution: Solution) -> Any:
    """See `Solution.to_frame`."""
    names = entry_names(solution.bound)
    variables = [
        variable for variable, where in solution.bound.layout.slices.items() for _ in range(where.stop - where.start)
    ]
    starts = {variable: where.start for variable, where in solution.bound.layout.slices.items()}
    entries = np.array([i - starts[variable] for i, variable in enumerate(variables)], int)
    return _frame(
        {
            "variable": np.array(variables, dtype=str),
            "entry": entries,
            "name": np.array(names, dtype=str),
            "value": solution.x,
        }
    )


def _frame(columns: dict[str, Any]) -> Any:
    try:
        import pandas

        return pandas.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars

        return polars.DataFrame(columns)
    except ImportError:
        return columns

"""What a name is to be bound to, before it is checked: a raw value with its origin; and its conversion to arrays.

In: candidates from Python arguments, files and `NAME=SOURCE`. Out: checked float64 arrays, CSR, labels, graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from spdsl.data.arrays import is_sparse, to_array, to_matrix, to_scalar, to_vector
from spdsl.data.complaints import Complaints, Spot
from spdsl.data.frames import frame_to_table, is_frame
from spdsl.data.graphs import graph_from_text, to_graph
from spdsl.data.labels import map_labels
from spdsl.data.tables import Columns, columns_to_matrix, columns_to_raw, columns_to_vector
from spdsl.problem import DataDeclaration, LabelMapping, ParameterDeclaration

__all__ = ["Candidate", "Converted", "convert", "declared_text", "from_python", "rows_of"]


@dataclass(frozen=True)
class Candidate:
    """A value for a name. `source` is a file's name, or "" for an argument; `detail` says which part of it."""

    value: Any = field(repr=False)
    source: str = ""
    detail: str = ""
    names: tuple[str, ...] = ()
    open_width: bool = False  # a LIBSVM file: columns behind its last one are zero, however many there are

    @property
    def origin(self) -> str:
        """Where it came from, in words."""
        return ", ".join(part for part in (self.source, self.detail) if part) or "argument"


class Converted(NamedTuple):
    """A checked value, the label mapping where there is one, and the columns' names where there are any."""

    value: Any
    mapping: LabelMapping | None = None
    names: tuple[str, ...] = ()


def declared_text(declaration: DataDeclaration | ParameterDeclaration) -> str:
    """The type as the model writes it: ``matrix(n, d)``."""
    return declaration.kind + (f"({', '.join(declaration.dims)})" if declaration.dims else "")


def from_python(name: str, value: Any, complaints: Complaints) -> Candidate | None:
    """A candidate from an argument; frames become tables. None after a complaint."""
    if is_frame(value):
        table = frame_to_table(value, f"argument `{name}`", complaints)
        return None if table is None else Candidate(Columns(table, tuple(range(len(table.columns)))))
    return Candidate(value)


def rows_of(candidate: Candidate) -> int | None:
    """The length of its first axis, where that can be seen without converting it."""
    value = candidate.value
    if isinstance(value, Columns):
        return value.table.n_rows
    if hasattr(value, "shape"):
        return int(value.shape[0]) if len(value.shape) else None
    return len(value) if isinstance(value, (list, tuple)) else None


def convert(
    declaration: DataDeclaration,
    candidate: Candidate,
    complaints: Complaints,
    mapping: LabelMapping | None = None,
    n_nodes: int | None = None,
    node_names: Sequence[str] | None = None,
) -> Converted | None:
    """The candidate as what the declaration asks for. None after a complaint."""
    names = candidate.names or (candidate.value.names if isinstance(candidate.value, Columns) else ())
    spot = Spot(declaration.name, declared_text(declaration), candidate.source, tuple(names))
    value = candidate.value
    if value is None and candidate.source:
        return None  # a file's array that couldn't be loaded: its complaint is made
    if value is None:
        complaints.add("SPL413", f"`{declaration.name}` is None", help=[f"give it: it is declared {spot.declared}"])
        return None
    if declaration.kind == "graph":
        if isinstance(value, str):
            value = graph_from_text(value) or value
        graph = to_graph(value, spot, complaints, n_nodes, node_names)
        return None if graph is None else Converted(graph)
    if declaration.kind == "labels":
        return _labels(value, spot, complaints, mapping)
    found: Any
    if declaration.kind == "scalar":
        found = to_scalar(value, spot, complaints)
    elif declaration.kind == "vector":
        columns = isinstance(value, Columns)
        found = columns_to_vector(value, spot, complaints) if columns else to_vector(value, spot, complaints)
    else:
        columns = isinstance(value, Columns)
        found = columns_to_matrix(value, spot, complaints) if columns else to_matrix(value, spot, complaints)
        if declaration.kind == "symmetric" and found is not None:
            found = _symmetric(found, spot, complaints)
    if found is None:
        return None
    fitting = declaration.kind == "matrix" and len(names) == found.shape[1]
    return Converted(found, names=tuple(names) if fitting else ())


def _labels(value: Any, spot: Spot, complaints: Complaints, mapping: LabelMapping | None) -> Converted | None:
    if isinstance(value, Columns):
        raw = columns_to_raw(value, spot, complaints)
    else:
        raw = to_array(value, spot, complaints)
        if raw is not None and raw.ndim == 2 and raw.shape[1] == 1:
            raw = raw[:, 0]
        if raw is not None and raw.ndim != 1:
            shape = " x ".join(map(str, raw.shape)) or "a single value"
            complaints.add(
                "SPL411",
                f"`{spot.name}` is declared {spot.declared}, but it is {shape}",
                spot.place,
                ["one-hot columns become one label a row by `.argmax(axis=1)`"] if raw.ndim == 2 else (),
            )
            return None
    if raw is None:
        return None
    if len(raw) == 0:
        complaints.add("SPL427", f"`{spot.name}` has no entries", spot.place)
        return None
    found = map_labels(raw, spot, complaints, mapping)
    return None if found is None else Converted(*found)


def _symmetric(value: Any, spot: Spot, complaints: Complaints) -> Any:
    """The matrix when it is square and equals its transpose up to rounding (then made so exactly)."""
    matrix = value.toarray() if is_sparse(value) else value
    if matrix.shape[0] != matrix.shape[1]:
        complaints.add(
            "SPL428",
            f"`{spot.name}` is declared {spot.declared}, but its shape is {matrix.shape[0]} x {matrix.shape[1]}",
            spot.place,
        )
        return None
    gap = np.abs(matrix - matrix.T)
    scale = max(float(np.abs(matrix).max()), np.finfo(float).tiny)
    if float(gap.max()) > 1e-8 * scale:
        i, j = sorted(int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape))
        complaints.add(
            "SPL428",
            f"`{spot.name}` is declared {spot.declared}, but entry ({i}, {j}) is {matrix[i, j]:.6g} and ({j}, {i}) is "
            f"{matrix[j, i]:.6g}",
            spot.place,
            [f"symmetrize it by `({spot.name} + {spot.name}.T)/2`, or declare it matrix"],
        )
        return None
    return matrix if not gap.any() else (matrix + matrix.T) / 2.0

"""`bind`: a problem and its data become a `BoundProblem`; every complaint about data is made here, all in one go.

In: a `Problem`; arrays and frames from Python, files, `NAME=SOURCE` texts, parameters' values. Out: a `BoundProblem`.

The rules, first to last:

1. An argument or a `NAME=SOURCE` binds outright.
2. A table's column, an NPZ key or a file named like a declared name binds to it.
3. A table's remaining numeric columns, in order, bind to the one declared matrix with as many rows. Columns of text are
   left out (a note says so); a column counts as numeric when at least half of its cells are numbers, and then a cell
   that is none is an error.
4. A LIBSVM file binds to the one declared matrix and the one declared vector or labels; an edge list to the one graph;
   a lone array to the one declared datum of its dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spdsl.data.candidates import Candidate, convert, declared_text, from_python
from spdsl.data.complaints import Complaints, listed
from spdsl.data.parameters import bind_parameters, complain_of_unknown
from spdsl.data.sizes import Sizes
from spdsl.diagnostics import nearest_name
from spdsl.problem import BoundProblem, DataDeclaration, LabelMapping, Problem, require_met
from spdsl.problem import standardize as standardize_bound

__all__ = ["bind", "rebind"]


@dataclass
class _Work:
    """What a run of `bind` knows so far."""

    problem: Problem
    complaints: Complaints
    sizes: Sizes = field(default_factory=Sizes)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    contents: list[Any] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, LabelMapping] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reading_failed: bool = False


def bind(
    problem: Problem,
    arrays: Mapping[str, Any] | None = None,
    data: Any = None,
    bindings: Mapping[str, Any] | Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    standardize: Iterable[str] = (),
) -> BoundProblem:
    """Bind every declared name of a problem.

    Parameters
    ----------
    problem : Problem
    arrays : mapping, optional
        Values by name: NumPy arrays, lists, SciPy sparse matrices (any format; kept sparse, as CSR), data frames,
        series, graphs, numbers. A parameter's or a free size's name may be among them.
    data : path, data frame, mapping, or a sequence of these, optional
        Files (CSV, TSV, Parquet, NPZ, NPY, LIBSVM, edge lists; also ``.gz``) or frames whose parts bind by the rules
        above.
    bindings : mapping or sequence of "NAME=SOURCE", optional
        SOURCE is a column, several (``a,b,c`` or ``a:c``), ``file.csv:column``, ``file.npy``, ``file.npz:key``, a
        number; see `spdsl.data.sources`.
    parameters : mapping, optional
        Values that replace the parameters' defaults: numbers, numeric text, arrays for vectors.
    standardize : names, optional
        Data to bring to mean 0 and standard deviation 1, column by column. Never done unasked.

    Raises
    ------
    DataError
        With every complaint (up to 20) about data and parameters.
    """
    return _bind(problem, arrays, data, bindings, parameters, standardize, None)


def rebind(
    bound: BoundProblem,
    arrays: Mapping[str, Any] | None = None,
    data: Any = None,
    bindings: Mapping[str, Any] | Sequence[str] | None = None,
) -> BoundProblem:
    """Other data for the same model: same parameters' values, label mapping, scaling and column count.

    Data that are not given anew are kept when they share no size with those that are (a graph, a vector of weights over
    the columns). An rkhs variable is expanded at the new points, so predictions of a fitted kernel model need
    ``bound.gram(variable, rows)`` with the old one.

    Raises
    ------
    DataError
        As `bind`; also when the new data have other columns than the old, or the model's derivation doesn't hold for
        them.
    """
    fresh = _bind(bound.problem, arrays, data, bindings, None, (), bound)
    require_met(fresh)
    return fresh


def _bind(
    problem: Problem,
    arrays: Mapping[str, Any] | None,
    data: Any,
    bindings: Mapping[str, Any] | Sequence[str] | None,
    parameters: Mapping[str, Any] | None,
    standardize: Iterable[str],
    earlier: BoundProblem | None,
) -> BoundProblem:
    work = _Work(problem, Complaints())
    _take_arguments(work, arrays or {}, parameters or {})
    if data is not None or bindings:
        from spdsl.data.matching import match_contents, read_contents
        from spdsl.data.sources import take_bindings

        work.contents = read_contents(problem, data, work.complaints)
        work.reading_failed = bool(work.complaints.diagnostics)
        taken = take_bindings(problem, bindings or {}, work.contents, work.candidates, work.complaints)
        for name, candidate in taken.items():
            _place(work, name, candidate)
        match_contents(problem, work.contents, work.candidates, set(work.parameters), work.complaints)
        _move_parameters(work)
    if earlier is not None:
        _keep_earlier(work, earlier)
    _complain_of_unbound(work)
    _convert_all(work, earlier)
    values = earlier.parameters if earlier else bind_parameters(problem, work.parameters, work.sizes, work.complaints)
    work.sizes.require(problem, work.complaints)
    if earlier is not None:
        _compare_columns(work, earlier)
    work.complaints.raise_if_any()
    bound = BoundProblem(
        problem,
        data=work.values,
        parameters=values,
        sizes=work.sizes.values,
        labels=work.labels,
        feature_names=work.names,
        origin={name: candidate.origin for name, candidate in work.candidates.items()},
        notes=tuple(work.complaints.notes),
    )
    if earlier is not None:
        return _scale_alike(bound, earlier)
    wanted = [standardize] if isinstance(standardize, str) else list(standardize)
    return standardize_bound(bound, wanted) if wanted else bound


# -- what the caller says outright -----------------------------------------------------------------------------------


def _take_arguments(work: _Work, arrays: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    for name, value in arrays.items():
        if name in parameters:
            work.complaints.add("SPL415", f"`{name}` is given twice: as an array and as a parameter")
            continue
        if any(item.name == name for item in work.problem.data):
            candidate = from_python(name, value, work.complaints)
            if candidate is not None:
                work.candidates[name] = candidate
        else:
            _take_parameter(work, name, value)
    for name, value in parameters.items():
        if any(item.name == name for item in work.problem.data):
            _place(work, name, Candidate(value))
        else:
            _take_parameter(work, name, value)


def _take_parameter(work: _Work, name: str, value: Any) -> None:
    if any(item.name == name for item in work.problem.parameters):
        candidate = from_python(name, value, work.complaints)
        if candidate is not None:
            work.parameters[name] = candidate.value
    elif name in _sizes_of(work.problem):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = 0.5
        if number != int(number) or number < 1:
            work.complaints.add("SPL425", f"the size `{name}` can't be {value!r}: it is a whole number from 1 on")
        else:
            work.sizes.unify(name, int(number), f"`{name}={int(number)}`", "", 0, work.complaints)
    else:
        complain_of_unknown(name, work.problem, work.complaints)


def _place(work: _Work, name: str, candidate: Candidate) -> None:
    """A binding by `NAME=SOURCE`: to a datum, a parameter or a size."""
    if any(item.name == name for item in work.problem.data):
        if name in work.candidates:
            work.complaints.add("SPL415", f"`{name}` is bound twice: by an argument and by {candidate.origin}")
        else:
            work.candidates[name] = candidate
    elif name in work.parameters:
        work.complaints.add("SPL415", f"`{name}` is given twice: as a parameter and by {candidate.origin}")
    else:
        _take_parameter(work, name, candidate.value)


def _sizes_of(problem: Problem) -> set[str]:
    owners: list[Any] = [*problem.data, *problem.parameters, *problem.variables]
    return {dim for item in owners for dim in item.dims if not dim.isdigit()}


def _move_parameters(work: _Work) -> None:
    """Vector and matrix parameters that files gave go where the others are."""
    declared = {item.name for item in work.problem.data}
    for name in [name for name in work.candidates if name not in declared]:
        work.parameters.setdefault(name, work.candidates.pop(name).value)


# -- conversion ------------------------------------------------------------------------------------------------------


def _convert_all(work: _Work, earlier: BoundProblem | None) -> None:
    """LIBSVM features after what may fix their width, graphs last: their nodes are the columns of other data."""
    ordered = sorted(work.problem.data, key=lambda item: _turn(item, work.candidates.get(item.name)))
    for declaration in ordered:
        name = declaration.name
        candidate = work.candidates.get(name)
        if candidate is None:
            continue
        if candidate.open_width and len(declaration.dims) == 2:
            candidate = _widened(candidate, _declared_width(work, declaration, earlier))
        n_nodes, node_names = _nodes(work, declaration)
        mapping = None if earlier is None else earlier.labels.get(name)
        found = convert(declaration, candidate, work.complaints, mapping, n_nodes, node_names)
        if found is None:
            continue
        work.values[name] = found.value
        if found.mapping is not None:
            work.labels[name] = found.mapping
        if found.names:
            work.names[name] = found.names
        for axis, (dim, length) in enumerate(zip(declaration.dims, _shape(found.value))):
            work.sizes.unify(dim, length, name, candidate.source, axis, work.complaints)


def _turn(declaration: DataDeclaration, candidate: Candidate | None) -> int:
    return 2 if declaration.kind == "graph" else int(candidate is not None and candidate.open_width)


def _declared_width(work: _Work, declaration: DataDeclaration, earlier: BoundProblem | None) -> int:
    """How many columns a LIBSVM file stands for, where other data or the model say so; 0 otherwise."""
    dim = declaration.dims[1]
    if earlier is not None:
        return earlier.dimension(dim)
    return work.sizes.known(dim) or 0


def _widened(candidate: Candidate, width: int) -> Candidate:
    """A LIBSVM file leaves out zeros, so its last columns may not show."""
    if width <= candidate.value.shape[1]:
        return candidate
    matrix = candidate.value.tocsr(copy=True)
    matrix.resize(matrix.shape[0], width)
    return replace(candidate, value=matrix)


def _shape(value: Any) -> tuple[int, ...]:
    if hasattr(value, "n_nodes"):
        return (int(value.n_nodes),)
    return tuple(int(length) for length in np.shape(value)) if not hasattr(value, "tocsr") else tuple(value.shape)


def _nodes(work: _Work, declaration: DataDeclaration) -> tuple[int | None, tuple[str, ...] | None]:
    """How many nodes a graph has by other data, and the names of the columns that they are."""
    if declaration.kind != "graph":
        return None, None
    dim = declaration.dims[0]
    for other in work.problem.data:
        if other.kind == "matrix" and other.dims[1] == dim and other.name in work.names:
            return work.sizes.known(dim), work.names[other.name]
    return work.sizes.known(dim), None


def _complain_of_unbound(work: _Work) -> None:
    for declaration in work.problem.data:
        name = declaration.name
        if name in work.candidates or work.reading_failed or _already_complained(work, name):
            continue
        offered = list(dict.fromkeys(part for content in work.contents for part in content.part_names))
        helps: list[str] = []
        if declaration.kind == "graph":
            helps.append(
                f"give its edges: `--data edges.csv` (columns u,v or u,v,cost), or a grid: "
                f'`--bind "{name}=grid(20, 20)"`; in Python also a networkx graph or a square SciPy matrix'
            )
        elif offered:
            near = next((part for part in offered if part.lower() == name.lower()), None)
            if near is None and len(name) > 2:
                near = nearest_name(name, offered)
            helps.append(f"say which: `--bind {name}={near or 'COLUMN'}`; the data offer {listed(offered)}")
        else:
            helps.append(
                f"give it: `solve(..., {name}=...)` in Python, `--data FILE` or `--bind {name}=FILE` "
                "on the command line"
            )
        work.complaints.add(
            "SPL413", f"nothing is bound to `{name}`, declared {declared_text(declaration)}", help=helps
        )


def _already_complained(work: _Work, name: str) -> bool:
    """A datum whose binding failed has its complaint; saying that it is unbound too would only distract."""
    marks = (f"`{name}`", f"`{name}=")
    return any(mark in item.message + item.place for item in work.complaints.diagnostics for mark in marks)


# -- other data for the same model -----------------------------------------------------------------------------------


def _keep_earlier(work: _Work, earlier: BoundProblem) -> None:
    renewed = {dim for item in work.problem.data if item.name in work.candidates and item.dims for dim in item.dims[:1]}
    for item in work.problem.data:
        if item.name not in work.candidates and not renewed.intersection(item.dims):
            raw = earlier.scaling[item.name].undo(earlier.data[item.name]) if item.name in earlier.scaling else None
            value = earlier.data[item.name] if raw is None else raw
            work.candidates[item.name] = Candidate(value, earlier.origin.get(item.name, ""))


def _compare_columns(work: _Work, earlier: BoundProblem) -> None:
    for item in work.problem.data:
        if item.kind != "matrix" or item.name not in work.values:
            continue
        was, now = earlier.data[item.name].shape[1], work.values[item.name].shape[1]
        if was != now:
            source = work.candidates[item.name].source
            text = f"the model was fitted on {was} columns of `{item.name}`, and the new data have {now}"
            work.complaints.add("SPL412", text, source)
        old, new = earlier.feature_names.get(item.name), work.names.get(item.name)
        if was == now and old and new and old != new:
            k = next(k for k, (a, b) in enumerate(zip(old, new)) if a != b)
            text = f"column {k} of `{item.name}` is {new[k]!r}, but the model was fitted on {old[k]!r} there"
            work.complaints.add(
                "SPL412", text, work.candidates[item.name].source, ["give the columns in the same order"]
            )


def _scale_alike(bound: BoundProblem, earlier: BoundProblem) -> BoundProblem:
    if not earlier.scaling:
        return bound
    data = {
        name: earlier.scaling[name].apply(value) if name in earlier.scaling else value
        for name, value in bound.data.items()
    }
    return replace(bound, data=data, scaling=earlier.scaling)

"""The rules that bind what files hold to a model's names when nobody says it outright.

In: a problem, contents of files, what is bound already. Out: candidates for the rest, or complaints about what isn't
clear.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spdsl.data.array_files import GRAPH, SPARSE, Arrays, from_mapping
from spdsl.data.candidates import Candidate, from_python, rows_of
from spdsl.data.complaints import Complaints, listed
from spdsl.data.files import Content, read_file
from spdsl.data.frames import is_frame
from spdsl.data.graphs import EdgeList
from spdsl.data.svmlight_files import SparseSamples
from spdsl.data.tables import Columns, Table
from spdsl.problem import DataDeclaration, ParameterDeclaration, Problem

__all__ = ["array_candidate", "match_contents", "read_contents"]


def read_contents(problem: Problem, data: Any, complaints: Complaints) -> list[Content]:
    """Everything that `data` names: paths, frames, mappings, or a sequence of these."""
    if data is None:
        return []
    alone = isinstance(data, (str, os.PathLike, Mapping)) or is_frame(data)
    contents: list[Content] = []
    has_graph = any(item.kind == "graph" for item in problem.data)
    for item in [data] if alone else list(data):
        content: Content | None
        if isinstance(item, (str, os.PathLike)):
            content = read_file(Path(item).expanduser(), complaints, has_graph=has_graph)
        elif isinstance(item, Mapping):
            content = from_mapping(item, complaints)
        elif is_frame(item):
            candidate = from_python("data", item, complaints)
            content = None if candidate is None else candidate.value.table
        else:
            complaints.add(
                "SPL418",
                f"`data` can't be a {type(item).__name__}",
                help=["give a path, a data frame, a mapping of arrays, or a list of these; arrays go by name: `X=X`"],
            )
            continue
        if content is not None:
            contents.append(content)
    return contents


def match_contents(
    problem: Problem,
    contents: Sequence[Content],
    candidates: dict[str, Candidate],
    given: set[str],
    complaints: Complaints,
) -> None:
    """Add to `candidates` what the rules bind. `given` are parameters that have a value already."""
    wanted: list[Any] = [item for item in problem.data if item.name not in candidates]
    wanted += [item for item in problem.parameters if item.kind != "scalar" and item.name not in given]
    for declaration in wanted:
        found = [c for content in contents if (c := _by_name(declaration, content)) is not None]
        if len(found) > 1:
            sources = " and ".join(dict.fromkeys(candidate.origin for candidate in found))
            complaints.add(
                "SPL415",
                f"`{declaration.name}` is bound twice: by {sources}",
                help=[f"say which: `--bind {declaration.name}=FILE:COLUMN`"],
            )
        if found:
            candidates[declaration.name] = found[0]
    for content in contents:
        if isinstance(content, SparseSamples):
            _match_samples(problem, content, candidates, complaints)
        elif isinstance(content, EdgeList):
            _match_edges(problem, content, candidates, complaints)
        elif isinstance(content, Arrays):
            _match_arrays(problem, content, candidates, complaints)
    for content in contents:
        if isinstance(content, Table):
            _match_columns(problem, content, candidates, complaints)


# -- by name ---------------------------------------------------------------------------------------------------------


def _by_name(declaration: DataDeclaration | ParameterDeclaration, content: Content) -> Candidate | None:
    """The part of a content that is called like the declared name."""
    name, kind = declaration.name, declaration.kind
    if isinstance(content, Arrays):
        return array_candidate(content, name) if name in content.loaders else None
    if isinstance(content, Table):
        place = content.index(name)
        if place is not None and kind in ("vector", "labels"):
            columns = Columns(content, (place,))
            return Candidate(columns, _file(content), columns.described)
        if content.stem == name and kind in ("vector", "labels") and len(content.columns) == 1:
            return Candidate(Columns(content, (0,)), _file(content))
        if content.stem == name and kind in ("matrix", "symmetric"):
            return Candidate(Columns(content, tuple(range(len(content.columns)))), _file(content))
        return None
    if isinstance(content, EdgeList) and content.stem == name and kind == "graph":
        return Candidate(content, content.source)
    return None


def array_candidate(content: Arrays, name: str) -> Candidate:
    """A member of an archive, with the columns' names when the archive has them."""
    value = content.load(name)
    shape: Any = getattr(value, "shape", ())
    names = content.feature_names(shape[1]) if len(shape) == 2 else ()
    source = "" if content.source.startswith("argument") else content.source
    return Candidate(value, source, "" if content.lone else f"array {name!r}", names)


def _file(table: Table) -> str:
    return "" if table.source.startswith("argument") else table.source


# -- by what fits ----------------------------------------------------------------------------------------------------


def _open(problem: Problem, candidates: Mapping[str, Candidate], *kinds: str) -> list[DataDeclaration]:
    return [item for item in problem.data if item.kind in kinds and item.name not in candidates]


def _known_rows(problem: Problem, candidates: Mapping[str, Candidate]) -> dict[str, int]:
    """Lengths of first axes that bound data fix already."""
    known: dict[str, int] = {}
    for item in problem.data:
        rows = rows_of(candidates[item.name]) if item.name in candidates and item.kind != "graph" else None
        if rows is not None and item.dims:
            known.setdefault(item.dims[0], rows)
    return known


def _fitting(
    problem: Problem, rows: int | None, candidates: Mapping[str, Candidate], *kinds: str
) -> list[DataDeclaration]:
    """Unbound data of these kinds with as many rows, as far as it is known; if none fits, all of them."""
    known = _known_rows(problem, candidates)
    able = _open(problem, candidates, *kinds)
    fitting = [
        item
        for item in able
        if rows is None or (int(item.dims[0]) if item.dims[0].isdigit() else known.get(item.dims[0], rows)) == rows
    ]
    sure = [item for item in fitting if item.dims[0] in known or item.dims[0].isdigit()]
    return sure if len(sure) == 1 else fitting or able


def _assign(
    able: list[DataDeclaration],
    candidate: Candidate,
    what: str,
    candidates: dict[str, Candidate],
    complaints: Complaints,
) -> None:
    """Bind to the one that fits; several are a complaint, none is fine (nothing needs it)."""
    if len(able) == 1:
        candidates[able[0].name] = candidate
    elif able:
        names = [item.name for item in able]
        complaints.add(
            "SPL416",
            f"{what} could be {' or '.join(f'`{name}`' for name in names)}",
            candidate.source,
            [f"say which columns or arrays each one has, as in `--bind {names[0]}=a:c` or `--bind {names[0]}=FILE`"],
        )


def _match_samples(
    problem: Problem, content: SparseSamples, candidates: dict[str, Candidate], complaints: Complaints
) -> None:
    source = content.source
    matrix = Candidate(content.X, source, "features", open_width=True)
    target = Candidate(content.y, source, "labels")
    _assign(_fitting(problem, len(content.y), candidates, "matrix"), matrix, "the features", candidates, complaints)
    _assign(
        _fitting(problem, len(content.y), candidates, "vector", "labels"), target, "the labels", candidates, complaints
    )


def _match_edges(problem: Problem, content: EdgeList, candidates: dict[str, Candidate], complaints: Complaints) -> None:
    if not any(candidate.value is content for candidate in candidates.values()):
        able = _open(problem, candidates, "graph")
        _assign(able, Candidate(content, content.source), "the edge list", candidates, complaints)


def _match_arrays(problem: Problem, content: Arrays, candidates: dict[str, Candidate], complaints: Complaints) -> None:
    """A matrix or a graph stored without a name of its own; the lone array of an NPY file."""
    for name, kind in ((SPARSE, "matrix"), (GRAPH, "graph")):
        if name in content.loaders and not any(item.name == name for item in problem.data):
            candidate = array_candidate(content, name)
            rows = rows_of(candidate)
            able = _fitting(problem, rows, candidates, kind) if kind == "matrix" else _open(problem, candidates, kind)
            _assign(able, candidate, f"the array {name!r}", candidates, complaints)
    if content.lone:
        candidate = array_candidate(content, content.stem)
        if any(other.value is candidate.value for other in candidates.values()):
            return
        two = getattr(candidate.value, "ndim", 0) == 2 and candidate.value.shape[1] > 1
        kinds = ("matrix", "symmetric") if two else ("vector", "labels")
        able = _fitting(problem, rows_of(candidate), candidates, *kinds)
        _assign(able, candidate, "the array", candidates, complaints)


def _match_columns(problem: Problem, table: Table, candidates: dict[str, Candidate], complaints: Complaints) -> None:
    """The numeric columns that nothing else uses, in order, to the one matrix with as many rows."""
    used = {
        k
        for candidate in candidates.values()
        if isinstance(candidate.value, Columns) and candidate.value.table is table
        for k in candidate.value.indices
    }
    reserved = {item.name for item in problem.data if item.kind in ("vector", "labels")}
    reserved |= {item.name for item in problem.parameters if item.kind != "scalar"}
    free = [k for k, column in enumerate(table.columns) if k not in used and column.name not in reserved]
    numeric = tuple(k for k in free if table.columns[k].is_numeric)
    text = [table.columns[k].name for k in free if not table.columns[k].is_numeric]
    if not numeric:
        return
    columns = Columns(table, numeric)
    able = _fitting(problem, table.n_rows, candidates, "matrix")
    what = f"the columns {listed(columns.names, 4)}"
    before = len(candidates)
    _assign(able, Candidate(columns, _file(table), columns.described), what, candidates, complaints)
    if len(candidates) > before and text:
        complaints.note(f"columns of text left out of `{able[0].name}`: {listed(text)} ({table.source})")
    elif len(candidates) == before and not able:
        complaints.note(f"columns of {table.source} that nothing uses: {listed(columns.names)}")

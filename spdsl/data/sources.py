"""`NAME=SOURCE`: says outright what a name is bound to.

In: texts and the data files' contents. Out: candidates, or complaints with the nearest name. SOURCE is, tried in this
order: ``grid(h, w)`` for a graph; a column's or an array's name in the data files; a file, alone or with a part
behind a colon (``file.csv:column``, ``file.csv:a,b``, ``file.npz:key``, ``edges.csv:from1``); several columns (``a,b``,
``a:c`` with both ends); a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spdsl.data.array_files import Arrays
from spdsl.data.candidates import Candidate
from spdsl.data.complaints import Complaints, listed
from spdsl.data.files import EXTENSIONS, Content, read_file
from spdsl.data.graphs import EdgeList, graph_from_text
from spdsl.data.matching import array_candidate
from spdsl.data.parameters import complain_of_unknown
from spdsl.data.svmlight_files import SparseSamples
from spdsl.data.tables import Columns, Table
from spdsl.diagnostics import nearest_name
from spdsl.problem import Problem

__all__ = ["split_binding", "take_bindings"]

_FILE = re.compile(
    rf"(?P<path>.+?(?:{'|'.join(map(re.escape, EXTENSIONS))})(?:\.gz)?)(?::(?P<part>.+))?", re.IGNORECASE | re.DOTALL
)


def split_binding(text: str, complaints: Complaints) -> tuple[str, str] | None:
    """``y=target`` as its two sides. None after a complaint."""
    name, mark, source = text.partition("=")
    if not mark or not name.strip() or not source.strip():
        helps = ["write NAME=SOURCE, as in `--bind y=target` or `--bind X=file.csv:a,b`"]
        complaints.add("SPL431", f"`{text}` is no NAME=SOURCE", help=helps)
        return None
    return name.strip(), source.strip()


def take_bindings(
    problem: Problem,
    bindings: Mapping[str, Any] | Sequence[str],
    contents: list[Content],
    candidates: Mapping[str, Candidate],
    complaints: Complaints,
) -> dict[str, Candidate]:
    """A candidate for every binding; files that only bindings name are read, and kept in `contents`' company."""
    if isinstance(bindings, str):
        bindings = [bindings]
    pairs: list[tuple[str, Any]] = []
    if isinstance(bindings, Mapping):
        pairs = list(bindings.items())
    else:
        pairs = [pair for text in bindings if (pair := split_binding(text, complaints)) is not None]
    reader = _Reader(contents, complaints)
    taken: dict[str, Candidate] = {}
    for name, source in pairs:
        declared: list[Any] = [*problem.data, *problem.parameters]
        dims = {dim for item in (*declared, *problem.variables) for dim in item.dims}
        declaration = next((item for item in declared if item.name == name), None)
        if declaration is None and name not in dims:
            complain_of_unknown(name, problem, complaints, "a source")
        elif name in taken:
            complaints.add("SPL415", f"`{name}` is bound twice: by {taken[name].origin} and by `{source}`")
        elif not isinstance(source, (str, Path)):
            taken[name] = Candidate(source)
        else:
            kind = declaration.kind if declaration is not None else "scalar"
            candidate = resolve(name, kind, str(source), reader)
            if candidate is not None:
                taken[name] = candidate
    return taken


class _Reader:
    """The data files, and those that bindings name (each read once)."""

    def __init__(self, contents: list[Content], complaints: Complaints) -> None:
        self.contents = contents
        self.complaints = complaints
        self.read: dict[tuple[str, bool, int], Content | None] = {}

    def file(self, path: str, wants_graph: bool, first_id: int) -> Content | None:
        key = (path, wants_graph, first_id)
        if key not in self.read:
            same = [
                item for item in self.contents if item.source == Path(path).name and isinstance(item, (Table, Arrays))
            ]
            known = same[0] if same and not wants_graph and Path(path).name == path else None
            self.read[key] = known or read_file(
                Path(path).expanduser(), self.complaints, wants_graph=wants_graph, first_id=first_id
            )
        return self.read[key]


def resolve(name: str, kind: str, source: str, reader: _Reader) -> Candidate | None:
    """What one SOURCE means. None after a complaint."""
    if kind == "graph" and (graph := graph_from_text(source)) is not None:
        return Candidate(graph, "", source)
    exact = [c for content in reader.contents if (c := _exact(source, content)) is not None]
    if len(exact) > 1:
        places = " and ".join(candidate.source for candidate in exact)
        helps = [f"say which: `{name}=FILE:{source}`"]
        reader.complaints.add("SPL416", f"`{name}={source}` could be in {places}", help=helps)
        return None
    if exact:
        return exact[0]
    found = _FILE.fullmatch(source)
    if found is not None:
        return _from_file(name, kind, found["path"], found["part"], reader)
    several = [c for content in reader.contents if isinstance(content, Table) and (c := _several(source, content))]
    if several:
        return several[0]
    try:
        return Candidate(float(source), "", f"`{source}`")
    except ValueError:
        _complain_of_source(name, source, reader)
        return None


def _exact(source: str, content: Content) -> Candidate | None:
    """A column, an array or a part of a LIBSVM file of exactly that name."""
    if isinstance(content, Table) and (place := content.index(source)) is not None:
        columns = Columns(content, (place,))
        return Candidate(columns, content.source, columns.described)
    if isinstance(content, Arrays) and source in content.loaders:
        return array_candidate(content, source)
    if isinstance(content, SparseSamples) and source in content.part_names:
        return _samples_part(content, source)
    return None


def _samples_part(content: SparseSamples, part: str) -> Candidate:
    if part == "X":
        return Candidate(content.X, content.source, "features", open_width=True)
    return Candidate(content.y, content.source, "labels")


def _several(source: str, table: Table) -> Candidate | None:
    """``a,b,c`` and ``a:c`` (both ends included) as columns of a table; None when a name isn't there."""
    indices: list[int] = []
    for part in (part.strip() for part in source.split(",")):
        ends = [part] if table.index(part) is not None else [end.strip() for end in part.split(":")]
        places = [table.index(end) for end in ends]
        if len(places) > 2 or any(place is None for place in places):
            return None
        first, last = places[0], places[-1]
        assert first is not None
        assert last is not None
        if last < first:
            return None
        indices.extend(range(first, last + 1))
    columns = Columns(table, tuple(indices))
    return Candidate(columns, table.source, columns.described)


def _from_file(name: str, kind: str, path: str, part: str | None, reader: _Reader) -> Candidate | None:
    first_id = 1 if kind == "graph" and part == "from1" else 0
    content = reader.file(path, kind == "graph", first_id)
    if content is None:
        return None
    if part is not None and not first_id:
        found = _exact(part, content)
        if found is None and isinstance(content, Table):
            found = _several(part, content)
        if found is None:
            _complain_of_part(name, part, content, reader.complaints)
        return found
    return _whole(name, kind, content, reader.complaints)


def _whole(name: str, kind: str, content: Content, complaints: Complaints) -> Candidate | None:
    """A file without a part behind it."""
    if isinstance(content, Table):
        chosen = tuple(range(len(content.columns)))
        return Candidate(Columns(content, chosen), content.source)
    if isinstance(content, EdgeList):
        return Candidate(content, content.source)
    if isinstance(content, SparseSamples):
        return _samples_part(content, "y" if kind in ("vector", "labels") else "X")
    keys = list(content.loaders)
    key = name if name in keys else keys[0] if len(keys) == 1 else None
    if key is None:
        complaints.add(
            "SPL416",
            f"it isn't clear which array of {content.source} `{name}` means",
            content.source,
            [f"say which: `{name}={content.source}:KEY`; the archive has {listed(keys)}"],
        )
        return None
    return array_candidate(content, key)


def _complain_of_part(name: str, part: str, content: Content, complaints: Complaints) -> None:
    near = nearest_name(part, content.part_names)
    helps = [f"did you mean `{near}`?"] if near else []
    if content.part_names:
        helps.append(f"it has {listed(content.part_names)}")
    noun = "column" if isinstance(content, Table) else "array"
    complaints.add("SPL417", f"`{name}={content.source}:{part}`: there is no {noun} {part!r}", content.source, helps)


def _complain_of_source(name: str, source: str, reader: _Reader) -> None:
    offered = list(dict.fromkeys(part for content in reader.contents for part in content.part_names))
    parts = [part.strip() for part in re.split("[,:]", source)]
    wrong = next((part for part in parts if part not in offered), source)
    near = nearest_name(wrong, offered)
    helps = [f"did you mean `{near}`?"] if near else []
    if offered:
        helps.append(f"the data offer {listed(offered)}")
    else:
        helps.append("a file's name needs its extension, and columns need a file: `--data FILE`")
    what = f"`{name}={source}`: there is no column, array or file {wrong!r}"
    if wrong != source and len(parts) > 1 and all(part in offered for part in parts):
        what = f"`{name}={source}`: the columns aren't in one table, in this order"
    reader.complaints.add("SPL417", what, help=helps)

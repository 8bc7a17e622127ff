"""Reads a data file by its extension, or by its first line where the extension says nothing.

In: a path. Out: a `Table`, `Arrays`, `SparseSamples` or `EdgeList`; or complaints.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from spdsl.data.array_files import Arrays, read_npy, read_npz
from spdsl.data.complaints import Complaints
from spdsl.data.csv_files import read_csv
from spdsl.data.edge_lists import looks_like_edges, read_edge_list
from spdsl.data.frames import read_parquet
from spdsl.data.graphs import EdgeList
from spdsl.data.svmlight_files import SparseSamples, looks_like_svmlight, read_svmlight
from spdsl.data.tables import Table
from spdsl.data.text_files import complain_of_missing_file, head_of
from spdsl.diagnostics import edit_distance

__all__ = ["EXTENSIONS", "Content", "extension_of", "read_file"]

Content: TypeAlias = Table | Arrays | SparseSamples | EdgeList

EXTENSIONS = {
    ".csv": "table",
    ".tsv": "table",
    ".tab": "table",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".npy": "npy",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".edges": "edges",
    ".edgelist": "edges",
    ".txt": "text",
    ".dat": "text",
    ".data": "text",
}


def extension_of(path: Path) -> str:
    """The extension in lower case, a ``.gz`` behind it left out."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_file(
    path: Path, complaints: Complaints, wants_graph: bool = False, has_graph: bool = False, first_id: int = 0
) -> Content | None:
    """What a file holds. None after a complaint.

    Parameters
    ----------
    wants_graph : bool
        The file is for a graph, whatever it looks like.
    has_graph : bool
        The model declares a graph, so that a table which looks like an edge list is one.
    first_id : int
        What the node ids of an edge list count from.
    """
    if not complain_of_missing_file(path, complaints):
        return None
    kind = EXTENSIONS.get(extension_of(path), "")
    if kind == "npz":
        return read_npz(path, complaints)
    if kind == "npy":
        return read_npy(path, complaints)
    if kind == "parquet":
        return read_parquet(path, complaints)
    if kind == "svmlight":
        return read_svmlight(path, complaints)
    if kind == "edges" or (wants_graph and kind):
        return read_edge_list(path, complaints, first_id)
    head = head_of(path, complaints) if kind in ("table", "text") or not path.name.endswith(".zip") else b""
    if head is None:
        return None
    if kind != "table" and looks_like_svmlight(head):
        return read_svmlight(path, complaints)
    if not kind:
        _complain_of_extension(path, complaints)
        return None
    if has_graph and looks_like_edges(head):
        return read_edge_list(path, complaints, first_id)
    return read_csv(path, complaints, "\t" if extension_of(path) in (".tsv", ".tab") else "")


def _complain_of_extension(path: Path, complaints: Complaints) -> None:
    extension = extension_of(path)
    near = next((known for known in EXTENSIONS if edit_distance(extension, known, 1) == 1), None)
    what = f"the extension `{extension}` is unknown" if extension else "the file has no extension"
    helps = [f"did you mean `{near}`?"] if near else []
    if extension in (".xlsx", ".xls", ".ods"):
        helps = ["save the sheet as CSV"]
    elif extension == ".zip":
        helps = ["unpack it first; `.gz` is read as it is"]
    helps.append(f"spdsl reads {', '.join(EXTENSIONS)}, also with .gz")
    complaints.add("SPL402", what, path.name, helps)

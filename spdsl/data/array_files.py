"""Reads NPY and NPZ files: arrays by name, CSR matrices and graphs that were stored in parts put together again.

In: a path. Out: `Arrays`, whose members load when they are asked for; or complaints.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from spdsl.data.complaints import Complaints
from spdsl.data.graphs import EdgeList

__all__ = ["Arrays", "from_mapping", "read_npy", "read_npz"]

SPARSE = "csr"  # the name under which a matrix stored as bare data/indices/indptr/shape goes
GRAPH = "edges"


@dataclass(frozen=True)
class Arrays:
    """Named arrays of a file. `lone` says that there is just one, without a name of its own (NPY)."""

    source: str
    loaders: Mapping[str, Callable[[], Any]] = field(repr=False)
    stem: str = ""
    lone: bool = False
    complaints: Complaints = field(default_factory=Complaints, repr=False, compare=False)
    cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def part_names(self) -> tuple[str, ...]:
        """What `NAME=SOURCE` can refer to."""
        return tuple(self.loaders)

    def load(self, name: str) -> Any:
        """The member of that name; None after a complaint."""
        if name not in self.cache:
            self.cache[name] = self._load(name)
        return self.cache[name]

    def _load(self, name: str) -> Any:
        try:
            return self.loaders[name]()
        except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            objects = "allow_pickle" in str(error)
            what = "holds Python objects (a pickle), which spdsl doesn't load" if objects else f"is damaged: {error}"
            helps = ["save it as an array of numbers: `np.savez(file, X=X.astype(float))`"] if objects else ()
            self.complaints.add("SPL424", f"the array {name!r} {what}", self.source, helps)
            return None

    def feature_names(self, width: int) -> tuple[str, ...]:
        """The member ``feature_names`` when it has `width` entries."""
        if "feature_names" not in self.loaders:
            return ()
        names = self.load("feature_names")
        if names is None or np.ndim(names) != 1 or len(names) != width or names.dtype.kind not in "US":
            return ()
        return tuple(str(name) for name in names)


def from_mapping(values: Mapping[str, Any], complaints: Complaints) -> Arrays:
    """A mapping of arrays given from Python, as if it had been read from a file."""
    members = {str(name): partial(_given, value) for name, value in values.items() if value is not None}
    return Arrays("argument `data`", members, complaints=complaints)


def _given(value: Any) -> Any:
    return value


def read_npy(path: Path, complaints: Complaints) -> Arrays | None:
    """A single array, under the file's name. None after a complaint."""
    stem = path.name.partition(".")[0]
    content = Arrays(path.name, {stem: lambda: _loaded(path)}, stem, lone=True, complaints=complaints)
    if path.stat().st_size == 0:
        complaints.add("SPL403", "the file is empty", path.name)
        return None
    return None if content.load(stem) is None else content


def _loaded(path: Path) -> Any:
    loaded = np.load(path, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        raise ValueError("it is an archive, not a single array; name it .npz")
    return loaded


def read_npz(path: Path, complaints: Complaints) -> Arrays | None:
    """The members of an archive. None after a complaint."""
    if path.stat().st_size == 0:
        complaints.add("SPL403", "the file is empty", path.name)
        return None
    if not zipfile.is_zipfile(path):
        single = path.read_bytes()[:6] == b"\x93NUMPY"
        what = "it is a single array; name it .npy" if single else "it isn't a zip file, or was cut short"
        complaints.add("SPL424", f"the file is no readable NPZ archive: {what}", path.name)
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys = list(archive.files)
    except (ValueError, zipfile.BadZipFile, OSError, EOFError) as error:
        complaints.add("SPL424", f"the file is no readable NPZ archive: {error}", path.name)
        return None
    if not keys:
        complaints.add("SPL403", "the archive has no arrays", path.name)
        return None
    loaders: dict[str, Callable[[], Any]] = {key: partial(_member, path, key) for key in keys}
    _join_sparse(path, keys, loaders)
    _join_graphs(path, keys, loaders)
    return Arrays(path.name, loaders, path.name.partition(".")[0], complaints=complaints)


def _member(path: Path, key: str) -> Any:
    """One array of an archive; the file is closed again."""
    with np.load(path, allow_pickle=False) as archive:
        return archive[key]


def _join_sparse(path: Path, keys: Iterable[str], loaders: dict[str, Callable[[], Any]]) -> None:
    """data/indices/indptr/shape, bare or behind a prefix such as ``X_``, as one CSR matrix."""
    keys = set(keys)
    if "format" in keys and "shape" in keys:
        import scipy.sparse

        for key in ("format", "shape", "data", "indices", "indptr", "row", "col", "offsets", "_is_array"):
            loaders.pop(key, None)
        loaders[SPARSE] = lambda: scipy.sparse.load_npz(path)
        return
    for key in sorted(keys):
        prefix = key.removesuffix("indptr")
        parts = [prefix + part for part in ("data", "indices", "indptr")]
        if not key.endswith("indptr") or not keys.issuperset(parts):
            continue
        for part in (*parts, prefix + "shape"):
            loaders.pop(part, None)
        name = prefix.rstrip("_./") or SPARSE
        shape = prefix + "shape" if prefix + "shape" in keys else None
        loaders[name] = partial(_csr, path, parts, shape)


def _csr(path: Path, parts: list[str], shape: str | None) -> Any:
    import scipy.sparse

    data, indices, indptr = (_member(path, part) for part in parts)
    size = None if shape is None else tuple(int(length) for length in _member(path, shape))
    return scipy.sparse.csr_array((data, indices, indptr), shape=cast(Any, size))


def _join_graphs(path: Path, keys: Iterable[str], loaders: dict[str, Callable[[], Any]]) -> None:
    """``edges`` (and ``costs``, ``n_nodes``), bare or behind a prefix such as ``G_``, as one graph."""
    keys = set(keys)
    for key in sorted(keys):
        prefix = key.removesuffix("edges")
        if not key.endswith("edges") or (prefix and prefix[-1] not in "_./"):
            continue
        for part in ("costs", "n_nodes"):
            loaders.pop(prefix + part, None)
        loaders.pop(key)
        name = prefix.rstrip("_./") or GRAPH
        loaders[name] = partial(_graph, path, keys, prefix)


def _graph(path: Path, keys: set[str], prefix: str) -> Any:
    ids = _member(path, prefix + "edges")
    if ids.ndim != 2 or ids.shape[1] not in (2, 3) or ids.dtype.kind not in "iuf":
        return ids
    costs = _member(path, prefix + "costs") if prefix + "costs" in keys else None
    if ids.shape[1] == 3:
        ids, costs = ids[:, :2], ids[:, 2]
    n_nodes = int(_member(path, prefix + "n_nodes")) if prefix + "n_nodes" in keys else None
    return EdgeList(ids.astype(np.int64), None, costs, path.name, n_nodes=n_nodes)

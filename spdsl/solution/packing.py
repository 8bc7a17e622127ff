"""Values of a result file: each is plain JSON, or JSON that names the arrays which hold it.

In: floats, texts, arrays, CSR matrices, graphs, and tuples, lists and mappings of them. Out: JSON and arrays, and back.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from spdsl.diagnostics import SpdslWarning

__all__ = ["pack_all", "plain", "unpack_all"]


def pack_all(prefix: str, values: Mapping[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """Each value as plain JSON, or as a note on which arrays hold it; what can't be kept is named in a warning."""
    packed: dict[str, Any] = {}
    for name, value in values.items():
        try:
            packed[name] = _pack(f"{prefix}/{name}", value, arrays)
        except TypeError:
            text = f"{prefix} {name!r} is a {type(value).__name__}, which a result file can't hold; it was left out"
            warnings.warn(SpdslWarning(text), stacklevel=4)
    return packed


def _pack(key: str, value: Any, arrays: dict[str, Any]) -> Any:
    if hasattr(value, "tocsr"):
        csr = value.tocsr()
        arrays |= {f"{key}/data": csr.data, f"{key}/indices": csr.indices, f"{key}/indptr": csr.indptr}
        return {"csr": [int(side) for side in csr.shape]}
    if hasattr(value, "edges") and hasattr(value, "n_nodes"):
        arrays |= {f"{key}/edges": np.asarray(value.edges), f"{key}/costs": np.asarray(value.costs, float)}
        names = getattr(value, "names", None)
        return {"graph": int(value.n_nodes), "names": None if names is None else list(names)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcU" and value.ndim > 0:
        arrays[key] = value
        return {"array": True}
    if isinstance(value, tuple | list):
        return {"list": [_pack(f"{key}/{i}", item, arrays) for i, item in enumerate(value)]}
    if isinstance(value, Mapping):
        return {"map": {str(name): _pack(f"{key}/{name}", item, arrays) for name, item in value.items()}}
    return {"value": plain(value)}


def plain(value: Any) -> Any:
    """A value that JSON keeps exactly."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is not a plain value")


def unpack_all(prefix: str, packed: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The values again; a graph comes back as (n_nodes, edges, costs, names) in a namespace.

    Raises
    ------
    KeyError
        When an array is missing.
    """
    return {name: _unpack(f"{prefix}/{name}", value, arrays) for name, value in packed.items()}


def _unpack(key: str, packed: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    if "csr" in packed:
        import scipy.sparse

        parts = (arrays[f"{key}/data"], arrays[f"{key}/indices"], arrays[f"{key}/indptr"])
        return scipy.sparse.csr_array(parts, shape=tuple(packed["csr"]))
    if "graph" in packed:
        names = packed["names"]
        return SimpleNamespace(
            n_nodes=packed["graph"],
            edges=arrays[f"{key}/edges"],
            costs=arrays[f"{key}/costs"],
            names=None if names is None else tuple(names),
        )
    if "array" in packed:
        return arrays[key]
    if "list" in packed:
        return tuple(_unpack(f"{key}/{i}", item, arrays) for i, item in enumerate(packed["list"]))
    if "map" in packed:
        return unpack_all(key, packed["map"], arrays)
    return packed["value"]

"""Result files: a `Path` or a `Solution` as one ``.npz`` of plain arrays, written whole or not at all.

In: a result. Out: a file, and back from a file a `SavedResult` that `spdsl.model.load_result` makes a result of again.
The file holds the model's text, the parameters and (when asked) the data, so that it can be solved and queried anew;
nothing in it is pickled, and reading one never runs code from it.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.problem import BoundProblem, LabelMapping, Layout, Problem, Scaling
from spdsl.problem.functions import Array
from spdsl.solution.packing import pack_all, plain, unpack_all
from spdsl.solution.path import Path
from spdsl.solution.solution import Solution
from spdsl.solution.status import CriticalPoint, History, Status

__all__ = [
    "FORMAT",
    "VERSION",
    "SavedResult",
    "read_result",
    "restored_path",
    "restored_solution",
    "save_path",
    "save_solution",
]

FORMAT = "spdsl result"
VERSION = 1


@dataclass(frozen=True)
class SavedResult:
    """What a result file holds, before its model is compiled again.

    `data` is None in a file without data; `arrays` are the result's own (``ages``, ``nodes``, ... or ``x``), `meta` the
    plain values beside them.
    """

    kind: Literal["path", "solution"]
    model_name: str
    source: str
    derived_for: dict[str, float] | None
    backend: str
    options: Mapping[str, Any]
    data: Mapping[str, Any] | None
    parameters: Mapping[str, Any]
    sizes: Mapping[str, int]
    labels: Mapping[str, LabelMapping]
    feature_names: Mapping[str, tuple[str, ...]]
    origin: Mapping[str, str]
    scaling: Mapping[str, Scaling]
    layout: Layout
    arrays: Mapping[str, Array]
    history: History
    critical_points: tuple[CriticalPoint, ...] | None
    status: Status
    message: str
    statistics: Mapping[str, float]
    extra: Mapping[str, Any] = field(default_factory=dict)
    age: float | None = None
    objective: float = float("nan")
    kkt_residual: float | None = None
    notes: tuple[str, ...] = ()
    certificate: Mapping[str, Any] | None = None

    def bound(self, problem: Problem, graph: Callable[..., Any]) -> BoundProblem:
        """The problem, compiled again, with what the file kept of its data.

        `graph` makes a graph of n_nodes, edges, costs and names. Without data, only the variables' layout is known.
        """
        data = {
            name: graph(**vars(value)) if isinstance(value, SimpleNamespace) else value
            for name, value in (self.data or {}).items()
        }
        bound = BoundProblem(
            problem,
            data=data,
            parameters=self.parameters,
            sizes=self.sizes,
            labels=self.labels,
            feature_names=self.feature_names,
            origin=self.origin,
            scaling=self.scaling,
            notes=self.notes,
        )
        if self.data is None:
            bound.__dict__["layout"] = self.layout  # a kernel's expansion takes its size from the data
        elif bound.layout != self.layout:
            raise UsageError(
                Diagnostic("SPL703", "the variables of this file's result don't fit its own model and data")
            )
        return bound


# --- writing -------------------------------------------------------------------------------------------------------


def save_path(path: Path, file: str | PathLike[str], include_data: bool = True) -> None:
    """Write a path; see `Path.save`."""
    meta, arrays = _describe("path", path, include_data)
    arrays |= {"ages": path.ages, "nodes": path.nodes, "kkt_residuals": path.kkt_residuals}
    meta["critical_points"] = [asdict(point) for point in path.critical_points]
    _write(file, meta, arrays)


def save_solution(solution: Solution, file: str | PathLike[str], include_data: bool = True) -> None:
    """Write a solution; see `Solution.save`."""
    meta, arrays = _describe("solution", solution, include_data)
    arrays["x"] = solution.x
    meta |= {
        "age": solution.age,
        "objective": solution.objective,
        "kkt_residual": solution.kkt_residual,
        "extra": pack_all("extra", solution.extra, arrays),
    }
    _write(file, meta, arrays)


def _describe(kind: str, result: Path | Solution, include_data: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What both kinds of result share: the model, what was bound to it, and how the run ended."""
    bound = result.bound
    arrays: dict[str, Any] = {f"history/{name}": column for name, column in result.history.columns.items()}
    meta: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "model": {
            "name": bound.problem.name,
            "source": bound.problem.source,
            "derived_for": bound.problem.derived_for,
        },
        "backend": result.backend,
        "options": pack_all("options", result.options, arrays),
        "sizes": {name: int(size) for name, size in bound.sizes.items()},
        "labels": {name: [plain(mapping.negative), plain(mapping.positive)] for name, mapping in bound.labels.items()},
        "feature_names": {name: list(names) for name, names in bound.feature_names.items()},
        "origin": dict(bound.origin),
        "notes": list(bound.notes),
        "scaling": sorted(bound.scaling),
        "layout": {
            name: [where.start, where.stop, list(bound.layout.shapes[name])]
            for name, where in bound.layout.slices.items()
        },
        "status": result.status.name,
        "message": result.message,
        "certificate": None if result.certificate is None else result.certificate.to_dict(),
        "statistics": {name: plain(value) for name, value in result.statistics.items()},
        "parameters": pack_all("parameters", bound.parameters, arrays),
        "data": pack_all("data", bound.data, arrays) if include_data and bound.data else None,
    }
    for name, scaling in bound.scaling.items():
        arrays[f"scaling/{name}/mean"] = np.asarray(scaling.mean, float)
        arrays[f"scaling/{name}/deviation"] = np.asarray(scaling.deviation, float)
    return meta, arrays


def _write(file: str | PathLike[str], meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write beside the target and rename: an interrupt leaves the old file or the new one, never half of one."""
    target = os.fspath(file)
    folder = os.path.dirname(os.path.abspath(target))
    text = np.frombuffer(json.dumps(meta).encode("utf-8"), dtype=np.uint8)
    scratch = ""
    try:
        handle, scratch = tempfile.mkstemp(dir=folder, prefix=".spdsl-", suffix=".npz")
        with os.fdopen(handle, "wb") as stream:
            np.savez_compressed(stream, meta=text, **{_escape(key): value for key, value in arrays.items()})
        os.chmod(scratch, 0o666 & ~_umask())
        os.replace(scratch, target)
        scratch = ""
    except OSError as error:
        raise UsageError(
            Diagnostic("SPL705", f"can't write {target}: {error.strerror or error}", help=("choose another `--out`",))
        ) from error
    finally:
        if scratch and os.path.exists(scratch):
            os.unlink(scratch)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _escape(key: str) -> str:
    """The member's name for a key, kept apart from `np.savez`'s own argument names."""
    return f"a/{key}"


# --- reading -------------------------------------------------------------------------------------------------------


def read_result(file: str | PathLike[str]) -> SavedResult:
    """Read a result file.

    Raises
    ------
    UsageError
        When the file is missing, was not written by spdsl, is damaged, or was written by a newer version.
    """
    name = os.fspath(file)
    try:
        with open(name, "rb") as stream:
            content = stream.read()
    except OSError as error:
        raise UsageError(Diagnostic("SPL705", f"can't read {name}: {error.strerror or error}")) from error
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            if not hasattr(archive, "files") or "meta" not in archive.files:
                raise _wrong_file(name, "it holds arrays, but no result")
            meta = json.loads(archive["meta"].tobytes().decode("utf-8"))
            if not isinstance(meta, dict) or meta.get("format") != FORMAT:
                raise _wrong_file(name, "it holds arrays, but no result")
            if int(meta["version"]) > VERSION:
                raise UsageError(
                    Diagnostic(
                        "SPL704",
                        f"{name} was written by a newer spdsl (format {meta['version']}; known up to {VERSION})",
                        help=("upgrade spdsl: `pip install --upgrade spdsl`",),
                    )
                )
            arrays = {key[2:]: archive[key] for key in archive.files if key.startswith("a/")}
        return _restore(meta, arrays)
    except UsageError:
        raise
    except (
        zipfile.BadZipFile,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        EOFError,
        OSError,
        NotImplementedError,
        SyntaxError,
        MemoryError,
        zipfile.zlib.error,  # type: ignore[attr-defined]
    ) as error:
        what = "it is damaged" if content[:2] == b"PK" else "it is not an .npz file"
        raise _wrong_file(name, what) from error


def _wrong_file(name: str, reason: str) -> UsageError:
    return UsageError(
        Diagnostic(
            "SPL703",
            f"{name} is not a result file of spdsl: {reason}",
            help=("such a file is written by `spdsl solve MODEL --out FILE` or `result.save(FILE)`",),
        )
    )


def _restore(meta: dict[str, Any], arrays: dict[str, Any]) -> SavedResult:
    kind = meta["kind"]
    if kind not in ("path", "solution"):
        raise ValueError(f"unknown kind {kind}")
    own = ("ages", "nodes", "kkt_residuals") if kind == "path" else ("x",)
    layout = Layout(
        {name: slice(start, stop) for name, (start, stop, _) in meta["layout"].items()},
        {name: tuple(shape) for name, (_, _, shape) in meta["layout"].items()},
        max((stop for _, stop, _ in meta["layout"].values()), default=0),
    )
    found = {name: np.asarray(arrays[name], float) for name in own}
    _check_shapes(kind, found, layout)
    points = meta.get("critical_points")
    return SavedResult(
        kind=kind,
        model_name=str(meta["model"]["name"]),
        source=str(meta["model"]["source"]),
        derived_for=meta["model"].get("derived_for"),
        backend=str(meta["backend"]),
        options=unpack_all("options", meta["options"], arrays),
        data=None if meta["data"] is None else unpack_all("data", meta["data"], arrays),
        parameters=unpack_all("parameters", meta["parameters"], arrays),
        sizes={name: int(size) for name, size in meta["sizes"].items()},
        labels={name: LabelMapping(*pair) for name, pair in meta["labels"].items()},
        feature_names={name: tuple(names) for name, names in meta["feature_names"].items()},
        origin=dict(meta["origin"]),
        scaling={
            name: Scaling(arrays[f"scaling/{name}/mean"], arrays[f"scaling/{name}/deviation"])
            for name in meta["scaling"]
        },
        layout=layout,
        arrays=found,
        history=History({k.removeprefix("history/"): v for k, v in arrays.items() if k.startswith("history/")}),
        critical_points=None if points is None else tuple(_critical_point(point) for point in points),
        status=Status[meta["status"]],
        message=str(meta["message"]),
        statistics=dict(meta["statistics"]),
        extra=unpack_all("extra", meta.get("extra", {}), arrays),
        age=meta.get("age"),
        objective=float(meta.get("objective", "nan")),
        kkt_residual=meta.get("kkt_residual"),
        notes=tuple(meta.get("notes", ())),
        certificate=meta.get("certificate"),
    )


def _check_shapes(kind: str, arrays: Mapping[str, Array], layout: Layout) -> None:
    if kind == "solution":
        if arrays["x"].shape != (layout.size,):
            raise ValueError("x has the wrong length")
        return
    count = len(arrays["ages"])
    if arrays["nodes"].shape != (count, layout.size) or arrays["kkt_residuals"].shape != (count,) or count == 0:
        raise ValueError("the nodes have the wrong shape")


def _critical_point(point: dict[str, Any]) -> CriticalPoint:
    return CriticalPoint(
        age=float(point["age"]),
        kind=point["kind"],
        cause=str(point["cause"]),
        samples=tuple(point["samples"]),
        coordinates=tuple(point["coordinates"]),
        change=float(point["change"]),
    )


# --- results again -------------------------------------------------------------------------------------------------


def restored_path(saved: SavedResult, bound: BoundProblem) -> Path:
    """The path of a file, without a branch: its back end resumes that."""
    return Path(
        bound=bound,
        ages=saved.arrays["ages"],
        nodes=saved.arrays["nodes"],
        kkt_residuals=saved.arrays["kkt_residuals"],
        status=saved.status,
        backend=saved.backend,
        message=saved.message,
        history=saved.history,
        statistics=saved.statistics,
        stored_critical_points=saved.critical_points,
        options=saved.options,
    )


def restored_solution(saved: SavedResult, bound: BoundProblem) -> Solution:
    """The solution of a file."""
    return Solution(
        bound=bound,
        x=saved.arrays["x"],
        status=saved.status,
        objective=saved.objective,
        backend=saved.backend,
        age=saved.age,
        message=saved.message,
        kkt_residual=saved.kkt_residual,
        history=saved.history,
        extra=saved.extra,
        statistics=saved.statistics,
        options=saved.options,
    )

"""Data larger than memory: chunks from files, and a learner that is fed chunk after chunk.

In: a problem, its parameters, how many samples there are in all; then chunks of data. Out: a `Solution` at any time.
Files: NPY (dense), NPZ (CSR parts `data, indices, indptr, shape`, and `y`), LIBSVM text. NPY and uncompressed NPZ are
mapped, not read; LIBSVM text is parsed a piece at a time.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spdsl.diagnostics import DataError, Diagnostic, UsageError
from spdsl.problem import BoundProblem, Call, Name, Number, Problem, evaluate
from spdsl.solution import Solution, Status
from spdsl.solvers.dispatch import check_options
from spdsl.solvers.dual_averaging.backend import DualAveraging
from spdsl.solvers.dual_averaging.linear import linear_model
from spdsl.solvers.dual_averaging.options import Options
from spdsl.solvers.dual_averaging.runs import load_run, save_run
from spdsl.solvers.dual_averaging.setting import complaints, make_setting
from spdsl.solvers.dual_averaging.tuning import natural_gamma

__all__ = ["Learner", "map_npz", "read_chunks"]


def read_chunks(path: str, rows: int = 50_000, n_features: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Chunks (X, y) of a file, in order; X is CSR or dense, y None where the file has none.

    Parameters
    ----------
    path : str
        An ``.npz`` with CSR parts, an ``.npy`` matrix, or LIBSVM text (any other ending).
    rows : int
        Rows in a chunk.
    n_features : int, optional
        Columns; needed for LIBSVM text, where a chunk may lack the last ones.

    Raises
    ------
    DataError
        When the file is missing, holds other arrays, or has a line that is no LIBSVM.
    """
    if not os.path.exists(path):
        raise DataError(Diagnostic("SPL543", f"{path} does not exist", help=("check the name and the folder",)))
    if path.endswith(".npz"):
        yield from _npz_chunks(path, rows)
    elif path.endswith(".npy"):
        matrix = np.load(path, mmap_mode="r")
        for begin in range(0, matrix.shape[0], rows):
            yield matrix[begin : begin + rows], None
    else:
        if n_features is None:
            raise UsageError(
                Diagnostic("SPL543", f"{path} is read as LIBSVM text", help=("say how many columns: n_features=...",))
            )
        yield from _libsvm_chunks(path, rows, n_features)


def map_npz(path: str) -> dict[str, Any]:
    """The arrays of an NPZ file, mapped where they are stored uncompressed (``np.savez``), read otherwise."""
    arrays: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as raw, np.load(path, allow_pickle=False) as plain:
        for item in archive.infolist():
            name = item.filename.removesuffix(".npy")
            if item.compress_type != zipfile.ZIP_STORED or item.file_size < 1 << 16:
                arrays[name] = plain[name]
                continue
            raw.seek(item.header_offset + 26)  # the local header's lengths of name and extra field
            name_length, extra_length = struct.unpack("<HH", raw.read(4))
            raw.seek(item.header_offset + 30 + name_length + extra_length)
            version = np.lib.format.read_magic(raw)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, kind = header(raw)
            order: Any = "F" if fortran else "C"
            arrays[name] = np.memmap(path, kind, "r", offset=raw.tell(), shape=shape, order=order)
    return arrays


def _npz_chunks(path: str, rows: int) -> Iterator[tuple[Any, Any]]:
    import scipy.sparse as sp

    arrays = map_npz(path)
    y = arrays.get("y")
    if "X" in arrays:
        for begin in range(0, arrays["X"].shape[0], rows):
            yield arrays["X"][begin : begin + rows], None if y is None else y[begin : begin + rows]
        return
    missing = [name for name in ("data", "indices", "indptr", "shape") if name not in arrays]
    if missing:
        raise DataError(
            Diagnostic(
                "SPL543",
                f"{path} holds no CSR matrix: {', '.join(missing)} missing",
                help=("save it with np.savez(path, data=..., indices=..., indptr=..., shape=..., y=...)",),
            )
        )
    m, d = (int(part) for part in arrays["shape"])
    indptr = np.asarray(arrays["indptr"])
    for begin in range(0, m, rows):
        end = min(begin + rows, m)
        first, last = int(indptr[begin]), int(indptr[end])
        parts = (arrays["data"][first:last], arrays["indices"][first:last], indptr[begin : end + 1] - first)
        yield sp.csr_array(parts, shape=(end - begin, d)), None if y is None else np.asarray(y[begin:end])


def _libsvm_chunks(path: str, rows: int, n_features: int) -> Iterator[tuple[Any, Any]]:
    import scipy.sparse as sp

    values: list[float] = []
    columns: list[int] = []
    ends, labels = [0], []
    with open(path, encoding="ascii", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.partition("#")[0].split()
            if not text:
                continue
            try:
                labels.append(float(text[0]))
                for pair in text[1:]:
                    column, value = pair.split(":")
                    columns.append(int(column) - 1)
                    values.append(float(value))
                if columns[ends[-1] :] and not 0 <= min(columns[ends[-1] :]) <= max(columns[ends[-1] :]) < n_features:
                    raise ValueError("a column number out of range")
            except ValueError as error:
                raise DataError(
                    Diagnostic("SPL543", f"no LIBSVM line: {error}", place=f"{path}:{number}", help=("mend the line",))
                ) from None
            ends.append(len(columns))
            if len(labels) == rows:
                yield sp.csr_array((values, columns, ends), shape=(rows, n_features)), np.array(labels)
                values, columns, ends, labels = [], [], [0], []
    if labels:
        yield sp.csr_array((values, columns, ends), shape=(len(labels), n_features)), np.array(labels)


@dataclass(frozen=True)
class _Chunk(BoundProblem):
    """A chunk bound to a problem: the size that counts samples has the value of all of them in formulas."""

    counted: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def values(self) -> dict[str, Any]:
        """Sizes, data and parameters together, for `evaluate`."""
        return {**self.sizes, **self.data, **self.parameters, **self.counted}


class Learner:
    """Dual averaging that is fed chunk after chunk, as ``partial_fit`` does it.

    Parameters
    ----------
    problem : Problem or Model
        Its loss is one number per sample of the size that `n_samples` counts.
    n_samples : int
        Samples in all (the loss's ``/ n``, and the weight of a sample against the regularizer).
    parameters : mapping, optional
        Values of the model's parameters.
    **options
        Those of the back end. `gamma` should be given; otherwise the natural unit of the first chunk is taken. The
        lazy methods only.

    Raises
    ------
    UsageError
        For options that need all data at once.
    """

    def __init__(
        self, problem: Problem | Any, n_samples: int, parameters: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        self.problem: Problem = getattr(problem, "problem", problem)
        self.n_samples = n_samples
        self.parameters = dict(parameters or {})
        backend = DualAveraging()
        reasons = backend.refuses(self.problem)
        if reasons:
            raise UsageError(Diagnostic("SPL543", f"this model can't be streamed: {'; '.join(reasons)}"))
        checked = check_options(backend, options)
        assert isinstance(checked, Options)
        self.options = checked
        self.engine: Any = None
        self.setting: Any = None
        self.gamma = 0.0
        self.fed = 0

    def partial_fit(self, **data: Any) -> Learner:
        """Make one pass over a chunk.

        Parameters
        ----------
        **data
            The model's data by name, as in `Model.solve`: ``X=..., y=...``.

        Raises
        ------
        DataError
            When the chunk has another number of features than those before.
        """
        bound = self._bind(data)
        model = linear_model(bound, samples=self.n_samples)
        if self.engine is None:
            self._start(model)
        elif model.design.shape[1] != self.engine.design.shape[1]:
            raise DataError(
                Diagnostic(
                    "SPL543",
                    f"this chunk has {model.design.shape[1]} features, those before had {self.engine.design.shape[1]}",
                    help=("give every chunk all columns",),
                )
            )
        self.engine.feed(model.design, model.theta)
        rows = model.design.shape[0] // self.options.batch * self.options.batch
        order = np.arange(model.design.shape[0], dtype=np.int64)
        if self.options.order != "sequential":
            order = np.random.default_rng([self.options.seed, 2, self.fed]).permutation(order)
        self.engine.advance(order[:rows])
        self.fed += 1
        self._bound = bound
        self.setting = replace(self.setting, model=model)
        return self

    def solution(self) -> Solution:
        """The answer as it stands; its objective is that of the last chunk."""
        w, b = self.setting.point(self.engine)
        model = self.setting.model
        return Solution(
            bound=self._bound,
            x=model.flat(w, b),
            status=Status.FINISHED,
            objective=float(np.sum(model.losses(w, b))) * model.scale / model.design.shape[0] + model.penalty(w, b),
            backend="dual_averaging",
            message=f"{self.fed} chunks, {self.engine.step} steps, gamma = {self.gamma:.4g}",
            statistics={"steps": float(self.engine.step), "chunks": float(self.fed)},
        )

    def save(self, path: str) -> None:
        """Write the state to a file, to `load` and go on from with the same bits."""
        save_run(path, self.setting, self.engine, self.gamma, 0.0, (), {"fed": self.fed})

    def load(self, path: str, **data: Any) -> Learner:
        """Take up what `save` wrote; `data` is any chunk (it tells the number of features, and isn't walked over)."""
        model = linear_model(self._bind(data), samples=self.n_samples)
        self._start(model)
        saved = load_run(path, self.setting)
        self.gamma = saved.gamma
        self.engine = self.setting.engine(saved.gamma)
        self.fed = int(saved.arrays.pop("fed"))
        self.engine.restore(saved.arrays)
        return self

    def _start(self, model: Any) -> None:
        options = self.options
        found = complaints(model, options)
        setting = make_setting(model, options)
        if setting.dense:
            found.append(f"a stream takes lazy methods only: {setting.dense}")
        if options.gap or options.bound:
            found.append("`gap` and `bound` need all samples at once")
        if found:
            raise UsageError(Diagnostic("SPL543", f"this can't be streamed: {'; '.join(found)}"))
        self.setting = setting
        self.gamma = options.gamma or natural_gamma(model)
        self.engine = setting.engine(self.gamma)

    def _bind(self, data: Mapping[str, Any]) -> BoundProblem:
        """Bind a chunk without a copy; sizes that the samples count become `n_samples`."""
        arrays: dict[str, Any] = {}
        sizes: dict[str, int] = {}
        for item in self.problem.data:
            if item.name not in data:
                raise DataError(Diagnostic("SPL543", f"the chunk lacks `{item.name}`", help=(f"{item.name}=...",)))
            value = data[item.name]
            value = value if hasattr(value, "tocsr") else np.asarray(value)
            if item.kind in ("vector", "labels"):
                value = np.asarray(value, float)
            arrays[item.name] = value
            for dim, count in zip(item.dims, np.shape(value)):
                if not dim.isdigit() and sizes.setdefault(dim, int(count)) != count:
                    raise DataError(
                        Diagnostic(
                            "SPL543", f"{dim} is {sizes[dim]} and {count} in one chunk", help=("mend the chunk",)
                        )
                    )
            if item.kind == "labels" and not np.all(np.isin(value, (-1.0, 1.0))):
                raise DataError(
                    Diagnostic("SPL543", f"labels `{item.name}` of a stream are -1 and +1", help=("map them first",))
                )
        counted = self._counted(sizes)
        values: dict[str, Any] = {**sizes, **counted, **arrays}
        for parameter in self.problem.parameters:
            given = self.parameters.get(parameter.name, parameter.default)
            if given is None:
                raise UsageError(Diagnostic("SPL543", f"parameter `{parameter.name}` has no value"))
            expression = isinstance(given, Number | Name | Call)
            values[parameter.name] = evaluate(given, values) if expression else given
        parameters = {item.name: values[item.name] for item in self.problem.parameters}
        return _Chunk(self.problem, arrays, parameters, sizes, counted=counted)

    def _counted(self, sizes: Mapping[str, int]) -> dict[str, int]:
        loss = self.problem.loss
        assert loss is not None
        return {loss.rows: self.n_samples} if loss.rows in sizes else {}

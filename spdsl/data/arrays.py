"""Turns what Python users pass (NumPy, lists, SciPy sparse, tensors) into float64 arrays, complaining about each flaw.

In: any array-like and the spot it is for. Out: C-ordered float64 (n,) or (n, d), canonical CSR float64, or a float.
Nothing given is modified; a float64 array in C order is shared, not copied.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spdsl.data.complaints import Complaints, Spot, counted
from spdsl.problem.functions import Array

__all__ = ["check_finite", "is_sparse", "to_array", "to_csr", "to_floats", "to_matrix", "to_scalar", "to_vector"]

SHOWN = 5  # places listed for one kind of flaw


def is_sparse(value: Any) -> bool:
    """Is it a SciPy sparse matrix or array?"""
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def to_vector(value: Any, spot: Spot, complaints: Complaints) -> Array | None:
    """A float64 vector (n,); a column (n, 1) is flattened. None after a complaint."""
    array = to_array(value, spot, complaints)
    if array is None:
        return None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        shape = " x ".join(str(length) for length in array.shape) or "a single number"
        helps = ["a row of numbers becomes a vector by `.ravel()`"] if 1 in array.shape else []
        complaints.add("SPL411", f"`{spot.name}` is declared {spot.declared}, but it is {shape}", spot.place, helps)
        return None
    if array.shape[0] == 0:
        complaints.add("SPL427", f"`{spot.name}` has no entries", spot.place)
        return None
    return to_floats(array, spot, complaints)


def to_matrix(value: Any, spot: Spot, complaints: Complaints) -> Any:
    """A float64 matrix (n, d), dense or CSR. None after a complaint."""
    if is_sparse(value):
        return to_csr(value, spot, complaints)
    array = to_array(value, spot, complaints)
    if array is None:
        return None
    if array.ndim != 2:
        shape = " x ".join(str(length) for length in array.shape) or "a single number"
        helps = []
        if array.ndim == 1:
            shape = f"a vector of {array.shape[0]}"
            helps = [
                f"one column: `{spot.name}[:, None]`; one row: `{spot.name}[None, :]`",
                f"or declare `{spot.name} : vector(n)`",
            ]
        complaints.add("SPL411", f"`{spot.name}` is declared {spot.declared}, but it is {shape}", spot.place, helps)
        return None
    if 0 in array.shape:
        what = "rows" if array.shape[0] == 0 else "columns"
        complaints.add(
            "SPL427", f"`{spot.name}` has no {what} (its shape is {array.shape[0]} x {array.shape[1]})", spot.place
        )
        return None
    return to_floats(array, spot, complaints)


def to_scalar(value: Any, spot: Spot, complaints: Complaints) -> float | None:
    """One finite number. None after a complaint."""
    array = to_array(value, spot, complaints)
    if array is None:
        return None
    if array.size != 1:
        shape = " x ".join(str(length) for length in array.shape)
        complaints.add("SPL411", f"`{spot.name}` is declared scalar, but it is {shape}", spot.place)
        return None
    number = to_floats(array.reshape(1), spot, complaints)
    return None if number is None else float(number[0])


def to_array(value: Any, spot: Spot, complaints: Complaints) -> Any:
    """The value as an array of whatever type it has; masked entries become NaN. None after a complaint."""
    if is_sparse(value):
        return value.toarray()  # only for vectors and scalars: matrices go through `to_csr`
    if isinstance(value, np.ma.MaskedArray):
        masked: Any = value.astype(float) if value.dtype.kind in "biuf" else value
        return np.asarray(masked.filled(np.nan) if value.dtype.kind in "biuf" else masked.filled())
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        lengths = _lengths(value)
        if lengths is None:
            complaints.add("SPL418", f"`{spot.name}` can't be made an array: {error}", spot.place)
        else:
            row = next(i for i, length in enumerate(lengths) if length != lengths[0])
            complaints.add(
                "SPL405",
                f"`{spot.name}` has rows of different lengths: row 0 has {counted(lengths[0], 'entry')}, row {row} "
                f"has {lengths[row]}",
                spot.cell(row),
            )
        return None
    if array.dtype.kind == "V":
        helps = [f"pass a matrix, or one field: `{spot.name}[{name!r}]`" for name in (array.dtype.names or ())[:1]]
        complaints.add("SPL418", f"`{spot.name}` is a structured array", spot.place, helps)
        return None
    if array.dtype.kind == "O" and array.ndim == 0:
        known = "arrays, lists, SciPy sparse matrices, pandas and polars frames, numbers"
        complaints.add(
            "SPL418",
            f"`{spot.name}` is a {type(value).__name__}, which holds no numbers that spdsl can read",
            spot.place,
            [f"it takes {known}"],
        )
        return None
    return array


def to_floats(array: Any, spot: Spot, complaints: Complaints) -> Array | None:
    """The same shape as float64 in C order, every entry finite. None after a complaint."""
    kind = array.dtype.kind
    if kind == "O":
        converted = _from_objects(array, spot, complaints)
        if converted is None:
            return None
        array = converted
    elif kind not in "biuf":
        words = {"c": "complex numbers", "m": "time differences", "M": "dates"}.get(kind, "text")
        mend = {
            "complex numbers": f"pass `{spot.name}.real` if the imaginary parts are zero",
            "text": f"declare `{spot.name} : labels(n)` if it names two classes, or convert it by `.astype(float)`",
        }.get(words, "turn them into numbers first")
        complaints.add(
            "SPL418",
            f"`{spot.name}` is declared {spot.declared}, but it holds {words}, such as {array.flat[0]!s}",
            spot.place,
            [mend],
        )
        return None
    elif kind in "iu" and array.size and _beyond_exact(array):
        complaints.note(f"`{spot.name}` holds whole numbers beyond 2^53; they are rounded to the nearest float")
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(array, dtype=np.float64)
    return floats if check_finite(floats, spot, complaints) else None


def check_finite(floats: Array, spot: Spot, complaints: Complaints) -> bool:
    """Complain about each kind of non-finite entry of a dense array; True when there is none."""
    if np.isfinite(floats).all():
        return True
    for code, noun, mask in (
        ("SPL409", "missing value", np.isnan(floats)),
        ("SPL410", "infinite value", np.isinf(floats)),
    ):
        places = np.argwhere(mask)
        if len(places):
            cells = [spot.cell(*(int(i) for i in place)) for place in places[:SHOWN]]
            _complain_of_cells(code, noun, len(places), cells, spot, complaints)
    return False


def _complain_of_cells(code: str, noun: str, count: int, cells: list[str], spot: Spot, complaints: Complaints) -> None:
    mend = {
        "SPL409": "drop these rows or fill the gaps; spdsl doesn't guess values",
        "SPL410": "replace it by a finite number, or drop the row",
    }[code]
    message = f"`{spot.name}` has {counted(count, noun)}"
    if count > 1:
        message += ", the first of them here"
    complaints.add(code, message, cells[0], [mend], [f"also at {cell}" for cell in cells[1:]])


def to_csr(value: Any, spot: Spot, complaints: Complaints) -> Any:
    """Any SciPy sparse format as a canonical CSR array: float64, int32 indices where they fit, sorted, no duplicates.

    Duplicate entries are added up (SciPy's own rule), stored zeros dropped. Never densified; the original is untouched.
    """
    import scipy.sparse

    if len(value.shape) != 2:
        complaints.add("SPL411", f"`{spot.name}` is declared {spot.declared}, but it is a sparse vector", spot.place)
        return None
    if 0 in value.shape:
        what = "rows" if value.shape[0] == 0 else "columns"
        complaints.add("SPL427", f"`{spot.name}` has no {what} (its shape is {value.shape})", spot.place)
        return None
    if value.dtype.kind not in "biuf":
        words = "complex numbers" if value.dtype.kind == "c" else "no real numbers"
        complaints.add("SPL418", f"`{spot.name}` holds {words}", spot.place)
        return None
    try:
        matrix = scipy.sparse.csr_array(value)
        matrix.check_format(full_check=True)
    except ValueError as error:
        complaints.add(
            "SPL429",
            f"the sparse matrix `{spot.name}` is malformed: {error}",
            spot.place,
            ["build it again from its entries"],
        )
        return None
    if matrix.dtype != np.float64:
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    largest = max(*matrix.shape, matrix.nnz)
    if matrix.indices.dtype != np.int32 and largest < 2**31:
        matrix = scipy.sparse.csr_array(
            (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)), shape=matrix.shape
        )
    return matrix if _finite_entries(matrix, spot, complaints) else None


def _finite_entries(matrix: Any, spot: Spot, complaints: Complaints) -> bool:
    if np.isfinite(matrix.data).all():
        return True
    for code, noun, mask in (
        ("SPL409", "missing value", np.isnan(matrix.data)),
        ("SPL410", "infinite value", np.isinf(matrix.data)),
    ):
        places = np.flatnonzero(mask)
        if len(places):
            rows = np.searchsorted(matrix.indptr, places[:SHOWN], side="right") - 1
            cells = [spot.cell(int(r), int(matrix.indices[k])) for r, k in zip(rows, places)]
            _complain_of_cells(code, noun, len(places), cells, spot, complaints)
    return False


def _from_objects(array: Any, spot: Spot, complaints: Complaints) -> Array | None:
    """Python objects as floats: numbers are converted, None is a missing value, anything else a complaint."""
    floats = np.empty(array.shape)
    strange: list[tuple[tuple[int, ...], Any]] = []
    n_strange = 0
    for place, item in np.ndenumerate(array):
        try:
            if isinstance(item, (str, bytes, complex)):
                raise TypeError
            floats[place] = math.nan if item is None or type(item).__name__ in ("NAType", "NaTType") else item
        except OverflowError:
            floats[place] = math.inf
        except (TypeError, ValueError):
            n_strange += 1
            if len(strange) < SHOWN:
                strange.append((place, item))
    if not strange:
        return floats
    cells = [f"{spot.cell(*place)}: {item!r}" for place, item in strange]
    place, item = strange[0]
    complaints.add(
        "SPL408" if isinstance(item, (str, bytes)) else "SPL418",
        f"`{spot.name}` is declared {spot.declared}, but {counted(n_strange, 'entry')} of it "
        f"{'is no number' if n_strange == 1 else 'are no numbers'}, such as {item!r}",
        spot.cell(*place),
        related=[f"also at {cell}" for cell in cells[1:]],
    )
    return None


def _beyond_exact(array: Any) -> bool:
    return bool(int(array.max()) > 2**53 or int(array.min()) < -(2**53))


def _lengths(value: Any) -> list[int] | None:
    """The lengths of a list of lists, when they differ."""
    if not isinstance(value, (list, tuple)):
        return None
    lengths = [len(item) if hasattr(item, "__len__") else 0 for item in value]
    return lengths if len(set(lengths)) > 1 else None

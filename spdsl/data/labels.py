"""Maps two classes to -1 and +1, and reports the mapping.

In: numbers, booleans or text, one per sample. Out: float64 labels and a `LabelMapping`.
The classes -1/+1, 0/1, False/True keep their order; any other two are put in ascending (alphabetical) order, the first
to -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spdsl.data.complaints import Complaints, Spot, counted
from spdsl.problem import LabelMapping
from spdsl.problem.functions import Array

__all__ = ["map_labels"]

MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}


def map_labels(
    values: Any, spot: Spot, complaints: Complaints, mapping: LabelMapping | None = None
) -> tuple[Array, LabelMapping] | None:
    """Labels -1.0/+1.0 (n,) of `values` (n,) and how the classes were mapped. None after a complaint.

    With a `mapping` (of earlier data), the classes must be among its two, and one class alone is fine.
    """
    if values.dtype.kind in "cmMV":
        complaints.add(
            "SPL418", f"`{spot.name}` is declared {spot.declared}, but it holds {values.dtype} values", spot.place
        )
        return None
    missing = _missing(values)
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        complaints.add(
            "SPL409",
            f"`{spot.name}` has {counted(int(missing.sum()), 'missing label')}"
            + (", the first of them here" if missing.sum() > 1 else ""),
            spot.cell(first),
            ["drop these rows; spdsl doesn't guess labels"],
        )
        return None
    classes, codes, counts = _classes(values)
    if mapping is not None:
        return _by_earlier(classes, codes, mapping, spot, complaints)
    if len(classes) != 2:
        _complain_of_classes(classes, counts, spot, complaints)
        return None
    return np.where(codes == 0, -1.0, 1.0), LabelMapping(classes[0], classes[1])


def _missing(values: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "OUST":
        return np.array([_is_missing(item) for item in values.tolist()], dtype=bool)
    return np.zeros(values.shape, dtype=bool)


def _is_missing(item: Any) -> bool:
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(item, str):
        return item.strip().lower() in MISSING
    return isinstance(item, float) and item != item


def _classes(values: Any) -> tuple[list[Any], Any, Any]:
    """The distinct values in ascending order as plain Python values, each sample's class, and the counts."""
    if values.dtype.kind in "OS":
        plain = [item.decode() if isinstance(item, bytes) else item for item in values.tolist()]
        alike = all(isinstance(item, (bool, int, float, np.number)) for item in plain)
        values = np.array(plain if alike else [str(item) for item in plain])
    classes, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return [_plain(item) for item in classes.tolist()], codes, counts


def _plain(item: Any) -> Any:
    """Whole numbers without their ``.0``, so that messages and mappings read as the data do."""
    return int(item) if isinstance(item, float) and item.is_integer() else item


def _by_earlier(
    classes: list[Any], codes: Any, mapping: LabelMapping, spot: Spot, complaints: Complaints
) -> tuple[Array, LabelMapping] | None:
    signs = {str(mapping.negative): -1.0, str(mapping.positive): 1.0}
    strange = [item for item in classes if str(item) not in signs]
    if strange:
        complaints.add(
            "SPL419",
            f"`{spot.name}` has the class {strange[0]!r}, but the model was fitted on {mapping.negative!r} and "
            f"{mapping.positive!r}",
            spot.place,
        )
        return None
    return np.array([signs[str(item)] for item in classes])[codes], mapping


def _complain_of_classes(classes: list[Any], counts: Any, spot: Spot, complaints: Complaints) -> None:
    shown = ", ".join(f"{item!r} ({count})" for item, count in zip(classes[:8], counts))
    if len(classes) > 8:
        shown += f", ... ({len(classes)} in all)"
    helps = ["keep the rows of two classes, or map the classes to two (one against the rest)"]
    if len(classes) == 1:
        helps = ["a classifier needs samples of both classes"]
    elif len(classes) > 10 and not isinstance(classes[0], str):
        helps = [f"for a numeric target declare `{spot.name} : vector(n)`"]
    complaints.add(
        "SPL419",
        f"`{spot.name}` is declared {spot.declared}, which takes two classes, but it has {len(classes)}: {shown}",
        spot.place,
        helps,
    )

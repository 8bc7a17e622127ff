"""What happens on a kernel path: events, and the error of a tracker that finds no way on.

In: labels of a row before and after. Out: `Event`s as the tracker returns them and the back end words them.
"""

from __future__ import annotations

from dataclasses import dataclass

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import BAND_LOWER, LOWER, UPPER, RowLabels

__all__ = ["NOISE", "STEADY", "Event", "LostBranchError", "label_of", "towards"]

NOISE = 1e-10  # gaps below this are zero
STEADY = 1e-10  # rates (per the step's own unit) below this are zero


class LostBranchError(Exception):
    """No way on was found; the message says why.

    Attributes
    ----------
    point : (mu, b) or None
        Where a descent had come to.
    """

    def __init__(self, message: str, point: tuple[Array, Array] | None = None) -> None:
        super().__init__(message)
        self.point = point


@dataclass(frozen=True)
class Event:
    """What happened at an age: `kind` is stride, turning or jump; `causes` are (row, labels before, labels after)."""

    age: float
    kind: str
    causes: tuple[tuple[int, tuple[int, int, int], tuple[int, int, int]], ...] = ()
    left: tuple[Array, Array] | None = None  # mu and b before a jump
    change: float = 0.0  # largest change of z at a jump


def towards(side: int, slope: float) -> float:
    """The direction of z in which a row passes the border on a side of it."""
    if side == LOWER:
        return -1.0
    if side == UPPER:
        return 1.0
    down = -1.0 if slope > 0.0 else 1.0
    return down if side == BAND_LOWER else -down


def label_of(labels: RowLabels, row: int) -> tuple[int, int, int]:
    """A row's piece, kink and band."""
    return int(labels.piece[row]), int(labels.kink[row]), int(labels.band[row])

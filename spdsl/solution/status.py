"""How a run ended and what it recorded on the way: `Status`, `History`, `CriticalPoint`.

In: what a back end noticed. Out: values that never change afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from spdsl.problem.functions import Array

__all__ = ["CriticalPoint", "History", "Status"]


class Status(Enum):
    """How a run ended, as a sentence that says what to do next. Only the first two are answers."""

    SOLVED = "solved to the tolerance that was asked for"
    EXACT = "solved exactly: the KKT conditions hold to machine precision"
    INTERRUPTED = "stopped by the user; what was reached is kept"
    TIME_LIMIT = "the time limit was reached before the tolerance; raise `time_limit` or loosen `tolerance`"
    ITERATION_LIMIT = "the iteration limit was reached before the tolerance; raise the limit or loosen `tolerance`"
    STALLED = "no further progress is possible in floating point; scale the data, or loosen `tolerance`"
    PARTIAL_PATH = "the path could not be followed to its end; see `message` for the age and the reason"
    DIVERGED = "the iterates grew without bound; lower `step`"
    UNBOUNDED = "the problem has no finite optimum; add a regularizer or a constraint"
    FINISHED = "all passes were made; the result is as good as so many passes give, no tolerance was asked for"

    @property
    def ok(self) -> bool:
        """Did the run end as asked?"""
        return self in (Status.SOLVED, Status.EXACT, Status.FINISHED)


@dataclass(frozen=True)
class History:
    """Named columns recorded during a run, all of one length (``iteration``, ``objective``, ``seconds``, ...)."""

    columns: Mapping[str, Array] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0


@dataclass(frozen=True)
class CriticalPoint:
    """A point of the path where a set changes.

    Attributes
    ----------
    age : float
    kind : {"turning", "jump"}
        A turning point is continuous with a bent; at a jump the branch ends and another is taken up.
    cause : str
        What happened, in words: "sample 17 enters E", "w[3] leaves zero", ...
    samples, coordinates : tuple of int
        Indices (from 0) of the samples, or of the flat vector's entries, that caused it.
    change : float
        Largest change of the variables across a jump, 0 for a turning point.
    """

    age: float
    kind: Literal["turning", "jump"]
    cause: str
    samples: tuple[int, ...] = ()
    coordinates: tuple[int, ...] = ()
    change: float = 0.0

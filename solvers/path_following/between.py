"""The events inside leaps, found when they are asked for: each leap's stretch is followed again, from event to event.

In: the records of a path. Out: the records with those of the events inside leaps between them.
"""

from __future__ import annotations

import itertools

from spdsl.problem import BoundProblem
from spdsl.solvers.active_set.minimize import minimize
from spdsl.solvers.active_set.system import System
from spdsl.solvers.path_following.record import Record, Recorder
from spdsl.solvers.path_following.tracker import BrokenPathError, Tracker
from spdsl.solvers.threads import small_systems

__all__ = ["with_all_events"]

_SAME = 1e-10  # ages that are closer than this, relatively, are one


def with_all_events(problem: BoundProblem, system: System, records: list[Record]) -> list[Record]:
    """All records, ascending by age, the events inside leaps included."""
    complete: list[Record] = records[:1]
    with small_systems(system.p):
        for last, record in itertools.pairwise(records):
            if record.leapt:
                complete.extend(_inside(problem, system, last, record))
            complete.append(record)
    return complete


def _inside(problem: BoundProblem, system: System, first: Record, last: Record) -> list[Record]:
    tracker, recorder = Tracker(system, leaps=False), Recorder(problem, system)
    node = tracker.start(minimize(system, first.age, first.x), last.age - first.age)
    found: list[Record] = []
    try:
        while node.age < last.age:
            node = tracker.advance(node, last.age)
            record, replaces = recorder.add(found[-1] if found else None, node)
            if replaces:
                found.pop()
            found.append(record)
    except BrokenPathError:
        pass  # what was found so far is right
    low = first.age * (1.0 + _SAME) if first.cause is not None else 0.0
    high = last.age * (1.0 - _SAME) if last.cause is not None else last.age
    return [record for record in found if record.cause is not None and low < record.age <= high]

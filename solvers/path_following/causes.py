"""What happened at a critical point, in words: which samples, coordinates or rows changed their sets.

In: the labels before an event, and those with the causing terms flipped. Out: the sentence, samples and coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem import BoundProblem
from spdsl.solvers.active_set.coordinates import FREE
from spdsl.solvers.active_set.rows import RowLabels
from spdsl.solvers.active_set.system import Labels, System, dense
from spdsl.solvers.active_set.weighting import IntArray

__all__ = ["Cause", "describe"]


@dataclass(frozen=True)
class Cause:
    """The cause of a critical point; indices from 0."""

    text: str
    samples: tuple[int, ...]
    coordinates: tuple[int, ...]


def describe(bound: BoundProblem, system: System, before: Labels, after: Labels) -> Cause:
    """The change of labels in words; those of one kind are told together."""
    phrases: dict[str, list[str]] = {}
    samples: list[int] = []
    coordinates: list[int] = []
    names = system.weighting.names
    for row in _changed(before.rows[0], after.rows[0]):
        samples.append(int(row))
        for what in _sample(before.rows[0], after.rows[0], int(row), names):
            phrases.setdefault(what, []).append(str(row))
    texts = [
        f"sample{'s' * (len(rows) > 1)} {', '.join(rows)}{_told(what, len(rows))}" for what, rows in phrases.items()
    ]
    for number, block in enumerate(system.blocks[1:], 1):
        for row in _changed(before.rows[number], after.rows[number]):
            leaves = before.rows[number].kink[row] >= 0
            what = "its bound" if block.is_wall else "its kink"
            texts.append(f"row {row} of {_term(system, number)} {'leaves' if leaves else 'reaches'} {what}")
            entries = np.flatnonzero(dense(block.A[[row]])[0])
            coordinates.extend(int(j) for j in entries[:8])
    for j in np.flatnonzero((before.fixed != after.fixed) | (before.interval != after.interval)):
        if before.fixed[j] == after.fixed[j] and before.fixed[j] != FREE:
            continue
        coordinates.append(int(j))
        texts.append(f"{coordinate_name(bound, int(j))} {_coordinate(system, before, after, int(j))}")
    return Cause("; ".join(texts) or "the path folds back", tuple(samples), tuple(dict.fromkeys(coordinates)))


def _term(system: System, number: int) -> str:
    """A row block by what it stands for: constraints come before regularizers."""
    kind = "constraint" if system.blocks[number].is_wall else "regularizer"
    place = sum(block.is_wall == system.blocks[number].is_wall for block in system.blocks[1 : number + 1])
    return f"{kind} {place}"


def _changed(before: RowLabels, after: RowLabels) -> IntArray:
    return np.flatnonzero(
        (before.piece != after.piece) & (before.kink == after.kink)
        | (before.kink != after.kink)
        | (before.band != after.band)
    )


def _sample(before: RowLabels, after: RowLabels, row: int, names: tuple[str, ...]) -> list[str]:
    found = []
    if before.band[row] != after.band[row]:
        found.append(f": {names[before.band[row]]} -> {names[after.band[row]]}")
    if before.kink[row] != after.kink[row]:
        found.append(" {leave} the kink of the loss" if before.kink[row] >= 0 else " {reach} the kink of the loss")
    elif before.piece[row] != after.piece[row]:
        found.append(" {pass} to another piece of the loss")
    return found


def _told(what: str, count: int) -> str:
    verbs = {"leave": "leave" if count > 1 else "leaves", "reach": "reach" if count > 1 else "reaches"}
    verbs["pass"] = "pass" if count > 1 else "passes"
    return what.format(**verbs) if "{" in what else what


def _coordinate(system: System, before: Labels, after: Labels, j: int) -> str:
    position = system.coordinates.position[j]
    if before.fixed[j] >= 0:
        at = float(position[before.fixed[j]])
        return "leaves zero" if at == 0.0 else f"leaves {at:.6g}"
    if after.fixed[j] >= 0:
        at = float(position[after.fixed[j]])
        return "becomes zero" if at == 0.0 else f"reaches {at:.6g}"
    return f"passes {float(position[min(before.interval[j], after.interval[j])]):.6g}"


def coordinate_name(bound: BoundProblem, j: int) -> str:
    """An entry of the flat vector by its variable: ``w[3]``, ``M[1, 0]``, ``b``."""
    for name, where in bound.layout.slices.items():
        if where.start <= j < where.stop:
            shape = bound.layout.shapes[name]
            if shape == ():
                return name
            index = np.unravel_index(j - where.start, shape)
            return f"{name}[{', '.join(str(int(i)) for i in index)}]"
    raise IndexError(j)

"""`describe`: the KKT blocks of a problem, in words and mathematics, for `explain`.

In: a `Problem`. Out: a `Derivation`: the sets of samples and coordinates, what holds on each, the curvature c = v
phi'' + v' phi'^2 of every combination of a loss piece and a weight piece, and the bordered system of a path (GAGA;
see `conditions`). Kept in the cache, so that a known model needs no sympy.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from spdsl.cache import read_entry, write_entry
from spdsl.compiler import store
from spdsl.problem import Problem, Separable
from spdsl.problem.functions import Formula

__all__ = ["Condition", "CurvatureRow", "Derivation", "describe"]


@dataclass(frozen=True)
class Condition:
    """What holds on one set: its name (such as "kink 1"), who belongs to it, what a partial optimum asks there."""

    name: str
    members: Formula
    holds: Formula
    words: str


@dataclass(frozen=True)
class CurvatureRow:
    """One combination of a loss piece and a weight piece.

    `curvature` is c = v phi'' + (dv*/dl) phi'^2, the sample's weight in H; `drift` is (dv*/dlambda) phi', its part in
    the right side. Both are over l where that is possible, else over the argument and l.
    """

    piece: int  # from 1, from the left
    weights: str  # E, M or D
    curvature: Formula
    drift: Formula


@dataclass(frozen=True)
class Derivation:
    """The KKT blocks.

    Attributes
    ----------
    stationarity : Formula
        The gradient condition as a whole.
    samples, coordinates : tuple of Condition
    curvatures : tuple of CurvatureRow
    hessian, system : Formula
        H, and the bordered system for the path's direction; empty texts without ages.
    notes : tuple of str
    """

    stationarity: Formula
    samples: tuple[Condition, ...]
    coordinates: tuple[Condition, ...]
    curvatures: tuple[CurvatureRow, ...]
    hessian: Formula
    system: Formula
    notes: tuple[str, ...]


def describe(problem: Problem) -> Derivation:
    """The KKT blocks of a problem (its loss must be of one argument; of several, only the general form is given)."""
    name = store.key_of("conditions", _facts(problem)) + ".json"
    stored = read_entry(name)
    if stored is not None:
        try:
            return _from_plain(json.loads(stored))
        except (ValueError, KeyError, TypeError):
            pass  # damaged in a way that the checksum missed, or of another version
    from spdsl.compiler.conditions import derive_conditions

    derivation = derive_conditions(problem)
    write_entry(name, json.dumps(asdict(derivation)).encode())
    return derivation


def _facts(problem: Problem) -> Any:
    """All that a derivation depends on."""
    separable = [(item.coefficient, item.function.body) for item in problem.regularizers if isinstance(item, Separable)]
    others = [type(item).__name__ for item in problem.regularizers]
    loss = None if problem.loss is None else (problem.loss.function.body, problem.loss.function.arguments)
    paced = None if problem.self_paced is None else (problem.self_paced.name, problem.self_paced.pieces)
    constraints = [(type(item).__name__, item.text) for item in problem.constraints]
    return (loss, paced, separable, others, constraints, problem.age is None)


def _from_plain(plain: dict[str, Any]) -> Derivation:
    def formulas(row: dict[str, Any]) -> dict[str, Any]:
        return {key: Formula(**value) if isinstance(value, dict) else value for key, value in row.items()}

    return Derivation(
        stationarity=Formula(**plain["stationarity"]),
        samples=tuple(Condition(**formulas(row)) for row in plain["samples"]),
        coordinates=tuple(Condition(**formulas(row)) for row in plain["coordinates"]),
        curvatures=tuple(CurvatureRow(**formulas(row)) for row in plain["curvatures"]),
        hessian=Formula(**plain["hessian"]),
        system=Formula(**plain["system"]),
        notes=tuple(plain["notes"]),
    )

"""What a derivation yields, as plain text: the record that the cache keeps and that kernels are loaded from.

In: facts from `derive` and `weights`. Out: JSON-able dataclasses, so that a cached model needs neither sympy nor
numba.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from spdsl.problem.functions import Formula, Kink, Piece
from spdsl.problem.self_paced import AxiomVerdict, WeightPiece

__all__ = ["DerivedFunction", "DerivedWeights", "from_plain", "to_plain"]

Convexity = Literal["proved", "refuted", "undecided"]


@dataclass(frozen=True)
class DerivedFunction:
    """The derivation of a scalar function.

    Attributes
    ----------
    formula : Formula
        The function as written.
    convexity : {"proved", "refuted", "undecided"}
    reason : str
        Why, in a sentence.
    witness : mapping of float
        Where it is refuted: the argument and the parameters.
    nonnegative : bool
        Is the function nowhere negative (as far as a proof or dense sampling shows)?
    """

    argument: str
    parameters: tuple[str, ...]
    formula: Formula
    pieces: tuple[Piece, ...]
    kinks: tuple[Kink, ...]
    convexity: Convexity
    reason: str
    witness: Mapping[str, float]
    nonnegative: bool


@dataclass(frozen=True)
class DerivedWeights:
    """The derivation of v*(l, lambda) from f(v, lambda)."""

    argument: str
    age: str
    parameters: tuple[str, ...]
    formula: Formula
    pieces: tuple[WeightPiece, ...]
    continuous: bool
    axioms: tuple[AxiomVerdict, ...]
    age_range: tuple[float, float]
    stationarity: Formula  # l + f'(v), whose zero is v*
    notes: tuple[str, ...] = field(default=())


def to_plain(record: DerivedFunction | DerivedWeights) -> dict[str, Any]:
    """Nested dicts, lists, texts and numbers."""
    return {"kind": type(record).__name__, **asdict(record)}


def from_plain(plain: Mapping[str, Any]) -> DerivedFunction | DerivedWeights:
    """The record again.

    Raises
    ------
    KeyError, TypeError
        When the mapping isn't one that `to_plain` made.
    """
    fields = dict(plain)
    kind = fields.pop("kind")
    fields["parameters"] = tuple(fields["parameters"])
    fields["formula"] = Formula(**fields["formula"])
    if kind == "DerivedFunction":
        fields["pieces"] = tuple(Piece(**_formulas(piece)) for piece in fields["pieces"])
        fields["kinks"] = tuple(Kink(**_formulas(kink)) for kink in fields["kinks"])
        return DerivedFunction(**fields)
    fields["pieces"] = tuple(WeightPiece(**_formulas(piece)) for piece in fields["pieces"])
    fields["axioms"] = tuple(AxiomVerdict(**axiom) for axiom in fields["axioms"])
    fields["stationarity"] = Formula(**fields["stationarity"])
    fields["age_range"] = tuple(fields["age_range"])
    fields["notes"] = tuple(fields["notes"])
    return DerivedWeights(**fields)


def _formulas(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {key: Formula(**value) if isinstance(value, dict) else value for key, value in plain.items()}

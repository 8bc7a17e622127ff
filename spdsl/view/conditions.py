"""The KKT conditions of a problem as a section of its explanation.

In: the compiler's `Derivation`. Out: a `Section`.
"""

from __future__ import annotations

from spdsl.compiler.derivation import Derivation
from spdsl.problem.functions import Formula
from spdsl.view.document import Block, Cell, Display, Paragraph, Section, Table

__all__ = ["conditions"]


def conditions(derivation: Derivation) -> Section:
    """The conditions, the sets of samples and coordinates, the curvatures, and the system that the path follows."""
    blocks: list[Block] = [Display((derivation.stationarity,))]
    for title, found in (("samples", derivation.samples), ("coordinates", derivation.coordinates)):
        if found:
            rows = tuple((item.name, item.members, item.holds, item.words) for item in found)
            blocks.append(Table((title, "those with", "there", "in words"), rows))
    if derivation.curvatures:
        drifts = any(row.drift.text for row in derivation.curvatures)
        head: tuple[Cell, ...] = ("piece", "weights", Formula("c", "c = v \\varphi'' + v' \\varphi'^{2}"))
        drift = Formula("∂v∗/∂λ·φ'", r"\partial v^{\ast}/\partial\lambda \; \varphi'")
        blocks.append(
            Table(
                (*head, drift) if drifts else head,
                tuple(
                    (str(row.piece), row.weights, row.curvature, *((row.drift,) if drifts else ()))
                    for row in derivation.curvatures
                ),
            )
        )
    systems = tuple(item for item in (derivation.hessian, derivation.system) if item.text)
    if systems:
        blocks.append(Display(systems))
    blocks += [Paragraph((f"{_sentence(note)}.",), "quiet") for note in derivation.notes]
    return Section("KKT conditions", tuple(blocks))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]

"""Verdicts of convexity for losses, regularizers and constraints, and where to point when there is none.

In: a typed expression. Out: CONVEX with what it rests on (data that must be >= 0, signs of parameters), or a place
and a reason. What the rules can't decide is not thereby wrong: a loss of one predictor is left to the compiler, which
derives its pieces; everything else needs `assume convex`.
"""

from __future__ import annotations

from collections.abc import Callable

from spdsl.language.checked import SignCondition
from spdsl.language.complaints import Complaints
from spdsl.language.elaborate import Elaborator
from spdsl.language.printer import shown
from spdsl.language.record import Record
from spdsl.language.rules import is_concave, is_convex, is_flat, negate
from spdsl.language.scope import Scope
from spdsl.language.tree import Chain, Expression, Name, Unary, children, walk
from spdsl.language.types import Curvature, Kind, Sign, Type

__all__ = ["Blame", "Rests", "blame", "is_bilinear", "rests_on", "weighing_data"]


MANY = 20
"""Up to so many names it is told for each whether a verdict rests on it."""


class Blame(Record):
    """The sub-expression that breaks convexity, and why."""

    node: Expression
    reason: str


class Rests(Record):
    """What a verdict rests on."""

    nonnegative: frozenset[str]
    signs: dict[str, Sign]
    conditions: dict[str, SignCondition]


def blame(elaborator: Elaborator, node: Expression, concave_wanted: bool = False) -> Blame:
    """The smallest sub-expression at which convexity (or concavity) is lost, and why."""
    wanted = Curvature.CONCAVE if concave_wanted else Curvature.CONVEX
    top = node
    while True:
        curvature = _curvature(elaborator, node)
        if isinstance(node, Chain) and node.operators[0] in "+-":
            found = _wrong_term(elaborator, node, wanted)
            if found is not None:
                node, turned = found
                wanted = negate(wanted) if turned else wanted
                if turned and _curvature(elaborator, node) is not Curvature.UNKNOWN:
                    return Blame(node, f"`{shown(node)}` is {_curvature(elaborator, node).value} and is subtracted")
                continue
        if curvature is not Curvature.UNKNOWN:
            needed = "" if node is top else f", and a {wanted.value} one is needed here"
            return Blame(node, f"`{shown(node)}` is {curvature.value}{needed}")
        if id(node) in elaborator.reasons:
            return Blame(node, elaborator.reasons[id(node)])
        if isinstance(node, Unary) and node.operator == "-":
            wanted = negate(wanted)
        unknown = [part for part in children(node) if _curvature(elaborator, part) is Curvature.UNKNOWN]
        if not unknown:
            return Blame(node, f"the curvature of `{shown(node)}` is not known")
        node = unknown[0]


def _wrong_term(elaborator: Elaborator, node: Chain, wanted: Curvature) -> tuple[Expression, bool] | None:
    """The first term of a sum that is not as wanted, and whether a minus stands before it."""
    for index, operand in enumerate(node.operands):
        turned = index > 0 and node.operators[index - 1] == "-"
        curvature = _curvature(elaborator, operand)
        target = negate(wanted) if turned else wanted
        if not (is_convex if target is Curvature.CONVEX else is_concave)(curvature):
            return operand, turned
    return None


def _curvature(elaborator: Elaborator, node: Expression) -> Curvature:
    type_ = elaborator.types.get(id(node))
    return Curvature.CONSTANT if type_ is None else type_.curvature


def is_bilinear(elaborator: Elaborator, node: Expression) -> bool:
    """Whether a product is of two affine factors in different variables: that is never convex."""
    if not isinstance(node, Chain) or node.operators[0] in "+-" or "/" in node.operators:
        return False
    varying = [t for t in (elaborator.types.get(id(part)) for part in node.operands) if t is not None and t.variables]
    if len(varying) != 2 or not all(is_flat(t.curvature) for t in varying):
        return False
    return not varying[0].variables & varying[1].variables


def rests_on(elaborator: Elaborator, written: Expression, type_: Type, concave_wanted: bool = False) -> Rests | None:
    """What has to hold for the expression to be convex by the rules (or concave); None when they don't reach it."""
    fits = is_concave if concave_wanted else is_convex
    nonnegative: frozenset[str] = frozenset()
    if not fits(type_.curvature):
        found = _needed_data(elaborator, written, type_, concave_wanted)
        if found is None:
            return None
        nonnegative = found
    if not type_.parameters or is_flat(type_.curvature):
        return Rests(nonnegative, {}, {})
    names = frozenset(type_.parameters)
    if fits(_probe(elaborator, written, nonnegative, names, frozenset())):
        return Rests(nonnegative, {}, {})
    return Rests(nonnegative, *_needed_constants(elaborator, written, names, nonnegative, fits))


def weighing_data(elaborator: Elaborator, node: Expression) -> frozenset[str]:
    """The data that multiply something bent, such as sample weights `c` in ``c * piecewise(...)``.

    Where the rules don't decide, these are taken to be >= 0 (and required to be), so that the compiler has only the
    formula of one sample to decide. What occurs in any other role as well, such as y in ``y * a + (1 - y) * b``, is no
    weight.
    """
    found: dict[str, int] = {}
    occurrences: dict[str, int] = {}
    for part in walk(node):
        if isinstance(part, Name):
            occurrences[part.name] = occurrences.get(part.name, 0) + 1
        if not isinstance(part, Chain) or part.operators[0] in "+-":
            continue
        types = [elaborator.types.get(id(operand)) for operand in part.operands]
        if all(t is None or is_flat(t.curvature) for t in types):
            continue
        for operand, type_ in zip(part.operands, types):
            if not isinstance(operand, Name) or type_ is None or operand.name not in type_.data:
                continue
            if type_.kind in (Kind.SCALAR, Kind.VECTOR) and type_.sign is Sign.UNKNOWN:
                found[operand.name] = found.get(operand.name, 0) + 1
    return frozenset(name for name, count in found.items() if count == occurrences[name])


def _probe(
    elaborator: Elaborator,
    written: Expression,
    nonnegative: frozenset[str],
    unsigned: frozenset[str] = frozenset(),
    signed_texts: frozenset[str] | None = None,
) -> Curvature:
    """The curvature under other assumptions, without touching the model's own types.

    `signed_texts` are the constants whose sign under the defaults counts; None for those that count in the model.
    """
    if signed_texts is None:
        signed_texts = frozenset(elaborator.default_signs)
    probe = Elaborator(Complaints(), elaborator.scope)
    probe.defaults = elaborator.defaults
    probe.points = elaborator.points
    probe.nonnegative, probe.unsigned, probe.signed_texts = nonnegative, unsigned, signed_texts
    _, type_ = probe.numeric(written, Scope(elaborator.scope))
    return Curvature.UNKNOWN if type_ is None else type_.curvature


def _needed_data(
    elaborator: Elaborator, written: Expression, type_: Type, concave_wanted: bool
) -> frozenset[str] | None:
    """The fewest data (sample weights, say) whose being >= 0 makes the rules reach the expression."""
    fits = is_concave if concave_wanted else is_convex
    candidates = []
    for name in sorted(type_.data):
        binding = elaborator.scope.peek(name)
        if binding is not None and binding.type is not None and binding.type.kind in (Kind.SCALAR, Kind.VECTOR):
            candidates.append(name)
    needed = frozenset(candidates)
    if not needed or not fits(_probe(elaborator, written, needed)):
        return None
    for name in candidates if len(candidates) <= MANY else ():
        fewer = needed - {name}
        if fits(_probe(elaborator, written, fewer)):
            needed = fewer
    return needed


def _needed_constants(
    elaborator: Elaborator,
    written: Expression,
    names: frozenset[str],
    nonnegative: frozenset[str],
    fits: Callable[[Curvature], bool],
) -> tuple[dict[str, Sign], dict[str, SignCondition]]:
    """The parameters, and the constants such as ``1 - rho``, whose sign under the defaults the verdict needs.

    One after another is given up, and what is given up stays so: the rest is enough, whatever the others become.
    """
    free: frozenset[str] = frozenset()
    kept = frozenset(elaborator.default_signs)
    if len(names) + len(kept) <= MANY:  # each costs another walk: of many, all are taken as needed
        for name in sorted(names):
            if fits(_probe(elaborator, written, nonnegative, free | {name})):
                free |= {name}
        for text in sorted(kept):
            if fits(_probe(elaborator, written, nonnegative, free, kept - {text})):
                kept -= {text}
    signs: dict[str, Sign] = {}
    for name in sorted(names - free):
        binding = elaborator.scope.peek(name)
        if binding is not None and binding.type is not None and binding.type.sign is not Sign.UNKNOWN:
            signs[name] = binding.type.sign
    return signs, {text: SignCondition(*elaborator.default_signs[text]) for text in sorted(kept)}

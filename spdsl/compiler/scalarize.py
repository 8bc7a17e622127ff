"""From an elementwise formula of predictors to a scalar function: one argument where the predictors are related, named
parameters.

In: an `Elementwise` (or `Affine`) value. Out: `Formula1D`: predictors, the scalar formula, its parameters and what
they are. ``max(X @ w - y, 2*(y - X @ w))`` has two predictors that are multiples of one another: it becomes a
function of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spdsl.compiler import normal
from spdsl.compiler.affine import Affine, Shape, rows_of
from spdsl.compiler.atoms import PRIMITIVES, SCALAR_ATOMS
from spdsl.compiler.normal import Monomial, Normal
from spdsl.compiler.quantities import Quantity
from spdsl.compiler.values import Elementwise
from spdsl.problem.expressions import Call, Expression, Name, Number, names, substituted
from spdsl.problem.predictors import Predictor

__all__ = ["Scalarized", "scalarize"]

ELEMENTWISE = PRIMITIVES | SCALAR_ATOMS.keys()


@dataclass(frozen=True)
class Scalarized:
    """A formula of scalar arguments, one a predictor; `values` say what each parameter is."""

    body: Expression
    arguments: tuple[str, ...]
    predictors: tuple[Predictor, ...]
    quantities: tuple[Quantity, ...]
    values: tuple[Expression, ...]
    rows: str


def scalarize(value: Elementwise | Affine, facts: Mapping[str, Quantity]) -> Scalarized:
    """Name the arguments and parameters of a formula.

    Parameters
    ----------
    facts : mapping of Quantity
        What is known of every datum, parameter and size of the model.
    """
    if isinstance(value, Affine):
        value = Elementwise(Name("{0}"), {"{0}": value}, value.shape)
    bases, replacements = _related(value.predictors)
    taken = set(facts)
    arguments = tuple(_fresh("z" if len(bases) == 1 else f"z{i}", taken) for i in range(1, len(bases) + 1))
    renamed = {
        placeholder: normal.expression(normal.add(normal.multiply(factor, {((Name(arguments[base]), 1),): 1.0}), shift))
        for placeholder, (base, factor, shift) in replacements.items()
    }
    body = substituted(value.body, renamed)
    parameters = _Parameters(facts, set(arguments), taken, value.shape)
    body = normal.collected(parameters.named(body))
    return Scalarized(
        body=body,
        arguments=arguments,
        predictors=tuple(Predictor(base.terms, base.offset, rows_of(value.shape)) for base in bases),
        quantities=tuple(parameters.quantities.values()),
        values=tuple(parameters.values.values()),
        rows=rows_of(value.shape),
    )


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


# --- related predictors ---------------------------------------------------------------------------------------------


def _related(
    predictors: Mapping[str, Affine],
) -> tuple[list[Affine], dict[str, tuple[int, Normal, Normal]]]:
    """Group predictors: bases, and for each placeholder (base, factor, shift) with z = factor * base + shift."""
    groups: dict[tuple[object, ...], list[tuple[str, Affine]]] = {}
    for placeholder, predictor in predictors.items():
        groups.setdefault(_directions(predictor), []).append((placeholder, predictor))
    bases: list[Affine] = []
    found: dict[str, tuple[int, Normal, Normal]] = {}
    for members in groups.values():
        members.sort(key=lambda member: _plainness(member[1]))  # stable: the first of the plainest becomes the base
        related, base = _multiples([member for _, member in members])
        if base is None:  # the same matrices, mixed in different shares: each distinct one is its own
            for placeholder, member in members:
                if member not in bases:
                    bases.append(member)
                found[placeholder] = (bases.index(member), {(): 1.0}, {})
            continue
        for (placeholder, _), (factor, shift) in zip(members, related):
            found[placeholder] = (len(bases), factor, shift)
        bases.append(base)
    return bases, found


def _plainness(predictor: Affine) -> tuple[int, bool]:
    """Fewer factors before its terms first, and no minus sign."""
    scales = [normal.single(normal.normal(_scale(term.scale))) for term in predictor.terms]
    return sum(len(scale[0]) for scale in scales if scale), any(scale[1] < 0 for scale in scales if scale)


def _directions(predictor: Affine) -> tuple[object, ...]:
    """What a predictor's terms are without their scales; a scalar one is not the same as its repetition."""
    return (predictor.shape, *((term.variable, term.kind, term.matrix) for term in predictor.terms))


def _multiples(members: list[Affine]) -> tuple[list[tuple[Normal, Normal]], Affine | None]:
    """Each member as factor * base + shift, the first as base where that avoids quotients; base None if impossible."""
    first = members[0]
    same: list[tuple[Normal, Normal]] = [({(): 1.0}, {})]
    if all(member == first for member in members):
        return same * len(members), first
    scales = [[normal.single(normal.normal(_scale(term.scale))) for term in member.terms] for member in members]
    if any(scale is None for row in scales for scale in row):
        return same, None
    shared: list[Monomial] = [_common([row[i][0] for row in scales if row[i]]) for i in range(len(first.terms))]  # type: ignore[index]
    numbers = [scale[1] for scale in scales[0] if scale]
    extras: list[tuple[Monomial, float]] = []
    for row in scales:
        ratios = {
            (_without(scale[0], own), scale[1] / number) for scale, own, number in zip(row, shared, numbers) if scale
        }
        if len(ratios) != 1:
            return same, None
        extras.append(next(iter(ratios)))
    lead, _ = extras[0]
    offset: Normal = normal.normal(first.offset) if lead == () else {}
    terms = tuple(
        type(term)(term.variable, term.kind, term.matrix, _unscale({own: number}))
        for term, own, number in zip(first.terms, shared, numbers)
    )
    base = first if lead == () else Affine(terms, None, first.shape)
    related = []
    for member, extra in zip(members, extras):
        factor: Normal = {extra[0]: extra[1]}
        shift = normal.add(normal.normal(member.offset), normal.multiply(factor, offset), -1.0)
        related.append((factor, shift))
    return related, base


def _scale(scale: Expression | None) -> Expression:
    return Number(1.0) if scale is None else scale


def _unscale(form: Normal) -> Expression | None:
    value = normal.expression(form)
    return None if value == Number(1.0) else value


def _common(monomials: list[Monomial]) -> Monomial:
    """The factors that all monomials share, to the lowest power; factors in a denominator count as not shared."""
    powers = dict(monomials[0])
    for monomial in monomials[1:]:
        other = dict(monomial)
        powers = {factor: min(power, other.get(factor, 0)) for factor, power in powers.items()}
    lowest = {factor: power for factor, power in powers.items() if power}
    for monomial in monomials[1:]:  # a negative power in any of them has to stay in the base
        for factor, power in monomial:
            if power < 0:
                lowest[factor] = min(lowest.get(factor, 0), power)
    return normal.joined((), tuple(lowest.items()))


def _without(monomial: Monomial, shared: Monomial) -> Monomial:
    return normal.joined(monomial, tuple((factor, -power) for factor, power in shared))


# --- parameters -----------------------------------------------------------------------------------------------------


class _Parameters:
    """Finds the parameters of a body: plain names keep their name, what is not elementwise becomes one of its own."""

    def __init__(self, facts: Mapping[str, Quantity], arguments: set[str], taken: set[str], shape: Shape) -> None:
        self.facts = facts
        self.arguments = arguments
        self.taken = taken
        self.matrix = len(shape) > 1
        self.quantities: dict[str, Quantity] = {}
        self.values: dict[str, Expression] = {}
        self.compound: dict[Expression, Name] = {}

    def named(self, body: Expression) -> Expression:
        results: list[Expression] = []
        stack: list[tuple[Expression, bool]] = [(body, False)]
        while stack:
            node, ready = stack.pop()
            if isinstance(node, Number):
                results.append(node)
            elif isinstance(node, Name):
                results.append(node if node.name in self.arguments else self.plain(node))
            elif ready:
                count = len(node.arguments)
                arguments = tuple(results[len(results) - count :])
                del results[len(results) - count :]
                results.append(Call(node.function, arguments))
            elif node.function not in ELEMENTWISE or (node.function in ("max", "min") and len(node.arguments) == 1):
                results.append(self.other(node))
            else:
                stack.append((node, True))
                stack.extend((argument, False) for argument in reversed(node.arguments))
        return results[0]

    def plain(self, node: Name) -> Expression:
        """A datum, parameter or size under its own name."""
        if self.matrix and self.facts[node.name].varies:
            return self.other(Call("ravel", (node,)))
        self.quantities.setdefault(node.name, self.facts[node.name])
        self.values.setdefault(node.name, node)
        return node

    def other(self, node: Expression) -> Name:
        """A constant that is no elementwise formula, as a parameter c1, c2, ..."""
        known = self.compound.get(node)
        if known is None:
            known = Name(_fresh(f"c{len(self.compound) + 1}", self.taken))
            self.compound[node] = known
            varies = any(self.facts[name].varies for name in names(node))
            self.quantities[known.name] = Quantity(known.name, "real", 1.0, varies)
            self.values[known.name] = node
        return known

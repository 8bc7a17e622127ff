"""Which parts of a model don't go together, when no back end can solve it, and what would.

In: a problem that every back end refuses, and a function that names the able ones. Out: a sentence and its mends, found
by leaving parts out and asking again; nothing about back ends is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from spdsl.problem import Age, GroupNorm, KernelNorm, Norm, Predictor, Problem, Regularizer, Separable, TraceNorm
from spdsl.problem.expressions import Name, Number, substituted, text

__all__ = ["Conflict", "conflict"]

_PATH, _WEIGHTS = "a path over ages", "`self_paced`"

Able = Callable[[Problem], list[str]]


@dataclass(frozen=True)
class Conflict:
    """A sentence that names the parts in conflict, and mends with the back end that each would bring."""

    sentence: str
    mends: tuple[str, ...]


@dataclass(frozen=True)
class _Change:
    """A part and the problem without it."""

    part: str
    mend: str
    without: Problem


def conflict(problem: Problem, able: Able) -> Conflict | None:
    """The parts of which one too many stands in the model; None when leaving out one alone, or two, helps nowhere."""
    changes = list(_changes(problem))
    helping = [(change, names) for change in changes if (names := able(change.without))]
    if helping:
        mends = tuple(f"{change.mend}: `{names[0]}` solves the rest" for change, names in helping)
        parts = list(dict.fromkeys(change.part for change, _ in helping))
        if _PATH in parts and _WEIGHTS in parts:
            parts.remove(_WEIGHTS)  # a path has them
        if len(parts) > 1:
            listed = f"{', '.join(parts[:-1])} and {parts[-1]}"
            return Conflict(f"no back end takes {listed} together", mends)
        return Conflict(f"no back end takes {parts[0]} together with the rest of the model", mends)
    for first in changes:
        for second in _changes(first.without):
            names = able(second.without)
            if names:
                sentence = f"no back end takes {first.part} or {second.part} with the rest of the model"
                return Conflict(sentence, (f"{first.mend} and {second.mend}: `{names[0]}` solves the rest",))
    return None


def _changes(problem: Problem) -> Iterator[_Change]:
    """The problem with one part less: a path becomes one age, the samples lose their weights, a term or a set goes."""
    age, paced = problem.age, problem.self_paced
    if age is not None and age.kind != "fixed":
        fixed = replace(problem, age=Age(age.name, "fixed", Number(1.0)))
        yield _Change(_PATH, f"write one age, `age {age.name} = ...`", fixed)
    if paced is not None:
        plain = replace(problem, self_paced=None, age=None)
        yield _Change(_WEIGHTS, "leave out `self_paced` and its age", plain)
    for position, item in enumerate(problem.regularizers):
        kept = problem.regularizers[:position] + problem.regularizers[position + 1 :]
        shown = _shown(item)
        yield _Change(f"`{shown}`", f"leave out `{shown}`", replace(problem, regularizers=kept))
    for position, constraint in enumerate(problem.constraints):
        rest = problem.constraints[:position] + problem.constraints[position + 1 :]
        yield _Change(f"`{constraint.text}`", f"leave out `{constraint.text}`", replace(problem, constraints=rest))


def _shown(item: Regularizer) -> str:
    """A regularizer without its coefficient, as a model would spell it."""
    match item:
        case TraceNorm():
            return f"trace_norm({item.variable})"
        case KernelNorm():
            return f"norm({item.variable})^2"
        case Norm():
            return f"norm2({_inside(item.predictor)})"
        case GroupNorm():
            return f"group_norm({_inside(item.predictor)}, {text(item.groups)})"
        case Separable():
            inside = Name(_inside(item.predictor))
            return text(substituted(item.function.body, dict.fromkeys(item.function.arguments, inside)))
    return f"the term in {_inside(item.predictor)}"


def _inside(predictor: Predictor) -> str:
    """The variables of an affine map, with the matrix where there is one and no more."""
    parts = []
    for term in predictor.terms:
        matrix = f"{text(term.matrix)} @ " if term.matrix is not None and term.kind == "matrix" else ""
        parts.append(f"{matrix}{term.variable}")
    return " + ".join(parts)

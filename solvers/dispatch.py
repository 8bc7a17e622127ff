"""The table that picks a back end: the first that refuses nothing, in order of preference.

In: a `Problem` and its `solve` statement. Out: a back end with its options checked, or an error that prints every
reason.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, fields
from typing import Any

from spdsl.diagnostics import Diagnostic, SolverError, UsageError, nearest_name
from spdsl.problem import Problem
from spdsl.solvers.protocol import BackEnd, CommonOptions

__all__ = ["BACKENDS", "Choice", "all_choices", "check_options", "get", "pick"]

# Name -> where the class lives. The order is the order of preference when the model names none.
BACKENDS: dict[str, str] = {
    "path_following": "spdsl.solvers.path_following:PathFollowing",
    "acs": "spdsl.solvers.alternate_search:AlternateSearch",
}


@dataclass(frozen=True)
class Choice:
    """A back end and why it can't solve a problem (nothing when it can)."""

    name: str
    refusals: tuple[str, ...]


def get(name: str) -> BackEnd[Any]:
    """The back end of that name.

    Raises
    ------
    UsageError
        For an unknown name; the message lists the known ones and the nearest.
    """
    if name not in BACKENDS:
        near = nearest_name(name, BACKENDS)
        known = ", ".join(BACKENDS)
        raise UsageError(
            Diagnostic(
                "SPL501",
                f"there is no back end called `{name}`",
                help=((f"did you mean `{near}`?",) if near else ()) + (f"the back ends are: {known}",),
            )
        )
    module, _, attribute = BACKENDS[name].partition(":")
    backend: BackEnd[Any] = getattr(importlib.import_module(module), attribute)()
    return backend


def all_choices(problem: Problem) -> tuple[Choice, ...]:
    """Every back end with its reasons."""
    return tuple(Choice(name, tuple(get(name).refuses(problem))) for name in BACKENDS)


def pick(problem: Problem, name: str | None = None) -> BackEnd[Any]:
    """The back end asked for, or the first that refuses nothing.

    Raises
    ------
    SolverError
        When the one asked for, or every one, refuses.
    """
    wanted = name or (problem.request.backend if problem.request else None)
    if wanted is not None:
        backend = get(wanted)
        reasons = backend.refuses(problem)
        if reasons:
            able = [choice.name for choice in all_choices(problem) if not choice.refusals]
            mend = (
                f"able to solve it: {', '.join(able)}"
                if able
                else "no other back end can solve it either; see `spdsl explain`"
            )
            raise SolverError(
                Diagnostic(
                    "SPL502",
                    f"the back end `{wanted}` can't solve this model: {'; '.join(reasons)}",
                    help=(mend,),
                )
            )
        return backend
    choices = all_choices(problem)
    for choice in choices:
        if not choice.refusals:
            return get(choice.name)
    reasons = [f"{choice.name}: {'; '.join(choice.refusals)}" for choice in choices]
    raise SolverError(Diagnostic("SPL503", "no back end can solve this mix", help=tuple(reasons)))


def check_options(backend: BackEnd[Any], given: dict[str, Any]) -> CommonOptions:
    """The back end's options dataclass from names and values.

    Raises
    ------
    UsageError
        For an unknown name, a value of the wrong kind, or one outside its range.
    """
    known = {item.name: item for item in fields(backend.options)}
    complaints: list[Diagnostic] = []
    for name, value in given.items():
        if name not in known:
            near = nearest_name(name, known)
            helps = ((f"did you mean `{near}`?",) if near else ()) + (f"it takes: {', '.join(known)}",)
            complaints.append(Diagnostic("SPL504", f"`{backend.name}` has no option `{name}`", help=helps))
            continue
        item = known[name]
        choices = item.metadata.get("choices", ())
        check = item.metadata.get("check")
        if choices and value not in choices:
            listed = ", ".join(str(choice) for choice in choices)
            complaints.append(
                Diagnostic(
                    "SPL505",
                    f"option `{name}` of `{backend.name}` can't be {value!r}",
                    help=(f"one of: {listed}",),
                )
            )
        elif check is not None and (complaint := check(value)):
            complaints.append(Diagnostic("SPL505", f"option `{name}` of `{backend.name}` {complaint}"))
    if complaints:
        raise UsageError(complaints)
    return backend.options(**given)

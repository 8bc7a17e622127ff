"""The table that picks a back end: the first that refuses nothing, in order of preference.

In: a `Problem` and its `solve` statement. Out: a back end with its options checked, or an error that prints every
reason.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, get_args, get_type_hints

from spdsl.diagnostics import Diagnostic, Related, SolverError, UsageError, nearest_name
from spdsl.problem import BoundProblem, Problem
from spdsl.solvers.features import reasons as _reasons
from spdsl.solvers.protocol import BackEnd, CommonOptions

__all__ = ["BACKENDS", "Choice", "all_choices", "check_options", "get", "pick", "pick_for"]

# Name -> where the class lives. The order is the order of preference when the model names none.
BACKENDS: dict[str, str] = {
    "kernel_path": "spdsl.solvers.kernel_path:KernelPath",
    "path_following": "spdsl.solvers.path_following:PathFollowing",
    "group_path": "spdsl.solvers.group_path:GroupPath",
    "acs": "spdsl.solvers.alternate_search:AlternateSearch",
    "mospl": "spdsl.solvers.pareto:Mospl",
    "original": "spdsl.solvers.alternate_search:Original",
    "dual_averaging": "spdsl.solvers.dual_averaging:DualAveraging",
    "comid": "spdsl.solvers.comid:Comid",
    "graph_sto_iht": "spdsl.solvers.iht:GraphStoIHT",
    "graph_iht": "spdsl.solvers.iht:GraphIHT",
    "graph_svrg_iht": "spdsl.solvers.iht:GraphSvrgIHT",
    "graph_cosamp": "spdsl.solvers.iht:GraphCoSaMP",
    "sto_iht": "spdsl.solvers.iht:StoIHT",
    "iht": "spdsl.solvers.iht:IHT",
    "niht": "spdsl.solvers.iht:NIHT",
    "cosamp": "spdsl.solvers.iht:CoSaMP",
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
        For an unknown name; the message lists the known ones and the nearest. Also for one whose package isn't there.
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
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "spdsl":
            raise
        raise UsageError(
            Diagnostic(
                "SPL507",
                f"the back end `{name}` needs the package `{error.name}`, which is not installed",
                help=(f"pip install {error.name}",),
            )
        ) from error


def all_choices(problem: Problem) -> tuple[Choice, ...]:
    """Every back end with its reasons."""
    return tuple(Choice(name, _refusals(name, problem)) for name in BACKENDS)


def pick(problem: Problem, name: str | None = None) -> BackEnd[Any]:
    """The back end asked for, or the first that refuses nothing.

    Raises
    ------
    SolverError
        When the one asked for, or every one, refuses.
    """
    wanted = name or (problem.request.backend if problem.request else None)
    if wanted is None:
        return _first_able(problem)
    backend = get(wanted)
    reasons = _reasons(backend, problem)
    if not reasons:
        return backend
    able = [choice.name for choice in all_choices(problem) if not choice.refusals]
    mend = (
        f"able to solve it: {', '.join(able)}" if able else "no other back end can solve it either; see `spdsl explain`"
    )
    raise SolverError(
        Diagnostic("SPL502", f"the back end `{wanted}` can't solve this model: {'; '.join(reasons)}", help=(mend,))
    )


def pick_for(
    bound: BoundProblem, picked: BackEnd[Any], checked: CommonOptions, options: dict[str, Any]
) -> tuple[BackEnd[Any], CommonOptions]:
    """The back end for these data, with its options: the one picked by the model's parts, or the next that takes the data.

    Parameters
    ----------
    bound : BoundProblem
    picked : BackEnd
        With its options, `checked`.
    options : dict
        What the caller asks for; a back end that doesn't know these options is no replacement.
    """
    if not picked.refuses_data(bound, checked) and picked.suits(bound):
        return picked, checked
    names = list(BACKENDS)
    for name in names[names.index(picked.name) + 1 :]:
        if _refusals(name, bound.problem):
            continue
        try:
            other = check_options(get(name), options)
        except UsageError:
            continue
        if not get(name).refuses_data(bound, other):
            return get(name), other
    return picked, checked  # it says itself what it lacks


def check_options(backend: BackEnd[Any], given: dict[str, Any]) -> CommonOptions:
    """The back end's options dataclass from names and values.

    Raises
    ------
    UsageError
        For an unknown name, a value of the wrong kind, or one outside its range: all complaints together.
    """
    known = {item.name: item for item in fields(backend.options)}
    kinds = get_type_hints(backend.options)
    complaints: list[Diagnostic] = []
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            near = nearest_name(name, known)
            helps = ((f"did you mean `{near}`?",) if near else ()) + (f"it takes: {', '.join(known)}",)
            complaints.append(Diagnostic("SPL504", f"`{backend.name}` has no option `{name}`", help=helps))
            continue
        values[name], complaint = _converted(value, kinds[name])
        choices = known[name].metadata.get("choices", ())
        check = known[name].metadata.get("check")
        helps = ()
        if choices and value not in choices:
            complaint = f"can't be {value!r}"
            helps = (f"one of: {', '.join(str(choice) for choice in choices)}",)
        if complaint is None and check is not None:
            complaint = check(values[name])
        if complaint is not None:
            complaints.append(Diagnostic("SPL505", f"option `{name}` of `{backend.name}` {complaint}", help=helps))
    if complaints:
        raise UsageError(complaints)
    return backend.options(**values)


def _load(name: str) -> BackEnd[Any]:
    module, _, attribute = BACKENDS[name].partition(":")
    backend: BackEnd[Any] = getattr(importlib.import_module(module), attribute)()
    return backend


def _refusals(name: str, problem: Problem) -> tuple[str, ...]:
    try:
        return tuple(_reasons(get(name), problem))
    except UsageError as error:
        return tuple(item.message for item in error.diagnostics)


def _first_able(problem: Problem) -> BackEnd[Any]:
    refusals: dict[str, tuple[str, ...]] = {}
    for name in BACKENDS:
        refusals[name] = _refusals(name, problem)
        if not refusals[name]:
            return get(name)
    raise SolverError(_impossible(problem, refusals))


_NEAREST = 3


def _impossible(problem: Problem, refusals: dict[str, tuple[str, ...]]) -> Diagnostic:
    """The parts that don't go together, what would, and the reasons of the back ends that come nearest."""
    from spdsl.solvers.mixes import conflict

    def able(changed: Problem) -> list[str]:
        return [name for name in BACKENDS if not _refusals(name, changed)]

    found = conflict(problem, able)
    nearest = sorted(refusals, key=lambda name: len(refusals[name]))[:_NEAREST]
    reasons = tuple(Related(None, f"{name}: {'; '.join(refusals[name])}") for name in nearest)
    message = "no back end can solve this mix of parts" if found is None else found.sentence
    more = len(refusals) - len(nearest)
    others = (f"`spdsl explain` has the reasons of the {more} other back ends",) if more > 0 else ()
    return Diagnostic("SPL503", message, help=(*(() if found is None else found.mends), *others), related=reasons)


def _converted(value: Any, kind: Any) -> tuple[Any, str | None]:
    """The value as its option's kind, and a complaint or None; kinds that are not plain are the back end's to check."""
    plain = get_args(kind) or (kind,)
    if not set(plain) <= {bool, int, float, str, NoneType}:
        return value, None
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if value == "none" and NoneType in plain and str not in plain:  # as the command line and a model write it
        value = None
    if value is None or isinstance(value, bool | str):
        fits = type(value) in plain
    elif isinstance(value, int | float) and value == value:
        whole = isinstance(value, int) or value.is_integer()
        fits = float in plain or (int in plain and whole)
        value = int(value) if int in plain and whole else float(value) if fits else value
    else:
        fits = False
    if fits:
        return value, None
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a word", NoneType: "none"}
    return value, f"must be {' or '.join(words[item] for item in plain)}, not {value!r}"

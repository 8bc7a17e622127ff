"""Keywords of `Model.solve` told apart: what is data, what a parameter of the model, what an option of the back end.

In: a problem, the back end's option names, keyword values. Out: three dictionaries, or every complaint about the names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spdsl.diagnostics import Diagnostic, UsageError, nearest_name
from spdsl.problem import Problem

__all__ = ["Sorted", "merged", "sort_values"]


class Sorted:
    """Keyword values by what they are."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}
        self.options: dict[str, Any] = {}


def sort_values(problem: Problem, options: Sequence[str], backend: str, values: Mapping[str, Any]) -> Sorted:
    """Tell data, parameters and options apart by name; all complaints together."""
    found = Sorted()
    data = [item.name for item in problem.data]
    parameters = [item.name for item in problem.parameters]
    dims = [*(item.dims for item in problem.data), *(item.dims for item in problem.variables)]
    sizes = [dim for shape in dims for dim in shape if not dim.isdigit()]
    complaints: list[Diagnostic] = []
    for name, value in values.items():
        places = [
            (what, target)
            for what, target, names in (
                ("data", found.data, data),
                ("parameters", found.parameters, parameters),
                ("options", found.options, options),
                ("data", found.data, sizes),
            )
            if name in names
        ]
        if len(places) == 1:
            places[0][1][name] = value
        elif places:
            mends = " or ".join(f"{what}={{'{name}': ...}}" for what, _ in places)
            complaints.append(
                Diagnostic(
                    "SPL706",
                    f"`{name}` is among the model's {places[0][0]} and among the options of `{backend}`",
                    help=(f"say which is meant: {mends}",),
                )
            )
        else:
            complaints.append(_unknown(name, problem, [*data, *parameters, *sizes], options, backend))
    if complaints:
        raise UsageError(complaints)
    return found


KEYWORDS = (
    "data",
    "bind",
    "backend",
    "options",
    "parameters",
    "standardize",
    "seed",
    "time_limit",
    "progress",
    "callback",
)


def _unknown(name: str, problem: Problem, names: Sequence[str], options: Sequence[str], backend: str) -> Diagnostic:
    near = nearest_name(name, [*names, *options, *KEYWORDS])
    if any(item.name == name for item in problem.variables):
        helps: tuple[str, ...] = (f"`{name}` is a variable: it is what gets solved for",)
    else:
        helps = (f"did you mean `{near}`?",) if near else ()
    listed = ", ".join(dict.fromkeys(names)) or "neither data nor parameters"
    return Diagnostic(
        "SPL706",
        f"`{name}` is neither data nor a parameter of the model, nor an option of `{backend}`",
        help=(*helps, f"the model has {listed}; `{backend}` takes {', '.join(options)}"),
    )


def merged(what: str, keywords: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keywords and a mapping together; a name in both is an error."""
    twice = sorted(set(keywords) & set(given or {}))
    if twice:
        raise UsageError(Diagnostic("SPL706", f"{what} `{twice[0]}` is given twice", help=("give it once",)))
    return {**keywords, **(given or {})}

"""Writes the source files of kernels: a NumPy tier that is only NumPy, and its scalar numba twin.

In: borders and formulas as sympy expressions, the names of the parameters. Out: readable Python source, complete in
itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spdsl.compiler.algebra import Symbolic
from spdsl.compiler.spelling import Dialect, code, python_name
from spdsl.compiler.stable import NUMBA

__all__ = ["ImplicitRow", "function_sources", "weight_sources"]

HELPERS = (*NUMBA, "_solve")


@dataclass(frozen=True)
class ImplicitRow:
    """A piece of v* without a closed form: the zero of l + slope(v) in [low, high], and what its derivatives need.

    `mixed` is the derivative of the slope by the age: dv*/dl = -1/curvature, dv*/dlambda = -mixed/curvature.
    """

    slope: Symbolic
    curvature: Symbolic
    mixed: Symbolic
    low: Symbolic
    high: Symbolic


Row = tuple[Symbolic, Symbolic, Symbolic] | ImplicitRow


def function_sources(
    title: str,
    argument: str,
    parameters: Sequence[str],
    borders: Sequence[Symbolic],
    kinked: Sequence[bool],
    rows: Sequence[tuple[Symbolic, Symbolic, Symbolic]],
) -> tuple[str, str]:
    """The two tiers of a PC^r function.

    Parameters
    ----------
    title : str
        One line that says what the function is.
    borders : sequence of n_pieces - 1 expressions over the parameters
    rows : sequence of (value, slope, curvature), one a piece, from the left
    """
    names = {argument: "z", **{name: python_name(name) for name in parameters}}
    given = [names[name] for name in parameters]
    numpy = [
        f"n_pieces = {len(rows)}",
        f"kinked = {tuple(bool(k) for k in kinked)!r}",
        *_breaks(given, borders, names, "numpy"),
    ]
    for label, row in enumerate(rows):
        for what, formula in zip(("value", "slope", "curvature"), row):
            numpy += ["", "", f"def {what}_{label}({', '.join(['z', *given])}):"]
            numpy += [f"    return {code(formula, names, 'numpy')}"]
    numba = _labels(["z", "theta"], "z", given, borders, names)
    for position, what in enumerate(("value", "slope", "curvature")):
        formulas = [row[position] for row in rows]
        numba += _selected(what, ["piece", "z", "theta"], given, formulas, names)
        numba += _whole(what, ["z", "theta"], "z", given, borders, formulas, names)
    return _file(title, numpy, "numpy"), _file(title, numba, "numba")


def weight_sources(
    title: str,
    argument: str,
    age: str,
    parameters: Sequence[str],
    names_of_pieces: Sequence[str],
    continuous: bool,
    borders: Sequence[Symbolic],
    rows: Sequence[Row],
    pieces: Sequence[tuple[Symbolic, Symbolic]],
    finite_at_zero: bool,
) -> tuple[str, str]:
    """The two tiers of v*(l, lambda).

    Parameters
    ----------
    rows : sequence of (weight, dloss, dage) or ImplicitRow, one a piece, by ascending loss
    pieces : sequence of (upper end in v, f), ascending
    finite_at_zero : bool
        Whether f(0) can be evaluated; if not, f is evaluated at 1e-300 instead (v log v and the like).
    """
    names = {argument: "v", "l": "loss", age: "age", **{name: python_name(name) for name in parameters}}
    given = [names[name] for name in parameters]
    arguments = ["loss", "age", *given]
    numpy = [
        f"n_pieces = {len(rows)}",
        f"names = {tuple(names_of_pieces)!r}",
        f"continuous = {continuous!r}",
        *_breaks(["age", *given], borders, names, "numpy"),
    ]
    for label, row in enumerate(rows):
        if isinstance(row, ImplicitRow):
            numpy += _implicit_numpy(label, row, arguments, names)
            continue
        for what, formula in zip(("weight", "dloss", "dage"), row):
            numpy += ["", "", f"def {what}_{label}({', '.join(arguments)}):"]
            numpy += [f"    return {code(formula, names, 'numpy')}"]
    numpy += ["", "", f"def regularizer({', '.join(['v', 'age', *given])}):"]
    numpy += [] if finite_at_zero else ["    v = np.maximum(v, 1e-300)"]
    value = code(pieces[-1][1], names, "numpy")
    for upper, formula in reversed(pieces[:-1]):
        value = f"np.where(v <= {code(upper, names, 'numpy')}, {code(formula, names, 'numpy')}, {value})"
    numpy += [f"    return {value}"]
    return _file(title, numpy, "numpy"), _file(
        title, _weight_numba(given, borders, rows, pieces, finite_at_zero, names), "numba"
    )


def _weight_numba(
    given: Sequence[str],
    borders: Sequence[Symbolic],
    rows: Sequence[Row],
    pieces: Sequence[tuple[Symbolic, Symbolic]],
    finite_at_zero: bool,
    names: Mapping[str, str],
) -> list[str]:
    lines: list[str] = []
    for label, row in enumerate(rows):
        if isinstance(row, ImplicitRow):
            lines += _implicit_numba(label, row, given, names)
    for position, what in enumerate(("weight", "dloss", "dage")):
        formulas: list[Symbolic | str] = [
            f"{what}_{label}(loss, age, theta)" if isinstance(row, ImplicitRow) else row[position]
            for label, row in enumerate(rows)
        ]
        lines += _selected(what, ["piece", "loss", "age", "theta"], given, formulas, names)
        lines += _whole(what, ["loss", "age", "theta"], "loss", given, borders, formulas, names)
    lines += _labels(["loss", "age", "theta"], "loss", given, borders, names)
    lines += _compiled("def regularizer(v, age, theta):")
    lines += [*_unpack(given), *([] if finite_at_zero else ["    v = max(v, 1e-300)"])]
    for upper, formula in pieces[:-1]:
        lines += [f"    if v <= {code(upper, names, 'numba')}:", f"        return {code(formula, names, 'numba')}"]
    return [*lines, f"    return {code(pieces[-1][1], names, 'numba')}"]


def _implicit_numpy(label: int, row: ImplicitRow, arguments: Sequence[str], names: Mapping[str, str]) -> list[str]:
    given = ", ".join(arguments)
    show = {what: code(getattr(row, what), names, "numpy") for what in ("slope", "curvature", "mixed", "low", "high")}
    return [
        *["", "", f"def weight_{label}({given}):"],
        f"    def slope(v, loss, {', '.join(arguments[1:])}):",
        f"        return loss + {show['slope']}",
        "",
        f"    def curvature(v, {', '.join(arguments[1:])}):",
        f"        return {show['curvature']}",
        "",
        f"    return _solve(slope, curvature, loss, {show['low']}, {show['high']}, {', '.join(arguments[1:])})",
        *["", "", f"def dloss_{label}({given}):"],
        f"    v = weight_{label}({given})",
        f"    return -1.0/({show['curvature']})",
        *["", "", f"def dage_{label}({given}):"],
        f"    v = weight_{label}({given})",
        f"    return -({show['mixed']})/({show['curvature']})",
    ]


def _implicit_numba(label: int, row: ImplicitRow, given: Sequence[str], names: Mapping[str, str]) -> list[str]:
    show = {what: code(getattr(row, what), names, "numba") for what in ("slope", "curvature", "mixed", "low", "high")}
    return [
        *_compiled(f"def weight_{label}(loss, age, theta):"),
        *_unpack(given),
        f"    low = float({show['low']})",
        f"    high = float({show['high']})",
        "    v = 0.5*(low + high)",
        "    for _ in range(1100):",
        f"        value = loss + {show['slope']}",
        "        if value > 0.0:",
        "            high = v",
        "        else:",
        "            low = v",
        f"        ahead = v - value/({show['curvature']})",
        "        if not (ahead > low and ahead < high):",
        "            ahead = 0.5*(low + high)",
        "        if abs(ahead - v) <= 2.2e-16*abs(v):",
        "            return ahead",
        "        v = ahead",
        "    return v",
        *_compiled(f"def dloss_{label}(loss, age, theta):"),
        *_unpack(given),
        f"    v = weight_{label}(loss, age, theta)",
        f"    return -1.0/({show['curvature']})",
        *_compiled(f"def dage_{label}(loss, age, theta):"),
        *_unpack(given),
        f"    v = weight_{label}(loss, age, theta)",
        f"    return -({show['mixed']})/({show['curvature']})",
    ]


def _breaks(
    arguments: Sequence[str], borders: Sequence[Symbolic], names: Mapping[str, str], dialect: Dialect
) -> list[str]:
    shown = [code(border, names, dialect) for border in borders]
    return ["", "", f"def breaks({', '.join(arguments)}):", f"    return ({''.join(f'{item}, ' for item in shown)})"]


def _compiled(header: str) -> list[str]:
    """A function that numba compiles when it is first called."""
    return ["", "", "@njit(cache=CACHE, error_model='numpy')", header]


def _unpack(parameters: Sequence[str]) -> list[str]:
    return [f"    {name} = theta[{position}]" for position, name in enumerate(parameters)]


def _selected(
    what: str,
    arguments: Sequence[str],
    parameters: Sequence[str],
    formulas: Sequence[Symbolic | str],
    names: Mapping[str, str],
) -> list[str]:
    """A scalar function that picks the formula (or ready source) by its label."""
    lines = _compiled(f"def piece_{what}({', '.join(arguments)}):")
    lines += _unpack(parameters)
    shown = [item if isinstance(item, str) else code(item, names, "numba") for item in formulas]
    for label, formula in enumerate(shown[:-1]):
        lines += [f"    if piece == {label}:", f"        return {formula}"]
    return [*lines, f"    return {shown[-1]}"]


def _whole(
    what: str,
    arguments: Sequence[str],
    at: str,
    parameters: Sequence[str],
    borders: Sequence[Symbolic],
    formulas: Sequence[Symbolic | str],
    names: Mapping[str, str],
) -> list[str]:
    """A scalar function that finds its piece itself, from the right, so that a border belongs to the right-hand one."""
    shown = [item if isinstance(item, str) else code(item, names, "numba") for item in formulas]
    lines = [*_compiled(f"def {what}({', '.join(arguments)}):"), *_unpack(parameters)]
    for border, formula in zip(reversed(borders), reversed(shown[1:])):
        lines += [f"    if {at} >= {_place(border, at, names)}:", f"        return {formula}"]
    return [*lines, f"    return {shown[0]}"]


def _labels(
    arguments: Sequence[str],
    at: str,
    parameters: Sequence[str],
    borders: Sequence[Symbolic],
    names: Mapping[str, str],
) -> list[str]:
    lines = _compiled(f"def piece_of({', '.join(arguments)}):")
    lines += _unpack(parameters) if borders else []
    lines += ["    label = 0"]
    for border in borders:
        lines += [f"    if {at} >= {_place(border, at, names)}:", "        label += 1"]
    return [*lines, "    return label"]


def _place(border: Symbolic, at: str, names: Mapping[str, str]) -> str:
    """A border's source; one of losses is kept above 0 as in `GeneratedWeightKernel.piece`."""
    source = code(border, names, "numba")
    return f"max({source}, 1e-300)" if at == "loss" else source


def _file(title: str, lines: Sequence[str], dialect: Dialect) -> str:
    body = "\n".join(lines)
    used = [name for name in HELPERS if f"{name}(" in body]
    head = [f'"""{title}"""', "", "import math", ""]
    if dialect == "numba":
        head += ["import numpy as np", "from numba import njit", ""]
        head += [part for name in used if name in NUMBA for part in ("", NUMBA[name].strip("\n"), "")]
    else:
        head += ["import numpy as np", ""]
        if used:
            head += ["from spdsl.compiler.stable import " + ", ".join(used), ""]
        head = [line for line in head if line != "import math"]
    return "\n".join([*head, body, ""])

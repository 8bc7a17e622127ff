"""Options that several commands share, and `NAME=VALUE` texts as values.

In: texts from the command line. Out: dictionaries for `Model.solve`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import click

__all__ = ["debug_option", "model_argument", "parsed_options", "parsed_pairs", "solving_options", "value_of"]

CALL = re.compile(r"^([A-Za-z_]\w*)\((.*)\)$", re.DOTALL)
KEYWORD = re.compile(r"^\s*([A-Za-z_]\w*)\s*=")
NUMBER = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$")


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--debug``; `spdsl.cli.app` looks for it itself."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show Python's traceback of an error.")(
        command
    )


def model_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """MODEL, a `.spl` file."""
    return click.argument("model", metavar="MODEL")(command)


def solving_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What `solve` and `check` take alike."""
    decorators: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        click.argument("more", nargs=-1, metavar="[FILE]..."),
        click.option(
            "--data",
            "-d",
            multiple=True,
            metavar="FILE",
            help="CSV, TSV, Parquet, NPZ, NPY, LIBSVM or edge list; may be repeated.",
        ),
        click.option(
            "--bind",
            "-b",
            multiple=True,
            metavar="NAME=SOURCE",
            help="Say outright what binds to a name: `y=target`.",
        ),
        click.option(
            "--set",
            "-s",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Override a parameter: `alpha=0.1`.",
        ),
        click.option("--standardize", metavar="NAMES", help="Bring these data to mean 0 and deviation 1: `X,y`."),
        click.option("--backend", metavar="NAME", help="Use this back end; `spdsl backends` lists them."),
        click.option(
            "--option", "-o", "options", multiple=True, metavar="NAME=VALUE", help="An option of the back end."
        ),
        click.option(
            "--age", "ages", multiple=True, type=float, metavar="AGE", help="Ages to report on; may be repeated."
        ),
        click.option("--out", metavar="FILE", help="Write the result here (.npz)."),
        click.option("--seed", type=int, help="Seed of every random draw."),
        click.option("--time-limit", type=float, metavar="SECONDS", help="End after so long, with what was reached."),
        click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors."),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        debug_option,
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def parsed_pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dictionary; a name twice is an error."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or not value.strip():
            what = "SOURCE" if flag == "--bind" else "VALUE"
            raise click.UsageError(f"`{flag} {text}` should read `{flag} NAME={what}`.")
        if name in found:
            raise click.UsageError(f"`{flag}` gives `{name}` twice: {found[name]} and {value.strip()}.")
        found[name] = value.strip()
    return found


def parsed_options(texts: Iterable[str]) -> dict[str, Any]:
    """``NAME=VALUE`` texts of a back end's options with values as in a ``solve`` statement."""
    return {name: value_of(value) for name, value in parsed_pairs(texts, "--option").items()}


def value_of(text: str) -> Any:
    """A number, true or false, a word, or a call such as ``subset(0.5, seed = 1)`` as (name, arguments, keywords)."""
    text = text.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if NUMBER.match(text):
        number = float(text)
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else number
    if text.lower() in ("inf", "+inf", "-inf"):
        return float(text)
    call = CALL.match(text)
    if not call:
        return text.strip("\"'")
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for part in _split(call[2]):
        keyword = KEYWORD.match(part)
        if keyword:
            keywords[keyword[1]] = value_of(part[keyword.end() :])
        else:
            positional.append(value_of(part))
    return call[1], tuple(positional), keywords


def _split(text: str) -> list[str]:
    """The parts between commas that are in no bracket."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [part for part in (*parts, current) if part.strip()]

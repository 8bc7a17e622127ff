"""Diagnostics in colour on a terminal, plain everywhere else; the words are those of `diagnostics.render`.

In: diagnostics. Out: a rich text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from spdsl.diagnostics import Diagnostic, Severity, render

__all__ = ["colored"]

GUTTER = re.compile(r"^( *\d* *\|)(.*)$")


def colored(diagnostics: Iterable[Diagnostic]) -> Any:
    """All of them, an empty line between two, as a `rich.text.Text`."""
    from rich.text import Text

    text = Text()
    for count, item in enumerate(diagnostics):
        text.append("\n\n" if count else "")
        _append(text, item)
    return text


def _append(text: Any, item: Diagnostic) -> None:
    strong = "bold red" if item.severity is Severity.ERROR else "bold yellow"
    head, *lines = render(item).split("\n")
    kind, _, message = head.partition(": ")
    text.append(kind, strong)
    text.append(f": {message}", "bold")
    for line in lines:
        text.append("\n")
        gutter = GUTTER.match(line)
        if line.startswith("help: "):
            text.append("help", "bold green")
            text.append(line[4:])
        elif gutter and re.fullmatch(r" *[\^-]+.*", gutter[2]) and not gutter[1].strip(" |"):
            text.append(gutter[1], "blue")
            text.append(gutter[2], strong if "^" in gutter[2] else "blue")
        elif gutter:
            text.append(gutter[1], "blue")
            text.append(gutter[2])
        elif re.match(r" *(-->|:::)", line):
            text.append(line, "blue")
        else:
            text.append(line)

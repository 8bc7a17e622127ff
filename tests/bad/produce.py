"""What the language says about a bad program; run as a module to write the golden files anew.

    python -m tests.bad.produce            # shows which files would change
    python -m tests.bad.produce --write

Read every change before committing it: the golden files are the specification of the messages.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from spdsl.diagnostics import ModelError, Source, render
from spdsl.language import check, load_source, parse

HERE = Path(__file__).resolve().parent

FROM_THE_COMPILER = frozenset(
    {
        *("SPL320", "SPL321", "SPL322", "SPL323", "SPL324", "SPL330", "SPL331", "SPL332", "SPL333"),
        *("SPL340", "SPL341", "SPL342"),
    }
)
"""Codes that the compiler raises; their programs have no golden file, for the wording is the compiler's."""


def code_of(path: Path) -> str:
    """The code that a program's name tells."""
    return f"SPL{path.stem[:3]}"


def programs() -> list[Path]:
    """The programs that the language refuses or warns of, in order."""
    return [path for path in sorted(HERE.glob("*.spl")) if code_of(path) not in FROM_THE_COMPILER]


def programs_for_the_compiler() -> list[Path]:
    """The programs that only the compiler refuses or warns of, in order."""
    return [path for path in sorted(HERE.glob("*.spl")) if code_of(path) in FROM_THE_COMPILER]


@cache
def produce(path: Path) -> str:
    """The errors of a program, or the warnings of one that is only suspicious; empty when there are none."""
    try:
        source = load_source(path)
        source = Source(path.name, source.text)
        checked = check(parse(source))
    except ModelError as error:
        return str(error).replace(f"{HERE}/", "") + "\n"
    return "\n\n".join(render(warning) for warning in checked.warnings) + "\n" if checked.warnings else ""


def main() -> int:
    """Compare with the golden files, or write them."""
    changed = [path for path in programs() if not _golden(path).exists() or _golden(path).read_text() != produce(path)]
    for path in changed:
        print(path.name)
        if "--write" in sys.argv[1:]:
            _golden(path).write_text(produce(path))
    return 0 if not changed or "--write" in sys.argv[1:] else 1


def _golden(path: Path) -> Path:
    return path.with_suffix(".txt")


if __name__ == "__main__":
    raise SystemExit(main())

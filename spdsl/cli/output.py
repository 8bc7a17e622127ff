"""What every command needs: consoles, exit codes, complaints, and the words for a bug.

In: texts, tables, diagnostics. Out: stdout and stderr, in colour on terminals only (NO_COLOR is heard).
"""

from __future__ import annotations

import platform
import sys
import traceback
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from spdsl.diagnostics import Diagnostic

__all__ = ["ExitCode", "complain", "note", "print_bug", "stderr", "stdout"]


class ExitCode(IntEnum):
    """What the shell is told."""

    SOLVED = 0
    WRONG = 1
    USAGE = 2
    STOPPED_SHORT = 3
    BUG = 70
    INTERRUPTED = 130


def stdout() -> Any:
    """A rich console on the standard output of now."""
    return _console(sys.stdout, soft_wrap=False)


def stderr() -> Any:
    """A rich console on the standard error of now."""
    return _console(sys.stderr, soft_wrap=True)


def _console(stream: Any, soft_wrap: bool) -> Any:
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to `spdsl.cli.app`; rich would exit with code 1."""
            raise BrokenPipeError

    return Ours(file=stream, highlight=False, soft_wrap=soft_wrap)


def complain(diagnostics: Iterable[Diagnostic]) -> None:
    """Diagnostics on stderr."""
    from spdsl.view.messages import colored

    console = stderr()
    console.print(colored(diagnostics))


def note(text: str, style: str = "dim") -> None:
    """A remark on stderr."""
    stderr().print(text, style=style, markup=False)


def print_bug(error: Exception) -> None:
    """Say that it is our fault, and what a report needs."""
    from spdsl import __version__

    where = traceback.extract_tb(error.__traceback__)
    place = f"{where[-1].filename.rsplit('spdsl/', 1)[-1]}:{where[-1].lineno}" if where else "unknown place"
    lines = [
        f"error[SPL900]: this is a bug in spdsl: {type(error).__name__}: {error}",
        f"  --> {place}",
        "help: run the command again with `--debug` and report what it shows, with the model file, how the data look,",
        f"      and: spdsl {__version__}, Python {platform.python_version()}, {platform.platform()}",
    ]
    stderr().print("\n".join(lines), markup=False, style="red" if sys.stderr.isatty() else None)

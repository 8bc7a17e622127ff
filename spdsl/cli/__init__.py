"""The command line: `spdsl solve, check, explain, plot, show, fmt, new, demo, backends`.

In: arguments. Out: text on stdout, complaints on stderr, files, an exit code. `main` answers ``--version`` before
anything is imported; everything else is in `spdsl.cli.app`.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The entry point of ``spdsl``; exits with 0 solved, 1 model or data wrong, 2 usage, 3 stopped short, 70 a bug."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from spdsl import __version__

        print(f"spdsl {__version__}")
        return
    from spdsl.cli.app import app

    app(prog_name="spdsl")

"""The group of commands, and the one place where errors become messages and exit codes.

In: arguments. Out: an exit code. No traceback reaches a user, except with ``--debug``.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from spdsl import __version__
from spdsl.cli.output import ExitCode, complain, print_bug
from spdsl.diagnostics import DataError, InternalError, ModelError, SolverError, SpdslError, UsageError

__all__ = ["app"]

COMMANDS = {
    "solve": "spdsl.cli.solving:solve",
    "check": "spdsl.cli.solving:check",
    "select": "spdsl.cli.selecting:select",
    "stability": "spdsl.cli.repeating:stability",
    "explain": "spdsl.cli.showing:explain",
    "plot": "spdsl.cli.showing:plot",
    "show": "spdsl.cli.showing:show",
    "fmt": "spdsl.cli.writing:fmt",
    "new": "spdsl.cli.writing:new",
    "demo": "spdsl.cli.demo:demo",
    "backends": "spdsl.cli.showing:backends",
}


class Group(click.Group):
    """Commands that are imported when they are called, and errors that are shown when they come up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        import importlib

        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from spdsl.diagnostics import nearest_name

        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            near = nearest_name(name, COMMANDS)
            guess = f" Did you mean `spdsl {near}`?" if near else ""
            if name.endswith(".spl"):
                guess = f" Did you mean `spdsl solve {name}`?"
            ctx.fail(f"There is no command `{name}`.{guess}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # here, because click would make an exit code 1 of it
            _leave_quietly()

    def main(self, *args: Any, **options: Any) -> NoReturn:
        debug = "--debug" in (options.get("args") or (args[0] if args and args[0] is not None else sys.argv[1:]))
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            _leave_quietly()
        except click.exceptions.Exit as leaving:
            code = leaving.exit_code
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (KeyboardInterrupt, click.Abort):
            click.echo("\ninterrupted before there was anything to keep", err=True)
            code = ExitCode.INTERRUPTED
        except Exception as error:
            if debug:
                import traceback

                traceback.print_exc()
            code = _explain_error(error)
        sys.exit(int(code) if isinstance(code, int) else 0)


def _explain_error(error: Exception) -> int:
    """Show an error and say which exit code it has."""
    if isinstance(error, InternalError) or not isinstance(error, SpdslError | MemoryError):
        print_bug(error)
        return ExitCode.BUG
    if isinstance(error, MemoryError):
        click.echo(f"error: not enough memory{': ' + str(error) if str(error) else ''}", err=True)
        return ExitCode.WRONG
    complain(error.diagnostics)
    if isinstance(error, UsageError):
        return ExitCode.USAGE
    assert isinstance(error, ModelError | DataError | SolverError) or type(error) is SpdslError
    return ExitCode.WRONG


def _leave_quietly() -> NoReturn:
    """Whoever read our output has gone (``spdsl ... | head``): that is no error worth a word."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    sys.exit(ExitCode.SOLVED)


@click.group(
    cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, no_args_is_help=True
)
@click.version_option(__version__, "-V", "--version", message="spdsl %(version)s")
def app() -> None:
    """Solve learning problems written as loss + regularizer + self-paced regularizer.

    \b
      spdsl demo                                        the main job on real data
      spdsl new lasso.spl --from lasso                  a commented model to start from
      spdsl solve lasso.spl --data diabetes.csv --bind y=target --out path.npz
      spdsl check lasso.spl --data diabetes.csv --bind y=target

    \b
    Exit codes: 0 solved, 1 the model or the data is wrong, 2 usage, 3 a solver
    stopped short (what it reached is written), 70 a bug in spdsl.
    """

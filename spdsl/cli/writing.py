"""`spdsl fmt` and `spdsl new`: model files in the one canonical layout, and commented models to start from.

In: model files, `-` for standard input, or a starter's name. Out: files, differences, an exit code.
"""

from __future__ import annotations

import os
import sys
from importlib import resources

import click

from spdsl.cli.arguments import debug_option
from spdsl.cli.output import ExitCode, complain
from spdsl.diagnostics import Diagnostic, SpdslError, UsageError, nearest_name

__all__ = ["fmt", "new", "starters"]


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit code 1 when a file would change.")
@click.option("--diff", "show_diff", is_flag=True, help="Write nothing; show what would change.")
@debug_option
def fmt(files: tuple[str, ...], only_check: bool, show_diff: bool) -> int:
    """Bring model files into the one canonical layout, in place; `-` reads stdin and writes stdout."""
    changed, failed = 0, False
    for file in files:
        try:
            changed += _format(file, only_check, show_diff)
        except UsageError:
            raise
        except SpdslError as error:
            complain(error.diagnostics)
            failed = True
    if failed or (only_check and changed):
        return ExitCode.WRONG
    return ExitCode.SOLVED


def _format(file: str, only_check: bool, show_diff: bool) -> bool:
    """Format one file; did it, or would it, change?"""
    from spdsl.language import load_source, parse
    from spdsl.language.formatter import format_model
    from spdsl.language.source import decode

    name = "<stdin>" if file == "-" else file
    source = decode(sys.stdin.buffer.read(), name) if file == "-" else load_source(file)
    after = format_model(parse(source))
    before = source.text if file == "-" else _raw(file)
    if show_diff:
        _print_difference(before, after, name)
    elif only_check:
        if before != after:
            click.echo(f"would change {name}", err=True)
    elif file == "-":
        click.echo(after, nl=False)
    elif before != after:
        _replace(file, after)
        click.echo(f"formatted {name}", err=True)
    return before != after


def _raw(file: str) -> str:
    """The file as it is, line ends and byte order mark included: they are part of the layout."""
    with open(file, encoding="utf-8", newline="") as stream:
        return stream.read()


def _print_difference(before: str, after: str, name: str) -> None:
    import difflib

    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, f"{name} (formatted)"
    )
    for line in lines:
        color = {"+": "green", "-": "red", "@": "cyan"}.get(line[0])
        click.secho(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n", fg=color, nl=False)


def _replace(file: str, text: str) -> None:
    """Write beside the file and rename: an interrupt never leaves half of a model."""
    import tempfile

    try:
        mode = os.stat(file).st_mode & 0o7777
        handle, scratch = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(file)), prefix=".spdsl-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            os.chmod(scratch, mode)
            os.replace(scratch, os.path.realpath(file))
        except BaseException:
            os.unlink(scratch)
            raise
    except OSError as error:
        raise UsageError(Diagnostic("SPL705", f"can't write {file}: {error.strerror or error}")) from error


def starters() -> dict[str, str]:
    """The models to start from, by name."""
    folder = resources.files("spdsl.cli") / "starters"
    found = {item.name.removesuffix(".spl"): item.read_text("utf-8") for item in folder.iterdir()}
    order = ["lasso", "svm", "graph", "online", "metric"]
    return {name: found[name] for name in sorted(found, key=lambda n: (order.index(n) if n in order else 99, n))}


@click.command()
@click.argument("file", required=False, metavar="FILE")
@click.option("--from", "origin", default="lasso", show_default=True, metavar="NAME", help="The model to start from.")
@click.option("--list", "list_them", is_flag=True, help="List the models to start from.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@debug_option
def new(file: str | None, origin: str, list_them: bool, force: bool) -> int:
    """Write a commented model to FILE (`-` for stdout) as a start for your own."""
    known = starters()
    if list_them:
        width = max(map(len, known))
        for name, text in known.items():
            click.echo(f"{name:<{width}}  {text.splitlines()[0].lstrip('# ')}")
        return ExitCode.SOLVED
    if file is None:
        raise click.UsageError("Missing argument 'FILE'; `spdsl new lasso.spl --from lasso`, or --list.")
    if origin not in known:
        near = nearest_name(origin, known)
        guess = f" Did you mean `{near}`?" if near else ""
        raise click.UsageError(f"There is no starter `{origin}`.{guess} There are: {', '.join(known)}.")
    if file == "-":
        click.echo(known[origin], nl=False)
        return ExitCode.SOLVED
    if os.path.exists(file) and not force:
        raise UsageError(
            Diagnostic("SPL709", f"{file} is already there", help=("choose another name, or add --force",))
        )
    try:
        with open(file, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(known[origin].replace("MODEL.spl", file))
    except OSError as error:
        raise UsageError(Diagnostic("SPL705", f"can't write {file}: {error.strerror or error}")) from error
    click.echo(f"written to {file}; its first lines say how to solve it")
    return ExitCode.SOLVED

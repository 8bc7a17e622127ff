"""`spdsl explain`, `plot`, `show` and `backends`: everything that shows and solves nothing.

In: a model file or a result file. Out: text, pictures, pages.
"""

from __future__ import annotations

import os
from typing import Any

import click

from spdsl.cli.arguments import debug_option, model_argument
from spdsl.cli.output import ExitCode, stdout
from spdsl.diagnostics import Diagnostic, UsageError

__all__ = ["backends", "explain", "plot", "show"]


@click.command()
@model_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "latex", "html"]),
    default="text",
    show_default=True,
    help="latex is a fragment to input, html a self-contained page.",
)
@click.option("--out", metavar="FILE", help="Write it here instead of printing it.")
@debug_option
def explain(model: str, form: str, out: str | None) -> int:
    """Show what is derived from MODEL, which back end solves it, and for each other one why not."""
    import spdsl

    explanation = spdsl.load(model).explain(form)
    if out:
        _write(out, str(explanation))
        return ExitCode.SOLVED
    if form == "text":
        stdout().print(explanation)
    else:
        click.echo(str(explanation))
    return ExitCode.SOLVED


@click.command()
@click.argument("result", metavar="RESULT")
@click.option("--out", metavar="FILE", help="Where to; by default RESULT with the format's ending.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["png", "svg", "pdf", "html"]),
    help="By default what --out ends in, else png. html is one self-contained page.",
)
@click.option("--scale", type=click.Choice(["auto", "log", "linear"]), default="auto", help="Axis of the ages.")
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", help="A page has both.")
@debug_option
def plot(result: str, out: str | None, form: str | None, scale: str, theme: str) -> int:
    """Draw RESULT, a file that `spdsl solve --out` wrote: coefficients, weights, critical points."""
    found = _load(result)
    target = out or f"{os.path.splitext(result)[0]}.{form or 'png'}"
    ending = os.path.splitext(target)[1].lstrip(".").lower()
    if form and ending != form and not (form == "html" and ending == "htm"):
        raise click.UsageError(f"--format {form} and --out {target} don't agree; leave one out.")
    options: dict[str, Any] = {"theme": theme}
    if hasattr(found, "ages"):
        options["scale"] = scale
    if ending in ("html", "htm"):
        from spdsl.view.page import write_page

        write_page(found, target, scale=scale)
    else:
        found.plot(target, **options)
    click.echo(f"written to {target}")
    return ExitCode.SOLVED


@click.command()
@click.argument("result", metavar="RESULT")
@click.option("--age", "ages", multiple=True, type=float, metavar="AGE", help="Ages to report on; may be repeated.")
@click.option("--values", is_flag=True, help="Print every entry of the variables too (of a path: at one --age).")
@click.option("--critical", is_flag=True, help="List every critical point with its cause.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@debug_option
def show(result: str, ages: tuple[float, ...], values: bool, critical: bool, as_json: bool) -> int:
    """Show the summary of RESULT, a file that `spdsl solve --out` wrote."""
    from spdsl.cli.solving import print_json, refuse_ages
    from spdsl.view.tables import critical_table, result_report, summary, values_table

    found = _load(result)
    is_path = hasattr(found, "ages")
    refuse_ages(ages, is_path)
    if critical and not is_path:
        raise click.UsageError("only a path has critical points, and this is one solution.")
    if values and is_path and len(ages) != 1:
        raise click.UsageError("the values of a path are shown at one age: add `--age AGE`.")
    if as_json:
        print_json(summary(found, ages))
        return ExitCode.SOLVED
    console = stdout()
    console.print(result_report(found, ages))
    if critical:
        console.print(critical_table(found))
    if values:
        console.print(values_table(found(ages[0]) if is_path else found))
    return ExitCode.SOLVED


@click.command()
@click.argument("name", required=False)
@debug_option
def backends(name: str | None) -> int:
    """List the back ends, or the options of the one called NAME."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from spdsl.solvers.dispatch import BACKENDS, get

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    if name is None:
        table.add_column("back end", no_wrap=True)
        table.add_column("what it does")
        for known in BACKENDS:
            table.add_row(known, Text(get(known).summary))
    else:
        table.add_column("option", no_wrap=True)
        table.add_column("default", no_wrap=True)
        table.add_column("what it does")
        for item in get(name).option_help():
            choices = f" One of: {', '.join(map(str, item.choices))}." if item.choices else ""
            table.add_row(item.name, Text(str(item.default)), Text(f"{item.help}{choices}"))
    stdout().print(table)
    return ExitCode.SOLVED


def _load(result: str) -> Any:
    import spdsl

    if result.lower().endswith(".spl"):
        raise UsageError(
            Diagnostic(
                "SPL708",
                f"{result} is a model; this needs a result",
                help=(f"first: spdsl solve {result} --data ... --out result.npz",),
            )
        )
    return spdsl.load_result(result)


def _write(file: str, text: str) -> None:
    try:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text if text.endswith("\n") else text + "\n")
    except OSError as error:
        raise UsageError(Diagnostic("SPL705", f"can't write {file}: {error.strerror or error}")) from error

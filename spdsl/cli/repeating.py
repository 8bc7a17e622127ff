"""`spdsl stability`: a model solved on many random shares of its samples, and how often each entry was chosen.

In: a model file, data, how many repeats. Out: the entries above a threshold as a table (or JSON), a file with all shares.
"""

from __future__ import annotations

from typing import Any

import click

from spdsl.cli.arguments import model_argument, solving_options
from spdsl.cli.output import ExitCode, stdout
from spdsl.cli.solving import loaded_model, print_json, refuse_unwritable, remarks

__all__ = ["stability"]

SHOWN = 40


@click.command()
@model_argument
@solving_options
@click.option("--repeats", type=click.IntRange(min=2), default=50, show_default=True, help="How often it is solved.")
@click.option("--share", type=float, default=0.5, show_default=True, help="Share of the samples in each repeat.")
@click.option("--threshold", type=float, default=0.6, show_default=True, help="Share of repeats that makes a choice.")
@click.option("--variable", metavar="NAME", help="The vector whose support counts, where a model has several.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 takes all cores.")
def stability(
    model: str,
    quiet: bool,
    as_json: bool,
    out: str | None,
    ages: tuple[float, ...],
    repeats: int,
    share: float,
    threshold: float,
    variable: str | None,
    jobs: int,
    **given: Any,
) -> int:
    """Solve MODEL on random shares of its samples and count how often each entry is not zero.

    \b
      spdsl stability graph.spl --data train.npz --bind "G=grid(50, 50)" --repeats 100 --jobs 2
    """
    if not 0.0 < threshold <= 1.0:
        raise click.UsageError(f"`--threshold` is a share of the repeats, in (0, 1], not {threshold:g}.")
    refuse_unwritable(out)
    loaded, arguments = loaded_model(model, ages, **given)
    with remarks(quiet or as_json):
        found = loaded.stability(repeats=repeats, share=share, jobs=jobs, variable=variable, **arguments)
    if out:
        found.save(out)
    if as_json:
        print_json(_summary(found, repeats, threshold, out))
    elif not quiet:
        _print(found, repeats, threshold)
        if out:
            stdout().print(f"written to {out}", markup=False)
    return ExitCode.SOLVED


def _summary(found: Any, repeats: int, threshold: float, out: str | None) -> dict[str, Any]:
    chosen = found.chosen(threshold)
    return {
        "kind": "stability",
        "repeats": repeats,
        "unfinished": found.unfinished,
        "threshold": threshold,
        "chosen": [{"entry": found.names[k], "index": int(k), "share": float(found.shares[k])} for k in chosen],
        "expected_false": found.expected_false(threshold),
        "shares": found.shares.tolist(),
        "out": out,
    }


def _print(found: Any, repeats: int, threshold: float) -> None:
    from rich.text import Text

    from spdsl.view.tables import table

    chosen = found.chosen(threshold)
    grid = table("")
    grid.add_column("entry")
    grid.add_column("share", justify="right", no_wrap=True)
    for k in chosen[:SHOWN]:
        grid.add_row(Text(found.names[k]), f"{found.shares[k]:.0%}")
    console = stdout()
    if chosen.size:
        console.print(grid)
    rest = f" ({chosen.size - SHOWN} more are not shown)" if chosen.size > SHOWN else ""
    wrong = found.expected_false(threshold)
    bound = f"; at most {wrong:.2g} of them wrong on average" if wrong < chosen.size else ""
    console.print(
        f"{chosen.size} of {found.shares.size} entries are chosen in at least {threshold:.0%} of {repeats} repeats"
        f"{rest}{bound}",
        markup=False,
    )

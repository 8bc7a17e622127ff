"""`spdsl select`: the age that generalizes best, by cross-validation or by validation data of one's own.

In: a model file, data, folds or a validation file. Out: the best age as a line and a table of minima (or JSON), a picture, the
solution at that age as a result file.
"""

from __future__ import annotations

from typing import Any

import click

from spdsl.cli.arguments import model_argument, solving_options
from spdsl.cli.output import ExitCode, stdout
from spdsl.cli.solving import loaded_model, print_json, refuse_unwritable, remarks

__all__ = ["select"]

SHOWN = 8


@click.command()
@model_argument
@solving_options
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Parts for cross-validation.")
@click.option(
    "--validation", metavar="FILE", multiple=True, help="Validate on this file (repeatable) instead of on folds."
)
@click.option(
    "--metric", type=click.Choice(["mean", "median", "error"]), help="Of the validation losses; mean if left out."
)
@click.option("--plot", "picture", metavar="FILE", help="Draw the curve over the ages (png, svg, pdf).")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 takes all cores.")
def select(
    model: str,
    quiet: bool,
    as_json: bool,
    out: str | None,
    ages: tuple[float, ...],
    folds: int,
    validation: tuple[str, ...],
    metric: str | None,
    picture: str | None,
    jobs: int,
    **given: Any,
) -> int:
    """Choose the age of MODEL's path that does best on samples that it was not fitted to.

    \b
      spdsl select lasso.spl --data diabetes.csv --bind y=target --folds 5
      spdsl select lasso.spl --data train.csv --bind y=target --validation test.csv
    """
    if ages:
        raise click.UsageError("`--age` picks ages of a path, and `select` chooses one: leave it out.")
    refuse_unwritable(out)
    refuse_unwritable(picture, "--plot")
    loaded, arguments = loaded_model(model, ages, **given)
    with remarks(quiet or as_json):
        if validation:
            path = loaded.solve(**arguments, progress=not (quiet or as_json))
            found = path.select(list(validation), bind=_bindings(arguments["bind"]), metric=metric)
        else:
            found = loaded.cross_validate(folds=folds, metric=metric, jobs=jobs, **arguments)
    if out:
        found.solution.save(out)
    if picture:
        found.plot(picture)
    how = f"{len(validation)} validation file{'s' * (len(validation) > 1)}" if validation else f"{folds} folds"
    if as_json:
        print_json({**_summary(found), "by": how, "out": out})
    elif not quiet:
        _print(found, how)
        for file in (picture, out):
            if file:
                stdout().print(f"written to {file}", markup=False)
    return ExitCode.SOLVED if found.path.status.ok else ExitCode.STOPPED_SHORT


def _bindings(pairs: Any) -> dict[str, str] | None:
    return dict(pair.split("=", 1) for pair in pairs) if pairs else None


def _summary(found: Any) -> dict[str, Any]:
    content = {
        "kind": "selection",
        "age": found.age,
        "value": found.value,
        "metric": found.metric,
        "in_share": found.in_share,
        "minima": found.minima.tolist(),
    }
    if hasattr(found, "standard_error"):
        content["standard_error"] = found.standard_error
        content["age_within_one_standard_error"] = found.age_within_one_standard_error
    return content


def _print(found: Any, how: str) -> None:
    from spdsl.view.tables import table

    console = stdout()
    error = f" ± {found.standard_error:.2g}" if hasattr(found, "standard_error") else ""
    console.print(
        f"best age {found.age:.6g}: {found.metric} {found.value:.6g}{error} over {how}, "
        f"with {found.in_share:.0%} of the samples in",
        markup=False,
    )
    if error:
        within = found.age_within_one_standard_error
        console.print(f"smallest age within one standard error of it: {within:.6g}", markup=False)
    if len(found.minima) > 1:
        grid = table("minima")
        grid.add_column("age", justify="right")
        grid.add_column(found.metric, justify="right")
        for age, value in found.minima[:SHOWN]:
            grid.add_row(f"{age:.6g}", f"{value:.6g}")
        console.print(grid)

"""`spdsl solve` and `spdsl check`.

In: a model file, data, options. Out: a table (or JSON) on stdout, a result file, an exit code.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from spdsl.cli.arguments import model_argument, parsed_options, parsed_pairs, solving_options
from spdsl.cli.output import ExitCode, note, stdout
from spdsl.diagnostics import Diagnostic, UsageError

__all__ = ["check", "loaded_model", "print_json", "refuse_ages", "refuse_unwritable", "remarks", "solve"]


@click.command()
@model_argument
@solving_options
def solve(model: str, quiet: bool, as_json: bool, out: str | None, ages: tuple[float, ...], **given: Any) -> int:
    """Solve MODEL with data: a whole age-path, or one solution.

    \b
      spdsl solve lasso.spl --data diabetes.csv --bind y=target --out path.npz
      spdsl solve lasso.spl --data train.npz --set alpha=0.1 --age 0.5 --age 2
    """
    refuse_unwritable(out)
    result = _solve(model, quiet or as_json, ages, **given)
    if out:
        result.save(out)
    if as_json:
        print_json({**_summary(result, ages), "out": out})
    elif not quiet:
        from spdsl.view.tables import result_report

        stdout().print(result_report(result, ages))
        if out:
            stdout().print(f"written to {out}", markup=False)
    return ExitCode.SOLVED if result.status.ok else ExitCode.STOPPED_SHORT


@click.command()
@model_argument
@solving_options
@click.option("--tolerance", type=float, default=1e-6, show_default=True, help="Up to which a scaled error passes.")
def check(
    model: str, quiet: bool, as_json: bool, out: str | None, ages: tuple[float, ...], tolerance: float, **given: Any
) -> int:
    """Solve MODEL (or take a result file), then hold it against CVX.

    Exit code 0 only when everything holds: objective, feasibility, KKT residual, and the distance to cvxpy's optimum.

    \b
      spdsl check lasso.spl --data diabetes.csv --bind y=target
      spdsl check path.npz --age 0.5
    """
    import spdsl

    refuse_unwritable(out)
    if model.lower().endswith(".npz"):
        result = spdsl.load_result(model)
        refuse_ages(ages, isinstance(result, spdsl.Path))
        checker = spdsl.Model(result.bound.problem)
    else:
        checker = spdsl.load(model)
        result = _solve(model, quiet or as_json, ages, **given)
    certificate = checker.check(result, ages=ages or None, tolerance=tolerance)
    if out:
        result.with_certificate(certificate).save(out)
    if as_json:
        print_json({**_summary(result, ages), "certificate": _plain(certificate.to_dict()), "out": out})
    elif not quiet:
        from spdsl.view.certificates import certificate_report
        from spdsl.view.tables import result_line

        console = stdout()
        console.print(certificate_report(certificate))
        console.print(result_line(result))
    if not certificate:
        return ExitCode.WRONG
    return ExitCode.SOLVED if result.status.ok else ExitCode.STOPPED_SHORT


def refuse_unwritable(out: str | None, option: str = "--out") -> None:
    """Raise UsageError before a solve whose result could not be written to the file `out` of an option."""
    folder = os.path.dirname(os.path.abspath(out)) if out else ""
    if out and not os.path.isdir(folder):
        raise UsageError(
            Diagnostic(
                "SPL705",
                f"can't write {out}: there is no folder {folder}",
                help=(f"make it first: mkdir -p {os.path.dirname(out)}", f"or choose another `{option}`"),
            )
        )
    if out and (os.path.isdir(out) or not os.access(folder, os.W_OK)):
        why = "it is a folder" if os.path.isdir(out) else f"no right to write in {folder}"
        raise UsageError(Diagnostic("SPL705", f"can't write {out}: {why}", help=(f"choose another `{option}`",)))


def _solve(model: str, silent: bool, ages: tuple[float, ...], **given: Any) -> Any:
    """Load, bind, solve; remarks go to stderr, and a progress bar where that is a terminal."""
    loaded, arguments = loaded_model(model, ages, **given)
    with remarks(silent):
        return loaded.solve(**arguments, progress=not silent)


def loaded_model(
    model: str,
    ages: tuple[float, ...],
    data: tuple[str, ...],
    more: tuple[str, ...],
    bind: tuple[str, ...],
    settings: tuple[str, ...],
    standardize: str | None,
    backend: str | None,
    options: tuple[str, ...],
    seed: int | None,
    time_limit: float | None,
) -> tuple[Any, dict[str, Any]]:
    """The model, and the command's options as arguments of `Model.solve`."""
    import spdsl

    parameters = parsed_pairs(settings, "--set")
    parsed_pairs(bind, "--bind")
    loaded = spdsl.load(model)
    age = loaded.problem.age
    refuse_ages(ages, age is not None and age.kind != "fixed")
    return loaded, {
        "data": [*data, *more] or None,
        "bind": list(bind) or None,
        "parameters": parameters,
        "standardize": [name.strip() for name in standardize.split(",") if name.strip()] if standardize else (),
        "backend": backend,
        "options": parsed_options(options),
        "seed": seed,
        "time_limit": time_limit,
    }


def refuse_ages(ages: tuple[float, ...], is_path: bool) -> None:
    """Refuse ``--age`` for a single solution, before any work is done."""
    if ages and not is_path:
        raise click.UsageError("`--age` picks ages of a path, and this model has one solution: leave it out.")


@contextmanager
def remarks(silent: bool) -> Iterator[None]:
    """Warnings as remarks on stderr; nothing when silent, and status is told by the table and the exit code anyway."""
    from spdsl.diagnostics import SpdslWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SpdslWarning)
        yield
    if silent:
        return
    for item in caught:
        if issubclass(item.category, SpdslWarning):
            text = str(item.message)
            note(text if text.startswith("warning") else f"note: {text}", style="yellow")


def _summary(result: Any, ages: tuple[float, ...]) -> dict[str, Any]:
    from spdsl.view.tables import summary

    return summary(result, ages)


def print_json(content: dict[str, Any]) -> None:
    """Print it as JSON that every reader takes: no NaN, no infinities."""
    import json

    click.echo(json.dumps(_plain(content), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """The value in JSON's own kinds; numbers that JSON can't hold become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        return value
    if isinstance(value, float):
        return None
    return value

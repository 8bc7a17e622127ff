"""`Model`: a model file from text to certified answer; the whole story in one place.

In: a `.spl` file or text, data, options. Out: a `Solution` or a `Path`, what was derived, and certificates.

    text --compile--> Problem --bind data--> BoundProblem --back end--> Solution | Path --certify--> Certificate
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from spdsl.diagnostics import Diagnostic, SpdslWarning, UsageError, render
from spdsl.keywords import merged, sort_values
from spdsl.problem import BoundProblem, Problem
from spdsl.solution import Path, Solution, Status

if TYPE_CHECKING:
    from spdsl.solvers.cross_validation import CrossValidation
    from spdsl.solvers.iht.stability import Stability
    from spdsl.solvers.protocol import BackEnd

__all__ = ["Model", "load", "load_result", "parse"]

ProgressBar = bool | Callable[[float, str], None] | None


def load(path: str | PathLike[str]) -> Model:
    """Read and compile a model file.

    Raises
    ------
    ModelError
        With every complaint about the file, each with its place and mend.
    """
    from spdsl.language.source import load_source

    return parse(load_source(path).text, name=os.fspath(path))


def parse(text: str, name: str = "model") -> Model:
    """Compile a model's text; `name` stands for the file in messages.

    Raises
    ------
    ModelError
        With every complaint about the text, each with its place and mend.
    """
    from spdsl.compiler import compile_text

    return Model(compile_text(text, name))


class Model:
    """A compiled model.

    Attributes
    ----------
    problem : Problem
        Its canonical form.
    name, text : str
        The file's name and content.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __repr__(self) -> str:
        return f"<spdsl.Model {self.name}: {', '.join(self._ingredients())}>"

    @property
    def name(self) -> str:
        """The file's name."""
        return self.problem.name

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the language and the derivation have to say of the model that is no error; `solve` warns of it."""
        return self.problem.warnings

    @property
    def text(self) -> str:
        """The model as written."""
        return self.problem.source

    def solve(
        self,
        data: Any = None,
        *,
        bind: Mapping[str, Any] | Sequence[str] | None = None,
        backend: str | None = None,
        options: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        standardize: str | Iterable[str] = (),
        seed: int | None = None,
        time_limit: float | None = None,
        progress: ProgressBar = None,
        callback: Callable[[Any], bool | None] | None = None,
        **values: Any,
    ) -> Solution | Path:
        """Solve the model.

        Parameters
        ----------
        data : path, data frame, mapping, or a sequence of these, optional
            Files (CSV, TSV, Parquet, NPZ, NPY, LIBSVM, edge lists) or frames whose parts bind by name.
        bind : mapping or sequence of "NAME=SOURCE", optional
            Says outright what binds to a name: ``{"y": "target"}``.
        backend : str, optional
            A back end's name, instead of the model's own or the first that can solve it.
        options, parameters : mapping, optional
            The back end's options and the model's parameters by name. Both may also be given as keywords, as long as a
            name can mean one thing only.
        standardize : name or names, optional
            Data to bring to mean 0 and standard deviation 1, column by column.
        seed : int, optional
            Of every random draw.
        time_limit : float, optional
            Seconds after which the run ends with what it has reached.
        progress : bool or callable, optional
            True shows a bar on a terminal; a function is called with a fraction and a few words.
        callback : callable, optional
            Called with the back end's state after each step; returning True stops the run.
        **values
            Data, parameters and options by name: ``X=X, y=y, alpha=0.1``.

        An option given here comes before the one in the model's ``solve`` statement, and that before the default.

        Returns
        -------
        Path
            For ages in an interval.
        Solution
            For a fixed age or a model without ages.

        Raises
        ------
        DataError
            With every complaint about the data.
        UsageError
            For an unknown name, or one that means two things.
        SolverError
            When no back end can solve the model; every reason is told.

        Warns
        -----
        SpdslWarning
            On what the language, the binding of data or the back end has to say that is no error.
        """
        from spdsl.solvers.driver import run

        chosen, bound, checked = self._prepared(
            data,
            bind=bind,
            backend=backend,
            options=options,
            parameters=parameters,
            standardize=standardize,
            seed=seed,
            time_limit=time_limit,
            **values,
        )
        with _progress(progress) as told:
            result = run(chosen, bound, checked, told, callback)
        if not result.status.ok and result.status is not Status.INTERRUPTED:
            _warn(f"{result.status.value}{': ' + result.message if result.message else ''}")
        return result

    def stability(
        self,
        data: Any = None,
        *,
        repeats: int = 50,
        share: float = 0.5,
        jobs: int = 1,
        variable: str | None = None,
        **given: Any,
    ) -> Stability:
        """Solve the model on many random shares of its samples and count how often each entry is chosen.

        Parameters
        ----------
        repeats, share, jobs, variable
            See `spdsl.solvers.iht.stability.stability`.
        **given
            As for `solve`: files, bindings, options, data and parameters by name.

        Returns
        -------
        spdsl.solvers.iht.stability.Stability
            Shares by entry, the entries above a threshold, a bound on how many of them are wrong.
        """
        from spdsl.solvers.iht.stability import stability

        chosen, bound, checked = self._prepared(data, **given)
        found = stability(bound, chosen, checked, variable, repeats, share, jobs)
        if found.unfinished:
            _warn(f"{found.unfinished} of {repeats} repeats ended at a limit; what they had reached is counted")
        return found

    def cross_validate(
        self, data: Any = None, *, folds: int = 5, metric: Any = None, jobs: int = 1, **given: Any
    ) -> CrossValidation:
        """Choose the age by k-fold cross-validation, over the whole continuum of ages.

        Parameters
        ----------
        folds, metric, jobs
            See `spdsl.solvers.cross_validation.cross_validate`.
        **given
            As for `solve`: files, bindings, options, data and parameters by name.

        Returns
        -------
        spdsl.solvers.cross_validation.CrossValidation
            Best age with its standard error, the share of samples in there, the curve, the solution.
        """
        from spdsl.solvers.cross_validation import cross_validate

        chosen, bound, checked = self._prepared(data, **given)
        return cross_validate(bound, chosen, checked, folds, metric, jobs)

    def _prepared(
        self,
        data: Any = None,
        *,
        bind: Mapping[str, Any] | Sequence[str] | None = None,
        backend: str | None = None,
        options: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        standardize: str | Iterable[str] = (),
        seed: int | None = None,
        time_limit: float | None = None,
        **values: Any,
    ) -> tuple[BackEnd[Any], BoundProblem, Any]:
        """The back end, the model with its data, and the checked options; tells what there is to remark."""
        from spdsl.compiler import suited
        from spdsl.data import bind as bind_data
        from spdsl.solvers.dispatch import check_options, pick, pick_for

        chosen = pick(self.problem, backend)
        known_options = [item.name for item in chosen.option_help()]
        sorted_out = sort_values(self.problem, known_options, chosen.name, values)
        bound = bind_data(
            self.problem,
            arrays=sorted_out.data,
            data=data,
            bindings=bind,
            parameters=merged("parameter", sorted_out.parameters, parameters),
            standardize=[standardize] if isinstance(standardize, str) else list(standardize),
        )
        bound = suited(bound)
        if bound.problem is not self.problem:
            chosen = pick(bound.problem, chosen.name)
        wanted = merged("option", sorted_out.options, options)
        wanted |= {name: value for name, value in (("seed", seed), ("time_limit", time_limit)) if value is not None}
        checked = check_options(chosen, {**self._requested(bound, chosen.name), **wanted})
        if backend is None and self.problem.request is None:
            chosen, checked = pick_for(bound, chosen, checked, wanted)
        for remark in self._remarks(bound):
            _warn(remark, depth=4)
        return chosen, bound, checked

    def check(self, result: Solution | Path, ages: Iterable[float] | None = None, **options: Any) -> Any:
        """Hold a result against CVX: objective, feasibility, KKT residual, distance to the optimum of the w-problem.

        Parameters
        ----------
        ages : iterable of float, optional
            For a path: the ages to check; some over its whole range unless given.

        Returns
        -------
        spdsl.reference.Certificate
            Prints as a table; ``bool(certificate)`` says whether everything holds.
        """
        from spdsl.reference import certify

        return certify(result, ages=None if ages is None else [float(age) for age in ages], **options)

    def explain(self, format: str = "text") -> Any:
        """What was derived, which back end solves it, and for each other one why not.

        Parameters
        ----------
        format : {"text", "latex", "html"}

        Returns
        -------
        spdsl.view.explain.Explanation
            ``str()`` and ``print()`` give the text; a notebook shows it as a page.
        """
        from spdsl.view.explain import explain

        return explain(self.problem, format)

    def format(self) -> str:
        """The model in the one canonical layout."""
        from spdsl.language import parse as parse_text
        from spdsl.language.formatter import format_model

        return format_model(parse_text(self.text, self.name))

    def _requested(self, bound: BoundProblem, backend: str) -> dict[str, Any]:
        """The options of the model's ``solve`` statement, when it names this back end."""
        request = self.problem.request
        if request is None or request.backend != backend:
            return {}
        return {name: _value(option, bound) for name, option in request.options.items()}

    def _remarks(self, bound: BoundProblem) -> list[str]:
        """What the language, the derivation and the binding of data have to say that is no error."""
        return [*(render(item) for item in bound.problem.warnings), *bound.notes]

    def _ingredients(self) -> list[str]:
        problem = self.problem
        found = ["loss"] if problem.loss is not None else []
        count = len(problem.regularizers)
        found += [f"{count} regularizer{'s' * (count > 1)}"] if count else []
        found += [f"self-paced {problem.self_paced.name}"] if problem.self_paced is not None else []
        count = len(problem.constraints)
        return found + ([f"{count} constraint{'s' * (count > 1)}"] if count else [])


# --- results from files --------------------------------------------------------------------------------------------


def load_result(file: str | PathLike[str]) -> Solution | Path:
    """Read what `Path.save` or `Solution.save` (or ``spdsl solve --out``) wrote.

    A path that was saved with its data answers exactly at every age again.

    Raises
    ------
    UsageError
        When the file is missing, damaged, not of spdsl, or of a newer version.
    """
    from spdsl.compiler import compile_text
    from spdsl.solution.files import read_result, restored_path, restored_solution

    saved = read_result(file)
    bound = saved.bound(compile_text(saved.source, saved.model_name, saved.derived_for), _graph)
    certificate = _certificate(saved.certificate)
    if saved.kind == "solution":
        return restored_solution(saved, bound).with_certificate(certificate)
    path = restored_path(saved, bound).with_certificate(certificate)
    return path if saved.data is None else _resumed(path)


def _certificate(plain: Mapping[str, Any] | None) -> Any:
    """The certificate that was saved with a result."""
    if plain is None:
        return None
    from spdsl.reference import Certificate, CertificateRow

    rows = tuple(CertificateRow(**{**row, "failures": tuple(row["failures"])}) for row in plain["rows"])
    return Certificate(rows, plain["tolerance"], plain["model"], plain["backend"], tuple(plain["notes"]))


def _resumed(path: Path) -> Path:
    """The path with its branch, as its back end takes it up; without one where that back end isn't there."""
    from spdsl.solvers.dispatch import get
    from spdsl.solvers.features import resume

    try:
        backend = get(path.backend)
    except UsageError as error:
        _warn(f"{error.diagnostics[0].message}: only the nodes of this path are known")
        return path
    return replace(path, branch=resume(backend, path))


def _graph(**parts: Any) -> Any:
    from spdsl.data import Graph

    return Graph(**parts)


# --- what runs need ---------------------------------------------------------------------------------------------------


def _value(option: Any, bound: BoundProblem) -> Any:
    """An option of the ``solve`` statement: expressions over parameters and sizes become numbers."""
    from spdsl.problem import Call, Name, Number

    if isinstance(option, Number | Name | Call):
        value = bound.evaluate(option)
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(option, tuple) and len(option) == 3:
        name, arguments, keywords = option
        return (
            name,
            tuple(_value(item, bound) for item in arguments),
            {key: _value(item, bound) for key, item in keywords.items()},
        )
    return option


def _progress(wanted: ProgressBar) -> Any:
    from contextlib import nullcontext

    if wanted is True:
        from spdsl.view.progress import progress_bar

        return progress_bar()
    return nullcontext(wanted or None)


def _warn(text: str, depth: int = 3) -> None:
    """A warning at the line that called the function that calls this (or one more of ours further up)."""
    warnings.warn(SpdslWarning(text), stacklevel=depth)

"""Checks a tree: names, types, shapes and convexity, all complaints in one run.

In: a `tree.Model`. Out: a `checked.CheckedModel`, or a `ModelError` with up to 20 diagnostics.
"""

from __future__ import annotations

from spdsl.diagnostics import Related, Span
from spdsl.language.checked import CheckedModel, SolveRequest
from spdsl.language.collector import collector_paused
from spdsl.language.complaints import Complaints
from spdsl.language.constraints import Constraints
from spdsl.language.declarations import Declarations
from spdsl.language.objective import Objectives
from spdsl.language.request import read_request
from spdsl.language.tree import (
    AgeStatement,
    ConstraintStatement,
    LossStatement,
    Model,
    RegularizerStatement,
    SelfPacedStatement,
    SolveStatement,
    Statement,
)

__all__ = ["check"]


def check(tree: Model) -> CheckedModel:
    """Check a model.

    Raises
    ------
    ModelError
        With every complaint found, at most 20, in the order of the file.
    """
    with collector_paused(len(tree.source.text)):
        return _check(tree)


def _check(tree: Model) -> CheckedModel:
    complaints = Complaints()
    _said_once(tree, complaints)
    _needed_parts(tree, complaints)
    declarations = Declarations(tree, complaints)
    objectives = Objectives(declarations)
    constraints = Constraints(declarations)
    self_paced = any(isinstance(statement, SelfPacedStatement) for statement in tree.statements())
    solve: SolveRequest | None = None
    for statement in tree.statements():
        if complaints.enough:
            break
        match statement:
            case LossStatement():
                objectives.add_loss(statement, self_paced)
            case RegularizerStatement():
                objectives.add_regularizer(statement)
            case SelfPacedStatement():
                objectives.add_self_paced(statement)
            case ConstraintStatement():
                constraints.add(statement)
            case SolveStatement():
                solve = read_request(statement, declarations)
            case _:
                declarations.add(statement)
    declarations.check_sizes()
    complaints.raise_if_any()
    _unused(declarations, complaints)
    return CheckedModel(
        data=declarations.data,
        parameters=declarations.parameters,
        defines=declarations.defines,
        variables=declarations.variables,
        sizes=declarations.sizes(),
        age=declarations.age,
        losses=tuple(objectives.losses),
        regularizers=tuple(objectives.regularizers),
        self_paced=objectives.self_paced,
        constraints=tuple(constraints.found),
        solve=solve,
        warnings=complaints.warnings(),
        parameter_signs={**objectives.signs, **constraints.signs},
        sign_conditions=tuple({**objectives.conditions, **constraints.conditions}.values()),
        ranges=tuple(declarations.elaborator.ranges.values()),
        tree=tree,
        types=declarations.elaborator.types,
    )


def _said_once(tree: Model, complaints: Complaints) -> None:
    """Complain about a second `age`, `self_paced` or `solve`, and a second `minimize`."""
    first: dict[str, Span] = {}
    places: list[tuple[str, Span]] = [
        (section.keyword, section.keyword_span) for section in tree.sections if section.keyword == "minimize"
    ]
    for statement in tree.statements():
        if isinstance(statement, AgeStatement):
            places.append(("age", statement.name_span))
        elif isinstance(statement, SelfPacedStatement):
            places.append(("self_paced", statement.keyword_span))
        elif isinstance(statement, SolveStatement):
            places.append(("solve", statement.span))
    helps = {
        "minimize": "put all losses and regularizers under the first one",
        "age": "a model has one age",
        "self_paced": "a model has one SP-regularizer",
        "solve": "name one back end",
    }
    for what, span in places:
        if what not in first:
            first[what] = span
            continue
        related = (Related(first[what], "the first one"),)
        complaints.error("SPL125", f"a second `{what}`", span, "", helps[what], related=related)


def _needed_parts(tree: Model, complaints: Complaints) -> None:
    """Complain about a missing `variable`, `minimize` or loss, and an age without `self_paced` or the reverse."""
    keywords = {section.keyword for section in tree.sections}
    first = tree.sections[0].keyword_span if tree.sections else Span(tree.source, 0, 0)
    last = tree.sections[-1].keyword_span if tree.sections else first
    if "variable" not in keywords:
        help_ = "add a section such as `variable w : vector(d)`"
        complaints.error("SPL124", "the model has no `variable` section", first, "", help_)
    minimize = [section for section in tree.sections if section.keyword == "minimize"]
    statements = list(tree.statements())
    if not minimize:
        help_ = "add a section such as `minimize loss (X @ w - y)^2`"
        complaints.error("SPL124", "the model has no `minimize` section", last, "", help_)
    elif not any(isinstance(statement, LossStatement) for statement in statements):
        help_ = "add a line such as `loss (X @ w - y)^2`"
        complaints.error("SPL124", "`minimize` has no `loss`", minimize[0].keyword_span, "", help_)
    age = next((s for s in statements if isinstance(s, AgeStatement)), None)
    self_paced = next((s for s in statements if isinstance(s, SelfPacedStatement)), None)
    if age is not None and self_paced is None:
        message = "there is an `age`, but no `self_paced` that uses it"
        help_ = f"add `self_paced linear({age.name})` to `minimize`, or delete the age"
        complaints.error("SPL217", message, age.span, "", help_)
    if self_paced is not None and age is None:
        message = "`self_paced` needs an age, and the model has none"
        help_ = "add `age lambda in quantiles(0.2, 1)` above `minimize`"
        complaints.error("SPL217", message, self_paced.span, "", help_)
    if self_paced is not None and age is not None:
        _age_above(age, self_paced, complaints)


def _age_above(age: AgeStatement, self_paced: Statement, complaints: Complaints) -> None:
    if age.span.start > self_paced.span.start:
        message = f"`{age.name}` is used before it is declared"
        related = (Related(age.name_span, "declared here"),)
        help_ = "move the section `age` above `minimize`"
        complaints.error("SPL201", message, self_paced.span, "", help_, related=related)


def _unused(declarations: Declarations, complaints: Complaints) -> None:
    """Warn about names that nothing uses."""
    used = declarations.scope.file.used
    points = {entry.points for entry in declarations.variables.values() if entry.points}
    for kind, table in (
        ("datum", declarations.data),
        ("parameter", declarations.parameters),
        ("variable", declarations.variables),
        ("function", declarations.defines),
    ):
        for name, entry in table.items():
            if name not in used and name not in points:
                message = f"the {kind} `{name}` is never used"
                span = entry.declaration.name_span
                complaints.warning("SPL290", message, span, "", "delete it, or use it")

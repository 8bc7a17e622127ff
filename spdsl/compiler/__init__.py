"""The compiler: from a model's text to the canonical problem, with everything about its scalar functions derived.

In: the text of a `.spl` file, or a checked model. Out: `Problem`, ready to be bound to data; `describe` gives the
derivation for people. Costly imports happen only for what the cache doesn't know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spdsl.compiler.derivation import Derivation
    from spdsl.language.checked import CheckedModel
    from spdsl.problem import BoundProblem, Problem

__all__ = ["compile_for", "compile_model", "compile_text", "describe", "suited"]


def compile_text(text: str, name: str = "<model>", parameters: Mapping[str, float] | None = None) -> Problem:
    """Compile the text of a model file; a text that was compiled before comes from the cache.

    Parameters
    ----------
    text : str
    name : str
        What to call it in messages, such as the file's name.
    parameters : mapping, optional
        Values of scalar parameters to derive for, instead of the model's defaults: needed only where
        `spdsl.problem.unmet` says that they differ in kind (another order of kinks, another sign).

    Raises
    ------
    ModelError
        With every complaint about the text, or the compiler's first.
    """
    from spdsl.compiler.models import keep, known

    problem = known(text, name, parameters)
    if problem is None:
        from spdsl.language.checker import check
        from spdsl.language.parser import parse

        problem = compile_model(check(parse(text, name)), parameters)
        keep(text, name, parameters, problem)
    return problem


def suited(bound: BoundProblem) -> BoundProblem:
    """A bound problem whose derivation holds for the values that it is bound to.

    Nearly always the one given. Where kinks lie in another order for these values, or a coefficient has another sign,
    than for the parameters' defaults, the model is derived again for these.

    Raises
    ------
    DataError
        When the derivation can't hold: a proof of convexity rests on the sign of data that have the other, or samples
        differ in the order of their kinks.
    ModelError
        When the model has no derivation for these values, such as a loss that is not convex.
    """
    from dataclasses import replace

    from spdsl.problem import require_met, unmet

    if not unmet(bound):
        return bound
    bound = replace(bound, problem=compile_for(bound))
    require_met(bound)
    return bound


def compile_for(bound: BoundProblem) -> Problem:
    """Compile a problem's model again, for the values that it is bound to.

    For when `spdsl.problem.unmet` complains: kinks that lie in another order for these data or parameters are derived
    in that order. What is still unmet afterwards is an error of the data (see `suited`).
    """
    import numpy as np

    typical: dict[str, float] = {}
    for name, value in bound.values.items():
        if np.ndim(value) <= 1 and name not in bound.labels and np.size(value) and not hasattr(value, "edges"):
            typical[name] = float(np.ravel(value)[0])
    return compile_text(bound.problem.source, bound.problem.name, typical)


def compile_model(model: CheckedModel, parameters: Mapping[str, float] | None = None) -> Problem:
    """Compile a checked model (for given values of parameters, see `compile_text`).

    Raises
    ------
    ModelError
        Codes 32x: no canonical form; 33x: not convex, or no derivation; 34x: no SP-regularizer.
    """
    from spdsl.compiler.lower import lower

    return lower(model, model.tree.source.name, parameters)


def describe(problem: Problem) -> Derivation:
    """The KKT blocks of a problem, in words and mathematics (see `spdsl.compiler.derivation.Derivation`)."""
    from spdsl.compiler import derivation

    return derivation.describe(problem)

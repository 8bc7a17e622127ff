"""What the proofs of a model took for granted about its data and parameters.

In: a checked model with the verdicts of the language. Out: `Requirement`s, to be held against the values by
`spdsl.problem.unmet`.
"""

from __future__ import annotations

from spdsl.compiler.values import Lowering
from spdsl.language.checked import CheckedModel, Inequality
from spdsl.language.printer import unparse
from spdsl.language.types import Sign
from spdsl.problem.requirements import Range, Requirement

__all__ = ["requirements_of"]


def requirements_of(model: CheckedModel) -> list[Requirement | Range]:
    """Ranges of arguments; signs that convexity needs of data, and that parameters share with their defaults."""
    found: dict[str, Requirement] = {}
    needed = [item.needs_nonnegative for item in (*model.losses, *model.regularizers)]
    needed += [item.needs_nonnegative for item in model.constraints if isinstance(item, Inequality)]
    for names in needed:
        for name in sorted(names):
            found.setdefault(name, Requirement(name, "nonnegative", "the model is convex only then"))
    for name, sign in model.parameter_signs.items():
        word = "nonpositive" if sign is Sign.NONPOSITIVE else "nonnegative"
        found.setdefault(name, Requirement(name, word, "the model is convex only then, as with its default"))  # type: ignore[arg-type]
    lowering = Lowering(model)
    for condition in model.sign_conditions:
        shown = unparse(condition.expression)
        word = "nonpositive" if condition.sign is Sign.NONPOSITIVE else "nonnegative"
        reason = "the model is convex only then, as with the defaults"
        found.setdefault(shown, Requirement(shown, word, reason, lowering.constant(condition.expression)))  # type: ignore[arg-type]
    ranges = [
        Range(item.what, item.wanted, lowering.constant(item.expression), item.low, item.high, item.open_low)
        for item in model.ranges
    ]
    return [*found.values(), *ranges]

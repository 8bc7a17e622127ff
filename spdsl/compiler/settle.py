"""Settles convexity: what the language proved, what the derivation proves or refutes, what the user assumes.

In: objectives with the language's verdicts, a derivation. Out: the word for `ScalarFunction.convexity` and what was
assumed; an error with the point that refutes it, or one that asks for `assume convex`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spdsl.compiler.derived import DerivedFunction, DerivedWeights
from spdsl.compiler.failures import DerivationError, NoClosedFormError, TooManyPiecesError
from spdsl.compiler.scalarize import Scalarized
from spdsl.compiler.values import Lowering
from spdsl.diagnostics import Diagnostic, ModelError, Severity
from spdsl.language.checked import Objective, SelfPaced
from spdsl.language.types import Verdict

__all__ = ["Settlement", "settled_axioms"]


class Settlement:
    """The verdict on one formula; `word` is valid once `of` was called."""

    def __init__(self, objectives: Sequence[Objective], formula: Scalarized, lowering: Lowering) -> None:
        self.objectives = objectives
        self.formula = formula
        self.lowering = lowering
        self.word = "convex"

    @property
    def proved_by_language(self) -> bool:
        """Did the rules of the language prove every objective convex?"""
        return all(item.verdict is Verdict.CONVEX for item in self.objectives)

    @property
    def assumed(self) -> bool:
        """Did the user say `assume convex`?"""
        return any(item.assume_convex for item in self.objectives)

    @contextmanager
    def complaints(self) -> Iterator[None]:
        """Turn a failed derivation into an error at the objective."""
        node = self.objectives[0].written
        try:
            yield
        except TooManyPiecesError as error:
            raise self.lowering.refusal(
                "SPL333", node, f"this formula has {error}", "", "split it, or smooth it"
            ) from error
        except NoClosedFormError as error:
            raise self.lowering.refusal(
                "SPL332",
                node,
                f"a kink of this formula lies where {error} = 0, and no formula for that place could be found",
                "",
                "put numbers in place of the parameters in it, or write the kink's place in `piecewise`",
            ) from error
        except DerivationError as error:
            raise self.lowering.refusal(
                "SPL332",
                node,
                f"this formula can't be split into smooth pieces: {error}",
                "",
                "write it so that the same branches meet in the same order for every sample",
            ) from error

    def of(self, derived: DerivedFunction) -> list[str]:
        """What was assumed (in the model's words), after weighing the language's verdict and the derivation's.

        Raises
        ------
        ModelError
            SPL330 with the refuting point, SPL331 when nothing decides it.
        """
        if self.proved_by_language or derived.convexity == "proved":
            return []
        if derived.convexity == "refuted":
            unsigned = [item.name for item in self.formula.quantities if item.sign == "real"]
            if not unsigned:
                raise ModelError(self._refutation(derived))
            if not self.assumed:
                listed = ", ".join(f"`{name}`" for name in unsigned)
                raise ModelError(self._undecided(f"it depends on the sign of {listed}: {derived.reason}"))
        elif not self.assumed:
            raise ModelError(self._undecided(derived.reason))
        self.word = "assumed"
        return [self.objectives[0].written.span.text]

    def of_several_arguments(self, summands: Sequence[DerivedFunction] | None) -> list[str]:
        """The same for a formula of several predictors that the language did not prove: its summands decide."""
        if summands is not None:
            return [assumption for derived in summands for assumption in self.of(derived)][:1]
        if not self.assumed:
            raise ModelError(self._undecided("it mixes several affine maps, and the rules do not reach it"))
        self.word = "assumed"
        return [self.objectives[0].written.span.text]

    def _refutation(self, derived: DerivedFunction) -> Diagnostic:
        z = derived.argument
        at = ", ".join(f"{name} = {value:.6g}" for name, value in derived.witness.items())
        return Diagnostic(
            "SPL330",
            f"this is not convex: {derived.reason}",
            span=self.objectives[0].written.span,
            label=f"as a function of {z}, its affine part: {derived.formula.text}",
            help=(f"the point that shows it: {at}", "losses and regularizers have to be convex"),
        )

    def _undecided(self, reason: str) -> Diagnostic:
        return Diagnostic(
            "SPL331",
            "nothing proves or refutes that this is convex",
            span=self.objectives[0].written.span,
            label=reason,
            help=("write `assume convex` behind it if you know that it is; the result will say that it was assumed",),
        )


def settled_axioms(entry: SelfPaced, derived: DerivedWeights) -> list[Diagnostic]:
    """Warnings about an SP-regularizer.

    Raises
    ------
    ModelError
        SPL340 when an axiom of Definition 2 is refuted, with its counterexample.
    """
    warnings: list[Diagnostic] = []
    for axiom in derived.axioms:
        if axiom.verdict not in ("refuted", "warning"):
            continue
        number, _, statement = axiom.axiom.partition(" ")
        point = ", ".join(f"{name} = {value:.6g}" for name, value in (axiom.counterexample or {}).items())
        if axiom.verdict == "refuted":
            message = f"`{entry.name}` is not a self-paced regularizer: axiom {number} fails ({statement})"
            helps = (f"counterexample: {point}", f"f({derived.argument}, {derived.age}) = {derived.formula.text}")
            raise ModelError(Diagnostic("SPL340", message, span=entry.span, label=axiom.reason, help=helps))
        message = f"axiom {number} of a self-paced regularizer holds for `{entry.name}` only in part ({statement})"
        warnings.append(Diagnostic("SPL341", message, span=entry.span, label=axiom.reason, severity=Severity.WARNING))
    return warnings

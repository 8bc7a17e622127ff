"""`ScalarFunction` and `SelfPaced` records from formulas, through the cache: a known formula needs neither sympy nor
numba.

In: formulas with what is known of their parameters. Out: the records of `spdsl.problem`, with kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spdsl.compiler import store
from spdsl.compiler.derived import DerivedFunction, DerivedWeights
from spdsl.compiler.kernels import GeneratedPieceKernel, GeneratedWeightKernel
from spdsl.compiler.quantities import Quantity
from spdsl.problem.expressions import Expression
from spdsl.problem.functions import ScalarFunction
from spdsl.problem.self_paced import SelfPaced

__all__ = ["derived_function", "derived_weights", "scalar_function", "self_paced"]


def derived_function(
    body: Expression, argument: str, quantities: Sequence[Quantity]
) -> tuple[DerivedFunction, store.Stored]:
    """The derivation of phi(argument; quantities), from the cache or made now.

    Raises
    ------
    DerivationError, NoClosedFormError, TooManyPiecesError
        As `spdsl.compiler.derive.derive_function`.
    """

    def derive() -> tuple[DerivedFunction, str, str]:
        from spdsl.compiler.derive import derive_function

        return derive_function(body, argument, quantities)

    kept = _kept("phi", (body, argument, tuple(quantities)), derive)
    assert isinstance(kept.derived, DerivedFunction)
    return kept.derived, kept


def derived_weights(
    body: Expression, argument: str, age: str, quantities: Sequence[Quantity], losses_nonnegative: bool
) -> tuple[DerivedWeights, store.Stored]:
    """The derivation of v* from f(argument, age; quantities), from the cache or made now."""

    def derive() -> tuple[DerivedWeights, str, str]:
        from spdsl.compiler.weights import derive_weights

        return derive_weights(body, argument, age, quantities, losses_nonnegative)

    kept = _kept("weights", (body, argument, age, tuple(quantities), losses_nonnegative), derive)
    assert isinstance(kept.derived, DerivedWeights)
    return kept.derived, kept


def _kept(kind: str, facts: Any, derive: Callable[[], tuple[Any, str, str]]) -> store.Stored:
    name = store.key_of(kind, facts)
    stored = store.load(name)
    return store.save(name, *derive()) if stored is None else stored


def scalar_function(
    body: Expression,
    argument: str,
    kept: store.Stored,
    values: Sequence[Expression],
    convexity: str,
) -> ScalarFunction:
    """The record of a derived function; `values` say what each parameter is."""
    derived = kept.derived
    assert isinstance(derived, DerivedFunction)
    return ScalarFunction(
        body=body,
        arguments=(argument,),
        parameters=derived.parameters,
        values=tuple(values),
        pieces=derived.pieces,
        kinks=derived.kinks,
        convexity=convexity,
        kernel=GeneratedPieceKernel(kept),
    )


def self_paced(name: str, kept: store.Stored, values: Sequence[Expression]) -> SelfPaced:
    """The record of derived weights."""
    derived = kept.derived
    assert isinstance(derived, DerivedWeights)
    return SelfPaced(
        name=name,
        formula=derived.formula,
        parameters=derived.parameters,
        values=tuple(values),
        pieces=derived.pieces,
        axioms=derived.axioms,
        age_range=derived.age_range,
        kernel=GeneratedWeightKernel(kept),
    )

"""Lowers a checked model to the canonical `Problem`.

In: `CheckedModel`. Out: `Problem`, every scalar function with its derived pieces and kernels, every convexity settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spdsl.compiler import affine, functions
from spdsl.compiler.affine import Affine, Constant
from spdsl.compiler.builtin import REGULARIZERS
from spdsl.compiler.constrain import constraint_of
from spdsl.compiler.declarations import age_of, declared_data, declared_parameters, declared_variables, request_of
from spdsl.compiler.derived import DerivedFunction
from spdsl.compiler.facts import known_facts, typical_value
from spdsl.compiler.failures import DerivationError, NoClosedFormError, TooManyPiecesError
from spdsl.compiler.quantities import Quantity
from spdsl.compiler.requirements import requirements_of
from spdsl.compiler.scalarize import Scalarized, scalarize
from spdsl.compiler.settle import Settlement, settled_axioms
from spdsl.compiler.several import by_argument, several_arguments
from spdsl.compiler.sums import Part, gathered, parts_of, tidied
from spdsl.compiler.values import Elementwise, Lowering
from spdsl.diagnostics import Diagnostic, ModelError
from spdsl.language.checked import CheckedModel, Objective
from spdsl.language.checked import SelfPaced as CheckedSelfPaced
from spdsl.language.types import Sign
from spdsl.problem import (
    GroupNorm,
    KernelNorm,
    LinearTerm,
    Loss,
    Norm,
    Problem,
    Regularizer,
    ScalarFunction,
    SelfPaced,
    Separable,
    TraceNorm,
)
from spdsl.problem.expressions import Call, Expression, Name, Number, substituted

__all__ = ["lower"]


def lower(model: CheckedModel, name: str, parameters: Mapping[str, float] | None = None) -> Problem:
    """The canonical problem of a model, derived for the parameters' defaults or for the values given.

    Raises
    ------
    ModelError
        Codes 3xx: no canonical form, not convex, not an SP-regularizer.
    """
    return _Lowerer(model, name, parameters).problem()


class _Lowerer:
    def __init__(self, model: CheckedModel, name: str, parameters: Mapping[str, float] | None) -> None:
        self.model = model
        self.name = name
        self.parameters = parameters
        self.facts = known_facts(model, parameters)
        self.lowering = Lowering(model)
        self.assumptions: list[str] = []
        self.warnings: list[Diagnostic] = list(model.warnings)
        self.loss_nonnegative = self.last_nonnegative = True

    def problem(self) -> Problem:
        model = self.model
        regularizers: list[Regularizer] = []
        loss = self.elementwise_loss() if self.is_elementwise() else self.scalar_loss(regularizers)
        for objective in model.regularizers:
            regularizers += self.regularizers(objective, parts_of(objective.expression, self.lowering))
        self_paced = None if model.self_paced is None else self.self_paced(model.self_paced)
        constraints = [item for constraint in model.constraints for item in constraint_of(constraint, self.lowering)]
        return Problem(
            name=self.name,
            source=model.tree.source.text,
            data=declared_data(model),
            parameters=declared_parameters(model, self.lowering),
            variables=declared_variables(model, self.lowering),
            loss=loss,
            regularizers=tuple(regularizers),
            self_paced=self_paced,
            age=age_of(model, self.lowering),
            constraints=tuple(constraints),
            request=request_of(model, self.lowering),
            assumptions=tuple(self.assumptions),
            warnings=tuple(self.warnings),
            requirements=tuple(requirements_of(model)),
            derived_for=None if self.parameters is None else dict(self.parameters),
        )

    # -- losses --------------------------------------------------------------------------------------------------

    def is_elementwise(self) -> bool:
        """Is every loss a vector, one number a sample?"""
        return bool(self.model.losses) and all(
            self.model.type_of(item.expression).shape != () for item in self.model.losses
        )

    def elementwise_loss(self) -> Loss | None:
        values = [self.lowering.value(item.expression) for item in self.model.losses]
        moving = [value for value in values if not isinstance(value, Constant)]
        if not moving:
            return None
        total = moving[0] if len(moving) == 1 else self._added(moving)
        return self.loss_of(total, self.model.losses, elementwise=True)

    def _added(self, values: Sequence[Elementwise | Affine]) -> Elementwise | Affine:
        if all(isinstance(value, Affine) for value in values):
            total = affine.add([value for value in values if isinstance(value, Affine)], values[0].shape)
            assert isinstance(total, Affine)
            return total
        return self.lowering.formula("add", list(values), values[0].shape)

    def scalar_loss(self, regularizers: list[Regularizer]) -> Loss | None:
        """A loss written as one number: its sum over samples is recovered, other parts join the regularizers."""
        parts = [part for item in self.model.losses for part in parts_of(item.expression, self.lowering)]
        parts = gathered([part for part in parts if part.kind != "constant"])
        rows = self._rows_of_loss(parts)
        mine = [part for part in parts if part.kind == "sum" and rows is not None and self._shape(part) == rows]
        rest = [part for part in parts if part not in mine]
        objective = self.model.losses[0] if self.model.losses else None
        if objective is not None:
            regularizers += self.regularizers(objective, rest)
        if not mine:
            return None
        values = []
        for part in mine:
            assert isinstance(part.value, (Elementwise, Affine))
            values.append(self._weighted(part.value, part.coefficient))
        total = values[0] if len(values) == 1 else self._added(values)
        return self.loss_of(total, self.model.losses, elementwise=False)

    def _rows_of_loss(self, parts: Sequence[Part]) -> tuple[str, ...] | None:
        """The shape of the sum that depends on data and has the most formulas: that is the one over samples."""
        sums = [part for part in parts if part.kind == "sum"]
        with_data = [part for part in sums if self._uses_data(part) and isinstance(part.value, Elementwise)]
        for part in [*with_data, *(part for part in sums if self._uses_data(part)), *sums]:
            if self._shape(part) != ():
                return self._shape(part)
        return self._shape(sums[0]) if sums else None

    def _shape(self, part: Part) -> tuple[str, ...]:
        return part.value.shape if isinstance(part.value, (Elementwise, Affine)) else ()

    def _uses_data(self, part: Part) -> bool:
        return bool(self.model.type_of(part.node).data)

    def _weighted(self, value: Elementwise | Affine, coefficient: Expression) -> Elementwise | Affine:
        if coefficient == Number(1.0):
            return value
        if isinstance(value, Affine):
            scaled = affine.multiply(value, Constant(coefficient, ()), value.shape)
            assert isinstance(scaled, Affine)
            return scaled
        if (
            isinstance(coefficient, Call)
            and coefficient.function == "divide"
            and coefficient.arguments[0] == Number(1.0)
        ):
            body = Call("divide", (value.body, coefficient.arguments[1]))
        else:
            body = Call("multiply", (coefficient, value.body))
        return Elementwise(body, value.predictors, value.shape)

    def loss_of(self, value: Elementwise | Affine, objectives: Sequence[Objective], elementwise: bool) -> Loss:
        nonnegative = frozenset().union(*(item.needs_nonnegative for item in objectives))
        facts = {
            key: Quantity(key, "nonnegative", item.reference, item.varies) if key in nonnegative else item
            for key, item in self.facts.items()
        }
        formula = scalarize(value, facts)
        function = self.function(formula, objectives)
        self.loss_nonnegative = self.last_nonnegative
        return Loss(formula.predictors, function, formula.rows, elementwise)

    # -- regularizers --------------------------------------------------------------------------------------------

    def regularizers(self, objective: Objective, parts: Sequence[Part]) -> list[Regularizer]:
        return [found for part in gathered(list(parts)) if (found := self.regularizer(objective, part)) is not None]

    def regularizer(self, objective: Objective, part: Part) -> Regularizer | None:
        coefficient = tidied(part.coefficient)
        if part.kind == "constant":
            return None
        if part.kind == "trace_norm":
            assert isinstance(part.value, str)
            return TraceNorm(coefficient, part.value)
        if part.kind == "kernel":
            assert isinstance(part.value, str)
            return KernelNorm(coefficient, part.value)
        assert isinstance(part.value, (Elementwise, Affine))
        if part.kind == "norm":
            assert isinstance(part.value, Affine)
            return Norm(coefficient, part.value.predictor())
        if part.kind == "group_norm":
            assert isinstance(part.value, Affine)
            assert part.groups is not None
            return GroupNorm(coefficient, part.value.predictor(), part.groups)
        if isinstance(part.value, Affine):
            return LinearTerm(coefficient, part.value.predictor())
        formula = scalarize(part.value, self.facts)
        if len(formula.arguments) > 1:
            raise self.lowering.refusal(
                "SPL322",
                part.node,
                "a regularizer's rows may depend on one affine map each, and this one mixes several",
                "more than one affine map",
            )
        return Separable(coefficient, self.function(formula, [objective]), formula.predictors[0])

    # -- scalar functions ----------------------------------------------------------------------------------------

    def function(self, formula: Scalarized, objectives: Sequence[Objective]) -> ScalarFunction:
        """Derive a formula and settle its convexity."""
        settled = Settlement(objectives, formula, self.lowering)
        if len(formula.arguments) > 1:
            self.last_nonnegative = self._language_says_nonnegative(objectives)
            if not settled.proved_by_language:
                self.assumptions += settled.of_several_arguments(self._summands(formula, settled))
            return several_arguments(formula, settled.word)
        (argument,) = formula.arguments
        with settled.complaints():
            derived, kept = functions.derived_function(formula.body, argument, formula.quantities)
        self.assumptions += settled.of(derived)
        self.last_nonnegative = derived.nonnegative
        return functions.scalar_function(formula.body, argument, kept, formula.values, settled.word)

    def _summands(self, formula: Scalarized, settled: Settlement) -> list[DerivedFunction] | None:
        """A sum whose terms have one argument each is convex when they are; None when a term mixes arguments."""
        parts = by_argument(formula)
        if parts is None:
            return None
        with settled.complaints():
            return [functions.derived_function(body, z, formula.quantities)[0] for z, body in parts.items()]

    def _language_says_nonnegative(self, objectives: Sequence[Objective]) -> bool:
        return all(self.model.type_of(item.expression).sign in (Sign.NONNEGATIVE, Sign.ZERO) for item in objectives)

    # -- self-paced ----------------------------------------------------------------------------------------------

    def self_paced(self, entry: CheckedSelfPaced) -> SelfPaced:
        if entry.define is None:
            body, spoken = REGULARIZERS[entry.name], ["v", "lambda"]
        else:
            assert entry.body is not None
            body, spoken = self.lowering.constant(entry.body), list(entry.define.arguments[:2])
        options = {key: self.lowering.constant(value) for key, value in entry.options.items()}
        # f is spelled over v and lambda whatever the user calls them; what else has such a name, or the name of another
        # quantity of the model, gets an underscore
        argument, age = "v", "lambda"
        others = [key for key in ordered_names(body) if key not in spoken]
        taken = {key for key in others if key in (argument, age, "l")}
        taken |= {key for key, value in options.items() if key in self.facts and value != Name(key)}
        renamed = {key: f"{key}_" for key in taken}
        new_names = {**renamed, spoken[0]: argument, spoken[1]: age}
        body = substituted(body, {old: Name(new) for old, new in new_names.items()})
        given = {renamed.get(key, key): options.get(key, Name(key)) for key in others}
        quantities = []
        values: list[Expression] = []
        for key, value in given.items():
            values.append(value)
            quantities.append(self._option(key, value))
        try:
            derived, kept = functions.derived_weights(body, argument, age, quantities, self.loss_nonnegative)
        except (DerivationError, NoClosedFormError, TooManyPiecesError) as error:
            message = f"no sample weights can be derived from `{entry.name}`: {error}"
            mend = "look at what stands in `log`, `sqrt`, powers and quotients: f has to be defined for 0 < v <= 1"
            raise ModelError(Diagnostic("SPL342", message, span=entry.span, help=(mend,))) from error
        self.warnings += settled_axioms(entry, derived)
        return functions.self_paced(entry.name, kept, values)

    def _option(self, name: str, value: Expression) -> Quantity:
        number = typical_value(value, self.facts)
        return Quantity(name, "positive" if number > 0 else "negative" if number < 0 else "real", number)


def ordered_names(body: Expression) -> list[str]:
    found: dict[str, None] = {}
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            found.setdefault(node.name)
        elif isinstance(node, Call):
            stack.extend(reversed(node.arguments))
    return list(found)

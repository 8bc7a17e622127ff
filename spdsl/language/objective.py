"""Checks the statements of `minimize`: losses, regularizers and the SP-regularizer.

In: statements and the declarations. Out: `Objective`s and `SelfPaced` of `CheckedModel`, with their verdicts.
"""

from __future__ import annotations

from spdsl.diagnostics import Related, nearest_name
from spdsl.language.arguments import match_arguments, usage, values_by_name
from spdsl.language.checked import DefineEntry, Objective, SelfPaced, SignCondition
from spdsl.language.convexity import blame, is_bilinear, rests_on, weighing_data
from spdsl.language.declarations import Declarations
from spdsl.language.printer import shown
from spdsl.language.rules import is_concave, is_flat
from spdsl.language.scope import Binding, Role, Scope
from spdsl.language.signatures import SELF_PACED, Parameter
from spdsl.language.tree import (
    Call,
    Expression,
    LossStatement,
    Name,
    Power,
    RegularizerStatement,
    SelfPacedStatement,
    walk,
)
from spdsl.language.types import Kind, Sign, Type, Verdict
from spdsl.language.unknown import unknown_function

__all__ = ["Objectives"]


class Objectives:
    """The statements of `minimize`, one after another."""

    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self.complaints = declarations.complaints
        self.elaborator = declarations.elaborator
        self.losses: list[Objective] = []
        self.regularizers: list[Objective] = []
        self.self_paced: SelfPaced | None = None
        self.signs: dict[str, Sign] = {}
        self.conditions: dict[str, SignCondition] = {}

    # --- losses ---

    def add_loss(self, statement: LossStatement, self_paced: bool) -> None:
        """A loss: one number a sample; a scalar only without `self_paced`."""
        made, type_ = self.elaborator.numeric(statement.expression)
        if type_ is None or not self._varies(type_, statement, "loss"):
            return
        if self_paced and not type_.shape:
            self._scalar_loss(statement)
            return
        if len(type_.shape) > 1:
            message = f"a loss is one number a sample, and this is a {type_}"
            help_ = "give every column its own `loss` line with its own vector"
            self.complaints.error("SPL222", message, statement.expression.span, f"{type_}", help_)
            return
        if self.losses and not self._same_length(type_, statement):
            return
        if not type_.data:
            message = "this loss depends on no data"
            help_ = "what doesn't depend on samples is a `regularizer`"
            self.complaints.warning("SPL291", message, statement.expression.span, "", help_)
        objective = self._objective(made, type_, statement, "SPL301", "loss")
        if objective is not None:
            self.losses.append(objective)

    def _scalar_loss(self, statement: LossStatement) -> None:
        message = "`self_paced` needs one loss per sample, and this loss is a scalar"
        helps = _elementwise_form(statement.expression)
        self.complaints.error("SPL203", message, statement.expression.span, "scalar", *helps)

    def _same_length(self, type_: Type, statement: LossStatement) -> bool:
        first = self.losses[0]
        expected = self.elaborator.types[id(first.expression)]
        if expected.shape == type_.shape:
            return True
        message = f"this loss is a {type_}, and the first one is a {expected}: they are added sample by sample"
        related = (Related(first.span, f"{expected}"),)
        place = statement.expression.span
        help_ = "losses of one model are over the same samples"
        self.complaints.error("SPL222", message, place, f"{type_}", help_, related=related)
        return False

    # --- regularizers ---

    def add_regularizer(self, statement: RegularizerStatement) -> None:
        """A regularizer: a convex scalar."""
        made, type_ = self.elaborator.numeric(statement.expression)
        if type_ is None or not self._varies(type_, statement, "regularizer"):
            return
        if type_.shape:
            name = shown(statement.expression)
            helps = [f"sum it: `sum({name})`"]
            if is_flat(type_.curvature):
                helps = [f"did you mean `norm1({name})` or `sum_squares({name})`?"]
            message = f"a regularizer is one number, and this is a {type_}"
            self.complaints.error("SPL221", message, statement.expression.span, f"{type_}", *helps)
            return
        objective = self._objective(made, type_, statement, "SPL302", "regularizer")
        if objective is not None:
            self.regularizers.append(objective)

    def _varies(self, type_: Type, statement: LossStatement | RegularizerStatement, what: str) -> bool:
        if type_.variables:
            return True
        variables = ", ".join(f"`{name}`" for name in self.declarations.variables)
        if variables:
            message = f"this {what} depends on no variable, so it changes nothing"
            help_ = f"bring in a variable ({variables}), or delete the line"
            self.complaints.error("SPL223", message, statement.expression.span, "", help_)
        return False

    # --- verdicts ---

    def _objective(
        self, made: Expression, type_: Type, statement: LossStatement | RegularizerStatement, code: str, what: str
    ) -> Objective | None:
        written, assumed = statement.expression, statement.assume_convex
        rests = rests_on(self.elaborator, written, type_)
        if rests is not None:
            if assumed and not rests.nonnegative:
                message = f"this {what} is convex by the rules: `assume convex` is not needed"
                self.complaints.warning("SPL306", message, statement.span, "", "delete `assume convex`")
            self.signs.update(rests.signs)
            self.conditions.update(rests.conditions)
            span = statement.span
            return Objective(made, Verdict.CONVEX, assumed, written, rests.nonnegative, span=span)
        found = blame(self.elaborator, made)
        if is_concave(type_.curvature) or is_bilinear(self.elaborator, found.node):
            reason = found.reason
            if is_bilinear(self.elaborator, found.node):
                reason = "the product of two variables is not convex"
            message = f"this {what} is not convex: {reason}"
            helps = _mends(found.node, is_bilinear(self.elaborator, found.node))
            self.complaints.error(code, message, found.node.span, "", *helps)
            return None
        if assumed:
            return Objective(made, Verdict.ASSUMED, True, written, span=statement.span)
        if what == "loss":
            # The compiler derives its pieces, and decides or asks for `assume convex`.
            weights = weighing_data(self.elaborator, made)
            return Objective(made, Verdict.UNDECIDED, False, written, weights, span=statement.span)
        message = f"this {what} can't be shown to be convex: {found.reason}"
        help_ = "if you know that it is convex, write `assume convex` at the end of the line"
        self.complaints.error("SPL304", message, found.node.span, "", help_)
        return None

    # --- the SP-regularizer ---

    def add_self_paced(self, statement: SelfPacedStatement) -> None:
        """`self_paced linear(lambda)`: a built-in or a define of v and the age."""
        call = statement.expression
        declarations = self.declarations
        age = declarations.age.name if declarations.age is not None else "lambda"
        if isinstance(call, Name) and (call.name in SELF_PACED or call.name in declarations.defines):
            parameters = SELF_PACED[call.name].parameters if call.name in SELF_PACED else ()
            form = usage(call.name, (Parameter(age), *parameters))
            message = f"`{call.name}` needs the age in brackets"
            self.complaints.error("SPL219", message, call.span, "", f"write `{form}`")
            return
        if not isinstance(call, Call):
            message = "`self_paced` takes an SP-regularizer"
            helps = [f"write `linear({age})`, or name your own f: `define f(v, {age}) = ...` and `self_paced f({age})`"]
            self.complaints.error("SPL219", message, call.span, "", *helps)
            return
        declarations.scope.find(call.function)
        if call.function in declarations.defines:
            self._own_self_paced(call, declarations.defines[call.function], statement)
        elif call.function in SELF_PACED:
            self._built_in(call, statement)
        elif call.function not in declarations.scope.file.declared:
            self._no_self_paced(call)
        else:
            binding = declarations.scope.peek(call.function)
            if binding is None:
                unknown_function(self.elaborator, call, declarations.scope)
            elif binding.role is not Role.DEFINE:
                message = f"`{call.function}` is no SP-regularizer"
                self.complaints.error("SPL218", message, call.name_span, "", _LISTED)

    def _no_self_paced(self, call: Call) -> None:
        names = [*SELF_PACED, *self.declarations.defines]
        near = nearest_name(call.function, names)
        helps = [f"did you mean `{near}`?"] if near else []
        message = f"there is no SP-regularizer `{call.function}`"
        self.complaints.error("SPL218", message, call.name_span, "", *helps, _LISTED)

    def _age_first(self, call: Call) -> bool:
        """Whether the first argument is the age."""
        age = self.declarations.age
        name = age.name if age is not None else "lambda"
        first = call.arguments[0] if call.arguments else None
        if isinstance(first, Name) and (age is None or first.name == name):
            self.declarations.scope.find(first.name)
            return True
        message = f"the first argument of an SP-regularizer is the age `{name}`"
        # A number or a parameter was meant for what follows the age, anything else for the age itself.
        binding = self.declarations.scope.peek(first.name) if isinstance(first, Name) else None
        meant = isinstance(first, Name) and (binding is None or binding.role is Role.AGE)
        given = call.arguments[1:] if meant else call.arguments
        define = self.declarations.defines.get(call.function)
        most = len(define.arguments) - 2 if define is not None else len(SELF_PACED[call.function].parameters)
        rest = ", ".join(
            [shown(argument) for argument in given[:most]]
            + [f"{option.name} = {shown(option.value)}" for option in call.options if option.name != name]
        )
        help_ = f"write `{call.function}({name}{', ' + rest if rest else ''})`"
        self.complaints.error("SPL219", message, call.span, "", help_)
        return False

    def _built_in(self, call: Call, statement: SelfPacedStatement) -> None:
        if not self._age_first(call):
            return
        parameters = SELF_PACED[call.function].parameters
        options = self._parameters(call, parameters, call.arguments[1:])
        if options is not None:
            self.self_paced = SelfPaced(call.function, call.arguments[0], options, None, None, span=statement.span)

    def _parameters(
        self, call: Call, parameters: tuple[Parameter, ...], given: tuple[Expression, ...]
    ) -> dict[str, Expression] | None:
        matched = match_arguments(call, parameters, self.complaints, "the SP-regularizer", given)
        if matched is None:
            return None
        options: dict[str, Expression] = {}
        for parameter in parameters:
            argument = values_by_name(parameters, matched, call)[parameter.name]
            made, type_ = self.elaborator.number(argument, f"`{parameter.name}` of `{call.function}`")
            if type_ is None:
                return None
            self.elaborator.check_range(parameter, made, argument, call.function)
            options[parameter.name] = made
        return options

    def _own_self_paced(self, call: Call, define: DefineEntry, statement: SelfPacedStatement) -> None:
        if len(define.arguments) < 2:
            message = f"an SP-regularizer is a function of v and the age, and `{define.name}` has fewer arguments"
            related = (Related(define.declaration.name_span, "defined here"),)
            help_ = f"define it as `{define.name}(v, lambda) = ...`"
            self.complaints.error("SPL219", message, call.span, "", help_, related=related)
            return
        if call.arguments and isinstance(call.arguments[0], Name) and call.arguments[0].name == define.arguments[0]:
            # `blend(v, lambda)`: v is what the samples' weights are, not something to pass.
            message = f"`{define.arguments[0]}` is not passed: it stands for the weights that are looked for"
            age = self.declarations.age.name if self.declarations.age else "lambda"
            self.complaints.error("SPL219", message, call.span, "", f"write `{define.name}({age})`")
            return
        if not self._age_first(call):
            return
        extra = tuple(Parameter(name) for name in define.arguments[2:])
        options = self._parameters(call, extra, call.arguments[1:])
        if options is None or not self._names_apart(call, define, options):
            return
        body = self._body(define, options)
        if body is not None:
            self.self_paced = SelfPaced(define.name, call.arguments[0], options, define, body, span=statement.span)

    def _names_apart(self, call: Call, define: DefineEntry, options: dict[str, Expression]) -> bool:
        """Whether no further argument mentions a parameter that has the name of v or of the age in the define."""
        for value in options.values():
            for node in walk(value):
                if isinstance(node, Name) and node.name in define.arguments[:2]:
                    message = f"`{node.name}` here is a parameter, but an argument of `{define.name}` has its name"
                    related = (Related(define.declaration.name_span, "defined here"),)
                    help_ = "choose another name for one of them"
                    self.complaints.error("SPL219", message, call.span, "", help_, related=related)
                    return False
        return True

    def _body(self, define: DefineEntry, options: dict[str, Expression]) -> Expression | None:
        """f with every other `define` expanded, over v and the age; None after a complaint."""
        scope = Scope(self.declarations.scope)
        for name, span in zip(define.arguments, define.declaration.argument_spans):
            if name in options:
                type_: Type | None = self.elaborator.types[id(options[name])]
                scope.add(Binding(name, Role.ARGUMENT, type_, options[name], span=span))
            else:
                scope.add(Binding(name, Role.ARGUMENT, Type(Kind.SCALAR, sign=Sign.NONNEGATIVE), span=span))
        body, type_ = self.elaborator.numeric(define.body, scope)
        if type_ is None:
            return None
        place = define.body.span
        if type_.variables or type_.data:
            names = sorted(type_.variables | type_.data)
            message = f"an SP-regularizer is a function of v and the age, and this depends on `{names[0]}`"
            help_ = "numbers, sizes and parameters can be used beside them"
            self.complaints.error("SPL236", message, place, "", help_)
            return None
        if type_.shape:
            message = f"an SP-regularizer is a scalar function of v and the age, and this is a {type_}"
            self.complaints.error("SPL236", message, place, f"{type_}")
            return None
        used = {node.name for node in walk(body) if isinstance(node, Name)}
        missing = [name for name in define.arguments[:2] if name not in used]
        if missing:
            message = f"`{define.name}` doesn't depend on `{missing[0]}`, so it can't pace the samples"
            help_ = "the first argument is the weight v, the second one the age"
            self.complaints.error("SPL236", message, define.declaration.span, "", help_)
            return None
        return body


_LISTED = "the built-in ones are " + ", ".join(f"`{name}`" for name in SELF_PACED)


def _elementwise_form(node: Expression) -> tuple[str, ...]:
    """How to write a scalar loss as one number a sample."""
    for inner in walk(node):
        if isinstance(inner, Call) and inner.function == "sum" and inner.arguments:
            return ("drop the `sum`: the samples are summed for you",)
    for inner in walk(node):
        if isinstance(inner, Call) and inner.arguments:
            argument = shown(inner.arguments[0])
            bracketed = argument if argument.isidentifier() else f"({argument})"
            if inner.function == "sum_squares":
                return (f"write `{bracketed}^2`: the samples are summed for you",)
            if inner.function == "norm1":
                return (f"write `abs({argument})`: the samples are summed for you",)
        if isinstance(inner, Power) and isinstance(inner.base, Call) and inner.base.function in ("norm", "norm2"):
            argument = shown(inner.base.arguments[0]) if inner.base.arguments else "..."
            return (f"write `({argument})^2`: the samples are summed for you",)
    return ("write it elementwise, as in `(X @ w - y)^2`: the samples are summed for you",)


def _mends(place: Expression, bilinear: bool) -> tuple[str, ...]:
    """What to do about something that is not convex."""
    if bilinear:
        return ("make one of the factors data or a parameter",)
    if isinstance(place, Call) and place.function in ("log", "sqrt", "min"):
        return (f"`{place.function}` is concave: a convex term has a minus before it",)
    return ("a model minimizes: is the sign right?",)

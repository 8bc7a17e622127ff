"""Checks `subject to`: comparisons of convex with concave sides, semidefiniteness, and supports in sets.

In: constraint statements and the declarations. Out: the `Constraint`s of `CheckedModel`.
"""

from __future__ import annotations

from spdsl.diagnostics import Span, nearest_name
from spdsl.language.arguments import match_arguments, values_by_name
from spdsl.language.checked import Constraint, Inequality, SignCondition, SupportConstraint
from spdsl.language.constants import constant_value
from spdsl.language.convexity import Rests, blame, is_bilinear, rests_on
from spdsl.language.declarations import Declarations
from spdsl.language.operators import broadcast
from spdsl.language.printer import shown
from spdsl.language.rules import is_flat
from spdsl.language.signatures import SETS
from spdsl.language.tree import Call, Comparison, ConstraintStatement, Expression, Membership, Name
from spdsl.language.types import Curvature, Kind, Sign, Type, Verdict

__all__ = ["Constraints"]

_SET_FORMS = "the sets are `sparse(size)`, `connected(G, size)`, `groups(g, count)` and `union_of(S, count)`"


class Constraints:
    """The statements of `subject to`, one after another."""

    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self.complaints = declarations.complaints
        self.elaborator = declarations.elaborator
        self.found: list[Constraint] = []
        self.signs: dict[str, Sign] = {}
        self.conditions: dict[str, SignCondition] = {}

    def add(self, statement: ConstraintStatement) -> None:
        """A comparison or a membership."""
        if isinstance(statement.relation, Membership):
            self._membership(statement.relation)
        else:
            self._comparison(statement.relation, statement)

    # --- comparisons ---

    def _comparison(self, relation: Comparison, statement: ConstraintStatement) -> None:
        sides = [self.elaborator.numeric(side) for side in relation.operands]
        strict = [(o, s) for o, s in zip(relation.operators, relation.operator_spans) if o in ("<", ">")]
        for operator, span in strict:
            message = f"`{operator}` would leave the border out, and an optimum may lie on it"
            self.complaints.error("SPL121", message, span, "", f"write `{operator}=`")
        if strict or any(type_ is None for _, type_ in sides):
            return
        for index, operator in enumerate(relation.operators):
            (left, left_type), (right, right_type) = sides[index], sides[index + 1]
            assert left_type is not None
            assert right_type is not None
            written = (relation.operands[index], relation.operands[index + 1])
            self._pair(left, left_type, operator, right, right_type, written, statement)

    def _pair(
        self,
        left: Expression,
        left_type: Type,
        operator: str,
        right: Expression,
        right_type: Type,
        written: tuple[Expression, Expression],
        statement: ConstraintStatement,
    ) -> None:
        span = written[0].span.to(written[1].span)
        if not left_type.variables and not right_type.variables:
            message = "this constraint has no variable in it: it holds or it doesn't"
            self.complaints.error("SPL223", message, span, "", "delete it, or constrain a variable")
            return
        if operator == ">>":
            if not self._semidefinite(left, left_type, right, right_type, span):
                return
        elif broadcast(self.elaborator, (left, right), (left_type, right_type), operator) is None:
            return
        self._elementwise_matrix(left, left_type, operator, right, right_type, span)
        rests = self._verdict(left, left_type, operator, right, right_type, written, statement)
        if rests is None:
            return
        verdict, needed = rests
        self.found.append(
            Inequality(left, operator, right, verdict, statement.assume_convex, needed.nonnegative, span=span)
        )
        self.signs.update(needed.signs)
        self.conditions.update(needed.conditions)

    def _elementwise_matrix(
        self, left: Expression, a: Type, operator: str, right: Expression, b: Type, span: Span
    ) -> None:
        """Warn of `M >= 0` for a symmetric matrix: it is read element by element."""
        for matrix, type_, other, sign in ((left, a, right, ">="), (right, b, left, "<=")):
            if operator == sign and type_.kind is Kind.SYMMETRIC and constant_value(other) == 0:
                message = f"`{operator}` asks that every element of `{shown(matrix)}` is >= 0"
                help_ = f"for positive semidefinite write `{shown(matrix)} >> 0`"
                self.complaints.warning("SPL292", message, span, "", help_)

    def _semidefinite(self, left: Expression, a: Type, right: Expression, b: Type, span: Span) -> bool:
        if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
            message = f"`>>` says that a matrix is positive semidefinite, and `{shown(left)}` is a {a}"
            helps = ["for numbers and vectors write `>=`"] if len(a.shape) < 2 else []
            self.complaints.error("SPL233", message, left.span, f"{a}", *helps)
            return False
        if a.kind is not Kind.SYMMETRIC:
            name = shown(left)
            message = f"only a symmetric matrix can be positive semidefinite, and `{name}` is not known to be one"
            helps = [f"declare `{name} : symmetric({a.shape[0]})`"] if isinstance(left, Name) else []
            self.complaints.error("SPL233", message, left.span, f"{a}", *helps)
            return False
        if b.shape:
            return broadcast(self.elaborator, (left, right), (a, b), ">>") is not None
        if constant_value(right) != 0:
            message = "the right side of `>>` is 0 or a symmetric matrix"
            self.complaints.error("SPL233", message, right.span, "", f"write `{shown(left)} >> 0`")
            return False
        return True

    def _verdict(
        self,
        left: Expression,
        a: Type,
        operator: str,
        right: Expression,
        b: Type,
        written: tuple[Expression, Expression],
        statement: ConstraintStatement,
    ) -> tuple[Verdict, Rests] | None:
        """Whether the constraint cuts out a convex set; None after a complaint."""
        if operator in ("==", ">>"):
            for node, type_ in ((left, a), (right, b)):
                if not is_flat(type_.curvature):
                    return self._not_affine(node, type_, operator, statement)
            return Verdict.CONVEX, Rests(frozenset(), {}, {})
        needed: set[str] = set()
        signs: dict[str, Sign] = {}
        conditions: dict[str, SignCondition] = {}
        greater = operator == ">="
        verdict = Verdict.CONVEX
        for node, type_, source, concave in ((left, a, written[0], greater), (right, b, written[1], not greater)):
            rests = rests_on(self.elaborator, source, type_, concave)
            if rests is None:
                if not self._refused(node, type_, concave, operator, statement):
                    return None
                verdict = Verdict.ASSUMED
                continue
            needed |= rests.nonnegative
            signs.update(rests.signs)
            conditions.update(rests.conditions)
        if statement.assume_convex and verdict is Verdict.CONVEX and not needed:
            message = "this constraint is convex by the rules: `assume convex` is not needed"
            self.complaints.warning("SPL306", message, statement.span, "", "delete `assume convex`")
        return verdict, Rests(frozenset(needed), signs, conditions)

    def _not_affine(
        self, node: Expression, type_: Type, operator: str, statement: ConstraintStatement
    ) -> tuple[Verdict, Rests] | None:
        if statement.assume_convex and type_.curvature is Curvature.UNKNOWN:
            return Verdict.ASSUMED, Rests(frozenset(), {}, {})
        what = "an equation" if operator == "==" else "`>>`"
        message = f"this constraint is not convex: {what} needs affine sides, and `{shown(node)}` is "
        message += "not" if type_.curvature is Curvature.UNKNOWN else type_.curvature.value
        helps = []
        if operator == "==" and type_.curvature in (Curvature.CONVEX, Curvature.CONCAVE):
            other = "<=" if type_.curvature is Curvature.CONVEX else ">="
            helps.append(f"only the inequality `{other}` is convex")
        self.complaints.error("SPL303", message, node.span, type_.curvature.value, *helps)
        return None

    def _refused(
        self, node: Expression, type_: Type, concave: bool, operator: str, statement: ConstraintStatement
    ) -> bool:
        """Complain about a side that bends the wrong way; True when `assume convex` lets it pass."""
        found = blame(self.elaborator, node, concave)
        decided = type_.curvature is not Curvature.UNKNOWN or is_bilinear(self.elaborator, found.node)
        if statement.assume_convex and not decided:
            return True
        wanted = "concave" if concave else "convex"
        if decided:
            reason = found.reason
            if is_bilinear(self.elaborator, found.node):
                reason = "the product of two variables is neither convex nor concave"
            message = f"this constraint is not convex: {reason}"
            helps = []
            if found.node is node:
                helps = [f"only the other direction, `{'<=' if operator == '>=' else '>='}`, is convex"]
            if is_bilinear(self.elaborator, found.node):
                helps = ["make one of the factors data or a parameter"]
            self.complaints.error("SPL303", message, found.node.span, "", *helps)
            return False
        message = f"this side of `{operator}` can't be shown to be {wanted}: {found.reason}"
        help_ = "if you know that the constraint is convex, write `assume convex` at the end of the line"
        self.complaints.error("SPL304", message, found.node.span, "", help_)
        return False

    # --- sets ---

    def _membership(self, relation: Membership) -> None:
        element, place = relation.element, relation.set
        if not isinstance(place, Call) or place.function not in SETS:
            self._no_set(place)
            return
        if not isinstance(element, Call) or element.function != "support":
            name = shown(element)
            message = f"`{place.function}(...)` is a set of supports, and `{name}` is none"
            help_ = f"write `support({name}) in {shown(place)}`"
            self.complaints.error("SPL227", message, element.span, "", help_)
            return
        made, type_ = self.elaborator.expression(element)
        if type_ is None or not isinstance(made, Call):
            return
        variable = made.arguments[0]
        if not isinstance(variable, Name) or variable.name not in self.declarations.variables:
            message = f"`support` takes a vector variable, and `{shown(variable)}` is none"
            self.complaints.error("SPL227", message, variable.span, "", "name the variable alone")
            return
        arguments = self._set_arguments(place, type_)
        if arguments is not None:
            self.found.append(SupportConstraint(variable.name, place.function, arguments, span=relation.span))

    def _no_set(self, place: Expression) -> None:
        name = place.function if isinstance(place, Call) else shown(place)
        span = place.name_span if isinstance(place, Call) else place.span
        near = nearest_name(name, list(SETS))
        helps = [f"did you mean `{near}`?"] if near else []
        self.complaints.error("SPL227", f"there is no set `{name}`", span, "", *helps, _SET_FORMS)

    def _set_arguments(self, call: Call, support: Type) -> dict[str, Expression] | None:
        parameters = SETS[call.function].parameters
        matched = match_arguments(call, parameters, self.complaints, "the set")
        if matched is None:
            return None
        arguments: dict[str, Expression] = {}
        for parameter in parameters:
            argument = values_by_name(parameters, matched, call).get(parameter.name)
            if argument is None:
                continue
            if parameter.name == "graph":
                if not self._graph(argument, support):
                    return None
                arguments["graph"] = argument
                continue
            if parameter.name == "groups":
                made = self._groups(argument, support)
            elif parameter.name == "supports":
                made = self._supports(argument, support)
            else:
                made, type_ = self.elaborator.number(argument, f"`{parameter.name}` of `{call.function}`")
                if type_ is None:
                    return None
                self.elaborator.check_range(parameter, made, argument, call.function)
            if made is None:
                return None
            arguments[parameter.name] = made
        return arguments

    def _graph(self, argument: Expression, support: Type) -> bool:
        _, type_ = self.elaborator.expression(argument)
        if type_ is None:
            return False
        if type_.kind is not Kind.GRAPH:
            graphs = [e.name for e in self.declarations.data.values() if e.kind is Kind.GRAPH]
            helps = (
                [f"did you mean `{graphs[0]}`?"] if graphs else [f"declare `G : graph({support.shape[0]})` in `data`"]
            )
            message = f"`connected` takes a graph, and `{shown(argument)}` is a {type_}"
            self.complaints.error("SPL227", message, argument.span, f"{type_}", *helps)
            return False
        if type_.shape != support.shape:
            message = f"the graph has {type_.shape[0]} nodes, but the variable has {support.shape[0]} elements"
            self.complaints.error("SPL205", message, argument.span, f"{type_}", "one node stands for one element")
            return False
        return True

    def _groups(self, argument: Expression, support: Type) -> Expression | None:
        made, type_ = self.elaborator.numeric(argument)
        if type_ is None:
            return None
        if type_.variables or (type_.shape and type_.shape != support.shape):
            message = f"the groups of {support.shape[0]} elements are {support.shape[0]} numbers"
            help_ = f"declare `g : vector({support.shape[0]})` in `data`, or give the length of consecutive blocks"
            self.complaints.error("SPL205", message, argument.span, f"{type_}", help_)
            return None
        return made

    def _supports(self, argument: Expression, support: Type) -> Expression | None:
        made, type_ = self.elaborator.numeric(argument)
        if type_ is None:
            return None
        if type_.variables or len(type_.shape) != 2 or type_.shape[1] != support.shape[0]:
            message = (
                f"the supports of a vector of {support.shape[0]} elements are the rows of a matrix as wide as that"
            )
            help_ = f"declare `S : matrix(k, {support.shape[0]})` in `data`: row j is not zero at the coordinates of support j"
            self.complaints.error("SPL205", message, argument.span, f"{type_}", help_)
            return None
        return made

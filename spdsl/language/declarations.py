"""Checks declarations: data, parameters, defines, variables and the age.

In: their statements, in the order of the file. Out: the tables of `CheckedModel`, and the scope that expressions see.
"""

from __future__ import annotations

from spdsl.diagnostics import Related, Span, nearest_name
from spdsl.language.arguments import check_range, match_arguments, values_by_name
from spdsl.language.checked import (
    Age,
    AgeForm,
    DataEntry,
    DefineEntry,
    Kernel,
    ParameterEntry,
    SizeEntry,
    SizeUse,
    VariableEntry,
)
from spdsl.language.complaints import Complaints
from spdsl.language.constants import constant_value
from spdsl.language.elaborate import Elaborator
from spdsl.language.printer import shown
from spdsl.language.scope import Binding, Role, Scope
from spdsl.language.signatures import ATOMS, KERNELS, SELF_PACED
from spdsl.language.tree import (
    AgeStatement,
    Call,
    DataDeclaration,
    DefineStatement,
    Expression,
    Interval,
    Model,
    Name,
    Number,
    ParameterDeclaration,
    Statement,
    TypeExpression,
    VariableDeclaration,
    walk,
)
from spdsl.language.types import Curvature, Dimension, Kind, Sign, Type

__all__ = ["TYPE_NAMES", "Declarations"]

_DECLARING = (DataDeclaration, ParameterDeclaration, DefineStatement, VariableDeclaration, AgeStatement)

_FORMS = {
    Kind.SCALAR: "scalar",
    Kind.VECTOR: "vector(n)",
    Kind.MATRIX: "matrix(n, d)",
    Kind.LABELS: "labels(n)",
    Kind.SYMMETRIC: "symmetric(d)",
    Kind.GRAPH: "graph(p)",
    Kind.RKHS: "rkhs(X, rbf(gamma))",
}
_TYPES = {kind.value: kind for kind in _FORMS}
TYPE_NAMES = tuple(_TYPES)
"""The types that can be declared."""

_SIZES = {Kind.SCALAR: 0, Kind.VECTOR: 1, Kind.MATRIX: 2, Kind.LABELS: 1, Kind.SYMMETRIC: 1, Kind.GRAPH: 1}
_NOT_DATA = {Kind.RKHS: "a function can only be a variable"}
_NOT_VARIABLE = {
    Kind.LABELS: "labels are data: an optimum over two classes isn't convex",
    Kind.GRAPH: "a graph is data",
}
_FOREIGN_TYPES = {
    "float": "scalar",
    "real": "scalar",
    "number": "scalar",
    "int": "scalar",
    "array": "vector",
    "list": "vector",
    "label": "labels",
    "binary": "labels",
    "classes": "labels",
    "tensor": "matrix",
    "sparse": "matrix",
    "psd": "symmetric",
    "kernel": "rkhs",
    "function": "rkhs",
    "network": "graph",
}


class Declarations:
    """The tables of a model under construction."""

    def __init__(self, tree: Model, complaints: Complaints) -> None:
        self.complaints = complaints
        self.scope = Scope()
        self.elaborator = Elaborator(complaints, self.scope)
        self.data: dict[str, DataEntry] = {}
        self.parameters: dict[str, ParameterEntry] = {}
        self.defines: dict[str, DefineEntry] = {}
        self.variables: dict[str, VariableEntry] = {}
        self.age: Age | None = None
        self._size_uses: dict[str, list[SizeUse]] = {}
        self._data_sizes: set[str] = set()
        self._declared: dict[str, Span] = {}
        for statement in tree.statements():
            if isinstance(statement, _DECLARING):
                self.scope.file.declared.setdefault(statement.name, statement.name_span)
        for statement in tree.statements():
            if isinstance(statement, DataDeclaration):
                for size in statement.type.arguments:
                    if isinstance(size, Name):
                        self.scope.file.declared.setdefault(size.name, size.span)

    def add(self, statement: Statement) -> None:
        """Read a declaration; any other statement is passed over."""
        if not isinstance(statement, _DECLARING):
            return
        self.scope.file.under_way = statement.name
        match statement:
            case DataDeclaration():
                self._data(statement)
            case ParameterDeclaration():
                self._parameter(statement)
            case DefineStatement():
                self._define(statement)
            case VariableDeclaration():
                self._variable(statement)
            case AgeStatement():
                self._age(statement)
        self.scope.file.under_way = ""

    def sizes(self) -> dict[str, SizeEntry]:
        """The symbolic sizes and where they occur."""
        return {name: SizeEntry(name, tuple(uses)) for name, uses in self._size_uses.items()}

    def check_sizes(self) -> None:
        """Complain about sizes that no datum fixes."""
        for name, uses in self._size_uses.items():
            if name in self._data_sizes:
                continue
            near = nearest_name(name, sorted(self._data_sizes))
            helps = [f"did you mean `{near}`?"] if near and len(name) > 1 else []
            known = ", ".join(f"`{size}`" for size in sorted(self._data_sizes))
            if known:
                helps.append(f"the data fix {known}; or write a whole number")
            else:
                helps.append("declare data with this size, or write a whole number")
            message = f"no data fix the size `{name}` of `{uses[0].name}`"
            self.complaints.error("SPL216", message, uses[0].span, "", *helps)

    # --- names ---

    def _declare(self, name: str, span: Span, binding: Binding) -> bool:
        """Bind a name; False after a complaint that it is taken."""
        if name in ATOMS:
            message = f"`{name}` is a function of the language and can't be declared"
            self.complaints.error("SPL204", message, span, "", f"choose another name, such as `{name}_`")
            return False
        if name in self._declared:
            first = Related(self._declared[name], "declared here first")
            helps = "delete one of them, or choose another name"
            self.complaints.error("SPL202", f"`{name}` is declared twice", span, "", helps, related=(first,))
            return False
        if name in self._size_uses:
            use = Related(self._size_uses[name][0].span, f"the size of `{self._size_uses[name][0].name}`")
            message = f"`{name}` is a size already"
            help_ = "choose another name; a size can be used as a number as it is"
            self.complaints.error("SPL202", message, span, "", help_, related=(use,))
            return False
        self._declared[name] = span
        self.scope.add(binding)
        return True

    # --- types ---

    def _type(
        self, statement: DataDeclaration | VariableDeclaration, refused: dict[Kind, str], section: str
    ) -> tuple[Kind, tuple[Dimension, ...]] | None:
        """The kind and the shape of a declaration; None after a complaint."""
        found = self._kind_and_shape(statement, refused, section)
        if found is None and isinstance(statement, DataDeclaration):
            # What the declaration would have fixed must not be missed again elsewhere.
            for argument in statement.type.arguments:
                if isinstance(argument, Name) and self.scope.peek(argument.name) is None:
                    self._size(argument, statement.name, 0, True)
        return found

    def _kind_and_shape(
        self, statement: DataDeclaration | VariableDeclaration, refused: dict[Kind, str], section: str
    ) -> tuple[Kind, tuple[Dimension, ...]] | None:
        written = statement.type
        kind = _TYPES.get(written.name)
        if kind is None:
            near = _FOREIGN_TYPES.get(written.name.lower()) or nearest_name(written.name, list(_TYPES))
            helps = [f"did you mean `{near}`?"] if near else []
            listed = ", ".join(f"`{form}`" for form in _FORMS.values())
            message = f"there is no type `{written.name}`"
            self.complaints.error("SPL207", message, written.name_span, "", *helps, f"the types are {listed}")
            return None
        if kind in refused:
            helps = ["move the declaration to `variable`"] if kind is Kind.RKHS else ["move the declaration to `data`"]
            message = f"`{statement.name}` can't be {_article(kind)} in `{section}`: {refused[kind]}"
            self.complaints.error("SPL209", message, written.span, "", *helps)
            return None
        if kind is Kind.RKHS:
            return kind, ()
        if len(written.arguments) != _SIZES[kind]:
            wanted = {0: "no size", 1: "one size", 2: "two sizes"}[_SIZES[kind]]
            message = f"`{kind.value}` takes {wanted}, and this has {len(written.arguments) or 'none'}"
            self.complaints.error("SPL208", message, written.span, "", f"write `{statement.name} : {_FORMS[kind]}`")
            return None
        dims: list[Dimension] = []
        for axis, argument in enumerate(written.arguments):
            size = self._size(argument, statement.name, axis, isinstance(statement, DataDeclaration))
            if size is None:
                return None
            dims.append(size)
        shape = tuple(dims) * 2 if kind is Kind.SYMMETRIC else tuple(dims)
        return kind, shape

    def _size(self, argument: Expression, owner: str, axis: int, fixes: bool) -> Dimension | None:
        if isinstance(argument, Number):
            if isinstance(argument.value, int) and argument.value >= 1:
                return argument.value
            message = f"a size is a whole number of at least 1, and this is {argument.text}"
            self.complaints.error("SPL208", message, argument.span)
            return None
        if not isinstance(argument, Name):
            message = f"a size is a name or a whole number, and `{shown(argument)}` is an expression"
            help_ = "give it a name of its own: it is read off the data"
            self.complaints.error("SPL208", message, argument.span, "", help_)
            return None
        name = argument.name
        binding = self.scope.peek(name)
        if binding is not None and binding.role is not Role.SIZE:
            first = Related(self._declared[name], f"declared here as {_role(binding)}")
            message = f"`{name}` can't be a size: it is {_role(binding)} already"
            help_ = "choose another name for the size"
            self.complaints.error("SPL202", message, argument.span, "", help_, related=(first,))
            return None
        if binding is None:
            type_ = Type(Kind.SCALAR, sign=Sign.NONNEGATIVE, sizes=frozenset({name}))
            self.scope.add(Binding(name, Role.SIZE, type_, span=argument.span))
        if fixes:
            self._data_sizes.add(name)
        self._size_uses.setdefault(name, []).append(SizeUse(owner, axis, span=argument.span))
        return name

    # --- statements ---

    def _data(self, statement: DataDeclaration) -> None:
        """`X : matrix(n, d)`"""
        found = self._type(statement, _NOT_DATA, "data")
        type_ = None
        if found is not None:
            type_ = Type(*found, data=frozenset({statement.name}))
        binding = Binding(statement.name, Role.DATA, type_, span=statement.name_span)
        if self._declare(statement.name, statement.name_span, binding) and found is not None:
            self.data[statement.name] = DataEntry(statement.name, *found, statement)

    def _parameter(self, statement: ParameterDeclaration) -> None:
        """`alpha = 5e-3`; the default may use numbers, sizes and earlier parameters."""
        name = statement.name
        default, type_ = self.elaborator.number(statement.value, f"the parameter `{name}`")
        if type_ is not None and type_.data:
            message = f"the parameter `{name}` depends on data; its value must be known without them"
            help_ = "numbers, sizes and earlier parameters can be used here; what depends on data goes to `define`"
            self.complaints.error("SPL226", message, statement.value.span, "", help_)
            type_ = None
        bound = None
        if type_ is not None:
            # A default of 0 may be overridden: take it for one of the numbers >= 0.
            sign = Sign.NONNEGATIVE if type_.sign is Sign.ZERO else type_.sign
            bound = Type(Kind.SCALAR, sign=sign, parameters=frozenset({name}))
        binding = Binding(name, Role.PARAMETER, bound, span=statement.name_span)
        if self._declare(name, statement.name_span, binding) and type_ is not None:
            self.parameters[name] = ParameterEntry(name, default, statement)
            self.elaborator.defaults[name] = default

    def _define(self, statement: DefineStatement) -> None:
        """`f(v, lambda) = ...`; names are checked here, types where it is used."""
        name = statement.name
        right = self._names_known(statement)
        if name in SELF_PACED:
            message = f"`{name}` is a built-in SP-regularizer and can't be defined"
            help_ = f"choose another name, such as `my_{name}`"
            self.complaints.error("SPL204", message, statement.name_span, "", help_)
            right = False
        binding = Binding(name, Role.DEFINE, None, define=statement if right else None, span=statement.name_span)
        if self._declare(name, statement.name_span, binding) and right:
            self.defines[name] = DefineEntry(name, statement.arguments, statement.body, statement)

    def _names_known(self, statement: DefineStatement) -> bool:
        inner = Scope(self.scope)
        seen: dict[str, Span] = {}
        right = True
        for argument, span in zip(statement.arguments, statement.argument_spans):
            if argument in seen:
                first = Related(seen[argument], "the first one")
                message = f"`{statement.name}` has two arguments named `{argument}`"
                self.complaints.error("SPL224", message, span, "", "give them different names", related=(first,))
                right = False
            if argument in ATOMS:
                message = f"`{argument}` is a function of the language and can't name an argument"
                self.complaints.error("SPL204", message, span, "", f"choose another name, such as `{argument}_`")
                right = False
            seen[argument] = span
            inner.add(Binding(argument, Role.ARGUMENT, None, span=span))
        for node in walk(statement.body):
            if isinstance(node, Name | Call):
                right = self._name_known(node, statement, inner) and right
        return right

    def _name_known(self, node: Name | Call, statement: DefineStatement, inner: Scope) -> bool:
        name = node.name if isinstance(node, Name) else node.function
        if name == statement.name and inner.peek(name) is None:
            span = node.span if isinstance(node, Name) else node.name_span
            message = f"`{name}` is defined by itself"
            help_ = "a `define` is a formula: it can only use what is declared above it"
            self.complaints.error("SPL224", message, span, "", help_)
            return False
        if inner.peek(name) is not None:
            inner.find(name)
            return True
        if isinstance(node, Name):
            self.elaborator.unknown_name(name, node.span, inner)
            return False
        if name in ATOMS:
            return True
        self.elaborator.unknown_function(node, inner)
        return False

    def _variable(self, statement: VariableDeclaration) -> None:
        """`w : vector(d)` or `f : rkhs(X, rbf(gamma))`"""
        name = statement.name
        found = self._type(statement, _NOT_VARIABLE, "variable")
        type_ = None
        points = kernel = None
        if found is not None and found[0] is Kind.RKHS:
            space = self._rkhs(statement)
            if space is None:
                found = None
            else:
                points, kernel = space
        if found is not None:
            type_ = Type(*found, Curvature.AFFINE, variables=frozenset({name}))
        binding = Binding(name, Role.VARIABLE, type_, span=statement.name_span)
        if self._declare(name, statement.name_span, binding) and found is not None:
            self.variables[name] = VariableEntry(name, *found, statement, points, kernel)
            if points is not None:
                self.elaborator.set_points(name, points)

    def _rkhs(self, statement: VariableDeclaration) -> tuple[str, Kernel] | None:
        """The points and the kernel of `rkhs(X, rbf(gamma))`; None after a complaint."""
        written: TypeExpression = statement.type
        if len(written.arguments) != 2:
            message = "`rkhs` takes a data matrix and a kernel"
            self.complaints.error(
                "SPL208", message, written.span, "", f"write `{statement.name} : rkhs(X, rbf(gamma))`"
            )
            return None
        points, call = written.arguments
        _, points_type = self.elaborator.expression(points)
        if points_type is None:
            return None
        if not isinstance(points, Name) or points.name not in self.data or points_type.kind is not Kind.MATRIX:
            matrices = [entry.name for entry in self.data.values() if entry.kind is Kind.MATRIX]
            helps = [f"write `{matrices[0]}`"] if matrices else ["declare a `matrix(n, d)` in `data`"]
            message = f"a function space is over the rows of a data matrix, and `{shown(points)}` is a {points_type}"
            self.complaints.error("SPL208", message, points.span, f"{points_type}", *helps)
            return None
        kernel = self._kernel(call, points_type)
        return None if kernel is None else (points.name, kernel)

    def _kernel(self, call: Expression, points: Type) -> Kernel | None:
        listed = "the kernels are `rbf(gamma)`, `polynomial(degree)`, `linear()` and `precomputed(K)`"
        if isinstance(call, Name) and call.name in KERNELS:
            form = {"rbf": "rbf(1)", "polynomial": "polynomial(3)", "precomputed": "precomputed(K)"}.get(call.name)
            help_ = f"write `{form or 'linear()'}`"
            self.complaints.error("SPL229", f"the kernel `{call.name}` needs brackets", call.span, "", help_)
            return None
        if not isinstance(call, Call) or call.function not in KERNELS:
            name = call.function if isinstance(call, Call) else shown(call)
            span = call.name_span if isinstance(call, Call) else call.span
            aliases = {"gaussian": "rbf", "poly": "polynomial", "gram": "precomputed", "squared_exponential": "rbf"}
            near = aliases.get(name.lower()) or nearest_name(name, list(KERNELS))
            helps = [f"did you mean `{near}`?"] if near else []
            self.complaints.error("SPL229", f"there is no kernel `{name}`", span, "", *helps, listed)
            return None
        parameters = KERNELS[call.function].parameters
        matched = match_arguments(call, parameters, self.complaints, "the kernel")
        if matched is None:
            return None
        arguments: dict[str, Expression] = {}
        for parameter in parameters:
            argument = values_by_name(parameters, matched, call)[parameter.name]
            if parameter.name == "K":
                if not self._precomputed(argument, points):
                    return None
                arguments["K"] = argument
                continue
            made, type_ = self.elaborator.number(argument, f"`{parameter.name}` of `{call.function}`")
            if type_ is None:
                return None
            value = constant_value(made, self.elaborator.defaults)
            check_range(parameter, value, argument, call.function, self.complaints)
            arguments[parameter.name] = made
        return Kernel(call.function, arguments, span=call.span)

    def _precomputed(self, argument: Expression, points: Type) -> bool:
        _, type_ = self.elaborator.expression(argument)
        if type_ is None:
            return False
        wanted = (points.shape[0], points.shape[0])
        if not isinstance(argument, Name) or argument.name not in self.data or type_.shape != wanted:
            message = f"a kernel matrix is a datum of shape {wanted[0]} x {wanted[0]}, and this is a {type_}"
            help_ = f"declare it in `data`: `K : symmetric({wanted[0]})`"
            self.complaints.error("SPL229", message, argument.span, f"{type_}", help_)
            return False
        return True

    def _age(self, statement: AgeStatement) -> None:
        """`age lambda in [a, b]`, `in quantiles(a, b)` or `= a`"""
        value = statement.value
        ends: tuple[Expression, ...]
        if isinstance(value, Interval):
            form, ends = AgeForm.INTERVAL, (value.low, value.high)
        elif statement.fixed:
            form, ends = AgeForm.FIXED, (value,)
        elif isinstance(value, Call) and value.function == "quantiles":
            form, ends = AgeForm.QUANTILES, value.arguments
            if len(ends) != 2 or value.options:
                message = "`quantiles` takes the share of samples at the start and at the end"
                self.complaints.error("SPL211", message, value.span, "", "its form is `quantiles(0.2, 1)`")
                ends = ()
        else:
            form, ends = AgeForm.FIXED, ()
            message = "an age lies in an interval or in quantiles of the losses"
            helps, place = ["an age reads `in [a, b]`, `in quantiles(0.2, 1)` or `= a`"], value.span
            if isinstance(value, Call) and nearest_name(value.function, ["quantiles"]):
                helps, place = ["did you mean `quantiles`?"], value.name_span
            self.complaints.error("SPL231", message, place, "", *helps)
        made: list[Expression] = []
        for end in ends:
            node, type_ = self.elaborator.number(
                end, "the age" if form is not AgeForm.QUANTILES else "a share of samples"
            )
            if type_ is not None:
                made.append(node)
        binding = Binding(statement.name, Role.AGE, None, span=statement.name_span)
        fresh = self._declare(statement.name, statement.name_span, binding)
        if self.age is None and fresh and ends and len(made) == len(ends):
            self.age = Age(statement.name, form, made[0], made[-1], statement)
            self._check_ages(self.age)

    def _check_ages(self, age: Age) -> None:
        low = constant_value(age.low, self.elaborator.defaults)
        high = constant_value(age.high, self.elaborator.defaults)
        for value, node in ((low, age.low), (high, age.high)):
            if value is None:
                continue
            if age.form is AgeForm.QUANTILES and not 0 <= value <= 1:
                help_ = "1 stands for all samples, 0.2 for a fifth of them"
                message = f"a share of samples lies between 0 and 1, and this is {value:g}"
                self.complaints.error("SPL231", message, node.span, "", help_)
                return
            if age.form is not AgeForm.QUANTILES and value <= 0:
                message = f"an age is positive, and this is {value:g}"
                self.complaints.error("SPL231", message, node.span, "", "at age 0 no sample is selected")
                return
        if age.form is not AgeForm.FIXED and low is not None and high is not None and low >= high:
            span = age.low.span.to(age.high.span)
            if low == high:
                message, help_ = "the ages end where they start", f"for one age write `age {age.name} = {low:g}`"
            else:
                message, help_ = "the ages run backwards", f"write `{shown(age.high)}, {shown(age.low)}`"
            self.complaints.error("SPL231", message, span, "", help_)


def _article(kind: Kind) -> str:
    return {Kind.RKHS: "an rkhs function", Kind.LABELS: "labels"}.get(kind, f"a {kind.value}")


def _role(binding: Binding) -> str:
    if binding.role is Role.DATA:
        return f"a {binding.type}" if binding.type is not None else "a datum"
    return f"{'an' if binding.role is Role.AGE else 'a'} {binding.role.value}"

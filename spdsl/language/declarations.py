"""Checks declarations: data, parameters, defines, variables and the age.

In: their statements, in the order of the file. Out: the tables of `CheckedModel`, and the scope that expressions see.
"""

from __future__ import annotations

from spdsl.diagnostics import Related, Span, nearest_name
from spdsl.language.ages import read_age
from spdsl.language.checked import (
    Age,
    DataEntry,
    DefineEntry,
    ParameterEntry,
    SizeEntry,
    SizeUse,
    VariableEntry,
)
from spdsl.language.complaints import Complaints
from spdsl.language.elaborate import Elaborator
from spdsl.language.printer import shown
from spdsl.language.scope import Binding, Role, Scope
from spdsl.language.signatures import ATOMS, SELF_PACED
from spdsl.language.spaces import read_space
from spdsl.language.tree import (
    AgeStatement,
    Call,
    DataDeclaration,
    DefineStatement,
    Expression,
    Model,
    Name,
    Number,
    ParameterDeclaration,
    Statement,
    VariableDeclaration,
    walk,
)
from spdsl.language.types import Curvature, Dimension, Kind, Sign, Type
from spdsl.language.unknown import unknown_function, unknown_name

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
            unknown_name(self.elaborator, name, node.span, inner)
            return False
        if name in ATOMS:
            return True
        unknown_function(self.elaborator, node, inner)
        return False

    def _variable(self, statement: VariableDeclaration) -> None:
        """`w : vector(d)` or `f : rkhs(X, rbf(gamma))`"""
        name = statement.name
        found = self._type(statement, _NOT_VARIABLE, "variable")
        type_ = None
        points = kernel = None
        if found is not None and found[0] is Kind.RKHS:
            space = read_space(self, statement)
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
                self.elaborator.points[name] = points

    def _age(self, statement: AgeStatement) -> None:
        """`age lambda in [a, b]`; a second one is complained about elsewhere and does not count."""
        age = read_age(self, statement)
        binding = Binding(statement.name, Role.AGE, None, span=statement.name_span)
        if self._declare(statement.name, statement.name_span, binding) and self.age is None:
            self.age = age


def _article(kind: Kind) -> str:
    return {Kind.RKHS: "an rkhs function", Kind.LABELS: "labels"}.get(kind, f"a {kind.value}")


def _role(binding: Binding) -> str:
    if binding.role is Role.DATA:
        return f"a {binding.type}" if binding.type is not None else "a datum"
    return f"{'an' if binding.role is Role.AGE else 'a'} {binding.role.value}"

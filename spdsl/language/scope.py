"""What names mean at a place of a model: data, parameters, sizes, variables, the age, defines and their arguments.

In: declarations, in the order of the file. Out: bindings for the checker, and where each name was declared and used.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from spdsl.diagnostics import Span, nearest_name
from spdsl.language.record import Record, place
from spdsl.language.signatures import ATOMS
from spdsl.language.tree import DefineStatement, Expression
from spdsl.language.types import Type

__all__ = ["Binding", "FileFacts", "Role", "Scope"]


class Role(Enum):
    """What a name stands for; the value reads well after "the"."""

    DATA = "data"
    PARAMETER = "parameter"
    SIZE = "size"
    VARIABLE = "variable"
    AGE = "age"
    DEFINE = "define"
    ARGUMENT = "argument"


class Binding(Record):
    """One name: its role and type, and what an argument of a `define` stands for.

    `node` is what replaces the name (for an argument), else None; `define` is set for a `define`.
    """

    name: str
    role: Role
    type: Type | None
    node: Expression | None = None
    define: DefineStatement | None = None
    span: Span = place(kw_only=True)


class FileFacts:
    """What all scopes of a file share.

    Attributes
    ----------
    used : set of str
        The names that were looked up.
    declared : dict
        Where each name of the file is declared, also those that come further below.
    under_way : str
        The name whose declaration is being read.
    """

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.declared: dict[str, Span] = {}
        self.under_way = ""


class Scope:
    """The names that can be used; a child scope adds the arguments of a `define`."""

    def __init__(self, parent: Scope | None = None) -> None:
        self._parent = parent
        self._bindings: dict[str, Binding] = {}
        self.file: FileFacts = parent.file if parent is not None else FileFacts()

    def add(self, binding: Binding) -> None:
        """Bind a name, in this scope only."""
        self._bindings[binding.name] = binding

    def find(self, name: str) -> Binding | None:
        """What a name means; notes that it was used."""
        binding = self.peek(name)
        if binding is not None and binding.role is not Role.ARGUMENT:
            self.file.used.add(name)
        return binding

    def peek(self, name: str) -> Binding | None:
        """What a name means, without counting as a use."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._bindings:
                return scope._bindings[name]
            scope = scope._parent
        return None

    def names(self) -> Iterator[str]:
        """All names in sight."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope._bindings
            scope = scope._parent

    def nearest(self, name: str, functions: bool) -> str | None:
        """The known name nearest to a misspelt one; `functions` looks for what can be called."""
        if not functions:
            return nearest_name(name, sorted(self.names()))
        callable_names = [n for n in self.names() if (b := self.peek(n)) and b.role in (Role.DEFINE, Role.VARIABLE)]
        return nearest_name(name, [*sorted(ATOMS), "piecewise", *sorted(callable_names)])

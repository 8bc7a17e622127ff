"""A workbench for expressions: their types in a scope with one name of every kind."""

from __future__ import annotations

from spdsl.diagnostics import ModelError
from spdsl.language import parse
from spdsl.language.complaints import Complaints
from spdsl.language.declarations import Declarations
from spdsl.language.tree import Expression, LossStatement
from spdsl.language.types import Type

DECLARATIONS = """
data
  X : matrix(n, d)
  Z : matrix(m, d)
  y : vector(n)
  c : vector(n)
  s : scalar
  l : labels(n)
  S : symmetric(d)
  G : graph(d)
  g : vector(d)
parameter
  alpha = 0.5
  beta = -2
variable
  w : vector(d)
  u : vector(d)
  W : matrix(d, d)
  M : symmetric(d)
  a : scalar
  b : scalar
  f : rkhs(X, rbf(1))
"""


class Bench:
    """Declarations that are read, and expressions typed one after another."""

    def __init__(self, more: str = "") -> None:
        self.complaints = Complaints()
        tree = parse(DECLARATIONS + more)
        self.declarations = Declarations(tree, self.complaints)
        for statement in tree.statements():
            self.declarations.add(statement)
        self.complaints.raise_if_any()

    def typed(self, text: str) -> tuple[Expression, Type]:
        """The expanded expression and its type; raises the complaints about it."""
        (statement,) = parse(f"minimize loss {text}").statements()
        assert isinstance(statement, LossStatement)
        complaints = Complaints()
        elaborator = self.declarations.elaborator
        before, elaborator.complaints = elaborator.complaints, complaints
        try:
            made, type_ = elaborator.expression(statement.expression)
        finally:
            elaborator.complaints = before
        complaints.raise_if_any()
        assert type_ is not None
        return made, type_

    def type_of(self, text: str) -> Type:
        """The type of an expression."""
        return self.typed(text)[1]

    def codes(self, text: str) -> list[str]:
        """The codes of the complaints about an expression."""
        try:
            self.typed(text)
        except ModelError as error:
            return [diagnostic.code for diagnostic in error.diagnostics]
        return []

"""Affine maps of the variables: z = sum over terms of scale * (matrix acting on a variable) + offset.

In: what the compiler split off from a formula. Out: to back ends a design matrix and an offset (`BoundProblem.design`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spdsl.problem.expressions import Expression

__all__ = ["Predictor", "Term", "TermKind"]

TermKind = Literal["matrix", "identity", "ones", "row", "quadratic_form", "kernel", "trace"]


@dataclass(frozen=True)
class Term:
    """One variable's part in a predictor of m rows.

    `kind` says how the variable enters:

    - ``matrix``: ``matrix @ w``, `matrix` evaluates to (m, d), dense or CSR;
    - ``identity``: the variable itself, flattened row-major (m = its size);
    - ``ones``: a scalar variable, the same in every row;
    - ``row``: ``matrix @ w`` with `matrix` of shape (d,): a scalar (m = 1 or broadcast);
    - ``quadratic_form``: row t is d_t' M d_t with d_t the rows of `matrix` (m, d), M a symmetric variable
    (mahalanobis);
    - ``kernel``: f(X_t) of an rkhs variable at the rows of `matrix`;
    - ``trace``: the trace of a symmetric variable (m = 1).

    `scale` multiplies the rows: None (1), or evaluates to a float or an array (m,).
    """

    variable: str
    kind: TermKind
    matrix: Expression | None = None
    scale: Expression | None = None


@dataclass(frozen=True)
class Predictor:
    """An affine map with `rows` rows (a size's name, a number, or "" for a scalar)."""

    terms: tuple[Term, ...]
    offset: Expression | None = None
    rows: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables in it, without repeats, in order."""
        return tuple(dict.fromkeys(term.variable for term in self.terms))

    def is_variable(self, name: str | None = None) -> bool:
        """Is it exactly one variable (the given one), with no scale and no offset?"""
        if len(self.terms) != 1 or self.offset is not None:
            return False
        term = self.terms[0]
        scalar = term.kind == "ones" and self.rows in ("", "1")
        plain = (term.kind == "identity" or scalar) and term.scale is None
        return plain and (name is None or term.variable == name)

"""Sizes: each name gets one value from all the data that mention it, or a complaint that shows both places.

In: declared dimensions and the shapes of bound arrays. Out: a value for every size.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spdsl.data.complaints import Complaints
from spdsl.problem import Problem

__all__ = ["Sizes"]


@dataclass
class Sizes:
    """Values of sizes, each with the datum that fixed it."""

    values: dict[str, int] = field(default_factory=dict)
    fixed_by: dict[str, tuple[str, str]] = field(default_factory=dict)  # datum, source

    def known(self, dim: str) -> int | None:
        """The value of a size's name or of a literal number; None when nothing fixes it yet."""
        return int(dim) if dim.isdigit() else self.values.get(dim)

    def unify(self, dim: str, value: int, datum: str, source: str, axis: int, complaints: Complaints) -> None:
        """Note that axis `axis` of a datum has `value` entries where `dim` is declared."""
        if dim.isdigit():
            if int(dim) != value:
                what = ("rows", "columns")[axis] if axis < 2 else "entries"
                complaints.add(
                    "SPL412",
                    f"`{datum}` is declared with {dim} {what}, but it has {value}",
                    source or f"argument `{datum}`",
                )
            return
        if dim not in self.values:
            self.values[dim] = value
            self.fixed_by[dim] = (datum, source)
            return
        if self.values[dim] != value:
            other, other_source = self.fixed_by[dim]
            complaints.add(
                "SPL412",
                f"{dim} is {self.values[dim]} by {_named(other, other_source)} but {value} by {_named(datum, source)}",
                source,
            )

    def require(self, problem: Problem, complaints: Complaints) -> None:
        """Complain about every size that a variable uses and no datum mentions (one that failed has its complaint)."""
        mentioned = {dim for dims in _declared_dims(problem) for dim in dims}
        used: dict[str, str] = {}
        for variable in problem.variables:
            for dim in variable.dims:
                used.setdefault(dim, variable.name)
        for dim, owner in used.items():
            if self.known(dim) is None and dim not in mentioned:
                complaints.add(
                    "SPL426",
                    f"no datum fixes the size `{dim}` of `{owner}`",
                    help=[f"use a size of the data, write a number, or give it like a parameter: `{dim}=10`"],
                )


def _declared_dims(problem: Problem) -> list[tuple[str, ...]]:
    return [item.dims for item in problem.data] + [item.dims for item in problem.parameters]


def _named(datum: str, source: str) -> str:
    return f"{datum} ({source})" if source else datum

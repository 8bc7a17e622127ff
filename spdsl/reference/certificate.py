"""`Certificate`: what an independent check of a result found, age by age, and what it makes of it.

In: measurements by `spdsl.reference.checking`. Out: a verdict, failures in sentences, a table, plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Certificate", "CertificateRow"]

COLUMNS = (
    "age",
    "objective",
    "off by",
    "infeasible",
    "KKT residual",
    "weights off",
    "gap to CVX",
    "distance",
    "verdict",
)


@dataclass(frozen=True)
class CertificateRow:
    """The measurements at one point. Every error is scaled; None where it doesn't apply or wasn't made.

    Attributes
    ----------
    age : float or None
    objective : float
        Recomputed from the formulas: sum_j R_j + sum_i [v_i l_i + f(v_i, age)].
    objective_error : float
        What the result claims, against that; relative.
    infeasibility : float
        Largest violation of a constraint, relative to the size of its terms.
    kkt_residual : float
        See `spdsl.reference.stationarity`.
    weight_error : float or None
        By how much the weights miss the least of v l + f(v, age), relative; found by search.
    cvx_objective, gap, distance : float or None
        cvxpy's optimal value of the w-problem at v; by how much the result's lies above it (relative; negative: below);
        and how far the variables are from cvxpy's (relative). A flat optimum makes the distance large, and no failure.
    cvx_status : str
        How cvxpy ended, or why it wasn't asked.
    failures : tuple of str
        What doesn't hold, in sentences.
    """

    age: float | None
    objective: float
    objective_error: float
    infeasibility: float
    kkt_residual: float
    weight_error: float | None = None
    cvx_objective: float | None = None
    gap: float | None = None
    distance: float | None = None
    cvx_status: str = ""
    failures: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Does everything hold here?"""
        return not self.failures


@dataclass(frozen=True)
class Certificate:
    """The verdict on a result: true when everything holds at every age that was checked.

    Attributes
    ----------
    rows : tuple of CertificateRow
    tolerance : float
        Up to which a scaled error passes.
    notes : tuple of str
        What a reader should know: why cvxpy wasn't asked, that an optimum is flat, that convexity was assumed.
    """

    rows: tuple[CertificateRow, ...]
    tolerance: float
    model: str = ""
    backend: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ok(self) -> bool:
        """Does everything hold at every age?"""
        return bool(self.rows) and all(row.ok for row in self.rows)

    @property
    def failures(self) -> tuple[str, ...]:
        """What doesn't hold, in sentences that say at which age."""
        if not self.rows:
            return ("nothing was checked",)
        return tuple(
            failure if row.age is None else f"at age {row.age:.6g}: {failure}"
            for row in self.rows
            for failure in row.failures
        )

    @property
    def worst_kkt_residual(self) -> float:
        """The largest KKT residual of all rows."""
        return max((row.kkt_residual for row in self.rows), default=float("nan"))

    @property
    def worst_gap(self) -> float | None:
        """The largest gap to cvxpy of all rows; None when cvxpy answered nowhere."""
        return max((row.gap for row in self.rows if row.gap is not None), default=None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's head."""
        return COLUMNS

    def table(self) -> list[tuple[str, ...]]:
        """One row of text a point, as wide as `columns`."""
        return [
            (
                "" if row.age is None else f"{row.age:.6g}",
                f"{row.objective:.8g}",
                _small(row.objective_error),
                _small(row.infeasibility),
                _small(row.kkt_residual),
                _small(row.weight_error),
                _small(row.gap)
                if row.gap is not None
                else f"({row.cvx_status.partition(':')[0]})"
                if row.cvx_status
                else "",
                _small(row.distance),
                "ok" if row.ok else "FAILS",
            )
            for row in self.rows
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "ok": self.ok,
            "tolerance": self.tolerance,
            "model": self.model,
            "backend": self.backend,
            "worst_kkt_residual": self.worst_kkt_residual,
            "worst_gap": self.worst_gap,
            "failures": list(self.failures),
            "notes": list(self.notes),
            "rows": [{**asdict(row), "failures": list(row.failures)} for row in self.rows],
        }

    def __str__(self) -> str:
        lines = _aligned([COLUMNS, *self.table()])
        lines.append(self.summary)
        lines += [f"fails {failure}" for failure in self.failures]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """The verdict in one line."""
        count = len(self.rows)
        points = f"{count} point{'' if count == 1 else 's'}"
        if self.ok:
            return f"certified: everything holds to {self.tolerance:g} at {points}"
        wrong = sum(not row.ok for row in self.rows)
        return f"NOT certified: {wrong} of {points} fail{'s' if wrong == 1 else ''} at tolerance {self.tolerance:g}"


def _small(value: float | None) -> str:
    return "" if value is None else "0" if value == 0 else f"{value:.1e}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    shown = [k for k in range(len(widths)) if any(row[k] for row in rows[1:])]
    return ["  ".join(row[k].rjust(widths[k]) for k in shown).rstrip() for row in rows]

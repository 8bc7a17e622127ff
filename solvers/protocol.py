"""What a back end is: a name, options, reasons for refusal, and four small methods over an immutable state.

In: a `Problem` (to refuse it or not) and a `BoundProblem` (to solve it). Out: a `Solution` or a `Path`.
Progress bars, time limits, interrupts and callbacks live in `solvers.driver`, once for all back ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Generic, TypeVar

from spdsl.problem import BoundProblem, Problem
from spdsl.solution import Branch, Path, Solution, Status

__all__ = ["BackEnd", "CommonOptions", "OptionHelp", "option"]

S = TypeVar("S")


def option(default: Any, help: str, choices: tuple[Any, ...] = (), check: Any = None) -> Any:
    """A documented field of an options dataclass; `check(value)` returns a complaint or None."""
    metadata: Mapping[str, Any] = {"help": help, "choices": choices, "check": check}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class CommonOptions:
    """Options that every back end takes; a back end's own options are a subclass, one documented field each.

    Every field carries ``metadata={"help": "...", "choices": (...)}`` (use `option(default, help, choices)`).
    """

    seed: int = option(
        0,
        "seed of every random draw: the same seed, the same bits",
        check=lambda value: None if value >= 0 else "can't be negative",
    )
    time_limit: float = option(
        float("inf"),
        "wall-clock seconds after which the run ends with what it has reached",
        check=lambda value: None if value > 0 else "must be positive",
    )


@dataclass(frozen=True)
class OptionHelp:
    """One option, for `explain`, solvers/README.md and messages."""

    name: str
    default: Any
    help: str
    choices: tuple[Any, ...] = ()


class BackEnd(ABC, Generic[S]):
    """A back end. Instances have no state: everything a run knows is in S, an immutable dataclass."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line: method and source
    options: ClassVar[type[CommonOptions]] = CommonOptions
    explicit_features: ClassVar[bool] = False  # rkhs variables come to it as vectors of features (`solvers.features`)

    @abstractmethod
    def refuses(self, problem: Problem) -> list[str]:
        """Reasons, as sentences, why it can't solve the problem; empty when it can. Looks at structure only."""

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        """Reasons that show only with data and options in hand (sizes, ranges)."""
        return []

    def suits(self, problem: BoundProblem) -> bool:
        """Is it a good choice for these data when nobody named a back end? Where none is, it is taken all the same."""
        return True

    @abstractmethod
    def init(self, problem: BoundProblem, options: Any) -> S:
        """The state before the first step."""

    @abstractmethod
    def step(self, problem: BoundProblem, options: Any, state: S) -> S:
        """One unit of work (a path segment, an epoch, a batch of iterations), about 1 to 200 ms."""

    @abstractmethod
    def done(self, problem: BoundProblem, options: Any, state: S) -> Status | None:
        """None to go on, else how it ended."""

    @abstractmethod
    def finish(self, problem: BoundProblem, options: Any, state: S, status: Status) -> Solution | Path:
        """The answer, also when stopped early (status then says so)."""

    def resume(self, problem: BoundProblem, path: Path) -> Branch | None:
        """The branch of a path that was loaded from a file, rebuilt from its nodes (and `path.options`).

        `path.branch` is None in it, everything else as the back end returned it. None: only the nodes stay known.
        """
        return None

    def progress(self, state: S) -> tuple[float, str]:
        """Fraction done in [0, 1] and a few words for the progress bar."""
        return 0.0, ""

    @classmethod
    def option_help(cls) -> tuple[OptionHelp, ...]:
        """Every option with its default and help."""
        return tuple(
            OptionHelp(
                item.name,
                None if item.default is MISSING else item.default,
                item.metadata.get("help", ""),
                item.metadata.get("choices", ()),
            )
            for item in fields(cls.options)
        )

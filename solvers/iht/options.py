"""The options of the hard-thresholding back ends, each with its meaning, and what they say to the engine.

In: names and values of a `solve` statement. Out: `Settings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from spdsl.solvers.iht.state import Method, Rule, Settings
from spdsl.solvers.protocol import CommonOptions, option

__all__ = ["BlockOptions", "FullOptions", "IhtOptions", "PursuitOptions", "settings_of"]

RULES = ("smoothness", "constant", "backtracking", "normalized")
FULL_PATIENCE = 200  # epochs without progress after which a method without noise is over
PURSUIT_PATIENCE = 30
EFFORTS = ("fast", "medium", "strong", "exact")


def _positive(value: float) -> str | None:
    return None if 0 < value < float("inf") else "must be positive and finite"


def _at_least_one(value: int) -> str | None:
    return None if value >= 1 else "must be at least 1"


def _not_negative(value: float) -> str | None:
    return None if 0 <= value < float("inf") else "can't be negative"


@dataclass(frozen=True)
class IhtOptions(CommonOptions):
    """What all methods take."""

    epochs: int = option(1000, "passes over the samples at most", check=_at_least_one)
    configuration: str = option(
        "own",
        "own: the project's projections, no head, stops at fixed points, the answer is the optimum on its support; "
        "paper: the published experiments' settings (size-targeted Steiner forests, head of p/2 nodes, constant steps "
        "in the loss's own units, the last iterate as it is)",
        choices=("own", "paper"),
    )
    effort: str = option("fast", "how much time a projection onto connected supports takes", choices=EFFORTS)
    restart: int = option(
        10, "every so many projections one starts from scratch, the others near the last support", check=_at_least_one
    )
    fixed_point: int = option(
        3,
        "epochs for which a support stays the same before the optimum on it is computed and tested; 0: never",
        check=_not_negative,
    )
    tail: float = option(
        1.0,
        "project iterates onto supports so many times the size; the answer is cut to the size at the end (own projections)",
        check=lambda value: None if 1 <= value < float("inf") else "must be at least 1",
    )
    tolerance: float = option(
        1e-8,
        "an answer is solved when the largest derivative left on its support is at most this share of the terms in it",
        check=_positive,
    )
    polish: bool = option(True, "end at the optimum on the support that was found")


@dataclass(frozen=True)
class FullOptions(IhtOptions):
    """Methods that take full gradients."""

    step: float = option(
        0.7,
        "step length: in units of 2 / L, the stability limit on the current support (rule smoothness), in the loss's "
        "own units (constant, backtracking), or of the exact line search on the support (normalized)",
        check=_positive,
    )
    rule: str = option("smoothness", "what the step is measured by", choices=RULES)
    head: float = option(
        0.0,
        "project gradients onto supports so many times the size before each step, as the paper does; 0: leave them",
        check=_not_negative,
    )


@dataclass(frozen=True)
class BlockOptions(FullOptions):
    """Methods that take gradients of blocks."""

    epochs: int = option(2000, "passes over the samples at most", check=_at_least_one)
    step: float = option(
        1.0,
        "step length: in units of 2 / L, the stability limit of the block's loss on the current support (rule "
        "smoothness), in the loss's own units (constant, backtracking), or of the exact line search (normalized)",
        check=_positive,
    )
    batch: int = option(0, "samples in a block, contiguous rows; 0: a fifth of them", check=_not_negative)
    blocks: int = option(0, "number of blocks, in place of `batch`", check=_not_negative)
    patience: int = option(
        25,
        "epochs without progress after which the best point is gone back to with 0.8 of the step; 0: never",
        check=_not_negative,
    )
    pursuit: int = option(
        10,
        "every so many epochs go on from near the optimum on the current support, and where progress ends from what "
        "CoSaMP makes of the best point; 0: never",
        check=_not_negative,
    )
    starts: int = option(
        20,
        "begin again at 0 with other draws, at most so often in all, until the fit is perfect or two starts agree",
        check=_at_least_one,
    )


@dataclass(frozen=True)
class PursuitOptions(IhtOptions):
    """CoSaMP: no step, each iteration solves on a merged support."""


def settings_of(method: Method, options: IhtOptions) -> Settings:
    """The engine's settings."""
    paper = options.configuration == "paper"
    given: dict[str, Any] = {
        "restart": 1 if paper else options.restart,
        "fixed_point": 0 if paper else options.fixed_point,
        "limit": 1e3 if paper else float("inf"),
        "merged": float("inf") if paper else 0.9,
        "seed": options.seed,
    }
    if isinstance(options, FullOptions):
        rule = "constant" if paper and options.rule == "smoothness" else options.rule
        unit = 2.0 if rule == "smoothness" else 1.0
        head = options.head if options.head or not paper else 1.0
        given |= {"step": unit * options.step, "rule": cast(Rule, rule), "head": head}
    if isinstance(options, BlockOptions):
        given |= {"batch": options.batch, "blocks": options.blocks, "starts": 1 if paper else options.starts}
        given |= {"patience": 0 if paper else options.patience, "pursuit": 0 if paper else options.pursuit}
    else:
        given |= {"patience": 0 if paper else PURSUIT_PATIENCE if method == "cosamp" else FULL_PATIENCE}
    return Settings(method, **given)

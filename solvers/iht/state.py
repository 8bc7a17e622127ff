"""What a run of hard thresholding is told and where it stands: `Settings` and the immutable `Iterate`.

In: options. Out: the records that the methods of `engine` go from and to, the first one, and the best point of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spdsl.solvers.iht.objective import Objective

__all__ = ["Iterate", "Method", "Rule", "Settings", "begin", "best_point"]

Method = Literal["iht", "niht", "sto_iht", "svrg_iht", "cosamp"]
Rule = Literal["smoothness", "constant", "backtracking", "normalized"]
Array = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """How a method runs.

    Attributes
    ----------
    method : str
    step : float
        Step length, in the units of `rule`.
    rule : str
        ``smoothness``: step / L with L the smoothness of the (block's) loss on the current support; ``constant``: the
        step itself; ``backtracking``: from the step down by 0.8 until the (block's) loss is below its quadratic model;
        ``normalized``: step times the exact line search along the gradient on the current support (NIHT).
    batch : int
        Rows of a block; blocks are contiguous, and the last one takes the rows that are left over.
    blocks : int
        Number of blocks, where `batch` is 0; when both are, blocks are a fifth of the rows.
    head : float
        0 leaves gradients whole; f > 0 projects them onto supports f times the size first (the paper's way).
    restart : int
        Every so many projections one starts from scratch; 1 makes all of them cold.
    fixed_point : int
        Epochs for which a support must have stayed the same before the stop at fixed points is tried; 0 never tries.
    patience : int
        When so many epochs brought no lower objective, block methods go back to the best point with 0.8 of the step;
        when that has been of no use four times, the run is over. The others are over the first time. 0 never stops.
    starts : int
        Block methods whose run is over without a perfect fit begin again at 0 with other draws, at most so many times
        in all; when two starts have ended at the same best support, that is the answer.
    pursuit : int
        Every so many epochs block methods go on from near the optimum on their support; where progress ends, from
        CoSaMP's iterations when these lower the objective. 0 does neither.
    merged : float
        CoSaMP's merged supports have at most so many times as many entries as there are samples, where they can.
    residual : float
        Stop when the objective is at most this; 0 never does (losses with noise).
    limit : float
        An iterate whose norm passes this has diverged; when it is infinite, one that is worse than 0 is taken back and
        the step shortened.
    """

    method: Method
    step: float = 1.0
    rule: Rule = "smoothness"
    batch: int = 0
    blocks: int = 0
    head: float = 0.0
    restart: int = 10
    fixed_point: int = 3
    patience: int = 25
    limit: float = float("inf")
    residual: float = 0.0
    seed: int = 0
    starts: int = 1
    pursuit: int = 10
    merged: float = 0.9


@dataclass(frozen=True)
class Iterate:
    """Where a run stands after an epoch."""

    x: Array
    support: Nodes
    epochs: int = 0
    projections: int = 0
    gradients: float = 0.0  # in units of full gradients
    unchanged: int = 0  # epochs for which the support has stayed the same
    step: float = 0.0  # last step length
    scale: float = 1.0  # what divergences and annealing left of the step
    best: tuple[float, int, Array, Nodes] | None = None  # lowest objective, its epoch, point and support
    objective: float = float("inf")
    fixed: bool = False
    diverged: bool = False
    stalls: int = 0
    tried: float = float("inf")  # objective of the best point from which a merged pursuit was tried
    start: int = 0
    won: tuple[float, int, Array, Nodes] | None = None  # of earlier starts: best objective, how often, point, support
    smoothness: dict[int, float] = field(default_factory=dict)


def begin(objective: Objective, start: Array | None = None) -> Iterate:
    """The zero vector (or a start, whose support is taken as it is)."""
    x = np.zeros(objective.dimension) if start is None else np.array(start, dtype=float)
    support = np.flatnonzero(x[objective.thresholded]).astype(np.int64)
    return Iterate(x, support, objective=objective.value(x, objective.active(support)))


def best_point(at: Iterate) -> tuple[Array, Nodes]:
    """The point with the lowest objective that the run has noted, and its support."""
    noted = min((item for item in (at.best, at.won) if item is not None), key=lambda item: item[0], default=None)
    if noted is not None and noted[0] < at.objective:
        return noted[2], noted[3]
    return at.x, at.support

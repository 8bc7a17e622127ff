"""The lazy engine: the state of a run over d coordinates, advanced by any number of steps at O(nonzeros) each.

In: a `Design`, the compiled loss, a `Setup`. Out: w and b at any time, and the state as arrays (to save).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.dual_averaging.design import Design
from spdsl.solvers.dual_averaging.records import copied, empty_records
from spdsl.solvers.dual_averaging.tables import Block, block_length, make_block

__all__ = ["Engine", "Setup"]

_FORMS = {0: "dual_averaging", 1: "subgradient", 2: "diagonal", 3: "diagonal"}


@dataclass(frozen=True)
class Setup:
    """What is minimized and how, in numbers.

    Attributes
    ----------
    family : int
        0 dual averaging, 1 projected subgradient (eq. 11), 2 AdaGrad-RDA, 3 FTRL-Proximal.
    kind : int
        Weights: `tables.UNIFORM` or `tables.LINEAR`.
    primal : bool
        Gradients at the interpolated w (True) or at the dual iterate z.
    summed : bool
        Keep the sum of a z (needed for w and for the average).
    gamma : float
        Scale of the prox-function (families 0, 1).
    delta, eta : float
        H_j = (delta + sqrt(sum of squares)) / eta (families 2, 3).
    rho : array (1,) or (d,)
        L1 coefficient.
    mu : float
        Ridge: mu |w|^2 / 2.
    bias : array (1,) or (d,)
        Constant added to every stochastic gradient (family 0).
    low, high : arrays (1,) or (d,), of one size
        The box.
    intercept : bool
        Is there an unpenalized scalar b, with bounds `intercept_box` and bias `intercept_bias`?
    batch : int
        Rows in a step.
    scale : float
        What the mean of a batch's gradients is multiplied by: the number of rows, as the losses are summed.
    block : int or None
        Steps in a block of tables; None: chosen by d.
    """

    family: int = 0
    kind: int = 0
    primal: bool = True
    summed: bool = True
    gamma: float = 1.0
    delta: float = 1.0
    eta: float = 1.0
    rho: Array = field(default_factory=lambda: np.zeros(1))
    mu: float = 0.0
    bias: Array = field(default_factory=lambda: np.zeros(1))
    low: Array = field(default_factory=lambda: np.full(1, -np.inf))
    high: Array = field(default_factory=lambda: np.full(1, np.inf))
    intercept: bool = False
    intercept_box: tuple[float, float] = (-np.inf, np.inf)
    intercept_bias: float = 0.0
    batch: int = 1
    scale: float = 1.0
    block: int | None = None

    @property
    def general(self) -> bool:
        """Must every gap be cut where its regime changes (a bias, or a box without 0)?"""
        return bool(np.any(self.bias != 0.0) or np.any(self.low > 0.0) or np.any(self.high < 0.0))


class Engine:
    """A run of a lazy method.

    Parameters
    ----------
    design : Design
        The rows; `feed` swaps them for another chunk of a stream.
    loss : object with numba functions `slope` and `value`, ``(float64, float64[:]) -> float64``
    theta : array (m, p) or (1, p)
        The loss's parameters by row, or shared.
    setup : Setup
    """

    def __init__(self, design: Design, loss: Any, theta: Array, setup: Setup) -> None:
        self.setup = setup
        self.loss = loss
        self.step = 0  # steps made
        d = design.shape[1]
        self.length = setup.block or block_length(d)
        self.state = empty_records(d)
        diagonal = setup.family in (2, 3)
        self.curvature = np.zeros(d if diagonal else 1)
        low, high = setup.intercept_box
        z0 = min(max(0.0, low), high)
        self.intercept = np.array([float(setup.intercept), 0.0, z0, z0, low, high, setup.intercept_bias, 0.0])
        if setup.general:
            self.state[:, 1] = np.clip(0.0, setup.low, setup.high)
            self.state[:, 3] = np.nan
        self.seen = np.zeros(d if setup.batch > 1 else 1, np.int64)
        self.averages = np.zeros((1, 3))
        self._block: Block | None = None
        self._start = 0  # of the current block
        self.feed(design, theta)

    def feed(self, design: Design, theta: Array) -> None:
        """Take the rows from another design (the next chunk of a stream)."""
        self.design = design
        self.theta = np.ascontiguousarray(np.atleast_2d(theta), dtype=float)
        width = min(design.shape[1], design.longest * self.setup.batch)
        self.buffer = np.empty(max(width, 1))

    def track_slopes(self) -> None:
        """Keep each sample's weighted mean slope from now on (what the duality gap is computed from)."""
        if self.averages.shape[0] != max(2, self.design.shape[0]):
            self.averages = np.zeros((max(2, self.design.shape[0]), 3))

    # -- running -----------------------------------------------------------------------------------------------------

    def advance(self, rows: Any) -> None:
        """Make ``len(rows) / batch`` steps over these rows.

        Parameters
        ----------
        rows : int64 array
            Row numbers of the current design, `batch` of them for each step.
        """
        setup, design = self.setup, self.design
        loop = self.loop()
        rows = np.ascontiguousarray(rows, np.int64)
        steps, made = rows.size // setup.batch, 0
        theta_step = 0 if self.theta.shape[0] == 1 else 1
        scale_step, offset_step = design.steps
        while made < steps:
            block = self.block()
            first = self.step - block.start
            if first == block.length:
                self._turn_block(block)
                continue
            count = min(steps - made, block.length - first)
            loop(
                self.loss.slope, self.loss.value, self.theta, theta_step, rows[made * setup.batch :], setup.batch,
                setup.scale / setup.batch,
                design.data, design.indices, design.indptr, design.width,
                design.row_scale, scale_step, design.offset, offset_step,
                self.state, self.curvature, self.intercept, self.seen,
                first, count,
                setup.family, setup.primal, setup.summed, setup.general, setup.delta, setup.eta,
                *self._terms(), self._shape(block), block.weight, block.total,
                block.threshold, block.divisor, block.prefix, block.step,
                self.buffer, self.averages,
            )  # fmt: skip
            made += count
            self.step += count

    def loop(self) -> Any:
        """The compiled loop of this method for these data; the first time ever this takes seconds."""
        from spdsl.solvers.dual_averaging import fast, kernels

        setup = self.setup
        make = kernels.run_any
        if setup.batch == 1 and setup.family == 0 and setup.primal:
            make = fast.run_interpolated
        elif setup.batch == 1 and setup.family in (0, 1) and not setup.primal:
            make = fast.run_averaged
        return make(self.design.data.dtype.name, self.design.indices.dtype.name)

    def block(self) -> Block:
        """The block of tables that holds the current step; at a border, the one that ends there."""
        if self._block is None:
            self._block = self._make_block(self._start)
        return self._block

    def _make_block(self, start: int) -> Block:
        setup = self.setup
        return make_block(_FORMS[setup.family], setup.kind, start, self._length(start), setup.gamma, setup.mu)

    def _length(self, start: int) -> int:
        """Steps in the block that starts at `start`.

        A ridge makes eq. 11 shrink coordinates by a factor at every step. Over a block they must not shrink by much
        more than e, or the prefix sums would lose the digits of what came late.
        """
        setup = self.setup
        if setup.family != 1 or setup.mu == 0.0:
            return self.length
        reach = (np.sqrt(start) + 0.5 * setup.gamma / setup.mu) ** 2 - start
        return int(min(max(reach, 1.0), self.length))

    def _turn_block(self, block: Block) -> None:
        from spdsl.solvers.dual_averaging import kernels

        setup = self.setup
        following = self._make_block(block.start + block.length)
        kernels.settle(
            block.length, setup.family, setup.summed, setup.general, setup.delta, setup.eta,
            self.state, self.curvature, *self._terms(), self._shape(block),
            block.threshold, block.divisor, block.prefix,
            following.threshold, following.divisor, following.prefix,
        )  # fmt: skip
        self._block, self._start = following, following.start

    def _terms(self) -> tuple[Any, ...]:
        setup = self.setup
        step = [1 if part.size > 1 else 0 for part in (setup.rho, setup.bias, setup.low)]
        return setup.rho, step[0], setup.bias, step[1], setup.low, setup.high, step[2]

    def _shape(self, block: Block) -> Array:
        setup = self.setup
        curved = 1.0 if setup.family == 0 else 0.0
        return np.array([setup.kind, block.start, setup.gamma, setup.mu, curved])

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def weight_sum(self) -> float:
        """A_k of the current step."""
        block = self.block()
        return float(block.total[self.step - block.start])

    def individual(self) -> tuple[Array, float]:
        """Where the next gradient would be taken."""
        return self.mean() if self.setup.primal else self.dual()

    def dual(self) -> tuple[Array, float]:
        """The dual iterate (z, b)."""
        return self._read(True), float(self.intercept[3])

    def mean(self) -> tuple[Array, float]:
        """The weighted mean of the dual iterates: the interpolated w, or the average."""
        total = self.weight_sum
        return self._read(False) / total, float(self.intercept[2]) / total

    def _read(self, dual: bool) -> Array:
        from spdsl.solvers.dual_averaging import kernels

        setup, block = self.setup, self.block()
        out = np.empty(self.state.shape[0])
        kernels.read(
            self.step - block.start, dual, setup.family, setup.delta, setup.eta, self.state, self.curvature,
            *self._terms(), self._shape(block), block.threshold, block.divisor, block.prefix, out,
        )  # fmt: skip
        return out

    # -- saving ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The state as arrays: with the same design and setup, `restore` goes on with the same bits."""
        return {
            "step": np.int64(self.step),
            "start": np.int64(self._start),
            "state": self.state.copy(),
            "curvature": self.curvature.copy(),
            "intercept": self.intercept.copy(),
            "averages": self.averages.copy(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot.

        Raises
        ------
        ValueError
            When it was taken with another number of features.
        """
        state = np.asarray(snapshot["state"], float)
        if state.shape != self.state.shape:
            raise ValueError(f"the snapshot holds {state.shape[0]} features, this run {self.state.shape[0]}")
        self.step, self._start = int(snapshot["step"]), int(snapshot["start"])
        self.state = copied(state)
        self.curvature = np.array(snapshot["curvature"], float)
        self.intercept = np.array(snapshot["intercept"], float)
        self.averages = np.array(snapshot["averages"], float)
        self._block = None

"""COMID for a metric M and a threshold mu: the loop over pairs (Kunapuli & Shavlik 2012, Algorithm 1).

In: pairs' differences with their margins' signs, a loss derivative, settings, an order of pairs. Out: the state
after them, with the margins and traces met on the way. A state is never changed: `advance` works on a copy and
returns a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from spdsl.diagnostics import Diagnostic, SolverError, UsageError
from spdsl.problem.functions import Array
from spdsl.solvers.comid.averaging import Average
from spdsl.solvers.comid.divergences import Divergence, Penalty
from spdsl.solvers.comid.losses import MarginLoss
from spdsl.solvers.comid.naive import Full
from spdsl.solvers.comid.representation import Block
from spdsl.solvers.comid.representations import Representation, start

__all__ = ["AVERAGES", "SCHEDULES", "MetricState", "PairSet", "Settings", "Trace", "advance", "begin", "pairs_of"]

Derivative = Callable[[np.ndarray, Array], Array]
_STEEPEST = 1e100
_NONE = np.empty(0)
AVERAGES = ("none", "uniform", "linear")
SCHEDULES = ("sqrt", "constant", "inverse")


@dataclass(frozen=True)
class PairSet:
    """T pairs: z_t = offset_t + slope_t mu - sign_t u_t'M u_t, and the loss sum_t phi_t(z_t).

    Attributes
    ----------
    U : array (T, d), C-contiguous
        Differences u = x - z.
    sign, slope, offset : arrays (T,)
        For the margin y (mu - u'Mu) of eq. 3: y, y, 0.
    derivative : callable
        ``derivative(indices, z)``: phi_t'(z_t) for the pairs `indices` (k,), shape (k,).
    low, high : arrays (T,)
        phi_t' = 0 exactly for low <= z < high.
    scale : float
        What multiplies a single pair's loss to estimate the whole loss without bias: T for a sum over pairs (so a
        loss divided by T comes out as itself), 1 where phi is the mean's summand already.
    """

    U: Array
    sign: Array
    slope: Array
    offset: Array
    derivative: Derivative
    low: Array
    high: Array
    scale: float = 1.0

    def __len__(self) -> int:
        return len(self.U)


def pairs_of(U: Array, y: Array, loss: MarginLoss) -> PairSet:
    """Pairs with margin y (mu - u'Mu) under a loss of the margin; U (T, d), y (T,) of -1.0 and +1.0."""
    y = np.asarray(y, float)
    T = len(y)
    return PairSet(
        np.ascontiguousarray(U, float), y, y, np.zeros(T), lambda _, z: loss.derivative(z),
        np.full(T, loss.flat[0]), np.full(T, loss.flat[1]),
    )  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How to run.

    Attributes
    ----------
    step, schedule : float, str
        eta_t is step / sqrt(t) (``sqrt``), step (``constant``) or step / t (``inverse``), t = 1, 2, ...
    batch : int
        Pairs a step; their gradients are averaged.
    average : str
        Which iterate is the result: the last (``none``), the mean of all (``uniform``) or the mean with weights t
        (``linear``).
    mu_lower, mu_upper : float
        The least mu (1 in eq. 4) and the largest; -inf and inf for none.
    reference : bool
        Use a full eigendecomposition in every step.
    """

    divergence: Divergence
    penalty: Penalty
    step: float = 0.1
    schedule: Literal["sqrt", "constant", "inverse"] = "sqrt"
    batch: int = 1
    average: Literal["none", "uniform", "linear"] = "none"
    mu_lower: float = 1.0
    mu_upper: float = np.inf
    reference: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.step) and self.step > 0):
            raise UsageError(Diagnostic("SPL561", f"`step` is {self.step!r}; it must be finite and > 0"))
        if self.batch < 1:
            raise UsageError(Diagnostic("SPL561", f"`batch` is {self.batch!r}; it must be at least 1"))
        for name, known in (("schedule", SCHEDULES), ("average", AVERAGES)):
            if getattr(self, name) not in known:
                raise UsageError(
                    Diagnostic(
                        "SPL561", f"`{name}` can't be {getattr(self, name)!r}", help=(f"one of: {', '.join(known)}",)
                    )
                )

    def etas(self, first: int, count: int) -> Array:
        """eta_t for t = first, ..., first + count - 1 (t from 1)."""
        t = np.arange(first, first + count, dtype=float)
        if self.schedule == "sqrt":
            return np.asarray(self.step / np.sqrt(t))
        if self.schedule == "inverse":
            return self.step / t
        return np.full(count, self.step)

    def iterate_weights(self, before: int, count: int) -> Array:
        """Weights in the average of the iterates from which steps before + 1, ..., before + count start."""
        return np.arange(before + 1, before + count + 1, dtype=float) if self.average == "linear" else np.ones(count)


@dataclass(frozen=True)
class MetricState:
    """Where a run stands: M (by its representation), mu, the number of steps made, the running average."""

    representation: Representation
    mu: float
    steps: int
    average: Average
    gradients: int = 0  # steps that needed a gradient

    def metric(self, settings: Settings) -> tuple[Array, float]:
        """The result (M, mu), averaged or last as the settings say; M (d, d)."""
        if settings.average == "none" or self.average.weight == 0.0:
            return self.representation.matrix(), self.mu
        return self.average.matrix(), self.average.mu


@dataclass(frozen=True)
class Trace:
    """What was met at each pair, under the iterate before the step: its margin and tr M."""

    margins: Array = field(default_factory=lambda: np.empty(0))
    traces: Array = field(default_factory=lambda: np.empty(0))


def begin(d: int, settings: Settings, mu: float = 1.0) -> MetricState:
    """M_0 = I, mu_0 = 1 (or the least mu, where that is larger)."""
    if settings.reference or not settings.penalty.is_spectral:
        representation: Representation = Full.identity(settings.divergence, d)
    else:
        representation = start(settings.divergence, d, settings.penalty)
    return MetricState(representation, min(max(mu, settings.mu_lower), settings.mu_upper), 0, Average(d))


def advance(
    state: MetricState, settings: Settings, pairs: PairSet, order: np.ndarray, want_traces: bool = False
) -> tuple[MetricState, Trace]:
    """One step for each pair (or batch of pairs) of `order`, in that order.

    Parameters
    ----------
    order : array of int (k,)
        Indices of pairs; with ``batch`` > 1 its length should be a multiple of it, or the last batch is shorter.
    want_traces : bool
        Fill in tr M also where that costs a decomposition (else nan there).

    Raises
    ------
    SolverError
        When a step is unbounded (Burg) or leaves floating point (von Neumann).
    """
    twin = state.representation.copy()
    state = replace(state, representation=twin, average=state.average.copy(state.representation, twin))
    if settings.batch == 1:
        return _one_by_one(state, settings, pairs, order, want_traces)
    return _by_batches(state, settings, pairs, order, want_traces)


def _one_by_one(
    state: MetricState, settings: Settings, pairs: PairSet, order: np.ndarray, want_traces: bool
) -> tuple[MetricState, Trace]:
    count = len(order)
    etas = settings.etas(state.steps + 1, count)
    block = Block(
        np.ascontiguousarray(pairs.U[order]), pairs.sign[order], pairs.slope[order], pairs.offset[order],
        pairs.low[order], pairs.high[order], etas * settings.penalty.trace, np.empty(count), np.empty(count),
    )  # fmt: skip
    M, mu, gradients = state.representation, state.mu, state.gradients
    iterate_weights = settings.iterate_weights(state.steps, count)
    t = 0
    while t < count:
        scanning = M.scans and settings.penalty.is_shift
        first, tau = t, M.tau
        if scanning:
            t = M.scan(block, t, mu)
        if settings.average != "none":
            taus = np.add.accumulate(np.append(tau, block.shrink[first : min(t, count - 1)]))
            state.average.observe(M, iterate_weights[first : t + 1], taus, mu)
            if t < count:
                state.average.settle()
        if t == count:
            break
        u = block.U[t : t + 1]
        if not scanning:
            block.margins[t] = block.offset[t] + block.slope[t] * mu - block.sign[t] * M.squares(u)[0]
            block.traces[t] = M.trace() if want_traces else np.nan
        scaled = settings.penalty.scaled(float(etas[t]))
        if block.low[t] <= block.margins[t] < block.high[t]:
            M = M.step(u[:0], _NONE, scaled)
        else:
            g = _slopes(pairs, order[t : t + 1], block.margins[t : t + 1]) * (etas[t] * pairs.scale)
            if g[0] == 0.0:
                M = M.step(u[:0], _NONE, scaled)
            else:
                gradients += 1
                M = M.step(u, g * block.sign[t], scaled)
                mu = _mu_step(settings, mu, float(g[0] * block.slope[t]))
        t += 1
    return MetricState(M, mu, state.steps + count, state.average, gradients), Trace(block.margins, block.traces)


def _by_batches(
    state: MetricState, settings: Settings, pairs: PairSet, order: np.ndarray, want_traces: bool
) -> tuple[MetricState, Trace]:
    size = settings.batch
    starts = range(0, len(order), size)
    etas = settings.etas(state.steps + 1, len(starts))
    iterate_weights = settings.iterate_weights(state.steps, len(starts))
    M, mu, gradients = state.representation, state.mu, state.gradients
    margins, traces = np.empty(len(order)), np.empty(len(order))
    for number, begin_at in enumerate(starts):
        batch = order[begin_at : begin_at + size]
        U, sign, slope = pairs.U[batch], pairs.sign[batch], pairs.slope[batch]
        z = pairs.offset[batch] + slope * mu - sign * M.squares(U)
        margins[begin_at : begin_at + size], traces[begin_at : begin_at + size] = (
            z,
            (M.trace() if want_traces else np.nan),
        )
        if settings.average != "none":
            state.average.observe(M, iterate_weights[number : number + 1], np.array([M.tau]), mu)
        state.average.settle()
        flat = (pairs.low[batch] <= z) & (z < pairs.high[batch])
        g = np.where(flat, 0.0, _slopes(pairs, batch, z)) * (etas[number] * pairs.scale / len(batch))
        active = g != 0.0
        gradients += int(active.any())
        M = M.step(np.ascontiguousarray(U[active]), (g * sign)[active], settings.penalty.scaled(float(etas[number])))
        mu = _mu_step(settings, mu, float(g @ slope))
    return MetricState(M, mu, state.steps + len(starts), state.average, gradients), Trace(margins, traces)


def _slopes(pairs: PairSet, indices: np.ndarray, z: Array) -> Array:
    """phi' at the margins.

    Raises
    ------
    SolverError
        When one is huge or no number.
    """
    slopes = pairs.derivative(indices, z)
    if not float(np.abs(slopes).max(initial=0.0)) < _STEEPEST:  # so written that a nan is caught too
        raise SolverError(
            Diagnostic(
                "SPL560",
                f"the margins grew without bound: a loss's slope is {np.abs(slopes).max():.3g}",
                help=("lower `step`, or scale the pairs' differences down",),
            )
        )
    return slopes


def _mu_step(settings: Settings, mu: float, g: float) -> float:
    if g == 0.0:
        return mu
    return min(max(settings.divergence.scalar_step(mu, g), settings.mu_lower), settings.mu_upper)

"""The back ends of hard thresholding: eight names over one engine.

In: a `BoundProblem` with a support constraint. Out: a `Solution` whose support is in the set, with the subgraph, a
history by epoch and the residual of the optimum on the support.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from spdsl.diagnostics import UsageError
from spdsl.problem import BoundProblem, Problem
from spdsl.solution import History, Solution, Status
from spdsl.solvers.iht.binding import fixed_age, graph_of, objective_of, support_set_of
from spdsl.solvers.iht.engine import epoch
from spdsl.solvers.iht.objective import Objective
from spdsl.solvers.iht.options import BlockOptions, FullOptions, IhtOptions, PursuitOptions, settings_of
from spdsl.solvers.iht.restricted import restricted_optimum, restricted_residual
from spdsl.solvers.iht.state import Iterate, Method, Settings, begin, best_point
from spdsl.solvers.iht.structure import reasons
from spdsl.solvers.iht.support_sets import EnlargedSet, SupportSet
from spdsl.solvers.protocol import BackEnd, CommonOptions

__all__ = [
    "IHT",
    "NIHT",
    "CoSaMP",
    "GraphCoSaMP",
    "GraphIHT",
    "GraphStoIHT",
    "GraphSvrgIHT",
    "StoIHT",
]

_HISTORY = ("iteration", "objective", "nonzeros", "projections", "gradients", "step", "seconds")
_PUBLISHED_STOP = 1e-14  # of the objective at 0: the published runs stop when |y - Xw| falls to 1e-7
_WORK = 0.05  # seconds of epochs in one step of the driver


@dataclass(frozen=True)
class IhtState:
    """Where a run stands; objective and set are shared, never changed."""

    objective: Objective
    supports: SupportSet
    settings: Settings
    inner: Iterate
    history: tuple[tuple[float, ...], ...] = ()
    started: float = field(default_factory=time.monotonic)


class _HardThresholding(BackEnd[IhtState]):
    """What the eight back ends share."""

    method: ClassVar[Method]
    kinds: ClassVar[tuple[str, ...]] = ("sparse", "groups", "union_of")
    twin: ClassVar[str] = "graph_sto_iht"

    def refuses(self, problem: Problem) -> list[str]:
        return reasons(problem, self.kinds, self.twin)

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        assert isinstance(options, IhtOptions)
        said: list[str] = []
        if isinstance(options, BlockOptions) and options.batch and options.blocks:
            said.append("`batch` and `blocks` both say how long a block is: give one of them")
        if options.configuration == "paper" and options.tail != 1.0:
            said.append("the published projections have tails of 1 to 1.1 times the size: leave `tail` out")
        try:
            support_set_of(problem, options.effort, options.configuration == "paper")
        except UsageError as error:
            said += [item.message for item in error.diagnostics]
        return said

    def init(self, problem: BoundProblem, options: IhtOptions) -> IhtState:
        objective = objective_of(problem)
        paper = options.configuration == "paper"
        supports = support_set_of(problem, options.effort, paper)
        if options.tail > 1.0:
            supports = EnlargedSet(supports, options.tail)
        settings = settings_of(self.method, options)
        if paper:
            settings = replace(settings, residual=_PUBLISHED_STOP * objective.at_zero)
        return IhtState(objective, supports, settings, begin(objective))

    def step(self, problem: BoundProblem, options: IhtOptions, state: IhtState) -> IhtState:
        inner, rows = state.inner, list(state.history)
        started = time.monotonic()
        while not (inner.fixed or inner.diverged) and inner.epochs < options.epochs:
            inner = epoch(state.objective, state.supports, state.settings, inner)
            seconds = time.monotonic() - state.started
            counts = (inner.support.size, inner.projections, inner.gradients)
            rows.append((inner.epochs, inner.objective, *counts, inner.step, seconds))
            if time.monotonic() - started > _WORK:
                break
        return IhtState(state.objective, state.supports, state.settings, inner, tuple(rows), state.started)

    def done(self, problem: BoundProblem, options: IhtOptions, state: IhtState) -> Status | None:
        if state.inner.diverged:
            return Status.DIVERGED
        if state.inner.fixed:
            return Status.SOLVED
        if state.inner.epochs < options.epochs:
            return None
        return Status.FINISHED if options.configuration == "paper" else Status.ITERATION_LIMIT

    def finish(self, problem: BoundProblem, options: IhtOptions, state: IhtState, status: Status) -> Solution:
        objective = state.objective
        x, support = best_point(state.inner)
        larger = isinstance(state.supports, EnlargedSet) or support.size > state.supports.size
        if larger or (support.size == 0 and options.polish):
            # The published projections may overshoot, a tail above 1 does; what is returned is in the set.
            support = support_set_of(problem, options.effort, published=False).tail(self._proxy(state, x, support))
        active = objective.active(support)
        kept = np.zeros_like(x)
        kept[active] = x[active]
        if options.polish and options.configuration == "own":
            kept = restricted_optimum(objective, kept, active)
        residual = restricted_residual(objective, kept, active)
        message = ""
        if (
            status is Status.SOLVED
            and options.polish
            and residual > options.tolerance
            and options.configuration == "own"
        ):
            status, message = Status.STALLED, f"the optimum on the support is reached to {residual:.1e} only"
        age = fixed_age(problem)
        columns = np.array(state.history, dtype=float).reshape(-1, len(_HISTORY)).T
        return Solution(
            bound=problem,
            x=kept,
            status=status,
            objective=problem.objective(kept, age),
            backend=self.name,
            age=age,
            message=message,
            kkt_residual=residual,
            history=History(dict(zip(_HISTORY, columns))),
            extra=_support_results(problem, support),
            statistics={
                "epochs": float(state.inner.epochs),
                "projections": float(state.inner.projections),
                "gradients": float(state.inner.gradients),
                "support": float(support.size),
            },
        )

    @staticmethod
    def _proxy(state: IhtState, x: Any, support: Any) -> Any:
        """What the last projection projects: the iterate, or minus the gradient where the iterate is 0."""
        where = state.objective.thresholded
        if support.size:
            return x[where]
        return -state.objective.gradient(x, state.objective.active(support))[where]

    def progress(self, state: IhtState) -> tuple[float, str]:
        inner = state.inner
        return inner.epochs / (inner.epochs + 50.0), f"epoch {inner.epochs}, objective {inner.objective:.6g}"


def _support_results(problem: BoundProblem, support: Any) -> dict[str, Any]:
    """The support; for a graph its subgraph (node pairs, costs, pieces, cost of a spanning forest), and a grid's shape."""
    graph = graph_of(problem)
    if graph is None:
        return {"support": support}
    inside = graph.inner_edges(support)
    pieces = graph.components_of(support)
    label = np.zeros(support.size, dtype=np.int64)
    for k, piece in enumerate(pieces):
        label[np.searchsorted(support, piece)] = k
    shape = graph.grid_shape
    return {
        **({} if shape is None else {"grid": np.array(shape)}),
        "support": support,
        "subgraph_edges": graph.edges[inside],
        "subgraph_costs": graph.costs[inside],
        "component_of": label,
        "components": float(len(pieces)),
        "forest_cost": graph.forest_cost(support),
    }


class IHT(_HardThresholding):
    """Iterative hard thresholding."""

    name = "iht"
    summary = "iterative hard thresholding on sparse or group supports (Blumensath & Davies 2009)"
    options = FullOptions
    method = "iht"


class NIHT(_HardThresholding):
    """Normalized iterative hard thresholding."""

    name = "niht"
    summary = "iterative hard thresholding with normalized steps (Blumensath & Davies 2010)"
    options = FullOptions
    method = "niht"


class StoIHT(_HardThresholding):
    """Stochastic iterative hard thresholding."""

    name = "sto_iht"
    summary = "stochastic iterative hard thresholding on blocks of samples (Nguyen, Needell & Woolf 2017)"
    options = BlockOptions
    method = "sto_iht"


class CoSaMP(_HardThresholding):
    """Compressive sampling matching pursuit."""

    name = "cosamp"
    summary = "compressive sampling matching pursuit for any smooth loss (Needell & Tropp 2009)"
    options = PursuitOptions
    method = "cosamp"


class _OnGraphs(_HardThresholding):
    kinds = ("connected",)
    twin = "sto_iht"


class GraphIHT(_OnGraphs):
    """IHT over connected supports."""

    name = "graph_iht"
    summary = "iterative hard thresholding on connected supports (Hegde, Indyk & Schmidt 2015)"
    options = FullOptions
    method = "iht"


class GraphCoSaMP(_OnGraphs):
    """CoSaMP over connected supports."""

    name = "graph_cosamp"
    summary = "CoSaMP on connected supports (Hegde, Indyk & Schmidt 2015)"
    options = PursuitOptions
    method = "cosamp"


class GraphStoIHT(_OnGraphs):
    """Stochastic IHT over connected supports."""

    name = "graph_sto_iht"
    summary = "stochastic iterative hard thresholding on connected supports (Zhou, Chen & Ying 2019)"
    options = BlockOptions
    method = "sto_iht"


class GraphSvrgIHT(_OnGraphs):
    """Variance-reduced stochastic IHT over connected supports."""

    name = "graph_svrg_iht"
    summary = "stochastic hard thresholding on connected supports with variance-reduced gradients"
    options = BlockOptions
    method = "svrg_iht"

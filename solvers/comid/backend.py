"""The back end `comid`: composite objective mirror descent for a metric over the PSD cone, or for a vector.

In: a `BoundProblem` that passes `structure`. Out: a `Solution` after the passes asked for, with a history by pass.
Sources: Kunapuli & Shavlik (2012) for metrics; Duchi, Shalev-Shwartz, Singer & Tewari (2010) for COMID.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spdsl.diagnostics import SolverError
from spdsl.problem import BoundProblem, Problem
from spdsl.problem.functions import Array
from spdsl.solution import History, Solution, Status
from spdsl.solvers.comid.bind import (
    Slopes,
    VectorTask,
    fixed_age,
    metric_pairs,
    metric_penalty,
    scalar_bounds,
    vector_task,
)
from spdsl.solvers.comid.divergences import Penalty
from spdsl.solvers.comid.engine import MetricState, PairSet, Settings, advance, begin
from spdsl.solvers.comid.options import ComidOptions, mirror_of, settings_of
from spdsl.solvers.comid.polish import LARGEST_SIDE, Polisher, PolishState, polishing_bytes
from spdsl.solvers.comid.structure import is_metric, metric_reasons, vector_reasons
from spdsl.solvers.comid.vector import VectorMirror, refusal
from spdsl.solvers.comid.vector_engine import VectorState, advance_vector, begin_vector, flat_vector
from spdsl.solvers.protocol import BackEnd, CommonOptions

__all__ = ["Comid", "ComidState"]

_COMPILE_FROM = 3000  # steps from which compiling the loss's scalar kernel pays
_POLISH_MEMORY = 2e9  # bytes
_HISTORY = ("iteration", "objective", "online_objective", "gradients", "seconds")


@dataclass(frozen=True)
class ComidState:
    """Where a run stands; the data in it are shared, never changed."""

    settings: Settings
    slopes: Slopes
    inner: MetricState | VectorState
    pairs: PairSet | None = None  # of a metric
    scale: float = 1.0
    task: VectorTask | None = None  # of a vector
    mirror: VectorMirror | None = None
    passes: int = 0  # finished
    position: int = 0  # samples seen in this pass
    order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    online: float = 0.0  # sum over steps of the loss and regularizer met
    history: tuple[tuple[float, ...], ...] = ()
    started: float = 0.0
    failure: str = ""
    polisher: Polisher | None = None
    polished: PolishState | None = None


class Comid(BackEnd[ComidState]):
    """Composite objective mirror descent."""

    name = "comid"
    summary = (
        "composite objective mirror descent, online, for metrics of low rank and for vectors (Kunapuli & Shavlik 2012)"
    )
    options = ComidOptions

    def refuses(self, problem: Problem) -> list[str]:
        return metric_reasons(problem) if is_metric(problem) else vector_reasons(problem)

    def refuses_data(self, problem: BoundProblem, options: CommonOptions) -> list[str]:
        assert isinstance(options, ComidOptions)
        if is_metric(problem.problem):
            return self._refuses_pairs(problem, options)
        name, _ = mirror_of(options)
        if name == "burg":
            return ["its burg divergence is for metrics; a vector takes euclidean, entropic or p_norm(p)"]
        task = vector_task(problem)
        if options.scale != "none":
            return ["its option `scale` is for metrics"]
        if options.polish:
            return ["its option `polish` is for metrics"]
        complaint = refusal(name, task.domain, task.ridge > 0.0)
        if complaint is None and name == "entropic" and not np.isfinite(task.domain.upper - task.domain.lower).all():
            complaint = "its entropic map needs a box that is bounded on both sides"
        return [complaint] if complaint else []

    def _refuses_pairs(self, problem: BoundProblem, options: ComidOptions) -> list[str]:
        penalty = metric_penalty(problem)
        reasons = self._refuses_polish(problem, penalty) if options.polish else []
        scalar = _scalar(problem.problem)
        lower = -np.inf if scalar is None else scalar_bounds(problem, scalar)[0]
        divergence = settings_of(options, penalty, lower, np.inf).divergence
        if scalar is not None and divergence.name in ("von_neumann", "burg") and lower < 0.0:
            reasons.append(f"under {divergence.name} a scalar stays positive: add a bound such as `{scalar} >= 1`")
        return reasons

    def _refuses_polish(self, problem: BoundProblem, penalty: Penalty) -> list[str]:
        if problem.problem.self_paced is not None:
            return ["its option `polish` needs a convex model, and this one is self-paced"]
        if not penalty.is_spectral:
            return ["its option `polish` knows no exact step for norm1 of a matrix"]
        M = next(v.name for v in problem.problem.variables if v.kind == "symmetric")
        d, T = problem.layout.shapes[M][0], problem.n_samples
        need, side = polishing_bytes(T, d), min(T, d * (d + 1) // 2 + 1)
        if need > _POLISH_MEMORY or side > LARGEST_SIDE:
            return [
                f"polishing {T} pairs of {d} features takes {need / 1e9:.1f} GB and the decomposition of a matrix of side "
                f"{side} (at most {_POLISH_MEMORY / 1e9:g} GB and {LARGEST_SIDE}): leave out `polish`"
            ]
        return []

    def init(self, problem: BoundProblem, options: ComidOptions) -> ComidState:
        slopes = Slopes(problem, _COMPILE_FROM - options.passes * problem.n_samples)
        now = time.monotonic()
        if not is_metric(problem.problem):
            task = vector_task(problem)
            name, p = mirror_of(options)
            mirror = VectorMirror(name, task.domain, task.l1, task.ridge, p)
            settings = settings_of(replace(options, divergence="squared_frobenius"), Penalty(), -np.inf, np.inf)
            return ComidState(settings, slopes, begin_vector(task, mirror), task=task, mirror=mirror, started=now)
        pairs = metric_pairs(problem, slopes)
        scalar = _scalar(problem.problem)
        lower, upper = (-np.inf, np.inf) if scalar is None else scalar_bounds(problem, scalar)
        settings = settings_of(options, metric_penalty(problem), lower, upper)
        scale = _median_norm(pairs.U) if options.scale == "median" else 1.0
        if scale != 1.0:
            pairs = replace(pairs, U=pairs.U / scale)
        return ComidState(settings, slopes, begin(pairs.U.shape[1], settings), pairs=pairs, scale=scale, started=now)

    def step(self, problem: BoundProblem, options: ComidOptions, state: ComidState) -> ComidState:
        if state.passes >= options.passes:
            return self._polish(state, options.tolerance)
        T = problem.n_samples
        order = state.order
        if state.position == 0:
            rng = np.random.default_rng([options.seed, state.passes])
            order = rng.permutation(T) if options.shuffle else np.arange(T)
        chunk = order[state.position : state.position + self._chunk(state, T)]
        try:
            inner, online = self._advance(state, chunk, T)
        except SolverError as error:
            return replace(state, failure=error.diagnostics[0].message)
        position = state.position + len(chunk)
        state = replace(state, inner=inner, online=state.online + online, order=order, position=position)
        if position < T:
            return state
        state = replace(state, position=0, passes=state.passes + 1)
        row = (
            float(inner.steps),
            problem.objective(self._flat(problem, state), fixed_age(problem)),
            state.online / (T * state.passes),
            float(inner.gradients),
            time.monotonic() - state.started,
        )
        return replace(state, history=(*state.history, row))

    def _chunk(self, state: ComidState, T: int) -> int:
        width = state.pairs.U.shape[1] if state.pairs is not None else 16
        size = int(np.clip(100_000 // width, 64, 2048))
        return max(size // state.settings.batch, 1) * state.settings.batch

    def _advance(self, state: ComidState, chunk: np.ndarray, T: int) -> tuple[MetricState | VectorState, float]:
        """The state after a chunk, and the sum of the objective's summands met on it."""
        if state.pairs is None:
            assert isinstance(state.inner, VectorState)
            assert state.task is not None
            assert state.mirror is not None
            after = advance_vector(state.inner, state.task, state.mirror, state.slopes, state.settings, chunk)
            return after, after.online - state.inner.online
        assert isinstance(state.inner, MetricState)
        metric, trace = advance(state.inner, state.settings, state.pairs, chunk)
        met = float(state.slopes.values(chunk, trace.margins).sum()) * T
        if state.settings.penalty.is_shift:
            met += state.settings.penalty.trace * float(trace.traces.sum())
        else:
            met = float("nan")  # the other penalties are not followed step by step
        return metric, met

    def _polish(self, state: ComidState, tolerance: float) -> ComidState:
        """Some iterations more towards the optimum of the batch objective, the first time after its decomposition."""
        assert state.pairs is not None
        assert isinstance(state.inner, MetricState)
        if state.polisher is None or state.polished is None:
            settings = state.settings
            polisher = Polisher(state.pairs, state.slopes.prox, settings.penalty, settings.mu_lower, settings.mu_upper)
            M, mu = state.inner.metric(settings)
            everyone = np.arange(len(state.pairs))
            u = np.einsum("ij,ij->i", state.pairs.U @ M, state.pairs.U)
            z = state.pairs.offset + state.pairs.slope * mu - state.pairs.sign * u
            return replace(state, polisher=polisher, polished=polisher.start(M, mu, state.slopes(everyone, z)))
        iterations = int(np.clip(2e7 / state.polisher.A.size, 5, 100))
        return replace(state, polished=state.polisher.advance(state.polished, iterations, tolerance))

    def done(self, problem: BoundProblem, options: ComidOptions, state: ComidState) -> Status | None:
        if state.failure:
            return Status.DIVERGED
        if state.passes < options.passes:
            return None
        if not options.polish:
            return Status.FINISHED
        if state.polished is None:
            return None
        if state.polished.residual <= options.tolerance:
            return Status.SOLVED
        return Status.ITERATION_LIMIT if state.polished.iterations >= options.polish_limit else None

    def finish(self, problem: BoundProblem, options: ComidOptions, state: ComidState, status: Status) -> Solution:
        x = self._flat(problem, state)
        columns = np.array(state.history, dtype=float).reshape(-1, len(_HISTORY)).T
        extra: dict[str, Any] = {}
        statistics = {"steps": float(state.inner.steps), "gradients": float(state.inner.gradients)}
        if state.pairs is not None:
            extra, more = self._metric_results(problem, x)
            statistics |= {**more, "scale": state.scale}
            if state.polished is not None:
                statistics["polishing_iterations"] = float(state.polished.iterations)
        return Solution(
            bound=problem,
            x=x,
            status=status,
            objective=problem.objective(x, fixed_age(problem)),
            backend=self.name,
            age=fixed_age(problem),
            message=state.failure or self._remark(problem, state, x),
            history=History(dict(zip(_HISTORY, columns))),
            extra=extra,
            statistics=statistics,
        )

    def _remark(self, problem: BoundProblem, state: ComidState, x: Array) -> str:
        """What to do when the run ended above M = 0, which every metric model admits."""
        if state.pairs is None:
            return ""
        mu = min(max(1.0, state.settings.mu_lower), state.settings.mu_upper)
        values = problem.layout.unpack(np.zeros_like(x))
        nothing = {name: value if np.ndim(value) else mu for name, value in values.items()}
        zero = problem.objective(problem.layout.pack(nothing), fixed_age(problem))
        reached = problem.objective(x, fixed_age(problem))
        if reached <= zero * (1.0 + 1e-6):
            return ""
        return (
            f"M = 0 has a lower objective ({zero:.6g}) than what was reached ({reached:.6g}): the steps are too long or too few "
            "for these data; set another `step`, more `passes`, or `scale = median`"
        )

    def progress(self, state: ComidState) -> tuple[float, str]:
        T = len(state.pairs) if state.pairs is not None else len(state.task.c) if state.task is not None else 1
        if state.polished is not None:
            return 1.0, f"polishing, residual {state.polished.residual:.1e}"
        share = state.position / max(T, 1)
        words = f"objective {state.history[-1][1]:.6g}" if state.history else "first pass"
        return (state.passes + share) / max(state.passes + 1, 1), f"pass {state.passes + 1}, {words}"

    def _flat(self, problem: BoundProblem, state: ComidState) -> Array:
        if isinstance(state.inner, VectorState):
            assert state.task is not None
            assert state.mirror is not None
            return flat_vector(state.inner, state.task, state.mirror)
        M, mu = state.inner.metric(state.settings)
        if state.polished is not None and state.polisher is not None:
            M, mu = state.polisher.answer(state.polished)
        values: dict[str, Any] = {}
        for variable in problem.problem.variables:
            values[variable.name] = M / state.scale**2 if variable.kind == "symmetric" else mu
        return problem.layout.pack(values)

    def _metric_results(self, problem: BoundProblem, x: Array) -> tuple[dict[str, Any], dict[str, float]]:
        values = problem.layout.unpack(x)
        M = next(values[v.name] for v in problem.problem.variables if v.kind == "symmetric")
        spectrum = np.linalg.eigvalsh(M)[::-1]
        rank = float(np.count_nonzero(spectrum > 1e-12 * max(spectrum[0], 0.0)))
        return {"spectrum": spectrum}, {"rank": rank, "trace": float(spectrum.sum())}


def _scalar(problem: Problem) -> str | None:
    return next((variable.name for variable in problem.variables if variable.kind == "scalar"), None)


def _median_norm(U: Array) -> float:
    norms = np.sqrt(np.einsum("ij,ij->i", U, U))
    norms = norms[norms > 0.0]
    return float(np.median(norms)) if len(norms) else 1.0

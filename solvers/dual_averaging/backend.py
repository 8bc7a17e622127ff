"""The back end `dual_averaging`: runs a method in slices, looks at the objective at log-spaced steps, reports.

In: a bound problem with a loss of a linear predictor, `Options`. Out: a `Solution` whose history is the measured curve,
with the plateau and the bound line where they were asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.problem import BoundProblem, Problem
from spdsl.solution import History, Solution, Status
from spdsl.solvers.dual_averaging.bounds import LinearProgram, bound_line, gradient_square, solve_linear_program
from spdsl.solvers.dual_averaging.certificate import lower_bound
from spdsl.solvers.dual_averaging.dense import DenseEngine
from spdsl.solvers.dual_averaging.engine import Engine
from spdsl.solvers.dual_averaging.linear import LinearModel, linear_model, objections
from spdsl.solvers.dual_averaging.options import Options
from spdsl.solvers.dual_averaging.runs import load_run, save_run
from spdsl.solvers.dual_averaging.sampling import Sampler
from spdsl.solvers.dual_averaging.setting import Setting, complaints, make_setting
from spdsl.solvers.dual_averaging.tuning import tuned_gamma
from spdsl.solvers.protocol import BackEnd

__all__ = ["DualAveraging", "Look", "Run"]

_SLICE = 0.1  # seconds that a step of the protocol should take


@dataclass(frozen=True)
class Look:
    """What was measured at one step: one row of the history."""

    iteration: int
    objective: float
    seconds: float
    nonzeros: int
    lower: float = -np.inf


@dataclass(frozen=True)
class Run:
    """A run between two steps of the protocol.

    The engine's arrays are handed on, not copied (they may fill most of the memory), so an older `Run` is spent once it
    was stepped.
    """

    setting: Setting
    engine: Engine | DenseEngine
    sampler: Sampler
    gamma: float
    target: int
    due: tuple[int, ...]
    looks: tuple[Look, ...] = ()
    seconds: float = 0.0
    speed: float = 1e4  # steps a second, as measured last
    trials: int = 0
    optimum: LinearProgram | None = None
    plateau: LinearProgram | None = None
    pulls: tuple[float, ...] = field(default=())  # <bias, w* - w> at the looks


class DualAveraging(BackEnd[Run]):
    """Dual averaging and its relatives for losses of a linear predictor."""

    name = "dual_averaging"
    summary = (
        "dual averaging with individual convergence and its relatives (l1-RDA, AdaGrad-RDA, FTRL-Proximal, projected "
        "subgradient, SFGM, ...): O(nonzeros) steps over samples, biased gradients, for large sparse data"
    )
    options = Options

    def refuses(self, problem: Problem) -> list[str]:
        """Reasons by structure; it is only picked when the model asks for it, as its answers are approximate."""
        return objections(problem)

    def refuses_data(self, problem: BoundProblem, options: Any) -> list[str]:
        """Reasons by numbers."""
        try:
            model = self._model(problem)
        except ValueError as error:
            return [str(error)]
        return complaints(model, options)

    def init(self, problem: BoundProblem, options: Any) -> Run:
        """Choose gamma, set up the engine, look at the start."""
        model = self._model(problem)
        setting = make_setting(model, options)
        sampler = Sampler(model.design.shape[0], options.order, options.seed)
        saved = load_run(options.resume, setting) if options.resume else None
        if not setting.dense:
            _compile(setting)  # before the clock starts
        started = time.perf_counter()
        gamma, trials = (saved.gamma, 0) if saved else _choose_gamma(setting, sampler)
        engine = setting.engine(gamma)
        if options.gap:
            engine.track_slopes()
        target = options.steps or max(1, round(options.passes * model.design.shape[0] / options.batch))
        if saved:
            engine.restore(saved.arrays)
        optimum = plateau = None
        if options.bound:
            optimum, plateau = _programs(setting)
        run = Run(
            setting=setting,
            engine=engine,
            sampler=sampler,
            gamma=gamma,
            target=target,
            due=_due(target, options.looks, engine.step),
            looks=tuple(Look(*row) for row in saved.looks) if saved else (),
            seconds=saved.seconds if saved else time.perf_counter() - started,
            trials=trials,
            optimum=optimum,
            plateau=plateau,
        )
        return run if saved else _look(run)

    def step(self, problem: BoundProblem, options: Any, state: Run) -> Run:
        """Steps up to the next look, or for about a tenth of a second."""
        engine, batch = state.engine, options.batch
        first = engine.step
        until = min(state.due[0] if state.due else state.target, first + max(1, int(state.speed * _SLICE)))
        rows = state.sampler.rows(first * batch, (until - first) * batch)
        started = time.perf_counter()
        engine.advance(rows)
        spent = time.perf_counter() - started
        state = replace(
            state, seconds=state.seconds + spent, speed=min((until - first) / max(spent, 1e-6), 4.0 * state.speed + 1.0)
        )
        if state.due and engine.step >= state.due[0]:
            state = _look(replace(state, due=state.due[1:]))
        return state

    def done(self, problem: BoundProblem, options: Any, state: Run) -> Status | None:
        """All steps made, the tolerance met, or out of floating point."""
        last = state.looks[-1] if state.looks else None
        if last is not None and not np.isfinite(last.objective):
            return Status.DIVERGED
        if options.tolerance > 0.0 and _met(state, options.tolerance):
            return Status.SOLVED
        if state.engine.step < state.target:
            return None
        return Status.ITERATION_LIMIT if options.tolerance > 0.0 else Status.FINISHED

    def finish(self, problem: BoundProblem, options: Any, state: Run, status: Status) -> Solution:
        """The answer, the curve, and the numbers beside it."""
        setting, engine = state.setting, state.engine
        if not state.looks or state.looks[-1].iteration != engine.step:
            state = _look(state)
        if options.save:
            save_run(options.save, setting, engine, state.gamma, state.seconds, state.looks)
        w, b = setting.point(engine)
        last = state.looks[-1]
        return Solution(
            bound=problem,
            x=setting.model.flat(w, b),
            status=status,
            objective=last.objective,
            backend=self.name,
            message=_message(state),
            history=_history(state),
            extra=_extra(state),
            statistics={
                "steps": float(engine.step),
                "gamma": state.gamma,
                "trials": float(state.trials),
                "lazy": float(not setting.dense),
                "stepping_seconds": state.seconds,
                "nonzeros": float(last.nonzeros),
            },
        )

    def progress(self, state: Run) -> tuple[float, str]:
        """Share of the steps, and the objective at the last look."""
        last = f"objective {state.looks[-1].objective:.6g}" if state.looks else ""
        return min(1.0, state.engine.step / state.target), f"step {state.engine.step:,}, {last}"

    def _model(self, problem: BoundProblem) -> LinearModel:
        cache: dict[str, LinearModel] = problem.__dict__.setdefault("_linear_models", {})
        if "all" not in cache:
            cache["all"] = linear_model(problem)
        return cache["all"]


def _compile(setting: Setting) -> None:
    """Have the loop and the tables' functions at hand, from the cache or by compiling them."""
    engine = setting.engine(1.0)
    if isinstance(engine, Engine):
        engine.loop()
        engine.block()


def _choose_gamma(setting: Setting, sampler: Sampler) -> tuple[float, int]:
    """The gamma that was asked for, or the best on short runs; they look at a bias-free, noise-free oracle as it is."""
    options, model = setting.options, setting.model
    if options.gamma is not None:
        return options.gamma, 0
    target = options.steps or max(1, round(options.passes * model.design.shape[0] / options.batch))
    return tuned_gamma(setting, sampler, target)


def _due(target: int, looks: int, made: int) -> tuple[int, ...]:
    """Log-spaced steps at which to look, the last one included."""
    if looks == 0:
        return (target,) if target > made else ()
    steps = np.unique(np.rint(np.geomspace(1, target, looks)).astype(int))
    return tuple(int(step) for step in steps if step > made)


def _look(state: Run) -> Run:
    setting, engine = state.setting, state.engine
    w, b = setting.point(engine)
    with np.errstate(over="ignore", invalid="ignore"):
        objective = setting.model.objective(w, b)
    lower = -np.inf
    if engine.averages.shape[0] > 1 and engine.step > 0:
        lower = lower_bound(setting.model, setting.low, setting.high, engine.averages, w, b)
    look = Look(engine.step, objective, state.seconds, int(np.count_nonzero(w)), lower)
    pulls = state.pulls
    if state.optimum is not None:
        pulls = (*pulls, float(np.sum(np.asarray(setting.options.gradient_bias, float) * (state.optimum.w - w))))
    return replace(state, looks=(*state.looks, look), pulls=pulls)


def _met(state: Run, tolerance: float) -> bool:
    """Is the gap, or else the progress over the last three looks, below this share of the objective?"""
    looks = state.looks
    if len(looks) < 2:
        return False
    last = looks[-1].objective
    if state.setting.options.gap:
        best = max(look.lower for look in looks)
        return last - best <= tolerance * max(abs(last), abs(best))
    if len(looks) < 4 or looks[-4].iteration == 0:
        return False
    recent = [look.objective for look in looks[-4:]]
    return max(recent) - min(recent) <= tolerance * abs(last)


def _programs(setting: Setting) -> tuple[LinearProgram, LinearProgram]:
    model, bias = setting.model, np.asarray(setting.options.gradient_bias, float)
    try:
        optimum = solve_linear_program(model, setting.low, setting.high)
        plateau = solve_linear_program(model, setting.low, setting.high, bias) if np.any(bias != 0.0) else optimum
    except ValueError as error:
        raise UsageError(
            Diagnostic("SPL540", f"the bound line can't be drawn: {error}", help=("leave out `bound`",))
        ) from None
    return optimum, plateau


def _history(state: Run) -> History:
    looks = state.looks
    columns = {
        "iteration": np.array([look.iteration for look in looks], float),
        "objective": np.array([look.objective for look in looks]),
        "seconds": np.array([look.seconds for look in looks]),
        "nonzeros": np.array([look.nonzeros for look in looks], float),
    }
    if state.setting.options.gap:
        best = np.maximum.accumulate([look.lower for look in looks])
        columns["lower_bound"] = best
        columns["gap"] = columns["objective"] - best
    if state.optimum is not None and len(state.pulls) == len(looks):
        setting = state.setting
        distance = 0.5 * float(state.optimum.w @ state.optimum.w)
        square = gradient_square(setting.model, np.asarray(setting.options.gradient_bias, float))
        steps = np.maximum(columns["iteration"], 1.0)
        line = bound_line(steps, setting.kind, state.gamma, distance, square, np.array(state.pulls))
        columns["bound"] = line + state.optimum.objective
    return History(columns)


def _extra(state: Run) -> dict[str, Any]:
    setting, engine = state.setting, state.engine
    extra: dict[str, Any] = {"box": (setting.low, setting.high)}
    extra["dual_iterate"] = setting.model.flat(*engine.dual())
    if state.optimum is not None and state.plateau is not None:
        bias = np.asarray(setting.options.gradient_bias, float)
        extra["optimum"] = state.optimum.objective
        extra["plateau"] = state.plateau.objective
        extra["bound_constants"] = {
            "gamma": state.gamma,
            "d(w*)": 0.5 * float(state.optimum.w @ state.optimum.w),
            "E|g|^2": gradient_square(setting.model, bias),
            "<bias, w* - w>": state.pulls[-1] if state.pulls else 0.0,
        }
    return extra


def _message(state: Run) -> str:
    setting = state.setting
    how = f"steps of O(features): {setting.dense}" if setting.dense else "steps of O(nonzeros)"
    tuned = f"gamma = {state.gamma:.4g}" + (f" (chosen by {state.trials} trial runs)" if state.trials else "")
    return f"{setting.options.method}, {setting.output} output, {tuned}, {how}"

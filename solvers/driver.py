"""Runs a back end: init, then step until done; interrupts, time limits, progress and callbacks are handled here.

In: a back end, a bound problem, checked options. Out: a `Solution` or a `Path`, also when the run was cut short.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

from spdsl.diagnostics import Diagnostic, SolverError
from spdsl.problem import BoundProblem
from spdsl.solution import Path, Solution, Status
from spdsl.solvers.features import features_of, has_kernels
from spdsl.solvers.protocol import BackEnd

__all__ = ["run"]


def run(
    backend: BackEnd[Any],
    problem: BoundProblem,
    options: Any,
    progress: Callable[[float, str], None] | None = None,
    callback: Callable[[Any], bool | None] | None = None,
    state: Any = None,
) -> Solution | Path:
    """Solve a bound problem.

    Parameters
    ----------
    progress : callable, optional
        Called with a fraction in [0, 1] and a few words after each step.
    callback : callable, optional
        Called with the state after each step; returning True stops the run.
    state : optional
        A state to go on from instead of a fresh one.

    Returns
    -------
    Solution or Path
        Ctrl-C, the time limit and the callback end the run with what was reached, and its status says so. The first
        Ctrl-C lets the step in progress end (a step is short); a second one, or one before there is anything to keep,
        raises KeyboardInterrupt.

    Raises
    ------
    SolverError
        When the back end refuses the data or the options.
    """
    started = time.monotonic()
    features = None
    if backend.explicit_features and has_kernels(problem.problem):
        features = features_of(problem)
        problem = features.bound
    reasons = backend.refuses_data(problem, options)
    if reasons:
        raise SolverError(
            Diagnostic("SPL506", f"`{backend.name}` can't solve this model with these data: {'; '.join(reasons)}")
        )
    with _interruptible() as pressed:
        state, status = _iterate(backend, problem, options, progress, callback, state, pressed, started)
        result = backend.finish(problem, options, state, status)
    if features is not None:
        result = features.result(result)
    seconds = time.monotonic() - started
    return replace(
        result,
        options=result.options or _plain_options(options),
        statistics={**result.statistics, "seconds": seconds},
    )


def _iterate(
    backend: BackEnd[Any],
    problem: BoundProblem,
    options: Any,
    progress: Callable[[float, str], None] | None,
    callback: Callable[[Any], bool | None] | None,
    state: Any,
    pressed: _Pressed,
    started: float,
) -> tuple[Any, Status]:
    """The loop: the last complete state, and how it ended."""
    try:
        if state is None:
            state = backend.init(problem, options)
        pressed.keep = True
        while (status := backend.done(problem, options, state)) is None:
            if pressed.count:
                return state, Status.INTERRUPTED
            if time.monotonic() - started > options.time_limit:
                return state, Status.TIME_LIMIT
            state = backend.step(problem, options, state)
            if progress is not None:
                progress(*backend.progress(state))
            if callback is not None and callback(state):
                done = backend.done(problem, options, state)
                return state, Status.INTERRUPTED if done is None else done
        return state, status
    except KeyboardInterrupt:
        if state is None or pressed.count > 1:
            raise
        return state, Status.INTERRUPTED


class _Pressed:
    """How often Ctrl-C was pressed, and whether there is something to keep yet."""

    def __init__(self) -> None:
        self.count = 0
        self.keep = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1 or not self.keep:
            raise KeyboardInterrupt


@contextmanager
def _interruptible() -> Iterator[_Pressed]:
    """Count Ctrl-C instead of raising it in the middle of a step.

    An exception that is raised inside a compiled callback or a destructor would be lost. In threads other than the main
    one, and where the program has a handler of its own, KeyboardInterrupt comes as ever and is caught by the loop.
    """
    pressed = _Pressed()
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield pressed
        return
    signal.signal(signal.SIGINT, pressed)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _plain_options(options: Any) -> dict[str, Any]:
    """The options' values by name; an options dataclass may hold arrays, so it isn't copied deeply."""
    from dataclasses import fields

    return {item.name: getattr(options, item.name) for item in fields(options)}

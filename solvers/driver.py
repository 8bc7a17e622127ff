"""Runs a back end: init, then step until done; interrupts, time limits, progress and callbacks are handled here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from spdsl.problem import BoundProblem
from spdsl.solution import Path, Solution, Status
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
        Called with a fraction and a few words after each step.
    callback : callable, optional
        Called with the state after each step; returning True stops the run.
    state : optional
        A state to go on from instead of a fresh one.

    Ctrl-C and the time limit end the run with what was reached.
    """
    started = time.monotonic()
    status: Status | None = None
    try:
        if state is None:
            state = backend.init(problem, options)
        while (status := backend.done(problem, options, state)) is None:
            if time.monotonic() - started > options.time_limit:
                status = Status.TIME_LIMIT
                break
            state = backend.step(problem, options, state)
            if progress is not None:
                progress(*backend.progress(state))
            if callback is not None and callback(state):
                status = Status.INTERRUPTED
                break
    except KeyboardInterrupt:
        if state is None:
            raise
        status = Status.INTERRUPTED
    return backend.finish(problem, options, state, status)

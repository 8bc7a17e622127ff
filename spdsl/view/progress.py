"""A progress bar for long work: shown on a terminal only, after a moment, and gone when the work is done.

In: fractions and a few words from the driver. Out: one line on stderr, rewritten in place.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress_bar"]

Progress = Callable[[float, str], None]


@contextmanager
def progress_bar(stream: Any = None, wait: float = 0.4) -> Iterator[Progress | None]:
    """A function for `driver.run`, or None where the stream is no terminal.

    Parameters
    ----------
    wait : float
        Seconds before anything is shown: short work needs no bar.
    """
    stream = stream or sys.stderr
    if not (hasattr(stream, "isatty") and stream.isatty()):
        yield None
        return
    bar = _Bar(stream, wait)
    try:
        yield bar
    finally:
        bar.close()


class _Bar:
    """rich's bar, made when it is first needed."""

    def __init__(self, stream: Any, wait: float) -> None:
        self.stream = stream
        self.wait = wait
        self.started = time.monotonic()
        self.shown = 0.0
        self.bar: Any = None
        self.task: Any = None

    def __call__(self, share: float, text: str) -> None:
        now = time.monotonic()
        if now - self.started < self.wait or now - self.shown < 0.05:
            return
        self.shown = now
        if self.bar is None:
            self.open()
        self.bar.update(self.task, completed=min(max(share, 0.0), 1.0), description=text, refresh=True)

    def open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = [
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        ]
        console = Console(file=self.stream)
        self.bar = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self.bar.start()
        self.task = self.bar.add_task("", total=1.0)
        self.bar.tasks[0].start_time = self.started

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()

"""A run on disk: saved, loaded, and gone on with to the same bits.

In: an engine and what it was set up with. Out: an NPZ file, and from it the state, checked to belong to the same run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.solvers.dual_averaging.dense import DenseEngine
from spdsl.solvers.dual_averaging.engine import Engine
from spdsl.solvers.dual_averaging.setting import Setting

__all__ = ["SavedRun", "load_run", "save_run"]

_FORMAT = 1
_SAME = ("method", "weights", "batch", "order", "seed", "delta", "smoothness", "box", "gap", "lazy")


@dataclass(frozen=True)
class SavedRun:
    """What a file holds."""

    gamma: float
    seconds: float
    looks: tuple[tuple[Any, ...], ...]
    arrays: dict[str, Any]


def save_run(
    path: str,
    setting: Setting,
    engine: Engine | DenseEngine,
    gamma: float,
    seconds: float,
    looks: Sequence[Any],
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write the run to a file (replaced only when the new one is complete)."""
    facts = json.dumps({"format": _FORMAT, "gamma": gamma, "seconds": seconds, **_facts(setting)})
    table = np.array([astuple(look) for look in looks], float).reshape(len(looks), 5)
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("wb") as file:
            np.savez(file, facts=np.array(facts), looks=table, **engine.snapshot(), **(extra or {}))
        partial.replace(target)
    except OSError as error:
        raise UsageError(
            Diagnostic("SPL541", f"the run can't be saved to {path}: {error.strerror}", help=("choose another file",))
        ) from None


def load_run(path: str, setting: Setting) -> SavedRun:
    """Read a run.

    Raises
    ------
    UsageError
        When the file is missing or damaged, or holds a run of other data, another method or other options.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(str(arrays.pop("facts")))
        table = arrays.pop("looks")
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(
            Diagnostic(
                "SPL541",
                f"{path} holds no run of dual averaging: {getattr(error, 'strerror', None) or error}",
                help=("give the file that `save` wrote, or leave out `resume`",),
            )
        ) from None
    now = {"format": _FORMAT, **_facts(setting)}
    other = [name for name, value in now.items() if facts.get(name) != value]
    if other:
        listed = "; ".join(f"{name} was {facts.get(name)!r} and is {now[name]!r}" for name in other)
        raise UsageError(
            Diagnostic(
                "SPL542",
                f"the run in {path} can't go on here: {listed}",
                help=("use the data and options that it was started with, or start afresh without `resume`",),
            )
        )
    looks = tuple((int(row[0]), *(float(x) for x in row[1:3]), int(row[3]), float(row[4])) for row in table)
    return SavedRun(float(facts["gamma"]), float(facts["seconds"]), looks, arrays)


def _facts(setting: Setting) -> dict[str, Any]:
    options, design = setting.options, setting.model.design
    facts = {name: getattr(options, name) for name in _SAME}
    bias = options.gradient_bias
    facts["bias"] = "function" if callable(bias) else np.atleast_1d(np.asarray(bias, float)).tolist()
    facts["noise"] = str(options.gradient_noise)
    facts["primal"], facts["output"] = setting.primal, setting.output
    facts["samples"], facts["features"] = int(setting.model.scale), design.shape[1]
    return facts

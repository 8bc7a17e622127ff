"""A problem on some of its samples: for folds and for repeats on random shares.

In: a bound problem and rows. Out: the same problem, its data cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spdsl.problem import BoundProblem

__all__ = ["on_samples"]


def on_samples(bound: BoundProblem, rows: Sequence[int] | np.ndarray[Any, np.dtype[np.int64]]) -> BoundProblem:
    """The problem on some of its samples: every datum whose rows (or columns) are samples is cut to them."""
    loss = bound.problem.loss
    assert loss is not None
    data = dict(bound.data)
    for item in bound.problem.data:
        for axis, dim in enumerate(item.dims):
            if dim == loss.rows:
                data[item.name] = data[item.name][rows] if axis == 0 else data[item.name][:, rows]
    return replace(bound, data=data, sizes={**bound.sizes, loss.rows: len(rows)})

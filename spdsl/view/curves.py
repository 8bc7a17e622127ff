"""A path sampled for drawing: ages dense enough for smooth curves, both sides of every jump, and what is seen there.

In: a `Path`. Out: `Curves`: arrays over one ascending list of ages.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from spdsl.problem.functions import Array
from spdsl.problem.membership import in_share
from spdsl.solution import Path

__all__ = ["Curves", "age_scale", "sample"]

POINTS = 240
MOST_NODES = 900
MOST_CELLS = 4_000_000  # samples x ages kept for the picture of the weights


@dataclass(frozen=True, eq=False)
class Curves:
    """A path over a list of ages.

    Attributes
    ----------
    ages : array (k,), ascending; the age of a jump stands twice, before and after
    x : array (k, p)
    residuals : array (k,)
    weights : array (m, k) or None
        Sample weights of m samples: all of them, or evenly chosen ones where there are very many.
    in_share, mean_weight : array (k,) or None
        Share of samples that are in, as `spdsl.problem.membership` reads it; mean weight.
    breaks : int array
        Indices i such that a jump lies between i - 1 and i.
    log : bool
        Is the age better shown on a logarithmic axis?
    """

    ages: Array
    x: Array
    residuals: Array
    weights: Array | None
    in_share: Array | None
    mean_weight: Array | None
    breaks: tuple[int, ...] = field(default=())
    log: bool = False


def sample(path: Path, scale: str = "auto", points: int = POINTS) -> Curves:
    """Sample a path; `scale` is ``auto``, ``log`` or ``linear``."""
    log = age_scale(path) if scale == "auto" else scale == "log"
    ages, x, residuals = _thinned_nodes(path)
    if path.branch is not None:
        ages, x, residuals = _with_queries(path, ages, x, residuals, log, points)
    breaks = _breaks(ages, np.array([point.age for point in path.jumps]))
    weights, share, mean = _weights(path, ages, x)
    return Curves(ages, x, residuals, weights, share, mean, breaks, log)


def age_scale(path: Path) -> bool:
    """Would a logarithmic axis spread what happens along the path more evenly than a linear one?"""
    low, high = path.age_range
    if low <= 0 or high / low < 3:
        return False
    events = np.array([point.age for point in path.critical_points] or path.ages)
    events = np.sort(events[(events > low) & (events < high)])
    if len(events) < 4:
        return high / low > 20
    even = (np.arange(len(events)) + 0.5) / len(events)
    linear = (events - low) / (high - low)
    logarithmic = np.log(events / low) / np.log(high / low)
    return bool(np.abs(logarithmic - even).mean() < np.abs(linear - even).mean())


def _thinned_nodes(path: Path) -> tuple[Array, Array, Array]:
    """The nodes, or evenly chosen ones where there are very many; always the ends and both sides of a jump."""
    count = len(path.ages)
    if count <= MOST_NODES:
        return path.ages, path.nodes, path.kkt_residuals
    keep = set(np.linspace(0, count - 1, MOST_NODES).round().astype(int).tolist())
    twice = np.flatnonzero(np.diff(path.ages) == 0)
    keep |= set(twice.tolist()) | set((twice + 1).tolist())
    rows = np.array(sorted(keep))
    return path.ages[rows], path.nodes[rows], path.kkt_residuals[rows]


def _with_queries(
    path: Path, ages: Array, x: Array, residuals: Array, log: bool, points: int
) -> tuple[Array, Array, Array]:
    """The nodes and, in between, exact points of the branch: where nodes are far apart, and beside each jump."""
    assert path.branch is not None
    low, high = path.age_range
    wanted = set(_between(ages, log, points))
    known = set(ages.tolist())
    for jump in path.jumps:
        if not np.any(np.isclose(ages, jump.age, rtol=1e-9, atol=0)):
            wanted |= {jump.age - 1e-7 * (high - low), jump.age}
    extra = np.array(sorted(age for age in wanted - known if low < age < high))
    rows = [path.branch.at(float(age)) for age in extra]
    if not rows:
        return ages, x, residuals
    ages = np.concatenate([ages, extra])
    x = np.vstack([x, np.array([row for row, _ in rows])])
    residuals = np.concatenate([residuals, [residual for _, residual in rows]])
    order = np.argsort(ages, kind="stable")
    return ages[order], x[order], residuals[order]


def _between(ages: Array, log: bool, points: int) -> list[float]:
    """Ages to add such that no two neighbours lie further apart than an even grid's of so many points."""
    at = np.log(ages) if log else ages
    spacing = (at[-1] - at[0]) / points
    found: list[float] = []
    for left, right in itertools.pairwise(at):
        count = int((right - left) / spacing) if spacing > 0 else 0
        inner = np.linspace(left, right, count + 2)[1:-1]
        found += (np.exp(inner) if log else inner).tolist()
    return found


def _breaks(ages: Array, jumps: Array) -> tuple[int, ...]:
    """Where a jump lies: between two equal ages, else before the first age at or after it."""
    found = set((np.flatnonzero(np.diff(ages) == 0) + 1).tolist())
    twice = ages[sorted(found)] if found else np.empty(0)
    for jump in jumps:
        if not np.any(np.isclose(twice, jump, rtol=1e-9, atol=0)):
            after = int(np.searchsorted(ages, jump * (1 - 1e-12), side="left"))
            if 0 < after < len(ages):
                found.add(after)
    return tuple(sorted(found))


def _weights(path: Path, ages: Array, x: Array) -> tuple[Array | None, Array | None, Array | None]:
    bound = path.bound
    if not bound.data or bound.problem.self_paced is None or bound.problem.loss is None:
        return None, None, None
    n = bound.n_samples
    rows = np.arange(n)
    if n * len(ages) > MOST_CELLS:
        rows = np.unique(np.linspace(0, n - 1, max(MOST_CELLS // len(ages), 50)).round().astype(int))
    kept = np.empty((len(rows), len(ages)))
    share, mean = np.empty(len(ages)), np.empty(len(ages))
    for k, (age, row) in enumerate(zip(ages, x, strict=True)):
        losses = bound.losses(row)
        v = bound.weights(losses, float(age))
        kept[:, k] = v[rows]
        share[k], mean[k] = in_share(bound, losses, float(age)), np.mean(v)
    return kept, share, mean

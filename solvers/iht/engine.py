"""The methods: hard thresholding with full or block gradients, normalized, variance-reduced, and CoSaMP.

In: an `Objective`, a `SupportSet`, `Settings`. Out: one epoch after another, each an immutable `Iterate`. Sources: IHT
and NIHT (Blumensath and Davies 2009, 2010), CoSaMP (Needell and Tropp 2009), StoIHT (Nguyen, Needell and Woolf 2017),
GraphIHT and GraphCoSaMP (Hegde, Indyk and Schmidt 2015), GraphStoIHT (Zhou, Chen and Ying 2019), variance reduction
after Johnson and Zhang (2013) and Li et al. (2016). Which support set is used, sparse or connected, is what makes a
method a graph method.

What is added here: steps in units of the inverse smoothness on the current support, projections warm from the last
support with a cold one now and then, every few epochs a pursuit of the optimum on the support, CoSaMP's iterations
where progress ends, and a stop at fixed points: when a support has stayed the same, the optimum on it is computed, and
if a projected gradient step from there keeps the support, nothing is left to gain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spdsl.solvers.iht.objective import Objective
from spdsl.solvers.iht.restricted import closer_point, restricted_optimum
from spdsl.solvers.iht.state import Iterate, Settings, begin, best_point
from spdsl.solvers.iht.support_sets import SupportSet

__all__ = ["Iterate", "Settings", "begin", "best_point", "epoch", "polished", "run"]

Array = NDArray[np.float64]
Nodes = NDArray[np.int64]

BLOCKWISE = ("sto_iht", "svrg_iht")
NIHT_C = 0.01
NIHT_KAPPA = 2.0 / (1.0 - NIHT_C)
PERFECT = 1e-20  # of the objective at 0: the fit can't be told from a perfect one
NEARLY = 1e-8  # of the objective at 0: worth an exact optimum on the support
PURSUIT_STEPS = 40  # conjugate gradients in a pursuit
ENOUGH = 1e-3  # share by which the objective must fall to count as progress
COOLING = 0.8  # of the step, when progress ends or an iterate is worse than nothing
MERGES = 5  # pursuits on merged supports, one after another
ROOM = (1.0, 0.1)  # the head that they merge with, in sizes of the support: at most, at least
STALLS = 4  # ends of progress after which a run is over
RESTART_PATIENCE = 8  # most epochs without progress in the second and later starts
SAME = 1e-9  # relative difference below which two starts ended at the same objective
SHRINK = 0.8  # of a backtracking step
MOST_SHRINKS = 20


def run(
    objective: Objective, supports: SupportSet, settings: Settings, epochs: int, start: Array | None = None
) -> Iterate:
    """Epochs until a stop or the limit."""
    iterate = begin(objective, start)
    while iterate.epochs < epochs and not (iterate.fixed or iterate.diverged):
        iterate = epoch(objective, supports, settings, iterate)
    return iterate


def epoch(objective: Objective, supports: SupportSet, settings: Settings, at: Iterate) -> Iterate:
    """One epoch: one full-gradient iteration, or as many block iterations as there are blocks."""
    before = at.support
    if settings.method == "cosamp":
        after = cosamp_step(objective, supports, settings, at)
    elif settings.method in BLOCKWISE:
        after = block_epoch(objective, supports, settings, at)
    else:
        after = thresholded_step(objective, supports, settings, at, slice(None), None)
    after = replace(after, epochs=at.epochs + 1)
    if not np.isfinite(after.x).all() or np.linalg.norm(after.x) > settings.limit:
        return rescued(objective, settings, at, after)
    value = objective.value(after.x, objective.active(after.support))
    # CoSaMP cuts a solution on three times as many entries: its iterates may well be worse than nothing on the way.
    if not np.isfinite(value) or (settings.method != "cosamp" and value > objective.at_zero):
        return rescued(objective, settings, at, after)
    same = after.support.size == before.size and bool((after.support == before).all())
    after = replace(after, objective=value, unchanged=at.unchanged + 1 if same else 0)
    if settings.residual > 0.0 and value <= settings.residual:
        return replace(after, fixed=True)
    if settings.pursuit and settings.method in BLOCKWISE and after.epochs % settings.pursuit == 0:
        after = pursued(objective, after)
    if settings.fixed_point and not after.fixed and after.unchanged >= settings.fixed_point:
        after = settled(objective, supports, settings, after)
    if settings.patience and not after.fixed:
        after = annealed(objective, supports, settings, after)
    if after.fixed and settings.starts > 1 and settings.method in BLOCKWISE:
        return begun_again(objective, settings, after)
    return after


def annealed(objective: Objective, supports: SupportSet, settings: Settings, at: Iterate) -> Iterate:
    """Note the best point; when it is too old, go back to it with a shorter step, and stop when that is of no use.

    Block methods try to better it by a merged pursuit first, once for each best point.
    """
    if at.best is None or at.objective < at.best[0] * (1.0 - ENOUGH):
        return replace(at, best=(at.objective, at.epochs, at.x, at.support))
    value, since, x, support = at.best
    if at.epochs - since < (settings.patience if at.start == 0 else min(settings.patience, RESTART_PATIENCE)):
        return at
    tried = at.tried
    if settings.pursuit and settings.method in BLOCKWISE and value < tried * (1.0 - ENOUGH):
        tried = value
        better = merged_pursuit(objective, supports, settings, replace(at, x=x, support=support, objective=value))
        if better.objective < value * (1.0 - ENOUGH):
            noted = (better.objective, at.epochs, better.x, better.support)
            return replace(better, best=noted, unchanged=0, fixed=better.objective <= PERFECT * objective.at_zero)
    stalls = at.stalls + (1 if settings.method in BLOCKWISE else STALLS)
    best = (value, at.epochs, x, support)
    at = replace(at, x=x, support=support, objective=value, best=best, stalls=stalls, unchanged=0)
    return replace(at, scale=COOLING * at.scale, fixed=stalls >= STALLS, tried=tried)


def begun_again(objective: Objective, settings: Settings, at: Iterate) -> Iterate:
    """What follows a start that is over: the answer, or another start at 0.

    The answer is a perfect fit, the best point when two starts ended there, and the best one when no start is left.
    """
    x, support = best_point(replace(at, won=None))
    x = restricted_optimum(objective, x, objective.active(support))
    value = objective.value(x, objective.active(support))
    times = 1
    if at.won is not None:
        best, met, _, nodes = at.won
        if value > best * (1.0 + SAME):
            value, times, x, support = at.won
        elif value >= best * (1.0 - SAME) and np.array_equal(support, nodes):
            times = met + 1
    if value <= PERFECT * objective.at_zero or times > 1 or at.start + 1 >= settings.starts:
        return replace(at, x=x, support=support, objective=value, best=None, won=None, fixed=True)
    return replace(
        begin(objective),
        epochs=at.epochs,
        projections=at.projections,
        gradients=at.gradients,
        step=at.step,
        start=at.start + 1,
        won=(value, times, x, support),
    )


def rescued(objective: Objective, settings: Settings, at: Iterate, after: Iterate) -> Iterate:
    """After an iterate worse than nothing: back to the best point with a shorter step; given up when it gets tiny."""
    if settings.limit < np.inf or at.scale < 1e-4:
        return replace(after, x=at.x, support=at.support, diverged=True)
    value, _, x, support = at.best or (objective.at_zero, 0, np.zeros_like(at.x), at.support[:0])
    back = replace(at, x=x, support=support, objective=value, unchanged=0, epochs=after.epochs, smoothness={})
    return replace(back, scale=COOLING * at.scale, best=(value, after.epochs, x, support))


def pursued(objective: Objective, at: Iterate) -> Iterate:
    """Near the optimum on the current support, from where block steps go on; over when the fit is perfect there."""
    active = objective.active(at.support)
    x = closer_point(objective, at.x, active, PURSUIT_STEPS)
    value = objective.value(x, active)
    if value <= NEARLY * objective.at_zero:
        x = restricted_optimum(objective, x, active)
        value = objective.value(x, active)
    return replace(at, x=x, objective=value, fixed=value <= PERFECT * objective.at_zero)


def merged_pursuit(objective: Objective, supports: SupportSet, settings: Settings, at: Iterate) -> Iterate:
    """CoSaMP's iterations from the optimum on the support, as long as they lower the objective.

    What keeps a block method from the best support is often a few small entries that others have taken the place of.
    No gradient step trades them, being shorter than the optimum on a support that has room for both.
    """
    x = polished(objective, at)
    best = replace(at, x=x, objective=objective.value(x, objective.active(at.support)))
    for _ in range(MERGES):
        moved = cosamp_step(objective, supports, settings, best, *ROOM)
        x = polished(objective, moved)
        value = objective.value(x, objective.active(moved.support))
        if value >= best.objective * (1.0 - ENOUGH):
            break
        best = replace(moved, x=x, objective=value, step=at.step)
        if value <= PERFECT * objective.at_zero:
            break
    return best


def settled(objective: Objective, supports: SupportSet, settings: Settings, at: Iterate) -> Iterate:
    """The optimum on a support that has stayed the same, and whether to stop there.

    A perfect fit stops every method, a fixed point of the full projected gradient step the deterministic ones. Block
    methods note the point as the best so far and go on: their noise may still lead to a better support.
    """
    x = polished(objective, at)
    active = objective.active(at.support)
    value = objective.value(x, active)
    if value <= PERFECT * objective.at_zero:
        return replace(at, x=x, objective=value, fixed=True)
    if settings.method in BLOCKWISE:
        best = at.best
        if best is None or value < best[0] * (1.0 - ENOUGH):
            best = (value, at.epochs, x, at.support)
        return replace(at, best=best, unchanged=0)
    gradient = objective.gradient(x, active)
    smooth = objective.smoothness(x, active)
    eta = (settings.step if settings.rule == "smoothness" else 1.0) / max(smooth, 1e-300)
    if settings.method == "niht" or settings.rule == "normalized":
        eta = max(eta, at.step)  # a line search's steps are longer than 1 / L: what 1 / L keeps, they may leave
    trial = x[objective.thresholded] - eta * gradient[objective.thresholded]
    support = supports.tail(trial)
    # Compared where they differ: what an entry of 1e-5 adds is lost in the sum over all.
    gained = captured(trial, np.setdiff1d(support, at.support))
    stays = gained <= captured(trial, np.setdiff1d(at.support, support)) * (1.0 + 1e-9)
    return replace(at, x=x, objective=value, fixed=stays, unchanged=0, gradients=at.gradients + 1)


def captured(vector: Array, support: Nodes) -> float:
    """Energy on a support."""
    return float((vector[support] ** 2).sum())


def polished(objective: Objective, at: Iterate) -> Array:
    """The optimum on the iterate's support."""
    return restricted_optimum(objective, at.x, objective.active(at.support))


# -- one iteration -----------------------------------------------------------------------------------------------------


def block_epoch(objective: Objective, supports: SupportSet, settings: Settings, at: Iterate) -> Iterate:
    """n / batch blocks, drawn with replacement; with variance reduction around the full gradient at the start."""
    rng = np.random.default_rng([settings.seed, at.epochs])
    blocks = block_slices(objective.n, settings.batch, settings.blocks)
    anchor: tuple[Array, Nodes, Array] | None = None
    if settings.method == "svrg_iht":
        active = objective.active(at.support)
        anchor = (at.x, active, objective.gradient(at.x, active))
    for b in rng.integers(0, len(blocks), len(blocks)):
        at = thresholded_step(objective, supports, settings, at, blocks[b], anchor)
        if not np.isfinite(at.x).all():
            break
    return at


def block_slices(n: int, batch: int, blocks: int = 0) -> list[slice]:
    """Contiguous blocks of `batch` rows (0: as long as `blocks` of them must be, or five); the last takes the rest."""
    size = min(n, batch if batch > 0 else max(1, n // (blocks or 5)))
    count = max(1, n // size)
    return [slice(k * size, n if k == count - 1 else (k + 1) * size) for k in range(count)]


def thresholded_step(
    objective: Objective,
    supports: SupportSet,
    settings: Settings,
    at: Iterate,
    rows: slice,
    anchor: tuple[Array, Nodes, Array] | None,
) -> Iterate:
    """x <- P(x - eta g, tail), g the gradient of the rows, or of all less the block's noise (variance reduction)."""
    active = objective.active(at.support)
    gradient = objective.gradient(at.x, active, rows)
    cost = (rows.stop - rows.start) / objective.n if rows.stop is not None else 1.0
    if anchor is not None:
        point, point_active, mean = anchor
        gradient = gradient - objective.gradient(point, point_active, rows) + mean
    if settings.head > 0.0:
        gradient = headed(objective, supports, gradient, settings.head)
    eta, smooth = step_length(objective, supports, settings, at, gradient, rows)
    if settings.rule == "backtracking":
        moved = backtracked(objective, supports, settings, at, gradient, rows, eta)
    elif settings.method == "niht":
        moved = normalized(objective, supports, settings, at, gradient, rows, eta)
    else:
        moved = projected(objective, supports, settings, at, gradient, eta)
    return replace(moved, smoothness=smooth, gradients=at.gradients + cost)


def projected(
    objective: Objective, supports: SupportSet, settings: Settings, at: Iterate, gradient: Array, eta: float
) -> Iterate:
    """The projection of x - eta g; the entries that no set speaks of just move."""
    moved = at.x - eta * gradient
    if not np.isfinite(moved).all():
        return replace(at, x=moved)
    warm = at.support.size > 0 and at.projections % max(settings.restart, 1) != 0
    support = supports.tail(moved[objective.thresholded], at.support if warm else None)
    x = np.zeros_like(moved)
    active = objective.active(support)
    x[active] = moved[active]
    return replace(at, x=x, support=support, projections=at.projections + 1, step=eta)


def headed(objective: Objective, supports: SupportSet, gradient: Array, factor: float) -> Array:
    """The gradient on the entries of its head projection (and on the free ones)."""
    kept = objective.active(supports.head(gradient[objective.thresholded], factor))
    out = np.zeros_like(gradient)
    out[kept] = gradient[kept]
    return out


def step_length(
    objective: Objective,
    supports: SupportSet,
    settings: Settings,
    at: Iterate,
    gradient: Array,
    rows: slice,
) -> tuple[float, dict[int, float]]:
    """The step by the rule, and the smoothness found so far for each block (renewed when the epoch is over)."""
    step = settings.step * at.scale
    if settings.method != "niht" and settings.rule in ("constant", "backtracking"):
        return step, at.smoothness
    support = at.support if at.support.size else supports.tail(gradient[objective.thresholded])
    active = objective.active(support)
    if settings.method == "niht" or settings.rule == "normalized":
        direction = np.zeros_like(gradient)
        direction[active] = gradient[active]
        square = float(direction @ direction)
        curved = objective.quadratic(at.x, direction, active, rows)
        return (step * square / curved if curved > 0 else step), at.smoothness
    key = rows.start or 0
    known = at.smoothness
    if known.get(-1) != at.epochs // 10:  # the supports settle: every tenth epoch is often enough
        known = {-1: at.epochs // 10}
    if key not in known:
        known = {**known, key: objective.smoothness(at.x, active, rows)}
    worst = max(value for block, value in known.items() if block >= 0)
    return (step / worst if worst > 0 else step), known


def backtracked(
    objective: Objective,
    supports: SupportSet,
    settings: Settings,
    at: Iterate,
    gradient: Array,
    rows: slice,
    eta: float,
) -> Iterate:
    """The first of eta, 0.8 eta, ... whose point lies below the quadratic model of the (block's) loss at x."""
    here = objective.value(at.x, objective.active(at.support), rows)
    moved = at
    for _ in range(MOST_SHRINKS):
        moved = projected(objective, supports, settings, at, gradient, eta)
        change = moved.x - at.x
        model = here + float(gradient @ change) + float(change @ change) / (2.0 * eta)
        if objective.value(moved.x, objective.active(moved.support), rows) <= model + 1e-12 * abs(here):
            break
        eta *= SHRINK
    return moved


def normalized(
    objective: Objective,
    supports: SupportSet,
    settings: Settings,
    at: Iterate,
    gradient: Array,
    rows: slice,
    eta: float,
) -> Iterate:
    """NIHT: when the support changes, the step shrinks until it is below (1 - c) |dx|^2 / (dx' H dx)."""
    moved = projected(objective, supports, settings, at, gradient, eta)
    for _ in range(200):
        if moved.support.size == at.support.size and (moved.support == at.support).all():
            break
        change = moved.x - at.x
        both = objective.active(np.union1d(moved.support, at.support))
        curved = objective.quadratic(at.x, change, both, rows)
        if curved <= 0.0 or eta <= (1.0 - NIHT_C) * float(change @ change) / curved:
            break
        eta /= NIHT_KAPPA * (1.0 - NIHT_C)
        moved = projected(objective, supports, settings, at, gradient, eta)
    return moved


def cosamp_step(
    objective: Objective, supports: SupportSet, settings: Settings, at: Iterate, most: float = 2.0, least: float = 1.0
) -> Iterate:
    """Merge the support with a head of the gradient, solve there, keep the tail of the solution.

    The head has `most` times the size, or less, down to `least` times, where the merged support would leave too few
    samples for its least squares: on as many entries as samples every fit is perfect, and its tail says nothing.
    """
    factor = min(most, max(least, settings.merged * objective.n / supports.size - 1.0))
    active = objective.active(at.support)
    gradient = objective.gradient(at.x, active)
    merged = np.union1d(supports.head(gradient[objective.thresholded], factor), at.support)
    solved = restricted_optimum(objective, at.x, objective.active(merged))
    support = supports.tail(solved[objective.thresholded])
    x = np.zeros_like(solved)
    kept = objective.active(support)
    x[kept] = solved[kept]
    return replace(
        at, x=x, support=support, projections=at.projections + 1, gradients=at.gradients + 1, step=float("nan")
    )

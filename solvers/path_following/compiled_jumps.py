"""A whole jump of hard weights by compiled loops, where the losses are quadratic and the penalties of single coefficients.

In: a `WeighedProblem`, the losses before the jump, the borders of the weights' steps beyond it. Out: the losses and bands after
it; the problem has moved there. What the loops don't reach (a system that turns singular on the way) is minimized.
"""

from __future__ import annotations

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.path_following.pushes import NoMinimumError, WeighedProblem

__all__ = ["CompiledJumps"]

_WORTH = 20_000  # entries of a design from which on compiled loops are worth their start


class CompiledJumps:
    """Jumps of one problem.

    Attributes
    ----------
    rounds : int
        Rounds of alternate search made so far.
    """

    def __init__(self, problem: WeighedProblem) -> None:
        from spdsl.solvers.path_following import push_loops

        self.problem, self.loops, self.rounds = problem, push_loops, 0
        block = problem.system.blocks[0]
        zero = np.zeros(block.m)
        kernel = block.kernel
        parts = [block.call(part, 0, zero) for part in (kernel.value, kernel.slope, kernel.curvature)]
        self.formula = tuple(np.ascontiguousarray(part) for part in (block.A, block.c, *parts, block.factor))

    @staticmethod
    def serve(problem: WeighedProblem) -> bool:
        """Is the problem one that the loops know, and large enough for them?"""
        block = problem.system.blocks[0]
        return bool(
            len(problem.system.blocks) == 1
            and block.kernel.n_pieces == 1
            and problem.quadratic
            and problem.system.coordinates.table is not None
            and isinstance(block.A, np.ndarray)
            and block.m * problem.system.p >= _WORTH
        )

    def jump(self, losses: Array, limits: Array, levels: Array, max_rounds: int) -> tuple[Array, IntArray, IntArray]:
        """Rounds until no weight changes: the losses and the bands after the jump, and the bands of the first round.

        Parameters
        ----------
        losses : array (n,)
            Before the jump.
        limits, levels : arrays
            The borders of the bands beyond the jump, and v by band.

        Raises
        ------
        NoMinimumError
            When a w-problem has no minimum, or the rounds come to no end.
        """
        problem, loops = self.problem, self.loops
        losses, began = losses.copy(), self.rounds
        first: IntArray | None = None
        while True:
            status, band, fresh = self._rounds(losses, limits, levels, max_rounds)
            first = fresh if first is None else first
            if status == loops.ENDLESS or self.rounds - began > max_rounds:
                raise NoMinimumError("is met again and again: alternate search at a jump comes to no end")
            if status == loops.DONE and problem.settle():
                return losses, band, first
            if status == loops.SINGULAR:
                problem.minimize()
                self.rounds += 1
            losses = problem.losses.copy()

    def _rounds(self, losses: Array, limits: Array, levels: Array, max_rounds: int) -> tuple[int, IntArray, IntArray]:
        """Rounds of the loops; writes into the losses. With a singular system only the weights of the next round."""
        problem, loops = self.problem, self.loops
        if not problem.kept.usable:
            band = sum(((losses > limit).astype(np.int64) for limit in limits), np.zeros(losses.size, np.int64))
            done = np.array_equal(problem.weights, levels[band])
            problem.weights[:] = levels[band]
            return (loops.DONE if done else loops.SINGULAR), band, band
        inverse, coordinates, p = problem.kept.inverse, problem.system.coordinates, problem.system.p
        inverse.make_room(p)
        index = np.zeros(p, np.int64)
        index[: inverse.k] = inverse.index
        problem.x, problem.labels = problem.x.copy(), problem.labels.copy()
        band, first = np.zeros(losses.size, np.int64), np.zeros(losses.size, np.int64)
        state = (
            problem.x, problem.gradient, problem.kept.G, inverse.N, index, inverse.place, problem.labels.fixed,
            problem.labels.interval, problem.lower, problem.upper, inverse.k,
        )  # fmt: skip
        shape = (
            coordinates.position, coordinates.low, coordinates.high, coordinates.count, coordinates.table,
            coordinates.smooth_border,
        )  # fmt: skip
        status, k, made, pushes = loops.jump(
            *self.formula, losses, problem.weights, band, first, limits, levels, state, shape, max_rounds
        )
        inverse.index = index[:k].copy()
        problem.pushes += pushes
        self.rounds += made
        return int(status), band, first

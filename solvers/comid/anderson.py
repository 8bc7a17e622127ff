"""Anderson acceleration of a fixed-point iteration: the next point from the last few, with a safeguard left to the caller.

In: pairs (t, F(t)) of a map F, one after another. Out: the combination of the images F(t_k) whose residual, as far as F
is affine, is least (Walker & Ni 2011, the unconstrained form). A point so found may be worse than F's own: the caller
goes on from it only when its residual is small enough, and clears the memory when F changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array

__all__ = ["Memory"]


@dataclass(frozen=True)
class Memory:
    """The last pairs, as differences.

    Attributes
    ----------
    depth : int
        How many differences are kept.
    last : (array (N,), array (N,)) or None
        The newest F(t) and its residual F(t) - t.
    images, residuals : tuples of arrays (N,)
        Differences of successive F(t), and of their residuals; the oldest first.
    """

    depth: int = 20
    last: tuple[Array, Array] | None = None
    images: tuple[Array, ...] = ()
    residuals: tuple[Array, ...] = ()

    def with_pair(self, image: Array, residual: Array) -> Memory:
        """With one pair more; the oldest difference goes when there are too many."""
        if self.last is None:
            return Memory(self.depth, (image, residual))
        images = (*self.images, image - self.last[0])[-self.depth :] if self.depth else ()
        residuals = (*self.residuals, residual - self.last[1])[-self.depth :] if self.depth else ()
        return Memory(self.depth, (image, residual), images, residuals)

    def cleared(self) -> Memory:
        """Nothing of a map that is no longer iterated."""
        return Memory(self.depth)

    def guess(self) -> Array | None:
        """The point to go on from; None before two pairs are known."""
        if self.last is None or not self.residuals:
            return None
        image, residual = self.last
        D = np.stack(self.residuals, axis=1)
        gram = D.T @ D
        # differences of a converging iteration are nearly dependent: what the ridge leaves out is rounding
        gram.flat[:: len(gram) + 1] += 1e-12 * float(np.trace(gram)) + 1e-300
        weights = np.linalg.solve(gram, D.T @ residual)
        return np.asarray(image - np.stack(self.images, axis=1) @ weights)

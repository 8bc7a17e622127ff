"""Prefix sums over one block of steps: all that a coordinate needs to be brought up to date in O(1).

In: the weights' kind, the scale gamma, the ridge mu and where the block starts. Out: a `Block`. Every lazy method
writes the dual iterate of a coordinate that no sample touches as

    z_i = -sign(sigma) (|sigma| - rho T_i)_+ / G_i        (sigma frozen, T and G shared by all coordinates)

so that ``sum of a_i z_i`` over a gap needs only P = sum a/G and R = sum a T/G at its two ends ([DA], eq. 10, unrolled).
The tables cover one block; when it ends every coordinate is brought up to date and the next block is tabulated. Memory
does not grow with the number of steps, and the sums, taken from the block's start, do not lose digits as steps go by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array

__all__ = ["LINEAR", "UNIFORM", "Block", "average_weight", "block_length", "make_block", "weight_sum"]

UNIFORM = 0  # a_k = 1,     gamma_k = gamma sqrt(k + 1)
LINEAR = 1  # a_k = k + 1, gamma_k = gamma (k + 1)^1.5


@dataclass(frozen=True)
class Block:
    """Steps ``start <= k < start + length``, tabulated at i = k - start = 0 .. length (both ends).

    Attributes
    ----------
    start, length : int
    total : ndarray (length + 1,)
        A_k, the sum of weights up to and including step k.
    weight : ndarray (length + 1,)
        a_k.
    threshold, divisor : ndarray (length + 1,)
        T_i and G_i of the dual iterate z_k.
    prefix : ndarray (length + 1, 3)
        P_i, R_i and the sum of the weights a, over steps ``start < k <= start + i``.
    step : ndarray (length + 1,)
        q_k of the projected subgradient form (eq. 11); zeros otherwise.
    """

    start: int
    length: int
    total: Array
    weight: Array
    threshold: Array
    divisor: Array
    prefix: Array
    step: Array


def average_weight(kind: int, k: int) -> float:
    """a_k."""
    return 1.0 if kind == UNIFORM else k + 1.0


def weight_sum(kind: int, k: int) -> float:
    """A_k = a_0 + ... + a_k (0 for k = -1)."""
    return k + 1.0 if kind == UNIFORM else 0.5 * (k + 1.0) * (k + 2.0)


def block_length(n_features: int) -> int:
    """Steps in a block: so many that bringing all coordinates up to date costs a step only a few of them."""
    return 1 << min(20, max(14, int(n_features - 1).bit_length()))


def make_block(form: str, kind: int, start: int, length: int, gamma: float, mu: float) -> Block:
    """Tabulate a block.

    Parameters
    ----------
    form : {"dual_averaging", "subgradient", "diagonal"}
        Which T and G: A_{k-1} and gamma_{k-1} + mu A_{k-1}; the shrinkage of eq. 11 since the block's start;
        A_{k-1} and 1 (the divisor is each coordinate's own: AdaGrad and FTRL).
    kind : int
        `UNIFORM` or `LINEAR`.
    gamma : float
        Scale of the prox-function's weight; for eq. 11 the steps are q_k = 1 / (gamma sqrt(k + 1)).
    mu : float
        Ridge: the regularizer holds mu |w|^2 / 2.
    """
    from spdsl.solvers.dual_averaging.kernels import fill_tables

    tables = np.empty((5, length + 1))
    prefix = np.empty((length + 1, 3))
    code = {"dual_averaging": 0, "subgradient": 1, "diagonal": 2}[form]
    fill_tables(code, kind, start, gamma, mu, tables, prefix)
    total, weight, threshold, divisor, step = tables
    return Block(start, length, total, weight, threshold, divisor, prefix, step)

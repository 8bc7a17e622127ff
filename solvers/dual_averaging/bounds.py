"""What the theory predicts of a run: the bound line of [DA] Theorem 2, and the plateau under a constant bias.

In: a `LinearModel` with a piecewise linear loss, the method's scales, a bias. Out: numbers with their constants.

A constant bias e makes every method that does not accumulate it minimize F + <e, w>: one linear program gives the value
of F there. Theorem 2 follows step by step as
E F(w_t) - F* <= [gamma_t d(w*) + sum a_k^2 E|g_k|^2 / (2 gamma_{k-1})] / A_t + <e, w* - mean of the dual iterates z>;
with interpolation that mean is w_t itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.dual_averaging.linear import LinearModel
from spdsl.solvers.dual_averaging.tables import UNIFORM

__all__ = ["LinearProgram", "bound_line", "gradient_square", "solve_linear_program"]


@dataclass(frozen=True)
class LinearProgram:
    """An optimum found by linear programming."""

    w: Array
    b: float
    objective: float  # of F, without the bias


def solve_linear_program(model: LinearModel, low: Array, high: Array, bias: Array | float = 0.0) -> LinearProgram:
    """Minimize F(w) + <bias, w> over the box, by HiGHS.

    Raises
    ------
    ValueError
        When the loss has curved pieces, there is a ridge or a ball, or the program is unbounded.
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    if model.ball is not None or np.any(model.mu > 0.0):
        raise ValueError("the optimum is no linear program with a ridge or a ball")
    pieces = _lines(model)
    m, d = model.design.shape
    matrix = _scaled_matrix(model)
    n = d + int(model.intercept)
    # variables: w+ , w- (and b), t; t_i >= slope z_i + intercept for every piece
    rows, right = [], []
    for slope, start in pieces:
        scaled = sp.diags_array(slope) @ matrix
        rows.append(sp.hstack([scaled[:, :d], -scaled[:, :d], scaled[:, d:], -sp.eye_array(m)], format="csr"))
        right.append(-(slope * model.design.offset + start))
    rho, linear = (np.broadcast_to(part, (d,)) for part in (model.rho, model.linear + bias))
    cost = np.concatenate([rho + linear, rho - linear, np.full(n - d, model.intercept_linear), np.ones(m)])
    low, high = np.broadcast_to(low, (d,)), np.broadcast_to(high, (d,))
    bounds: Any = np.vstack(
        [
            np.stack([np.maximum(low, 0.0), np.maximum(high, 0.0)], axis=1),
            np.stack([np.maximum(-high, 0.0), np.maximum(-low, 0.0)], axis=1),
            np.reshape(model.intercept_box, (1, 2))[: n - d],
            np.tile([-np.inf, np.inf], (m, 1)),
        ]
    )
    found: Any = linprog(
        cost, A_ub=sp.vstack(rows, format="csr"), b_ub=np.concatenate(right), bounds=bounds, method="highs-ipm"
    )
    if found.status != 0:
        raise ValueError(f"HiGHS found no optimum: {found.message}")
    w, b = found.x[:d] - found.x[d : 2 * d], float(found.x[2 * d]) if model.intercept else 0.0
    return LinearProgram(w, b, model.objective(w, b))


def bound_line(
    steps: Array,
    kind: int,
    gamma: float,
    distance: float,
    square: float,
    bias_term: Array | float = 0.0,
) -> Array:
    """The right-hand side of Theorem 2 at step numbers t >= 1.

    Parameters
    ----------
    steps : array of t
    kind, gamma
        The weights and the prox-function's scale.
    distance : float
        d(w*) = |w*|^2 / 2.
    square : float
        A bound on E|g_k|^2.
    bias_term : float or array like `steps`
        max (or mean) of <bias, w* - z>.
    """
    last = int(np.max(steps))
    k = np.arange(last + 1, dtype=float)
    a = np.ones(last + 1) if kind == UNIFORM else k + 1.0
    scale = gamma * (k + 1.0) ** (0.5 if kind == UNIFORM else 1.5)
    sums = np.cumsum(a)
    variance = np.concatenate([[0.0], np.cumsum(a[1:] ** 2 / (2.0 * scale[:-1]))]) * square
    t = np.asarray(steps, int)
    return np.asarray((scale[t] * distance + variance[t]) / sums[t] + bias_term)


def gradient_square(model: LinearModel, bias: Array | float = 0.0, noise: float = 0.0) -> float:
    """A bound on E|g|^2 at every w: the mean over samples at their steepest slopes, with the bias and the noise."""
    lines = _lines(model)
    steepest = np.max([np.abs(slope) for slope, _ in lines], axis=0)
    d = model.n_features
    matrix = _scaled_matrix(model)
    square = np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    root = np.sqrt(np.mean((model.scale * steepest) ** 2 * square))
    shift = float(np.linalg.norm(np.broadcast_to(bias, (d,))))
    return float((root + shift) ** 2 + d * noise**2)


def _lines(model: LinearModel) -> list[tuple[Array, Array]]:
    """Slope and intercept of every piece of the loss, each (m,)."""
    kernel, theta, m = model.kernel, model.parameters, model.design.shape[0]
    zero, one = np.zeros(m), np.ones(m)
    found = []
    for piece in range(kernel.n_pieces):
        slope = np.asarray(kernel.slope(piece, zero, *theta), float)
        if np.any(kernel.slope(piece, one, *theta) != slope) or np.any(kernel.curvature(piece, one, *theta) != 0.0):
            raise ValueError("the optimum is no linear program: a piece of the loss is curved")
        found.append((np.broadcast_to(slope, (m,)), np.broadcast_to(kernel.value(piece, zero, *theta), (m,))))
    return found


def _scaled_matrix(model: LinearModel) -> Any:
    """The design with its row factors multiplied in, and a column for the intercept."""
    import scipy.sparse as sp

    design = model.design
    pairs = np.broadcast_to(design.row_scale.reshape(-1, 2), (design.shape[0], 2))
    if design.width:
        matrix = sp.csr_array(design.data.reshape(design.shape).astype(float))
    else:
        matrix = sp.csr_array((design.data, design.indices, design.indptr), shape=design.shape).astype(float)
    scaled = (sp.diags_array(pairs[:, 0]) @ matrix).tocsr()
    return sp.hstack([scaled, sp.csr_array(pairs[:, 1:])], format="csr") if model.intercept else scaled

"""States of a path under group norms, in polar coordinates: x_g = r_g d_g with |d_g| = 1 for every active group.

In: a model and labels (which groups are active, which coordinates free). Out: Newton steps, tangents, gaps, flips.

In (r, d) the optimality of an active group, grad_g + alpha d = 0, is smooth through r = 0, where 1/|x_g| blows up in x: so
an entry or exit of a group is an ordinary zero of r, found to rounding, and Newton's reach does not shrink beside it. Its
unknowns are dr and omega, orthogonal to d, with dx_g = d dr + r omega.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.linear import gram
from spdsl.solvers.active_set.rows import FAR
from spdsl.solvers.active_set.system import Evaluation
from spdsl.solvers.group_path.model import GroupModel

__all__ = ["Motion", "Spot", "State", "from_x", "gaps_of", "newton", "residual", "settled_flip"]

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
_EXACT, _GOOD = 1e-14, 1e-12


@dataclass(frozen=True)
class State:
    """Labels and a point: `side` (p,) is the sign of a coordinate off its kink, 0 at it; r (G,), d (p,), outside groups x."""

    model: GroupModel
    age: float
    active: BoolArray
    side: np.ndarray[Any, np.dtype[np.int8]]
    r: Array
    d: Array  # directions within active groups, x itself outside groups, 0 elsewhere

    @property
    def x(self) -> Array:
        """The flat vector (p,)."""
        of = self.model.of
        return np.where(of >= 0, self.d * self.r[of], self.d) if self.r.size else self.d

    @property
    def free(self) -> BoolArray:
        """Coordinates that move (p,)."""
        of, model = self.model.of, self.model
        grouped = np.where(of >= 0, self.active[of], True)
        return np.asarray(grouped & ((model.low == model.high) | (self.side != 0)))

    def moved(self, motion: Motion, h: float, dage: float) -> State:
        """Along a motion, directions kept at length 1."""
        d = self.d + h * motion.d
        for index in np.flatnonzero(self.active):
            where = self.model.groups[index]
            d[where] /= np.linalg.norm(d[where])
        return replace(self, age=self.age + dage, r=self.r + h * motion.r, d=d)


@dataclass(frozen=True)
class Motion:
    """Rates of r, of d (omega within groups) and of x."""

    r: Array
    d: Array
    x: Array


@dataclass(frozen=True)
class Spot:
    """A state on the path with everything that is known there."""

    state: State
    evaluation: Evaluation
    frame: _Frame
    motion: Motion
    iterations: int

    @property
    def definite(self) -> bool:
        """Is the reduced Hessian positive definite?"""
        return self.frame.definite(self.frame.K)


class _Frame:
    """Orthonormal bases of all active groups at a state, and the linear systems in them."""

    def __init__(self, state: State, K: Array) -> None:
        model = state.model
        self.state, self.K = state, K
        self.free = np.flatnonzero(state.free)
        f = self.free.size
        self.B = np.eye(f)
        self.radius = np.ones(f)  # of the tangential columns, 1 for all others
        self.bend = np.zeros(f)  # alpha in tangential columns
        self.radial = np.full(f, -1)
        for index in np.flatnonzero(state.active):
            at = np.flatnonzero(model.of[self.free] == index)
            d = state.d[self.free[at]]
            basis = np.linalg.qr(np.column_stack([d, np.eye(at.size)]))[0][:, : at.size]
            basis[:, 0] = d
            self.B[np.ix_(at, at)] = basis
            self.radial[at[0]] = index
            self.radius[at[1:]] = state.r[index]
            self.bend[at[1:]] = model.alpha[index]

    def motion(self, push: Array) -> Motion:
        """The motion that changes the gradient of the free coordinates by `push` (f,)."""
        M = self.B.T @ self.K @ (self.B * self.radius)
        M[np.diag_indices_from(M)] += self.bend
        _pin_idle(M)
        state = self.state
        z = np.linalg.solve(M, self.B.T @ push) if push.size else push
        r, d, x = np.zeros_like(state.r), np.zeros_like(state.d), np.zeros_like(state.d)
        x[self.free] = self.B @ (self.radius * z)
        heads = self.radial >= 0
        r[self.radial[heads]] = z[heads]
        d[self.free] = self.B @ np.where(heads, 0.0, z)
        return Motion(r, d, x)

    def definite(self, K: Array, bend: Array | None = None) -> bool:
        """Is T'KT + bend positive definite, T the basis with tangential columns scaled by sqrt(r)?"""
        if not self.free.size:
            return True
        T = self.B * np.sqrt(np.maximum(self.radius, 0.0))
        M = T.T @ K @ T
        M[np.diag_indices_from(M)] += self.bend if bend is None else bend
        _pin_idle(M)
        factor, info = lapack.dpotrf(0.5 * (M + M.T), lower=1, clean=0)
        return bool(info == 0 and np.all(factor.diagonal() ** 2 > 1e-12 * np.abs(M.diagonal())))


def _pin_idle(M: Array) -> None:
    """Coordinates on which nothing depends (an intercept while no sample is in) stay where they are; writes into M."""
    idle = np.flatnonzero(~np.any(M != 0.0, axis=1))
    M[idle, idle] = 1.0


def hessian(state: State, curvature: Array) -> Array:
    """The smooth part's Hessian over the free coordinates with these curvatures of the samples (n,)."""
    system, free = state.model.system, np.flatnonzero(state.free)
    H = gram(system.blocks[0].A[:, free], curvature)
    return H if system.Q is None else H + system.Q[np.ix_(free, free)]


def _force(state: State, gradient: Array) -> Array:
    """What must vanish in free coordinates (p,)."""
    model = state.model
    slope = np.where(state.side > 0, model.high, model.low)
    pull = np.zeros(model.p)
    for index in np.flatnonzero(state.active):
        pull[model.groups[index]] = model.alpha[index] * state.d[model.groups[index]]
    return np.asarray(np.where(state.free, gradient + slope + pull, 0.0))


def newton(state: State, limit: int = 6) -> Spot | None:
    """Newton at the state's age with its labels; None when it does not converge fast."""
    last = np.inf
    for iteration in range(limit + 1):
        evaluation = state.model.smooth(state.x, state.age)
        force = _force(state, evaluation.gradient)
        error = float(np.abs(force).max(initial=0.0)) / state.model.scale(evaluation)
        if not np.isfinite(error) or (iteration > 1 and error > max(0.5 * last, _GOOD)):
            return None
        try:
            frame = _Frame(state, hessian(state, evaluation.rows[0].curvature))
            if error <= _EXACT or (error <= _GOOD and error > 0.1 * last):
                push = -state.model.system.age_slope(evaluation)[frame.free]
                return Spot(state, evaluation, frame, frame.motion(push), iteration)
            step = frame.motion(-force[frame.free])
        except np.linalg.LinAlgError:
            return None
        last = error
        state = state.moved(step, 1.0, 0.0)
    return None


def residual(state: State, evaluation: Evaluation) -> float:
    """The scaled KKT residual."""
    model, g = state.model, evaluation.gradient
    worst = float(np.abs(_force(state, g)).max(initial=0.0))
    rest = model.soft(-g)
    for index, where in enumerate(model.groups):
        if not state.active[index]:
            worst = max(worst, float(np.linalg.norm(rest[where])) - model.alpha[index])
        elif state.r[index] < 0.0:
            return np.inf
    fixed = ~state.free & np.where(model.of >= 0, state.active[model.of], True)
    worst = max(worst, float(np.abs(np.where(fixed, rest, 0.0)).max(initial=0.0)))
    return worst / model.scale(evaluation)


def gaps_of(spot: Spot) -> tuple[Array, Array]:
    """Signed distances to the next change of labels and their rates: groups (G,), then lower and upper sides (p,), (p,)."""
    state, model, motion = spot.state, spot.state.model, spot.motion
    g, A = spot.evaluation.gradient, model.system.blocks[0].A
    values = spot.evaluation.rows[0]
    change = np.asarray(A.T @ (values.curvature * np.asarray(A @ motion.x) + values.by_age))
    if model.system.Q is not None:
        change += model.system.Q @ motion.x
    rest, scale = model.soft(-g), model.system.coordinates.scale
    gap, rate = np.full(len(model.groups), FAR), np.zeros(len(model.groups))
    for index, where in enumerate(model.groups):
        if state.active[index]:
            size = float(np.linalg.norm(scale[where]))
            gap[index], rate[index] = state.r[index] / size, motion.r[index] / size
        else:
            size = float(np.linalg.norm(rest[where]))
            moving = np.where(rest[where] != 0.0, -change[where], 0.0)
            gap[index] = 1.0 - size / model.alpha[index]
            rate[index] = -float(rest[where] @ moving) / (max(size, 1e-300) * model.alpha[index])
    sides, rates = np.full((2, model.p), FAR), np.zeros((2, model.p))
    bent = (model.low < model.high) & np.where(model.of >= 0, state.active[model.of], True)
    free = bent & (state.side != 0)
    unit = np.where(model.of >= 0, 1.0, scale)
    sides[0, free], rates[0, free] = (state.side * state.d / unit)[free], (state.side * motion.d / unit)[free]
    held = bent & (state.side == 0)
    width = np.where(bent, model.high - model.low, 1.0)
    sides[0, held], rates[0, held] = ((-g - model.low) / width)[held], (-change / width)[held]
    sides[1, held], rates[1, held] = ((model.high + g) / width)[held], (change / width)[held]
    return np.concatenate([gap, sides.ravel()]), np.concatenate([rate, rates.ravel()])


def flip(state: State, gradient: Array, index: int) -> State:
    """The state with one label changed: a group or coordinate let go from zero, or put there."""
    model, count = state.model, len(state.model.groups)
    active, side, r, d = state.active.copy(), state.side.copy(), state.r.copy(), state.d.copy()
    if index < count:
        where = model.groups[index]
        active[index] = not active[index]
        r[index], d[where], side[where] = 0.0, 0.0, 0
        if active[index]:
            rest = model.soft(-gradient)[where]
            d[where] = rest / np.linalg.norm(rest)
            side[where] = np.sign(rest)
    else:
        upper, j = divmod(index - count, model.p)
        if side[j] != 0:
            side[j], d[j] = 0, 0.0
            if model.of[j] >= 0:
                where = model.groups[model.of[j]]
                d[where] /= max(float(np.linalg.norm(d[where])), 1e-300)
        else:
            side[j] = -1 if upper == 0 else 1
    return replace(state, active=active, side=side, r=r, d=d)


def settled_flip(spot: Spot, ready: list[int], noise: float) -> Spot | None:
    """The spot beyond an event: ready labels flipped until no gap there closes; None where no minimum lives there."""
    state, age = spot.state, spot.state.age
    seen: set[bytes] = set()
    for _ in range(60):
        for index in ready:
            state = flip(state, spot.evaluation.gradient, index)
        key = state.active.tobytes() + state.side.tobytes()
        if key in seen:
            return None
        seen.add(key)
        found = newton(state, 8)
        if found is None or not found.definite:
            return None
        gaps, rates = gaps_of(found)
        if np.any(gaps < -1e3 * noise):
            return None
        ready = np.flatnonzero((gaps <= 10.0 * noise) & (rates < -1e-9 / age)).tolist()
        if not ready:
            return found
        spot, state = found, found.state
    return None


def from_x(model: GroupModel, age: float, x: Array, also: Array | None = None) -> State:
    """The state of a flat vector: groups and coordinates that are 0 there (and in `also`) are at their kinks."""
    moves = x != 0.0 if also is None else (x != 0.0) | (also != 0.0)
    active = np.array([bool(np.any(moves[where])) for where in model.groups], bool)
    guide = x if also is None else np.where(x != 0.0, x, also)
    side = np.where(moves, np.sign(guide), 0).astype(np.int8)
    r, d = np.zeros(len(model.groups)), x.copy()
    for index, where in enumerate(model.groups):
        r[index] = np.linalg.norm(x[where])
        base = x[where] if r[index] > 0.0 else (0.0 * x[where] if also is None else also[where])
        size = float(np.linalg.norm(base))
        d[where] = base / size if size > 0.0 else 0.0
    return State(model, age, active, side, r, d)

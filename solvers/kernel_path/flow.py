"""Landings of a kernel path: the continuous limit of alternate convex search, from the end of a branch to the next minimum.

In: a point that is left by a small displacement, with its labels. Out: the point at the end of dmu/dt = -(mu + v phi'), with z of
held samples and B'mu constant: in f this is df/dt = -(gradient of G) / (2 kappa), as `active_set.flow` follows it over features.

Each step solves the flow for the local model (an exponential, from Lanczos vectors in the metric of f: the spectrum is 1 but for
as many eigenvalues as weighed samples make, so few vectors do), for as long as the model's gradient holds at its end. It ends at
the first kink on its way, which is held; a held sample whose multiplier leaves its bounds is let go, the worst first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import RowLabels, RowValues
from spdsl.solvers.active_set.weighting import IntArray
from spdsl.solvers.kernel_path.directions import Direction
from spdsl.solvers.kernel_path.events import LostBranchError
from spdsl.solvers.kernel_path.fit import Fitted
from spdsl.solvers.kernel_path.model import DualModel

__all__ = ["flow_down"]

_FAITHFUL = 0.2  # a step is taken when the model's gradient is off by less than this share
_LONGEST = 1e6  # times longer than this are as good as infinite
_VECTORS = 16
_REST = 1e-9  # forces below this are at rest
_STILL = 1e-12  # a way below this is rounding
_SPENT = 1e-6  # a Lanczos vector shorter than this is left out
_SHOWS = 1e-8  # a slope above this is no rounding


def flow_down(model: DualModel, age: float, start: Fitted, nudge: Direction, max_steps: int = 2000) -> Fitted:
    """The minimum that the flow runs into from a point displaced by `nudge`; exact to about 1e-9, Newton may go on from it.

    Raises
    ------
    LostBranchError
        When several intercepts are not pinned by held samples, or it takes too long.
    """
    flow = _Flow(model, age, start)
    try:
        return _down(flow, nudge, max_steps)
    except LostBranchError as error:
        raise LostBranchError(str(error), (flow.mu, flow.b)) from None


def _down(flow: _Flow, nudge: Direction, max_steps: int) -> Fitted:
    model = flow.model
    flow.displace(nudge)
    time, idle = 1.0, 0
    for _ in range(max_steps):
        if flow.loose and flow.shift_intercepts():
            continue
        here = flow.here()
        inner = float(np.abs(here.force).max(initial=0.0)) / model.force
        row, side, excess = _worst(model, flow, here)
        if row >= 0 and excess > max(1e-10, 0.01 * inner):
            flow.let_go(row, side)
            idle += 1
            if idle > 30:
                raise LostBranchError("held samples of a landing are let go and held again without end")
            continue
        if float(np.abs(here.way.mu).max(initial=0.0)) <= _STILL * model.force:
            return Fitted(flow.mu, flow.b, flow.z, flow.labels)
        local = flow.local(here)
        if local.values[0] > 0.0 and inner <= _REST:
            return Fitted(flow.mu, flow.b, flow.z, flow.labels)
        advance, time = flow.step(here, local, time)
        idle = idle + 1 if advance <= 1e-14 * model.block.scale else 0
        if idle > 30:
            break
    raise LostBranchError("the descent to the next minimum took too many steps")


@dataclass(frozen=True)
class _Here:
    """The point's forces mu + v phi' (n,), 0 in held rows; the way of the flow, over `rows`; all about the held rows."""

    values: RowValues
    force: Array
    held: IntArray
    system: Array  # inverse of [0 B'; B Q] over the held rows
    rows: IntArray
    Q: Array  # over `rows`
    place: IntArray  # of the held rows within `rows`
    way: _Way


@dataclass(frozen=True)
class _Way:
    """A direction in the tangent space, over rows in work: multipliers, z, and intercepts."""

    mu: Array
    z: Array
    b: Array


@dataclass(frozen=True)
class _Local:
    """Lanczos vectors over the rows in work (k, rows), (k, q); eigenvalues and eigenvectors over them; the way's size."""

    mu: Array
    b: Array
    values: Array
    vectors: Array
    size: float


class _Flow:
    def __init__(self, model: DualModel, age: float, start: Fitted) -> None:
        self.model, self.block, self.age = model, model.block, age
        self.mu, self.b, self.z = start.mu.copy(), start.b.copy(), start.z.copy()
        self.labels = start.labels.copy()
        self._held = np.array([-1])
        self._rows, self._Q = np.zeros(0, np.int64), np.zeros((0, 0))
        self._system = np.zeros((0, 0))

    # -- the local model -----------------------------------------------------------------------------------------------

    def here(self) -> _Here:
        """The point, evaluated."""
        values = self.block.evaluate(self.labels, self.z, self.age)
        force = self.mu + values.gradient
        held = values.held
        force[held] = 0.0
        force[np.abs(force) <= 1e-15 * self.model.force] = 0.0
        system = self._inverse(held)
        active = (force != 0.0) | (values.curvature != 0.0)
        active[held] = True
        rows = np.flatnonzero(active)
        Q = self._kernel(rows)
        place = np.searchsorted(rows, held)
        way = self._projected(-force[rows], rows, Q, place, system)
        return _Here(values, force, held, system, rows, Q, place, way)

    def _kernel(self, rows: IntArray) -> Array:
        """Q over some rows; those of the last call are kept."""
        if not np.array_equal(rows, self._rows):
            if rows.size == self._rows.size + 1 or rows.size == self._rows.size - 1:
                self._Q = self._neighbour(rows)
            else:
                self._Q = self.model.part(rows, rows)
            self._rows = rows
        return self._Q

    def _neighbour(self, rows: IntArray) -> Array:
        """The same where one row came or went."""
        shared, at, old = np.intersect1d(rows, self._rows, assume_unique=True, return_indices=True)
        if shared.size < min(rows.size, self._rows.size):
            return self.model.part(rows, rows)
        if shared.size == rows.size:
            return np.ascontiguousarray(self._Q[np.ix_(old, old)])
        Q = np.empty((rows.size, rows.size))
        Q[np.ix_(at, at)] = self._Q
        (fresh,) = np.setdiff1d(np.arange(rows.size), at)
        Q[fresh] = Q[:, fresh] = self.model.part(rows[fresh : fresh + 1], rows)[0]
        return Q

    def _inverse(self, held: IntArray) -> Array:
        if np.array_equal(held, self._held):
            return self._system
        model, q = self.model, self.model.q
        M: Array = np.zeros((q + held.size, q + held.size))
        M[q:, q:] = model.part(held, held)
        M[q:, :q] = model.B[held]
        M[:q, q:] = model.B[held].T
        if M.size and not self.loose:
            try:
                inverse: Any = np.linalg.inv(M)
            except np.linalg.LinAlgError:
                inverse = np.full_like(M, np.inf)
            if not np.isfinite(inverse).all() or np.abs(inverse).max() * np.abs(M).max() > 1e14:
                raise LostBranchError(
                    "the samples held at their kinks don't determine the intercept, or depend on each other"
                )
            M = inverse
        self._held, self._system = held, M
        return M

    def _projected(self, force: Array, rows: IntArray, Q: Array, place: IntArray, system: Array) -> _Way:
        """The direction that does `force` on the rows that are not held, and keeps z of the held ones and B'mu."""
        q = self.model.q
        mu = force.copy()
        mu[place] = 0.0
        z = Q @ mu
        B = self.model.B[rows]
        answer = system @ np.concatenate([-(B.T @ mu), -z[place]])
        mu[place] = answer[q:]
        b = answer[:q]
        z = z + Q[:, place] @ answer[q:] + B @ b
        z[place] = 0.0
        return _Way(mu, z, b)

    def local(self, here: _Here) -> _Local:
        """The flow's matrix over the Krylov space of the way."""
        curvature = here.values.curvature[here.rows]
        size = math.sqrt(max(float(here.way.mu @ here.way.z), 0.0))
        if _is_rounding(here.way, size):  # the forces move no z: they only fall
            return _Local(here.way.mu[None], here.way.b[None], np.ones(1), np.ones((1, 1)), 1.0)
        M, Z, b = (
            np.empty((_VECTORS, here.rows.size)),
            np.empty((_VECTORS, here.rows.size)),
            np.empty((_VECTORS, here.way.b.size)),
        )
        T = np.zeros((_VECTORS, _VECTORS))
        vector = _scaled(here.way, 1.0 / size)
        k = 0
        while True:
            M[k], Z[k], b[k] = vector.mu, vector.z, vector.b
            k += 1
            image = self._projected(vector.mu + curvature * vector.z, here.rows, here.Q, here.place, here.system)
            weights = Z[:k] @ image.mu
            T[:k, k - 1] = T[k - 1, :k] = weights
            if k == _VECTORS:
                break
            mu = image.mu - weights @ M[:k]
            mu -= (Z[:k] @ mu) @ M[:k]  # projected anew: what is left may be small, and z must stay Q mu + B b
            rest = self._projected(mu, here.rows, here.Q, here.place, here.system)
            length = math.sqrt(max(float(rest.mu @ rest.z), 0.0))
            if length <= _SPENT * max(1.0, float(np.abs(weights).max())) or _is_rounding(rest, length):
                break
            vector = _scaled(rest, 1.0 / length)
        values, vectors = np.linalg.eigh(T[:k, :k])
        return _Local(M[:k], b[:k], values, vectors, size)

    # -- intercepts that no held sample pins ---------------------------------------------------------------------------

    @property
    def loose(self) -> bool:
        """Is there no held sample, and an intercept?"""
        return self.model.q > 0 and self.labels.held.size == 0

    def shift_intercepts(self) -> bool:
        """Intercepts move at once where f takes its time: to the next kink, as G is not convex before; False: balanced."""
        model, block = self.model, self.block
        pull = -(model.B.T @ block.evaluate(self.labels, self.z, self.age).gradient)
        size = float(np.abs(pull).max())
        if size <= _STILL * model.force:
            return False
        db = pull * (1e3 * block.scale / size)
        t, kink = self._first_kink(model.B @ db)
        if kink is None:
            raise LostBranchError("after a jump the intercept has no optimum")
        self._move(np.zeros(model.n), t * db, t * (model.B @ db))
        self._hold(*kink)
        return True

    # -- moving --------------------------------------------------------------------------------------------------------

    def displace(self, nudge: Direction) -> None:
        """A little along a direction: as far as it takes for the slope downhill to leave rounding behind."""
        size = 1e-6 * self.block.scale / max(float(np.abs(nudge.z).max(initial=0.0)), 1e-300)
        share = size
        for _ in range(7):
            t, kink = self._first_kink(share * nudge.z)
            self._move(t * share * nudge.mu, t * share * nudge.b, t * share * nudge.z)
            if kink is not None:
                self._hold(*kink)
                return
            here = self.here()
            downhill = float(here.way.z @ nudge.mu[here.rows])
            if downhill > _SHOWS * self.model.force * float(np.abs(nudge.z).max(initial=0.0)):
                return
            share = 2.0 * size
            size *= 3.0

    def step(self, here: _Here, local: _Local, time: float) -> tuple[float, float]:
        """One step of the flow; how far z moved, and the time for the next."""
        values, vectors, size = local.values, local.vectors, local.size
        first = vectors[0] * size
        for _ in range(80):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                exponent = np.clip(values * time, -60.0, 60.0)
                reach = np.where(np.abs(exponent) < 1e-8, time, -np.expm1(-exponent) / values)
            share = vectors @ (reach * first)
            dmu = np.zeros(self.model.n)
            dmu[here.rows] = share @ local.mu
            db = share @ local.b
            dz = self.model.apply(dmu) + self.model.B @ db
            dz[here.held] = 0.0
            t, kink = self._first_kink(dz)
            if (
                kink is not None
                and t * abs(dz[kink[1]]) <= 1e-13 * self.block.scale
                and self._leaves(here, kink[1], dz)
            ):
                time *= 0.25  # just let go, and moving away: the way back is a later one
                continue
            before = self.mu, self.b, self.z, self.labels
            self._move(t * dmu, t * db, t * dz)
            expected = vectors @ ((1.0 - t * reach * values) * first)
            off = self._off(here, local, expected)
            if not np.isfinite(off) or off > _FAITHFUL * (size + float(np.linalg.norm(expected))):
                self.mu, self.b, self.z, self.labels = before
                time *= 0.25
                continue
            longer = off < 0.25 * _FAITHFUL * (size + float(np.linalg.norm(expected)))
            if kink is not None:
                self._hold(*kink)
            return t * float(np.abs(dz).max()), min(time * 4.0, 4.0 * _LONGEST) if longer else time
        raise LostBranchError("the descent to the next minimum can't go on")

    def _leaves(self, here: _Here, row: int, dz: Array) -> bool:
        """Does a row set out against the direction in which a long step would take it?"""
        k = int(np.searchsorted(here.rows, row))
        if k < here.rows.size and here.rows[k] == row:
            rate = float(here.way.z[k])
        else:
            full = np.zeros(self.model.n)
            full[here.rows] = here.way.mu
            rate = float(self.model.apply(full)[row] + self.model.B[row] @ here.way.b)
        return rate * float(dz[row]) < 0.0

    def _off(self, here: _Here, local: _Local, expected: Array) -> float:
        """By how much the gradient at the point differs from the model's, in the metric of f."""
        values = self.block.evaluate(self.labels, self.z, self.age)
        force = self.mu + values.gradient
        force[here.held] = 0.0
        model, q = self.model, self.model.q
        mu = -force
        mu[here.rows] -= expected @ local.mu
        mu[here.held] = 0.0
        mu[np.abs(mu) <= 1e-14 * model.force] = 0.0
        z = model.apply(mu)
        answer = here.system @ np.concatenate([-(model.B.T @ mu), -z[here.held]])
        # the squared norm of the projection: mu'z at mu_H = answer, where z_H = 0 and B'mu = 0
        back = np.zeros(model.n)
        back[here.held] = answer[q:]
        z = z + model.apply(back) + model.B @ answer[:q]
        return float(np.sqrt(max(float(mu @ z), 0.0)))

    def _move(self, dmu: Array, db: Array, dz: Array) -> None:
        self.mu, self.b, self.z = self.mu + dmu, self.b + db, self.z + dz
        self.labels = self.block.relabel(self.labels, self.z, self.age)

    def _first_kink(self, dz: Array) -> tuple[float, tuple[int, int] | None]:
        """The share of a step at which the first sample comes to a kink, and (kink, row); a whole step when none does."""
        block, labels = self.block, self.labels
        noise = 1e-14 * (float(np.abs(dz).max(initial=0.0)) + block.scale)
        best, name = 1.0, None
        for border in np.flatnonzero(block.kinked).tolist():
            ahead = np.where(dz > 0.0, labels.piece <= border, labels.piece > border)
            rows = np.flatnonzero(ahead & (np.abs(dz) > noise) & (labels.kink < 0))
            if rows.size == 0:
                continue
            t = np.maximum((block.borders[border, rows] - self.z[rows]) / dz[rows], 0.0)
            k = int(np.argmin(t))
            if t[k] < best:
                best, name = float(t[k]), (border, int(rows[k]))
        return best, name

    def _hold(self, border: int, row: int) -> None:
        labels = self.labels.copy()
        labels.kink[row] = labels.piece[row] = border
        held = labels.held
        self.z[row] = self.block.borders[border, row]
        self.labels = labels
        try:
            self._inverse(held)
        except LostBranchError:  # it depends on the held ones, and passes with them
            labels.kink[row] = -1
            labels.piece[row] = border + (1 if self.labels.piece[row] <= border else 0)

    def let_go(self, row: int, side: int) -> None:
        """A held row leaves its kink."""
        labels = RowLabels(self.labels.piece.copy(), self.labels.kink.copy(), self.labels.band.copy())
        self.block.flip(labels, side, row, 1.0)
        self.labels = labels


def _worst(model: DualModel, flow: _Flow, here: _Here) -> tuple[int, int, float]:
    """The held row whose multiplier is farthest outside its bounds, the side, and by how much (scaled)."""
    if here.held.size == 0:
        return -1, 0, 0.0
    s = -(flow.mu[here.held] + here.way.mu[here.place])
    below, above = here.values.low - s, s - here.values.high
    excess = np.maximum(below, above)
    k = int(np.argmax(excess))
    return int(here.held[k]), 0 if below[k] > above[k] else 1, float(excess[k]) / model.force


def _is_rounding(way: _Way, length: float) -> bool:
    """Is the size of a way in f (its length) what rounding leaves of its multipliers?"""
    return length**2 <= 1e-10 * float(np.linalg.norm(way.mu) * np.linalg.norm(way.z))


def _scaled(way: _Way, factor: float) -> _Way:
    return _Way(factor * way.mu, factor * way.z, factor * way.b)

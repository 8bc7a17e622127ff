"""The dense engine: every method over full vectors, O(d) a step; what has no lazy form runs here.

In: a `LinearModel`, an `Oracle` (who may be biased or noisy), a method's name. Out: the same as `engine.Engine`. One
method is one short class with a `move`; all keep the weighted sum of their dual iterates.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.dual_averaging.linear import LinearModel
from spdsl.solvers.dual_averaging.options import Noise
from spdsl.solvers.dual_averaging.proximal import Penalty
from spdsl.solvers.dual_averaging.tables import LINEAR, average_weight, weight_sum

__all__ = ["DENSE", "DenseEngine", "Oracle"]


class Oracle:
    """Stochastic subgradients of the loss, with the bias and the noise that were asked for.

    Parameters
    ----------
    model : LinearModel
    bias : float, array (d,) or function of (step, w)
        Added to the gradient by w.
    noise : Noise or None
    seed : int
        Noise of step k is the same for the same seed, wherever a run was cut.
    """

    def __init__(self, model: LinearModel, bias: Any, noise: Noise | None, seed: int) -> None:
        self.model = model
        self.bias = bias
        self.noise = noise
        self.seed = seed
        self._scale = model.design.row_scale.reshape(-1, 2)
        self._theta = model.theta
        self._slope = model.kernel.compiled().slope
        self._value = model.kernel.compiled().value

    def gradient(self, step: int, rows: Any, w: Array, b: float) -> tuple[Array, float, Array, Array]:
        """Gradient by w and b of the mean over `rows` times the number of samples; slopes s and ``s z - phi(z)``."""
        model, design = self.model, self.model.design
        g, gb = np.zeros(design.shape[1]), 0.0
        slopes, conjugates = np.empty(len(rows)), np.empty(len(rows))
        share = model.scale / len(rows)
        for m, i in enumerate(rows):
            columns, entries = design.row(int(i))
            unit, unit_b = self._scale[i if self._scale.shape[0] > 1 else 0]
            z = unit * float(entries @ w[columns]) + unit_b * b
            z += design.offset[i if design.offset.size > 1 else 0]
            theta = self._theta[i if self._theta.shape[0] > 1 else 0]
            s = float(self._slope(z, theta))
            slopes[m], conjugates[m] = s, z * s - self._value(z, theta)
            if s != 0.0:
                g[columns] += share * s * unit * entries  # a row names no column twice
                gb += share * s * unit_b
        if callable(self.bias):
            g = g + np.asarray(self.bias(step, w), float)
        else:
            g = g + self.bias
        if self.noise is not None:
            generator = np.random.default_rng([self.seed, 1, step])
            g = g + generator.normal(self.noise.mean, self.noise.deviation, size=g.size)
        return g, gb, slopes, conjugates


class DenseEngine:
    """A run of one method over full vectors.

    Parameters
    ----------
    model : LinearModel
    penalty : Penalty
        r and the set; the box may be tighter than the model's (Lemma 3).
    oracle : Oracle
    kind : int
        Weights: `tables.UNIFORM` or `tables.LINEAR`.
    primal : bool
        Gradients at the interpolated w.
    gamma, delta, smoothness : float
    batch : int
    """

    arrays: ClassVar[tuple[str, ...]] = ("z", "total")

    def __init__(
        self,
        model: LinearModel,
        penalty: Penalty,
        oracle: Oracle,
        kind: int,
        primal: bool,
        gamma: float,
        delta: float = 1.0,
        smoothness: float = 0.0,
        batch: int = 1,
    ) -> None:
        self.model, self.penalty, self.oracle = model, penalty, oracle
        self.kind, self.primal, self.batch = kind, primal, batch
        self.gamma, self.delta, self.smoothness = gamma, delta, smoothness
        d = model.n_features + int(model.intercept)  # the intercept rides along as the last coordinate
        self.step = 0
        self.z = self._project(np.zeros(d))
        self.total = average_weight(kind, 0) * self.z
        self.averages = np.zeros((1, 3))
        self.prepare(d)

    def prepare(self, d: int) -> None:
        """Set up what the method keeps besides z and the sum."""

    def move(self, k: int, g: Array) -> Array:
        """The next dual iterate from the gradient of step k."""
        raise NotImplementedError

    def point(self) -> Array:
        """Where the next gradient is taken."""
        return self.total / weight_sum(self.kind, self.step) if self.primal else self.z

    def advance(self, rows: Any) -> None:
        """Make ``len(rows) / batch`` steps."""
        for drawn in np.asarray(rows).reshape(-1, self.batch):
            at = self.point()
            w, b = self._split(at)
            g, gb, slopes, conjugates = self.oracle.gradient(self.step, drawn, w, b)
            if self.averages.shape[0] > 1:
                a = average_weight(self.kind, self.step)
                for i, s, conjugate in zip(drawn, slopes, conjugates):
                    self.averages[i] += (a, a * s, a * conjugate)
            self.z = self.move(self.step, np.append(g, gb) if self.model.intercept else g)
            self.step += 1
            self.total = self.total + average_weight(self.kind, self.step) * self.z

    def prox(self, v: Array, t: float, metric: Array | float = 1.0) -> Array:
        """The penalty's prox on w; the intercept is only bounded (and pushed by its linear coefficient)."""
        if not self.model.intercept:
            return self.penalty.prox(v, t, metric)
        last = metric if np.ndim(metric) == 0 else np.asarray(metric)[-1]
        inner = metric if np.ndim(metric) == 0 else np.asarray(metric)[:-1]
        b = float(v[-1] - t * self.model.intercept_linear / last)
        low, high = self.model.intercept_box
        return np.append(self.penalty.prox(v[:-1], t, inner), min(max(b, low), high))

    def _project(self, v: Array) -> Array:
        return self.prox(v, 0.0)

    def _split(self, point: Array) -> tuple[Array, float]:
        return (point[:-1], float(point[-1])) if self.model.intercept else (point, 0.0)

    def scale(self, k: int) -> float:
        """gamma_k."""
        return float(self.gamma * (k + 1.0) ** (1.5 if self.kind == LINEAR else 0.5))

    # -- reading and saving, as `engine.Engine` does -----------------------------------------------------------------

    def individual(self) -> tuple[Array, float]:
        """Where the next gradient would be taken."""
        return self._split(self.point())

    def mean(self) -> tuple[Array, float]:
        """The weighted mean of the dual iterates."""
        return self._split(self.total / weight_sum(self.kind, self.step))

    def dual(self) -> tuple[Array, float]:
        """The dual iterate."""
        return self._split(self.z)

    def track_slopes(self) -> None:
        """Keep each sample's weighted mean slope from now on."""
        rows = max(2, self.model.design.shape[0])
        if self.averages.shape[0] != rows:
            self.averages = np.zeros((rows, 3))

    def snapshot(self) -> dict[str, Any]:
        """The state as arrays."""
        kept = {name: np.array(getattr(self, name)) for name in self.arrays}
        return {"step": np.int64(self.step), "averages": self.averages.copy(), **kept}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        if np.shape(snapshot["z"]) != self.z.shape:
            raise ValueError(f"the snapshot holds {np.size(snapshot['z'])} features, this run {self.z.size}")
        self.step = int(snapshot["step"])
        self.averages = np.array(snapshot["averages"], float)
        for name in self.arrays:
            setattr(self, name, np.array(snapshot[name], float))


class DualAveraging(DenseEngine):
    """[DA] eq. 4 and 10: z = argmin <s, z> + A_k r(z) + gamma_k |z|^2 / 2."""

    arrays = ("z", "total", "s")

    def prepare(self, d: int) -> None:
        self.s = np.zeros(d)

    def move(self, k: int, g: Array) -> Array:
        self.s = self.s + average_weight(self.kind, k) * g
        gamma = self.scale(k)
        return self.prox(-self.s / gamma, weight_sum(self.kind, k) / gamma)


class ProjectedSubgradient(DenseEngine):
    """[DA] eq. 11: z <- prox(z - q_k g), q_k = a_k / gamma_k."""

    def move(self, k: int, g: Array) -> Array:
        q = average_weight(self.kind, k) / self.scale(k)
        return self.prox(self.z - q * g, q)


class AdagradRda(DenseEngine):
    """AdaGrad-RDA (Duchi, Hazan & Singer 2011): dual averaging in the metric (delta + sqrt(sum of squares)) gamma."""

    arrays = ("z", "total", "s", "squares")

    def prepare(self, d: int) -> None:
        self.s, self.squares = np.zeros(d), np.zeros(d)

    def move(self, k: int, g: Array) -> Array:
        self.s, self.squares = self.s + g, self.squares + g * g
        metric = np.maximum((self.delta + np.sqrt(self.squares)) * self.gamma, np.finfo(float).tiny)
        return self.prox(-self.s / metric, k + 1.0, metric)


class FtrlProximal(AdagradRda):
    """FTRL-Proximal (McMahan et al. 2013), with the L1 and L2 terms of every step taken as in the problem."""

    def move(self, k: int, g: Array) -> Array:
        squares = self.squares + g * g
        sigma = (np.sqrt(squares) - np.sqrt(self.squares)) * self.gamma
        self.s = self.s + g - sigma * self.z
        self.squares = squares
        metric = np.maximum((self.delta + np.sqrt(squares)) * self.gamma, np.finfo(float).tiny)
        return self.prox(-self.s / metric, k + 1.0, metric)


class PgdStep(DenseEngine):
    """PGD_step: projected subgradients with the momentum and steps alpha_t ~ t^-1.5 of an accelerated method.

    y = w_t + theta_t (1/theta_{t-1} - 1)(w_t - w_{t-1}), w_{t+1} = prox(y - alpha_t g(w_t)), theta_t = 2 / (t + 2).
    """

    arrays = ("z", "total", "before")

    def prepare(self, d: int) -> None:
        self.before = self.z.copy()

    def move(self, k: int, g: Array) -> Array:
        theta, theta_before = 2.0 / (k + 2.0), 2.0 / (k + 1.0)
        y = self.z + theta * (1.0 / theta_before - 1.0) * (self.z - self.before)
        alpha = 1.0 / (self.gamma * (k + 1.0) ** 1.5)
        self.before = self.z
        return self.prox(y - alpha * g, alpha)


class Spgm(DenseEngine):
    """The stochastic primal gradient method (Dvurechensky & Gasnikov 2016): steps 1 / (L + gamma sqrt(k + 1))."""

    def move(self, k: int, g: Array) -> Array:
        beta = self.smoothness + self.gamma * np.sqrt(k + 1.0)
        return self.prox(self.z - g / beta, 1.0 / beta)


class Sdgm(DenseEngine):
    """The stochastic dual gradient method: x by dual averaging, the averaged point y one gradient step from x."""

    arrays = ("z", "total", "s", "x")

    def prepare(self, d: int) -> None:
        self.s, self.x = np.zeros(d), self.z.copy()

    def point(self) -> Array:
        return self.x

    def move(self, k: int, g: Array) -> Array:
        beta = self.smoothness + self.gamma * np.sqrt(k + 1.0)
        y = self.prox(self.x - g / beta, 1.0 / beta)
        self.s = self.s + g
        self.x = self.prox(-self.s / beta, (k + 1.0) / beta)
        return y


class Sfgm(DenseEngine):
    """The stochastic fast gradient method: alpha_k = (k + 1)/2, A_k = (k + 1)(k + 2)/4, beta_k = L + gamma (k + 1)^1.5.

    y = prox of a step from x, z by dual averaging with weights alpha, x = tau z + (1 - tau) y with
    tau = alpha_{k+1} / A_{k+1}.
    """

    arrays = ("z", "total", "s", "x", "y")

    def prepare(self, d: int) -> None:
        self.s, self.x, self.y = np.zeros(d), self.z.copy(), self.z.copy()

    def point(self) -> Array:
        return self.x

    def individual(self) -> tuple[Array, float]:
        """The point that the rate is about."""
        return self._split(self.y)

    def move(self, k: int, g: Array) -> Array:
        beta = self.smoothness + self.gamma * (k + 1.0) ** 1.5
        self.y = self.prox(self.x - g / beta, 1.0 / beta)
        alpha, following = (k + 1.0) / 2.0, (k + 2.0) / 2.0
        self.s = self.s + alpha * g
        z = self.prox(-self.s / beta, (k + 1.0) * (k + 2.0) / 4.0 / beta)
        tau = following / ((k + 2.0) * (k + 3.0) / 4.0)
        self.x = tau * z + (1.0 - tau) * self.y
        return z


DENSE: dict[str, type[DenseEngine]] = {
    "dual_averaging": DualAveraging,
    "l1_rda": DualAveraging,
    "adagrad_rda": AdagradRda,
    "ftrl_proximal": FtrlProximal,
    "projected_subgradient": ProjectedSubgradient,
    "pgd_step": PgdStep,
    "spgm": Spgm,
    "sdgm": Sdgm,
    "sfgm": Sfgm,
}

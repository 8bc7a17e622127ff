"""From a bound problem and options to an engine: which method runs lazily, over which box, with which steps.

In: a `LinearModel`, `Options`. Out: an engine, lazy or dense, and the names of its points. Complaints as sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.dual_averaging.certificate import least_losses
from spdsl.solvers.dual_averaging.dense import DENSE, DenseEngine, Oracle
from spdsl.solvers.dual_averaging.engine import Engine, Setup
from spdsl.solvers.dual_averaging.linear import LinearModel
from spdsl.solvers.dual_averaging.options import Options, as_noise
from spdsl.solvers.dual_averaging.proximal import Penalty
from spdsl.solvers.dual_averaging.tables import LINEAR, UNIFORM

__all__ = ["Setting", "complaints", "make_setting"]

_FAMILY = {"dual_averaging": 0, "l1_rda": 0, "projected_subgradient": 1, "adagrad_rda": 2, "ftrl_proximal": 3}
_WEIGHTED = ("dual_averaging", "projected_subgradient")
_INTERPOLATED = ("dual_averaging", "projected_subgradient", "adagrad_rda")


@dataclass(frozen=True)
class Setting:
    """All that a run needs, settled.

    Attributes
    ----------
    model : LinearModel
    low, high : arrays
        The box of the run: the model's, or Lemma 3's where that is tighter.
    primal : bool
        Gradients at the interpolated w.
    output : {"individual", "average", "dual"}
    kind : int
        `tables.UNIFORM` or `tables.LINEAR`.
    dense : str
        Why the steps are O(features); empty when they are O(nonzeros).
    """

    model: LinearModel
    options: Options
    low: Array
    high: Array
    primal: bool
    output: str
    kind: int
    dense: str

    def engine(self, gamma: float) -> Engine | DenseEngine:
        """A fresh run at this scale of the steps."""
        if self.dense:
            return self._dense_engine(gamma)
        model, options = self.model, self.options
        family = _FAMILY[options.method]
        setup = Setup(
            family=family,
            kind=self.kind,
            primal=self.primal,
            summed=self.primal or self.output == "average",
            gamma=gamma,
            delta=options.delta,
            eta=1.0 / gamma,
            rho=model.rho,
            mu=float(model.mu[0]),
            bias=np.atleast_1d(np.asarray(options.gradient_bias, float)) + model.linear,
            low=self.low,
            high=self.high,
            intercept=model.intercept,
            intercept_box=model.intercept_box,
            intercept_bias=model.intercept_linear,
            batch=options.batch,
            scale=model.scale,
        )
        return Engine(model.design, model.kernel.compiled(), model.theta, setup)

    def _dense_engine(self, gamma: float) -> DenseEngine:
        model, options = self.model, self.options
        penalty = Penalty(model.rho, model.mu, model.linear, self.low, self.high, model.ball)
        oracle = Oracle(model, options.gradient_bias, as_noise(options.gradient_noise), options.seed)
        kind = DENSE[options.method]
        return kind(
            model, penalty, oracle, self.kind, self.primal, gamma, options.delta, options.smoothness, options.batch
        )

    def point(self, engine: Engine | DenseEngine) -> tuple[Array, float]:
        """The answer as it stands."""
        read = {"individual": engine.individual, "average": engine.mean, "dual": engine.dual}
        return read[self.output]()


def make_setting(model: LinearModel, options: Options) -> Setting:
    """Settle the method for a model; there must be no `complaints`."""
    interpolate = options.interpolate
    if interpolate is None:
        interpolate = options.method in _WEIGHTED
    primal = bool(interpolate) and options.method in _INTERPOLATED
    low, high = _box(model, options)
    return Setting(
        model=model,
        options=options,
        low=low,
        high=high,
        primal=primal,
        output=_output(options, primal),
        kind=LINEAR if options.weights == "linear" else UNIFORM,
        dense=_why_dense(model, options, primal),
    )


def complaints(model: LinearModel, options: Options) -> list[str]:
    """What doesn't go together, as sentences."""
    found = []
    method = options.method
    if options.weights == "linear" and method not in _WEIGHTED:
        found.append(f"linear weights are for {' and '.join(_WEIGHTED)}; `{method}` has weights of its own")
    if options.interpolate and method not in _INTERPOLATED:
        found.append(f"`{method}` has no interpolated form; {', '.join(_INTERPOLATED)} have")
    bias = options.gradient_bias
    if not callable(bias) and np.size(bias) not in (1, model.n_features):
        found.append(f"`gradient_bias` has {np.size(bias)} entries for {model.n_features} coordinates")
    if model.ball is not None:
        inside = model.mu if model.mu.size == 1 else model.mu[model.ball.where]
        if np.any(inside != inside[0]):
            found.append("coordinates of a ball need the same L2 coefficient")
        if method in ("adagrad_rda", "ftrl_proximal"):
            found.append(f"`{method}` measures coordinates in scales of their own, so it takes a box, not a ball")
        if np.any(np.isfinite(model.low)) or np.any(np.isfinite(model.high)):
            found.append("it takes bounds or a ball, not both")
    if options.bound and (callable(bias) or as_noise(options.gradient_noise) is not None):
        found.append("the bound line with its plateau (`bound`) is for a constant bias")
    if options.bound and method != "dual_averaging":
        found.append("the bound line (`bound`) is that of dual averaging")
    return found


def _why_dense(model: LinearModel, options: Options, primal: bool) -> str:
    method, bias = options.method, options.gradient_bias
    if not options.lazy:
        return "asked for"
    if method not in _FAMILY:
        return f"`{method}` moves every coordinate in every step"
    if model.ball is not None:
        return "a projection onto a ball moves every coordinate"
    if as_noise(options.gradient_noise) is not None or callable(bias):
        return "the noise of the gradient moves every coordinate"
    family = _FAMILY[method]
    pushed = bool(np.any(np.asarray(bias, float) != 0.0) or np.any(model.linear != 0.0))
    if family > 0 and pushed:
        return f"a constant part of the gradient has no closed form under `{method}`"
    if model.mu.size > 1:
        return "coordinates have L2 coefficients of their own"
    if family > 1 and model.mu[0] > 0.0 and (primal or _output(options, primal) == "average"):
        return "a ridge in coordinate-wise scales has no prefix sums"
    return ""


def _output(options: Options, primal: bool) -> str:
    if options.output != "auto":
        return options.output
    if options.method in ("l1_rda", "ftrl_proximal") or (options.method == "adagrad_rda" and not primal):
        return "dual"
    if options.method in ("spgm", "sdgm") or (options.method in _INTERPOLATED and not primal):
        return "average"
    return "individual"


def _box(model: LinearModel, options: Options) -> tuple[Array, Array]:
    """The model's box, cut to that of [DA] Lemma 3: rho_j |w_j| <= F(0) - inf F."""
    if not options.box or model.ball is not None or not np.any(model.rho > 0.0):
        return model.low, model.high
    zero_is_feasible = np.all(model.low <= 0.0) and np.all(model.high >= 0.0)
    low, high = model.intercept_box
    if not zero_is_feasible or low > 0.0 or high < 0.0 or np.any(model.linear != 0.0) or model.intercept_linear:
        return model.low, model.high
    least = least_losses(model)
    if least is None:
        return model.low, model.high
    m = model.design.shape[0]
    room = float(np.sum(model.losses_at(np.broadcast_to(model.design.offset, (m,)).astype(float))))
    room -= float(np.sum(np.broadcast_to(least, (m,))))
    room *= model.scale / m  # one chunk of a stream stands for all
    with np.errstate(divide="ignore"):
        edge = np.where(model.rho > 0.0, room / model.rho, np.inf)
    low_edge, high_edge = np.maximum(model.low, -edge), np.minimum(model.high, edge)
    return np.broadcast_to(low_edge, high_edge.shape).copy(), high_edge

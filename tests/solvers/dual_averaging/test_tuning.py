"""Choosing gamma: trials are scored on a sample of the rows, which must be those rows and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import spdsl
from spdsl.data import bind
from spdsl.solvers.dual_averaging import tuning
from spdsl.solvers.dual_averaging.linear import LinearModel, linear_model
from spdsl.solvers.dual_averaging.options import Options
from spdsl.solvers.dual_averaging.sampling import Sampler
from spdsl.solvers.dual_averaging.setting import make_setting

MODEL = """
data
  X : matrix(n, d)
  y : labels(n)
parameter
  rho = 1e-3
variable
  w : vector(d)
minimize
  loss         hinge(y * (X @ w)) / n
  regularizer  rho * norm1(w)
"""


def model_of(form: str, n: int = 600, d: int = 40) -> tuple[LinearModel, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.2)
    X[7] = 0.0  # a row without entries
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1.0, -1.0)
    given = sp.csr_matrix(X) if form == "csr" else X
    return linear_model(bind(spdsl.parse(MODEL).problem, arrays={"X": given, "y": y})), X, y


@pytest.mark.parametrize("form", ["csr", "dense"])
def test_a_sample_of_a_model_has_the_losses_of_its_rows(form):
    model, X, y = model_of(form)
    chosen, w = np.array([0, 7, 8, 311, 599]), np.random.default_rng(1).normal(size=40)
    losses = np.maximum(0.0, 1.0 - y * (X @ w))[chosen] / 600
    np.testing.assert_allclose(tuning.sample_of(model, chosen).losses(w), losses, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("form", ["csr", "dense"])
def test_scoring_on_a_sample_finds_a_gamma_nearly_as_good_as_scoring_on_all_rows(form, monkeypatch):
    model, _, _ = model_of(form)
    setting = make_setting(model, Options())

    def reached(scored: int) -> float:
        monkeypatch.setattr(tuning, "_SCORED", scored)
        sampler = Sampler(600, "shuffle", 0)
        gamma, trials = tuning.tuned_gamma(setting, sampler, 6_000)
        assert trials >= 4
        engine = setting.engine(gamma)
        engine.advance(sampler.rows(0, 6_000))
        return model.objective(*setting.point(engine))

    assert reached(300) <= 1.02 * reached(600)

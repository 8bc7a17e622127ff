"""The model files that the language has to make look natural, and helpers to check them."""

from __future__ import annotations

from spdsl.language import CheckedModel, check, parse

SELF_PACED_LASSO = """\
# Robust sparse regression: let easy samples in first.
data
  X : matrix(n, d)
  y : vector(n)

parameter
  alpha = 5e-3

variable
  w : vector(d)

age lambda in quantiles(0.2, 1)     # from a fifth of the samples in, to all

minimize
  loss         (X @ w - y)^2 / (2*n)
  regularizer  alpha * norm1(w)
  self_paced   linear(lambda)
"""

KERNEL_SVM = """\
data
  X : matrix(n, d)
  y : labels(n)                     # two classes

parameter
  C = 1
  gamma = 0.5
  kappa = 0.2

define blend(v, lambda) = kappa^2 / (v + kappa/lambda)      # f(v, lambda) as in Definition 2

variable
  f : rkhs(X, rbf(gamma))
  b : scalar

age lambda in [0.1, 10]

minimize
  loss         C * hinge(y * (f(X) + b))
  regularizer  norm(f)^2 / 2
  self_paced   blend(lambda)
"""

GRAPH_SPARSE = """\
data
  X : matrix(m, p)
  y : vector(m)
  G : graph(p)

variable
  w : vector(p)

minimize
  loss  (X @ w - y)^2 / (2*m)

subject to
  support(w) in connected(G, size = 40, components = 1)

solve
  graph_sto_iht(batch = 16, step = 0.5, epochs = 50, seed = 1)
"""

BIASED_HINGE = """\
data
  X : matrix(n, d)                  # dense, or SciPy CSR: never densified
  y : labels(n)

parameter
  rho = 1e-4

variable
  w : vector(d)

minimize
  loss         hinge(y * (X @ w)) / n
  regularizer  rho * norm1(w)

solve
  dual_averaging(interpolate = true, passes = 10, gradient_bias = 0.0, seed = 1)
"""

METRIC = """\
data
  U : matrix(T, d)
  V : matrix(T, d)                  # the pair (U[t], V[t]) is similar (+1) or dissimilar (-1)
  y : labels(T)

parameter
  rho = 0.01

variable
  M  : symmetric(d)
  mu : scalar

minimize
  loss         hinge(y * (mu - mahalanobis(M, U - V))) / T
  regularizer  rho * trace_norm(M)

subject to
  M >> 0
  mu >= 1

solve
  comid(divergence = von_neumann, step = 0.1, passes = 5, seed = 1)
"""

FIVE = {
    "self_paced_lasso": SELF_PACED_LASSO,
    "kernel_svm": KERNEL_SVM,
    "graph_sparse": GRAPH_SPARSE,
    "biased_hinge": BIASED_HINGE,
    "metric": METRIC,
}
"""The five model files, by name."""


def checked(text: str) -> CheckedModel:
    """Parse and check."""
    return check(parse(text))


def regression(
    loss: str = "(X @ w - y)^2",
    *more: str,
    data: str = "",
    parameter: str = "alpha = 5e-3",
    define: str = "",
    variable: str = "",
    subject: str = "",
) -> str:
    """A regression model with the lines that a test is about."""
    lines = ["data", "  X : matrix(n, d)", "  y : vector(n)"]
    lines += [f"  {line}" for line in data.splitlines()]
    lines += ["parameter", *(f"  {line}" for line in parameter.splitlines())] if parameter else []
    lines += ["variable", "  w : vector(d)", *(f"  {line}" for line in variable.splitlines())]
    lines += ["define", *(f"  {line}" for line in define.splitlines())] if define else []
    lines += ["minimize", f"  loss {loss}", *(f"  {line}" for line in more)]
    lines += ["subject to", *(f"  {line}" for line in subject.splitlines())] if subject else []
    return "\n".join(lines) + "\n"

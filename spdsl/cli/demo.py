"""`spdsl demo`: the main job on real data that ships with a dependency, each age held against CVX.

In: nothing. Out: the model, a table, a verdict, a picture.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from spdsl.cli.arguments import debug_option
from spdsl.cli.output import ExitCode, stdout

__all__ = ["MODEL", "demo"]

MODEL = """\
data
  X : matrix(n, d)
  y : vector(n)

parameter
  alpha = 0.01

variable
  w : vector(d)

age lambda in quantiles(0.2, 1)

minimize
  loss         (X @ w - y)^2 / (2*n)
  regularizer  alpha * norm1(w)
  self_paced   linear(lambda)
"""


@click.command()
@click.option("--out", default="spdsl_demo.png", show_default=True, metavar="FILE", help="Where to save the picture.")
@debug_option
def demo(out: str) -> int:
    """Solve a self-paced Lasso over all its ages on scikit-learn's diabetes data, and hold every age against CVX."""
    import spdsl
    from spdsl.view.certificates import certificate_verdict, demo_table
    from spdsl.view.tables import path_lines

    console = stdout()
    console.print(
        "A self-paced Lasso on scikit-learn's diabetes data: 442 patients, 10 features, standardized.\n"
        "As the age grows, harder patients are let in; the whole path over the ages is followed exactly.\n",
        markup=False,
    )
    console.print("\n".join(f"    {line}" for line in MODEL.splitlines()), style="cyan", markup=False)
    model = spdsl.parse(MODEL, "demo.spl")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "diabetes.csv"
        _write_diabetes(table)
        path = model.solve(table, bind={"y": "target"}, standardize=("X", "y"), progress=True)
    assert isinstance(path, spdsl.Path)
    certificate = model.check(path)
    console.print(demo_table(path, certificate))
    for line in path_lines(path):
        console.print(line)
    console.print(certificate_verdict(certificate))
    path.plot(out)
    console.print(f"the picture is in {out}\n", markup=False)
    console.print(
        "Your own: `spdsl new lasso.spl --from lasso`, then `spdsl solve lasso.spl --data table.csv`", markup=False
    )
    return ExitCode.SOLVED if certificate and path.status.ok else ExitCode.WRONG


def _write_diabetes(file: Path) -> None:
    """scikit-learn's diabetes data in their own units as a table, as a user would have them."""
    import numpy as np
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    table = np.column_stack([bunch.data, bunch.target])
    header = ",".join([*bunch.feature_names, "target"])
    np.savetxt(file, table, fmt="%.17g", delimiter=",", header=header, comments="")

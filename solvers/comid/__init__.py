"""COMID: composite objective mirror descent for metrics over the PSD cone and for vectors.

`backend` is the back end; `engine` with `representations` the exact fast loop over pairs; `divergences` the
mirror maps; `naive` the reference by full eigendecompositions; `vector` and `vector_engine` the same for
vectors; `kernel_metric` the kernel PCA route.
"""

from __future__ import annotations

from spdsl.solvers.comid.backend import Comid

__all__ = ["Comid"]

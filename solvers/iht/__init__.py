"""Iterative hard thresholding: projections onto sparse and graph-structured supports, and the methods that use them.

In: vectors, graphs and smooth losses as arrays. Out: supports of exactly the asked size, with the energy they capture
and an upper bound on what any admissible support could capture; solutions whose support is admissible. Importing this
package loads no numba: the kernels compile on first use, once per installation.
"""

from __future__ import annotations

from typing import Any

__all__ = ["IHT", "NIHT", "CoSaMP", "GraphCoSaMP", "GraphIHT", "GraphStoIHT", "GraphSvrgIHT", "StoIHT"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from spdsl.solvers.iht import backend

        return getattr(backend, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

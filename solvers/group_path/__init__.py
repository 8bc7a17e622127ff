"""The back end `group_path`: exact age-paths under group norms, alone or with L1 (sparse group lasso) and quadratics.

In: a bound problem. Out: a `Path` whose nodes are exact to rounding, its turning points named by group.
"""

from spdsl.solvers.group_path.backend import GroupPath

__all__ = ["GroupPath"]

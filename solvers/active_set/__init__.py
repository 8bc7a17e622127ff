"""The KKT blocks that exact back ends share: scalar terms, their pieces and kinks, bordered systems, exact descent.

In: a `BoundProblem`. Out: a `System` (evaluations, labels, gaps to the next event) and `minimize` (the next minimum).
"""

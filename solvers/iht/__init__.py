"""Iterative hard thresholding: projections onto sparse and graph-structured supports, and the methods that use them.

In: vectors, graphs and smooth losses as arrays. Out: supports of exactly the asked size, with the energy they capture
and an upper bound on what any admissible support could capture; solutions whose support is admissible. Importing this
package loads no numba: the kernels compile on first use, once per installation.
"""

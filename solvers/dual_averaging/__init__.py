"""Dual averaging and its relatives on large sparse linear models: O(nonzeros) steps, streams, biased gradients."""

from __future__ import annotations

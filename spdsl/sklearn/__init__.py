"""Estimators with the interface of scikit-learn (and, for metrics, of metric-learn).

In: arrays. Out: `MDML` (labeled pairs), `MDMLSupervised` (labeled points) and their kernel twins, which learn a
Mahalanobis metric by composite objective mirror descent (Kunapuli & Shavlik 2012).
"""

from __future__ import annotations

from spdsl.sklearn.kernel import KernelMDML, KernelMDMLSupervised
from spdsl.sklearn.mdml import MDML, MDMLSupervised

__all__ = ["MDML", "KernelMDML", "KernelMDMLSupervised", "MDMLSupervised"]

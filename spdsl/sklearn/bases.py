"""scikit-learn's own base classes, bundled once for the metric learners."""

from __future__ import annotations

from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

__all__ = ["MapEstimator", "PairEstimator"]


class MapEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that maps points."""


class PairEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that maps points and classifies pairs."""

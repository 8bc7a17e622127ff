"""scikit-learn's own base classes, bundled once for the metric learners."""

from __future__ import annotations

from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

__all__ = ["MapEstimator", "PairEstimator"]


class MapEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that maps points."""


class PairEstimator(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that is fitted to pairs, classifies pairs, and maps points: so there is no `fit_transform`."""

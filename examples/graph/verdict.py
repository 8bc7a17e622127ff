"""Is our recovery lower or higher than published? One test a point, one a method over all of its points.

In: counts of ours, published shares. The published scripts ran 50 trials a point and dropped the three best and the
three worst: a share q strictly between 0 and 1 therefore stands for 44 q + 3 successes of 50; one of 0 may hide three
successes and one of 1 three failures, and each is read in the way that speaks against us. Out: Fisher's exact test at a
point, and the Cochran-Mantel-Haenszel statistic over points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["LEVEL", "Comparison", "combined", "compare"]

LEVEL = 0.01  # of a test at one point, one-sided
RUNS, DROPPED = 50, 3


@dataclass(frozen=True)
class Comparison:
    """Ours against the published at one number of measurements."""

    at: float
    hits: int
    runs: int
    share: float

    @property
    def lower(self) -> float:
        """Probability of so few successes, or fewer, if both had the same chance (one-sided)."""
        return fisher(self.hits, self.runs, self.published(ones=RUNS), "less")

    @property
    def higher(self) -> float:
        """Probability of so many successes, or more, if both had the same chance (one-sided)."""
        return fisher(self.hits, self.runs, self.published(zeros=DROPPED), "greater")

    def published(self, zeros: int = 0, ones: int = RUNS) -> int:
        """Successes of the 50 published trials; what a share of 0 or of 1 is read as is given."""
        if self.share <= 0.0:
            return zeros
        if self.share >= 1.0:
            return ones
        return round((RUNS - 2 * DROPPED) * self.share) + DROPPED

    def __str__(self) -> str:
        return f"{self.at:g}: {self.hits} of {self.runs}, published {self.share:.2f}"


def compare(at: np.ndarray, counts: np.ndarray, shares: np.ndarray) -> list[Comparison]:
    """Comparisons at the points `at`; counts (k, 2) are successes and trials, shares (k,) are published."""
    return [Comparison(float(a), int(h), int(n), float(q)) for a, (h, n), q in zip(at, counts, shares)]


def fisher(hits: int, runs: int, published: int, side: str) -> float:
    """p-value of Fisher's exact test of our share against the published one."""
    from scipy.stats import fisher_exact

    table = [[hits, runs - hits], [published, RUNS - published]]
    return float(fisher_exact(table, alternative=side)[1])


def combined(points: list[Comparison], against_us: bool = True) -> float:
    """The Cochran-Mantel-Haenszel z of ours over the published: below -2.3 we are lower, above 2.3 higher (1%).

    Points at which both always or both never succeed say nothing and add nothing.
    """
    excess = variance = 0.0
    for point in points:
        theirs = point.published(ones=RUNS) if against_us else point.published(zeros=DROPPED)
        whole = point.runs + RUNS
        hits = point.hits + theirs
        excess += point.hits - point.runs * hits / whole
        variance += point.runs * RUNS * hits * (whole - hits) / (whole**2 * (whole - 1))
    return float(excess / np.sqrt(variance)) if variance > 0 else 0.0

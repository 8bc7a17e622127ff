"""Stability selection: how often each entry is chosen over seeds and shares of the samples.

In: a bound model, a back end with its options, how many repeats. Out: `Stability`: selection shares and the entries
that pass a threshold. Repeats go through joblib, so that a user's backend (processes, dask, ray) spreads them. Source:
Meinshausen and Buehlmann (2010), with the error bound of their Theorem 1.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdsl.diagnostics import Diagnostic, UsageError
from spdsl.problem import BoundProblem
from spdsl.solution import Solution
from spdsl.solution.frame import entry_names
from spdsl.solvers.driver import run
from spdsl.solvers.protocol import BackEnd
from spdsl.solvers.samples import on_samples

__all__ = ["Stability", "stability"]


@dataclass(frozen=True)
class Stability:
    """Selection shares over repeats.

    Attributes
    ----------
    shares : array (p,)
        In which share of the repeats each entry was in the support.
    supports : tuple of int arrays
        The support of each repeat.
    names : tuple of str
        The entries' names, such as ``w[3]`` or ``w[bmi]``.
    unfinished : int
        How many of the repeats ended at a limit; what they had reached is counted like the others.
    """

    shares: NDArray[np.float64]
    supports: tuple[NDArray[np.int64], ...] = field(repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    unfinished: int = 0

    def chosen(self, threshold: float = 0.6) -> NDArray[np.int64]:
        """The entries that are chosen in at least that share of the repeats, the most frequent first."""
        order = np.argsort(-self.shares, kind="stable")
        return order[self.shares[order] >= threshold]

    def expected_false(self, threshold: float = 0.6) -> float:
        """A bound on the expected number of wrongly chosen entries: q^2 / ((2 threshold - 1) p).

        It holds for repeats on halves of the samples, when the wrong entries are exchangeable and the right ones are
        chosen no less often; inf for thresholds of at most 1/2.
        """
        if threshold <= 0.5:
            return float("inf")
        q = float(self.shares.sum())  # entries chosen in a repeat, on average
        return q * q / ((2.0 * threshold - 1.0) * self.shares.size)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write `shares`, `names` and the repeats' supports, as a mask (repeats, p), to an NPZ file.

        Raises
        ------
        UsageError
            When the file can't be written.
        """
        masks = np.zeros((len(self.supports), self.shares.size), dtype=bool)
        for row, support in zip(masks, self.supports):
            row[support] = True
        try:
            with open(file, "wb") as stream:
                np.savez_compressed(stream, shares=self.shares, names=np.array(self.names, dtype=str), masks=masks)
        except OSError as error:
            raise UsageError(Diagnostic("SPL705", f"can't write {file}: {error.strerror or error}")) from error


def stability(
    bound: BoundProblem,
    backend: BackEnd[Any],
    options: Any,
    variable: str | None = None,
    repeats: int = 50,
    share: float = 0.5,
    jobs: int = 1,
) -> Stability:
    """Solve a model `repeats` times, each on a random share of its samples and with a seed of its own.

    Parameters
    ----------
    options
        The back end's checked options; repeat k gets the seed ``options.seed + k``, the draws of samples
        ``options.seed``.
    variable : str, optional
        The vector whose support counts; by default the model's only one.
    repeats : int
        At least 2.
    share : float
        Share of the samples in each repeat, in (0, 1]; 1 repeats over seeds only.
    jobs : int
        As joblib's `n_jobs`: 1 stays in this process, -1 takes all cores.

    Raises
    ------
    UsageError
        For a model without samples to draw or without such a vector, and for numbers out of range.
    """
    from joblib import Parallel, delayed

    name = _vector(bound, variable)
    if repeats < 2 or not 0.0 < share <= 1.0:
        raise _refusal(f"repeats are at least 2 and the share lies in (0, 1], not {repeats} and {share:g}")
    n = _samples(bound)
    size = max(1, round(share * n))
    rng = np.random.default_rng(options.seed)
    draws = [np.sort(rng.choice(n, size, replace=False)) for _ in range(repeats)]
    tasks = (
        delayed(_one)(bound, rows, backend, replace(options, seed=options.seed + k), name)
        for k, rows in enumerate(draws)
    )
    answers = Parallel(n_jobs=jobs)(tasks)
    masks = np.array([mask for mask, _ in answers])
    names = tuple(entry_names(bound)[bound.layout.slices[name]])
    supports = tuple(np.flatnonzero(row) for row in masks)
    return Stability(masks.mean(axis=0), supports, names, sum(not ok for _, ok in answers))


def _one(
    bound: BoundProblem, rows: NDArray[np.int64], backend: BackEnd[Any], options: Any, name: str
) -> tuple[NDArray[np.bool_], bool]:
    """Which entries one repeat chooses, and did it end as it should?"""
    answer = run(backend, on_samples(bound, rows), options)
    if not isinstance(answer, Solution):
        raise _refusal("it repeats models with one solution, and this one has a path: write `age lambda = ...`")
    return np.asarray(answer[name]) != 0.0, answer.status.ok


def _samples(bound: BoundProblem) -> int:
    """How many samples there are to draw from."""
    loss = bound.problem.loss
    if loss is None or loss.rows == "" or loss.rows.isdigit():
        raise _refusal("it draws samples, and this model's loss has no samples of a named number")
    of_samples = [item.name for item in bound.problem.variables if loss.rows in item.dims]
    graphs = [item.name for item in bound.problem.data if item.kind == "graph" and loss.rows in item.dims]
    if of_samples or graphs:
        raise _refusal(f"it draws samples, and `{(of_samples + graphs)[0]}` has one entry a sample ({loss.rows})")
    return bound.n_samples


def _vector(bound: BoundProblem, variable: str | None) -> str:
    """The variable whose support counts."""
    vectors = [item.name for item in bound.problem.variables if item.kind == "vector"]
    if variable in vectors:
        return variable
    if variable is None and len(vectors) == 1:
        return vectors[0]
    known = ", ".join(f"`{name}`" for name in vectors) or "none"
    asked = "no vector is named, and" if variable is None else f"`{variable}` is no vector of this model:"
    raise _refusal(f"{asked} it counts the support of one of {known}")


def _refusal(reason: str) -> UsageError:
    return UsageError(Diagnostic("SPL519", f"stability selection can't repeat this: {reason}"))

"""`Cells`: losses and weights whose pull on a prediction is piecewise affine (mixture with squared losses, say).

In: a block of rows and a range of ages. Out: the cells of the line on which v* phi' is one affine function of z, with
coefficients that are affine in 1/age; or None where the pull is no such function. It is told from the kernels: borders of the
pieces of phi, and the places inside them where phi reaches a threshold of v*, which has a closed form since phi must be
quadratic on each piece.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from spdsl.problem.functions import Array
from spdsl.solvers.active_set.rows import RowBlock
from spdsl.solvers.active_set.weighting import IntArray, SelfPacedWeights

__all__ = ["Cells", "cells_of"]

_EXACT = 1e-10  # relative: what is affine is so to rounding
_MOST = 12  # cells
_PROBES = 5  # ages


@dataclass(frozen=True)
class Cells:
    """Cells by ascending z; in cell k the pull is (slope[k, 0] + slope[k, 1] / age) z + offset[k, 0] + offset[k, 1] / age.

    Attributes
    ----------
    slope, offset : arrays (k, 2)
    bend : array (k, 2)
        phi' in each is bend[k, 0] z + bend[k, 1].
    piece, band : int arrays (k,)
        The labels of phi and v* in each.
    """

    slope: Array
    offset: Array
    bend: Array
    piece: IntArray
    band: IntArray


def cells_of(block: RowBlock, low: float, high: float) -> Cells | None:
    """The cells of a block's pull for ages from `low` to `high`; None where it isn't piecewise affine, or changes its shape."""
    weighting = block.weighting
    if not isinstance(weighting, SelfPacedWeights) or not weighting.continuous or block.any_kink:
        return None
    if any(np.ndim(t) for t in block.theta):
        return None  # samples with functions of their own
    inverse = np.linspace(1.0 / high, 1.0 / low, _PROBES)
    found = [_at(block, weighting, 1.0 / float(t)) for t in inverse]
    first = found[0]
    if first is None or any(
        other is None or not np.array_equal(first[1], other[1]) or not np.array_equal(first[2], other[2])
        for other in found
    ):
        return None
    values = np.stack([item[0] for item in found if item is not None])  # (probes, cells, 2)
    design = np.stack([np.ones(_PROBES), inverse], axis=1)
    fits = []
    for part in np.moveaxis(values, 2, 0):  # slopes, then offsets: (probes, cells)
        size = float(np.abs(part).max(initial=1e-300))
        fit = np.linalg.lstsq(design, part, rcond=None)[0]
        if float(np.abs(design @ fit - part).max(initial=0.0)) > _EXACT * size:
            return None
        fit[np.abs(fit) * design.max(axis=0)[:, None] <= 1e-13 * size] = 0.0  # rounding
        fits.append(fit.T.copy())
    if (fits[0][:, 1] > 0.0).any():
        return None  # between events the Hessian must not fall with the age
    shapes = [_quadratic(block, piece) or (0.0, 0.0, 0.0) for piece in first[1].tolist()]
    bend = np.array([(2.0 * a, b) for a, b, _ in shapes])
    return Cells(fits[0], fits[1], bend, first[1], first[2])


def _at(block: RowBlock, weighting: SelfPacedWeights, age: float) -> tuple[Array, IntArray, IntArray] | None:
    """Slope and offset of every cell at one age (k, 2) with the cells' labels."""
    kernel, theta = block.kernel, block.theta
    borders = [float(border) for border in kernel.breaks(*theta)]
    edges = [-np.inf, *borders, np.inf]
    thresholds, _ = weighting.borders(age)
    places = list(borders)
    for piece, (left, right) in enumerate(itertools.pairwise(edges)):
        here = _quadratic(block, piece)
        if here is None:
            return None
        places.extend(z for threshold in thresholds for z in _reached(here, float(threshold)) if left < z < right)
    places = sorted(set(places))
    if not np.isfinite(places).all() or len(places) >= _MOST:
        return None
    points = _inside(places)
    label = np.asarray(kernel.piece(points[:, 0], *theta), np.int64)
    band = weighting.band(_call(kernel.value, label, points[:, 0], theta), age)
    pulls = []
    for column in range(points.shape[1]):
        z = points[:, column]
        loss, slope = _call(kernel.value, label, z, theta), _call(kernel.slope, label, z, theta)
        pulls.append(weighting.evaluate(band, loss, age)[0] * slope)
    first, second, third = pulls
    rise = (third - first) / (points[:, 2] - points[:, 0])
    level = first - rise * points[:, 0]
    size = np.abs(np.stack(pulls)).max(initial=1e-300)
    if float(np.abs(level + rise * points[:, 1] - second).max(initial=0.0)) > _EXACT * size:
        return None
    affine = np.stack([rise, level], axis=1)
    scale = np.abs(affine).max(axis=0, initial=1e-300)
    new = np.ones(len(points), bool)
    new[1:] = (np.abs(np.diff(affine, axis=0)) > 1e-9 * scale).any(axis=1)  # neighbours that pull alike are one cell
    return affine[new], label[new], band[new]


def _inside(places: list[float]) -> Array:
    """Three points inside each interval between places (k, 3)."""
    if not places:
        return np.array([[-1.0, 0.5, 1.0]])
    reach = max(places[-1] - places[0], abs(places[0]), abs(places[-1]), 1e-300)
    edges = [places[0] - reach, *places, places[-1] + reach]
    left, right = np.array(edges[:-1]), np.array(edges[1:])
    return np.stack([left + share * (right - left) for share in (0.1, 0.45, 0.9)], axis=1)


def _quadratic(block: RowBlock, piece: int) -> tuple[float, float, float] | None:
    """phi on a piece as (a, b, c): a z^2 + b z + c; None where it is none."""
    edges = [-np.inf, *(float(border) for border in block.kernel.breaks(*block.theta)), np.inf]
    left, right = edges[piece], edges[piece + 1]
    width = right - left if np.isfinite(right - left) else block.scale
    if not width > 0.0:
        return (0.0, 0.0, np.inf)  # an empty piece
    start = left if np.isfinite(left) else (right - width if np.isfinite(right) else -0.5 * width)
    z = start + width * np.array([0.13, 0.41, 0.77])
    labels = np.full(3, piece)
    value, slope, bend = (
        _call(function, labels, z, block.theta)
        for function in (block.kernel.value, block.kernel.slope, block.kernel.curvature)
    )
    if np.abs(bend - bend[0]).max() > _EXACT * max(float(np.abs(bend).max()), 1e-300):
        return None
    a = 0.5 * float(bend[0])
    b = float(slope[0] - bend[0] * z[0])
    return a, b, float(value[0] - a * z[0] ** 2 - b * z[0])


def _reached(quadratic: tuple[float, float, float], level: float) -> list[float]:
    """Where a quadratic function reaches a level."""
    a, b, c = quadratic
    if not np.isfinite(level) or not np.isfinite(c):
        return []
    if a == 0.0:
        return [] if b == 0.0 else [(level - c) / b]
    inner = b * b - 4.0 * a * (c - level)
    if inner < 0.0:
        return []
    root = float(np.sqrt(inner))
    return [(-b - root) / (2.0 * a), (-b + root) / (2.0 * a)]


def _call(function: Any, piece: IntArray, z: Array, theta: tuple[Any, ...]) -> Array:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(function(piece, z, *theta), float), z.shape)

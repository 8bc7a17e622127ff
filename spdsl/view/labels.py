"""Names at the right-hand end of curves, moved apart so that none covers another.

In: (height, name, colour) of each curve. Out: texts beside the axes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["moved_apart", "spread_labels"]

LINE = 10.5  # points from one label to the next


def spread_labels(axis: Any, shown: list[tuple[float, str, str]]) -> None:
    """Write each name at its height, to the right of the axes; the limits of the y-axis must be set."""
    low, high = axis.get_ylim()
    figure = axis.figure
    height = axis.get_position().height * figure.get_figheight() * 72
    wanted = [(value - low) / (high - low) for value, _, _ in shown]
    placed = moved_apart(wanted, LINE / max(height, 1.0))
    for at, (_, name, color) in zip(placed, shown, strict=True):
        axis.annotate(
            shortened(name),
            (1, at),
            xycoords="axes fraction",
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            ha="left",
            fontsize=8.5,
            color=color,
            annotation_clip=False,
        )


def shortened(name: str, most: int = 18) -> str:
    """A long name with its middle left out; `$` is no mathematics here."""
    name = name.replace("$", r"\$")
    return name if len(name) <= most else f"{name[: most - 8]}…{name[-7:]}"


def moved_apart(wanted: list[float], gap: float) -> list[float]:
    """Heights as near as possible to the wanted ones, each at least `gap` from the next (pool adjacent violators)."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[tuple[float, list[int]]] = []  # (centre, members from below)
    for i in order:
        centre, members = wanted[i], [i]
        while blocks and blocks[-1][0] + gap * (len(blocks[-1][1]) + len(members)) / 2 > centre:
            below, held = blocks.pop()
            centre = (below * len(held) + centre * len(members)) / (len(held) + len(members))
            members = held + members
        blocks.append((centre, members))
    placed = [0.0] * len(wanted)
    for centre, members in blocks:
        for rank, i in enumerate(members):
            placed[i] = centre + gap * (rank - (len(members) - 1) / 2)
    return placed

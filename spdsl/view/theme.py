"""Colours and line styles of every picture: one light and one dark theme, safe for colour-blind readers.

In: the name of a theme. Out: matplotlib settings that last for one picture only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["DARK", "LIGHT", "Theme", "reproducible", "themed"]

# Okabe and Ito's palette (jfly.uni-koeln.de/color), in an order that keeps neighbours far apart in lightness too.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#7a7a00")


@dataclass(frozen=True)
class Theme:
    """The colours of one theme."""

    name: str
    page: str
    ink: str
    muted: str
    faint: str
    rule: str
    series: tuple[str, ...]
    jump: str
    weights: tuple[str, ...]  # from weight 0 to weight 1


LIGHT = Theme(
    name="light",
    page="#ffffff",
    ink="#1d2330",
    muted="#5b6475",
    faint="#b9bfca",
    rule="#e3e6ec",
    series=OKABE_ITO,
    jump="#b3123b",
    weights=("#f4f5f8", "#cfe3ea", "#86bccb", "#3f8da6", "#1c5f80", "#0d3557"),
)
DARK = Theme(
    name="dark",
    page="#14171d",
    ink="#e8eaf0",
    muted="#a2a9b8",
    faint="#5a6272",
    rule="#2a2f3a",
    series=("#56B4E9", "#E69F00", "#2fc49a", "#e59ac5", "#f0e442", "#ff8a50", "#b89cff", "#9fb3c8"),
    jump="#ff6b8b",
    weights=("#1b1f27", "#1d3a4a", "#22627a", "#3b93ac", "#86cbd9", "#e2f6f8"),
)


@contextmanager
def themed(theme: Theme) -> Iterator[Any]:
    """matplotlib's pyplot-free figure module under a theme."""
    import matplotlib

    settings = {
        "figure.facecolor": theme.page,
        "savefig.facecolor": theme.page,
        "axes.facecolor": theme.page,
        "axes.edgecolor": theme.faint,
        "axes.labelcolor": theme.ink,
        "axes.titlecolor": theme.ink,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": False,
        "axes.titlesize": 10,
        "axes.titleweight": "regular",
        "axes.titlelocation": "left",
        "axes.labelsize": 9,
        "axes.unicode_minus": True,
        "text.color": theme.ink,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.labelcolor": theme.muted,
        "ytick.labelcolor": theme.muted,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "font.size": 9,
        "font.family": "sans-serif",
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "lines.linewidth": 1.6,
        "lines.solid_capstyle": "round",
        "text.usetex": False,
        "mathtext.default": "regular",
    }
    with matplotlib.rc_context(settings):
        yield matplotlib


@contextmanager
def reproducible() -> Iterator[None]:
    """Saving a figure such that the same picture has the same bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "spdsl"}):
        yield

"""What is known of a parameter of a scalar function before its value is: a name, a sign, a typical value.

In: declarations and defaults. Out: plain records that key the cache (no sympy here).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Quantity", "Sign"]

Sign = Literal["positive", "nonnegative", "negative", "nonpositive", "real", "labels", "count"]


@dataclass(frozen=True)
class Quantity:
    """A parameter of a scalar function.

    `count` is a positive whole number (a size), `labels` is -1 or +1; `varies` says that it differs from sample to
    sample.
    """

    name: str
    sign: Sign = "real"
    reference: float = 1.0
    varies: bool = False

"""Why a derivation can fail; the messages are parts of sentences that `settle` completes (no sympy here)."""

from __future__ import annotations

__all__ = ["DerivationError", "NoClosedFormError", "TooManyPiecesError"]


class DerivationError(ValueError):
    """A formula can't be split into pieces that agree with it; the message says at which point it fails."""


class NoClosedFormError(ValueError):
    """A border depends on the parameters and has no closed form that could be found; the message is the equation."""


class TooManyPiecesError(ValueError):
    """A formula has more pieces than there are labels."""

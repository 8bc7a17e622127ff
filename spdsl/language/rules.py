"""The rules of disciplined convex programming: how signs and curvatures of parts make those of the whole.

In: signs and curvatures of the parts. Out: those of a sum, a product, a power, an atom. Source: Grant, Boyd and Ye,
"Disciplined convex programming" (2006), with NumPy's meaning of powers (x^3 is not convex where x may be negative).
"""

from __future__ import annotations

from collections.abc import Iterable

from spdsl.language.signatures import Monotone
from spdsl.language.types import Curvature, Sign

__all__ = [
    "add_curvatures",
    "add_signs",
    "compose",
    "flip",
    "is_concave",
    "is_convex",
    "is_flat",
    "multiply_signs",
    "negate",
    "power_curvature",
    "power_sign",
    "scale",
    "sign_of_number",
]

_CONSTANT, _AFFINE = Curvature.CONSTANT, Curvature.AFFINE
_CONVEX, _CONCAVE, _UNKNOWN = Curvature.CONVEX, Curvature.CONCAVE, Curvature.UNKNOWN


def is_flat(curvature: Curvature) -> bool:
    """Affine or constant."""
    return curvature in (_CONSTANT, _AFFINE)


def is_convex(curvature: Curvature) -> bool:
    """Convex, affine or constant."""
    return curvature in (_CONSTANT, _AFFINE, _CONVEX)


def is_concave(curvature: Curvature) -> bool:
    """Concave, affine or constant."""
    return curvature in (_CONSTANT, _AFFINE, _CONCAVE)


def negate(curvature: Curvature) -> Curvature:
    """The curvature of -f."""
    return {_CONVEX: _CONCAVE, _CONCAVE: _CONVEX}.get(curvature, curvature)


def flip(sign: Sign) -> Sign:
    """The sign of -f."""
    return {Sign.NONNEGATIVE: Sign.NONPOSITIVE, Sign.NONPOSITIVE: Sign.NONNEGATIVE}.get(sign, sign)


def sign_of_number(value: float) -> Sign:
    """The sign of a literal."""
    return Sign.ZERO if value == 0 else Sign.NONNEGATIVE if value > 0 else Sign.NONPOSITIVE


def add_signs(left: Sign, right: Sign) -> Sign:
    """The sign of f + g."""
    if left is Sign.ZERO:
        return right
    if right is Sign.ZERO:
        return left
    return left if left is right else Sign.UNKNOWN


def multiply_signs(left: Sign, right: Sign) -> Sign:
    """The sign of f g."""
    if Sign.ZERO in (left, right):
        return Sign.ZERO
    if Sign.UNKNOWN in (left, right):
        return Sign.UNKNOWN
    return Sign.NONNEGATIVE if left is right else Sign.NONPOSITIVE


def add_curvatures(parts: Iterable[Curvature]) -> Curvature:
    """The curvature of a sum."""
    found = set(parts)
    if _UNKNOWN in found or {_CONVEX, _CONCAVE} <= found:
        return _UNKNOWN
    for curvature in (_CONVEX, _CONCAVE, _AFFINE):
        if curvature in found:
            return curvature
    return _CONSTANT


def scale(curvature: Curvature, factor: Sign) -> Curvature:
    """The curvature of c f, c constant with the sign `factor`."""
    if factor is Sign.ZERO:
        return _CONSTANT
    if is_flat(curvature) or factor is Sign.NONNEGATIVE:
        return curvature
    return negate(curvature) if factor is Sign.NONPOSITIVE else _UNKNOWN


def compose(outer: Curvature, monotone: Monotone, inner: Curvature, sign: Sign) -> Curvature:
    """The curvature of f(g): f of curvature `outer`, g of curvature `inner` and sign `sign`."""
    if inner is _CONSTANT:
        return _CONSTANT
    if inner is _AFFINE:
        return outer
    if monotone is Monotone.LIKE_ABS:
        if sign in (Sign.NONNEGATIVE, Sign.ZERO):
            monotone = Monotone.INCREASING
        elif sign is Sign.NONPOSITIVE:
            monotone = Monotone.DECREASING
    for wanted, keeps in ((_CONVEX, is_convex), (_CONCAVE, is_concave)):
        if not keeps(outer):
            continue
        if monotone is Monotone.INCREASING and inner is wanted:
            return wanted
        if monotone is Monotone.DECREASING and inner is negate(wanted):
            return wanted
    return _UNKNOWN


def power_sign(base: Sign, exponent: float | None) -> Sign:
    """The sign of x^p."""
    if exponent is not None and exponent == int(exponent) and int(exponent) % 2 == 0:
        return Sign.NONNEGATIVE
    if base in (Sign.NONNEGATIVE, Sign.ZERO):
        return Sign.NONNEGATIVE
    if exponent is not None and exponent != int(exponent):
        return Sign.NONNEGATIVE  # defined for x >= 0 only
    if base is Sign.NONPOSITIVE and exponent is not None:
        return Sign.NONPOSITIVE  # odd
    return Sign.UNKNOWN


def power_curvature(inner: Curvature, sign: Sign, exponent: float) -> Curvature:
    """The curvature of g^p for a number p."""
    whole = exponent == int(exponent)
    known_nonnegative = sign in (Sign.NONNEGATIVE, Sign.ZERO)
    if exponent == 0:
        return _CONSTANT
    if exponent == 1:
        return inner
    if exponent < 0:
        if known_nonnegative:
            return compose(_CONVEX, Monotone.DECREASING, inner, sign)
        return _CONSTANT if inner is _CONSTANT else _UNKNOWN
    if exponent < 1:
        return compose(_CONCAVE, Monotone.INCREASING, inner, sign)
    if whole and int(exponent) % 2 == 0:
        return compose(_CONVEX, Monotone.LIKE_ABS, inner, sign)
    if known_nonnegative or not whole:
        # x^1.5 is defined for x >= 0 only, where it is convex and increasing.
        return compose(_CONVEX, Monotone.INCREASING, inner, sign)
    return _CONSTANT if inner is _CONSTANT else _UNKNOWN

"""`Scope`: the argument and the parameters of a scalar formula, and numeric evaluation of sympy expressions over them.

In: names, signs, typical values. Out: symbols, sampled parameter values, NumPy functions made by the kernels' own
printer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import sympy

from spdsl.compiler.algebra import Symbolic, symbol
from spdsl.compiler.quantities import Quantity
from spdsl.compiler.spelling import code
from spdsl.compiler.stable import NUMPY

__all__ = ["Scope"]


@dataclass(frozen=True)
class Scope:
    """The argument, the parameters, and the argument's domain (None: unbounded)."""

    argument: str
    quantities: tuple[Quantity, ...]
    lower: float | None = None
    upper: float | None = None
    positive: bool = False  # the argument, as an assumption for sympy
    cache: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def symbol(self) -> Symbolic:
        """The argument."""
        return sympy.Symbol(self.argument, positive=True) if self.positive else sympy.Symbol(self.argument, real=True)

    @property
    def symbols(self) -> dict[str, Symbolic]:
        """Every symbol by name."""
        found = self.cache.get("symbols")
        if found is None:
            found = {item.name: symbol(item) for item in self.quantities}
            found[self.argument] = self.symbol
            self.cache["symbols"] = found
        return found

    @property
    def typical(self) -> dict[str, float]:
        """The parameters' typical values."""
        return {item.name: item.reference for item in self.quantities}

    def function(self, expression: Symbolic) -> Callable[[Any, Mapping[str, Any]], Any]:
        """An expression as a NumPy function of the argument and the parameters' values, by the kernels' printer."""
        made = self.cache.get(expression)
        if made is None:
            names = {name: f"q{i}_" for i, name in enumerate(self.symbols)}
            source = f"lambda {', '.join(names.values())}: {code(expression, names, 'numpy')}"
            compiled = eval(source, {"np": np, **NUMPY})
            order = tuple(self.symbols)

            def made(z: Any, values: Mapping[str, Any], compiled: Any = compiled) -> Any:
                with np.errstate(all="ignore"):
                    return compiled(
                        *(np.asarray(z, float) if n == self.argument else np.float64(values[n]) for n in order)
                    )

            self.cache[expression] = made
        return made

    def number(self, expression: Symbolic, z: float, values: Mapping[str, float] | None = None) -> float:
        """The value at one point, nan where it is not a real number."""
        try:
            return float(self.function(expression)(z, self.typical if values is None else values))
        except (ValueError, TypeError, ZeroDivisionError, OverflowError, NotImplementedError):
            return float("nan")

    def samples(self, count: int = 8) -> list[dict[str, float]]:
        """Values to verify at: the typical ones first, then random ones of the same signs."""
        return self._drawn(count, self.quantities)

    def data_samples(self, count: int = 8) -> list[dict[str, float]]:
        """The same with scalar parameters at their typical values: what has to hold whatever the data are.

        Other values of parameters are met by `spdsl.problem.unmet` when they are known.
        """
        return self._drawn(count, [item for item in self.quantities if item.varies or item.sign == "count"])

    def _drawn(self, count: int, varied: Sequence[Quantity]) -> list[dict[str, float]]:
        random = Random(20240607)
        others = range(count - 1 if varied else 0)
        return [
            self.typical,
            *({**self.typical, **{item.name: _draw(item, random) for item in varied}} for _ in others),
        ]


def _draw(item: Quantity, random: Random) -> float:
    spread = math.exp(random.gauss(0.0, 1.0))
    match item.sign:
        case "positive" | "nonnegative":
            return (abs(item.reference) or 1.0) * spread
        case "negative" | "nonpositive":
            return -(abs(item.reference) or 1.0) * spread
        case "labels":
            return random.choice([-1.0, 1.0])
        case "count":
            return random.choice([1.0, 2.0, 7.0, 50.0, 1000.0])
    return random.gauss(0.0, 1.0) * (abs(item.reference) or 1.0)

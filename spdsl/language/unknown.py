"""Complains about names and functions that mean nothing, and says what was probably meant.

In: a name and the scope. Out: a complaint with the nearest name, the product of two names, or what another tool's
function is called here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spdsl.diagnostics import Related, Span
from spdsl.language.arguments import usage
from spdsl.language.scope import Scope
from spdsl.language.signatures import ATOMS
from spdsl.language.tree import Call

if TYPE_CHECKING:
    from spdsl.language.elaborate import Elaborator

__all__ = ["FOREIGN_FUNCTIONS", "unknown_function", "unknown_name"]

FOREIGN_FUNCTIONS: dict[str, str] = {
    "ln": "did you mean `log`? it is the natural logarithm",
    "log1p": "write `log(1 + x)`; a logistic loss of a margin m is `logistic(m)`",
    "log2": "write `log(x) / log(2)`",
    "log10": "write `log(x) / log(10)`",
    "sigmoid": "write `1 / (1 + exp(-x))`; a logistic loss of a margin m is `logistic(m)`",
    "softplus": "write `logistic(-x)`",
    "relu": "did you mean `pos`?",
    "maximum": "did you mean `max`?",
    "minimum": "did you mean `min`?",
    "norm_inf": "write `max(abs(x))`",
    "norminf": "write `max(abs(x))`",
    "norm_nuc": "did you mean `trace_norm`?",
    "nuclear_norm": "did you mean `trace_norm`?",
    "normNuc": "did you mean `trace_norm`?",
    "frobenius": "did you mean `norm`?",
    "l1": "did you mean `norm1`?",
    "l2": "did you mean `norm2`?",
    "pinball": "did you mean `quantile`?",
    "quad_form": "write `x @ P @ x`; a distance under a metric is `mahalanobis(M, D)`",
    "sum_square": "did you mean `sum_squares`?",
    "sumsq": "did you mean `sum_squares`?",
    "mean": "write `sum(x) / n`; the samples of a loss are summed for you",
    "dot": "write `x @ y`",
    "len": "a size is a name: write the `n` of `vector(n)`",
    "size": "a size is a name: write the `n` of `vector(n)`",
    "norm0": "write `support(w) in sparse(10)` in `subject to`",
    "l0": "write `support(w) in sparse(10)` in `subject to`",
    "card": "write `support(w) in sparse(10)` in `subject to`",
    "nnz": "write `support(w) in sparse(10)` in `subject to`",
    "tr": "did you mean `trace`?",
    "mse": "write `(X @ w - y)^2 / n`",
    "sum_i": "write `sum(x)`; the samples of a loss are summed for you",
    "transpose": "write `X.T`",
    "inv": "a model has no inverse; multiply the equation out",
    "sign": "a sign is neither convex nor concave; for labels use `labels(n)`",
}
"""What functions of other tools are called here."""


def unknown_name(elaborator: Elaborator, name: str, span: Span, scope: Scope) -> None:
    """Complain about a name that means nothing here."""
    if _declared_later(elaborator, name, span, scope):
        return
    if name in ATOMS or name == "piecewise":
        help_ = f"write `{usage(name, ATOMS[name].parameters)}`" if name in ATOMS else "write `piecewise(...)`"
        elaborator.error("SPL214", f"`{name}` is a function, and is used like a number", span, "", help_)
        return
    product = _written_together(elaborator, name, scope)
    if product:
        elaborator.error("SPL200", f"there is no name `{name}`", span, "", f"did you mean `{product}`?")
        return
    near = scope.nearest(name, functions=False)
    helps = [f"did you mean `{near}`?"] if near else ["declare it in `data`, `parameter` or `variable`"]
    known = sorted(set(scope.names()))
    if not near and 0 < len(known) <= 12:
        helps.append(f"the names here are {', '.join(f'`{item}`' for item in known)}")
    elaborator.error("SPL200", f"there is no name `{name}`", span, "", *helps)


def _written_together(elaborator: Elaborator, name: str, scope: Scope) -> str:
    """`X @ w` for `Xw`, when both are names here."""
    for cut in range(1, len(name)):
        left, right = scope.peek(name[:cut]), scope.peek(name[cut:])
        if left is None or right is None or left.type is None or right.type is None:
            continue
        shapes = left.type.shape, right.type.shape
        sign = "@" if shapes[0] and shapes[1] and shapes[0][-1] == shapes[1][0] else "*"
        return f"{left.name} {sign} {right.name}"
    return ""


def unknown_function(elaborator: Elaborator, node: Call, scope: Scope) -> None:
    """Complain about a call of something that doesn't exist."""
    name = node.function
    if _declared_later(elaborator, name, node.name_span, scope):
        return
    known = FOREIGN_FUNCTIONS.get(name) or FOREIGN_FUNCTIONS.get(name.lower())
    near = scope.nearest(name, functions=True)
    if known is not None:
        helps = [known]
    elif near:
        helps = [f"did you mean `{near}`?"]
    else:
        helps = ["write it out, or add it in a `define` section"]
    elaborator.error("SPL210", f"there is no function `{name}`", node.name_span, "", *helps)


def _declared_later(elaborator: Elaborator, name: str, span: Span, scope: Scope) -> bool:
    place = scope.file.declared.get(name)
    if place is None:
        return False
    if name == scope.file.under_way:
        message, help_ = f"`{name}` is used in its own declaration", "only what is declared above can be used"
        elaborator.error("SPL201", message, span, "", help_)
        return True
    message, help_ = f"`{name}` is used before it is declared", "move the declaration above this line"
    elaborator.error("SPL201", message, span, "", help_, related=(Related(place, "declared here"),))
    return True

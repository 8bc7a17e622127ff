"""What hard thresholding needs of a model, and what each method does not take, as sentences.

In: a `Problem` and which kinds of support sets a back end knows. Out: reasons; empty when it can solve the problem.
"""

from __future__ import annotations

from spdsl.problem import Problem, Separable, SupportConstraint

__all__ = ["reasons", "support_constraint"]

SHOWN = {
    "sparse": "support({0}) in sparse(size)",
    "connected": "support({0}) in connected(G, size)",
    "groups": "support({0}) in groups(g, count)",
    "union_of": "support({0}) in union_of(S, count)",
}


def support_constraint(problem: Problem) -> SupportConstraint | None:
    """The model's first support constraint."""
    return next((item for item in problem.constraints if isinstance(item, SupportConstraint)), None)


def reasons(problem: Problem, kinds: tuple[str, ...], twin: str) -> list[str]:
    """Why a back end that knows the sets `kinds` can't solve it; `twin` is the one that knows the others."""
    said: list[str] = []
    place = support_constraint(problem)
    if place is None:
        vector = next((item.name for item in problem.variables if item.kind == "vector"), "w")
        shown = " or ".join(f"`{SHOWN[kind].format(vector)}`" for kind in kinds)
        said.append(f"it needs a set of supports to threshold to: add {shown} under `subject to`")
    elif place.kind not in kinds:
        said.append(f"it does not know the set `{place.kind}`; {twin} does")
    if place is not None:
        declared = problem.variable(place.variable)
        if declared.kind != "vector":
            said.append(f"it thresholds the entries of a vector, and `{place.variable}` is a {declared.kind}")
        if sum(isinstance(item, SupportConstraint) for item in problem.constraints) > 1:
            said.append("it takes one set of supports, and this model has several")
    said += [
        f"beside the set of supports it takes no constraint, and this model has `{item.text}`"
        for item in problem.constraints
        if not isinstance(item, SupportConstraint)
    ]
    said += [
        f"its variables are vectors and scalars, and `{variable.name}` is a {variable.kind}"
        for variable in problem.variables
        if variable.kind in ("symmetric", "rkhs")
    ]
    return said + loss_reasons(problem) + regularizer_reasons(problem) + age_reasons(problem)


def loss_reasons(problem: Problem) -> list[str]:
    """The loss must be a smooth function of one affine predictor."""
    loss = problem.loss
    if loss is None:
        return ["it needs a loss"]
    said: list[str] = []
    if len(loss.predictors) != 1 or loss.function.kernel is None:
        said.append("its loss is a function of one predictor, and this one takes the max of several")
    elif any(term.kind in ("quadratic_form", "kernel", "trace") for term in loss.predictors[0].terms):
        said.append("its loss is of a linear predictor such as X @ w, and this one is not")
    if not loss.function.is_smooth:
        kink = next(kink for kink in loss.function.kinks if not kink.smooth)
        said.append(
            f"its steps follow gradients, and this loss has a kink at {kink.at}: "
            "take a smooth one (huber, logistic, squared_hinge) in its place"
        )
    return said


def regularizer_reasons(problem: Problem) -> list[str]:
    """Regularizers must be smooth and separable."""
    said: list[str] = []
    for item in problem.regularizers:
        if not isinstance(item, Separable):
            said.append("its regularizers are smooth sums over entries, such as sum_squares(w)")
        elif not item.function.is_smooth or item.function.kernel is None:
            said.append(
                "its regularizers are smooth, such as sum_squares(w): the set of supports already makes the vector "
                "sparse, so an L1 norm can go"
            )
    return said


def age_reasons(problem: Problem) -> list[str]:
    """A self-paced model must have one age."""
    if problem.self_paced is None:
        return []
    if problem.age is None or problem.age.kind != "fixed":
        name = problem.age.name if problem.age is not None else "lambda"
        return [f"it solves a self-paced model at one age: write `age {name} = ...`"]
    return []

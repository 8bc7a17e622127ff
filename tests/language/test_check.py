"""Names, declarations, sections, options and warnings of whole models."""

from __future__ import annotations

import pytest

from spdsl.diagnostics import ModelError
from spdsl.language import check, parse
from spdsl.language.checked import AgeForm, Inequality, OptionCall, SupportConstraint
from spdsl.language.printer import unparse
from spdsl.language.signatures import ATOMS, KERNELS, SELF_PACED
from spdsl.language.tree import Chain, Name, Number
from spdsl.language.types import Kind
from tests.language.models import KERNEL_SVM, SELF_PACED_LASSO, checked, regression


def _codes(text: str) -> list[str]:
    with pytest.raises(ModelError) as caught:
        checked(text)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


# --- order and names ---


def test_sections_come_in_any_order_that_declares_before_use() -> None:
    text = (
        "variable b : scalar\ndata X : matrix(n, d)\nvariable w : vector(d)\ndata y : vector(n)\n"
        "define r = X @ w + b - y\nsubject to b >= 0\nparameter alpha = 1/n\n"
        "minimize loss r^2; regularizer alpha * b^2\nsubject to w >= 0"
    )
    model = checked(text)
    assert list(model.variables) == ["b", "w"]
    assert len(model.constraints) == 2
    assert unparse(model.parameters["alpha"].default) == "1 / n"


def test_a_size_used_above_the_data_is_told_apart_from_an_unknown_name() -> None:
    text = "parameter alpha = 1/n\ndata X : matrix(n, d)\nvariable w : vector(d)\nminimize loss (X @ w)^2"
    assert _codes(text) == ["SPL201"]


@pytest.mark.parametrize("name", sorted(ATOMS))
def test_no_atom_can_be_declared(name: str) -> None:
    assert "SPL204" in _codes(regression(variable=f"{name} : scalar"))


def test_names_of_kernels_sets_and_built_ins_are_free_for_data() -> None:
    text = regression("(X @ w - linear)^2 + 0 * y", data="linear : vector(n)\ngroups : vector(d)", parameter="size = 3")
    model = checked(text.replace("minimize", "subject to\n support(w) in groups(groups, count = size)\nminimize"))
    (constraint,) = model.constraints
    assert isinstance(constraint, SupportConstraint)
    assert constraint.arguments == {
        "groups": Name("groups", span=None),  # type: ignore[arg-type]
        "count": Name("size", span=None),  # type: ignore[arg-type]
    }


def test_an_error_in_a_declaration_does_not_make_its_uses_errors() -> None:
    assert _codes(regression("(X @ w - q)^2 + q", data="q : vector(n, n)")) == ["SPL208"]
    assert _codes(regression("(X @ w - y)^2", "regularizer k * norm1(w)", parameter="k = nothing")) == ["SPL200"]
    assert _codes(regression("h(X @ w)", define="h(x) = x + nothing")) == ["SPL200"]


def test_an_error_in_an_unused_define_is_found() -> None:
    assert _codes(regression(define="h(x) = hubber(x) + nothing")) == ["SPL210", "SPL200"]


def test_misspelt_names_get_the_nearest_one() -> None:
    with pytest.raises(ModelError, match="did you mean `alpha`"):
        checked(regression("(X @ w - y)^2", "regularizer alhpa * norm1(w)"))


# --- types ---


def test_whole_numbers_are_sizes() -> None:
    text = (
        "data X : matrix(n, 3)\nvariable w : vector(3); u : vector(2)\nminimize loss (X @ w)^2\n regularizer norm1(u)"
    )
    assert checked(text).variables["w"].shape == (3,)


@pytest.mark.parametrize("kind", [Kind.SCALAR, Kind.VECTOR, Kind.MATRIX, Kind.LABELS, Kind.SYMMETRIC, Kind.GRAPH])
def test_every_kind_of_datum_is_tabled(kind: Kind) -> None:
    sizes = {"scalar": "", "matrix": "(n, d)"}.get(kind.value, "(d)")
    entry = checked(regression(data=f"q : {kind.value}{sizes}")).data["q"]
    assert entry.kind is kind
    assert len(entry.shape) == {"scalar": 0, "matrix": 2, "symmetric": 2}.get(kind.value, 1)


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        ("rbf(0.5)", {"gamma": 0.5}),
        ("rbf(gamma = 2)", {"gamma": 2}),
        ("polynomial(3)", {"degree": 3, "coef0": 1, "gamma": 1}),
        ("polynomial(degree = 2, coef0 = 0)", {"degree": 2, "coef0": 0, "gamma": 1}),
        ("linear()", {}),
    ],
)
def test_kernels_have_their_parameters_by_name(kernel: str, arguments: dict[str, float]) -> None:
    found = checked(KERNEL_SVM.replace("rbf(gamma)", kernel)).variables["f"].kernel
    assert found is not None
    assert {name: getattr(value, "value", None) for name, value in found.arguments.items()} == arguments


def test_a_precomputed_kernel_names_its_matrix() -> None:
    text = KERNEL_SVM.replace("rbf(gamma)", "precomputed(K)").replace("data\n", "data\n  K : symmetric(n)\n", 1)
    text = text.replace("X : matrix(n, d)\n", "").replace("rkhs(X", "rkhs(Z").replace("f(X)", "f(Z)")
    text = text.replace("data\n", "data\n  Z : matrix(n, d)\n", 1)
    kernel = checked(text).variables["f"].kernel
    assert kernel is not None
    assert kernel.arguments == {"K": Name("K", span=None)}  # type: ignore[arg-type]


# --- ages and SP-regularizers ---


@pytest.mark.parametrize(
    ("age", "form", "ends"),
    [
        ("age mu in [0.1, 10]", AgeForm.INTERVAL, ("0.1", "10")),
        ("age mu in quantiles(0, 1)", AgeForm.QUANTILES, ("0", "1")),
        ("age mu = 2", AgeForm.FIXED, ("2", "2")),
        ("age mu in [alpha / n, 10]", AgeForm.INTERVAL, ("alpha/n", "10")),
    ],
)
def test_ages(age: str, form: AgeForm, ends: tuple[str, str]) -> None:
    text = SELF_PACED_LASSO.replace("age lambda in quantiles(0.2, 1)", age).replace("lambda", "mu")
    found = checked(text).age
    assert found is not None
    assert (found.name, found.form) == ("mu", form)
    assert tuple(unparse(end).replace(" ", "") for end in (found.low, found.high)) == ends


@pytest.mark.parametrize("name", SELF_PACED)
def test_every_built_in_is_accepted_with_its_parameters(name: str) -> None:
    options = ", ".join(f"{parameter.name} = 2" for parameter in SELF_PACED[name].parameters)
    call = f"{name}(lambda{', ' + options if options else ''})"
    found = checked(SELF_PACED_LASSO.replace("linear(lambda)", call)).self_paced
    assert found is not None
    assert (found.name, found.define, found.body) == (name, None, None)
    assert set(found.options) == {parameter.name for parameter in SELF_PACED[name].parameters}


def test_an_own_regularizer_may_have_more_arguments_and_use_other_defines() -> None:
    text = SELF_PACED_LASSO.replace(
        "variable", "define\n  half(x) = x^2 / 2\n  own(v, t, k) = k * t * (half(v) - v)\nvariable"
    ).replace("linear(lambda)", "own(lambda, k = 2 * alpha)")
    found = checked(text).self_paced
    assert found is not None
    assert found.define is not None
    assert found.define.arguments == ("v", "t", "k")
    assert found.body is not None
    assert unparse(found.body) == "(2 * alpha) * t * (v^2/2 - v)"
    assert set(found.options) == {"k"}


def test_the_argument_names_of_an_own_regularizer_are_free() -> None:
    text = SELF_PACED_LASSO.replace("variable", "define own(y, w) = w * (y^2/2 - y)\nvariable")
    found = checked(text.replace("linear(lambda)", "own(lambda)")).self_paced
    assert found is not None
    assert found.body is not None
    assert checked(text.replace("linear(lambda)", "own(lambda)")).data["y"].kind is Kind.VECTOR


# --- constraints ---


def test_a_chain_of_comparisons_becomes_its_pairs() -> None:
    found = checked(regression(subject="0 <= w <= 1")).constraints
    assert [(unparse(c.left), c.operator, unparse(c.right)) for c in found if isinstance(c, Inequality)] == [
        ("0", "<=", "w"),
        ("w", "<=", "1"),
    ]


def test_sets_have_their_arguments_by_name() -> None:
    data = "G : graph(d)\ng : vector(d)\nS : matrix(k, d)"
    subject = (
        "support(w) in sparse(3)\nsupport(w) in connected(G, 4, budget = 2.5)\nsupport(w) in groups(g, 2)\n"
        "support(w) in groups(5, count = 2)\nsupport(w) in union_of(S)"
    )
    found = checked(regression(data=data, subject=subject)).constraints
    assert [sorted(c.arguments) for c in found if isinstance(c, SupportConstraint)] == [
        ["size"],
        ["budget", "components", "graph", "size"],
        ["count", "groups"],
        ["count", "groups"],
        ["count", "supports"],
    ]


# --- solve ---


def test_values_of_options() -> None:
    solve = (
        'solve any(a = 1, b = -0.5, c = true, d = full, e = "a text", f = subset(0.5, seed = 1), g = normal(y, alpha),'
        " h = 1/n, i = alpha, k = [1] )"
    ).replace(", k = [1] ", "")
    request = checked(regression() + solve).solve
    assert request is not None
    values = {option.name: option.value for option in request.options}
    assert {name: values[name] for name in "abcde"} == {"a": 1, "b": -0.5, "c": True, "d": "full", "e": "a text"}
    assert isinstance(values["f"], OptionCall)
    assert (values["f"].name, values["f"].arguments, dict(values["f"].options)) == ("subset", (0.5,), {"seed": 1})
    assert isinstance(values["g"], OptionCall)
    assert values["g"].arguments == (Name("y", span=None), Name("alpha", span=None))  # type: ignore[arg-type]
    assert isinstance(values["h"], Chain)
    assert values["i"] == Name("alpha", span=None)  # type: ignore[arg-type]
    assert request.options[0].value_span.text == "1"


def test_a_back_end_without_options_needs_no_brackets() -> None:
    request = checked(regression() + "solve path_following").solve
    assert request is not None
    assert (request.name, request.options) == ("path_following", ())


# --- warnings ---


def test_what_is_used_anywhere_is_not_called_unused() -> None:
    text = regression(
        "(X @ w - y)^2",
        data="G : graph(d)\nq : vector(n)",
        parameter="size = 3\nk = 2",
        subject="support(w) in connected(G, size = size)",
    )
    assert checked(text + "solve any(start = q, k = k)").warnings == ()


def test_unused_names_are_warned_of() -> None:
    text = regression(data="q : vector(n)", variable="b : scalar", define="h(x) = x")
    assert [w.message for w in checked(text).warnings] == [
        "the datum `q` is never used",
        "the parameter `alpha` is never used",
        "the variable `b` is never used",
        "the function `h` is never used",
    ]


# --- the room fits the others ---


def test_built_ins_and_kernels_are_those_that_the_other_rooms_know() -> None:
    from spdsl.compiler.builtin import PARAMETERS, REGULARIZERS
    from spdsl.problem.kernels import KERNELS as THEIRS

    assert set(SELF_PACED) == set(REGULARIZERS)
    assert {n: tuple(p.name for p in s.parameters) for n, s in SELF_PACED.items() if s.parameters} == PARAMETERS
    assert {name: tuple(p.name for p in signature.parameters) for name, signature in KERNELS.items()} == THEIRS


def test_the_formulas_of_the_reference_are_those_that_the_compiler_derives_from() -> None:
    """Each `f(v, lambda)` of the page, as Python, has the values of the compiler's expression."""
    from math import log

    from spdsl.compiler.builtin import REGULARIZERS
    from spdsl.problem.expressions import evaluate

    python = {
        "hard": lambda v, t, **_: -t * v,
        "linear": lambda v, t, **_: t * (v**2 / 2 - v),
        "mixture": lambda v, t, gamma, **_: gamma**2 / (v + gamma / t),
        "log": lambda v, t, a, **_: ((1 + a * t) * log((1 + a * t) / v) - (1 + a * t) + v) / a,
        "polynomial": lambda v, t, **k: t * (v ** k["t_"] / k["t_"] - v),
        "logarithmic": lambda v, t, **_: (1 - t) * v - (1 - t) ** v / log(1 - t),
        "welsch": lambda v, t, **_: t * (1 - v + v * log(v)),
        "cauchy": lambda v, t, **_: t * (v - 1 - log(v)),
        "huber": lambda v, t, **_: t / v,
    }
    for name, expression in REGULARIZERS.items():
        for v, age in ((0.2, 0.3), (0.9, 0.7)):
            values = {"v": v, "lambda": age, "gamma": 0.6, "a": 1.5, "t": 2.5}
            theirs = evaluate(expression, values)
            assert python[name](v, age, gamma=0.6, a=1.5, t_=2.5) == pytest.approx(theirs), name


def test_number_nodes_of_defaults_print_as_numbers() -> None:
    model = checked(regression("huber(X @ w - y)"))
    call = model.losses[0].expression
    assert unparse(call).endswith(", 1)")
    assert any(isinstance(node, Number) for node in getattr(call, "arguments", ()))


def test_errors_of_all_kinds_come_together_in_the_order_of_the_file() -> None:
    text = regression("(X @ v - y)^2", "regularizer w", parameter="alpha = nothing", subject="w > 0\nnorm1(w) >= 1")
    with pytest.raises(ModelError) as caught:
        check(parse(text))
    assert [d.code for d in caught.value.diagnostics] == ["SPL200", "SPL200", "SPL221", "SPL121", "SPL303"]

"""The five model files parse, check, and print back unchanged in meaning."""

from __future__ import annotations

import pytest

from spdsl.language import check, format_model, parse
from spdsl.language.checked import AgeForm, Inequality, SupportConstraint
from spdsl.language.tree import Name, Number, walk
from spdsl.language.types import Curvature, Kind, Sign, Verdict
from tests.language.models import BIASED_HINGE, FIVE, GRAPH_SPARSE, KERNEL_SVM, METRIC, SELF_PACED_LASSO, checked


@pytest.mark.parametrize("text", FIVE.values(), ids=FIVE.keys())
def test_each_model_checks_without_a_warning(text: str) -> None:
    assert checked(text).warnings == ()


@pytest.mark.parametrize("text", FIVE.values(), ids=FIVE.keys())
def test_each_model_prints_back_to_an_equal_tree_with_its_comments(text: str) -> None:
    tree = parse(text)
    printed = format_model(tree)
    again = parse(printed)
    assert again == tree
    assert [c.text for c in again.comments] == [c.text for c in tree.comments]
    assert format_model(again) == printed


@pytest.mark.parametrize("text", FIVE.values(), ids=FIVE.keys())
def test_each_model_is_in_canonical_layout_but_for_the_columns_of_comments(text: str) -> None:
    printed = format_model(parse(text))
    assert [" ".join(line.split()) for line in printed.splitlines()] == [" ".join(x.split()) for x in text.splitlines()]


@pytest.mark.parametrize("text", FIVE.values(), ids=FIVE.keys())
def test_every_node_of_every_expression_has_a_type_and_a_place(text: str) -> None:
    model = checked(text)
    expressions = [item.expression for item in (*model.losses, *model.regularizers)]
    for constraint in model.constraints:
        if isinstance(constraint, Inequality):
            expressions += [constraint.left, constraint.right]
    for expression in expressions:
        for node in walk(expression):
            assert model.type_of(node).kind in Kind
            assert node.span.text.strip()


def test_the_lasso_is_understood() -> None:
    model = checked(SELF_PACED_LASSO)
    assert {name: str(model.data[name].kind.value) for name in model.data} == {"X": "matrix", "y": "vector"}
    assert model.data["X"].shape == ("n", "d")
    assert model.parameters["alpha"].default == Number(5e-3, text="5e-3", span=None)  # type: ignore[arg-type]
    assert set(model.sizes) == {"n", "d"}
    assert [(use.name, use.axis) for use in model.sizes["n"].uses] == [("X", 0), ("y", 0)]
    assert model.age is not None
    assert model.age.form is AgeForm.QUANTILES
    (loss,), (regularizer,) = model.losses, model.regularizers
    assert model.type_of(loss.expression).shape == ("n",)
    assert model.type_of(loss.expression).curvature is Curvature.CONVEX
    assert loss.verdict is regularizer.verdict is Verdict.CONVEX
    assert model.type_of(regularizer.expression).parameters == {"alpha"}
    assert model.parameter_signs == {"alpha": Sign.NONNEGATIVE}
    assert model.self_paced is not None
    assert (model.self_paced.name, model.self_paced.define) == ("linear", None)


def test_the_kernel_machine_is_understood() -> None:
    model = checked(KERNEL_SVM)
    f = model.variables["f"]
    assert (f.kind, f.points, f.kernel and f.kernel.name) == (Kind.RKHS, "X", "rbf")
    assert f.kernel is not None
    assert f.kernel.arguments == {"gamma": Name("gamma", span=None)}  # type: ignore[arg-type]
    assert model.age is not None
    assert model.age.form is AgeForm.INTERVAL
    own = model.self_paced
    assert own is not None
    assert own.define is not None
    assert own.define.arguments == ("v", "lambda")
    assert own.body is not None
    assert {node.name for node in walk(own.body) if isinstance(node, Name)} == {"kappa", "v", "lambda"}
    loss = model.type_of(model.losses[0].expression)
    assert (loss.shape, loss.variables, loss.data) == (("n",), {"f", "b"}, {"X", "y"})


def test_the_graph_constraint_is_understood() -> None:
    model = checked(GRAPH_SPARSE)
    (constraint,) = model.constraints
    assert isinstance(constraint, SupportConstraint)
    assert (constraint.variable, constraint.set) == ("w", "connected")
    assert set(constraint.arguments) == {"graph", "size", "components"}
    assert model.solve is not None
    assert model.solve.name == "graph_sto_iht"
    assert {o.name: o.value for o in model.solve.options} == {"batch": 16, "step": 0.5, "epochs": 50, "seed": 1}


def test_options_keep_their_literal_kinds() -> None:
    request = checked(BIASED_HINGE).solve
    assert request is not None
    values = {option.name: option.value for option in request.options}
    assert values == {"interpolate": True, "passes": 10, "gradient_bias": 0.0, "seed": 1}
    assert isinstance(values["interpolate"], bool)
    assert isinstance(values["passes"], int)
    assert isinstance(values["gradient_bias"], float)


def test_the_metric_is_understood() -> None:
    model = checked(METRIC)
    definite, margin = model.constraints
    assert isinstance(definite, Inequality)
    assert isinstance(margin, Inequality)
    assert (definite.operator, margin.operator) == (">>", ">=")
    assert model.variables["M"].shape == ("d", "d")
    assert model.type_of(model.losses[0].expression).shape == ("T",)
    assert model.solve is not None
    assert {option.name: option.value for option in model.solve.options}["divergence"] == "von_neumann"


def test_checking_twice_gives_the_same_model() -> None:
    tree = parse(SELF_PACED_LASSO)
    assert check(tree).losses == check(tree).losses

"""Precedence, spans, and texts of any depth and length."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.diagnostics import ModelError
from spdsl.language import check, format_model, parse
from spdsl.language.printer import unparse
from spdsl.language.tree import MAXIMUM_DEPTH, Chain, Expression, LossStatement, Name, Power, Unary, walk
from tests.language.models import FIVE, regression


def _expression(text: str) -> Expression:
    (statement,) = parse(f"minimize loss {text}").statements()
    assert isinstance(statement, LossStatement)
    return statement.expression


@pytest.mark.parametrize(
    ("loose", "bracketed"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a * b @ c", "(a * b) @ c"),
        ("a / b * c", "(a / b) * c"),
        ("-a^2", "-(a^2)"),
        ("a^-b", "a^(-b)"),
        ("a^b^c", "a^(b^c)"),
        ("-a * b", "(-a) * b"),
        ("a - b - c", "(a - b) - c"),
        ("X.T @ y", "(X.T) @ y"),
        ("X.T^2", "(X.T)^2"),
        ("a^b.T", "a^(b.T)"),
        ("--a", "-(-a)"),
    ],
)
def test_precedence_is_numpys(loose: str, bracketed: str) -> None:
    """Both are printed with no more brackets than needed, so equal prints mean equal grouping."""
    left, right = _expression(loose), _expression(bracketed)
    assert eval_order(left) == eval_order(right)


def eval_order(node: Expression) -> str:
    """An expression with every grouping made explicit."""
    match node:
        case Chain():
            text = eval_order(node.operands[0])
            for operator, operand in zip(node.operators, node.operands[1:], strict=True):
                text = f"({text} {operator} {eval_order(operand)})"
            return text
        case Unary():
            return f"({node.operator}{eval_order(node.operand)})"
        case Power():
            return f"({eval_order(node.base)} ^ {eval_order(node.exponent)})"
        case _:
            return unparse(node)


@pytest.mark.parametrize("text", ["1 + 2*3 - 4/5", "-2 * 3", "2*3*4 - -5", "6/2/3", "1 - 2 - 3", "2 - (3 - 4)"])
def test_arithmetic_agrees_with_python(text: str) -> None:
    assert eval(eval_order(_expression(text)).replace("^", "**")) == pytest.approx(eval(text))


def test_spans_cover_the_text_of_their_node() -> None:
    text = "sum((X @ w - y)^2) / (2*n)"
    loss = _expression(text)
    spans = {node.span.text for node in walk(loss)}
    assert {text, "sum((X @ w - y)^2)", "(X @ w - y)^2", "X @ w - y", "X @ w", "2*n", "n"} <= spans


@pytest.mark.parametrize("text", FIVE.values(), ids=FIVE.keys())
def test_every_statement_knows_its_place(text: str) -> None:
    tree = parse(text)
    for section in tree.sections:
        assert section.keyword_span.text == section.keyword
        for statement in section.statements:
            assert section.span.start <= statement.span.start < statement.span.end <= section.span.end


def test_five_thousand_terms_are_parsed_checked_and_printed() -> None:
    terms = " + ".join(f"{k} * (X @ w - y)^2" for k in range(1, 5001))
    text = regression(terms)
    tree = parse(text)
    model = check(tree)
    assert isinstance(model.losses[0].expression, Chain)
    assert len(model.losses[0].expression.operands) == 5000
    assert parse(format_model(tree)) == tree
    assert unparse(model.losses[0].expression).count("+") == 4999


def test_a_line_for_each_of_five_thousand_terms_is_one_statement() -> None:
    assert len(list(parse("minimize loss " + " +\n".join(["a"] * 5000)).statements())) == 1


@pytest.mark.parametrize(
    ("opening", "closing"), [("abs(", ")"), ("-", ""), ("2^", ""), ("(1 + ", ")"), ("max(0, ", ")")]
)
def test_nesting_is_accepted_up_to_the_limit_and_refused_beyond(opening: str, closing: str) -> None:
    deepest = opening * MAXIMUM_DEPTH + "x" + closing * MAXIMUM_DEPTH
    assert parse(f"minimize loss {deepest}") == parse(f"minimize loss {deepest}")
    for depth in (MAXIMUM_DEPTH + 1, 5000):
        with pytest.raises(ModelError, match="SPL120"):
            parse("minimize loss " + opening * depth + "x" + closing * depth)


def test_a_hundred_levels_are_checked_and_printed_too() -> None:
    text = regression("abs(" * 99 + "X @ w" + ")" * 99)
    assert parse(format_model(parse(text))) == parse(text)
    assert check(parse(text)).losses[0].verdict.value == "convex"


def test_brackets_alone_make_no_depth() -> None:
    assert _expression("(" * 5000 + "x" + ")" * 5000) == Name("x", span=None)  # type: ignore[arg-type]


def test_unclosed_brackets_of_any_number_make_one_error() -> None:
    with pytest.raises(ModelError) as caught:
        parse("minimize loss " + "(" * 5000 + "x")
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["SPL109"]


_WORDS = """
data parameter define variable age minimize solve loss regularizer self_paced in if otherwise piecewise true
assume convex subject to X y w lambda n d 1 2.5 1e-3 + - * / ^ @ .T ( ) [ ] , : = <= >= == >> < > ; # " '
matrix(n,d) vector(n) norm1(w) linear(lambda) ** | λ ≥ é . 2n 0x1 quantiles(0.2,1)
"""
_FRAGMENTS = st.sampled_from([*_WORDS.split(), "\n", "\u200b"])


def _refused_in_words(text: str) -> bool:
    """Whether the text is a model (False) or is refused by diagnostics that lie inside of it (True)."""
    try:
        check(parse(text))
    except ModelError as error:
        places = [d.span for d in error.diagnostics if d.span is not None]
        right = all(0 <= span.start <= span.end <= len(text) for span in places)
        assert right, error.diagnostics  # noqa: PT017
        assert str(error)  # noqa: PT017
        return True
    return False


@settings(max_examples=120, deadline=None)
@given(st.lists(_FRAGMENTS, max_size=40))
def test_any_sequence_of_fragments_is_a_model_or_is_refused_in_words(fragments: list[str]) -> None:
    _refused_in_words(" ".join(fragments))


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(FIVE)), st.integers(0, 600), st.integers(0, 12), st.text(max_size=6))
def test_any_damage_to_a_model_is_refused_in_words(name: str, start: int, length: int, put: str) -> None:
    text = FIVE[name]
    _refused_in_words(text[:start] + put.replace("\r", "") + text[start + length :])


def test_reading_a_large_model_leaves_the_garbage_collector_as_it_was() -> None:
    import gc

    large = regression(" + ".join(["(X @ w - y)^2"] * 2000))
    check(parse(large))
    assert gc.isenabled()
    with pytest.raises(ModelError):
        parse(large.replace("minimize", "minimize\n  loss )"))
    assert gc.isenabled()
    gc.disable()
    try:
        check(parse(large))
        assert not gc.isenabled()
    finally:
        gc.enable()

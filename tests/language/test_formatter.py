"""Parse -> format -> parse is the identity, formatting is idempotent, comments survive."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from spdsl.diagnostics import Source
from spdsl.language import format_model, parse
from spdsl.language.complaints import Complaints
from spdsl.language.lexer import lex
from spdsl.language.printer import unparse_model
from spdsl.language.tree import Model
from tests.language.models import FIVE, SELF_PACED_LASSO
from tests.language.programs import laid_out, trees


@settings(max_examples=80, deadline=None)
@given(trees)
def test_printing_a_tree_and_parsing_it_gives_the_tree(tree: Model) -> None:
    assert parse(unparse_model(tree)) == tree


@settings(max_examples=80, deadline=None)
@given(laid_out())
def test_formatting_changes_neither_meaning_nor_comments_and_is_idempotent(case: tuple[Model, str]) -> None:
    tree, text = case
    parsed = parse(text)
    assert parsed == tree
    printed = format_model(parsed)
    again = parse(printed)
    assert again == tree
    assert [comment.text for comment in again.comments] == [comment.text for comment in parsed.comments]
    assert format_model(again) == printed


@settings(max_examples=50, deadline=None)
@given(laid_out())
def test_formatting_keeps_every_token_in_its_order(case: tuple[Model, str]) -> None:
    """An independent check: the formatter may move tokens, but neither add, drop nor reorder one."""

    def words(text: str) -> list[str]:
        tokens = lex(Source("x", text.removeprefix("\ufeff")), Complaints()).tokens
        return [" ".join(token.text.split()) for token in tokens if token.kind not in ("NEWLINE", "SEMICOLON")]

    _, text = case
    assert words(format_model(parse(text))) == words(text)


def test_the_canonical_layout() -> None:
    wild = """#head
data X:matrix(n,d) ;y:vector(n)  # two data
     longer_name :labels( n )
parameter
 alpha=-5e-3*2 ; beta = 2 * - alpha^-2

 # about gamma
 gamma=alpha/n
define f(v,λ)=λ*(v^2/2-v)
variable w:vector(d)
age λ in[0.1 , 1]
minimize loss
 (X@w-y)^2/(2*n)+f(1,2)
 self_paced f(λ)
 regularizer alpha*norm1(w)assume   convex
subject  to 0≤w≤1;support(w)in sparse(size=3)
solve path_following(start=full,tol=1e-8)"""
    assert (
        format_model(parse(wild))
        == """\
#head
data
  X           : matrix(n, d)
  y           : vector(n)  # two data
  longer_name : labels(n)

parameter
  alpha = -5e-3*2
  beta = 2 * -alpha^-2

  # about gamma
  gamma = alpha/n

define f(v, lambda) = lambda*(v^2/2 - v)

variable
  w : vector(d)

age lambda in [0.1, 1]

minimize
  loss         (X @ w - y)^2/(2*n) + f(1, 2)
  self_paced   f(lambda)
  regularizer  alpha*norm1(w) assume convex

subject to
  0 <= w <= 1
  support(w) in sparse(size = 3)

solve
  path_following(start = full, tol = 1e-8)
"""
    )


def test_line_breaks_inside_a_statement_stay_and_are_indented() -> None:
    text = "minimize\n  loss a +\n b +  # why\n # more\n c\n"
    assert format_model(parse(text)) == "minimize\n  loss  a +\n      b +  # why\n      # more\n      c\n"


def test_comments_stay_with_what_they_are_about() -> None:
    text = (
        "# file\n\n# section\ndata\n# first\n  X : scalar # end\n\n  # last of data\n# next\nvariable # here\n"
        " w:scalar\n#eof"
    )
    assert format_model(parse(text)) == (
        "# file\n\n# section\ndata\n  # first\n  X : scalar  # end\n\n  # last of data\n\n# next\nvariable  # here\n"
        "  w : scalar\n#eof\n"
    )


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_the_output_has_plain_line_ends(end: str) -> None:
    assert format_model(parse(SELF_PACED_LASSO.replace("\n", end))) == format_model(parse(SELF_PACED_LASSO))


@pytest.mark.parametrize("text", FIVE.values(), ids=FIVE.keys())
def test_the_output_ends_in_one_line_end_and_no_line_in_blanks(text: str) -> None:
    printed = format_model(parse(text))
    assert printed.endswith("\n")
    assert not printed.endswith("\n\n")
    assert all(line == line.rstrip() for line in printed.splitlines())

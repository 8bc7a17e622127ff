"""The language reference is complete, its models are right, and the editor grammar knows the same words."""

from __future__ import annotations

import json
import re

import pytest

from spdsl.codes import CODES
from spdsl.grammars import TEXTMATE_FILE
from spdsl.language import check, format_model, parse
from spdsl.language.declarations import TYPE_NAMES
from spdsl.language.signatures import ATOMS, KERNELS, SELF_PACED, SETS
from spdsl.language.tables import tables
from tests.language.reference import README, updated

PAGE = README.read_text(encoding="utf-8")
MODELS = re.findall(r"```spl\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_generated_tables_are_up_to_date() -> None:
    assert updated(PAGE) == PAGE, "run `python -m tests.language.reference --write`"


def test_the_catalogue_and_the_codes_are_the_same_set() -> None:
    catalogue = set(re.findall(r"^\| (SPL\d{3}) \|", PAGE, flags=re.MULTILINE))
    assert catalogue == set(CODES)


@pytest.mark.parametrize("text", MODELS, ids=range(len(MODELS)))
def test_every_model_of_the_reference_checks_and_prints_back(text: str) -> None:
    tree = parse(text)
    assert check(tree).losses
    assert parse(format_model(tree)) == tree


@pytest.mark.parametrize("text", MODELS, ids=range(len(MODELS)))
def test_every_model_of_the_reference_compiles(text: str) -> None:
    from spdsl.compiler import compile_model

    assert compile_model(check(parse(text))).variables


def test_the_reference_shows_models() -> None:
    assert len(MODELS) >= 6
    assert len(re.findall(r"^```\w", PAGE, flags=re.MULTILINE)) == len(MODELS)


def test_every_reserved_word_is_listed() -> None:
    (listed,) = re.findall(r"These words can't be names: `(.*?)`", PAGE, flags=re.DOTALL)
    assert set(listed.split()) == set(tables().words)


@pytest.mark.parametrize("name", [*ATOMS, *KERNELS, *SETS, *SELF_PACED, *TYPE_NAMES])
def test_every_name_of_the_language_is_in_the_reference(name: str) -> None:
    assert re.search(rf"`{name}[`(]", PAGE)


# --- the editor grammar ---

TEXTMATE = json.loads(TEXTMATE_FILE.read_text(encoding="utf-8"))
RULES = TEXTMATE["repository"]


def test_the_editor_grammar_includes_only_what_it_has() -> None:
    included = {item["include"].lstrip("#") for item in TEXTMATE["patterns"]}
    assert included == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_the_patterns_of_the_editor_grammar_compile(name: str) -> None:
    pattern = RULES[name]["match"]
    # Oniguruma allows alternatives of different widths in a look-behind where Python's re doesn't.
    assert re.compile(pattern.replace("(?:^|(?<=;))", "(?:^|;)"))


@pytest.mark.parametrize("atom", ATOMS)
def test_the_editor_grammar_colours_every_atom(atom: str) -> None:
    assert re.fullmatch(RULES["atom"]["match"].replace(r"(?=\s*\()", ""), atom)


@pytest.mark.parametrize("word", ["subject to", "assume convex", *tables().words])
def test_the_editor_grammar_colours_every_word(word: str) -> None:
    rules = ("section", "statement", "word", "constant")
    patterns = [RULES[name]["match"].replace("(?:^|(?<=;))", "(?:^|;)") for name in rules]
    assert any(re.fullmatch(pattern, word) for pattern in patterns)


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_the_editor_grammar_colours_every_type(name: str) -> None:
    assert name in RULES["type"]["match"]

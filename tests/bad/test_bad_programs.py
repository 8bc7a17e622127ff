"""Every bad program gets its golden diagnostics; every code of the language has a program; mends mend."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from spdsl.codes import CODES
from spdsl.diagnostics import Diagnostic, ModelError, Severity
from spdsl.language import check, load_source, parse
from tests.bad.produce import FROM_THE_COMPILER, code_of, produce, programs, programs_for_the_compiler

ELSEWHERE = {
    "SPL100": "no file, in tests/language/test_source.py",
    "SPL103": "a file of 10 MB, in tests/language/test_source.py",
}
"""Codes whose cause can't be a small file."""


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_a_bad_program_gets_its_golden_diagnostics(path: Path) -> None:
    golden = path.with_suffix(".txt")
    assert golden.exists(), (
        f"{golden.name} is missing: run `python -m tests.bad.produce --write` and read what it wrote"
    )
    assert produce(path) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_the_name_of_a_bad_program_tells_its_code(path: Path) -> None:
    assert f"[{code_of(path)}]" in produce(path)


def test_there_are_more_than_sixty_bad_programs() -> None:
    assert len(programs()) >= 60


def test_every_golden_file_has_its_program() -> None:
    names = {path.stem for path in programs()}
    assert {path.stem for path in Path(__file__).parent.glob("*.txt")} <= names


def test_every_code_of_the_language_is_produced_by_a_bad_program() -> None:
    produced = {code_of(path) for path in [*programs(), *programs_for_the_compiler()]}
    wanted = {code for code in CODES if code[3] in "123"} - set(ELSEWHERE)
    assert wanted <= produced, f"no bad program for {sorted(wanted - produced)}"


def test_the_list_of_the_compilers_codes_holds_only_codes() -> None:
    assert set(CODES) >= FROM_THE_COMPILER


@pytest.mark.parametrize("path", programs_for_the_compiler(), ids=lambda path: path.stem)
def test_the_compiler_gives_the_code_that_the_name_of_its_bad_program_tells(path: Path) -> None:
    from spdsl.compiler import compile_model

    checked = check(parse(load_source(path)))
    try:
        found = {diagnostic.code for diagnostic in compile_model(checked).warnings}
    except ModelError as error:
        found = {diagnostic.code for diagnostic in error.diagnostics}
    assert code_of(path) in found


@cache
def _diagnostics(text: str) -> tuple[Diagnostic, ...]:
    try:
        return check(parse(text)).warnings
    except ModelError as error:
        return error.diagnostics


_REPLACEMENT = re.compile(r"(?:did you mean|write|.*: write) `([^`]*)`(?:\?.*|, .*| \(.*|: .*)?")


def _mends() -> list[tuple[str, str, Diagnostic, str]]:
    found = []
    for path in programs():
        try:
            text = load_source(path).text
        except ModelError:
            continue
        for diagnostic in _diagnostics(text):
            for help_ in diagnostic.help:
                match = _REPLACEMENT.fullmatch(help_)
                if match is not None and diagnostic.span is not None:
                    found.append((path.stem, text, diagnostic, match[1]))
    return found


@pytest.mark.parametrize(("text", "diagnostic", "replacement"), [item[1:] for item in _mends()])
def test_what_a_help_tells_to_write_in_the_marked_place_removes_the_complaint(
    text: str, diagnostic: Diagnostic, replacement: str
) -> None:
    span = diagnostic.span
    assert span is not None
    mended = text[: span.start] + replacement + text[span.end :]
    left = [d for d in _diagnostics(mended) if d.span and (d.code, d.span.start) == (diagnostic.code, span.start)]
    assert not left


def test_many_mends_are_held_to_their_word() -> None:
    assert len(_mends()) >= 60


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_messages_are_one_sentence_without_a_full_stop(path: Path) -> None:
    try:
        found = _diagnostics(load_source(path).text)
    except ModelError as error:
        found = error.diagnostics
    for diagnostic in found:
        assert diagnostic.message
        assert not diagnostic.message.endswith(".")
        assert len(diagnostic.message) <= 160
        assert all((text and not text.endswith(".")) or text.endswith("...") for text in diagnostic.help)


def test_errors_and_warnings_never_mix() -> None:
    for path in programs():
        try:
            found = _diagnostics(load_source(path).text)
        except ModelError:
            continue
        assert len({diagnostic.severity for diagnostic in found}) <= 1, path
        assert all(diagnostic.severity in Severity for diagnostic in found)

"""The grammar has no conflicts, its tables are its own, those of an edited one are cached safely."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spdsl.cache import cache_folder, read_entry, write_entry
from spdsl.grammars import GRAMMAR_FILE, TABLES_FILE
from spdsl.language import parse
from spdsl.language.tables import START_SYMBOLS, _read, build, tables
from tests.language.models import FIVE, SELF_PACED_LASSO

ROOT = Path(__file__).resolve().parents[2]


def _run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()


_PARSE = f"""
import sys
from spdsl.language import check, parse
check(parse({SELF_PACED_LASSO!r}))
print(sorted(m for m in ("lark", "sympy", "numpy", "numba", "scipy") if m in sys.modules))
"""


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPDSL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_the_grammar_has_no_conflict_by_larks_strict_mode(lexer: str) -> None:
    """lark's own lexers also check the terminals against each other."""
    pytest.importorskip("interegular", reason="lark checks terminals with interegular: pip install interegular")
    import lark

    grammar = GRAMMAR_FILE.read_text(encoding="utf-8")
    starts = [*START_SYMBOLS.values(), "section"]
    assert lark.Lark(grammar, parser="lalr", lexer=lexer, start=starts, strict=True)


def test_a_conflict_in_a_grammar_is_refused() -> None:
    import lark

    grammar = GRAMMAR_FILE.read_text(encoding="utf-8").replace("unary: power\n", "unary: power | unary CARET unary\n")
    with pytest.raises(lark.exceptions.GrammarError):
        build(grammar)


def test_the_tables_beside_the_grammar_are_its_own() -> None:
    """`python -m spdsl.language.tables` writes them after an edit."""
    kept = _read(TABLES_FILE.read_bytes(), GRAMMAR_FILE.read_bytes())
    assert kept is not None
    assert kept == build(GRAMMAR_FILE.read_text(encoding="utf-8"))


def test_no_start_imports_anything_heavy(fresh_cache: Path) -> None:
    assert _run(_PARSE) == "[]"
    assert not fresh_cache.exists()


def _edited(tmp_path: Path) -> str:
    """The parse, by a grammar that was edited and whose tables were not written."""
    grammar = tmp_path / "spl.lark"
    grammar.write_text(GRAMMAR_FILE.read_text(encoding="utf-8") + "\n// edited\n", encoding="utf-8")
    return f"from pathlib import Path\nimport spdsl.grammars as g\ng.GRAMMAR_FILE = Path({str(grammar)!r})\n{_PARSE}"


def test_an_edited_grammar_is_analysed_once(fresh_cache: Path, tmp_path: Path) -> None:
    assert _run(_edited(tmp_path)) == "['lark']"
    assert len(list(fresh_cache.iterdir())) == 1
    assert _run(_edited(tmp_path)) == "[]"


def test_a_damaged_cache_is_built_again(fresh_cache: Path, tmp_path: Path) -> None:
    code = _edited(tmp_path)
    _run(code)
    (entry,) = fresh_cache.iterdir()
    whole = entry.read_bytes()
    for damage in (b"", whole[:-7], whole[:100] + b"\xff" + whole[101:]):
        entry.write_bytes(damage)
        assert _run(code) == "['lark']"
        assert entry.read_bytes() == whole


def test_a_cache_that_cannot_be_written_changes_nothing_but_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = _edited(tmp_path)
    assert _run(code, SPDSL_CACHE=str(blocked)) == "['lark']"
    assert _run(code, SPDSL_CACHE=str(blocked / "below")) == "['lark']"
    assert blocked.read_text() == "not a folder"


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b'{"grammar": 1}'])
def test_damaged_tables_are_none(damage: bytes) -> None:
    assert _read(damage, GRAMMAR_FILE.read_bytes()) is None
    assert _read(TABLES_FILE.read_bytes(), b"another grammar") is None
    assert _read(TABLES_FILE.read_bytes().replace(b'"starts"', b'"ends"'), GRAMMAR_FILE.read_bytes()) is None


def test_many_writers_leave_a_whole_entry(fresh_cache: Path) -> None:
    payloads = [bytes([k]) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda payload: write_entry("entry", payload), payloads * 5))
    assert read_entry("entry") in payloads


def test_the_cache_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPDSL_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("SPDSL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / "spdsl"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder().parts[-3:] == ("Library", "Caches", "spdsl")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache_folder() == tmp_path / "spdsl" / "Cache"


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_the_tables_are_the_same_whatever_the_hash_seed(fresh_cache: Path, tmp_path: Path, seed: str) -> None:
    _run(_edited(tmp_path), PYTHONHASHSEED=seed)
    (entry,) = fresh_cache.iterdir()
    stored = read_entry(entry.name)
    assert stored is not None
    assert stored.splitlines()[2:] == TABLES_FILE.read_bytes().splitlines()[2:]


def test_freshly_built_tables_parse_like_the_cached_ones() -> None:
    cached = {name: parse(text) for name, text in FIVE.items()}
    fresh = build(GRAMMAR_FILE.read_text(encoding="utf-8"))
    assert set(fresh.starts) == set(tables().starts)
    assert {name: parse(text) for name, text in FIVE.items()} == cached


def test_the_parser_agrees_with_larks_own_on_every_statement_of_the_models() -> None:
    """An independent parse: lark, with its own lexer and driver, accepts the same statements."""
    import lark

    from spdsl.language.printer import unparse_statement

    starts = list(START_SYMBOLS.values())
    grammar = GRAMMAR_FILE.read_text(encoding="utf-8") + "\n%ignore /[ \\t\\n]+/\n"
    parser = lark.Lark(grammar, parser="lalr", lexer="contextual", start=[*starts, "section"])
    for text in FIVE.values():
        for section in parse(text).sections:
            for statement in section.statements:
                assert parser.parse(unparse_statement(statement), start=START_SYMBOLS[section.keyword])

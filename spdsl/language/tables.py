"""The LALR(1) tables of grammars/spl.lark: built by lark once for each grammar and kept beside it.

In: the grammar file and its tables. Out: `Tables`, plain numbers that `parser.py` drives, without importing lark.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache, partial
from typing import Any

from spdsl.cache import read_entry, write_entry
from spdsl.language.record import Record

__all__ = ["END", "START_SYMBOLS", "Tables", "build", "tables", "write"]

END = "$END"

START_SYMBOLS = {
    "data": "data_statement",
    "parameter": "parameter_statement",
    "define": "define_statement",
    "variable": "variable_statement",
    "age": "age_statement",
    "minimize": "minimize_statement",
    "subject to": "constraint_statement",
    "solve": "solve_statement",
}
"""The start symbol that reads the statements of each section."""

_FORMAT = 3
"""To be raised when the layout of the kept tables changes."""


class Tables(Record):
    """A parse table and the terminals.

    Attributes
    ----------
    states : tuple of dict
        For each state, by symbol: a state to go to (>= 0), or ``-1 - rule`` to reduce by.
    rules : tuple of (str, int, str)
        Origin, number of symbols on the right, action (``""`` passes the single child on).
    starts, ends : dict
        For each start symbol the first and the accepting state.
    words : dict
        Terminal by reserved word.
    patterns : tuple of (str, str)
        Terminal and regular expression, in the order in which to try them.
    """

    states: tuple[dict[str, int], ...]
    rules: tuple[tuple[str, int, str], ...]
    starts: dict[str, int]
    ends: dict[str, int]
    words: dict[str, str]
    patterns: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables of the grammar that this installation ships.

    A grammar that was edited since `write` is analysed anew, once for each edit.
    """
    from spdsl.grammars import GRAMMAR_FILE, TABLES_FILE

    grammar = GRAMMAR_FILE.read_bytes()
    shipped = _read(TABLES_FILE.read_bytes(), grammar)
    if shipped is not None:
        return shipped
    entry = f"grammar_{zlib.crc32(grammar):08x}"
    kept = read_entry(entry)
    found = None if kept is None else _read(kept, grammar)
    if found is None:
        found = build(grammar.decode())
        write_entry(entry, _written(found, grammar).encode())
    return found


def write() -> None:
    """Write the tables of the grammar beside it: to be done after every edit (``python -m spdsl.language.tables``)."""
    from spdsl.grammars import GRAMMAR_FILE, TABLES_FILE

    grammar = GRAMMAR_FILE.read_bytes()
    TABLES_FILE.write_text(_written(build(grammar.decode()), grammar), encoding="utf-8", newline="\n")


def _written(found: Tables, grammar: bytes) -> str:
    """One line a state and one a rule, so that a change of the grammar is a change of a few lines."""
    import json

    short = partial(json.dumps, separators=(",", ":"))
    parts = [f'"grammar": "{_fingerprint(grammar)}"']
    for name in Tables.__match_args__:
        value = getattr(found, name)
        listed = isinstance(value, tuple)
        parts.append(f'"{name}": ' + ("[\n" + ",\n".join(map(short, value)) + "\n]" if listed else short(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _read(content: bytes, grammar: bytes) -> Tables | None:
    """The tables, None when they are another grammar's or damaged."""
    import json

    try:
        found = json.loads(content)
        if found.pop("grammar") != _fingerprint(grammar):
            return None
        parts: dict[str, Any] = {name: tuple(part) if isinstance(part, list) else part for name, part in found.items()}
        parts["rules"] = tuple(tuple(rule) for rule in parts["rules"])
        parts["patterns"] = tuple(tuple(pattern) for pattern in parts["patterns"])
        return Tables(*(parts[name] for name in Tables.__match_args__))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _fingerprint(grammar: bytes) -> str:
    """Of the grammar and of the tables' layout; line ends don't count."""
    import hashlib

    return hashlib.sha256(f"{_FORMAT}".encode() + grammar.replace(b"\r\n", b"\n")).hexdigest()[:32]


def build(grammar: str) -> Tables:
    """Have lark analyse a grammar; a conflict between rules raises `lark.exceptions.GrammarError`."""
    import lark
    from lark.lexer import Lexer
    from lark.parsers.lalr_analysis import Shift

    class NoLexer(Lexer):  # type: ignore[misc]  # lexer.py does its work
        def __init__(self, configuration: object) -> None:
            self.configuration = configuration

        def lex(self, *state: object) -> Any:
            raise AssertionError("only the tables of this parser are used")

    starts = sorted(START_SYMBOLS.values())
    parser = lark.Lark(grammar, parser="lalr", start=[*starts, "section"], strict=True, lexer=NoLexer)
    found = parser.parser.parser._parse_table
    # lark numbers states in the order of a set: number them as they are met, so that the tables are always the same.
    order = [found.start_states[name] for name in starts]
    rules: list[tuple[str, int, str]] = []
    rule_numbers: dict[Any, int] = {}
    rows: list[dict[str, int]] = []
    numbers = {state: number for number, state in enumerate(order)}
    for state in order:
        row: dict[str, int] = {}
        for symbol, (action, target) in sorted(found.states[state].items()):
            if action is Shift:
                if target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                row[symbol] = numbers[target]
                continue
            if target not in rule_numbers:
                rule_numbers[target] = len(rules)
                rules.append((str(target.origin.name), len(target.expansion), target.alias or ""))
            row[symbol] = -1 - rule_numbers[target]
        rows.append(row)
    return Tables(
        tuple(rows),
        tuple(rules),
        {name: numbers[found.start_states[name]] for name in starts},
        {name: numbers[found.end_states[name]] for name in starts},
        *_terminals(parser.terminals),
    )


def _terminals(terminals: list[Any]) -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    words: dict[str, str] = {}
    patterns: list[tuple[int, int, str, str]] = []
    for terminal in terminals:
        text = terminal.pattern.value
        is_string = terminal.pattern.type == "str"
        if is_string and re.fullmatch(r"\w+", text):
            words[text] = str(terminal.name)
        else:
            # The most urgent first; then regular expressions; then strings, the longest first.
            order = -len(text) if is_string else -1000
            patterns.append((-terminal.priority, order, str(terminal.name), terminal.pattern.to_regexp()))
    return words, tuple((name, pattern) for _, _, name, pattern in sorted(patterns))


if __name__ == "__main__":
    write()

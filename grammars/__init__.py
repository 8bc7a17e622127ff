"""The grammar of the language: `spl.lark` and its tables for the parser, `spl.tmLanguage.json` for editors."""

from __future__ import annotations

from pathlib import Path

__all__ = ["GRAMMAR_FILE", "TABLES_FILE", "TEXTMATE_FILE"]

_HERE = Path(__file__).resolve().parent
GRAMMAR_FILE = _HERE / "spl.lark"
TABLES_FILE = _HERE / "spl.tables.json"
TEXTMATE_FILE = _HERE / "spl.tmLanguage.json"

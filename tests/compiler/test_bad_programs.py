"""Every program that only the compiler refuses or warns of gets its golden diagnostics.

The programs lie in tests/bad (those with 32x to 34x codes) and in tests/compiler/bad; the golden files all in
tests/compiler/bad. To write them anew, run this file with ``--write`` and read every change.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spdsl.codes import CODES
from spdsl.compiler import compile_text
from spdsl.diagnostics import ModelError, render

HERE = Path(__file__).resolve().parent / "bad"
MINE = {code for code in CODES if code.startswith(("SPL32", "SPL33", "SPL34"))}


def code_of(path: Path) -> str:
    return f"SPL{path.stem[:3]}"


PROGRAMS = sorted(
    path for folder in (HERE, HERE.parent.parent / "bad") for path in folder.glob("*.spl") if code_of(path) in MINE
)


def diagnostics(path: Path) -> str:
    """What the compiler says: its error, or its warnings."""
    try:
        problem = compile_text(path.read_text(encoding="utf-8"), path.name)
    except ModelError as error:
        return f"{error}\n"
    return "\n\n".join(render(item) for item in problem.warnings) + "\n" if problem.warnings else ""


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_bad_program_gets_its_golden_diagnostics(path):
    golden = HERE / f"{path.stem}.txt"
    assert golden.exists(), f"{golden.name} is missing: run this file with --write, and read what it wrote"
    found = diagnostics(path)
    assert found == golden.read_text(encoding="utf-8")
    assert f"[{code_of(path)}]" in found


def test_every_code_of_the_compiler_has_a_bad_program():
    assert {code_of(path) for path in PROGRAMS} == MINE


def test_every_golden_file_has_its_program():
    assert {path.stem for path in HERE.glob("*.txt")} <= {path.stem for path in PROGRAMS}


if __name__ == "__main__":
    for program in PROGRAMS:
        target = HERE / f"{program.stem}.txt"
        text = diagnostics(program)
        if not target.exists() or target.read_text() != text:
            print(f"== {program.name}\n{text}")
            if "--write" in sys.argv[1:]:
                target.write_text(text)

"""Everything that README.md, CONTRIBUTING.md and the two references show as code runs and says what they say.

A fenced block's first word is its language: ``spl NAME`` is written to NAME and compiled, ``python`` is run, in
``console`` every line after ``$ `` is run (``make GOAL`` must be a goal of the Makefile, and isn't run from here).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "grammars/README.md", "solvers/README.md", "examples/README.md"]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: str) -> list[tuple[str, str, str]]:
    """(language, rest of the info string, body) of each fenced block."""
    found = []
    for info, body in FENCE.findall((ROOT / document).read_text()):
        language, _, rest = info.strip().partition(" ")
        found.append((language, rest.strip(), body))
    return found


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "MPLBACKEND": "Agg", "NO_COLOR": "1", "COLUMNS": "120"}


def run_python(code: str, folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, env=environment(), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def run_console(body: str, folder: Path) -> None:
    goals = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        words = shlex.split(line[2:], comments=True)
        if words[0] == "make":
            assert set(words[1:]) <= goals, line
        elif words[0] == "spdsl":
            run = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True)
            assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"
        else:
            assert words[0] in ("git", "pip", "cd", "python3"), f"a document shows a command that no test runs: {line}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_code_in_a_document_runs_in_the_order_in_which_it_stands(document, tmp_path):
    import spdsl

    if document.startswith("examples"):
        folder = ROOT / "examples"
    else:
        folder = tmp_path
        for name in ("diabetes.csv",):
            (folder / name).write_bytes((ROOT / "examples" / name).read_bytes())
    python = ""
    for language, rest, body in blocks(document):
        if language == "spl":
            name = rest or "block.spl"
            if not document.startswith("examples"):
                (tmp_path / name).write_text(body)
            spdsl.parse(body, name=name)
        elif language == "python" and "no-run" not in rest:
            python += body
        elif language == "console":
            if python:
                run_python(python, folder)
                python = ""
            run_console(body, folder)
    if python:
        run_python(python, folder)


def test_links_between_documents_lead_somewhere():
    for document in DOCUMENTS:
        text = (ROOT / document).read_text()
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if "://" not in target:
                assert ((ROOT / document).parent / target).exists(), f"{document}: {target}"


def test_every_back_end_and_every_option_is_described_in_the_back_ends_document():
    from spdsl.solvers.dispatch import BACKENDS, get

    text = (ROOT / "solvers" / "README.md").read_text()
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for name in BACKENDS:
        body = next((body for title, body in sections.items() if f"`{name}`" in title), None)
        assert body is not None, f"solvers/README.md has no section for `{name}`"
        for option in get(name).option_help():
            assert f"`{option.name}`" in body, f"solvers/README.md: `{name}` lacks its option `{option.name}`"

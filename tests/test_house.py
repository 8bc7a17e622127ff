"""The house stands as designed: what lies at the top, who imports whom, what a wheel holds, what start-up costs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP = {
    "pyproject.toml",
    "spdsl",
    "grammars",
    "solvers",
    "tests",
    "examples",
    "README.md",
    "LICENSE",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    ".ci",
    ".gitignore",
}


def git(*arguments: str) -> list[str]:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        pytest.skip("not a git checkout")
    return run.stdout.splitlines()


def test_the_top_level_holds_what_the_design_says_and_nothing_else():
    assert {name.split("/")[0] for name in git("ls-files")} == TOP


def test_solvers_and_grammars_are_reached_through_committed_links():
    for name in ("solvers", "grammars"):
        link = ROOT / "spdsl" / name
        assert link.is_symlink()
        assert link.resolve() == ROOT / name


def test_a_wheel_holds_the_back_ends_and_the_grammar(tmp_path):
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"spdsl/py.typed", "spdsl/solvers/dispatch.py", "spdsl/grammars/spl.lark"} <= names
    assert "spdsl/grammars/spl.tables.json" in names
    assert not [name for name in names if name.startswith(("solvers/", "grammars/", "tests/"))]


def test_printing_the_version_imports_nothing_costly():
    script = (
        "import sys; sys.argv = ['spdsl', '--version']\n"
        "from spdsl.cli import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "costly = {'numpy', 'scipy', 'sympy', 'numba', 'cvxpy', 'matplotlib', 'sklearn', 'lark', 'rich', 'pandas'}\n"
        "print(sorted(costly & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    version, costly = run.stdout.splitlines()
    assert version.endswith(tomllib_version())
    assert costly == "[]"


def tomllib_version() -> str:
    text = (ROOT / "spdsl" / "__init__.py").read_text()
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("__version__"))


def test_every_dependency_is_imported_somewhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    spelled = {"scikit-learn": "sklearn"}
    code = "\n".join(
        path.read_text() for folder in ("spdsl", "solvers") for path in (ROOT / folder).resolve().rglob("*.py")
    )
    for requirement in project["dependencies"]:
        name = requirement.split(">")[0]
        assert f"import {spelled.get(name, name)}" in code or f"from {spelled.get(name, name)}" in code, name

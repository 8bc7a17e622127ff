"""The loops' cache: one folder for each state of all their sources, wherever numba is told to keep it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numba import config

from spdsl.solvers.dual_averaging import compiled
from spdsl.solvers.dual_averaging.unchecked import at, both_if_greater, put

HERE = Path(compiled.__file__).parent


def test_every_source_of_compiled_code_counts_for_the_cache(tmp_path):
    uses = {path.name for path in HERE.glob("*.py") if "@inner" in path.read_text() or "numba" in _imports(path)}
    assert uses == set(compiled.SOURCES)


@pytest.mark.parametrize("edited", compiled.SOURCES)
def test_an_edit_in_any_source_moves_the_cache(tmp_path, edited):
    for name in compiled.SOURCES:
        shutil.copy(HERE / name, tmp_path / name)
    before = compiled.digest_of(tmp_path)
    assert before == compiled.digest_of(HERE)
    (tmp_path / edited).write_text((tmp_path / edited).read_text() + "\n# edited\n")
    compiled.digest_of.cache_clear()
    assert compiled.digest_of(tmp_path) != before


def test_compiled_functions_lie_in_that_folder_and_numbas_own_setting_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    twice = compiled.compiled()(_twice)
    assert twice(3.0) == 6.0
    assert Path(config.CACHE_DIR) == tmp_path
    assert list((tmp_path / f"dual_averaging_{compiled.digest_of(HERE)}").rglob("*.nbi"))


def test_unchecked_looks_see_the_flat_array_and_the_pair_is_chosen_by_comparing():
    @compiled.compiled()
    def look(array, k, value, left, right):
        before = at(array, k)
        put(array, k, value)
        return before, both_if_greater(left, right, 2.0, -3.0)

    table = np.arange(6.0).reshape(2, 3)
    assert look(table, 4, 7.0, 1.0, 0.5) == (4.0, (2.0, -3.0))
    assert table[1, 1] == 7.0
    assert look(table, 0, 0.0, 0.5, 0.5)[1] == (0.0, 0.0)
    assert look(table, 0, 0.0, np.nan, 0.5)[1] == (0.0, 0.0)


def _twice(x):
    return 2.0 * x


def _imports(path: Path) -> str:
    return "\n".join(line for line in path.read_text().splitlines() if line.startswith(("import ", "from ")))

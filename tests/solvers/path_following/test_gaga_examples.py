"""The scripts of the GAGA experiments: fair splits, poison where it is said to be, and runs that print what they promise."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "gaga"
needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("SPDSL_DATA", "")) / "gaga" / "music.npz").exists(),
    reason="set SPDSL_DATA to the folder that holds gaga/*.npz (the sets of Table 1; examples/README.md)",
)


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield __import__("experiment"), __import__("tables")
    for name in ("experiment", "tables"):
        sys.modules.pop(name, None)


@needs_data
@pytest.mark.data
@pytest.mark.parametrize("name", ["music", "pendigits"])
def test_poison_falls_on_its_share_of_the_training_part_only(scripts, name):
    experiment, _ = scripts
    clean, poisoned = (experiment.draw(name, noise, 200, 4) for noise in (0.0, 0.3))
    for part in ("choose", "test"):
        for one, other in zip(getattr(clean, part), getattr(poisoned, part)):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(clean.train[0], poisoned.train[0])
    assert np.mean(clean.train[1] != poisoned.train[1]) == pytest.approx(0.3)
    assert len(clean.train[1]) == 120


@needs_data
@pytest.mark.data
def test_no_two_columns_of_a_split_are_the_same(scripts):
    X, _ = scripts[0].draw("music", 0.3, 300, 0).train
    assert len(np.unique(np.round(X, 8), axis=1).T) == X.shape[1]
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)


@needs_data
@pytest.mark.data
def test_a_table_prints_ours_and_the_papers_row(scripts, monkeypatch, capsys):
    _, tables = scripts
    asked = [
        "tables.py",
        "2",
        "--sets",
        "delta_elevators",
        "--runs",
        "1",
        "--samples",
        "60",
        "--methods",
        "original",
        "path",
    ]
    monkeypatch.setattr(sys, "argv", asked)
    tables.main()
    lines = capsys.readouterr().out.splitlines()
    ours = next(line.split() for line in lines if line.split()[0] == "delta_elevators")
    paper = next(line.split() for line in lines if line.split()[0] == "paper")
    assert ours[1] == "30%"
    assert float(ours[2]) > 0.0
    assert paper[1:3] == ["0.783", "±0.153"]
    assert paper[-1] == "4"


def test_every_row_of_the_tables_has_the_papers_four_methods_and_known_sets(scripts):
    experiment, tables = scripts
    known = set(experiment.REGRESSION) | set(experiment.CLASSIFICATION)
    for _, rows in tables.TABLES.values():
        for name, noise, _, published, restarts in rows:
            assert name in known
            assert noise in (0.2, 0.3)
            assert len(published) == len(experiment.METHODS)
            assert restarts > 0

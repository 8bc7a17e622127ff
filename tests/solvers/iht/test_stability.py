"""Stability selection: shares are counts, planted entries come out on top, the bound is the published formula."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

import spdsl
from spdsl.cli.app import app
from spdsl.diagnostics import UsageError
from spdsl.solvers.iht.stability import Stability
from spdsl.solvers.samples import on_samples
from tests.solvers.iht.test_backend import text
from tests.solvers.iht.test_engine import planted


def test_planted_entries_are_chosen_more_often_than_the_others() -> None:
    X, y, w = planted(0, 8, 6, 120, noise=0.05)
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8), ordering="sorted")
    model = spdsl.parse(text(set_="connected(G, size = 6)"))
    found = model.stability(X=X, y=y, G=G, repeats=8, seed=1, starts=1)
    assert found.shares.shape == (64,)
    assert len(found.supports) == 8
    counted = np.bincount(np.concatenate(found.supports), minlength=64) / 8
    assert np.array_equal(found.shares, counted)
    planted_, others = found.shares[w != 0], found.shares[w == 0]
    assert planted_.mean() > 0.7 > 0.1 > others.mean()
    again = model.stability(X=X, y=y, G=G, repeats=8, seed=1, starts=1)
    assert np.array_equal(found.shares, again.shares)


def test_the_bound_on_false_choices_is_the_formula() -> None:
    found = Stability(np.full(100, 0.1), ())
    assert found.expected_false(0.75) == pytest.approx(10 * 10 / (0.5 * 100))
    assert found.expected_false(0.5) == float("inf")
    assert found.chosen(0.05).size == 100
    assert found.chosen(0.2).size == 0


def test_chosen_entries_come_with_the_most_frequent_first() -> None:
    found = Stability(np.array([0.7, 0.1, 1.0, 0.7]), ())
    assert found.chosen(0.6).tolist() == [2, 0, 3]


def test_processes_give_the_same_shares_as_one() -> None:
    X, y, _ = planted(1, 6, 4, 40, noise=0.1)
    model = spdsl.parse(text(set_="sparse(4)"))
    one = model.stability(X=X, y=y, repeats=4, seed=2)
    two = model.stability(X=X, y=y, repeats=4, seed=2, jobs=2)
    assert np.array_equal(one.shares, two.shares)
    assert one.names[0] == "w[0]"


def test_all_of_the_samples_every_time_is_repetition_over_seeds_only() -> None:
    X, y, w = planted(2, 6, 4, 60)
    found = spdsl.parse(text(set_="sparse(4)")).stability(X=X, y=y, repeats=3, share=1.0)
    assert np.array_equal(found.shares, (w != 0).astype(float))


def test_every_datum_of_the_samples_is_cut_and_nothing_else() -> None:
    source = text(set_="groups(g, 2)", labels=False).replace(
        "\nvariable", "  g : vector(p)\n  c : vector(m)\n\nvariable"
    )
    model = spdsl.parse(source.replace("(X @ w - y)^2", "c * (X @ w - y)^2"))
    rng = np.random.default_rng(0)
    X, y, c, g = rng.normal(size=(7, 7)), rng.normal(size=7), rng.uniform(1, 2, 7), np.arange(7.0) // 2
    bound = model.solve(X=X, y=y, c=c, g=g, backend="iht").bound
    part = on_samples(bound, np.array([1, 4]))
    assert part.n_samples == 2
    assert np.array_equal(part.data["X"], X[[1, 4]])
    assert np.array_equal(part.data["c"], c[[1, 4]])
    assert np.array_equal(part.data["g"], g)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"repeats": 1}, "at least 2"),
        ({"share": 0.0}, "share"),
        ({"share": 1.5}, "share"),
        ({"variable": "b"}, "no vector"),
    ],
)
def test_what_can_not_be_repeated_is_refused_in_words(options: dict[str, object], words: str) -> None:
    X, y, _ = planted(3, 4, 2, 20)
    with pytest.raises(UsageError, match=words):
        spdsl.parse(text(set_="sparse(2)")).stability(X=X, y=y, **options)


def test_the_command_prints_the_planted_entries_and_keeps_all_shares(tmp_path: Path) -> None:
    X, y, w = planted(4, 6, 4, 60)
    (tmp_path / "m.spl").write_text(text(set_="connected(G, size = 4)"))
    np.savez(tmp_path / "data.npz", X=X, y=y)
    words = ["stability", "m.spl", "--data", "data.npz", "--bind", "G=grid(6, 6)", "--repeats", "4", "--out", "s.npz"]
    words = [str(tmp_path / word) if word.endswith((".spl", ".npz")) else word for word in words]
    ran = CliRunner(catch_exceptions=False).invoke(app, words)
    assert ran.exit_code == 0, ran.stderr
    for k in np.flatnonzero(w):
        assert f"w[{k}]" in ran.stdout
    assert "4 of 36 entries" in ran.stdout
    with np.load(tmp_path / "s.npz") as stored:
        assert np.array_equal(stored["shares"], (w != 0).astype(float))
        assert stored["masks"].shape == (4, 36)
        assert stored["names"][5] == "w[5]"

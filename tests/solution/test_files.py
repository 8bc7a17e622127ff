"""Result files: everything comes back as it was, and what is no result file is told apart from what is."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from dataclasses import replace

import hand_built
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from spdsl.diagnostics import SpdslWarning, UsageError
from spdsl.problem import LabelMapping, Scaling, standardize
from spdsl.solution import History, Solution, Status
from spdsl.solution.files import read_result, restored_path, restored_solution


@pytest.fixture
def path():
    return hand_built.path()


@pytest.fixture
def saved(path, tmp_path):
    file = tmp_path / "path.npz"
    path.save(file)
    return file


def graph(**parts):
    return parts


def test_a_path_comes_back_bit_by_bit(path, saved):
    found = read_result(saved)
    bound = found.bound(hand_built.problem(), graph)
    again = restored_path(found, bound)
    np.testing.assert_array_equal(again.ages, path.ages)
    np.testing.assert_array_equal(again.nodes, path.nodes)
    np.testing.assert_array_equal(again.kkt_residuals, path.kkt_residuals)
    assert again.critical_points == path.critical_points
    assert again.status is path.status
    assert again.statistics == path.statistics
    np.testing.assert_array_equal(again.history["seconds"], path.history["seconds"])
    for name in ("X", "y"):
        np.testing.assert_array_equal(bound.data[name], path.bound.data[name])
    assert dict(bound.parameters) == dict(path.bound.parameters)
    assert dict(bound.feature_names) == dict(path.bound.feature_names)
    assert dict(bound.origin) == dict(path.bound.origin)
    assert bound.layout == path.bound.layout
    assert found.source == hand_built.SOURCE


def test_options_come_back_with_their_kinds(saved):
    assert read_result(saved).options == {
        "seed": 3,
        "time_limit": float("inf"),
        "start": ("subset", (0.5,), {"seed": 1}),
    }


def test_a_solution_comes_back_with_its_extras(tmp_path):
    bound = hand_built.bound(paced=False)
    extra = {"dual": np.arange(3.0), "passes": 4, "note": "as asked", "nested": {"a": np.eye(2)}}
    solution = Solution(
        bound,
        np.array([1.0, 2.0, 3.0]),
        Status.TIME_LIMIT,
        1.25,
        "fake",
        message="at step 3",
        kkt_residual=1e-9,
        history=History({"objective": np.array([3.0, 2.0])}),
        extra=extra,
    )
    solution.save(tmp_path / "s.npz")
    found = read_result(tmp_path / "s.npz")
    again = restored_solution(found, found.bound(hand_built.problem(paced=False), graph))
    np.testing.assert_array_equal(again.x, solution.x)
    np.testing.assert_array_equal(again["dual"], extra["dual"])
    np.testing.assert_array_equal(again["nested"]["a"], np.eye(2))
    assert again.extra["note"] == "as asked"
    assert (again.status, again.message, again.objective, again.age) == (Status.TIME_LIMIT, "at step 3", 1.25, None)


def test_sparse_matrices_labels_graphs_and_scalings_come_back(tmp_path):
    from spdsl.data import Graph

    bound = hand_built.bound()
    X = scipy.sparse.random_array((12, 2), density=0.4, rng=np.random.default_rng(0)).tocsr()
    G = Graph(4, np.array([[0, 1], [2, 3]]), np.array([1.0, 2.5]), names=("a", "b", "c", "d"))
    bound = replace(
        bound,
        data={"X": X, "y": bound.data["y"], "G": G},
        labels={"y": LabelMapping("no", "yes"), "z": LabelMapping(np.int64(0), np.float64(1.5))},
        scaling={"y": Scaling(np.array(3.0), np.array(0.1))},
        notes=("column `name` is text and was left out",),
    )
    replace(hand_built.path(bound), bound=bound).save(tmp_path / "p.npz")
    again = read_result(tmp_path / "p.npz").bound(hand_built.problem(), lambda **parts: Graph(**parts))
    assert (again.data["X"] != X).nnz == 0
    assert again.data["X"].shape == X.shape
    np.testing.assert_array_equal(again.data["G"].edges, G.edges)
    np.testing.assert_array_equal(again.data["G"].costs, G.costs)
    assert again.data["G"].names == G.names
    assert again.labels == {"y": LabelMapping("no", "yes"), "z": LabelMapping(0, 1.5)}
    assert float(again.scaling["y"].mean) == 3.0
    assert again.notes == bound.notes


def test_a_file_without_data_is_small_and_still_knows_its_nodes_and_names(path, tmp_path):
    path.save(tmp_path / "bare.npz", include_data=False)
    with np.load(tmp_path / "bare.npz") as archive:
        assert not [key for key in archive.files if key.startswith("a/data")]
    found = read_result(tmp_path / "bare.npz")
    again = restored_path(found, found.bound(hand_built.problem(), graph))
    np.testing.assert_array_equal(again.nodes, path.nodes)
    assert again.bound.layout == path.bound.layout
    assert len(again.critical_points) == 3
    with pytest.raises(UsageError, match="loaded without its data"):
        again(3.0)
    with pytest.raises(UsageError, match="loaded without its data"):
        again.select(X=np.ones((2, 2)), y=np.ones(2))


def test_nothing_in_a_file_is_pickled(saved):
    with np.load(saved, allow_pickle=False) as archive:
        for key in archive.files:
            assert archive[key].dtype.kind in "biufU"


def test_what_a_file_cannot_hold_is_named_in_a_warning_and_the_rest_is_kept(tmp_path):
    solution = replace(hand_built.path()(3.0), extra={"good": 1.0, "bad": object()})
    with pytest.warns(SpdslWarning, match="'bad' is a object"):
        solution.save(tmp_path / "s.npz")
    assert read_result(tmp_path / "s.npz").extra == {"good": 1.0}


def test_the_name_given_is_the_name_written_whatever_its_ending(path, tmp_path):
    path.save(tmp_path / "result.spdsl")
    assert os.listdir(tmp_path) == ["result.spdsl"]
    assert read_result(tmp_path / "result.spdsl").kind == "path"


def test_an_interrupt_while_writing_leaves_the_old_file_whole(path, saved, monkeypatch):
    before = saved.read_bytes()

    def interrupted(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        path.save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_folder_that_is_not_there_is_told_by_name(path, tmp_path):
    with pytest.raises(UsageError, match=r"can't write .*nowhere"):
        path.save(tmp_path / "nowhere" / "path.npz")
    with pytest.raises(UsageError, match=r"can't read .*nowhere"):
        read_result(tmp_path / "nowhere.npz")


def rewritten(saved, change):
    """The file with its plain values changed."""
    with np.load(saved) as archive:
        content = {key: archive[key] for key in archive.files}
    meta = json.loads(content["meta"].tobytes())
    change(meta, content)
    content["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    np.savez(saved, **content)


def test_a_file_of_a_newer_spdsl_says_to_upgrade(saved):
    rewritten(saved, lambda meta, content: meta.update(version=99))
    with pytest.raises(UsageError, match="newer spdsl") as caught:
        read_result(saved)
    assert caught.value.diagnostics[0].code == "SPL704"


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, content: meta.update(format="something else"),
        lambda meta, content: meta.update(kind="poem"),
        lambda meta, content: meta.update(status="GREAT"),
        lambda meta, content: meta.pop("layout"),
        lambda meta, content: meta.update(version="two"),
        lambda meta, content: content.pop("a/nodes"),
        lambda meta, content: content.pop("a/data/X"),
        lambda meta, content: content.update({"a/nodes": content["a/nodes"][:-1]}),
        lambda meta, content: content.update({"a/ages": np.array([])}),
        lambda meta, content: content.update({"a/ages": np.array(["a"] * 6)}),
    ],
)
def test_a_file_with_a_piece_missing_or_wrong_is_refused_by_name(saved, change):
    rewritten(saved, change)
    with pytest.raises(UsageError, match="is not a result file") as caught:
        read_result(saved)
    assert caught.value.diagnostics[0].code == "SPL703"


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 but no zip", b"\x93NUMPY\x01", bytes(1000)])
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, content):
    file = tmp_path / "x.npz"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"x\.npz is not a result file"):
        read_result(file)


def test_a_plain_npy_and_somebody_elses_npz_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(2))
    np.savez(tmp_path / "b.npz", X=np.eye(2))
    for name in ("a.npy", "b.npz"):
        with pytest.raises(UsageError, match="is not a result file"):
            read_result(tmp_path / name)


def test_a_file_with_pickled_objects_is_refused_and_nothing_of_it_runs(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.savez(tmp_path / "trap.npz", meta=np.array([Trap()], dtype=object))
    with pytest.raises(UsageError, match="is not a result file"):
        read_result(tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists()


@settings(max_examples=40)
@given(st.data())
def test_a_damaged_file_is_an_error_and_never_a_crash(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    file = folder / "p.npz"
    hand_built.path().save(file)
    content = bytearray(file.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(bytes(content))
    with contextlib.suppress(UsageError):  # anything else fails the test
        read_result(file)


def test_a_file_is_an_ordinary_zip_of_npy_members(saved):
    with zipfile.ZipFile(io.BytesIO(saved.read_bytes())) as archive:
        assert archive.testzip() is None
        assert "a/nodes.npy" in archive.namelist()


def test_standardizing_brings_columns_to_mean_0_and_deviation_1_and_can_be_undone():
    bound = hand_built.bound()
    scaled = standardize(bound, ["X", "y"])
    np.testing.assert_allclose(scaled.data["X"].mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(scaled.data["X"].std(axis=0), 1)
    np.testing.assert_allclose(scaled.scaling["X"].undo(scaled.data["X"]), bound.data["X"])
    np.testing.assert_allclose(scaled.scaling["y"].apply(bound.data["y"]), scaled.data["y"])


def test_a_constant_column_is_centred_and_not_divided_by_zero():
    bound = hand_built.bound()
    bound.data["X"][:, 0] = 0.1
    scaled = standardize(bound, ["X"])
    np.testing.assert_allclose(scaled.data["X"][:, 0], 0, atol=1e-15)


def test_sparse_data_and_unknown_names_cannot_be_standardized():
    bound = hand_built.bound()
    with pytest.raises(ValueError, match=r"did you mean `y`|vectors and matrices"):
        standardize(bound, ["yy"])
    bound = replace(bound, data={**bound.data, "X": scipy.sparse.csr_array(bound.data["X"])})
    with pytest.raises(ValueError, match="sparse"):
        standardize(bound, ["X"])

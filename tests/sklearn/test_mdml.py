"""The MDML estimators: scikit-learn's checks, metric-learn's interface, exact online learning, and bad input."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from spdsl.diagnostics import SolverError
from spdsl.sklearn import MDML, KernelMDML, KernelMDMLSupervised, MDMLSupervised
from spdsl.sklearn.constraints import neighbor_pairs, random_pairs
from spdsl.sklearn.mahalanobis import best_threshold
from spdsl.solvers.comid.losses import MarginLoss


def _pairs(T: int = 300, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(T, 2, d))
    return pairs, np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1.0, 1, -1)


IRIS = StandardScaler().fit_transform(load_iris().data), load_iris().target

# --- scikit-learn ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [MDMLSupervised(), KernelMDMLSupervised()], ids=["linear", "kernel"])
def test_supervised_estimators_pass_every_check_of_scikit_learn(estimator: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that skip themselves
        results = check_estimator(estimator, on_fail=None)
    failed = [item["check_name"] for item in results if item["status"] == "failed"]
    skipped = {item["check_name"] for item in results if item["status"] == "skipped"}
    assert not failed
    assert skipped <= {"check_array_api_input"}
    assert sum(item["status"] == "passed" for item in results) >= 40


@pytest.mark.parametrize("estimator", [MDML(), KernelMDML()], ids=["linear", "kernel"])
def test_pair_estimators_pass_the_checks_that_scikit_learn_has_for_3d_input(estimator: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None)
    assert all(item["status"] == "passed" for item in results)


def test_it_works_in_pipeline_grid_search_clone_and_pickle() -> None:
    X, y = IRIS
    pipeline = make_pipeline(StandardScaler(), MDMLSupervised(random_state=0), KNeighborsClassifier(3))
    search = GridSearchCV(pipeline, {"mdmlsupervised__rho": [0.01, 0.1]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    fitted = search.best_estimator_
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), fitted.predict(X))
    pairs, labels = _pairs()
    metric = MDML(random_state=0).fit(pairs, labels)
    copy = pickle.loads(pickle.dumps(metric))
    assert np.array_equal(copy.partial_fit(pairs, labels).components_, metric.partial_fit(pairs, labels).components_)
    assert not hasattr(clone(metric), "components_")
    distance = pickle.loads(pickle.dumps(metric.get_metric()))
    assert distance(pairs[0, 0], pairs[0, 1]) == pytest.approx(metric.pair_distance(pairs[:1])[0])


def test_pairs_can_be_scored_by_cross_validation() -> None:
    pairs, y = _pairs()
    for scoring in ("roc_auc", "accuracy", "f1", "average_precision"):
        scores = cross_val_score(MDML(random_state=0, step=0.5), pairs, y, scoring=scoring, error_score="raise")
        assert (scores > 0.6).all()


def test_it_learns_the_feature_that_tells() -> None:
    pairs, y = _pairs(1000)
    metric = MDML(step=1.0, rho=0.02, random_state=0).fit(pairs[:700], y[:700])
    plain = -np.linalg.norm(pairs[700:, 0] - pairs[700:, 1], axis=1)
    assert metric.score(pairs[700:], y[700:]) > 0.97 > 0.9 > roc_auc_score(y[700:], plain)
    assert accuracy_score(y[700:], metric.predict(pairs[700:])) > 0.85
    assert np.abs(metric.components_[0]).argmax() == 0


# --- online ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 299), min_size=0, max_size=5, unique=True), st.sampled_from([1, 1, 3]))
@settings(max_examples=12, deadline=None)
def test_partial_fit_in_chunks_equals_one_fit_bit_for_bit(cuts: list[int], batch: int) -> None:
    pairs, y = _pairs()
    cuts = sorted({cut - cut % batch for cut in cuts} - {0})
    options: dict[str, Any] = {"scale": 2.0, "batch_size": batch, "average": "linear" if batch == 3 else "none"}
    whole = MDML(passes=1, shuffle=False, **options).fit(pairs, y)
    chunked = MDML(**options)
    for piece, labels in zip(np.split(pairs, cuts), np.split(y, cuts)):
        chunked.partial_fit(piece, labels)
    assert np.array_equal(whole.components_, chunked.components_)
    assert whole.threshold_ == chunked.threshold_
    assert whole.n_iter_ == chunked.n_iter_


def test_with_the_median_scale_the_first_chunk_sets_it() -> None:
    pairs, y = _pairs()
    whole = MDML(passes=1, shuffle=False).fit(pairs, y)
    first = MDML().partial_fit(pairs[:100], y[:100])
    norms = np.linalg.norm(pairs[:100, 0] - pairs[:100, 1], axis=1)
    assert first.scale_ == pytest.approx(np.median(norms))
    chunked = MDML(scale=whole.scale_).partial_fit(pairs[:100], y[:100]).partial_fit(pairs[100:], y[100:])
    assert np.array_equal(whole.components_, chunked.components_)


def test_fit_forgets_and_random_state_decides() -> None:
    pairs, y = _pairs()
    once, twice = (MDML(random_state=3).fit(pairs, y) for _ in range(2))
    assert np.array_equal(once.components_, twice.fit(pairs, y).components_)
    assert not np.array_equal(once.components_, MDML(random_state=4).fit(pairs, y).components_)
    assert len(once.loss_curve_) == once.passes
    assert once.n_iter_ == once.passes * len(y)


def test_scaling_the_data_scales_the_metric_back() -> None:
    pairs, y = _pairs()
    metric, scaled = MDML(random_state=0).fit(pairs, y), MDML(random_state=0).fit(1e3 * pairs, y)
    np.testing.assert_allclose(
        scaled.get_mahalanobis_matrix() * 1e6, metric.get_mahalanobis_matrix(), rtol=1e-8, atol=1e-10
    )
    assert scaled.threshold_ == pytest.approx(metric.threshold_)
    assert np.array_equal(scaled.predict(1e3 * pairs), metric.predict(pairs))


# --- the metric -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["squared_frobenius", "von_neumann", "burg", "schatten"])
@pytest.mark.parametrize("average", ["none", "uniform"])
def test_distances_agree_with_each_other_and_with_m(divergence: str, average: str) -> None:
    pairs, y = _pairs()
    metric = MDML(divergence=divergence, average=average, random_state=0, passes=2).fit(pairs, y)
    M = metric.get_mahalanobis_matrix()
    u = pairs[:, 0] - pairs[:, 1]
    expected = np.sqrt(np.einsum("ti,ij,tj->t", u, M, u))
    np.testing.assert_allclose(metric.pair_distance(pairs), expected, rtol=1e-10)
    images = metric.transform(pairs[:, 0]) - metric.transform(pairs[:, 1])
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), expected, rtol=1e-9)
    distance = metric.get_metric()
    assert distance(pairs[0, 0], pairs[0, 1]) == pytest.approx(expected[0])
    assert distance(pairs[0, 0], pairs[0, 1], squared=True) == pytest.approx(expected[0] ** 2)
    np.testing.assert_array_equal(metric.pair_score(pairs), -metric.pair_distance(pairs))
    np.testing.assert_array_equal(
        metric.predict(pairs), np.where(metric.pair_distance(pairs) <= metric.threshold_, 1, -1)
    )
    assert metric.threshold_ == pytest.approx(np.sqrt(metric.mu_))


def test_components_are_cut_to_the_best_approximation() -> None:
    pairs, y = _pairs(d=5)
    full = MDML(random_state=0, rho=0.1, step=1.0).fit(pairs, y)
    assert full.components_.shape == (5, 5)
    for k in (1, 2):
        cut = MDML(random_state=0, rho=0.1, step=1.0, n_components=k).fit(pairs, y)
        w, V = np.linalg.eigh(full.get_mahalanobis_matrix())
        np.testing.assert_allclose(cut.get_mahalanobis_matrix(), (V[:, -k:] * w[-k:]) @ V[:, -k:].T, atol=1e-10)
        assert cut.transform(pairs[:, 0]).shape == (len(y), k)
    ranked = MDML(random_state=0, rho=0.1, step=1.0, n_components="rank").fit(pairs, y)
    assert ranked.components_.shape == (full.rank_, 5)
    np.testing.assert_allclose(ranked.get_mahalanobis_matrix(), full.get_mahalanobis_matrix(), atol=1e-12)


def test_rank_zero_still_transforms() -> None:
    pairs, y = _pairs()
    metric = MDML(rho=1e3, random_state=0).fit(pairs, y)
    assert metric.rank_ == 0
    assert not metric.transform(pairs[:, 0]).any()
    assert not metric.pair_distance(pairs).any()
    assert MDML(rho=1e3, random_state=0, n_components="rank").fit(pairs, y).transform(pairs[:, 0]).shape == (len(y), 0)


def test_feature_names_follow_the_components() -> None:
    X, y = IRIS
    metric = MDMLSupervised(n_components=2, random_state=0).fit(X, y)
    assert metric.get_feature_names_out().tolist() == ["mdmlsupervised0", "mdmlsupervised1"]
    frame = metric.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == ["mdmlsupervised0", "mdmlsupervised1"]


def test_the_metric_plugs_into_scikit_learn() -> None:
    X, y = IRIS
    metric = MDMLSupervised(random_state=0).fit(X, y)
    DBSCAN(metric=metric.get_metric()).fit(X[:20])
    by_metric = (
        KNeighborsClassifier(3, metric=metric.get_metric(), algorithm="brute").fit(X[::2], y[::2]).predict(X[1::2])
    )
    by_map = KNeighborsClassifier(3).fit(metric.transform(X[::2]), y[::2]).predict(metric.transform(X[1::2]))
    assert (by_metric == by_map).mean() > 0.97  # ties may fall the other way


# --- metric-learn's interface ---------------------------------------------------------------------------------------


def test_indices_with_a_preprocessor_are_the_points_themselves() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    index = rng.integers(0, 40, size=(90, 2))
    y = np.where(rng.random(90) < 0.5, 1, -1)
    plain = MDML(random_state=0).fit(X[index], y)
    for preprocessor in (X, X.tolist(), lambda i: X[i]):
        metric = MDML(random_state=0, preprocessor=preprocessor).fit(index, y)
        assert np.array_equal(metric.components_, plain.components_)
        assert np.array_equal(metric.pair_distance(index), plain.pair_distance(X[index]))
        assert np.array_equal(metric.transform(np.arange(40)), plain.transform(X))
        assert np.array_equal(metric.pair_distance(X[index]), plain.pair_distance(X[index]))  # formed pairs still work
    classes = rng.integers(0, 2, size=40)
    one = MDMLSupervised(random_state=0).fit(X, classes)
    two = MDMLSupervised(random_state=0, preprocessor=X).fit(np.arange(40), classes)
    assert np.array_equal(one.components_, two.components_)


def test_everything_asks_to_be_fitted_first() -> None:
    pairs, y = _pairs()
    metric = MDML()
    for call in (
        lambda: metric.transform(pairs[:, 0]),
        lambda: metric.pair_distance(pairs),
        lambda: metric.pair_score(pairs),
        lambda: metric.decision_function(pairs),
        lambda: metric.predict(pairs),
        metric.get_metric,
        metric.get_mahalanobis_matrix,
        lambda: metric.set_threshold(0.5),
        lambda: metric.calibrate_threshold(pairs, y),
    ):
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize("ties", [False, True])
def test_calibrated_thresholds_are_the_best_there_are(ties: bool) -> None:
    """Against every threshold that separates the distances differently."""
    rng = np.random.default_rng(1)
    distance = rng.integers(0, 8, size=60) / 4.0 if ties else rng.random(60)
    y = np.where(rng.random(60) < 0.55 - 0.2 * distance / distance.max(), 1.0, -1.0)
    cuts = [distance.min() - 1, *np.unique(distance)]

    def rates(cut: float) -> tuple[float, float]:
        called = np.where(distance <= cut, 1, -1)
        return float((called == 1)[y == 1].mean()), float((called == -1)[y == -1].mean())

    def accuracy(cut: float) -> float:
        return accuracy_score(y, np.where(distance <= cut, 1, -1))

    assert accuracy(best_threshold(distance, y, "accuracy", None, 1.0)) == max(map(accuracy, cuts))

    def f1(cut: float) -> float:
        return f1_score(y, np.where(distance <= cut, 1, -1), zero_division=0.0)

    assert f1(best_threshold(distance, y, "f_beta", None, 1.0)) == pytest.approx(max(map(f1, cuts)))
    for rate in (0.0, 0.3, 0.8, 1.0):
        found = rates(best_threshold(distance, y, "max_tpr", rate, 1.0))
        assert found[1] >= rate
        assert found[0] == max(a for a, b in map(rates, cuts) if b >= rate)
        found = rates(best_threshold(distance, y, "max_tnr", rate, 1.0))
        assert found[0] >= rate
        assert found[1] == max(b for a, b in map(rates, cuts) if a >= rate)


def test_calibration_during_and_after_fit_agree() -> None:
    pairs, y = _pairs()
    with pytest.warns(FutureWarning, match="pair_distance"):
        MDML(random_state=0, passes=1).fit(pairs, y).score_pairs(pairs)
    during = MDML(random_state=0).fit(pairs, y, calibration_params={"strategy": "max_tpr", "min_rate": 0.8})
    after = MDML(random_state=0).fit(pairs, y).calibrate_threshold(pairs, y, strategy="max_tpr", min_rate=0.8)
    assert during.threshold_ == after.threshold_
    assert during.set_threshold(0.25) is during
    assert during.threshold_ == 0.25


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, p, y: m.calibrate_threshold(p, y, strategy="weird"), "strategy 'weird' is unknown"),
        (lambda m, p, y: m.calibrate_threshold(p, y, strategy="max_tpr"), r"number in \[0, 1\]"),
        (lambda m, p, y: m.calibrate_threshold(p, y, strategy="max_tnr", min_rate=2), r"number in \[0, 1\]"),
        (lambda m, p, y: m.calibrate_threshold(p, y, strategy="f_beta", beta="1"), "real number"),
        (lambda m, p, y: m.set_threshold("high"), "real number"),
        (lambda m, p, y: m.set_threshold(None), "real number"),
        (lambda m, p, y: m.fit(p, y, calibration_params={"rate": 1}), "unknown names"),
        (lambda m, p, y: m.transform(p[:, 0, :2]), "expecting 4 features"),
        (lambda m, p, y: m.pair_distance(p[:, :, :3]), "expecting 4 features"),
        (lambda m, p, y: m.pair_distance(p[0]), "3D array"),
        (lambda m, p, y: m.transform(p[0, 0]), "2D array"),
        (lambda m, p, y: m.get_metric()(p[0, 0], np.ones(5)), "learned on 4 features"),
        (lambda m, p, y: m.get_metric()(p[0], p[1]), "1D array"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call: Any, words: str) -> None:
    pairs, y = _pairs()
    with pytest.raises(ValueError, match=words):
        call(MDML(random_state=0, passes=1).fit(pairs, y), pairs, y)


# --- bad and hard input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, y: (np.where(p > 2.5, np.nan, p), y), "NaN"),
        (lambda p, y: (np.where(p > 2.5, np.inf, p), y), "infinity"),
        (lambda p, y: (p, np.where(y > 0, 1, 0)), r"\{-1, \+1\}"),
        (lambda p, y: (p, y * 2), r"\{-1, \+1\}"),
        (lambda p, y: (p, np.where(y > 0, "a", "b")), r"\{-1, \+1\}"),
        (lambda p, y: (p, np.ones(len(y))), "1 class only"),
        (lambda p, y: (p, -np.ones(len(y))), "1 class only"),
        (lambda p, y: (p, y[:-1]), "300 pairs but 299 labels"),
        (lambda p, y: (p, None), "requires y"),
        (lambda p, y: (p[:, 0], y), "3D array"),
        (lambda p, y: (np.concatenate([p, p], axis=1), y), "2 points each"),
        (lambda p, y: (p[:0], y[:0]), "at least one pair"),
        (lambda p, y: (p[:, :, :0], y), "at least one pair and one feature"),
    ],
)
def test_malformed_pairs_are_refused_with_the_reason(change: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MDML().fit(*change(*_pairs()))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "hing"}, "did you mean `hinge`"),
        ({"divergence": "bregman"}, "no divergence"),
        ({"divergence": "schatten", "p": 1.0}, "p > 1"),
        ({"rho": -1.0}, "must be finite and >= 0"),
        ({"penalty": "nuclear"}, "penalty 'nuclear' is unknown"),
        ({"step": 0.0}, "`step`"),
        ({"passes": 0}, "passes is 0"),
        ({"batch_size": 0}, "`batch`"),
        ({"average": "mean"}, "`average`"),
        ({"scale": "mean"}, "scale is 'mean'"),
        ({"scale": -1.0}, "scale is -1.0"),
        ({"n_components": 5}, r"in \[1, 4\]"),
        ({"n_components": 0}, r"in \[1, 4\]"),
        ({"preprocessor": 3}, "preprocessor"),
    ],
)
def test_parameters_out_of_range_are_named(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MDML(**parameters).fit(*_pairs())


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.ones((4, 2)), np.zeros(4), "1 class only"),
        (np.ones((4, 2)), np.array([0.5, 1.5, 2.5, 3.5]), "Unknown label type"),
        (np.ones((4, 2)), np.array([0, 1, 0]), "inconsistent numbers"),
        (np.full((4, 2), np.nan), np.array([0, 1, 0, 1]), "NaN"),
    ],
)
def test_malformed_points_are_refused_with_the_reason(X: np.ndarray, y: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MDMLSupervised().fit(X, y)


def _is_fine(metric: Any, X: np.ndarray) -> None:
    M = metric.get_mahalanobis_matrix()
    assert np.isfinite(M).all()
    assert np.isfinite(metric.transform(X)).all()
    assert np.linalg.eigvalsh(M)[0] >= -1e-9 * max(np.abs(M).max(), 1e-300)


@pytest.mark.parametrize("divergence", ["squared_frobenius", "von_neumann", "burg", "schatten"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda X: np.column_stack([X, np.ones(len(X))]),  # a constant column
        lambda X: np.column_stack([X, X[:, :2], X @ np.ones(4)]),  # collinear ones
        lambda X: X * np.array([1e-6, 1.0, 1e3, 1e6]),  # scales far apart
        lambda X: np.repeat(X[::3], 3, axis=0),  # identical points
        lambda X: X[:, :1],  # one feature
        lambda X: np.column_stack([X, np.zeros((len(X), 3))]),
    ],
    ids=["constant", "collinear", "scales", "identical", "one_feature", "zeros"],
)
def test_hard_but_valid_points_are_learned_from(spoil: Any, divergence: str) -> None:
    X, y = IRIS
    X = spoil(X)
    metric = MDMLSupervised(divergence=divergence, random_state=0, passes=2, step=0.05)
    if divergence == "von_neumann" and X.max() > 1e5:  # differences of 1e4 medians make exp(theta) overflow
        with pytest.raises(SolverError, match="scale the pairs' differences down"):
            metric.fit(X, y)
        return
    _is_fine(metric.fit(X, y), X)


def test_pairs_of_identical_points_change_the_threshold_only() -> None:
    points = np.random.default_rng(0).normal(size=(60, 1, 3))
    pairs = np.repeat(points, 2, axis=1)
    y = np.where(np.arange(60) % 2, 1, -1)
    metric = MDML(rho=0.0, random_state=0).fit(pairs, y)
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), np.eye(3))
    assert not metric.pair_distance(pairs).any()


def test_an_unbounded_burg_step_is_an_error_with_a_mend() -> None:
    pairs, y = _pairs()
    with pytest.raises(SolverError, match="lower `step`"):
        MDML(divergence="burg", step=1e4, rho=0.0, random_state=0).fit(pairs, y)


def test_two_points_and_tiny_classes_work() -> None:
    X = np.array([[0.0, 1.0], [2.0, 0.5], [2.1, 0.4]])
    metric = MDMLSupervised(random_state=0).fit(X, [0, 1, 1])
    assert metric.n_pairs_ == 2 + 1 + 2 + 1 - 0
    MDMLSupervised(random_state=0).fit(X[:2], ["a", "b"])


def test_memory_stays_near_that_of_the_data() -> None:
    """n = 1,021, d = 122, three neighbours of each kind: the pairs take 6 MB, all pairs would take 1 GB."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1021, 122)), rng.integers(0, 10, size=1021)
    metric = MDMLSupervised(passes=1, random_state=0)
    metric.fit(X[:50], y[:50])  # what is imported and compiled once doesn't count
    tracemalloc.start()
    metric.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert metric.n_pairs_ == 6 * 1021
    assert peak < 40e6


def test_a_loss_of_ones_own_is_taken() -> None:
    huber = MarginLoss(
        "huber",
        lambda z: np.where(z > 1, 0, np.where(z > 0, (1 - z) ** 2 / 2, 0.5 - z)),
        lambda z: -np.clip(1 - z, 0, 1),
    )
    pairs, y = _pairs()
    mine = MDML(loss=huber, random_state=0).fit(pairs, y)
    named = MDML(loss="smoothed_hinge", random_state=0).fit(pairs, y)
    np.testing.assert_allclose(mine.components_, named.components_, atol=1e-8)


# --- constraints ------------------------------------------------------------------------------------------------------


def test_neighbor_pairs_are_the_nearest_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, size=30)
    pairs, labels = neighbor_pairs(X, y, 2)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(D, np.inf)
    for i in range(30):
        for same, label in ((True, 1.0), (False, -1.0)):
            allowed = np.flatnonzero(((y == y[i]) == same) & np.isfinite(D[i]))
            expected = set(allowed[np.argsort(D[i, allowed])[:2]])
            assert set(pairs[(pairs[:, 0] == i) & (labels == label), 1]) == expected


def test_random_pairs_keep_their_promise() -> None:
    y = np.array([0, 0, 0, 1, 1, 2])
    pairs, labels = random_pairs(y, 20, np.random.default_rng(0))
    assert ((y[pairs[:, 0]] == y[pairs[:, 1]]) == (labels == 1)).all()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert (labels == 1).sum() == (labels == -1).sum() == 20
    X, classes = IRIS
    assert MDMLSupervised(n_constraints=25, random_state=0).fit(X, classes).n_pairs_ == 50


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_kernel_metric_equals_the_metric_of_the_explicit_feature_space() -> None:
    """(x'z + 1)^2 has the features x_i x_j, sqrt(2) x_i, 1: the same distances, seen and unseen."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(25, 2))
    index = rng.integers(0, 25, size=(120, 2))
    y = np.where(rng.random(120) < 0.5, 1, -1)

    def features(X: np.ndarray) -> np.ndarray:
        a, b = X[..., 0], X[..., 1]
        s = np.sqrt(2.0)
        return np.stack([a * a, b * b, s * a * b, s * a, s * b, np.ones_like(a)], axis=-1)

    options: dict[str, Any] = {"random_state": 0, "scale": "none", "rho": 0.05, "step": 0.05}
    explicit = MDML(**options).fit(features(points[index]), y)
    kernel = KernelMDML(kernel="polynomial", degree=2, coef0=1.0, gamma=1.0, metric=MDML(**options)).fit(
        points[index], y
    )
    new = rng.normal(size=(40, 2, 2))
    np.testing.assert_allclose(kernel.pair_distance(new), explicit.pair_distance(features(new)), atol=1e-9)
    np.testing.assert_allclose(
        kernel.pair_distance(points[index]), explicit.pair_distance(features(points[index])), atol=1e-9
    )
    assert kernel.threshold_ == pytest.approx(explicit.threshold_)
    np.testing.assert_array_equal(kernel.predict(new), explicit.predict(features(new)))


def test_kernel_representer_gives_the_distances() -> None:
    X, y = IRIS
    metric = KernelMDMLSupervised(gamma=0.3, random_state=0).fit(X[::3], y[::3])
    from sklearn.metrics.pairwise import rbf_kernel

    pairs = X[np.random.default_rng(0).integers(0, 150, size=(30, 2))]
    k = rbf_kernel(pairs[:, 0], X[::3], gamma=0.3) - rbf_kernel(pairs[:, 1], X[::3], gamma=0.3)
    squares = np.einsum("ti,ij,tj->t", k, metric.dual_coef_, k)
    np.testing.assert_allclose(metric.pair_distance(pairs) ** 2, squares, atol=1e-6 * squares.max())


def test_kernel_metric_separates_what_no_linear_metric_can() -> None:
    from sklearn.datasets import make_circles

    X, y = make_circles(60, factor=0.5, noise=0.05, random_state=0)
    kernel = KernelMDMLSupervised(
        gamma=2.0, metric=MDMLSupervised(n_components=1, n_constraints=200, step=1.0), random_state=0
    )
    linear = MDMLSupervised(n_components=1, n_constraints=200, step=1.0, random_state=0)
    scores = [
        cross_val_score(make_pipeline(map_, KNeighborsClassifier(3)), X, y, cv=3).mean() for map_ in (kernel, linear)
    ]
    assert scores[0] > 0.95 > scores[1]


def test_kernels_that_are_not_positive_semidefinite_are_refused() -> None:
    X, y = IRIS
    with pytest.raises(ValueError, match="not positive semidefinite"):
        KernelMDMLSupervised(kernel="polynomial", degree=3, coef0=-5.0, gamma=1.0).fit(X, y)
    with pytest.raises(ValueError, match="kernel 'sigmoid' is unknown"):
        KernelMDMLSupervised(kernel="sigmoid").fit(X, y)


# --- does it help -----------------------------------------------------------------------------------------------------


def test_it_is_no_worse_than_euclid_on_wine() -> None:
    X, y = load_wine(return_X_y=True)
    plain = make_pipeline(StandardScaler(), KNeighborsClassifier(3))
    learned = make_pipeline(
        StandardScaler(), MDMLSupervised(step=1.0, rho=0.01, random_state=0), KNeighborsClassifier(3)
    )
    assert cross_val_score(learned, X, y, cv=5).mean() >= cross_val_score(plain, X, y, cv=5).mean()

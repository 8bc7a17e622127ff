"""Runs metric-learn's own interface tests on our estimators, from an unpacked source distribution of metric-learn.

    pip download metric-learn==0.7.0 --no-deps --no-binary :all: && tar xzf metric_learn-0.7.0.tar.gz
    python tests/sklearn/metric_learn_suite.py metric-learn-0.7.0

In: the folder (its tests are not in the wheel and not in this repository). Out: pytest's report over the tests that
take an estimator, with ours in the places of metric-learn's. metric-learn 0.7 predates today's scikit-learn, NumPy and
pytest, so what they dropped is put back for its tests: `force_all_finite`, `numpy.core`, `pytest.warns(None)`.

What fails there compares messages word by word (ours have their own words); everything else passes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODULES = ("test_base_metric", "test_mahalanobis_mixin", "test_pairs_classifiers", "test_sklearn_compat")

CONFTEST = """
import contextlib, sys, types, warnings
import numpy, pytest, sklearn.utils, sklearn.utils.validation

sys.modules.setdefault("numpy.core.numeric", types.SimpleNamespace(array_equal=numpy.array_equal))

def renamed(function):
    def call(*args, force_all_finite=True, **kwargs):
        return function(*args, ensure_all_finite=force_all_finite, **kwargs)
    return call

import metric_learn._util as util
util.check_array, util.check_X_y = renamed(sklearn.utils.check_array), renamed(sklearn.utils.check_X_y)

warns = pytest.warns
def warns_of_old(expected, *args, **kwargs):
    return warnings.catch_warnings(record=True) if expected is None else warns(expected, *args, **kwargs)
pytest.warns = warns_of_old

from spdsl.sklearn import MDML, MDMLSupervised
import test.test_utils as lists
pairs, points = [(MDML(), lists.build_pairs)], [(MDMLSupervised(), lists.build_classification)]
for name, found in {
    "pairs_learners": pairs, "tuples_learners": pairs, "classifiers": points, "supervised_learners": points,
    "metric_learners": pairs + points, "metric_learners_pipeline": pairs + points,
    "quadruplets_learners": [], "triplets_learners": [], "regressors": [],
}.items():
    setattr(lists, name, found)
    setattr(lists, "ids_" + name, [type(learner).__name__ for learner, _ in found])
"""


def main(source: Path, arguments: list[str]) -> int:
    """Copy the tests beside a conftest that puts our estimators in, and run those that name them."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(source / "test", root / "test")
        (root / "test" / "__init__.py").touch()
        (root / "conftest.py").write_text(CONFTEST)
        (root / "pytest.ini").write_text("[pytest]\n")
        modules = [f"test/{module}.py" for module in MODULES]
        command = [sys.executable, "-m", "pytest", "-q", "-k", "MDML", "-p", "no:cacheprovider", *modules, *arguments]
        repository = Path(__file__).resolve().parents[2]
        import os

        paths = os.pathsep.join([folder, str(repository)])
        return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": paths}, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

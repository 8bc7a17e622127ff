"""3-NN accuracy after metric learning: MDML against Euclid, NCA, LMNN, ITML, MMC, SDML, LSML, LFDA and SCML on
one protocol.

    python examples/metric/compare.py [iris wine ...] [--methods mdml lfda ...] [--steps 0.2 1] [--rhos 0.01 0.1]
        [--limit 900] [--out examples/metric/out]

Protocol: 5-fold stratified cross-validation (shuffled, random_state 0), StandardScaler fitted on each training
part, the metric learned there, 3 nearest neighbours. MDML gets each point's 3 nearest of its own class and 3 of
the others as pairs; its step and rho are chosen inside each training part by 3-fold cross-validation. The peers
run with their defaults.

In: scikit-learn's sets, and those of the folder named by SPDSL_DATA (folder `metric`) when it is set. Out:
`results.json` (what is there is not run again) and a table: accuracy in percent, rank of M, CPU seconds of one
fit without the choice of parameters. Each line runs in a process of its own, and is given up after ``--limit``
wall-clock seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SETS = ("iris", "wine", "breast_cancer", "digits")
EXTRA = ("balance_scale", "heart_statlog", "sonar", "ionosphere", "pima_diabetes", "segment210", "segment")
METHODS = ("euclid", "mdml", "mdml_mean", "nca", "lmnn", "itml", "mmc", "sdml", "lsml", "lfda", "scml")
GRID = {"step": [0.2, 1.0], "rho": [0.001, 0.01, 0.1]}
Grid = dict[str, list[float]]


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, d) and classes (n,) of a set, as they come."""
    if name in SETS:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y
    folder = os.environ.get("SPDSL_DATA")
    if folder is None:
        raise SystemExit(f"the set {name!r} is read from $SPDSL_DATA/metric/{name}.npz, and SPDSL_DATA is not set")
    with np.load(Path(folder) / "metric" / f"{name}.npz") as archive:
        return archive["X"].astype(float), archive["y"]


def learner(method: str, grid: Grid) -> Callable[[np.ndarray, np.ndarray], Any]:
    """A function from training points and classes to an object with `transform` and perhaps `components_`."""
    if method in ("mdml", "mdml_mean"):
        return lambda X, y: _chosen(method, grid, X, y)
    if method == "nca":
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        return lambda X, y: NeighborhoodComponentsAnalysis(random_state=0).fit(X, y)
    metric_learn = _metric_learn()
    makers = {
        "lmnn": lambda: metric_learn.LMNN(n_neighbors=3, random_state=0),
        "itml": lambda: metric_learn.ITML_Supervised(random_state=0),
        "mmc": lambda: metric_learn.MMC_Supervised(random_state=0),
        "sdml": lambda: metric_learn.SDML_Supervised(random_state=0),
        "lsml": lambda: metric_learn.LSML_Supervised(random_state=0),
        "lfda": lambda: metric_learn.LFDA(),
        "scml": lambda: metric_learn.SCML_Supervised(random_state=0),
    }
    return lambda X, y: makers[method]().fit(X, y)


def _metric_learn() -> Any:
    """metric-learn; its 0.7 passes scikit-learn's validators an argument that was renamed since: mended here."""
    import inspect

    import metric_learn
    import metric_learn._util as util
    from sklearn.utils import check_array, check_X_y

    if "force_all_finite" not in inspect.signature(check_array).parameters:

        def renamed(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, force_all_finite: Any = True, **more: Any) -> Any:
                return function(*args, ensure_all_finite=force_all_finite, **more)

            return call

        util.check_array, util.check_X_y = renamed(check_array), renamed(check_X_y)
    return metric_learn


def _chosen(method: str, candidates: Grid, X: np.ndarray, y: np.ndarray) -> Any:
    """MDML with the step and rho that do best in an inner 3-fold cross-validation; `seconds_` is the last fit's."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    from spdsl.sklearn import MDMLSupervised

    average = "uniform" if method == "mdml_mean" else "none"
    pipeline = make_pipeline(MDMLSupervised(average=average, random_state=0), KNeighborsClassifier(3))
    grid = {f"mdmlsupervised__{name}": values for name, values in candidates.items()}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, grid, cv=folds, refit=False).fit(X, y)
    best = {name.removeprefix("mdmlsupervised__"): value for name, value in search.best_params_.items()}
    started = time.process_time()
    metric = MDMLSupervised(average=average, random_state=0, **best).fit(X, y)
    metric.seconds_ = time.process_time() - started
    metric.chosen_ = best
    return metric


def evaluate(name: str, method: str, grid: Grid) -> dict[str, Any]:
    """The protocol for one set and one method."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler
    from threadpoolctl import threadpool_limits

    X, y = load(name)
    fit = (lambda X, y: None) if method == "euclid" else learner(method, grid)
    accuracies, ranks, seconds, chosen = [], [], [], []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method.startswith("mdml"):  # what is compiled once doesn't count
            learner(method, {"step": [1.0], "rho": [0.01, 0.1]})(*load("iris"))
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
            scaler = StandardScaler().fit(X[train])
            A, B = scaler.transform(X[train]), scaler.transform(X[test])
            started = time.process_time()
            metric = fit(A, y[train])
            seconds.append(getattr(metric, "seconds_", time.process_time() - started))
            if metric is not None:
                A, B = metric.transform(A), metric.transform(B)
                L = getattr(metric, "components_", np.empty((0, 0)))
                values = np.linalg.svd(L, compute_uv=False)
                ranks.append(int(np.count_nonzero(values > 1e-6 * max(values.max(initial=0.0), 1e-300))))
                chosen.append(getattr(metric, "chosen_", None))
            accuracies.append(float(KNeighborsClassifier(3).fit(A, y[train]).score(B, y[test])))
    return {
        "accuracy": 100 * float(np.mean(accuracies)),
        "folds": accuracies,
        "rank": float(np.mean(ranks)) if ranks else X.shape[1],
        "seconds": float(np.mean(seconds)),
        "chosen": chosen if any(chosen) else None,
    }


def run(names: list[str], methods: list[str], grid: Grid, folder: Path, limit: float) -> dict[str, dict[str, Any]]:
    """Everything that is not in `results.json` yet, each in its own process."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    results: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        for method in methods:
            if method in results.setdefault(name, {}):
                continue
            results[name][method] = _in_a_process(name, method, grid, limit)
            path.write_text(json.dumps(results, indent=1))
            print(f"{name:>14} {method:>10} {_cell(results[name][method])}", flush=True)
    return results


def _in_a_process(name: str, method: str, grid: Grid, limit: float) -> dict[str, Any]:
    values = [word for key in GRID for word in (f"--{key}s", *map(str, grid[key]))]
    command = [sys.executable, __file__, "--one", name, method, *values]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"gave up after {limit:g} s"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def _cell(result: dict[str, Any]) -> str:
    if "error" in result:
        return f"no result: {result['error']}"
    return f"{result['accuracy']:6.2f} (rank {result['rank']:.1f}, {result['seconds']:.2f} s)"


def table(results: dict[str, dict[str, Any]], methods: list[str]) -> str:
    """Accuracy in percent (CPU seconds of a fit), the best of each row starred; then what gave no result."""
    lines = [f"{'set':>14} " + " ".join(f"{method:>15}" for method in methods)]
    failures = []
    for name, row in results.items():
        best = max((round(item["accuracy"], 2) for item in row.values() if "accuracy" in item), default=0.0)
        cells = []
        for method in methods:
            item = row.get(method)
            if item is None or "error" in item:
                cells.append(f"{'-':>15}")
                if item is not None:
                    failures.append(f"{name}, {method}: {item['error']}")
                continue
            star = "*" if round(item["accuracy"], 2) == best else ""
            cells.append(f"{item['accuracy']:.2f}{star} ({item['seconds']:.2f})".rjust(15))
        lines.append(f"{name:>14} " + " ".join(cells))
    return "\n".join([*lines, *(["", *failures] if failures else [])])


def main(arguments: list[str] | None = None) -> int:
    """Run, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help=f"of {', '.join(SETS + EXTRA)}; all that are there when left out")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--steps", nargs="+", type=float, default=GRID["step"], help="MDML's steps to choose from")
    parser.add_argument("--rhos", nargs="+", type=float, default=GRID["rho"], help="MDML's rhos to choose from")
    parser.add_argument("--limit", type=float, default=900.0, help="wall-clock seconds for one line")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    parser.add_argument("--one", nargs=2, metavar=("SET", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    grid = {"step": options.steps, "rho": options.rhos}
    if options.one:
        print(json.dumps(evaluate(*options.one, grid)))
        return 0
    names = options.sets or [*SETS, *(EXTRA if os.environ.get("SPDSL_DATA") else ())]
    if not options.sets and not os.environ.get("SPDSL_DATA"):
        print(f"SPDSL_DATA is not set: leaving out {', '.join(EXTRA)}", file=sys.stderr)
    results = run(names, options.methods, grid, options.out, options.limit)
    print(table({name: results[name] for name in names}, options.methods))
    return 0


if __name__ == "__main__":
    sys.exit(main())

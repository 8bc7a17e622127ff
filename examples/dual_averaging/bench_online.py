"""`make bench-online`: dual averaging against scikit-learn's SGDClassifier and Vowpal Wabbit on mean hinge + rho |w|_1.

In: the sets named on the command line (all by default). Out: tables of iterations a second and of CPU seconds to
objective gaps of 1e-2 and 1e-3, printed and written to out/bench_online.json. CPU seconds of the stepping alone:
compiling, reading and looking at the objective are apart (compiling is printed). Default and tuned settings; tuned
means the best of a grid.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from datasets import OPTIMA, load

import spdsl
from spdsl.data import bind
from spdsl.solvers.dual_averaging.linear import LinearModel, linear_model
from spdsl.solvers.dual_averaging.options import Options
from spdsl.solvers.dual_averaging.sampling import Sampler
from spdsl.solvers.dual_averaging.setting import make_setting
from spdsl.solvers.dual_averaging.tuning import natural_gamma, tuned_gamma

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "out")
SETS = ("synthetic", "a9a", "reuters21578_earnacq")
GAPS = (1e-2, 1e-3)
MODEL = """
data
  X : matrix(n, d)
  y : labels(n)
parameter
  rho = 1e-4
variable
  w : vector(d)
minimize
  loss         hinge(y * (X @ w)) / n
  regularizer  rho * norm1(w)
"""


def passes_to_look_at(most: float) -> list[float]:
    """Half passes at first, then ever coarser."""
    looks = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0]
    while looks[-1] < most:
        looks.append(round(2 * max(looks[-1] + 1.0, 1.15 * looks[-1])) / 2)
    return looks


# --- the runs: each yields (CPU seconds so far, w) at growing numbers of passes ------------------------------------


def ours(
    model: LinearModel, gamma: float | None = None, most: float = 60.0, **options: Any
) -> Iterator[tuple[float, Any]]:
    """Interpolated dual averaging; with gamma None it is tuned on trial runs, and their time counts."""
    rows = model.design.shape[0]
    setting = make_setting(model, Options(**options))
    sampler = Sampler(rows, "shuffle", 1)
    sampler.rows(0, 1)
    started = time.process_time()
    if gamma is None:
        gamma = _tuned(model, **options)
    engine = setting.engine(gamma)
    engine.block()
    spent = time.process_time() - started
    made = 0
    for share in passes_to_look_at(most):
        until = round(share * rows)
        started = time.process_time()  # drawing the rows counts: SGDClassifier shuffles within its time too
        engine.advance(sampler.rows(made, until - made))
        spent += time.process_time() - started
        made = until
        yield spent, setting.point(engine)[0]


def _tuned(model: LinearModel, **options: Any) -> float:
    """The gamma that the back end would choose by its trial runs."""
    setting, rows = make_setting(model, Options(**options)), model.design.shape[0]
    return tuned_gamma(setting, Sampler(rows, "shuffle", 1), round(Options().passes * rows))[0]


def sgd(X: Any, y: Any, rho: float, most: float, **options: Any) -> Iterator[tuple[float, Any]]:
    """SGDClassifier by `partial_fit`, half a pass at a time at first."""
    from sklearn.linear_model import SGDClassifier

    learner = SGDClassifier(
        loss="hinge", penalty="l1", alpha=rho, fit_intercept=False, shuffle=True, random_state=1, **options
    )
    order = np.random.default_rng(1).permutation(len(y))
    halves = [(X[part], y[part]) for part in np.array_split(order, 2)]
    shuffled = X[order], y[order]
    spent, done = 0.0, 0.0
    classes = np.array([-1.0, 1.0])
    while done < most:
        piece = halves[round(2 * done) % 2] if done < 4 else shuffled
        started = time.process_time()
        learner.partial_fit(*piece, classes=classes)
        spent += time.process_time() - started
        done += 0.5 if done < 4 else 1.0
        yield spent, learner.coef_.ravel()


def vw_file(folder: str, X: Any, y: Any) -> str:
    """The data as Vowpal Wabbit reads them, rows shuffled, and the cache that it makes of them."""
    path = os.path.join(folder, "data.vw")
    with open(path, "w") as file:
        for i in np.random.default_rng(1).permutation(len(y)):
            part = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[part].tolist(), X.data[part].tolist())
            file.write(f"{y[i]:.0f} | {' '.join(f'{j}:{v:.7g}' for j, v in pairs)}\n")
    vw_run(path, X.shape[1], 1, 0.0, "")
    return path


def vw_run(path: str, d: int, passes: int, rho: float, extra: str) -> tuple[float, Any]:
    """CPU seconds of a run from the cache (all its threads), and its weights."""
    import vowpalwabbit

    readable = path + ".weights"
    arguments = (
        f"-d {path} --cache_file {path}.cache --passes {passes} --loss_function hinge --l1 {rho} --noconstant "
        f"--holdout_off -b 18 --quiet --readable_model {readable} {extra}"
    )
    started = time.process_time()
    workspace = vowpalwabbit.Workspace(arguments)
    spent = time.process_time() - started
    workspace.finish()
    w = np.zeros(d)
    with open(readable) as file:
        for line in file:
            name, _, value = line.strip().partition(":")
            if name.isdigit() and int(name) < d and value:
                w[int(name)] = float(value.split()[0])
    return spent, w


# --- the measures ---------------------------------------------------------------------------------------------------


def time_to_gaps(
    run: Iterator[tuple[float, Any]], gap: Callable[[Any], float], beaten: dict[float, float] | None = None
) -> dict[float, float]:
    """CPU seconds at which each gap was first seen, inf for never.

    A run that has spent more than the seconds of `beaten` for each gap that it hasn't reached is given up.
    """
    found = dict.fromkeys(GAPS, np.inf)
    limits = beaten or dict.fromkeys(GAPS, np.inf)
    for spent, w in run:
        now = gap(w)
        for level in GAPS:
            if now <= level:
                found[level] = min(found[level], spent)
        if all(np.isfinite(found[level]) or spent > limits[level] for level in GAPS):
            break
    return found


def best_of(runs: dict[str, dict[float, float]]) -> dict[float, tuple[float, str]]:
    """For each gap the least time and the setting that reached it."""
    return {level: min((found[level], name) for name, found in runs.items()) for level in GAPS}


def tuned(
    settings: list[dict[str, Any]],
    run: Callable[[dict[str, Any]], Iterator[tuple[float, Any]]],
    gap: Callable[[Any], float],
    repeats: int,
) -> dict[float, tuple[float, str]]:
    """The best of some settings; the winners run again, and the least time counts."""
    tried: list[dict[float, float]] = []
    for given in settings:
        beaten = {level: min((2.0 * other[level] for other in tried), default=np.inf) for level in GAPS}
        tried.append(time_to_gaps(run(given), gap, beaten))
    found = {}
    for level in GAPS:
        winner = min(range(len(settings)), key=lambda k: tried[k][level])
        again = [time_to_gaps(run(settings[winner]), gap)[level] for _ in range(repeats)]
        words = (
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in settings[winner].items()
        )
        found[level] = (min(tried[winner][level], *again), ", ".join(words))
    return found


def bench_set(name: str, most: float, repeats: int, with_vw: bool) -> dict[str, Any]:
    """All measures on one set."""
    X, y = load(name)
    rho, optimum = OPTIMA[name]
    n, d = X.shape
    bound = bind(spdsl.parse(MODEL).problem, arrays={"X": X, "y": y}, parameters={"rho": rho})
    model = linear_model(bound)

    def gap(w: Any) -> float:
        return float(np.maximum(0.0, 1.0 - y * (X @ w)).mean() + rho * np.abs(w).sum() - optimum)

    print(f"\n{name}: {n:,} x {d:,}, {X.nnz / n:.0f} nonzeros a row, rho = {rho:g}, optimum {optimum:.9f}", flush=True)
    started = time.process_time()
    next(ours(model, 1.0, 0.25))
    compiling = time.process_time() - started
    print(f"  compiling or loading kernels, and a quarter of a pass: {compiling:.1f} s")
    result: dict[str, Any] = {"n": n, "d": d, "nnz": int(X.nnz), "rho": rho, "optimum": optimum, "compiling": compiling}
    result["iterations"] = _iterations(model, X, y, rho, repeats)
    times: dict[str, dict[float, tuple[float, str]]] = {}
    runs = {"default": [time_to_gaps(ours(model, None, most), gap) for _ in range(repeats)]}
    times["dual averaging, default (its tuning counted)"] = best_of(
        {f"run {k}": r for k, r in enumerate(runs["default"])}
    )
    unit = _tuned(model)
    settings: list[dict[str, Any]] = [
        {"gamma": float(unit * factor), "weights": weights, "interpolate": inner}
        for factor in 2.0 ** np.arange(-6.0, 1.5)
        for weights in ("uniform", "linear")
        for inner in (True, False)
    ]
    times["dual averaging, tuned"] = tuned(settings, lambda given: ours(model, most=most, **given), gap, repeats)
    times["SGDClassifier, default"] = best_of({"default": time_to_gaps(sgd(X, y, rho, most), gap)})
    rates: list[dict[str, Any]] = [
        {"learning_rate": "invscaling", "eta0": eta, "power_t": 0.5} for eta in 0.1 * 2.0 ** np.arange(11)
    ]
    settings = [{**rate, "average": average} for rate in ({}, *rates) for average in (False, True)]
    times["SGDClassifier, tuned"] = tuned(settings, lambda given: sgd(X, y, rho, most, **given), gap, repeats)
    if with_vw:
        with tempfile.TemporaryDirectory() as folder:
            result["iterations"]["Vowpal Wabbit"], times["Vowpal Wabbit, tuned"] = _vw(folder, X, y, rho, gap, most)
    print("  CPU seconds to a gap of " + ", ".join(f"{level:g}" for level in GAPS))
    for who, found in times.items():
        cells = "  ".join(f"{found[level][0]:9.3f}" if np.isfinite(found[level][0]) else "    never" for level in GAPS)
        print(f"    {who:46s}{cells}   {found[GAPS[-1]][1] if np.isfinite(found[GAPS[-1]][0]) else ''}", flush=True)
    result["seconds to gap"] = {who: {f"{level:g}": found[level] for level in GAPS} for who, found in times.items()}
    return result


def _iterations(model: LinearModel, X: Any, y: Any, rho: float, repeats: int) -> dict[str, float]:
    from sklearn.linear_model import SGDClassifier

    n = len(y)
    setting = make_setting(model, Options())
    engine = setting.engine(natural_gamma(model) / 8.0)
    sampler = Sampler(n, "shuffle", 1)
    best = {"dual averaging": np.inf, "SGDClassifier": np.inf}
    for repeat in range(2 * repeats + 1):  # the first warms up; the two take turns, so that both meet the same machine
        started = time.process_time()
        engine.advance(sampler.rows(2 * n * repeat, 2 * n))
        spent = time.process_time() - started
        learner = SGDClassifier(loss="hinge", penalty="l1", alpha=rho, fit_intercept=False, max_iter=2, tol=None)
        started = time.process_time()
        learner.fit(X, y)
        if repeat:
            best["dual averaging"] = min(best["dual averaging"], spent)
            best["SGDClassifier"] = min(best["SGDClassifier"], time.process_time() - started)
    found = {who: 2 * n / seconds for who, seconds in best.items()}
    print("  million iterations a second: " + ", ".join(f"{who} {rate / 1e6:.2f}" for who, rate in found.items()))
    return found


def _vw(folder: str, X: Any, y: Any, rho: float, gap: Callable[[Any], float], most: float) -> Any:
    path = vw_file(folder, X, y)
    d = X.shape[1]
    speed = max(4 * len(y) / vw_run(path, d, 4, rho, "--sgd -l 0.1")[0] for _ in range(3))
    print(f"  million iterations a second: Vowpal Wabbit {speed / 1e6:.2f}", flush=True)
    grid: dict[str, dict[float, float]] = {}
    for extra in ("", "--sgd -l 0.03", "--sgd -l 0.1", "--sgd -l 0.3", "--sgd -l 1", "--sgd -l 3", "--sgd -l 10"):
        runs = (vw_run(path, d, passes, rho, extra) for passes in (1, 2, 4, 8, 16, 32, 64) if passes <= most)
        beaten = {level: min((2.0 * other[level] for other in grid.values()), default=np.inf) for level in GAPS}
        grid[extra or "default"] = time_to_gaps(runs, gap, beaten)
    return speed, best_of(grid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, help=f"which sets: {', '.join(SETS)}")
    parser.add_argument("--passes", type=float, default=60.0, help="passes after which a gap counts as never reached")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-width", action="store_true", help="leave out the cost by number of features")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's about unconverged fits
    try:
        import vowpalwabbit  # noqa: F401

        with_vw = True
    except ImportError:
        with_vw = False
        print("Vowpal Wabbit is left out: pip install 'spdsl[peers]'")
    results: dict[str, Any] = {name: bench_set(name, given.passes, given.repeats, with_vw) for name in given.sets}
    if not given.no_width:  # in a process of its own, as its peak memory is measured
        sys.stdout.flush()
        subprocess.run(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "wide.py")], check=True
        )
    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(OUT, "bench_online.json"), "w") as file:
        json.dump(results, file, indent=1, default=float)


if __name__ == "__main__":
    main()

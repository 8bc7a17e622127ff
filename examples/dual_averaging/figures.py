"""Figures 1 and 2 of the biased dual averaging paper [DA], and the test of SFGM's accumulation of bias.

In: figure numbers on the command line (``python figures.py 1 2 3 --runs 10``). Out: PNG and CSV files in out/, tables
on the terminal. Figure 1: interpolated dual averaging under N(bias, 1) gradient noise, with bound lines; once at a size
where linear programs give the exact optimum and plateau, once at the paper's. Figure 2: against PGD_step and SFGM on
real sets. Figure 3: is SFGM's error under a constant bias proportional to t?
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from datasets import OPTIMA, dense_synthetic, load

import spdsl
from spdsl.solvers.dual_averaging.bounds import bound_line, gradient_square, solve_linear_program
from spdsl.solvers.dual_averaging.linear import linear_model
from spdsl.solvers.dual_averaging.options import Options
from spdsl.solvers.dual_averaging.setting import make_setting

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "out")
MODEL = spdsl.load(os.path.join(HERE, "l1_hinge.spl"))
BIASES = (10.0, 1.0, 0.0)


def curves(X: Any, y: Any, rho: float, runs: int, **options: Any) -> tuple[Any, Any, Any]:
    """Steps, the objective (runs, looks) and the last solution."""
    found = []
    for seed in range(runs):
        solution = MODEL.solve(
            X=X, y=y, rho=rho, options={"order": "uniform", "looks": 40, "interpolate": None, **options}, seed=seed
        )
        found.append(solution.history["objective"])
    return solution.history["iteration"], np.array(found), solution


def figure_1(n: int, steps: int, runs: int, rho: float) -> None:
    """Curves, bounds and plateaus under N(bias, 1) noise on [DA] section 4.1's data of n rows and columns."""
    X, y = dense_synthetic(n, n)
    exact = n <= 2_000
    model = None
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    rows = []
    for bias, colour in zip(BIASES, ("C3", "C1", "C0")):
        iteration, objective, solution = curves(
            X, y, rho, runs, steps=steps, gradient_noise=f"normal({bias}, 1)", gamma=_gamma(n, bias)
        )
        if model is None:
            model = linear_model(solution.bound)
            setting = make_setting(model, Options())
            if exact:
                best = solve_linear_program(model, setting.low, setting.high)
            else:  # no linear program of 10^8 entries
                best = _long_run(X, y, rho)
        at = best.objective
        plateau = solve_linear_program(model, setting.low, setting.high, bias).objective if exact else np.nan
        mean = np.abs(objective - at).mean(axis=0)
        w = solution["w"]
        square = gradient_square(model, bias, noise=1.0)
        pull = max(float(np.sum(bias * (best.w - w))), 0.0)
        line = bound_line(np.maximum(iteration, 1), 0, _gamma(n, bias), 0.5 * best.w @ best.w, square, pull)
        axes.loglog(iteration[1:], mean[1:], color=colour, label=f"bias {bias:g}")
        axes.loglog(iteration[1:], line[1:], "--", color=colour, lw=0.8)
        if exact and plateau > at:
            axes.axhline(plateau - at, color=colour, ls=":", lw=0.8)
        rows.append((bias, mean[-1], plateau - at, line[-1], float(np.all(mean[1:] <= line[1:]))))
        _write(f"figure1_{n}_bias{bias:g}.csv", ("iteration", "gap", "bound"), zip(iteration, mean, line))
    axes.set_xlabel("steps")
    axes.set_ylabel("F(w) - F*")
    axes.set_title(f"n = d = {n:,}, rho = {rho:g}; dashed: bounds{', dotted: plateaus' if exact else ''}", fontsize=9)
    axes.legend()
    _save(figure, f"figure1_{n}.png")
    print(
        f"\nFigure 1, n = d = {n:,}, {steps:,} steps, {runs} runs, F* = {at:.6g}{'' if exact else ' (by 60 full steps)'}"
    )
    print("  bias   F - F* at the end   plateau - F*   bound at the end   curve below bound")
    for bias, end, flat, line_end, below in rows:
        where = "everywhere" if below else "NOT everywhere"
        print(f"  {bias:4g}   {end:17.6g}   {flat:12.6g}   {line_end:16.6g}   {where}")


def _gamma(n: int, bias: float) -> float:
    """The size of a stochastic gradient: |x| ~ sqrt(.9 n), and sqrt(n) (1 + bias^2)^.5 of noise."""
    return float(np.sqrt(0.9 * n) + np.sqrt(n * (1.0 + bias**2)))


def _long_run(X: Any, y: Any, rho: float, steps: int = 60) -> Any:
    """The best point of full proximal subgradient steps: an upper estimate of the optimum, apart from dual averaging."""
    from spdsl.solvers.dual_averaging.bounds import LinearProgram

    w = np.zeros(X.shape[1], np.float32)
    best = LinearProgram(w, 0.0, np.inf)
    for k in range(steps):
        margins = y * (X @ w)
        objective = float(np.maximum(1.0 - margins, 0.0).mean() + rho * np.abs(w).sum())
        if objective < best.objective:
            best = LinearProgram(w.astype(float), 0.0, objective)
        step = 0.05 / np.sqrt(1.0 + k / 30.0)
        v = w + step * (X.T @ np.where(margins < 1.0, y, 0.0).astype(np.float32)) / len(y)
        w = np.sign(v) * np.maximum(np.abs(v) - step * rho, 0.0).astype(np.float32)
    return best


def figure_2(names: list[str], steps: int, runs: int) -> None:
    """Interpolated dual averaging, PGD_step and SFGM on real sets: mean over runs of the objective's gap."""
    figure, axes = plt.subplots(2, (len(names) + 1) // 2, figsize=(3.4 * ((len(names) + 1) // 2), 6.2), squeeze=False)
    print(
        f"\nFigure 2, {steps:,} steps, {runs} runs, gamma of each method tuned on short trial runs; F - F* at the end:"
    )
    for name, place in zip(names, axes.ravel()):
        X, y = load(name)
        rho = OPTIMA.get(name, (1e-4, None))[0]
        found = {}
        for method in ("dual_averaging", "pgd_step", "sfgm"):
            iteration, objective, solution = curves(X, y, rho, runs, steps=steps, method=method)
            found[method] = (iteration, objective, solution.statistics["gamma"])
        known = OPTIMA.get(name, (rho, None))[1]
        least = min(float(objective.min()) for _, objective, _ in found.values())
        if known is None:  # the best of a longer run, a little below what any curve reaches
            long = MODEL.solve(X=X, y=y, rho=rho, options={"steps": max(40 * steps, 10 * len(y)), "weights": "linear"})
            known = min(least, long.objective)
        report = []
        for method, (iteration, objective, gamma) in found.items():
            mean = (objective - known).mean(axis=0)
            place.loglog(iteration[1:], mean[1:], label=method)
            report.append(f"{method} {mean[-1]:.2e} (spread {objective[:, -1].std():.1e}, gamma {gamma:.2g})")
            _write(f"figure2_{name}_{method}.csv", ("iteration", "gap"), zip(iteration, mean))
        place.set_title(name, fontsize=9)
        print(f"  {name:22s} " + "; ".join(report), flush=True)
    axes[0, 0].legend(fontsize=8)
    _save(figure, "figure2.png")


def figure_3(steps: int, runs: int, n: int = 300, rho: float = 0.02) -> None:
    """F - F* under a constant bias by step number: a method that accumulates it would grow, the others level off."""
    X, y = dense_synthetic(n, n)
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    print(
        f"\nSFGM and a constant bias, n = d = {n}, rho = {rho:g}: F - F* (plateau of F + <bias, w> by linear program)"
    )
    for bias, style in ((0.015, "-"), (0.0, ":")):  # below rho: beyond it the plateau is a corner of the box
        iteration, _, solution = curves(X, y, rho, 1, steps=10, gradient_bias=bias, gamma=100.0)
        model = linear_model(solution.bound)
        setting = make_setting(model, Options())
        best = solve_linear_program(model, setting.low, setting.high).objective
        plateau = solve_linear_program(model, setting.low, setting.high, bias).objective - best
        for method, colour in (("dual_averaging", "C0"), ("sfgm", "C1"), ("pgd_step", "C2")):
            iteration, objective, solution = curves(X, y, rho, runs, steps=steps, gradient_bias=bias, method=method)
            mean = (objective - best).mean(axis=0)
            axes.loglog(iteration[1:], mean[1:], style, color=colour, label=f"{method}, bias {bias:g}")
            shown = [int(np.argmin(np.abs(iteration - t))) for t in (100, 1_000, 10_000, steps)]
            cells = "  ".join(f"t={iteration[k]:,.0f}: {mean[k]:.3g}" for k in shown)
            print(f"  bias {bias:4g}  plateau {plateau:.3g}  {method:15s} {cells}", flush=True)
            _write(f"figure3_{method}_bias{bias:g}.csv", ("iteration", "gap"), zip(iteration, mean))
        axes.axhline(max(plateau, 1e-6), color="k", ls=style, lw=0.6)
    axes.set_xlabel("steps")
    axes.set_ylabel("F(w) - F*")
    axes.legend(fontsize=8)
    _save(figure, "figure3.png")


def _write(name: str, header: tuple[str, ...], rows: Any) -> None:
    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(OUT, name), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([[f"{value:.9g}" for value in row] for row in rows])


def _save(figure: Any, name: str) -> None:
    os.makedirs(OUT, exist_ok=True)
    figure.tight_layout()
    figure.savefig(os.path.join(OUT, name), dpi=130)
    plt.close(figure)
    print(f"written: {os.path.join('out', name)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000], help="n = d of figure 1")
    parser.add_argument("--sets", nargs="*", default=[*SETS_2], help="sets of figure 2")
    given = parser.parse_args()
    if 1 in given.figures:
        for n in given.sizes:
            figure_1(n, 1_000, given.runs, rho=0.01)
    if 2 in given.figures:
        figure_2(given.sets, 10_000, given.runs)
    if 3 in given.figures:
        figure_3(30_000, max(1, given.runs // 3))


SETS_2 = ("a9a", "covtype", "w8a", "rcv1_vw_sample", "reuters21578_earnacq", "reuters21578_bigram")

if __name__ == "__main__":
    main()

"""An image recovered from the command line: measures it, runs `spdsl solve image.spl`, draws the answer beside the truth.

    python examples/graph/recover_image.py [spiral | background | angio | text] [--ratio 3.0]

In: an image, the published ones from SPDSL_DATA. Out: out/NAME.npz (X and y), out/NAME_found.npz (the solution),
figures/NAME.png. Commands are printed as they are run. Exit code 3 when the image is not recovered to 1e-6.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
from problems import IMAGES, OWN, image, measurements

import spdsl

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Measure, solve, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default=OWN, choices=(OWN, *IMAGES))
    parser.add_argument("--ratio", type=float, default=3.0, help="measurements a non-zero pixel")
    options = parser.parse_args()
    picture = image(options.name)
    n = round(options.ratio * picture.s)
    X, y = measurements(picture.w, n, seed=0)
    (HERE / "out").mkdir(exist_ok=True)
    np.savez(HERE / "out" / f"{picture.name}.npz", X=X, y=y)
    here = Path(os.path.relpath(HERE))  # as the command is told, and so that it can be given again from here
    words = ["spdsl", "solve", f"{here / 'image.spl'}", "--data", f"{here / 'out' / picture.name}.npz"]
    words += ["--bind", "G=grid(50, 50)"]
    words += ["--set", f"pixels={picture.s}", "--set", f"pieces={picture.components}"]
    words += ["--out", f"{here / 'out' / picture.name}_found.npz"]
    print(f"$ {shlex.join(words)}", flush=True)
    code = subprocess.run([sys.executable, "-m", *words]).returncode
    if code:
        return code
    solution = spdsl.load_result(HERE / "out" / f"{picture.name}_found.npz")
    found = np.asarray(solution["w"])
    error = float(np.linalg.norm(found - picture.w))
    print(f"{n} measurements of {picture.w.size} pixels, {picture.s} of them not zero: |w - w*| = {error:.1e}")
    print(f"written to {draw(picture.w, found, picture.name, n)}")
    return 0 if error <= 1e-6 else 3


def draw(truth: np.ndarray, found: np.ndarray, name: str, n: int) -> Path:
    """The image, the answer, and their difference."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.4))
    top = float(truth.max())
    parts = [(truth, "truth", 0.0, top), (found, f"recovered from {n} measurements", 0.0, top)]
    gap = np.abs(found - truth)
    parts.append((gap, f"difference, at most {gap.max():.0e}", 0.0, max(float(gap.max()), 1e-15)))
    for ax, (values, title, low, high) in zip(axes, parts):
        shown = ax.imshow(values.reshape(50, 50), cmap="gray", vmin=low, vmax=high)
        ax.set_title(title, fontsize=9)
        ax.set_xticks([])
        ax.set_yticks([])
        figure.colorbar(shown, ax=ax, fraction=0.045)
    figure.tight_layout()
    path = HERE / "figures" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


if __name__ == "__main__":
    sys.exit(main())

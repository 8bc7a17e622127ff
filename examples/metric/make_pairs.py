"""Pairs of handwritten digits for the model file `metric.spl`: each image with its 3 nearest of the same digit and 3 of
other digits.

    python examples/metric/make_pairs.py [--out examples/metric/out]

In: scikit-learn's digits. Out: `digits.npz` (64 pixels, 10,782 pairs) and `digits_small.npz` (means of 2 x 2 pixels of the
first 100 images, 600 pairs: small enough for `spdsl check`), each with U (T, d), V (T, d) and y (T,) of -1 and +1, which
`spdsl solve` binds by name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from spdsl.sklearn.constraints import neighbor_pairs


def digit_pairs(small: bool) -> dict[str, np.ndarray]:
    """U, V and y; pixels in [0, 1], small ones averaged over 2 x 2 blocks."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    if small:
        X, y = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)[:100], y[:100]
    pairs, labels = neighbor_pairs(X, y, 3)
    return {"U": X[pairs[:, 0]], "V": X[pairs[:, 1]], "y": labels}


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="the folder to write to")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for name, small in (("digits", False), ("digits_small", True)):
        pairs = digit_pairs(small)
        np.savez(folder / f"{name}.npz", **pairs)
        print(f"{folder / name}.npz: {len(pairs['y'])} pairs of {pairs['U'].shape[1]} features")


if __name__ == "__main__":
    main()

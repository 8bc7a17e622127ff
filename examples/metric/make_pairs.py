"""Pairs of handwritten digits for the model files: each image with its 3 nearest of the same digit and 3 of
other digits.

    python examples/metric/make_pairs.py                 # digits.npz: 64 features, 10,782 pairs
    python examples/metric/make_pairs.py --small         # digits_small.npz: 4 x 4 blocks, 600 pairs, for `spdsl
    check`

In: scikit-learn's digits. Out: a file with U (T, d), V (T, d) and y (T,) of -1 and +1 that `spdsl solve` binds
by name.
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
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, help="the file to write")
    options = parser.parse_args()
    folder = Path(__file__).parent / "out"
    path = options.out or folder / ("digits_small.npz" if options.small else "digits.npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = digit_pairs(options.small)
    np.savez(path, **pairs)
    print(f"{path}: {len(pairs['y'])} pairs of {pairs['U'].shape[1]} features")


if __name__ == "__main__":
    main()

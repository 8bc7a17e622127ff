"""What every test may use: the data folder, a private kernel cache, quiet threads."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib
import pytest
from hypothesis import HealthCheck, settings

matplotlib.use("Agg")

settings.register_profile("spdsl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("spdsl")

ROOT = Path(__file__).resolve().parent.parent

WHERE = {
    "gaga": "OpenML/UCI/StatLib sets of GAGA's Table 1 (see examples/gaga)",
    "graph": "the images and the protein network of the GraphStoIHT repository (see examples/graph)",
    "libsvm": "LIBSVM's binary sets (see examples/dual_averaging)",
    "metric": "small UCI sets (see examples/metric)",
}


@pytest.fixture(scope="session")
def data_file():
    """A function from "folder/file.npz" to its path; skips the test loudly where the set is missing."""

    def find(name: str) -> Path:
        folder = os.environ.get("SPDSL_DATA")
        if not folder:
            pytest.skip(f"SPDSL_DATA is not set: {name} is from {WHERE[name.split('/')[0]]}")
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"{path} is missing: it is from {WHERE[name.split('/')[0]]}")
        return path

    return find

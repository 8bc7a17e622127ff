"""The catalogue of diagnostic codes: one code a complaint, with the sentence that grammars/README.md shows for it.

1xx text and syntax, 2xx names, types and shapes, 3xx convexity, losses and derivations, 4xx data, 5xx back ends and
options, 6xx the certificate, 7xx command line and files, 9xx bugs in spdsl.
"""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    # --- 1xx text and syntax (spdsl/language) ---
    # --- 2xx names, types and shapes (spdsl/language) ---
    "SPL203": "`self_paced` needs one loss per sample, and this loss is a scalar",
    # --- 3xx convexity, losses and derivations (spdsl/language, spdsl/compiler) ---
    # --- 4xx data (spdsl/data) ---
    # --- 5xx back ends and options (solvers) ---
    # --- 6xx the certificate (spdsl/reference) ---
    # --- 7xx command line and files (spdsl/cli.py, spdsl/solution, spdsl/view) ---
    # --- 9xx bugs ---
    "SPL900": "this is a bug in spdsl",
}

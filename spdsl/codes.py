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
    "SPL501": "there is no back end of that name",
    "SPL502": "the back end that the model names can't solve it",
    "SPL503": "no back end can solve this mix of parts",
    "SPL504": "a back end has no option of that name",
    "SPL505": "an option's value is of the wrong kind or out of range",
    "SPL560": "a COMID step has no finite minimizer (Burg) or leaves floating point (von Neumann)",
    "SPL561": "COMID knows no divergence, loss or schedule of that name, or p is out of range",
    "SPL562": "a penalty's coefficient is negative or not finite",
    "SPL563": "the pairs given to a metric learner are malformed (shape, labels, values)",
    "SPL564": "a metric learner would need more memory than allowed",
    # --- 6xx the certificate (spdsl/reference) ---
    # --- 7xx command line and files (spdsl/cli.py, spdsl/solution, spdsl/view) ---
    "SPL701": "an age lies outside the path",
    "SPL702": "a path was loaded without its data",
    # --- 9xx bugs ---
    "SPL900": "this is a bug in spdsl",
}

"""The reference: a problem as cvxpy sees it, and the certificate that holds a result against it.

In: bound problems and results of any back end. Out: cvxpy problems, `Certificate`s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spdsl.reference.atoms import TranslationError
    from spdsl.reference.certificate import Certificate, CertificateRow
    from spdsl.reference.checking import certify
    from spdsl.reference.program import optimum, to_cvxpy
    from spdsl.reference.stationarity import kkt_residual

__all__ = ["Certificate", "CertificateRow", "TranslationError", "certify", "kkt_residual", "optimum", "to_cvxpy"]

_HOMES = {
    "Certificate": "certificate",
    "CertificateRow": "certificate",
    "TranslationError": "atoms",
    "certify": "checking",
    "kkt_residual": "stationarity",
    "optimum": "program",
    "to_cvxpy": "program",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: cvxpy and SciPy cost half a second."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

"""A notebook for complaints: keeps each once, in the order of the file, and hands out the first twenty.

In: what the parser and the checker find. Out: a `ModelError`, or the warnings when there is no error.
"""

from __future__ import annotations

from dataclasses import replace

from spdsl.diagnostics import Diagnostic, ModelError, Related, Severity, Span

__all__ = ["MAXIMUM_SHOWN", "Complaints"]

MAXIMUM_SHOWN = 20
_ENOUGH = 1000


class Complaints:
    """Collects diagnostics; `raise_if_any` ends the run when there are errors among them."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, int, str], Diagnostic] = {}

    @property
    def enough(self) -> bool:
        """Whether so many errors were found that looking for more helps nobody."""
        return len(self._found) >= _ENOUGH

    def __bool__(self) -> bool:
        return any(item.severity is Severity.ERROR for item in self._found.values())

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        label: str = "",
        *helps: str,
        related: tuple[Related, ...] = (),
    ) -> None:
        """Note an error; the same code at the same place is noted once."""
        self.add(Diagnostic(code, message, span, label=label, help=helps, related=related))

    def warning(
        self,
        code: str,
        message: str,
        span: Span,
        label: str = "",
        *helps: str,
        related: tuple[Related, ...] = (),
    ) -> None:
        """Note a warning."""
        diagnostic = Diagnostic(
            code, message, span, label=label, help=helps, related=related, severity=Severity.WARNING
        )
        self.add(diagnostic)

    def add(self, diagnostic: Diagnostic) -> None:
        """Note a diagnostic."""
        span = diagnostic.span
        key = (diagnostic.code, span.start, span.end, "") if span else (diagnostic.code, -1, -1, diagnostic.message)
        self._found.setdefault(key, diagnostic)

    def errors(self) -> tuple[Diagnostic, ...]:
        """The errors in the order of the file, at most twenty; the last one says how many more there are."""
        found = self._ordered(Severity.ERROR)
        shown = found[:MAXIMUM_SHOWN]
        more = len(found) - len(shown)
        if more:
            number = "many" if self.enough else str(more)
            note = Related(None, f"{number} more {'error is' if more == 1 else 'errors are'} not shown")
            shown[-1] = replace(shown[-1], related=(*shown[-1].related, note))
        return tuple(shown)

    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings in the order of the file."""
        return tuple(self._ordered(Severity.WARNING))

    def raise_if_any(self) -> None:
        """Raise the errors, if there are any."""
        if self:
            raise ModelError(self.errors())

    def _ordered(self, severity: Severity) -> list[Diagnostic]:
        found = [item for item in self._found.values() if item.severity is severity]
        return sorted(found, key=lambda item: item.span.start if item.span else -1)

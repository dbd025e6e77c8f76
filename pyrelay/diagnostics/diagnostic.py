"""Diagnostics as data: what is wrong, where, and what to write instead.

Each mistake is a frozen dataclass in `catalogue/` that knows its code and gives a `Diagnostic`;
`render.py` alone turns diagnostics into text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from .source import Span


class Severity(Enum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the source with a short text beside it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A replacement for the text of a span, which `check --fix` can apply."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class CaseFix:
    """Cases for the end of the `match` at a span, which `check --fix` can add; they raise."""

    span: Span
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterFix:
    """The annotation of the parameter at a span, which `check --fix` can add; `imports` are names
    of pyrelay in it that the file has yet to import."""

    span: Span
    annotation: str
    imports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One mistake: a code, a title, the place, other places that matter, and the way out."""

    code: str
    title: str
    primary: Label | None
    secondary: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    fix: Fix | CaseFix | ParameterFix | None = None
    severity: Severity = Severity.ERROR


@runtime_checkable
class Problem(Protocol):
    """A catalogue entry: any frozen dataclass that can describe itself as a `Diagnostic`."""

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        ...


class RelayError(Exception):
    """A mistake in a user's program or call, with everything needed to show it.

    `str(error)` is the plain rendering; `error.diagnostics` is the data.
    """

    __module__ = "pyrelay"  # where users have it from

    def __init__(self, *problems: Problem | Diagnostic) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(
            p if isinstance(p, Diagnostic) else p.diagnostic() for p in problems
        )
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        from .render import render_text  # the renderer is needed only when something is shown

        return render_text(self.diagnostics)

    def _repr_html_(self) -> str:
        """Return the coloured rendering that notebooks show for a value."""
        from .colour import render_html

        return render_html(self.diagnostics)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows when the error ends a cell: the user's frames, then the
        error."""
        from .colour import render_traceback

        return render_traceback(self)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all mistakes, in order."""
        return tuple(d.code for d in self.diagnostics)


class CheckError(RelayError):
    """A mistake found before anything ran."""

    __module__ = "pyrelay"


class MissingNameError(CheckError, AttributeError):
    """A namespace of pyrelay has no such name."""

    __module__ = "pyrelay"


class RunError(RelayError):
    """A mistake found while a program ran."""

    __module__ = "pyrelay"


class RelayWarning(UserWarning):
    """A construct that is valid but cannot be intended, such as a case that is never reached."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of checking a program without mistakes; `str(report)` shows it."""

    warnings: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        from .render import render_text

        return render_text(self.warnings) if self.warnings else "no mistakes"

    __repr__ = __str__

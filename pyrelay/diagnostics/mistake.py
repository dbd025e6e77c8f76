"""Diagnostics as data: what is wrong, where, and what to write instead.

Each mistake is a frozen dataclass in `catalogue/` that knows its code and gives a `Diagnostic`;
`render.py` alone turns diagnostics into text.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..dataclass import dataclass

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

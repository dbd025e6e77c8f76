"""Warnings of the compiler as Python's own, at the user's line."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Final

from ...diagnostics.diagnostic import Diagnostic, RelayWarning

_SHOWN: Final[dict[str | tuple[str, type[Warning], int], int]] = {}
"""What Python's filters need to show a warning once a place."""


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Issue Python warnings; what becomes of them is up to the user's filters."""
    for diagnostic in diagnostics:
        if diagnostic.primary is None:
            warnings.warn(diagnostic.title, RelayWarning, stacklevel=2)
            continue
        span = diagnostic.primary.span
        text = f"{diagnostic.title} [{diagnostic.code}]"
        warnings.warn_explicit(
            text, RelayWarning, span.file.name, span.line, "pyrelay", registry=_SHOWN
        )

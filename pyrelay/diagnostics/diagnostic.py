"""The errors that carry diagnostics, and the report of a check."""

from __future__ import annotations

from ..dataclass import dataclass
from .mistake import CaseFix as CaseFix
from .mistake import Diagnostic as Diagnostic
from .mistake import Fix as Fix
from .mistake import Label as Label
from .mistake import ParameterFix as ParameterFix
from .mistake import Problem as Problem
from .mistake import Severity as Severity


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
        """Return the lines that IPython shows when the error ends a cell: the user's frames, then
        the error."""
        from .colour import render_traceback

        return render_traceback(self, self.diagnostics)

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

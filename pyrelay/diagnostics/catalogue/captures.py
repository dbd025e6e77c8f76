"""Objects from outside that compiled code cannot use.

Codes RL100 to RL149, with `language`.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Label
from ..source import Span
from ..wording import with_article


@dataclass(frozen=True, slots=True)
class CapturedTensor:
    """A relay function uses a tensor or an array that it captures.

    A captured array could change without the compiled program noticing, and nothing
    shows whether it is a weight, an input or a constant. Pass it as an argument, or mark it as a
    constant.
    """

    span: Span
    name: str
    kind: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL106",
            title=f"`{self.name}` is {with_article(self.kind)} from outside of the function",
            primary=Label(self.span, "captured here"),
            help=f"pass it as an argument, or write `relay.const({self.name})` if its elements "
            "never change",
        )


@dataclass(frozen=True, slots=True)
class UndecoratedFunction:
    """A relay function calls a Python function that is not one."""

    span: Span
    name: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL107",
            title=f"`{self.name}` is not a relay function",
            primary=Label(self.span, "called from compiled code"),
            help=self.instead,
        )


@dataclass(frozen=True, slots=True)
class CapturedObject:
    """A relay function uses a Python object that has no meaning in compiled code."""

    span: Span
    name: str
    kind: str
    instead: str

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL116",
            title=f"`{self.name}` is {with_article(self.kind)}, which compiled code cannot use",
            primary=Label(self.span, ""),
            help=self.instead,
        )
